//! Every SQL statement that reads, into the storage types. Does not know which database it is
//! for; it keeps to what SQLite and PostgreSQL share.

use std::collections::BTreeMap;
use std::sync::Arc;

use spec::WorkloadKind;

use units::Instant;

use crate::connection::Connection;
use crate::fault::{Fault, Result};
use crate::reading::{Reading, read, read_with};
use crate::statement::Statement;
use crate::write::{CLOCK, WORKLOAD_SEQ};
use crate::{ledger, log_groups, pasts, release};
use records::{
    ArchivedCount, ArchivedKey, AuditFilter, AuditRow, ClockRow, ClusterRow, CredentialRow,
    DepartmentRow, Desired, EventFilter, EventRow, LedgerRow, Log, LogGroup, ObjectRow, Past,
    PastFilter, PodRow, ProjectRow, SampleFilter, SampleRow, Snapshot, WorkloadRow, WorkloadState,
};

/// Reads the living state; as of one moment if `db` is in a transaction.
pub(crate) async fn load(db: &mut Connection<'_>) -> Result<Snapshot> {
    match living(db).await {
        Err(Fault::Newer { what, found, known, .. }) => {
            let program = release::name(release::read(db).await?.as_deref());
            Err(Fault::Newer { what, found, known, program })
        }
        other => other,
    }
}

async fn living(db: &mut Connection<'_>) -> Result<Snapshot> {
    let (cluster, clock) = cluster(db).await?;
    let pods = read(
        db,
        "pods",
        "SELECT pods.* FROM pods JOIN workloads ON workloads.id = pods.workload_id
         WHERE workloads.archived = 0 AND workloads.deleted_at IS NULL
         ORDER BY workloads.seq, pods.pod_index",
        read_pod,
    )
    .await?;
    let kept = |r: &Reading<'_>| Ok((r.uuid("id")?, r.document("past")?));
    let kept = read(db, "workloads", pasts::KEPT, kept).await?;
    Ok(Snapshot {
        cluster,
        clock,
        departments: read(
            db,
            "departments",
            "SELECT * FROM departments WHERE deleted_at IS NULL ORDER BY id",
            read_department,
        )
        .await?,
        projects: read(
            db,
            "projects",
            "SELECT * FROM projects WHERE deleted_at IS NULL ORDER BY id",
            read_project,
        )
        .await?,
        workloads: read(
            db,
            "workloads",
            "SELECT * FROM workloads WHERE archived = 0 AND deleted_at IS NULL ORDER BY seq",
            read_workload,
        )
        .await?,
        pasts: pasts::of_all(kept, &pods),
        pods,
        archived: archived_counts(db).await?,
        objects: read(
            db,
            "objects",
            "SELECT * FROM objects WHERE deleted_at IS NULL ORDER BY seq",
            read_object,
        )
        .await?,
        usage: ledger::usage(db).await?,
        lags: ledger::lags(db).await?,
        allocations: ledger::open_allocations(db).await?,
        last_department_id: last(db, "SELECT COALESCE(MAX(id), 0) AS n FROM departments").await?,
        last_project_id: last(db, "SELECT COALESCE(MAX(id), 0) AS n FROM projects").await?,
        last_workload_seq: last_workload_seq(db).await?,
        last_object_seq: last(db, "SELECT COALESCE(MAX(seq), 0) AS n FROM objects").await?,
        last_event_seq: last(db, "SELECT COALESCE(MAX(seq), 0) AS n FROM events").await?,
    })
}

