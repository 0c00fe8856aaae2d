//! PostgreSQL as it fails: restarted, cut off, taken by another, not ours at all.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use units::Instant;

use super::lab::Lab;
use super::samples::{event, project};
use crate::testing::PgServer;
use records::*;

use crate::*;

fn audit(what: &str) -> Change {
    Change::Audit(AuditRow {
        at: Instant(1),
        who: "ann".to_owned(),
        what: what.to_owned(),
        target: "x".to_owned(),
        result: "ok".to_owned(),
        detail: AuditDetail::default(),
    })
}

async fn audited(store: &Store) -> Vec<String> {
    store.audit(1000).await.unwrap().into_iter().rev().map(|row| row.what).collect()
}

/// Ends every session of the database except its own.
const END_SESSIONS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()";

#[tokio::test]
async fn a_server_that_comes_and_goes_loses_nothing_and_doubles_nothing() {
    let Some(server) = PgServer::own() else { return };
    let dir = tempfile::tempdir().unwrap();
    // Longer than the server takes to come back on a machine that has much to do.
    let patient = server.database().await.with_patience(Duration::from_secs(120));
    let database = Database::Postgres(patient);
    let store = Store::open_in(dir.path(), &database).await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let load = tokio::spawn({
        let (store, done) = (store.clone(), done.clone());
        async move {
            let mut seq = 0;
            while !done.load(Ordering::Relaxed) {
                seq += 1;
                // The audit row has no key that would refuse a second one.
                let batch = [Change::Event(event(seq, None)), audit(&seq.to_string())];
                store.apply(&batch).await.unwrap();
            }
            seq
        }
    });
    let server = Arc::new(server);
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let server = server.clone();
        tokio::task::spawn_blocking(move || {
            server.down();
            server.up();
        })
        .await
        .unwrap();
    }
    done.store(true, Ordering::Relaxed);
    let written = load.await.unwrap();
    assert!(written > 4, "{written}");
    let expected: Vec<_> = (1..=written).collect();
    let events = store.events(&EventFilter::default()).await.unwrap();
    assert_eq!(events.iter().map(|row| row.seq).collect::<Vec<_>>(), expected);
    let rows = store.audit(u32::MAX).await.unwrap().into_iter().rev();
    let rows: Vec<u64> = rows.map(|row| row.what.parse().unwrap()).collect();
    assert_eq!(rows, expected);
}

#[tokio::test]
async fn an_ended_session_is_replaced() {
    let Some(lab) = Lab::postgres().await else { return };
    let store = lab.open().await.unwrap();
    for round in 0..3 {
        lab.sql(END_SESSIONS).await.unwrap();
        store.apply(&[audit(&round.to_string())]).await.unwrap();
        lab.sql(END_SESSIONS).await.unwrap();
        store.load().await.unwrap();
    }
    assert_eq!(audited(&store).await, ["0", "1", "2"]);
}

/// A proxy between the store and the server. Once `cut` is set, it closes the connection at the
/// next COMMIT, before or after the server got it.
struct FaultyProxy {
    dir: tempfile::TempDir,
    cut: Arc<AtomicBool>,
}

#[derive(Clone, Copy)]
enum Cut {
    Before,
    After,
}

impl FaultyProxy {
    fn new(server: PathBuf, kind: Cut) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join(".s.PGSQL.5432")).unwrap();
        let cut = Arc::new(AtomicBool::new(false));
        tokio::spawn({
            let cut = cut.clone();
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let server = UnixStream::connect(&server).await.unwrap();
                    tokio::spawn(carry(client, server, cut.clone(), kind));
                }
            }
        });
        Self { dir, cut }
    }
}

async fn carry(client: UnixStream, server: UnixStream, cut: Arc<AtomicBool>, kind: Cut) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let answers = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
    });
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
        let commits = bytes[..count].windows(6).any(|word| word == b"COMMIT");
        let cut = commits && cut.swap(false, Ordering::Relaxed);
        if cut {
            answers.abort();
        }
        if !cut || matches!(kind, Cut::After) {
            to_server.write_all(&bytes[..count]).await.unwrap();
        }
        if cut {
            // Time for the server to commit; if it is too short, the test tests less.
            tokio::time::sleep(Duration::from_millis(100)).await;
            return;
        }
    }
}

