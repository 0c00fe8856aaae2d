//! Migrations that are killed. Another process of this test migrates and kills itself after so many
//! steps of SQLite's machine: in the middle of a statement, between two, and between two
//! migrations.

use std::path::{Path, PathBuf};
use std::process::Command;

use sqlx::Connection as _;

use super::lab::Lab;
use super::migrations::left_by;
use crate::schema::{self, Dialect};

/// Names the database, and after how many looks the process ends.
const FILE: &str = "ELASTANE_TEST_CUT_OFF";
/// Instructions of SQLite's machine between two looks.
const STEP: i32 = 80;

/// The process that is killed. It does nothing in an ordinary run.
#[tokio::test]
async fn migrates_until_it_is_killed() {
    let Ok(told) = std::env::var(FILE) else { return };
    let (file, mut looks) =
        told.rsplit_once(' ').map(|(f, n)| (f, n.parse::<u64>().unwrap())).unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
    let mut db = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    db.lock_handle().await.unwrap().set_progress_handler(STEP, move || {
        if looks == 0 {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
                .unwrap();
        }
        looks -= 1;
        true
    });
    schema::migrate(&mut db, Dialect::Sqlite, schema::NEWEST).await.unwrap();
    db.close().await.unwrap();
}

/// Migrates a copy; whether the process lived.
fn migrated(file: &Path, looks: u64) -> bool {
    let test = std::env::current_exe().unwrap();
    let name = "tests::cut_off::migrates_until_it_is_killed";
    let mut child = Command::new(test);
    child.args(["--exact", name]).env(FILE, format!("{} {looks}", file.display()));
    child.output().unwrap().status.success()
}

/// Copies a database with what its log has.
fn copied(from: &Path, to: &Path) -> PathBuf {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let with = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        if with(from).exists() {
            std::fs::copy(with(from), with(to)).unwrap();
        }
    }
    to.to_owned()
}

#[tokio::test]
async fn a_migration_that_is_killed_anywhere_is_finished_by_the_next_start() {
    let lab = Lab::sqlite();
    left_by(&lab, 1).await;
    let whole = lab.dir.path().join("elastane.db");
    let (mut kills, mut versions) = (0, std::collections::BTreeSet::new());
    for looks in 0.. {
        let there = Lab::sqlite();
        let file = copied(&whole, &there.dir.path().join("elastane.db"));
        if migrated(&file, looks) {
            break;
        }
        kills += 1;
        versions
            .extend(there.texts("SELECT CAST(MAX(version) AS TEXT) FROM _sqlx_migrations").await);
        let state = there.open().await.unwrap().load().await.unwrap();
        let found = (state.projects.len(), state.workloads.len(), state.pods.len());
        assert_eq!(found, (1, 1, 1), "{looks}");
        assert_eq!(state.pods[0].body.started_at_ms, Some(7), "{looks}");
    }
    // Each of the migrations was killed at least once.
    let each = (1..schema::NEWEST).all(|version| versions.contains(&version.to_string()));
    assert!(each && kills > 20, "{kills} kills: {versions:?}");
}