/// Reads what was deleted.
pub(crate) async fn past(db: &mut Connection<'_>, filter: PastFilter) -> Result<Past> {
    let those = match filter.id {
        None => "workloads.deleted_at >= $1",
        Some(_) => "workloads.deleted_at >= $1 AND workloads.id = $2",
    };
    let statement = |sql: String| {
        let statement = Statement::new("read what was deleted", sql).at(filter.since);
        filter.id.into_iter().fold(statement, |statement, id| statement.text(id.to_string()))
    };
    // Ordered by an expression: for the column SQLite would read all workloads in its order.
    let workloads = statement(format!("SELECT * FROM workloads WHERE {those} ORDER BY seq + 0"));
    let pods = statement(format!(
        "SELECT pods.* FROM pods JOIN workloads ON workloads.id = pods.workload_id
         WHERE {those} ORDER BY pods.pod_index"
    ));
    let projects = statement(format!(
        "SELECT * FROM projects WHERE id IN (SELECT project_id FROM workloads WHERE {those})
         ORDER BY id"
    ));
    let departments = "SELECT * FROM departments ORDER BY id";
    Ok(Past {
        workloads: read_with(db, "workloads", workloads, read_workload).await?,
        pods: read_with(db, "pods", pods, read_pod).await?,
        projects: read_with(db, "projects", projects, read_project).await?,
        departments: read(db, "departments", departments, read_department).await?,
    })
}

/// Number of deleted workloads.
pub(crate) async fn deleted_count(db: &mut Connection<'_>) -> Result<u64> {
    last(db, "SELECT COUNT(*) AS n FROM workloads WHERE deleted_at IS NOT NULL").await
}

fn read_department(r: &Reading<'_>) -> Result<DepartmentRow> {
    Ok(DepartmentRow {
        id: r.number("id")?,
        name: r.text("name")?,
        body: r.document("body")?,
        deleted_at: r.maybe_number("deleted_at")?.map(Instant),
    })
}

/// Number of archived workloads of each project, submitter, kind and phase.
async fn archived_counts(db: &mut Connection<'_>) -> Result<Vec<ArchivedCount>> {
    let sql = "SELECT * FROM archived_counts WHERE n > 0
        ORDER BY project_id, submitted_by, kind, phase";
    let statement = Statement::new("count archived workloads", sql);
    read_with(db, "workloads", statement, |r| {
        let kind = r.text("kind")?;
        let known = WorkloadKind::ALL.into_iter().find(|known| known.name() == kind);
        let kind = known.ok_or_else(|| r.bad("kind", kind))?;
        let failed = r.text("phase")? == "failed";
        let key = ArchivedKey { project_id: r.number("project_id")?, kind, failed };
        let (count, bytes) = (r.number("n")?, r.number("bytes")?);
        Ok(ArchivedCount { key, submitted_by: r.text("submitted_by")?, count, bytes })
    })
    .await
}

fn read_project(r: &Reading<'_>) -> Result<ProjectRow> {
    Ok(ProjectRow {
        id: r.number("id")?,
        name: r.text("name")?,
        body: r.document("body")?,
        deleted_at: r.maybe_number("deleted_at")?.map(Instant),
    })
}

pub(crate) fn read_pod(r: &Reading<'_>) -> Result<PodRow> {
    Ok(PodRow {
        id: r.uuid("id")?,
        workload_id: r.uuid("workload_id")?,
        index: r.small("pod_index")?,
        generation: r.small("generation")?,
        body: r.document("body")?,
    })
}

async fn last(db: &mut Connection<'_>, sql: &'static str) -> Result<u64> {
    let highest = read(db, "counters", sql, |r| r.number("n")).await?;
    Ok(highest.first().copied().unwrap_or(0))
}

/// The highest `seq` of a workload, also of one that is no longer kept.
async fn last_workload_seq(db: &mut Connection<'_>) -> Result<u64> {
    let stored =
        Statement::new("read", "SELECT CAST(value AS BIGINT) AS n FROM meta WHERE key = $1");
    let stored = read_with(db, "meta", stored.text(WORKLOAD_SEQ), |r| r.number("n")).await?;
    let kept = last(db, "SELECT COALESCE(MAX(seq), 0) AS n FROM workloads").await?;
    Ok(stored.into_iter().fold(kept, u64::max))
}