async fn one_batch_over_a_line_that_is_cut(kind: Cut) {
    let Some(server) = PgServer::shared() else { return };
    let direct = server.database().await;
    let socket = Path::new(&server.dir()).join(".s.PGSQL.5432");
    let line = FaultyProxy::new(socket, kind);
    let name = direct.options().get_database().unwrap().to_owned();
    let url = format!("postgres:///{name}?host={}&user=elastane", line.dir.path().display());
    let dir = tempfile::tempdir().unwrap();
    let database = Database::Postgres(url.parse().unwrap());
    let store = Store::open_in(dir.path(), &database).await.unwrap();
    store.apply(&[audit("before")]).await.unwrap();
    line.cut.store(true, Ordering::Relaxed);
    store.apply(&[Change::Project(project(1, "team-a")), audit("cut")]).await.unwrap();
    assert!(!line.cut.load(Ordering::Relaxed), "it was not cut");
    store.apply(&[audit("after")]).await.unwrap();
    assert_eq!(audited(&store).await, ["before", "cut", "after"]);
    assert_eq!(store.load().await.unwrap().projects.len(), 1);
}

#[tokio::test]
async fn a_commit_without_an_answer_counts_once() {
    one_batch_over_a_line_that_is_cut(Cut::After).await;
}

#[tokio::test]
async fn a_commit_that_did_not_arrive_is_made_up_for() {
    one_batch_over_a_line_that_is_cut(Cut::Before).await;
}

#[tokio::test]
async fn one_server_owns_a_database() {
    let Some(lab) = Lab::postgres().await else { return };
    let store = lab.open().await.unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let error = Store::open_in(elsewhere.path(), &lab.database).await.unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    store.load().await.unwrap();
}

#[tokio::test]
async fn who_was_overtaken_reads_again_before_writing() {
    let Some(lab) = Lab::postgres().await else { return };
    let store = lab.open().await.unwrap();
    lab.sql(END_SESSIONS).await.unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let other = Store::open_in(elsewhere.path(), &lab.database).await.unwrap();
    other.apply(&[audit("other")]).await.unwrap();
    drop(other);
    let error = store.apply(&[audit("stale")]).await.unwrap_err();
    assert!(matches!(error, Error::Overtaken { .. }), "{error}");
    store.load().await.unwrap();
    store.apply(&[audit("fresh")]).await.unwrap();
    assert_eq!(audited(&store).await, ["other", "fresh"]);
}

#[tokio::test]
async fn other_databases_are_refused() {
    let Some(lab) = Lab::postgres().await else { return };
    lab.sql("CREATE TABLE meta (x INT)").await.unwrap();
    let error = lab.open().await.unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    let server = PgServer::shared().unwrap();
    server.run("postgres", "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'").await;
    let latin = Lab { database: Database::Postgres(server.url("latin")), ..lab };
    let error = latin.open().await.unwrap_err();
    assert!(error.to_string().contains("LATIN1"), "{error}");
    let missing = Lab { database: Database::Postgres(server.url("missing")), ..latin };
    let error = missing.open().await.unwrap_err();
    assert!(matches!(error, Error::Database { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_without_the_password() {
    let nowhere = tempfile::tempdir().unwrap();
    let url = format!("postgres://ann:hush@/x?host={}", nowhere.path().display());
    let url = url.replace("ann:hush@/", "ann:hush@localhost/");
    let database = Database::Postgres(url.parse().unwrap());
    let error = Store::open_in(nowhere.path(), &database).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let texts = format!("{error} {error:?} {database:?}");
    assert!(!texts.contains("hush"), "{texts}");
}

#[tokio::test]
async fn a_database_that_can_only_be_read_says_so_and_passes() {
    let Some(lab) = Lab::postgres().await else { return };
    let store = lab.open().await.unwrap();
    lab.sql(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',
            current_database()); END $$",
    )
    .await
    .unwrap();
    lab.sql(END_SESSIONS).await.unwrap();
    let error = store.apply(&[audit("refused")]).await.unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error}");
    lab.sql(
        "BEGIN READ WRITE;
         DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET ALL', current_database()); END $$;
         COMMIT",
    )
    .await
    .unwrap();
    lab.sql(END_SESSIONS).await.unwrap();
    store.apply(&[audit("written")]).await.unwrap();
    assert_eq!(audited(&store).await, ["written"]);
}
