//! Attacks on places that are kept through failures: work that fails again and again, after random
//! times, while other work waits for its GPUs.

use control::Clock as _;
use engine::Exit;
use spec::WorkloadSpec;
use view::{Phase, View};

use crate::world::{World, distributed, nodes, training, workspace};

/// Numbers that look random, the same for a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Lets a workload fail until it loses its place, and checks the time for which it held GPUs without
/// running.
async fn attack(seed: u64, spec: WorkloadSpec, gpus: u32) {
    let mut numbers = Numbers(seed);
    let w = World::new(nodes(1, gpus), &[u64::from(gpus)]).await;
    let name = spec.name.clone();
    w.submit(1, WorkloadSpec { backoff_limit: 99, ..spec }).await;
    w.phase(&name, Phase::Running).await;
    w.submit(1, training("waits", gpus)).await;
    let (mut idle_ms, mut ran_ms) = (0, 0);
    let is = |view: &View, phases: &[Phase]| {
        view.workloads.values().any(|one| one.spec.name == name && phases.contains(&one.phase))
    };
    for _ in 0..60 {
        let span_ms = numbers.below(20_000);
        w.clock.advance_ms(span_ms);
        ran_ms += span_ms;
        let run = w.engine.runs_of(&name).pop().expect("it runs");
        w.engine.end(run.key, Exit::Code(1));
        w.until("it has failed", |view| is(view, &[Phase::Initializing, Phase::Pending])).await;
        w.decided().await;
        let now = w.get(&name).unwrap();
        if now.phase == Phase::Pending {
            w.phase("waits", Phase::Running).await;
            let most_ms = 60_000 + ran_ms / 20;
            assert!(idle_ms <= most_ms, "{name}, seed {seed}: {idle_ms} of {most_ms} ms");
            assert!(idle_ms >= 20_000, "{name}, seed {seed}: short failures cost no place");
            return;
        }
        let at = now.pods.iter().filter_map(|pod| pod.restart_at).max().expect("it pauses");
        let pause_ms = at.since_ms(w.clock.now());
        w.clock.advance_ms(pause_ms);
        idle_ms += pause_ms;
        w.phase(&name, Phase::Running).await;
    }
    panic!("{name}, seed {seed}: it keeps its place for ever");
}

#[tokio::test]
async fn a_crash_loop_of_any_kind_idles_no_gpu_for_more_than_a_minute_and_a_twentieth() {
    for seed in 0..4 {
        attack(seed, training("training", 1), 1).await;
        attack(seed, workspace("workspace", 2), 2).await;
        attack(seed, distributed("gang", 1), 2).await;
    }
}
