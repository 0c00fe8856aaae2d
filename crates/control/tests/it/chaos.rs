//! Seeded random histories with crashes of the whole service: its threads, its database, its
//! executor. After every one of them each acknowledged workload is there once, no GPU was ever in
//! use twice, no run exists that should not, and no run is missing. The histories of `sim` test the
//! rules of the state machine, a hundred times more of them.

use std::collections::BTreeSet;

use engine::Exit;
use spec::{GpuRequest, WorkloadSpec};
use view::{Phase, PodState, PodView};

use crate::world::{World, distributed, elastic, nodes, training, with, workspace};

/// Xorshift: enough to vary histories, and the same everywhere.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn any_workload(dice: &mut Dice, name: &str) -> WorkloadSpec {
    let gpus = u32::try_from(1 + dice.roll(2)).unwrap();
    match dice.roll(6) {
        5 => distributed(name, 1),
        0 => elastic(name, gpus),
        1 => workspace(name, 1),
        2 => with(training(name, 1), |pod| pod.gpu = GpuRequest::share(1, 400)),
        _ => training(name, gpus),
    }
}

/// One step; `named` are the workloads whose submission was acknowledged and deletion not asked.
async fn step(w: &mut World, dice: &mut Dice, named: &mut BTreeSet<String>, count: u64) {
    let pick = |dice: &mut Dice, named: &BTreeSet<String>| {
        let index = usize::try_from(dice.roll(named.len().max(1) as u64)).unwrap();
        named.iter().nth(index).cloned()
    };
    match dice.roll(15) {
        0..5 => {
            let name = format!("w{count}");
            let spec = any_workload(dice, &name);
            if w.handle.submit(1 + dice.roll(2), spec, false).await.is_ok() {
                named.insert(name);
            }
        }
        5..7 => {
            if let Some(name) = pick(dice, named) {
                w.delete(&name).await;
                named.remove(&name);
            }
        }
        7 => {
            if let Some(name) = pick(dice, named) {
                // Refused when it has ended, which is fine.
                let _ = w.handle.suspend("alice", w.id(&name)).await;
                let _ = w.handle.resume("alice", w.id(&name)).await;
            }
        }
        8 => {
            let alive = w.engine.alive();
            if !alive.is_empty() {
                let index = usize::try_from(dice.roll(alive.len() as u64)).unwrap();
                let key = w.engine.run_of(&alive[index].0).key;
                let exits = [Exit::Code(0), Exit::Code(1), Exit::Signal(9), Exit::Lost];
                let exit = exits[usize::try_from(dice.roll(4)).unwrap()].clone();
                w.engine.end(key, exit);
            }
        }
        9 => w.clock.advance_ms(1000 * dice.roll(20)),
        10 => {
            w.engine.stubborn(dice.roll(2) == 0);
            w.engine.deaf(dice.roll(3) == 0);
        }
        13 => {
            let (node, gpu) = any_gpu(dice);
            w.handle.fail_gpu("admin", &node, gpu).await.unwrap();
        }
        14 => {
            let (node, gpu) = any_gpu(dice);
            w.handle.heal_gpu("admin", &node, gpu).await.unwrap();
        }
        11 => {
            w.refuse_events(true).await;
            let refused = w.handle.submit(1, training("never", 1), false).await;
            assert!(refused.is_err());
            w.refuse_events(false).await;
        }
        _ => {
            w.crash().await;
            w.engine.deaf(false);
            w.start().await;
        }
    }
}

fn any_gpu(dice: &mut Dice) -> (String, u32) {
    (format!("node-{}", 1 + dice.roll(2)), u32::try_from(dice.roll(2)).unwrap())
}

/// Nothing runs on a GPU that has failed.
fn nobody_is_on_failed_gpus(view: &view::View, seed: u64) {
    for node in &view.nodes {
        let sound = |(at, used): (u32, &u64)| *used == 0 || !node.gpu_faults.contains_key(&at);
        let all = (0..).zip(&node.gpu_used_millis).all(sound);
        assert!(all, "seed {seed}: {} {:?} {:?}", node.name, node.gpu_used_millis, node.gpu_faults);
    }
}

async fn history(seed: u64) {
    let mut w = World::new(nodes(2, 2), &[2, 1]).await;
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut named = BTreeSet::new();
    for count in 0..40 {
        step(&mut w, &mut dice, &mut named, count).await;
    }
    // The storm is over: one more crash, all stops go through, all delays pass.
    w.engine.deaf(false);
    w.restart().await;
    w.engine.let_go();
    let settled = |v: &view::View| {
        let quiet =
            |phase| !matches!(phase, Phase::Deleting | Phase::Initializing | Phase::Stopping);
        let over = |code: &str| !["P302", "P308"].contains(&code);
        v.workloads.values().all(|w| quiet(w.phase) && v.why(w).iter().all(|r| over(&r.code)))
    };
    for _ in 0..10 {
        w.clock.advance_ms(400_000);
        w.until(&format!("settled (seed {seed})"), settled).await;
    }
    let view = w.handle.view();
    nobody_is_on_failed_gpus(&view, seed);
    let mut listed: Vec<_> = view.workloads.values().map(|w| w.spec.name.clone()).collect();
    listed.sort();
    assert_eq!(listed, named.into_iter().collect::<Vec<_>>(), "seed {seed}");
    let running = view.workloads.values().filter(|w| w.phase == Phase::Running);
    let runs = |pod: &&PodView| pod.state == PodState::Running;
    let mut running: Vec<_> = running
        .flat_map(|w| w.pods.iter().filter(runs).map(|pod| (w.spec.name.clone(), pod.generation)))
        .collect();
    running.sort();
    assert_eq!(running, w.engine.alive(), "seed {seed}");
    assert!(w.engine.most_in_use() <= 1000, "seed {seed}: a GPU was in use twice");
    for waiting in view.workloads.values().filter(|w| w.phase == Phase::Pending) {
        assert!(!view.why(waiting).is_empty(), "seed {seed}: {} has no reason", waiting.spec.name);
    }
}

/// More histories on demand: `ELASTANE_SEEDS=500 cargo test -p elastane-control chaos`.
#[tokio::test]
async fn random_histories_with_crashes_end_well() {
    let seeds = std::env::var("ELASTANE_SEEDS").map_or(4, |count| count.parse().unwrap());
    for seed in 1..=seeds {
        history(seed).await;
    }
}
