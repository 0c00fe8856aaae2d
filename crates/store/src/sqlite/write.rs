//! Every SQL statement that writes, from the storage types. Keeps to what SQLite and PostgreSQL
//! share, placeholders apart.

use serde::Serialize;
use sqlx::SqliteConnection;
use units::Instant;
use uuid::Uuid;

use super::fault::{Fault, Result};
use crate::{
    AuditRow, Change, CredentialRow, Desired, EventRow, ObjectRow, PodRow, ProjectRow, UsageRow,
    WorkloadRow, WorkloadState,
};

/// Integers are signed 64 bit in both databases; what is larger is as good as endless.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn at(instant: Option<Instant>) -> Option<i64> {
    instant.map(|at| int(at.0))
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Fault::Value { row: "new row".to_owned(), value: error.to_string() })
}

/// Writes one change.
pub(super) async fn write(db: &mut SqliteConnection, change: &Change) -> Result<()> {
    match change {
        Change::Project(row) => project(db, row).await,
        Change::Workload(row) => workload(db, row).await,
        Change::WorkloadState(id, state) => workload_state(db, *id, state).await,
        Change::Pod(row) => pod(db, row).await,
        Change::Event(row) => event(db, row).await,
        Change::Audit(row) => audit_row(db, row).await,
        Change::Credential(row) => credential(db, row).await,
        Change::CredentialGone(client_id) => {
            sqlx::query("DELETE FROM credentials WHERE client_id = ?")
                .bind(client_id)
                .execute(db)
                .await
                .map(drop)
                .map_err(Fault::during("delete a credential"))
        }
        Change::Object(row) => object(db, row).await,
        Change::Usage(row) => usage(db, row).await,
        Change::UsageGone(before) => sqlx::query("DELETE FROM usage WHERE step_start < ?")
            .bind(int(before.0))
            .execute(db)
            .await
            .map(drop)
            .map_err(Fault::during("delete usage")),
    }
}

async fn project(db: &mut SqliteConnection, row: &ProjectRow) -> Result<()> {
    sqlx::query(
        "INSERT INTO projects (id, name, body, deleted_at) VALUES (?, ?, ?, ?)
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, body = excluded.body,
             deleted_at = excluded.deleted_at",
    )
    .bind(int(row.id))
    .bind(&row.name)
    .bind(json(&row.body)?)
    .bind(at(row.deleted_at))
    .execute(db)
    .await
    .map(drop)
    .map_err(Fault::during("write a project"))
}

