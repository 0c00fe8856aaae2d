//! Rejected commands and their texts; a rejection leaves nothing behind.

use engine::Exit;
use orchestrator::{Error, OrgChange};
use records::EventFilter;
use spec::{GpuRequest, Port, ShareChange, UserLimit, WorkloadSpec};
use store::Database;
use uuid::Uuid;
use view::Phase;

use crate::world::{World, elastic, given, gpus, nodes, project, training, with, workspace};

#[tokio::test]
async fn a_user_who_has_all_that_one_may_have_in_a_project_leaves_the_rest_to_others() {
    let mut w = World::that_limits(UserLimit::UserWorkloads, 2, Database::Sqlite).await;
    let of = |name: &str, user: &str| WorkloadSpec {
        submitted_by: user.to_owned(),
        ..training(name, 0)
    };
    w.submit(1, of("a", "ann")).await;
    w.submit(1, of("b", "ann")).await;
    let refused = async |w: &World, name: &str| {
        let error = w.handle.submit(1, of(name, "ann"), false).await.unwrap_err();
        assert!(error.to_string().contains("user-workloads=3"), "{error}");
    };
    refused(&w, "c").await;
    w.submit(1, of("c", "bob")).await;
    w.submit(2, of("c", "ann")).await;
    // A start counts alike.
    w.restart().await;
    refused(&w, "d").await;
    w.delete("a").await;
    w.until("it is gone", |_| w.get("a").is_none()).await;
    w.submit(1, of("d", "ann")).await;
    refused(&w, "e").await;
}

#[tokio::test]
async fn values_that_are_not_allowed_name_their_field() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let ok = || training("t", 1);
    let cases: Vec<(WorkloadSpec, &str)> = vec![
        (training("T", 1), "name"),
        (with(ok(), |pod| pod.image = "unknown".to_owned()), "image"),
        (with(ok(), |pod| pod.gpu = GpuRequest::share(1, 1001)), "gpu"),
        (with(ok(), |pod| pod.gpu = GpuRequest::share(0, 500)), "gpu"),
        (with(ok(), |pod| pod.gpu = GpuRequest::memory(1, 0)), "gpu"),
        (training("t", u32::MAX), "gpu"),
        (WorkloadSpec { elastic: true, ..workspace("t", 1) }, "elastic"),
        (elastic("t", 0), "elastic"),
        (with(ok(), |pod| pod.grace_ms = 300_001), "grace period"),
        (WorkloadSpec { backoff_limit: 1001, ..ok() }, "backoff limit"),
        (with(ok(), |pod| pod.working_dir = Some("here".to_owned())), "working directory"),
        (with(ok(), |pod| pod.env = [("A=B".to_owned(), String::new())].into()), "environment"),
        (with(ok(), |pod| pod.args = vec!["a\0".to_owned()]), "command"),
        (with(ok(), |pod| pod.cpu_millis = u64::MAX), "cpu"),
        (with(ok(), |pod| pod.memory_bytes = u64::MAX), "memory"),
        // As many of these as are allowed must still have a sum.
        (with(ok(), |pod| pod.memory_bytes = 1 << 50), "memory"),
    ];
    for (spec, expected) in cases {
        let error = w.handle.submit(1, spec.clone(), false).await.unwrap_err();
        let Error::Invalid { field, .. } = error else { panic!("{expected}: {error}") };
        assert_eq!(field, expected);
    }
    assert!(w.handle.view().workloads.is_empty());
    let events = w.handle.events(EventFilter::default()).await.unwrap();
    assert_eq!(events.len(), 1, "only the project's creation: {events:?}");
}

#[tokio::test]
async fn more_gpu_memory_than_any_gpu_has_is_told_the_most() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let memory = GpuRequest::memory(1, 999 << 40);
    let refused = w.handle.submit(1, with(training("t", 1), |pod| pod.gpu = memory), false).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("above 0 and at most 16T"), "{text}");
}

#[tokio::test]
async fn names_are_taken_once_per_project() {
    let w = World::new(nodes(1, 1), &[1, 1]).await;
    w.submit(1, training("t", 1)).await;
    let error = w.handle.submit(1, training("t", 1), false).await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }));
    assert!(error.to_string().contains("runai delete t"), "{error}");
    w.submit(2, training("t", 1)).await;
    let error = w.handle.create_project("admin", 1, project("team-a", 1)).await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
}

#[tokio::test]
async fn unknown_things_are_not_found() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let (by, id) = ("alice", Uuid::new_v4());
    let h = &w.handle;
    let errors = [
        h.submit(9, training("t", 1), false).await.unwrap_err(),
        h.delete_workload(by, id).await.unwrap_err(),
        h.suspend(by, id).await.unwrap_err(),
        h.resume(by, id).await.unwrap_err(),
        h.delete_project(by, 9).await.unwrap_err(),
        h.update_project(by, 9, project("x", 1)).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
    }
}

#[tokio::test]
async fn what_has_ended_cannot_be_suspended() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    w.engine.end(w.engine.run_of("t").key, engine::Exit::Code(0));
    w.phase("t", Phase::Completed).await;
    let error = w.handle.suspend("alice", w.id("t")).await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
}

