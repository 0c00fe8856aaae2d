//! Workloads that were deleted: how they are kept, and for how long.

use control::Clock as _;
use engine::Exit;
use spec::{UserLimit, WorkloadSpec};
use store::Database;
use store::testing::PgServer;
use view::{Phase, PodState};

use crate::world::{World, nodes, training};

const DAY_MS: u64 = 86_400_000;

/// The deleted workloads that are known, by name, with their phases.
async fn known(w: &World) -> Vec<(String, Phase)> {
    let found = w.handle.deleted(w.clock.now()).await.unwrap();
    let mut all: Vec<_> = found.values().map(|one| (one.spec.name.clone(), one.phase)).collect();
    all.sort();
    all
}

#[tokio::test]
async fn a_workload_is_remembered_as_it_ended_and_after_a_restart() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    for name in ["done", "failed", "runs"] {
        w.submit(1, training(name, 0)).await;
        w.phase(name, Phase::Running).await;
    }
    w.clock.advance_ms(5000);
    w.engine.end(w.engine.run_of("done").key, Exit::Code(0));
    w.engine.end(w.engine.run_of("failed").key, Exit::CannotRun("no image".into()));
    w.becomes("done Completed 0/0\nfailed Failed 0/0\nruns Running 0/0").await;
    for name in ["done", "failed", "runs"] {
        w.delete(name).await;
    }
    w.becomes("").await;
    w.restart().await;
    let as_they_were =
        [("done", Phase::Completed), ("failed", Phase::Failed), ("runs", Phase::Deleting)];
    assert_eq!(known(&w).await, as_they_were.map(|(name, phase)| (name.to_owned(), phase)));
    let all = w.handle.deleted(w.clock.now()).await.unwrap();
    let of = |name: &str| all.values().find(|one| one.spec.name == name).unwrap();
    assert_eq!((of("runs").ran_ms, of("runs").pods[0].state), (5000, PodState::Gone));
    assert!(of("failed").pods[0].last_exit.as_ref().is_some_and(|exit| exit.contains("no image")));
}

#[tokio::test]
async fn it_is_forgotten_after_thirty_days_and_its_number_is_not_given_out_again() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("old", 0)).await;
    w.submit(1, training("last", 0)).await;
    let last = w.get("last").unwrap().seq;
    w.delete("old").await;
    w.delete("last").await;
    w.becomes("").await;
    w.clock.advance_ms(29 * DAY_MS);
    assert_eq!(known(&w).await.len(), 2);
    w.clock.advance_ms(2 * DAY_MS);
    assert_eq!(known(&w).await, []);
    w.until("a sample", |_| w.handle.sample().at == w.clock.now()).await;
    w.restart().await;
    assert_eq!(w.submit(1, training("next", 0)).await.seq, last + 1);
}

#[tokio::test]
async fn of_too_many_those_of_the_project_and_the_user_with_the_most_are_forgotten() {
    let server = PgServer::shared();
    let postgres = match &server {
        Some(server) => Some(Database::Postgres(server.database().await)),
        None => None,
    };
    for database in [Some(Database::Sqlite), postgres].into_iter().flatten() {
        let mut w = World::that_limits(UserLimit::DeletedWorkloads, 4, database).await;
        for (project, user, name) in [
            (2, "ann", "mine"),
            (1, "bob", "other"),
            (1, "ann", "b"),
            (1, "ann", "c"),
            (1, "ann", "d"),
            (1, "ann", "last"),
        ] {
            let submitted_by = user.to_owned();
            w.submit(project, WorkloadSpec { submitted_by, ..training(name, 0) }).await;
            w.phase(name, Phase::Running).await;
            w.clock.advance_ms(1000);
            w.delete(name).await;
            w.becomes("").await;
        }
        let names = async |w: &World| -> Vec<String> {
            known(w).await.into_iter().map(|(name, _)| name).collect()
        };
        w.clock.advance_ms(15_000);
        w.until("a sample", |_| w.handle.sample().at == w.clock.now()).await;
        assert_eq!(names(&w).await, ["d", "last", "mine", "other"]);
        w.restart().await;
        assert_eq!(names(&w).await, ["d", "last", "mine", "other"]);
    }
}
