//! Every SQL statement that writes, from the storage types. Does not know which database it is
//! for; it keeps to what SQLite and PostgreSQL share.

use spec::WorkloadKind;
use units::Instant;
use uuid::Uuid;

use crate::fault::Result;
use crate::log_groups;
use crate::statement::Statement;
use records::{
    AllocationRow, AuditRow, Change, ClockRow, CredentialRow, DepartmentRow, Desired, EventRow,
    GpuUseRow, LagRow, LagUnit, Log, ObjectRow, PodRow, ProjectRow, SampleRow, UsageRow,
    WorkloadRow, WorkloadState,
};

/// Key of the row of `meta` with the offset of the wall clock.
pub(crate) const CLOCK: &str = "clock";

/// The statements that write these changes: rows of the same table together, as a database may be a
/// network away.
pub(crate) fn statements(changes: &[Change]) -> Result<Vec<Statement<'_>>> {
    let mut changes: Vec<&Change> = changes.iter().collect();
    changes.sort_by_key(|change| turn(change));
    let mut all: Vec<Statement<'_>> = Vec::new();
    for change in changes {
        let next = statement(change)?;
        let alone = match all.last_mut() {
            Some(last) => last.join(next).err(),
            None => Some(next),
        };
        all.extend(alone);
    }
    Ok(all.into_iter().flat_map(Statement::pieces).collect())
}

/// Place of a change in its batch; changes with the same place keep their order: a name may be
/// given up and taken in one batch. Pasts and pods come after their workloads, and logs, which
/// nothing refers to, come last.
const fn turn(change: &Change) -> u8 {
    match change {
        Change::WorkloadPast(..) => 1,
        Change::Pod(_) => 2,
        Change::Event(_) => 3,
        Change::Audit(_) => 4,
        _ => 0,
    }
}

/// The statement that writes a change.
fn statement(change: &Change) -> Result<Statement<'_>> {
    match change {
        Change::Clock(row) => Ok(clock(*row)),
        Change::Department(row) => department(row),
        Change::Project(row) => project(row),
        Change::Workload(row) => workload(row),
        Change::WorkloadSpec(id, spec) => Ok(Statement::new(
            "change what a workload asks for",
            "UPDATE workloads SET name = $2, spec = $3 WHERE id = $1",
        )
        .text(id.to_string())
        .spec(spec)?
        .must_hit()),
        Change::WorkloadState(id, state) => workload_state(*id, state),
        Change::WorkloadPast(id, past) => Ok(Statement::rows(
            "write the past of a workload",
            "UPDATE workloads SET past = now.column2 FROM (VALUES ",
            ") AS now WHERE workloads.id = now.column1",
            1,
        )
        .text(id.to_string())
        .document(past)?
        .must_hit()),
        Change::WorkloadArchived(id, kind, user) => Ok(archived(*id, Some((*kind, user)))),
        Change::WorkloadRestored(id) => Ok(archived(*id, None)),
        Change::Pod(row) => pod(row),
        Change::WorkloadSeqGiven => Ok(workload_seq_given()),
        Change::PodsGone(workload) => Ok(pods_gone(*workload)),
        Change::WorkloadGone(workload) => Ok(workload_gone(*workload)),
        Change::Event(row) => event(row),
        Change::Audit(row) => audit_row(row),
        Change::LogKeptFrom(log, seq) => Ok(log_kept_from(*log, *seq)),
        Change::LogGroupKeptFrom(log, group, seq) => Ok(log_groups::kept_from(*log, group, *seq)),
        Change::LogGroupGone(log, group, from, until) => {
            Ok(log_groups::gone((*log, group), *from, *until))
        }
        Change::LogGone(log) => Ok(log_gone(*log)),
        Change::Credential(row) => Ok(credential(row)),
        Change::CredentialGone(client_id) => Ok(Statement::new(
            "delete a credential",
            "DELETE FROM credentials WHERE client_id = $1",
        )
        .text(client_id)),
        Change::Object(row) => object(row),
        Change::Usage(row) => Ok(usage(row)),
        Change::UsageGone(before) => Ok(usage_gone(*before)),
        Change::Lag(row) => Ok(lag(row)),
        Change::Sample(row) => sample(row),
        Change::Allocation(row) => Ok(allocation(row)),
        Change::AllocationsGone(before) => {
            Ok(Statement::new("delete allocations", "DELETE FROM allocations WHERE ended_at < $1")
                .at(*before))
        }
        Change::GpuUse(row) => Ok(gpu_use(row)),
        Change::GpuUseGone(before) => {
            Ok(Statement::new("delete GPU use", "DELETE FROM gpu_use WHERE hour < $1").at(*before))
        }
        Change::SamplesGone { step_ms, before } => Ok(samples_gone(*step_ms, *before)),
    }
}

