//! Ended workloads that left memory: commands about them, a restart, and their remaining memory.

use std::sync::Arc;

use engine::Exit;
use orchestrator::{Error, WorkloadChange};
use records::ArchivedFilter;
use spec::{UserLimit, WorkloadSpec};
use store::Database;
use store::testing::PgServer;
use uuid::Uuid;
use view::{Phase, WorkloadView};

use crate::world::{World, training};

impl World {
    /// A training that ran and ended, one second after the one before.
    async fn ended(&self, name: &str, exit: Exit) -> Uuid {
        let id = self.submit(1, training(name, 1)).await.id;
        self.until("it runs", |view| {
            view.workloads.get(&id).is_some_and(|one| one.phase == Phase::Running)
        })
        .await;
        self.clock.advance_ms(1000);
        self.engine.end(self.engine.run_of(name).key, exit);
        let over = |one: &Arc<WorkloadView>| one.completed_at.is_some();
        self.until("it ended", |view| view.workloads.get(&id).is_none_or(over)).await;
        id
    }

    /// Ended trainings by these names, the oldest first.
    async fn all_ended(&self, names: &[&str]) -> Vec<Uuid> {
        let mut ids = Vec::new();
        for name in names {
            ids.push(self.ended(name, Exit::Code(0)).await);
        }
        ids
    }

    /// The names of the workloads in memory, and how many are archived.
    fn here(&self) -> (String, u64) {
        let view = self.handle.view();
        let mut names: Vec<_> = view.workloads.values().map(|one| one.spec.name.as_str()).collect();
        names.sort_unstable();
        (names.join(" "), view.archived_count())
    }

    async fn archived_one(&self, id: Uuid) -> Arc<WorkloadView> {
        assert!(!self.handle.view().workloads.contains_key(&id), "it is in memory");
        self.handle.find_workload(id).await.unwrap().expect("it is archived")
    }
}

fn refused<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    answer.unwrap_err().to_string()
}

#[tokio::test]
async fn the_newest_ended_ones_stay_and_the_others_are_as_they_were() {
    let mut w = World::that_keeps(2, Database::Sqlite).await;
    let first = w.ended("a", Exit::CannotRun("no image".into())).await;
    let as_it_was = w.get("a").unwrap();
    w.all_ended(&["b", "c", "d"]).await;
    assert_eq!(w.here(), ("c d".to_owned(), 2));
    assert_eq!(*w.archived_one(first).await, *as_it_was);
    w.restart().await;
    assert_eq!(w.here(), ("c d".to_owned(), 2));
    assert_eq!(*w.archived_one(first).await, *as_it_was);
}

#[tokio::test]
async fn what_runs_waits_or_is_suspended_stays_however_old_it_is() {
    let w = World::that_keeps(0, Database::Sqlite).await;
    for (name, gpus) in [("runs", 1), ("waits", 99), ("suspended", 1)] {
        w.submit(1, training(name, gpus)).await;
    }
    w.handle.suspend("alice", w.id("suspended")).await.unwrap();
    w.all_ended(&["a", "b"]).await;
    assert_eq!(w.here(), ("runs suspended waits".to_owned(), 2));
}

#[tokio::test]
async fn one_that_is_deleted_after_its_end_stays_until_then() {
    let w = World::that_keeps(0, Database::Sqlite).await;
    let soon = spec::WorkloadSpec { delete_after_ms: Some(60_000), ..training("soon", 0) };
    w.submit(1, soon).await;
    w.phase("soon", Phase::Running).await;
    w.engine.end(w.engine.run_of("soon").key, Exit::Code(0));
    w.phase("soon", Phase::Completed).await;
    assert_eq!(w.here(), ("soon".to_owned(), 0));
    w.clock.advance_ms(60_000);
    w.becomes("").await;
}

