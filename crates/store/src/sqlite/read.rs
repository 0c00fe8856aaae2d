//! Every SQL statement that reads, into the storage types. Keeps to what SQLite and PostgreSQL
//! share, placeholders apart.

use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row, SqliteConnection};
use units::{Instant, Resources};
use uuid::Uuid;

use super::fault::{Fault, Result};
use super::write::int;
use crate::{
    AuditRow, ClusterRow, CredentialRow, Desired, EventFilter, EventRow, ObjectRow, PodRow,
    ProjectRow, Snapshot, UsageRow, WorkloadRow, WorkloadState,
};

/// One row being read; its name makes the message about a value that makes no sense.
struct Reading<'r> {
    row: &'r SqliteRow,
    table: &'static str,
}

impl Reading<'_> {
    fn bad(&self, column: &str, value: impl ToString) -> Fault {
        Fault::Value { row: format!("{}.{column}", self.table), value: value.to_string() }
    }

    fn text(&self, column: &str) -> Result<String> {
        Ok(self.row.try_get(column)?)
    }

    fn maybe_text(&self, column: &str) -> Result<Option<String>> {
        Ok(self.row.try_get(column)?)
    }

    fn number(&self, column: &str) -> Result<u64> {
        let value: i64 = self.row.try_get(column)?;
        u64::try_from(value).map_err(|_| self.bad(column, value))
    }

    fn maybe_number(&self, column: &str) -> Result<Option<u64>> {
        let value: Option<i64> = self.row.try_get(column)?;
        value.map(|v| u64::try_from(v).map_err(|_| self.bad(column, v))).transpose()
    }

    fn small(&self, column: &str) -> Result<u32> {
        let value: i64 = self.row.try_get(column)?;
        u32::try_from(value).map_err(|_| self.bad(column, value))
    }

    fn uuid(&self, column: &str) -> Result<Uuid> {
        let text = self.text(column)?;
        text.parse().map_err(|_| self.bad(column, text))
    }

    fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        let text = self.text(column)?;
        serde_json::from_str(&text).map_err(|error| self.bad(column, format!("{text}: {error}")))
    }

    fn maybe_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>> {
        let Some(text) = self.maybe_text(column)? else { return Ok(None) };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| self.bad(column, format!("{text}: {error}")))
    }
}

