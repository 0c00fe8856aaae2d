//! The dispatcher over PostgreSQL: the database is restarted under load, or stays away for a while.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::Outage;
use orchestrator::Error;
use store::Database;
use store::testing::PgServer;
use view::Phase;

use crate::world::{World, nodes, project, training};

/// A cluster of four GPUs with its state in a PostgreSQL server of its own.
async fn world(patience: Duration) -> Option<(Arc<PgServer>, World)> {
    let server = PgServer::own()?;
    let url = server.database().await.with_patience(patience);
    let policy = sched::Policy::default();
    let world = World::on(Database::Postgres(url), nodes(2, 2), &[4], policy).await;
    Some((Arc::new(server), world))
}

async fn on(server: &Arc<PgServer>, act: impl FnOnce(&PgServer) + Send + 'static) {
    let server = server.clone();
    tokio::task::spawn_blocking(move || act(&server)).await.unwrap();
}

/// How often each name is there.
fn names(w: &World) -> BTreeMap<String, usize> {
    let view = w.handle.view();
    view.workloads.values().fold(BTreeMap::new(), |mut names, workload| {
        *names.entry(workload.spec.name.clone()).or_default() += 1;
        names
    })
}

#[tokio::test]
async fn a_restart_of_the_database_in_the_middle_of_load_is_only_a_wait() {
    let Some((server, mut w)) = world(Duration::from_secs(120)).await else { return };
    w.submit(1, training("first", 1)).await;
    w.phase("first", Phase::Running).await;
    w.engine.calls();
    let askers: Vec<_> = (0..4)
        .map(|asker| {
            let handle = w.handle.clone();
            tokio::spawn(async move {
                for count in 0..25 {
                    // As large as the cluster: they wait, and what runs is left alone.
                    handle
                        .submit(1, training(&format!("w{asker}-{count}"), 4), false)
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for _ in 0..3 {
        on(&server, PgServer::down).await;
        on(&server, PgServer::up).await;
    }
    for asker in askers {
        asker.await.unwrap();
    }
    assert_eq!(names(&w).len(), 101);
    assert_eq!(w.engine.calls(), [""; 0], "what runs is left alone");
    w.restart().await;
    let names = names(&w);
    assert_eq!((names.len(), names.values().sum::<usize>()), (101, 101));
    assert_eq!(w.engine.alive(), [("first".to_owned(), 1)]);
}

#[tokio::test]
async fn a_database_that_stays_away_is_told_and_workloads_run_on() {
    let Some((server, mut w)) = world(Duration::ZERO).await else { return };
    w.submit(1, training("first", 1)).await;
    w.phase("first", Phase::Running).await;
    w.engine.calls();
    on(&server, PgServer::down).await;
    for _ in 0..3 {
        let error = w.handle.submit(1, training("second", 1), false).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert!(error.to_string().contains("cannot be reached"), "{error}");
        assert_eq!(w.handle.view().workloads.len(), 1, "reading goes on");
    }
    assert_eq!(w.engine.alive(), [("first".to_owned(), 1)]);
    // It ends while the database is away.
    w.engine.end(w.engine.run_of("first").key, engine::Exit::Code(0));
    on(&server, PgServer::up).await;
    w.phase("first", Phase::Completed).await;
    w.handle.create_project("admin", 1, project("team-b", 1)).await.unwrap();
    w.submit(1, training("second", 1)).await;
    w.phase("second", Phase::Running).await;
    w.restart().await;
    w.becomes("first Completed 0/1\nsecond Running 1/1").await;
}

#[tokio::test]
async fn a_full_disk_of_the_database_is_an_outage_until_something_is_written() {
    let Some(server) = PgServer::own() else { return };
    server.run("postgres", "CREATE DATABASE narrow").await;
    let url = server.url("narrow").with_patience(Duration::ZERO);
    let policy = sched::Policy::default();
    let w = World::on(Database::Postgres(url), nodes(2, 2), &[4], policy).await;
    w.submit(1, training("first", 1)).await;
    w.phase("first", Phase::Running).await;
    assert_eq!(w.handle.outage(), None);
    let full = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER full_disk BEFORE INSERT ON events EXECUTE FUNCTION full_disk()";
    server.run("narrow", full).await;
    let error = w.handle.submit(1, training("second", 1), false).await.unwrap_err();
    assert!(error.to_string().contains("is full"), "{error}");
    let outage = w.handle.outage().expect("an outage");
    assert!(
        matches!(&outage, Outage::DatabaseFull { database, .. } if database.contains("narrow"))
    );
    // It is the same one until it is over.
    assert!(w.handle.submit(1, training("second", 1), false).await.is_err());
    assert_eq!(w.handle.outage().as_ref(), Some(&outage));
    assert_eq!(w.engine.alive(), [("first".to_owned(), 1)]);
    server.run("narrow", "DROP TRIGGER full_disk ON events").await;
    w.submit(1, training("second", 1)).await;
    assert_eq!(w.handle.outage(), None);
    w.phase("second", Phase::Running).await;
}