#[tokio::test]
async fn projects_are_changed_renamed_and_deleted_when_empty() {
    let w = World::new(nodes(1, 2), &[1]).await;
    w.submit(1, training("t", 1)).await;
    w.phase("t", Phase::Running).await;
    let changed = w.handle.update_project("root", 1, project("research", 2)).await.unwrap();
    assert_eq!(changed.unit.updated_by, "root");
    assert_eq!(
        (changed.unit.name.as_str(), changed.unit.share().gpu_quota_millis),
        ("research", 2000)
    );
    assert_eq!(changed.unit.created_by, "admin");
    assert_eq!(w.get("t").unwrap().project_name, "research");
    let error = w.handle.delete_project("admin", 1).await.unwrap_err();
    assert!(error.to_string().contains("1 workload (t)"), "{error}");
    w.delete("t").await;
    w.becomes("").await;
    w.handle.delete_project("admin", 1).await.unwrap();
    assert!(w.handle.view().projects.is_empty());
    let again = w.handle.create_project("admin", 1, project("research", 1)).await.unwrap();
    assert_eq!(again.unit.id, 2, "ids are not given out twice");
}

#[tokio::test]
async fn changes_of_different_values_at_once_all_count() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let quota = given(gpus(3));
    let weight = given(ShareChange { over_quota_weight: Some(7), ..ShareChange::default() });
    let text = OrgChange { description: Some("x".to_owned()), ..OrgChange::default() };
    let changes = [quota, weight, text].map(|change| w.handle.update_project("admin", 1, change));
    futures_util::future::try_join_all(changes).await.unwrap();
    let unit = w.handle.view().projects[&1].unit.clone();
    let share = unit.share();
    assert_eq!((share.gpu_quota_millis, share.over_quota_weight), (3000, 7));
    assert_eq!((unit.name.as_str(), unit.description.as_str()), ("team-a", "x"));
    // A change is checked together with the unchanged values.
    let limit = ShareChange { gpu_limit_millis: Some(Some(2000)), ..ShareChange::default() };
    let error = w.handle.update_project("admin", 1, given(limit)).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { field: "gpu limit", .. }), "{error}");
}

#[tokio::test]
async fn a_limit_below_the_quota_is_refused() {
    let w = World::new(nodes(1, 1), &[]).await;
    let share = ShareChange { gpu_limit_millis: Some(Some(1000)), ..gpus(2) };
    let spec = OrgChange { name: Some("x".to_owned()), ..given(share) };
    let error = w.handle.create_project("admin", 1, spec).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { field: "gpu limit", .. }), "{error}");
}

#[tokio::test]
async fn requests_of_many_at_once_are_all_answered() {
    let w = World::new(nodes(4, 8), &[32]).await;
    let names: Vec<_> = (0..64).map(|n| format!("t{n}")).collect();
    let all = names.iter().map(|name| w.handle.submit(1, training(name, 1), false));
    let answers = futures_util::future::join_all(all).await;
    assert!(answers.iter().all(Result::is_ok));
    let running =
        |v: &view::View| v.workloads.values().filter(|w| w.phase == Phase::Running).count();
    w.until("32 run", |v| running(v) == 32).await;
    assert!(
        w.handle
            .view()
            .workloads
            .values()
            .all(|w| { w.phase == Phase::Running || !w.pending.is_empty() })
    );
    assert_eq!(w.engine.most_in_use(), 1000);
}

#[tokio::test]
async fn whoever_changes_something_is_on_record_and_so_is_the_refusal() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, training("t", 1)).await;
    w.handle.submit(1, training("t", 1), false).await.unwrap_err();
    w.delete("t").await;
    w.becomes("").await;
    w.handle.stop_everything("bob").await.unwrap();
    w.crash().await;
    let rows = store::Store::open(w.dir.path()).await.unwrap().audit(10).await.unwrap();
    let rows: Vec<_> = rows
        .iter()
        .rev()
        .map(|row| format!("{} {} {} {}", row.who, row.what, row.target, row.result == "ok"))
        .collect();
    assert_eq!(
        rows,
        [
            "admin project.create team-a true",
            "alice workload.submit team-a/t true",
            "alice workload.submit team-a/t false",
            "alice workload.delete team-a/t true",
            "bob server.down  true",
        ]
    );
}

#[tokio::test]
async fn a_port_of_the_machine_is_one_workload_s_until_that_is_over() {
    let w = World::new(nodes(1, 1), &[1, 1]).await;
    let at = |name: &str, host| {
        with(training(name, 0), |pod| pod.container.ports = vec![Port { container: 80, host }])
    };
    w.submit(1, at("j1", Some(22222))).await;
    w.submit(1, at("any", None)).await;
    w.submit(1, at("other", Some(22223))).await;
    let refused = |project| w.handle.submit(project, at("j2", Some(22222)), false);
    let why = refused(1).await.unwrap_err().to_string();
    assert!(why.contains("port 22222 is j1's"), "{why}");
    let why = refused(2).await.unwrap_err().to_string();
    assert!(why.contains("a workload of another project") && !why.contains("j1"), "{why}");
    w.handle.suspend("alice", w.id("j1")).await.unwrap();
    w.phase("j1", Phase::Stopped).await;
    assert!(refused(1).await.is_err(), "it wants its port again when it is resumed");
    w.handle.resume("alice", w.id("j1")).await.unwrap();
    w.phase("j1", Phase::Running).await;
    w.engine.end(w.engine.run_of("j1").key, Exit::Code(0));
    w.phase("j1", Phase::Completed).await;
    refused(2).await.unwrap();
}
