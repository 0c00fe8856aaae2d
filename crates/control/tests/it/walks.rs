//! The published walk-throughs (reference D.12), as far as the dispatcher shows them: projects 1
//! and 2 are team-a and team-b.

use engine::Exit;
use spec::GpuRequest;
use view::Phase;

use crate::world::{World, elastic, nodes, training, with, workspace};

#[tokio::test]
async fn w1_train() {
    let w = World::new(nodes(1, 4), &[2]).await;
    w.submit(1, training("train1", 1)).await;
    w.becomes("train1 Running 1/1").await;
    w.delete("train1").await;
    w.becomes("").await;
}

#[tokio::test]
async fn w4_fractions_share_one_gpu() {
    let w = World::new(nodes(1, 4), &[1]).await;
    let share = |spec, millis| with(spec, |pod| pod.gpu = GpuRequest::share(1, millis));
    w.submit(1, share(workspace("frac05", 1), 500)).await;
    w.submit(1, share(training("frac03", 1), 300)).await;
    w.becomes("frac05 Running 0.5/0.5\nfrac03 Running 0.3/0.3").await;
    let gpu = |name| w.get(name).unwrap().pods[0].gpus[0].0;
    assert_eq!(gpu("frac05"), gpu("frac03"));
    assert_eq!(w.engine.run_of("frac03").devices[0].millis, 300);
}

#[tokio::test]
async fn w5_an_elastic_job_takes_the_idle_gpus() {
    let w = World::new(nodes(1, 4), &[2]).await;
    w.submit(1, elastic("elastic1", 2)).await;
    w.becomes("elastic1 Running 4/2").await;
    assert!(w.get("elastic1").unwrap().over_quota);
}

#[tokio::test]
async fn w6_an_elastic_job_gives_back_and_grows() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, elastic("elastic1", 1)).await;
    w.becomes("elastic1 Running 2/1").await;
    w.submit(1, workspace("filler1", 1)).await;
    w.becomes("elastic1 Running 1/1\nfiller1 Running 1/1").await;
    let shrunk = w.get("elastic1").unwrap();
    let why = shrunk.last_eviction.as_ref().unwrap();
    assert_eq!(why.code, "E104");
    let restarts = "; its processes restart, from a checkpoint if they write one";
    assert!(why.message.contains("filler1") && why.message.ends_with(restarts), "{}", why.message);
    w.delete("elastic1").await;
    w.delete("filler1").await;
    w.becomes("").await;

    w.submit(1, workspace("filler2", 1)).await;
    w.submit(1, elastic("elastic2", 2)).await;
    w.becomes("filler2 Running 1/1\nelastic2 Running 1/2").await;
    w.clock.advance_ms(60_000);
    w.delete("filler2").await;
    w.becomes("elastic2 Running 2/2").await;
    assert_eq!(w.engine.most_in_use(), 1000, "no GPU was ever in use twice");
}

#[tokio::test]
async fn a_run_knows_the_size_of_the_one_before_it() {
    let mut w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, workspace("filler", 1)).await;
    w.submit(1, elastic("e", 2)).await;
    w.becomes("filler Running 1/1\ne Running 1/2").await;
    assert_eq!(w.engine.run_of("e").resized_from, None, "its first run");
    w.clock.advance_ms(60_000);
    w.restart().await;
    w.delete("filler").await;
    w.becomes("e Running 2/2").await;
    let grown = w.engine.run_of("e");
    assert_eq!((grown.resized_from, grown.devices.len()), (Some(1000), 2));
    w.crash().await;
    w.engine.lose(grown.key);
    w.start().await;
    w.becomes("e Running 2/2").await;
    let again = w.engine.run_of("e");
    assert_eq!((again.key, again.resized_from), (grown.key, Some(1000)), "the same run");
    w.engine.end(again.key, Exit::Code(1));
    w.phase("e", Phase::Initializing).await;
    w.clock.advance_ms(60_000);
    w.becomes("e Running 2/2").await;
    let failed_before = w.engine.run_of("e");
    assert_ne!(failed_before.key, again.key);
    assert_eq!(failed_before.resized_from, None, "it has the size of the run before");
}

#[tokio::test]
async fn w7_over_quota_reclaim_and_consolidation() {
    let w = World::new(nodes(2, 2), &[2, 2]).await;
    w.submit(1, training("a2", 2)).await;
    w.submit(1, training("a1", 1)).await;
    w.submit(2, training("b1", 1)).await;
    w.becomes("a2 Running 2/2\na1 Running 1/1\nb1 Running 1/1").await;
    w.submit(2, training("b2", 1)).await;
    w.becomes("a2 Running 2/2\na1 Pending 0/1\nb1 Running 1/1\nb2 Running 1/1").await;
    let evicted = w.get("a1").unwrap();
    let why = evicted.last_eviction.as_ref().unwrap();
    assert_eq!(why.code, "E101");
    assert!(why.message.contains("b2") && why.message.contains("team-b"), "{}", why.message);
    assert!(!evicted.pending.is_empty());

    w.delete("a2").await;
    w.becomes("a1 Running 1/1\nb1 Running 1/1\nb2 Running 1/1").await;
    let node = |name: &str| w.get(name).unwrap().pods[0].node_name.clone().unwrap();
    let full = if node("a1") == node("b1") { "b1" } else { "b2" };
    if node("b1") != node("b2") {
        w.delete(full).await;
        let left = if full == "b1" { "b2" } else { "b1" };
        w.becomes(&format!("a1 Running 1/1\n{left} Running 1/1")).await;
        w.submit(1, training("a2", 2)).await;
        w.becomes(&format!("a1 Running 1/1\n{left} Running 1/1\na2 Running 2/2")).await;
        assert_eq!(node("a1"), node(left), "they were moved together");
    }
    assert_eq!(w.engine.most_in_use(), 1000);
}