async fn read<T>(
    db: &mut SqliteConnection,
    table: &'static str,
    sql: &'static str,
    convert: impl Fn(&Reading<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let rows = sqlx::query(sql).fetch_all(db).await?;
    rows.iter().map(|row| convert(&Reading { row, table })).collect()
}

/// Reads the living state, as of one moment.
pub(super) async fn load(db: &mut SqliteConnection) -> Result<Snapshot> {
    use sqlx::Connection;
    let mut moment = db.begin().await?;
    let db = &mut *moment;
    Ok(Snapshot {
        cluster: cluster(db).await?,
        projects: read(
            db,
            "projects",
            "SELECT * FROM projects WHERE deleted_at IS NULL ORDER BY id",
            |r| {
                Ok(ProjectRow {
                    id: r.number("id")?,
                    name: r.text("name")?,
                    body: r.json("body")?,
                    deleted_at: None,
                })
            },
        )
        .await?,
        workloads: read(
            db,
            "workloads",
            "SELECT * FROM workloads WHERE deleted_at IS NULL ORDER BY seq",
            read_workload,
        )
        .await?,
        pods: read(
            db,
            "pods",
            "SELECT pods.* FROM pods JOIN workloads ON workloads.id = pods.workload_id
             WHERE workloads.deleted_at IS NULL ORDER BY workloads.seq, pods.pod_index",
            |r| {
                Ok(PodRow {
                    id: r.uuid("id")?,
                    workload_id: r.uuid("workload_id")?,
                    index: r.small("pod_index")?,
                    generation: r.small("generation")?,
                    body: r.json("body")?,
                })
            },
        )
        .await?,
        objects: read(
            db,
            "objects",
            "SELECT * FROM objects WHERE deleted_at IS NULL ORDER BY seq",
            read_object,
        )
        .await?,
        usage: read(db, "usage", "SELECT * FROM usage ORDER BY step_start, project_id", |r| {
            Ok(UsageRow {
                step_start: Instant(r.number("step_start")?),
                project_id: Some(r.number("project_id")?).filter(|id| *id > 0),
                held: Resources {
                    gpu_millis: r.number("gpu_millis")?,
                    cpu_millis: r.number("cpu_millis")?,
                    memory_bytes: r.number("memory_bytes")?,
                },
            })
        })
        .await?,
        last_project_id: last(db, "SELECT COALESCE(MAX(id), 0) AS n FROM projects").await?,
        last_workload_seq: last(db, "SELECT COALESCE(MAX(seq), 0) AS n FROM workloads").await?,
        last_object_seq: last(db, "SELECT COALESCE(MAX(seq), 0) AS n FROM objects").await?,
        last_event_seq: last(db, "SELECT COALESCE(MAX(seq), 0) AS n FROM events").await?,
    })
}

async fn last(db: &mut SqliteConnection, sql: &'static str) -> Result<u64> {
    let row = sqlx::query(sql).fetch_one(db).await?;
    Reading { row: &row, table: "counters" }.number("n")
}

async fn cluster(db: &mut SqliteConnection) -> Result<ClusterRow> {
    let (mut uuid, mut created_at) = (None, None);
    for row in sqlx::query("SELECT key, value FROM meta").fetch_all(db).await? {
        let row = Reading { row: &row, table: "meta" };
        let value = row.text("value")?;
        match row.text("key")?.as_str() {
            "cluster_uuid" => uuid = Some(row.uuid("value")?),
            "created_at" => {
                created_at = Some(value.parse().map_err(|_| row.bad("created_at", &value))?);
            }
            _ => {}
        }
    }
    let missing = |row: &str| Fault::Value { row: row.to_owned(), value: "nothing".to_owned() };
    Ok(ClusterRow {
        uuid: uuid.ok_or_else(|| missing("meta.cluster_uuid"))?,
        created_at: Instant(created_at.ok_or_else(|| missing("meta.created_at"))?),
    })
}

fn read_object(r: &Reading<'_>) -> Result<ObjectRow> {
    Ok(ObjectRow {
        seq: r.number("seq")?,
        kind: r.text("kind")?,
        id: r.text("id")?,
        scope: r.text("scope")?,
        owner: r.text("owner")?,
        name: r.text("name")?,
        // Not shown in an error: it may hold hashes of secrets.
        body: serde_json::from_str(&r.text("body")?).map_err(|error| r.bad("body", error))?,
        created_at: Instant(r.number("created_at")?),
        created_by: r.text("created_by")?,
        updated_at: Instant(r.number("updated_at")?),
        updated_by: r.text("updated_by")?,
        deleted_at: r.maybe_number("deleted_at")?.map(Instant),
    })
}

fn read_workload(r: &Reading<'_>) -> Result<WorkloadRow> {
    let desired = match r.text("desired")?.as_str() {
        "run" => Desired::Run,
        "suspend" => Desired::Suspend,
        "delete" => Desired::Delete,
        other => return Err(r.bad("desired", other)),
    };
    Ok(WorkloadRow {
        id: r.uuid("id")?,
        seq: r.number("seq")?,
        project_id: r.number("project_id")?,
        created_at: Instant(r.number("created_at")?),
        spec: r.json("spec")?,
        state: WorkloadState {
            phase: r.text("phase")?,
            phase_since: Instant(r.number("phase_since")?),
            desired,
            restarts: r.small("restarts")?,
            not_before: r.maybe_number("not_before")?.map(Instant),
            completed_at: r.maybe_number("completed_at")?.map(Instant),
            waited_ms: r.number("waited_ms")?,
            ran_ms: r.number("ran_ms")?,
            eviction: r.maybe_json("eviction")?,
            deleted_at: r.maybe_number("deleted_at")?.map(Instant),
        },
    })
}

/// Reads events by a filter.
pub(super) async fn events(
    db: &mut SqliteConnection,
    filter: &EventFilter,
) -> Result<Vec<EventRow>> {
    let mut sql = "SELECT * FROM events WHERE seq > ?".to_owned();
    if filter.workload.is_some() {
        sql.push_str(" AND workload_id = ?");
    }
    if filter.project.is_some() {
        sql.push_str(" AND project_id = ?");
    }
    sql.push_str(if filter.newest_first { " ORDER BY seq DESC" } else { " ORDER BY seq" });
    sql.push_str(" LIMIT ? OFFSET ?");
    // Only fixed pieces were joined above; every value is bound.
    let mut query = sqlx::query(AssertSqlSafe(sql)).bind(int(filter.after_seq.unwrap_or(0)));
    if let Some(id) = filter.workload {
        query = query.bind(id.to_string());
    }
    if let Some(id) = filter.project {
        query = query.bind(int(id));
    }
    let query = query.bind(filter.limit.map_or(i64::MAX, i64::from)).bind(int(filter.skip));
    let rows = query.fetch_all(db).await?;
    let convert = |row| {
        let r = Reading { row, table: "events" };
        Ok(EventRow {
            seq: r.number("seq")?,
            at: Instant(r.number("at")?),
            kind: r.text("kind")?,
            warning: r.number("warning")? != 0,
            project_id: r.maybe_number("project_id")?,
            project_name: r.text("project_name")?,
            workload_id: match r.maybe_text("workload_id")? {
                None => None,
                Some(_) => Some(r.uuid("workload_id")?),
            },
            workload_name: r.text("workload_name")?,
            pod_name: r.maybe_text("pod_name")?,
            code: r.maybe_text("code")?,
            message: r.text("message")?,
        })
    };
    rows.iter().map(convert).collect()
}

/// Reads all credentials.
pub(super) async fn credentials(db: &mut SqliteConnection) -> Result<Vec<CredentialRow>> {
    read(db, "credentials", "SELECT * FROM credentials ORDER BY client_id", |r| {
        Ok(CredentialRow {
            client_id: r.text("client_id")?,
            secret_sha256: r.text("secret_sha256")?,
            subject: r.text("subject")?,
            created_at: Instant(r.number("created_at")?),
        })
    })
    .await
}

/// Reads the newest audit rows.
pub(super) async fn audit(db: &mut SqliteConnection, limit: u32) -> Result<Vec<AuditRow>> {
    let rows = sqlx::query("SELECT * FROM audit ORDER BY seq DESC LIMIT ?")
        .bind(i64::from(limit))
        .fetch_all(db)
        .await?;
    let convert = |row| {
        let r = Reading { row, table: "audit" };
        Ok(AuditRow {
            at: Instant(r.number("at")?),
            who: r.text("who")?,
            what: r.text("what")?,
            target: r.text("target")?,
            result: r.text("result")?,
            detail: r.json("detail")?,
        })
    };
    rows.iter().map(convert).collect()
}