async fn cluster(db: &mut Connection<'_>) -> Result<(ClusterRow, Option<ClockRow>)> {
    let (mut uuid, mut created_at, mut clock) = (None, None, None);
    for row in db.read(Statement::new("read", "SELECT key, value FROM meta")).await? {
        let row = Reading { row: &row, table: "meta" };
        let value = row.text("value")?;
        match row.text("key")?.as_str() {
            "cluster_uuid" => uuid = Some(row.uuid("value")?),
            "created_at" => {
                created_at = Some(value.parse().map_err(|_| row.bad("created_at", &value))?);
            }
            CLOCK => {
                let parts = value.split_once(' ');
                let parsed = parts.and_then(|(boot, ahead_ms)| {
                    Some(ClockRow { boot: boot.parse().ok()?, ahead_ms: ahead_ms.parse().ok()? })
                });
                clock = Some(parsed.ok_or_else(|| row.bad(CLOCK, &value))?);
            }
            _ => {}
        }
    }
    let missing = |row: &str| Fault::Value { row: row.to_owned(), value: "nothing".to_owned() };
    let cluster = ClusterRow {
        uuid: uuid.ok_or_else(|| missing("meta.cluster_uuid"))?,
        created_at: Instant(created_at.ok_or_else(|| missing("meta.created_at"))?),
    };
    Ok((cluster, clock))
}

fn read_object(r: &Reading<'_>) -> Result<ObjectRow> {
    Ok(ObjectRow {
        seq: r.number("seq")?,
        kind: r.text("kind")?,
        id: r.text("id")?,
        scope: r.text("scope")?,
        owner: r.text("owner")?,
        name: r.text("name")?,
        body: r.object("body")?,
        created_at: Instant(r.number("created_at")?),
        created_by: r.text("created_by")?,
        updated_at: Instant(r.number("updated_at")?),
        updated_by: r.text("updated_by")?,
        deleted_at: r.maybe_number("deleted_at")?.map(Instant),
    })
}

pub(crate) fn read_workload(r: &Reading<'_>) -> Result<WorkloadRow> {
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
        spec: Arc::new(r.document("spec")?),
        state: WorkloadState {
            phase: r.text("phase")?,
            phase_since: Instant(r.number("phase_since")?),
            desired,
            restarts: r.small("restarts")?,
            not_before: r.maybe_number("not_before")?.map(Instant),
            completed_at: r.maybe_number("completed_at")?.map(Instant),
            waited_ms: r.number("waited_ms")?,
            ran_ms: r.number("ran_ms")?,
            eviction: r.maybe_document("eviction")?,
            deleted_at: r.maybe_number("deleted_at")?.map(Instant),
        },
    })
}

/// Reads events by a filter.
pub(crate) async fn events(db: &mut Connection<'_>, filter: &EventFilter) -> Result<Vec<EventRow>> {
    let order = if filter.newest_first { "seq DESC" } else { "seq" };
    let columns = [
        filter.workload.map(|_| "workload_id"),
        filter.workload_name.as_ref().map(|_| "workload_name"),
        filter.project.map(|_| "project_id"),
    ];
    let columns = columns.into_iter().flatten().zip(4..);
    let of: String = columns.map(|(column, number)| format!(" AND {column} = ${number}")).collect();
    let sql =
        format!("SELECT * FROM events WHERE seq > $1{of} ORDER BY {order} LIMIT $2 OFFSET $3");
    let mut statement = Statement::new("read events", sql)
        .int(filter.after_seq.unwrap_or(0))
        .int(filter.limit.map_or(u64::MAX, u64::from))
        .int(filter.skip);
    if let Some(id) = filter.workload {
        statement = statement.text(id.to_string());
    }
    if let Some(name) = &filter.workload_name {
        statement = statement.text(name.clone());
    }
    if let Some(id) = filter.project {
        statement = statement.int(id);
    }
    read_with(db, "events", statement, |r| {
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
            owner: r.text("owner")?,
            beneficiary: r.maybe_document("beneficiary")?,
        })
    })
    .await
}

/// Number of rows of each group of a log after a position, until the position `until`.
pub(crate) async fn log_counts(
    db: &mut Connection<'_>,
    log: Log,
    after: u64,
    until: u64,
) -> Result<Vec<(LogGroup, u64)>> {
    read_with(db, log_groups::table(log), log_groups::counts(log, after, until), |r| {
        let project_id = r.maybe_number("project_id")?.unwrap_or(0);
        Ok((LogGroup { project_id, user: r.text("member")? }, r.number("n")?))
    })
    .await
}

