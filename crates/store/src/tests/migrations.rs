//! Migrations from every released schema to the newest, on both databases.

use sqlx::Connection as _;
use units::Instant;

use super::lab::Lab;
use crate::schema::{self, Dialect};
use records::*;

use crate::*;

/// Rows that each version added.
const RELEASED: [&str; 17] = [
    include_str!("released/0001.sql"),
    include_str!("released/0002.sql"),
    include_str!("released/0003.sql"),
    include_str!("released/0004.sql"),
    include_str!("released/0005.sql"),
    include_str!("released/0006.sql"),
    include_str!("released/0007.sql"),
    include_str!("released/0008.sql"),
    include_str!("released/0009.sql"),
    include_str!("released/0010.sql"),
    include_str!("released/0011.sql"),
    include_str!("released/0012.sql"),
    include_str!("released/0013.sql"),
    include_str!("released/0014.sql"),
    include_str!("released/0015.sql"),
    include_str!("released/0016.sql"),
    include_str!("released/0017.sql"),
];

/// A database as the program of that version left it.
pub(super) async fn left_by(lab: &Lab, version: usize) {
    let newest = i64::try_from(version).unwrap();
    match &lab.database {
        Database::Sqlite => {
            let file = lab.dir.path().join("elastane.db");
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
            let options = options.create_if_missing(true);
            let mut db = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
            schema::migrate(&mut db, Dialect::Sqlite, newest).await.unwrap();
            db.close().await.unwrap();
        }
        Database::Postgres(url) => {
            let mut db = sqlx::PgConnection::connect_with(url.options()).await.unwrap();
            schema::migrate(&mut db, Dialect::Postgres, newest).await.unwrap();
            db.close().await.unwrap();
        }
    }
    for rows in &RELEASED[..version] {
        lab.sql(rows).await.unwrap();
    }
}

async fn comes_up_whole(lab: &Lab, version: usize) {
    left_by(lab, version).await;
    let store = lab.open().await.unwrap();
    let state = store.load().await.unwrap();
    assert_eq!(state.cluster.created_at.0, 1_700_000_000_000, "{version}");
    assert_eq!((state.projects.len(), state.last_project_id), (1, 2), "{version}");
    assert_eq!(state.workloads[0].state.eviction.as_ref().unwrap().code, "E1", "{version}");
    assert_eq!((state.pods[0].generation, state.pods[0].body.started_at_ms), (2, Some(7)));
    let past = state.pasts[&state.workloads[0].id];
    let past = (past.last_start, past.last_eviction, past.stale_since, past.restarts);
    let (at, before) = (|at| Some(Instant(at)), (Some(Instant(6)), None, None, 1));
    assert_eq!(past, if version < 11 { before } else { (at(5), at(4), at(6), 3) }, "{version}");
    assert_eq!(
        state.usage.len(),
        [0, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3][version - 1],
        "{version}"
    );
    let elsewhere = state.usage.iter().filter(|row| !row.pool.is_empty()).count();
    assert_eq!(elsewhere, usize::from(version > 5), "{version}");
    let departments = (state.departments.len(), state.last_department_id);
    assert_eq!(departments, if version < 4 { (0, 0) } else { (1, 2) }, "{version}");
    assert_eq!(state.projects[0].body.department_id, 1, "{version}");
    assert_eq!(state.last_object_seq, if version < 3 { 0 } else { 2 }, "{version}");
    let archived = state.archived.iter().map(|count| (count.submitted_by.as_str(), count.count));
    let archived: Vec<_> = archived.collect();
    assert_eq!(archived, if version < 9 { vec![] } else { vec![("ann", 1)] }, "{version}");
    let all = SampleFilter { until: Instant(u64::MAX), ..SampleFilter::default() };
    let samples = store.samples(&all).await.unwrap();
    assert_eq!(samples.len(), usize::from(version >= 5), "{version}");
    assert_eq!(state.allocations.len(), usize::from(version >= 7), "{version}");
    let ledger = store.ledger(Instant(0), Instant(1_700_000_120_000)).await.unwrap();
    assert_eq!(ledger.len(), if version < 7 { 0 } else { 2 }, "{version}");
    let memory: u64 = ledger.iter().map(|row| row.memory_used).sum();
    assert_eq!(memory, if version < 12 { 0 } else { 10_000 }, "{version}");
    // Version 14 has the number of a workload that is gone.
    let last_seq =
        [1, 1, 1, 1, 1, 1, 1, 1, 900, 900, 900, 900, 900, 990, 990, 990, 990][version - 1];
    assert_eq!(state.last_workload_seq, last_seq, "{version}");
    assert_eq!(state.lags.len(), usize::from(version >= 13), "{version}");
    assert_eq!(store.credentials().await.unwrap()[0].subject, "ann", "{version}");
    assert_eq!(store.audit(9).await.unwrap()[0].detail, AuditDetail::default(), "{version}");
    let events = store.events(&EventFilter::default()).await.unwrap();
    assert_eq!(events.len(), if version < 17 { 2 } else { 3 }, "{version}");
    assert_eq!(events.iter().any(|one| one.beneficiary.is_some()), version >= 17, "{version}");
    store.apply(&[Change::Event(super::samples::event(4, None))]).await.unwrap();
    drop(store);
    // Open it once more, with nothing left to migrate.
    assert_eq!(lab.open().await.unwrap().load().await.unwrap().last_event_seq, 4, "{version}");
}

