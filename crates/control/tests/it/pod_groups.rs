//! Groups of a leader and workers: each begins whole, restarts and goes on its own.

use engine::{Exit, RunSpec};
use spec::{DistributedSpec, Framework, Group, LEADER, PodSet, Restart, WorkloadSpec};
use view::{Phase, PodState};

use crate::nodes::new_node;
use crate::world::{World, distributed, nodes, training};

/// `number` groups of a leader and two workers, with a GPU each.
fn groups(name: &str, number: u32, recreate: bool) -> WorkloadSpec {
    let one = distributed(name, 2);
    let group = |at| Group { name: format!("group-{at}"), recreate, ..Group::default() };
    let sets = |at| {
        let leader = PodSet { role: LEADER.to_owned(), ..one.pods.clone() };
        [leader, one.more[0].clone()].map(|set| {
            let mut set = PodSet { group: Some(group(at).name), ..set };
            set.pod.restart = Restart::Always;
            set
        })
    };
    let mut sets: Vec<_> = (0..number).flat_map(sets).collect();
    WorkloadSpec {
        groups: (0..number).map(group).collect(),
        children_min: Some(1),
        pods: sets.remove(0),
        more: sets,
        distributed: one
            .distributed
            .map(|together| DistributedSpec { framework: Framework::Lws, ..together }),
        ..one
    }
}

/// The runs of a group, in order.
fn runs(w: &World, group: u32) -> Vec<RunSpec> {
    let mut runs = w.engine.runs_of("s");
    runs.retain(|run| run.pod_index / 3 == group);
    runs
}

fn generations(w: &World, group: u32) -> Vec<u32> {
    runs(w, group).iter().map(|run| run.key.generation).collect()
}

async fn until(w: &World, group: u32, wanted: &[u32]) -> Vec<RunSpec> {
    w.until(&format!("group {group} has {wanted:?}"), |_| generations(w, group) == wanted).await;
    runs(w, group)
}

fn ports(runs: &[RunSpec]) -> Vec<u16> {
    let gang = runs[0].gang.as_ref().unwrap();
    assert!(runs.iter().all(|run| run.gang.as_ref().unwrap().members == gang.members));
    gang.members.iter().map(|member| member.port).collect()
}

#[tokio::test]
async fn groups_begin_one_by_one_each_whole_or_not_at_all() {
    let w = World::new(nodes(1, 7), &[7]).await;
    w.submit(1, training("busy", 2)).await;
    w.phase("busy", Phase::Running).await;
    w.submit(1, groups("s", 2, true)).await;
    w.becomes("busy Running 2/2\ns Degraded 3/6").await;
    let first = until(&w, 0, &[1, 1, 1]).await;
    assert!(runs(&w, 1).is_empty(), "two GPUs are no group");
    assert!(!w.get("s").unwrap().pending.is_empty(), "it says why");
    w.delete("busy").await;
    w.becomes("s Running 6/6").await;
    let second = until(&w, 1, &[1, 1, 1]).await;
    assert_eq!(ports(&runs(&w, 0)), ports(&first), "the first goes on as it was");
    let told = |run: &RunSpec| {
        let gang = run.gang.as_ref().unwrap();
        (run.pod_name.clone(), gang.rank, gang.members.len())
    };
    let told: Vec<_> = first.iter().chain(&second).map(told).collect();
    let want = [("s-0", 0), ("s-0-1", 1), ("s-0-2", 2), ("s-1", 0), ("s-1-1", 1), ("s-1-2", 2)];
    assert_eq!(told, want.map(|(name, rank)| (name.to_owned(), rank, 3)));
    let mut all = [ports(&first), ports(&second)].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 6, "each has its own");
}

#[tokio::test]
async fn a_pod_that_ends_has_its_group_begin_again_and_no_other() {
    let w = World::new(nodes(1, 6), &[6]).await;
    let spec = WorkloadSpec { backoff_limit: 0, ..groups("s", 2, true) };
    w.submit(1, spec).await;
    let (first, second) = (until(&w, 0, &[1, 1, 1]).await, until(&w, 1, &[1, 1, 1]).await);
    w.phase("s", Phase::Running).await;
    // Well or badly, and as often as that may be: they are to serve.
    for (exit, again, wait_ms) in [(Exit::Code(0), 2, 1000), (Exit::Code(3), 3, 2000)] {
        w.engine.end(runs(&w, 1)[1].key, exit);
        w.becomes("s Degraded 6/6").await;
        w.clock.advance_ms(wait_ms);
        let now = until(&w, 1, &[again; 3]).await;
        assert!(ports(&now).iter().all(|port| !ports(&second).contains(port)));
        w.becomes("s Running 6/6").await;
    }
    assert_eq!(until(&w, 0, &[1, 1, 1]).await, first, "nothing has become of the other");
}

#[tokio::test]
async fn a_pod_begins_again_alone_where_its_group_is_to_go_on() {
    let w = World::new(nodes(1, 6), &[6]).await;
    w.submit(1, groups("s", 2, false)).await;
    let first = until(&w, 0, &[1, 1, 1]).await;
    until(&w, 1, &[1, 1, 1]).await;
    w.phase("s", Phase::Running).await;
    w.engine.end(first[0].key, Exit::Code(1));
    w.becomes("s Degraded 6/6").await;
    w.clock.advance_ms(1000);
    let now = until(&w, 0, &[2, 1, 1]).await;
    assert_eq!(ports(&now), ports(&first), "the others find it where it was");
}