/// Positions of the oldest rows of a group of a log from a position on.
pub(crate) async fn oldest_of_group(
    db: &mut Connection<'_>,
    (log, group): (Log, &LogGroup),
    from: u64,
    count: u64,
) -> Result<Vec<u64>> {
    let statement = log_groups::oldest((log, group), from, count);
    read_with(db, log_groups::table(log), statement, |r| r.number("seq")).await
}

/// The oldest rows of a log: their positions and times.
pub(crate) async fn oldest(
    db: &mut Connection<'_>,
    log: Log,
    count: u32,
) -> Result<Vec<(u64, Instant)>> {
    let (table, sql) = match log {
        Log::Events => ("events", "SELECT seq, at FROM events ORDER BY seq LIMIT $1"),
        Log::Audit => ("audit", "SELECT seq, at FROM audit ORDER BY seq LIMIT $1"),
    };
    let statement = Statement::new("read the oldest rows of a log", sql).int(count.into());
    read_with(db, table, statement, |r| Ok((r.number("seq")?, Instant(r.number("at")?)))).await
}

/// The position of the newest row of a log; 0 if it is empty.
pub(crate) async fn newest(db: &mut Connection<'_>, log: Log) -> Result<u64> {
    let (table, sql) = match log {
        Log::Events => ("events", "SELECT COALESCE(MAX(seq), 0) AS seq FROM events"),
        Log::Audit => ("audit", "SELECT COALESCE(MAX(seq), 0) AS seq FROM audit"),
    };
    let rows = read(db, table, sql, |r| r.number("seq")).await?;
    Ok(rows.into_iter().next().unwrap_or(0))
}

/// GPU time held from `from` until `until`, exactly, and used in the hours that begin in that time;
/// a row for each project, owner and model.
pub(crate) async fn ledger(
    db: &mut Connection<'_>,
    from: Instant,
    until: Instant,
) -> Result<Vec<LedgerRow>> {
    let held = "SELECT project_id, MAX(project_name) AS project_name, owner, gpu_model,
            CAST(SUM(gpu_millis * (
                CASE WHEN ended_at IS NULL OR ended_at > $2 THEN $2 ELSE ended_at END
                - CASE WHEN started_at < $1 THEN $1 ELSE started_at END)) AS BIGINT) AS allocated
        FROM allocations WHERE started_at < $2 AND (ended_at IS NULL OR ended_at > $1)
        GROUP BY project_id, owner, gpu_model";
    let within = |sql| Statement::new("read the ledger", sql).at(from).at(until);
    let rows = read_with(db, "allocations", within(held), |r| {
        Ok(LedgerRow {
            project_id: r.number("project_id")?,
            project_name: r.text("project_name")?,
            owner: r.text("owner")?,
            gpu_model: r.text("gpu_model")?,
            allocated: r.number("allocated")?,
            ..LedgerRow::default()
        })
    })
    .await?;
    let used = "SELECT project_id, owner, gpu_model, CAST(SUM(measured) AS BIGINT) AS measured,
            CAST(SUM(used) AS BIGINT) AS used, CAST(SUM(memory_used) AS BIGINT) AS memory_used,
            CAST(SUM(memory_measured) AS BIGINT) AS memory_measured
        FROM gpu_use WHERE hour >= $1 AND hour < $2 GROUP BY project_id, owner, gpu_model";
    let used = read_with(db, "gpu_use", within(used), |r| {
        Ok(LedgerRow {
            project_id: r.number("project_id")?,
            owner: r.text("owner")?,
            gpu_model: r.text("gpu_model")?,
            measured: r.number("measured")?,
            used: r.number("used")?,
            memory_measured: r.number("memory_measured")?,
            memory_used: r.number("memory_used")?,
            ..LedgerRow::default()
        })
    })
    .await?;
    let key = |row: &LedgerRow| (row.project_id, row.owner.clone(), row.gpu_model.clone());
    let mut rows: BTreeMap<_, _> = rows.into_iter().map(|row| (key(&row), row)).collect();
    for part in used {
        let LedgerRow { project_name, allocated, .. } =
            rows.remove(&key(&part)).unwrap_or_default();
        rows.insert(key(&part), LedgerRow { project_name, allocated, ..part });
    }
    Ok(rows.into_values().collect())
}

