//! Rows of the ledger, read. Owns: their columns. Does not know what they mean.

use records::{AllocationRow, LagRow, LagUnit, UsageRow};
use units::{Instant, Resources};

use crate::connection::Connection;
use crate::fault::Result;
use crate::reading::read;

/// Reads what projects held, by step of time.
pub(crate) async fn usage(db: &mut Connection<'_>) -> Result<Vec<UsageRow>> {
    let sql = "SELECT * FROM usage ORDER BY step_start, project_id, pool";
    read(db, "usage", sql, |r| {
        Ok(UsageRow {
            step_start: Instant(r.number("step_start")?),
            project_id: Some(r.number("project_id")?).filter(|id| *id > 0),
            pool: r.text("pool")?,
            held: Resources {
                gpu_millis: r.number("gpu_millis")?,
                cpu_millis: r.number("cpu_millis")?,
                memory_bytes: r.number("memory_bytes")?,
            },
        })
    })
    .await
}

/// Reads how far departments and projects are behind their fair shares.
pub(crate) async fn lags(db: &mut Connection<'_>) -> Result<Vec<LagRow>> {
    let sql = "SELECT * FROM lags ORDER BY department_id, project_id, pool";
    read(db, "lags", sql, |r| {
        let unit = match r.number("department_id")? {
            0 => LagUnit::Project(r.number("project_id")?),
            id => LagUnit::Department(id),
        };
        Ok(LagRow {
            unit,
            pool: r.text("pool")?,
            value: r.signed("value")?,
            since: Instant(r.number("since")?),
            fair_millis: r.number("fair_millis")?,
            held_millis: r.number("held_millis")?,
            turn_since: r.maybe_number("turn_since")?.map(Instant),
        })
    })
    .await
}

/// Reads allocations that have not ended.
pub(crate) async fn open_allocations(db: &mut Connection<'_>) -> Result<Vec<AllocationRow>> {
    let sql = "SELECT * FROM allocations WHERE ended_at IS NULL ORDER BY pod_id, started_at";
    read(db, "allocations", sql, |r| {
        Ok(AllocationRow {
            pod_id: r.uuid("pod_id")?,
            started_at: Instant(r.number("started_at")?),
            ended_at: None,
            project_id: r.number("project_id")?,
            project_name: r.text("project_name")?,
            owner: r.text("owner")?,
            gpu_model: r.text("gpu_model")?,
            gpu_millis: r.number("gpu_millis")?,
        })
    })
    .await
}
