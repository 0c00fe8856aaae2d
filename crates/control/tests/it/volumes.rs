//! Volumes of projects: from the first workload that asks for one until it is deleted.

use control::view::Phase;
use control::{Error, Mount, MountSource, VOLUME, WorkloadSpec};
use engine::Exit;

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

#[tokio::test]
async fn nobody_begins_on_a_volume_that_is_being_deleted() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, on_volume("a")).await;
    w.phase("a", Phase::Running).await;
    w.delete("a").await;
    w.until("its end", |view| view.workloads.is_empty()).await;
    w.engine.calls();
    w.engine.fail_removals(2);
    delete_volume(&w).await.unwrap();
    w.submit(1, on_volume("b")).await;
    w.phase("b", Phase::Running).await;
    let calls = w.engine.calls();
    let at = |what: &str| calls.iter().position(|call| call == what);
    assert!(
        at("delete p1-data").is_some_and(|deleted| Some(deleted) < at("start b.1")),
        "{calls:?}"
    );
}