#[tokio::test]
async fn a_group_keeps_its_other_places_while_a_node_is_away_and_the_next_goes_on() {
    let w = World::new(nodes(3, 2), &[7]).await;
    w.submit(1, groups("s", 2, true)).await;
    w.becomes("s Running 6/6").await;
    w.submit(1, training("waits", 1)).await;
    let lost = w.get("s").unwrap().pods[5].node_name.clone().unwrap();
    let away = async || w.handle.remove_node("admin", &lost).await.unwrap();
    let back = async || w.handle.add_node("admin", new_node(&lost, 2)).await.unwrap();
    away().await;
    w.becomes("s Degraded 4/6\nwaits Pending 0/1").await;
    back().await;
    w.becomes("s Running 6/6\nwaits Pending 0/1").await;
    assert_eq!((generations(&w, 0), generations(&w, 1)), (vec![1; 3], vec![2; 3]));
    away().await;
    w.becomes("s Degraded 4/6\nwaits Pending 0/1").await;
    w.clock.advance_ms(61_000);
    w.becomes("s Degraded 3/6\nwaits Running 1/1").await;
    assert_eq!(generations(&w, 0), [1; 3]);
}

#[tokio::test]
async fn a_group_gives_up_its_places_after_a_minute_although_another_has_succeeded() {
    let w = World::new(nodes(3, 2), &[7]).await;
    let mut spec = groups("s", 2, true);
    spec.sets_mut().for_each(|set| set.pod.restart = Restart::Never);
    w.submit(1, spec).await;
    w.becomes("s Running 6/6").await;
    for run in until(&w, 0, &[1, 1, 1]).await {
        w.engine.end(run.key, Exit::Code(0));
    }
    w.becomes("s Running 3/6").await;
    for name in ["a", "b", "c"] {
        w.submit(1, training(name, 1)).await;
        w.phase(name, Phase::Running).await;
    }
    let lost = w.get("s").unwrap().pods[5].node_name.clone().unwrap();
    w.handle.remove_node("admin", &lost).await.unwrap();
    w.until("a place is kept", |view| {
        let mut pods = view.workloads.values().flat_map(|one| &one.pods);
        pods.any(|pod| pod.state == PodState::PlacesKept)
    })
    .await;
    w.clock.advance_ms(61_000);
    w.until("no place is kept", |view| {
        let mut pods = view.workloads.values().flat_map(|one| &one.pods);
        !pods.any(|pod| pod.state == PodState::PlacesKept)
    })
    .await;
}

#[tokio::test]
async fn others_take_a_group_and_it_comes_back_alone() {
    let w = World::new(nodes(1, 6), &[2, 4]).await;
    let id = w.submit(1, groups("s", 2, true)).await.id;
    w.becomes("s Running 6/6").await;
    w.submit(2, training("owner", 1)).await;
    w.becomes("s Degraded 3/6\nowner Running 1/1").await;
    let stays = u32::from(runs(&w, 0).is_empty());
    assert_eq!(generations(&w, stays), [1, 1, 1]);
    w.delete("owner").await;
    w.becomes("s Running 6/6").await;
    assert_eq!(generations(&w, 1 - stays), [2, 2, 2]);
    w.handle.suspend("alice", id).await.unwrap();
    w.becomes("s Stopped 0/6").await;
    w.handle.resume("alice", id).await.unwrap();
    w.becomes("s Running 6/6").await;
    assert_eq!((generations(&w, stays), generations(&w, 1 - stays)), (vec![2; 3], vec![3; 3]));
}

#[tokio::test]
async fn a_server_that_comes_back_finds_the_groups_as_they_were() {
    let mut w = World::new(nodes(1, 6), &[6]).await;
    let spec = groups("s", 2, true);
    w.submit(1, spec.clone()).await;
    let before = [until(&w, 0, &[1, 1, 1]).await, until(&w, 1, &[1, 1, 1]).await];
    w.becomes("s Running 6/6").await;
    w.restart().await;
    w.becomes("s Running 6/6").await;
    assert_eq!([until(&w, 0, &[1, 1, 1]).await, until(&w, 1, &[1, 1, 1]).await], before);
    assert_eq!(*w.get("s").unwrap().spec, spec, "nothing of it is lost on disk");
    w.crash().await;
    // One of them is lost while the server is away: its group cannot go on without.
    w.engine.end(before[1][2].key, Exit::Lost);
    w.start().await;
    w.becomes("s Degraded 6/6").await;
    w.clock.advance_ms(1000);
    until(&w, 1, &[2, 2, 2]).await;
    assert_eq!(until(&w, 0, &[1, 1, 1]).await, before[0]);
}

#[tokio::test]
async fn a_group_that_has_ended_well_stays_so_and_all_of_them_end_the_workload() {
    let w = World::new(nodes(1, 6), &[6]).await;
    let mut spec = groups("s", 2, true);
    spec.sets_mut().for_each(|set| set.pod.restart = Restart::Never);
    let id = w.submit(1, spec).await.id;
    w.becomes("s Running 6/6").await;
    for run in until(&w, 0, &[1, 1, 1]).await {
        w.engine.end(run.key, Exit::Code(0));
    }
    w.becomes("s Running 3/6").await;
    w.handle.suspend("alice", id).await.unwrap();
    w.becomes("s Stopped 0/6").await;
    w.handle.resume("alice", id).await.unwrap();
    let again = until(&w, 1, &[2, 2, 2]).await;
    let states: Vec<_> = w.get("s").unwrap().pods.iter().map(|pod| pod.state).collect();
    assert_eq!(states[..3], [PodState::Succeeded; 3]);
    for run in again {
        w.engine.end(run.key, Exit::Code(0));
    }
    w.becomes("s Completed 0/6").await;
}