#[tokio::test]
async fn a_stop_tells_for_which_workload_it_was_also_after_a_restart() {
    let mut w = World::new(nodes(1, 1), &[0, 1]).await;
    w.submit(1, training("lent", 1)).await;
    w.becomes("lent Running 1/1").await;
    w.submit(2, training("own", 1)).await;
    w.becomes("lent Pending 0/1\nown Running 1/1").await;
    let stopped = w.get("lent").unwrap().last_eviction.clone().unwrap();
    let by = stopped.beneficiary.as_ref().unwrap();
    assert_eq!((by.id, &*by.name, &*by.project), (w.get("own").unwrap().id, "own", "team-b"));
    w.restart().await;
    assert_eq!(w.get("lent").unwrap().last_eviction, Some(stopped));
}

#[tokio::test]
async fn each_stop_in_the_history_has_its_beneficiary_also_after_a_restart() {
    let mut w = World::new(nodes(1, 1), &[0, 1]).await;
    w.submit(1, training("lent", 1)).await;
    for own in ["first", "second"] {
        w.becomes("lent Running 1/1").await;
        w.submit(2, training(own, 1)).await;
        w.becomes(&format!("lent Pending 0/1\n{own} Running 1/1")).await;
        w.delete(own).await;
    }
    w.restart().await;
    let events = w.events(w.id("lent")).await;
    let named = events.iter().filter_map(|event| event.beneficiary.as_ref());
    let named: Vec<_> = named.map(|by| (&*by.name, &*by.project)).collect();
    assert_eq!(named, [("first", "team-b"), ("second", "team-b")]);
}

#[tokio::test]
async fn w7_consolidation_moves_a_job_out_of_the_way() {
    let w = World::new(nodes(2, 2), &[4]).await;
    for name in ["x1", "x2", "y1", "y2"] {
        w.submit(1, training(name, 1)).await;
        w.phase(name, Phase::Running).await;
    }
    let node = |name: &str| w.get(name).unwrap().pods[0].node_name.clone().unwrap();
    // One of each node goes, so that two GPUs are free, but not on one node.
    let beside = ["x2", "y1", "y2"].into_iter().find(|name| node(name) == node("x1")).unwrap();
    let across = ["x2", "y1", "y2"].into_iter().find(|name| node(name) != node("x1")).unwrap();
    w.delete(beside).await;
    w.delete(across).await;
    w.until("two left", |v| v.workloads.len() == 2).await;
    w.submit(1, training("big", 2)).await;
    let big = w.phase("big", Phase::Running).await;
    w.until("all run", |v| v.workloads.values().all(|w| w.phase == Phase::Running)).await;
    let view = w.handle.view();
    let moved: Vec<_> = view.workloads.values().filter(|w| w.last_eviction.is_some()).collect();
    assert_eq!(moved.len(), 1, "one moves, one stays");
    assert_eq!(moved[0].last_eviction.as_ref().unwrap().code, "E103");
    assert_eq!(moved[0].pods[0].generation, 2);
    assert_eq!(big.pods[0].gpus.len(), 2);
    assert!(w.story(moved[0].id).await.contains(&"Moved".to_owned()));
    assert_eq!(w.engine.most_in_use(), 1000);
}

#[tokio::test]
async fn w8_queues_share_fairly() {
    let w = World::new(nodes(2, 2), &[1, 1]).await;
    for name in ["a1", "a2", "a3", "a4"] {
        w.submit(1, training(name, 1)).await;
        w.phase(name, Phase::Running).await;
    }
    for name in ["b1", "b2", "b3", "b4"] {
        w.submit(2, training(name, 1)).await;
    }
    let running = |v: &view::View, project| {
        let of = |w: &&std::sync::Arc<view::WorkloadView>| {
            w.project_id == project && w.phase == Phase::Running
        };
        v.workloads.values().filter(of).count()
    };
    w.until("2 and 2", |v| running(v, 1) == 2 && running(v, 2) == 2).await;
    let over = w.handle.view().workloads.values().filter(|w| w.over_quota).count();
    assert_eq!(over, 2, "one GPU of each project is beyond its quota");
    let gone = ["b1", "b2", "b3", "b4"]
        .into_iter()
        .find(|name| w.get(name).unwrap().phase == Phase::Running)
        .unwrap();
    w.delete(gone).await;
    w.until("gone", |v| v.workloads.len() == 7).await;
    w.until("2 and 2 again", |v| running(v, 1) == 2 && running(v, 2) == 2).await;
    assert_eq!(w.engine.most_in_use(), 1000);
}

#[tokio::test]
async fn what_no_node_can_hold_is_accepted_and_says_why() {
    let w = World::new(nodes(2, 2), &[1]).await;
    let view = w.submit(1, training("huge", 3)).await;
    assert_eq!((view.phase, w.why("huge")[0].code.as_ref()), (Phase::Pending, "P101"));
    let message = &w.why("huge")[0].message;
    assert!(message.contains('3') && message.contains('2'), "{message}");
    assert_eq!(w.story(view.id).await, ["Submitted", "Pending"]);
}
