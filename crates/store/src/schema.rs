//! Every schema change ever released. Owns: their numbers, which both databases share, and how
//! they are applied. An entry is never edited once released.

use std::time::{SystemTime, UNIX_EPOCH};

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use uuid::Uuid;

/// Number, name, and the words for either database.
struct Step {
    version: i64,
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! step {
    ($version:literal, $name:literal, $file:literal) => {
        Step {
            version: $version,
            name: $name,
            sqlite: include_str!(concat!("migrations/sqlite/", $file)),
            postgres: include_str!(concat!("migrations/postgres/", $file)),
        }
    };
}

const STEPS: [Step; 17] = [
    step!(1, "first", "0001_first.sql"),
    step!(2, "usage", "0002_usage.sql"),
    step!(3, "objects", "0003_objects.sql"),
    step!(4, "departments", "0004_departments.sql"),
    step!(5, "samples", "0005_samples.sql"),
    step!(6, "pools", "0006_pools.sql"),
    step!(7, "ledger", "0007_ledger.sql"),
    step!(8, "forget", "0008_forget.sql"),
    step!(9, "archived", "0009_archived.sql"),
    step!(10, "archived_orders", "0010_archived_orders.sql"),
    step!(11, "pasts", "0011_pasts.sql"),
    step!(12, "gpu_memory_use", "0012_gpu_memory_use.sql"),
    step!(13, "lags", "0013_lags.sql"),
    step!(14, "deleted_by_project", "0014_deleted_by_project.sql"),
    step!(15, "event_owners", "0015_event_owners.sql"),
    step!(16, "shares_of_users", "0016_shares_of_users.sql"),
    step!(17, "event_beneficiaries", "0017_event_beneficiaries.sql"),
];

/// A table, to read all of its rows.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The version that made it.
    pub(crate) since: i64,
    /// SQL condition for the rows that a backup keeps; empty for all.
    pub(crate) only: &'static str,
    pub(crate) order: &'static str,
}

const fn table(since: i64, name: &'static str, order: &'static str) -> Table {
    Table { name, since, only: "", order }
}

/// Every table; what a row refers to comes before it.
pub(crate) const TABLES: [Table; 17] = [
    // The mark of the last batch means nothing elsewhere.
    Table { only: "WHERE key <> 'last_batch'", ..table(1, "meta", "key") },
    table(1, "projects", "id"),
    table(1, "workloads", "seq"),
    table(1, "pods", "id"),
    table(1, "events", "seq"),
    table(1, "credentials", "client_id"),
    table(1, "audit", "seq"),
    table(2, "usage", "step_start, project_id, gpu_millis, cpu_millis, memory_bytes"),
    table(3, "objects", "seq"),
    table(4, "departments", "id"),
    table(5, "samples", "subject, step_ms, at"),
    table(7, "allocations", "pod_id, started_at"),
    table(7, "gpu_use", "hour, project_id, owner, gpu_model"),
    table(13, "lags", "department_id, project_id, pool"),
    table(15, "events_kept_from", "project_id, owner"),
    table(16, "audit_kept_from", "who"),
    table(10, "archived_counts", "project_id, kind, phase, n"),
];

/// The newest version this program knows.
pub(crate) const NEWEST: i64 = STEPS[STEPS.len() - 1].version;

/// SQL dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// The rows of `meta` of a new database: id of the cluster and time of creation.
pub(crate) fn identity() -> [(&'static str, String); 2] {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    [("cluster_uuid", Uuid::new_v4().to_string()), ("created_at", now.to_string())]
}

/// Applies what is missing, up to `newest`.
pub(crate) async fn migrate<C: Migrate>(
    db: &mut C,
    dialect: Dialect,
    newest: i64,
) -> Result<(), sqlx::Error> {
    let migration = |step: &Step| {
        let sql = match dialect {
            Dialect::Sqlite => step.sqlite,
            Dialect::Postgres => step.postgres,
        };
        let kind = MigrationType::Simple;
        Migration::new(step.version, step.name.into(), kind, sql.into_sql_str(), false)
    };
    let steps = STEPS.iter().filter(|step| step.version <= newest);
    let migrator = Migrator::with_migrations(steps.map(migration).collect());
    migrator.run_direct(None, db, false).await.map_err(|error| match error {
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => cause,
        other => sqlx::Error::Migrate(Box::new(other)),
    })
}