#[tokio::test]
async fn sqlite_of_every_version_comes_up_whole() {
    assert_eq!(RELEASED.len(), usize::try_from(schema::NEWEST).unwrap(), "a version has no rows");
    for version in 1..=RELEASED.len() {
        comes_up_whole(&Lab::sqlite(), version).await;
    }
}

#[tokio::test]
async fn postgresql_of_every_version_comes_up_whole() {
    for version in 1..=RELEASED.len() {
        let Some(lab) = Lab::postgres().await else { return };
        comes_up_whole(&lab, version).await;
    }
}

/// Table, column, whether it is a number, whether it may be empty; and what is unique.
type Schema = Vec<String>;

async fn schema_of(lab: &Lab) -> Schema {
    drop(lab.open().await.unwrap());
    let columns = match &lab.database {
        Database::Sqlite => {
            "SELECT t.name || '.' || c.name || CASE c.type WHEN 'INTEGER' THEN ' int' ELSE ' text' END
                || CASE WHEN c.\"notnull\" = 1 OR c.pk = 1 THEN '' ELSE ' or null' END
             FROM sqlite_schema t, pragma_table_info(t.name) c
             WHERE t.type = 'table' AND t.name NOT LIKE '\\_sqlx%' ESCAPE '\\'
             UNION ALL
             SELECT 'index ' || name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
        }
        Database::Postgres(_) => {
            "SELECT table_name || '.' || column_name
                || CASE data_type WHEN 'bigint' THEN ' int' ELSE ' ' || data_type END
                || CASE is_nullable WHEN 'NO' THEN '' ELSE ' or null' END
             FROM information_schema.columns
             WHERE table_schema = current_schema() AND table_name <> '_sqlx_migrations'
             UNION ALL
             SELECT 'index ' || indexname FROM pg_indexes WHERE schemaname = current_schema()
                AND indexname NOT LIKE '%\\_pkey' AND indexname NOT LIKE '%\\_key'"
        }
    };
    let mut rows = lab.texts(columns).await;
    rows.sort();
    rows
}

#[tokio::test]
async fn both_databases_have_the_same_schema() {
    let Some(postgres) = Lab::postgres().await else { return };
    let sqlite = schema_of(&Lab::sqlite()).await;
    assert!(sqlite.contains(&"workloads.eviction text or null".to_owned()), "{sqlite:#?}");
    assert_eq!(sqlite, schema_of(&postgres).await);
}