fn department(row: &DepartmentRow) -> Result<Statement<'_>> {
    Ok(Statement::new(
        "write a department",
        "INSERT INTO departments (id, name, body, deleted_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, body = excluded.body,
             deleted_at = excluded.deleted_at",
    )
    .int(row.id)
    .text(&row.name)
    .document(&row.body)?
    .maybe_at(row.deleted_at))
}

fn project(row: &ProjectRow) -> Result<Statement<'_>> {
    Ok(Statement::new(
        "write a project",
        "INSERT INTO projects (id, name, body, deleted_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, body = excluded.body,
             deleted_at = excluded.deleted_at",
    )
    .int(row.id)
    .text(&row.name)
    .document(&row.body)?
    .maybe_at(row.deleted_at))
}

fn workload(row: &WorkloadRow) -> Result<Statement<'_>> {
    let statement = Statement::rows(
        "write a workload",
        "INSERT INTO workloads (id, seq, project_id, submitted_by, name, spec, created_at, phase,
             phase_since, desired, restarts, not_before, completed_at, waited_ms, ran_ms, eviction,
             deleted_at)
         VALUES ",
        "",
        0,
    )
    .text(row.id.to_string())
    .int(row.seq)
    .int(row.project_id)
    .text(&row.spec.submitted_by)
    .spec(&row.spec)?
    .at(row.created_at);
    state(statement, &row.state)
}

fn workload_state(id: Uuid, now: &WorkloadState) -> Result<Statement<'_>> {
    // Both databases name the columns of a list of values like this.
    let statement = Statement::rows(
        "change a workload",
        "UPDATE workloads SET phase = now.column2, phase_since = now.column3,
             desired = now.column4, restarts = now.column5, not_before = now.column6,
             completed_at = now.column7, waited_ms = now.column8, ran_ms = now.column9,
             eviction = now.column10, deleted_at = now.column11
         FROM (VALUES ",
        ") AS now WHERE workloads.id = now.column1",
        1,
    );
    Ok(state(statement.text(id.to_string()), now)?.must_hit())
}

/// Marks a workload as archived, with what it is listed by, or as one that is in memory.
fn archived(id: Uuid, listed: Option<(WorkloadKind, &str)>) -> Statement<'_> {
    let statement = Statement::rows(
        "archive a workload",
        "UPDATE workloads SET archived = now.column2, kind = now.column3,
             submitted_by = COALESCE(now.column4, submitted_by)
         FROM (VALUES ",
        ") AS now WHERE workloads.id = now.column1",
        1,
    );
    let (kind, user) = listed.map(|(kind, user)| (kind.name(), user)).unzip();
    let statement = statement.text(id.to_string()).int(u64::from(listed.is_some()));
    statement.maybe_text(kind).maybe_text(user).must_hit()
}

fn state<'a>(statement: Statement<'a>, now: &'a WorkloadState) -> Result<Statement<'a>> {
    let statement = statement
        .text(&now.phase)
        .at(now.phase_since)
        .text(desired_text(now.desired))
        .int(u64::from(now.restarts))
        .maybe_at(now.not_before)
        .maybe_at(now.completed_at)
        .int(now.waited_ms)
        .int(now.ran_ms);
    Ok(statement.maybe_document(now.eviction.as_ref())?.maybe_at(now.deleted_at))
}

fn pod(row: &PodRow) -> Result<Statement<'_>> {
    Statement::rows(
        "write a pod",
        "INSERT INTO pods (id, workload_id, pod_index, generation, body) VALUES ",
        " ON CONFLICT (id) DO UPDATE SET generation = excluded.generation, body = excluded.body",
        1,
    )
    .text(row.id.to_string())
    .text(row.workload_id.to_string())
    .int(u64::from(row.index))
    .int(u64::from(row.generation))
    .document(&row.body)
}