/// Reads samples.
pub(crate) async fn samples(
    db: &mut Connection<'_>,
    filter: &SampleFilter,
) -> Result<Vec<SampleRow>> {
    let of = if filter.subject.is_some() { " AND subject = $4" } else { "" };
    let sql = format!(
        "SELECT * FROM samples WHERE step_ms = $1 AND at >= $2 AND at < $3{of} ORDER BY at, subject"
    );
    let mut statement =
        Statement::new("read samples", sql).int(filter.step_ms).at(filter.from).at(filter.until);
    if let Some(subject) = &filter.subject {
        statement = statement.text(subject);
    }
    read_with(db, "samples", statement, |r| {
        Ok(SampleRow {
            subject: r.text("subject")?,
            step_ms: r.number("step_ms")?,
            at: Instant(r.number("at")?),
            values: r.json("body")?,
        })
    })
    .await
}

/// Start of the first and of the last step of this length, among those that begin at `from` or
/// later.
pub(crate) async fn samples_between(
    db: &mut Connection<'_>,
    step_ms: u64,
    from: Instant,
) -> Result<Option<(Instant, Instant)>> {
    let sql =
        "SELECT MIN(at) AS first, MAX(at) AS last FROM samples WHERE step_ms = $1 AND at >= $2";
    let statement = Statement::new("read samples", sql).int(step_ms).at(from);
    let rows = read_with(db, "samples", statement, |r| {
        let (first, last) = (r.maybe_number("first")?, r.maybe_number("last")?);
        Ok(first.zip(last).map(|(first, last)| (Instant(first), Instant(last))))
    });
    Ok(rows.await?.into_iter().next().flatten())
}

/// Reads all credentials.
pub(crate) async fn credentials(db: &mut Connection<'_>) -> Result<Vec<CredentialRow>> {
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

/// Number of audit rows within the times of a filter; its limit and offset are ignored.
pub(crate) async fn audit_count(db: &mut Connection<'_>, filter: &AuditFilter) -> Result<u64> {
    let count = |r: &Reading<'_>| r.number("n");
    let rows = match (filter.from, filter.until) {
        // The database counts all rows without reading each.
        (None, None) => read(db, "audit", "SELECT COUNT(*) AS n FROM audit", count).await?,
        (from, until) => {
            let sql = "SELECT COUNT(*) AS n FROM audit WHERE at >= $1 AND at < $2";
            let (from, until) = (from.unwrap_or(Instant(0)), until.unwrap_or(Instant(u64::MAX)));
            read_with(db, "audit", Statement::new("count", sql).at(from).at(until), count).await?
        }
    };
    Ok(rows.into_iter().next().unwrap_or(0))
}

/// Reads audit rows, the newest first, with their numbers.
pub(crate) async fn audit(
    db: &mut Connection<'_>,
    filter: &AuditFilter,
) -> Result<Vec<(u64, AuditRow)>> {
    let (limit, offset) = (u64::from(filter.limit), u64::from(filter.offset));
    let rows = match (filter.from, filter.until) {
        // The index by time would need all of it sorted again.
        (None, None) => {
            let sql = "SELECT * FROM audit ORDER BY seq DESC LIMIT $1 OFFSET $2";
            Statement::new("read", sql)
        }
        (from, until) => {
            let sql = "SELECT * FROM audit WHERE at >= $1 AND at < $2 \
                ORDER BY seq DESC LIMIT $3 OFFSET $4";
            let (from, until) = (from.unwrap_or(Instant(0)), until.unwrap_or(Instant(u64::MAX)));
            Statement::new("read", sql).at(from).at(until)
        }
    };
    read_with(db, "audit", rows.int(limit).int(offset), |r| {
        let row = AuditRow {
            at: Instant(r.number("at")?),
            who: r.text("who")?,
            what: r.text("what")?,
            target: r.text("target")?,
            result: r.text("result")?,
            detail: r.document("detail")?,
        };
        Ok((r.number("seq")?, row))
    })
    .await
}