async fn workload(db: &mut SqliteConnection, row: &WorkloadRow) -> Result<()> {
    let state = &row.state;
    sqlx::query(
        "INSERT INTO workloads (id, seq, project_id, name, spec, created_at, phase, phase_since,
             desired, restarts, not_before, completed_at, waited_ms, ran_ms, eviction, deleted_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(row.id.to_string())
    .bind(int(row.seq))
    .bind(int(row.project_id))
    .bind(&row.spec.name)
    .bind(json(&row.spec)?)
    .bind(int(row.created_at.0))
    .bind(&state.phase)
    .bind(int(state.phase_since.0))
    .bind(desired_text(state.desired))
    .bind(i64::from(state.restarts))
    .bind(at(state.not_before))
    .bind(at(state.completed_at))
    .bind(int(state.waited_ms))
    .bind(int(state.ran_ms))
    .bind(state.eviction.as_ref().map(json).transpose()?)
    .bind(at(state.deleted_at))
    .execute(db)
    .await
    .map(drop)
    .map_err(Fault::during("write a workload"))
}

async fn workload_state(db: &mut SqliteConnection, id: Uuid, state: &WorkloadState) -> Result<()> {
    let done = sqlx::query(
        "UPDATE workloads SET phase = ?, phase_since = ?, desired = ?, restarts = ?,
             not_before = ?, completed_at = ?, waited_ms = ?, ran_ms = ?, eviction = ?,
             deleted_at = ?
         WHERE id = ?",
    )
    .bind(&state.phase)
    .bind(int(state.phase_since.0))
    .bind(desired_text(state.desired))
    .bind(i64::from(state.restarts))
    .bind(at(state.not_before))
    .bind(at(state.completed_at))
    .bind(int(state.waited_ms))
    .bind(int(state.ran_ms))
    .bind(state.eviction.as_ref().map(json).transpose()?)
    .bind(at(state.deleted_at))
    .bind(id.to_string())
    .execute(db)
    .await
    .map_err(Fault::during("change a workload"))?;
    match done.rows_affected() {
        1 => Ok(()),
        _ => Err(Fault::Sql("change a workload", sqlx::Error::RowNotFound)),
    }
}

async fn pod(db: &mut SqliteConnection, row: &PodRow) -> Result<()> {
    sqlx::query(
        "INSERT INTO pods (id, workload_id, pod_index, generation, body) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (id) DO UPDATE SET generation = excluded.generation, body = excluded.body",
    )
    .bind(row.id.to_string())
    .bind(row.workload_id.to_string())
    .bind(i64::from(row.index))
    .bind(i64::from(row.generation))
    .bind(json(&row.body)?)
    .execute(db)
    .await
    .map(drop)
    .map_err(Fault::during("write a pod"))
}

async fn event(db: &mut SqliteConnection, row: &EventRow) -> Result<()> {
    sqlx::query(
        "INSERT INTO events (seq, at, kind, warning, project_id, project_name, workload_id,
             workload_name, pod_name, code, message)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(int(row.seq))
    .bind(int(row.at.0))
    .bind(&row.kind)
    .bind(i64::from(row.warning))
    .bind(row.project_id.map(int))
    .bind(&row.project_name)
    .bind(row.workload_id.map(|id| id.to_string()))
    .bind(&row.workload_name)
    .bind(&row.pod_name)
    .bind(&row.code)
    .bind(&row.message)
    .execute(db)
    .await
    .map(drop)
    .map_err(Fault::during("write an event"))
}

async fn audit_row(db: &mut SqliteConnection, row: &AuditRow) -> Result<()> {
    sqlx::query(
        "INSERT INTO audit (at, who, what, target, result, detail) VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(int(row.at.0))
    .bind(&row.who)
    .bind(&row.what)
    .bind(&row.target)
    .bind(&row.result)
    .bind(json(&row.detail)?)
    .execute(db)
    .await
    .map(drop)
    .map_err(Fault::during("write an audit row"))
}

async fn credential(db: &mut SqliteConnection, row: &CredentialRow) -> Result<()> {
    sqlx::query(
        "INSERT INTO credentials (client_id, secret_sha256, subject, created_at)
         VALUES (?, ?, ?, ?)
         ON CONFLICT (client_id) DO UPDATE SET secret_sha256 = excluded.secret_sha256,
             subject = excluded.subject, created_at = excluded.created_at",
    )
    .bind(&row.client_id)
    .bind(&row.secret_sha256)
    .bind(&row.subject)
    .bind(int(row.created_at.0))
    .execute(db)
    .await
    .map(drop)
    .map_err(Fault::during("write a credential"))
}

async fn object(db: &mut SqliteConnection, row: &ObjectRow) -> Result<()> {
    sqlx::query(
        "INSERT INTO objects (seq, kind, id, scope, owner, name, body, created_at, created_by,
             updated_at, updated_by, deleted_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (seq) DO UPDATE SET name = excluded.name, body = excluded.body,
             updated_at = excluded.updated_at, updated_by = excluded.updated_by,
             deleted_at = excluded.deleted_at",
    )
    .bind(int(row.seq))
    .bind(&row.kind)
    .bind(&row.id)
    .bind(&row.scope)
    .bind(&row.owner)
    .bind(&row.name)
    .bind(json(&row.body)?)
    .bind(int(row.created_at.0))
    .bind(&row.created_by)
    .bind(int(row.updated_at.0))
    .bind(&row.updated_by)
    .bind(at(row.deleted_at))
    .execute(db)
    .await
    .map(drop)
    .map_err(Fault::during("write an object"))
}

async fn usage(db: &mut SqliteConnection, row: &UsageRow) -> Result<()> {
    sqlx::query(
        "INSERT INTO usage (step_start, project_id, gpu_millis, cpu_millis, memory_bytes)
         VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (step_start, project_id) DO UPDATE SET gpu_millis = excluded.gpu_millis,
             cpu_millis = excluded.cpu_millis, memory_bytes = excluded.memory_bytes",
    )
    .bind(int(row.step_start.0))
    .bind(int(row.project_id.unwrap_or(0)))
    .bind(int(row.held.gpu_millis))
    .bind(int(row.held.cpu_millis))
    .bind(int(row.held.memory_bytes))
    .execute(db)
    .await
    .map(drop)
    .map_err(Fault::during("write usage"))
}

fn desired_text(desired: Desired) -> &'static str {
    match desired {
        Desired::Run => "run",
        Desired::Suspend => "suspend",
        Desired::Delete => "delete",
    }
}
