//! Limits in time: announced, kept, and for what runs already too.

use fixture::STUCK_AFTER;
use orchestrator::OrgChange;
use spec::{Restart, Rules, WorkloadSpec};
use view::Phase;

use engine::{Exit, GpuUse, Measured};

use crate::world::{World, nodes, training, with, workspace};

/// The rules of project 1, or of its department.
pub(crate) async fn limit(w: &World, of_department: bool, training_s: u64, workspace_s: u64) {
    let ms = |seconds: u64| (seconds > 0).then_some(seconds * 1000);
    let rules = Rules {
        training_run_ms_max: ms(training_s),
        workspace_run_ms_max: ms(workspace_s),
        ..Rules::default()
    };
    if of_department {
        w.handle.update_department("admin", 1, ruled(rules)).await.unwrap();
    } else {
        w.handle.update_project("admin", 1, ruled(rules)).await.unwrap();
    }
}

fn ruled(rules: Rules) -> OrgChange {
    OrgChange { rules: Some(rules), ..OrgChange::default() }
}

/// How long the GPUs of a workload may be idle in project 1: of a training, a workspace that is not
/// preemptible, and one that is.
pub(crate) async fn idle_limits(w: &World, [training_s, workspace_s, preemptible_s]: [u64; 3]) {
    let rules = Rules {
        training_idle_ms_max: Some(training_s * 1000),
        workspace_idle_ms_max: Some(workspace_s * 1000),
        preemptible_workspace_idle_ms_max: Some(preemptible_s * 1000),
        ..Rules::default()
    };
    w.handle.update_project("admin", 1, ruled(rules)).await.unwrap();
}

/// Lets `count` samples pass, in each of which the GPUs of node 1 have this utilisation.
pub(crate) async fn looks(w: &World, count: u64, busy: &[Option<u64>]) {
    let gpu = |(at, busy): (usize, &Option<u64>)| GpuUse {
        uuid: format!("GPU-sim-node-1-{at}"),
        busy_millis: *busy,
        memory_bytes: None,
    };
    let gpus = busy.iter().enumerate().map(gpu).collect();
    w.engine.uses(Measured { runs: Vec::new(), gpus });
    for _ in 0..count {
        w.clock.advance_ms(15_000);
        let now = control::Clock::now(&w.clock);
        w.until("a sample", |_| w.handle.sample().at == now).await;
    }
}

