//! Objects that get a new version, and objects without a change that keep theirs.

use std::sync::Arc;

use control::feed::{Changes, Key};
use engine::Exit;
use view::Phase;

use crate::world::{World, given, gpus, nodes, training, workspace};

/// The GPUs that changed after a version, and the newest version.
async fn gpus_after(w: &World, version: u64) -> (Vec<String>, u64) {
    // A new reader begins with the view as it is now.
    let now: Changes = w.handle.changes().await;
    let read = now.read(version, u64::MAX, usize::MAX);
    let gpu = |key: &Key| match key {
        Key::Gpu(node, index) => Some(format!("{node}/{index}")),
        _ => None,
    };
    (read.entries.iter().filter_map(|entry| gpu(&entry.key)).collect(), read.reached)
}

#[tokio::test]
async fn of_all_gpus_those_change_that_something_happens_to() {
    let w = World::new(nodes(3, 8), &[24]).await;
    let _reader = w.handle.changes().await;
    let (all, at) = gpus_after(&w, 0).await;
    assert_eq!(all.len(), 24);
    w.submit(1, training("t", 2)).await;
    w.phase("t", Phase::Running).await;
    let (taken, at) = gpus_after(&w, at).await;
    assert_eq!(taken.len(), 2, "{taken:?}");
    w.handle.fail_gpu("admin", "node-3", 5).await.unwrap();
    let (lost, at) = gpus_after(&w, at).await;
    assert_eq!(lost, ["node-3/5"]);
    w.delete("t").await;
    w.becomes("").await;
    assert_eq!(gpus_after(&w, at).await.0, taken);
}

#[tokio::test]
async fn a_gpu_changes_with_the_name_of_the_pod_on_it() {
    let w = World::new(nodes(1, 2), &[2]).await;
    let _reader = w.handle.changes().await;
    w.submit(1, workspace("shell", 1)).await;
    w.phase("shell", Phase::Running).await;
    let (_, at) = gpus_after(&w, 0).await;
    w.engine.end(w.engine.run_of("shell").key, Exit::Code(1));
    w.phase("shell", Phase::Initializing).await;
    w.clock.advance_ms(1000);
    let again = w.phase("shell", Phase::Running).await;
    assert_eq!((&*again.pods[0].name, gpus_after(&w, at).await.0.len()), ("shell-0-2", 1));
}

#[tokio::test]
async fn a_class_with_other_reasons_is_sent_and_its_workloads_are_as_they_were() {
    let w = World::new(nodes(1, 2), &[2, 0]).await;
    let _reader = w.handle.changes().await;
    w.submit(1, workspace("holds", 2)).await;
    w.phase("holds", Phase::Running).await;
    for name in ["a", "b"] {
        w.submit(2, workspace(name, 2)).await;
    }
    let says = |name: &str, quota: &str| w.why(name)[0].message.contains(quota);
    w.until("both say why", |_| says("a", "a quota of 0") && says("b", "a quota of 0")).await;
    let (a, since) = (w.get("a").unwrap(), w.why("a")[0].at);
    let reached = w.handle.changes().await.read(0, u64::MAX, usize::MAX).reached;
    w.clock.advance_ms(1000);
    w.handle.update_project("admin", 2, given(gpus(1))).await.unwrap();
    w.until("both say the other quota", |_| says("a", "quota of 1") && says("b", "quota of 1"))
        .await;
    assert!(Arc::ptr_eq(&a, &w.get("a").unwrap()), "it costs nothing that it is there");
    assert_eq!(w.why("a")[0].at, since, "it is the same kind of reason");
    assert_eq!(w.story(a.id).await, ["Submitted", "Pending"]);
    let sent = w.handle.changes().await.read(reached, u64::MAX, usize::MAX);
    let is_sent = |id| sent.entries.iter().any(|entry| entry.key == Key::Workload(id));
    assert!(is_sent(a.id) && is_sent(w.id("b")) && !is_sent(w.id("holds")));
}