#[tokio::test]
async fn its_name_stays_taken_until_it_is_deleted_and_a_deletion_leaves_nothing() {
    let mut w = World::that_keeps(0, Database::Sqlite).await;
    let id = w.ended("a", Exit::Code(0)).await;
    for _ in 0..2 {
        let text = refused(w.handle.submit(1, training("a", 1), false).await);
        assert!(text.contains("`a` already exists in project `team-a`"), "{text}");
        assert_eq!(w.here(), (String::new(), 1));
        w.restart().await;
    }
    w.submit(2, training("a", 0)).await;
    w.engine.calls();
    let gone = w.handle.delete_workload("alice", id).await.unwrap();
    assert_eq!((gone.phase, gone.deleted_at.is_some()), (Phase::Completed, true));
    assert_eq!(w.here(), ("a".to_owned(), 0));
    // Its files are removed before the engine gets the start of the next workload.
    w.submit(1, training("a", 0)).await;
    w.until("it runs", |view| view.workloads.values().all(|one| one.phase == Phase::Running)).await;
    assert!(w.engine.calls().iter().any(|call| call.starts_with("forget")));
    assert_eq!(w.handle.find_workload(id).await.unwrap(), None);
}

#[tokio::test]
async fn a_command_about_one_is_answered_as_if_it_were_in_memory() {
    let w = World::that_keeps(0, Database::Sqlite).await;
    let id = w.ended("a", Exit::Code(0)).await;
    for text in
        [refused(w.handle.resume("alice", id).await), refused(w.handle.suspend("alice", id).await)]
    {
        assert!(text.contains("has ended") && text.contains("submit it again"), "{text}");
    }
    let labels = [("team".to_owned(), Some("x".to_owned()))].into();
    let change = WorkloadChange { labels, ..WorkloadChange::default() };
    let changed = w.handle.update_workload("alice", id, change).await.unwrap();
    assert_eq!(changed.spec.labels["team"], "x");
    assert_eq!(w.archived_one(id).await.spec.labels["team"], "x");
    assert_eq!(w.here(), (String::new(), 1));
    let unknown = refused(w.handle.resume("alice", Uuid::nil()).await);
    assert!(unknown.contains("no workload"), "{unknown}");
}

#[tokio::test]
async fn two_deletions_at_once_are_one_deletion() {
    let w = World::that_keeps(0, Database::Sqlite).await;
    let ids = w.all_ended(&["a", "b"]).await;
    let both = ids.iter().flat_map(|id| [w.handle.clone(), w.handle.clone()].map(|by| (by, *id)));
    let asked = both.map(|(by, id)| async move { by.delete_workload("alice", id).await.is_ok() });
    let done = futures_util::future::join_all(asked).await;
    assert_eq!(done.chunks(2).filter(|both| both.contains(&true)).count(), 2, "{done:?}");
    assert_eq!(w.here(), (String::new(), 0));
}

#[tokio::test]
async fn its_output_is_there_also_after_a_restart() {
    let mut w = World::that_keeps(0, Database::Sqlite).await;
    let id = w.ended("a", Exit::Code(0)).await;
    w.restart().await;
    // Requests to the engine at a start of the server come before this.
    w.submit(1, training("next", 0)).await;
    w.phase("next", Phase::Running).await;
    let log = w.handle.logs(id, None, Default::default()).await.unwrap();
    assert_eq!(log.run.generation, 1);
}

#[tokio::test]
async fn a_project_with_archived_workloads_is_not_deleted() {
    let w = World::that_keeps(0, Database::Sqlite).await;
    let id = w.ended("a", Exit::Code(0)).await;
    let text = refused(w.handle.delete_project("admin", 1).await);
    assert!(text.contains("still has 1 ended workload, to be deleted first"), "{text}");
    w.submit(1, training("b", 99)).await;
    let text = refused(w.handle.delete_project("admin", 1).await);
    assert!(text.contains("still has 2 workloads (b)"), "{text}");
    w.delete("b").await;
    w.handle.delete_workload("alice", id).await.unwrap();
    w.handle.delete_project("admin", 1).await.unwrap();
}