/// Waits for an event about a workload.
pub(crate) async fn told(w: &World, name: &str, kind: &str) -> String {
    let id = w.id(name);
    let deadline = tokio::time::Instant::now() + STUCK_AFTER;
    loop {
        let found = w.events(id).await.into_iter().rev().find(|event| event.kind == kind);
        if let Some(event) = found {
            return event.message;
        }
        assert!(tokio::time::Instant::now() < deadline, "{name} was never told {kind}");
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_training_is_told_and_then_suspended_and_can_be_resumed() {
    let w = World::new(nodes(1, 2), &[2]).await;
    limit(&w, false, 100, 0).await;
    w.submit(1, training("a1", 1)).await;
    w.submit(1, workspace("b1", 1)).await;
    w.becomes("a1 Running 1/1\nb1 Running 1/1").await;
    w.clock.advance_ms(90_000);
    let near = told(&w, "a1", "TimeLimitNear").await;
    assert_eq!(near, "it may run for 100 s at a time; it is suspended in 10 s");
    assert_eq!(w.get("a1").unwrap().phase, Phase::Running);
    w.clock.advance_ms(10_000);
    w.becomes("a1 Stopped 0/1\nb1 Running 1/1").await;
    let why = w.get("a1").unwrap().last_eviction.clone().unwrap();
    assert_eq!(why.code, "E203");
    w.handle.resume("alice", w.id("a1")).await.unwrap();
    w.becomes("a1 Running 1/1\nb1 Running 1/1").await;
    assert_eq!(w.get("a1").unwrap().last_eviction, None, "it tells to resume it");
}

#[tokio::test]
async fn a_new_rule_holds_for_what_runs_after_a_notice() {
    let w = World::new(nodes(1, 1), &[1]).await;
    w.submit(1, workspace("a1", 1)).await;
    w.becomes("a1 Running 1/1").await;
    w.clock.advance_ms(1_000_000);
    limit(&w, true, 0, 600).await;
    assert_eq!(
        told(&w, "a1", "TimeLimitNear").await,
        "it may run for 600 s at a time; it is suspended in 60 s"
    );
    assert_eq!(w.get("a1").unwrap().phase, Phase::Running);
    w.clock.advance_ms(60_000);
    w.becomes("a1 Stopped 0/1").await;
}

#[tokio::test]
async fn the_tighter_rule_counts_and_survives_a_crash() {
    let mut w = World::new(nodes(1, 1), &[1]).await;
    limit(&w, true, 50, 70).await;
    limit(&w, false, 100, 60).await;
    w.submit(1, training("a1", 1)).await;
    w.becomes("a1 Running 1/1").await;
    w.restart().await;
    w.becomes("a1 Running 1/1").await;
    let both = w.handle.view().projects[&1].effective_rules;
    assert_eq!((both.training_run_ms_max, both.workspace_run_ms_max), (Some(50_000), Some(60_000)));
    w.clock.advance_ms(50_000);
    told(&w, "a1", "TimeLimitNear").await;
    w.clock.advance_ms(5_000);
    w.becomes("a1 Stopped 0/1").await;
}

#[tokio::test]
async fn without_the_rule_nobody_is_stopped() {
    let w = World::new(nodes(1, 1), &[1]).await;
    limit(&w, false, 100, 0).await;
    w.submit(1, training("a1", 1)).await;
    w.becomes("a1 Running 1/1").await;
    w.clock.advance_ms(95_000);
    told(&w, "a1", "TimeLimitNear").await;
    limit(&w, false, 0, 0).await;
    w.clock.advance_ms(1_000_000);
    w.submit(1, training("a2", 1)).await;
    w.becomes("a1 Running 1/1\na2 Pending 0/1").await;
}

#[tokio::test]
async fn starting_again_in_its_place_does_not_begin_the_limit_anew() {
    let w = World::new(nodes(1, 1), &[1]).await;
    limit(&w, false, 0, 100).await;
    w.submit(1, workspace("a1", 1)).await;
    for generation in 1..=3 {
        w.becomes("a1 Running 1/1").await;
        let run = w.engine.run_of("a1").key;
        assert_eq!(run.generation, generation);
        w.clock.advance_ms(30_000);
        w.engine.end(run, Exit::Code(1));
        w.phase("a1", Phase::Initializing).await;
        w.clock.advance_ms(4_000);
    }
    told(&w, "a1", "TimeLimitNear").await;
    w.clock.advance_ms(10_000);
    w.becomes("a1 Stopped 0/1").await;
}

#[tokio::test]
async fn who_leaves_its_gpus_idle_is_told_and_then_suspended() {
    let w = World::new(nodes(1, 2), &[2]).await;
    w.submit(1, training("a1", 1)).await;
    w.submit(1, training("b1", 1)).await;
    w.becomes("a1 Running 1/1\nb1 Running 1/1").await;
    let busy = w.get("b1").unwrap().pods[0].gpus[0].0 as usize;
    let mut use_of = [Some(0); 2];
    use_of[busy] = Some(10);
    looks(&w, 20, &use_of).await;
    // The rule is younger than the workload, and still no workload is stopped without notice.
    idle_limits(&w, [200, 999, 999]).await;
    looks(&w, 1, &use_of).await;
    let near = told(&w, "a1", "IdleLimitNear").await;
    assert_eq!(near, "its GPUs may be idle for 200 s at a time; it is suspended in 35 s");
    looks(&w, 3, &use_of).await;
    w.becomes("a1 Stopped 0/1\nb1 Running 1/1").await;
    assert_eq!(w.get("a1").unwrap().last_eviction.clone().unwrap().code, "E204");
}

#[tokio::test]
async fn any_use_begins_idle_time_anew() {
    let w = World::new(nodes(1, 2), &[2]).await;
    idle_limits(&w, [100, 100, 100]).await;
    w.submit(1, training("a1", 2)).await;
    w.becomes("a1 Running 2/2").await;
    looks(&w, 7, &[Some(0), Some(0)]).await;
    told(&w, "a1", "IdleLimitNear").await;
    looks(&w, 1, &[Some(0), Some(10)]).await;
    told(&w, "a1", "IdleLimitOff").await;
    looks(&w, 6, &[Some(0), Some(0)]).await;
    assert_eq!(w.get("a1").unwrap().phase, Phase::Running);
    looks(&w, 15, &[Some(0), Some(0)]).await;
    w.becomes("a1 Stopped 0/2").await;
}

#[tokio::test]
async fn a_new_start_begins_idle_time_anew_though_no_look_saw_it() {
    let w = World::new(nodes(1, 1), &[1]).await;
    idle_limits(&w, [200, 999, 999]).await;
    w.submit(1, training("a1", 1)).await;
    w.becomes("a1 Running 1/1").await;
    looks(&w, 11, &[Some(0)]).await;
    w.handle.suspend("alice", w.id("a1")).await.unwrap();
    w.becomes("a1 Stopped 0/1").await;
    w.handle.resume("alice", w.id("a1")).await.unwrap();
    w.becomes("a1 Running 1/1").await;
    looks(&w, 9, &[Some(0)]).await;
    assert_eq!(w.get("a1").unwrap().phase, Phase::Running);
    looks(&w, 10, &[Some(0)]).await;
    w.becomes("a1 Stopped 0/1").await;
}

#[tokio::test]
async fn falling_over_is_no_use_of_a_gpu() {
    let w = World::new(nodes(1, 1), &[1]).await;
    idle_limits(&w, [200, 999, 999]).await;
    w.submit(1, with(training("a1", 1), |pod| pod.restart = Restart::OnFailure)).await;
    w.becomes("a1 Running 1/1").await;
    looks(&w, 9, &[Some(0)]).await;
    w.engine.end(w.engine.run_of("a1").key, Exit::Code(1));
    w.until("its end", |view| view.workloads.values().any(|a1| a1.pods[0].last_exit.is_some()))
        .await;
    w.clock.advance_ms(15_000);
    w.becomes("a1 Running 1/1").await;
    looks(&w, 8, &[Some(0)]).await;
    w.becomes("a1 Stopped 0/1").await;
}

#[tokio::test]
async fn limits_on_idle_gpus_go_by_kind_and_what_is_not_measured_is_not_idle() {
    let w = World::new(nodes(1, 4), &[4]).await;
    idle_limits(&w, [9000, 900, 60]).await;
    let preemptible = WorkloadSpec { preemptible: true, ..workspace("p1", 1) };
    for spec in [training("t1", 1), workspace("w1", 1), preemptible, workspace("cpu", 0)] {
        w.submit(1, spec).await;
    }
    let all = "t1 Running 1/1\nw1 Running 1/1\np1 Running 1/1\ncpu Running 0/0";
    w.becomes(all).await;
    looks(&w, 15, &[None; 4]).await;
    w.becomes(all).await;
    looks(&w, 15, &[Some(0); 4]).await;
    w.becomes("t1 Running 1/1\nw1 Running 1/1\np1 Stopped 0/1\ncpu Running 0/0").await;
    looks(&w, 60, &[Some(0); 4]).await;
    w.becomes("t1 Running 1/1\nw1 Stopped 0/1\np1 Stopped 0/1\ncpu Running 0/0").await;
}
