//! Volumes of projects: from the first workload that asks for one until it is deleted.

use engine::Exit;
use orchestrator::{Error, VOLUME, VOLUME_ENDING};
use spec::{Mount, MountSource, UserLimit, WorkloadSpec};
use store::Database;
use view::{Phase, View};

use crate::inference::inference;
use crate::world::{World, nodes, training, with};

fn on_volume(name: &str) -> WorkloadSpec {
    let from = MountSource::Volume { name: "p1-data".to_owned(), ephemeral: false };
    let mount = Mount { to: "/data".into(), from, read_only: false };
    with(training(name, 1), |pod| pod.container.mounts = vec![mount])
}

async fn delete_volume(w: &World) -> Result<(), Error> {
    let view = w.handle.view();
    let id = view.objects.shelf(VOLUME).unwrap().keys().next().unwrap().clone();
    w.handle.delete_object("ann", VOLUME, &id).await.map(drop)
}

#[tokio::test]
async fn a_volume_stays_as_long_as_what_has_ended_keeps_it() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, on_volume("a")).await;
    w.phase("a", Phase::Running).await;
    w.engine.end(w.engine.run_of("a").key, Exit::Code(0));
    w.phase("a", Phase::Completed).await;
    let error = delete_volume(&w).await.unwrap_err();
    assert_eq!(error.to_string(), "workload `a` uses volume `data`; delete the workload first");
    w.delete("a").await;
    delete_volume(&w).await.unwrap();
}

#[tokio::test]
async fn of_the_volumes_of_a_refused_workload_none_is_made() {
    let w = World::new(nodes(1, 1), &[1]).await;
    let claims = |names: std::ops::Range<u32>| {
        let to = |n| format!("/data-{n}").into();
        let from = |n| MountSource::Volume { name: format!("p1-c{n}"), ephemeral: false };
        let mounts = names.map(|n| Mount { to: to(n), from: from(n), read_only: false }).collect();
        with(training("t", 1), |pod| pod.container.mounts = mounts)
    };
    for first in (0..999).step_by(64) {
        let claims = claims(first..(first + 64).min(999));
        let submitted_by = ["ann", "bob", "eve"][first as usize / 384].to_owned();
        w.submit(1, WorkloadSpec { name: format!("t{first}"), submitted_by, ..claims }).await;
    }
    let refused = w.handle.submit(1, claims(999..1001), false).await.unwrap_err().to_string();
    assert!(refused.contains("are limited to 1000"), "{refused}");
    assert_eq!(w.handle.view().objects.shelf(VOLUME).unwrap().len(), 999);
    w.submit(1, claims(999..1000)).await;
}

#[tokio::test]
async fn a_change_of_an_inference_may_bring_a_volume() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, inference("svc", 1, 1, 1)).await;
    let head = w.get("svc").unwrap();
    let mut spec = (*head.spec).clone();
    spec.pods.pod.container = on_volume("svc").pods.pod.container;
    let newest = *head.revisions.last().unwrap();
    w.handle.update_inference("bob", head.id, newest, spec).await.unwrap();
    let error = delete_volume(&w).await.unwrap_err();
    assert!(error.to_string().contains("`svc` uses volume `data`"), "{error}");
}

/// A volume that was deleted when no workload had it any more; the engine refuses so often.
async fn deleted(refusals: u32) -> World {
    deleted_in(World::new(nodes(1, 1), &[1]).await, refusals).await
}

async fn deleted_in(w: World, refusals: u32) -> World {
    w.submit(1, on_volume("a")).await;
    w.phase("a", Phase::Running).await;
    w.delete("a").await;
    w.until("its end", |view| view.workloads.is_empty()).await;
    w.engine.calls();
    w.engine.fail_removals(refusals);
    delete_volume(&w).await.unwrap();
    w
}

fn ending(view: &View) -> usize {
    view.objects.shelf(VOLUME_ENDING).map_or(0, |shelf| shelf.len())
}

/// The engine's name for the volume of the newest run.
fn at_engine(w: &World, name: &str) -> String {
    match &w.engine.run_of(name).container.mounts[0].from {
        MountSource::Volume { name, .. } => name.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn who_asks_again_for_what_is_being_deleted_gets_another_at_once() {
    let w = deleted(u32::MAX).await;
    w.submit(1, on_volume("b")).await;
    w.phase("b", Phase::Running).await;
    let old = w.handle.view().objects.all(VOLUME_ENDING)[0].name.clone();
    let new = at_engine(&w, "b");
    assert!(old != new && new.ends_with("-p1-data"), "{old} {new}");
    w.submit(1, on_volume("c")).await;
    w.delete("b").await;
    w.phase("c", Phase::Running).await;
    assert_eq!(at_engine(&w, "c"), new, "until it is deleted");
}

#[tokio::test]
async fn a_volume_counts_until_its_data_is_deleted() {
    let w = World::that_limits(UserLimit::UserObjectsOfOne, 1, Database::Sqlite).await;
    let w = deleted_in(w, 1).await;
    w.until("the refusal of the engine", |view| ending(view) == 1).await;
    let refused = w.handle.submit(1, on_volume("b"), false).await.unwrap_err().to_string();
    assert!(refused.contains("are limited to 1;"), "{refused}");
    w.until("its end", |view| ending(view) == 0).await;
    w.submit(1, on_volume("b")).await;
}

#[tokio::test]
async fn what_was_to_be_deleted_is_after_a_crash() {
    let mut w = deleted(u32::MAX).await;
    w.crash().await;
    w.engine.fail_removals(0);
    w.start().await;
    w.until("its end", |view| ending(view) == 0).await;
    let calls = w.engine.calls();
    assert!(
        calls.iter().any(|call| call.starts_with("delete v") && call.ends_with("-p1-data")),
        "{calls:?}"
    );
    w.restart().await;
    w.submit(1, on_volume("b")).await;
    w.phase("b", Phase::Running).await;
    let delete = format!("delete {}", at_engine(&w, "b"));
    assert!(!w.engine.calls().contains(&delete), "what is new is not deleted with it");
}

#[tokio::test]
async fn a_volume_that_stays_is_told_and_goes_in_the_end_also_without_its_project() {
    let w = deleted(u32::MAX).await;
    w.handle.delete_project("ann", 1).await.unwrap();
    w.until("the error", |view| {
        view.objects.all(VOLUME_ENDING).iter().any(|object| object.body["error"].is_string())
    })
    .await;
    let events = w.handle.events(records::EventFilter::default()).await.unwrap();
    let told = events.iter().find(|event| event.kind == "VolumeStays").unwrap();
    assert!(told.message.starts_with("volume `data` was deleted and is still"), "{told:?}");
    w.engine.fail_removals(0);
    w.until("its end", |view| ending(view) == 0).await;
}