#[tokio::test]
async fn ten_thousand_of_them_are_no_part_of_a_start() {
    let mut w = World::that_keeps(10, Database::Sqlite).await;
    w.ended("a", Exit::Code(0)).await;
    w.crash().await;
    let store = store::Store::open(w.dir.path()).await.unwrap();
    let row = store.load().await.unwrap().workloads.pop().unwrap();
    let mut changes = Vec::new();
    for number in 1..=10_000 {
        let (id, seq) = (Uuid::from_u128(number.into()), row.seq + number);
        let mut one = records::WorkloadRow { id, seq, ..row.clone() };
        Arc::make_mut(&mut one.spec).name = format!("x{number}");
        changes.push(records::Change::Workload(Box::new(one)));
        let (kind, user) = (row.spec.kind, row.spec.submitted_by.clone());
        changes.push(records::Change::WorkloadArchived(id, kind, user));
    }
    store.apply(&changes).await.unwrap();
    assert_eq!(store.load().await.unwrap().workloads, [row]);
    drop(store);
    w.start().await;
    assert_eq!(w.here(), ("a".to_owned(), 10_000));
    // The forecast does not load them either.
    assert_eq!(w.handle.stored_state().await.unwrap().rows.workloads.len(), 1);
    let text = refused(w.handle.submit(1, training("x5000", 1), false).await);
    assert!(text.contains("already exists"), "{text}");
    w.handle.delete_workload("alice", Uuid::from_u128(5000)).await.unwrap();
    w.submit(1, training("x5000", 99)).await;
    assert_eq!(w.here(), ("a x5000".to_owned(), 9_999));
}

async fn are_the_same_in(database: Database) {
    let mut w = World::that_keeps(1, database).await;
    let ids = w.all_ended(&["a", "b", "c"]).await;
    assert_eq!(w.here(), ("c".to_owned(), 2));
    w.restart().await;
    let text = refused(w.handle.submit(1, training("b", 1), false).await);
    assert!(text.contains("already exists"), "{text}");
    w.handle.delete_workload("alice", ids[0]).await.unwrap();
    assert_eq!(w.here(), ("c".to_owned(), 1));
    let all = w.handle.archived_first(&ArchivedFilter::default(), 9).await.unwrap();
    assert_eq!(all.iter().map(|one| one.spec.name.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[tokio::test]
async fn they_are_the_same_in_both_databases() {
    are_the_same_in(Database::Sqlite).await;
    if let Some(server) = PgServer::own() {
        are_the_same_in(Database::Postgres(server.database().await)).await;
    }
}

#[tokio::test]
async fn a_user_who_has_as_many_as_one_may_have_leaves_the_rest_to_others() {
    let server = PgServer::shared();
    let postgres = match &server {
        Some(server) => Some(Database::Postgres(server.database().await)),
        None => None,
    };
    for database in [Some(Database::Sqlite), postgres].into_iter().flatten() {
        let limit = UserLimit::UserArchivedWorkloads;
        let mut w = World::that_archives_and_limits(limit, 1, database).await;
        let of = |name: &str, user: &str| WorkloadSpec {
            submitted_by: user.to_owned(),
            ..training(name, 0)
        };
        for (name, user) in [("a", "ann"), ("b", "bob")] {
            let id = w.submit(1, of(name, user)).await.id;
            w.phase(name, Phase::Running).await;
            w.engine.end(w.engine.run_of(name).key, Exit::Code(0));
            w.until("it left memory", |view| !view.workloads.contains_key(&id)).await;
        }
        for restarts in [false, true] {
            if restarts {
                // A start counts alike.
                w.restart().await;
            }
            let why = refused(w.handle.submit(1, of("c", "ann"), false).await);
            assert!(why.contains("user-archived-workloads=2"), "{why}");
        }
        w.submit(1, of("c", "eve")).await;
        w.submit(2, of("c", "ann")).await;
        let first =
            ArchivedFilter { names: Some(vec!["a".to_owned()]), ..ArchivedFilter::default() };
        let ids = w.handle.archived_first(&first, 1).await.unwrap();
        w.handle.delete_workload("ann", ids[0].id).await.unwrap();
        w.submit(1, of("d", "ann")).await;
    }
}