fn event(row: &EventRow) -> Result<Statement<'_>> {
    Statement::rows(
        "write an event",
        "INSERT INTO events (seq, at, kind, warning, project_id, project_name, workload_id,
             workload_name, pod_name, code, message, owner, beneficiary)
         VALUES ",
        "",
        0,
    )
    .int(row.seq)
    .at(row.at)
    .text(&row.kind)
    .int(u64::from(row.warning))
    .maybe_int(row.project_id)
    .text(&row.project_name)
    .maybe_text(row.workload_id.map(|id| id.to_string()))
    .text(&row.workload_name)
    .maybe_text(row.pod_name.as_deref())
    .maybe_text(row.code.as_deref())
    .text(&row.message)
    .text(&row.owner)
    .maybe_document(row.beneficiary.as_ref())
}

fn audit_row(row: &AuditRow) -> Result<Statement<'_>> {
    Statement::rows(
        "write an audit row",
        "INSERT INTO audit (at, who, what, target, result, detail) VALUES ",
        "",
        0,
    )
    .at(row.at)
    .text(&row.who)
    .text(&row.what)
    .text(&row.target)
    .text(&row.result)
    .document(&row.detail)
}

/// Key of the row of `meta` with the first position that a log keeps.
const fn kept_from(log: Log) -> &'static str {
    match log {
        Log::Events => "events_from",
        Log::Audit => "audit_from",
    }
}

fn log_kept_from(log: Log, seq: u64) -> Statement<'static> {
    meta("write from where on a log is kept", kept_from(log), seq.to_string())
}

fn clock(ClockRow { boot, ahead_ms }: ClockRow) -> Statement<'static> {
    meta("write how the state is dated", CLOCK, format!("{boot} {ahead_ms}"))
}

pub(crate) fn meta(what: &'static str, key: &'static str, value: String) -> Statement<'static> {
    Statement::new(
        what,
        "INSERT INTO meta (key, value) VALUES ($1, $2)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    )
    .text(key)
    .text(value)
}

fn log_gone(log: Log) -> Statement<'static> {
    let sql = match log {
        Log::Events => {
            "DELETE FROM events WHERE seq < (SELECT MAX(seq) FROM events)
             AND seq < (SELECT CAST(value AS BIGINT) FROM meta WHERE key = $1)"
        }
        Log::Audit => {
            "DELETE FROM audit WHERE seq < (SELECT MAX(seq) FROM audit)
             AND seq < (SELECT CAST(value AS BIGINT) FROM meta WHERE key = $1)"
        }
    };
    Statement::new("delete rows of a log", sql).text(kept_from(log))
}

fn credential(row: &CredentialRow) -> Statement<'_> {
    Statement::new(
        "write a credential",
        "INSERT INTO credentials (client_id, secret_sha256, subject, created_at)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT (client_id) DO UPDATE SET secret_sha256 = excluded.secret_sha256,
             subject = excluded.subject, created_at = excluded.created_at",
    )
    .text(&row.client_id)
    .text(&row.secret_sha256)
    .text(&row.subject)
    .at(row.created_at)
}

fn object(row: &ObjectRow) -> Result<Statement<'_>> {
    Ok(Statement::new(
        "write an object",
        "INSERT INTO objects (seq, kind, id, scope, owner, name, body, created_at, created_by,
             updated_at, updated_by, deleted_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         ON CONFLICT (seq) DO UPDATE SET name = excluded.name, body = excluded.body,
             updated_at = excluded.updated_at, updated_by = excluded.updated_by,
             deleted_at = excluded.deleted_at",
    )
    .int(row.seq)
    .text(&row.kind)
    .text(&row.id)
    .text(&row.scope)
    .text(&row.owner)
    .text(&row.name)
    .object(&row.body)?
    .at(row.created_at)
    .text(&row.created_by)
    .at(row.updated_at)
    .text(&row.updated_by)
    .maybe_at(row.deleted_at))
}

fn usage(row: &UsageRow) -> Statement<'_> {
    Statement::rows(
        "write usage",
        "INSERT INTO usage (step_start, project_id, pool, gpu_millis, cpu_millis, memory_bytes)
         VALUES ",
        " ON CONFLICT (step_start, project_id, pool) DO UPDATE SET gpu_millis = excluded.gpu_millis,
             cpu_millis = excluded.cpu_millis, memory_bytes = excluded.memory_bytes",
        3,
    )
    .at(row.step_start)
    .int(row.project_id.unwrap_or(0))
    .text(&row.pool)
    .int(row.held.gpu_millis)
    .int(row.held.cpu_millis)
    .int(row.held.memory_bytes)
}

fn usage_gone(before: Instant) -> Statement<'static> {
    Statement::new("delete usage", "DELETE FROM usage WHERE step_start < $1").at(before)
}

