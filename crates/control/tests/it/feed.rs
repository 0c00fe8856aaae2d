//! Which objects get a new version, and that what is not touched keeps its own.

use control::feed::{Changes, Key};
use engine::Exit;
use view::Phase;

use crate::world::{World, nodes, training, workspace};

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