fn lag(row: &LagRow) -> Statement<'_> {
    let (department_id, project_id) = match row.unit {
        LagUnit::Department(id) => (id, 0),
        LagUnit::Project(id) => (0, id),
    };
    Statement::rows(
        "write a lag",
        "INSERT INTO lags (department_id, project_id, pool, value, since, fair_millis, held_millis,
             turn_since)
         VALUES ",
        " ON CONFLICT (department_id, project_id, pool) DO UPDATE SET value = excluded.value,
             since = excluded.since, fair_millis = excluded.fair_millis,
             held_millis = excluded.held_millis, turn_since = excluded.turn_since",
        3,
    )
    .int(department_id)
    .int(project_id)
    .text(&row.pool)
    .signed(row.value)
    .at(row.since)
    .int(row.fair_millis)
    .int(row.held_millis)
    .maybe_at(row.turn_since)
}

fn sample(row: &SampleRow) -> Result<Statement<'_>> {
    Statement::rows(
        "write a sample",
        "INSERT INTO samples (subject, step_ms, at, body) VALUES ",
        " ON CONFLICT (subject, step_ms, at) DO UPDATE SET body = excluded.body",
        3,
    )
    .text(&row.subject)
    .int(row.step_ms)
    .at(row.at)
    .json(&row.values)
}

fn samples_gone(step_ms: u64, before: Instant) -> Statement<'static> {
    Statement::new("delete samples", "DELETE FROM samples WHERE step_ms = $1 AND at < $2")
        .int(step_ms)
        .at(before)
}

fn allocation(row: &AllocationRow) -> Statement<'_> {
    Statement::rows(
        "write an allocation",
        "INSERT INTO allocations (pod_id, started_at, ended_at, project_id, project_name, owner,
             gpu_model, gpu_millis)
         VALUES ",
        " ON CONFLICT (pod_id, started_at) DO UPDATE SET ended_at = excluded.ended_at,
             gpu_model = excluded.gpu_model, gpu_millis = excluded.gpu_millis",
        2,
    )
    .text(row.pod_id.to_string())
    .at(row.started_at)
    .maybe_at(row.ended_at)
    .int(row.project_id)
    .text(&row.project_name)
    .text(&row.owner)
    .text(&row.gpu_model)
    .int(row.gpu_millis)
}

fn gpu_use(row: &GpuUseRow) -> Statement<'_> {
    Statement::rows(
        "write GPU use",
        "INSERT INTO gpu_use (hour, project_id, owner, gpu_model, measured, used, memory_measured,
             memory_used) VALUES ",
        " ON CONFLICT (hour, project_id, owner, gpu_model) DO UPDATE SET
             measured = gpu_use.measured + excluded.measured, used = gpu_use.used + excluded.used,
             memory_measured = gpu_use.memory_measured + excluded.memory_measured,
             memory_used = gpu_use.memory_used + excluded.memory_used",
        4,
    )
    .at(row.hour)
    .int(row.project_id)
    .text(&row.owner)
    .text(&row.gpu_model)
    .int(row.measured)
    .int(row.used)
    .int(row.memory_measured)
    .int(row.memory_used)
}

fn desired_text(desired: Desired) -> &'static str {
    match desired {
        Desired::Run => "run",
        Desired::Suspend => "suspend",
        Desired::Delete => "delete",
    }
}

fn pods_gone(workload: Uuid) -> Statement<'static> {
    let delete = "DELETE FROM pods WHERE workload_id IN (SELECT column1 FROM (VALUES ";
    Statement::rows("delete pods", delete, ") AS gone)", 1).text(workload.to_string())
}

fn workload_gone(workload: Uuid) -> Statement<'static> {
    let delete = "DELETE FROM workloads WHERE deleted_at IS NOT NULL AND id IN
        (SELECT column1 FROM (VALUES ";
    Statement::rows("delete workloads", delete, ") AS gone)", 1).text(workload.to_string())
}

/// Key of the row of `meta` with the highest `seq` of a workload that may have gone.
pub(crate) const WORKLOAD_SEQ: &str = "workload_seq";

fn workload_seq_given() -> Statement<'static> {
    let sql = "INSERT INTO meta (key, value)
        SELECT $1, CAST(MAX(seq) AS TEXT) FROM workloads HAVING MAX(seq) IS NOT NULL
        ON CONFLICT (key) DO UPDATE SET value = excluded.value
        WHERE CAST(excluded.value AS BIGINT) > CAST(meta.value AS BIGINT)";
    Statement::new("write the highest number of a workload", sql).text(WORKLOAD_SEQ)
}
