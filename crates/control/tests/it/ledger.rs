//! The ledger of GPUs: it records every allocation, whatever happens.

use std::collections::{BTreeMap, BTreeSet};

use control::Clock as _;
use engine::{Exit, GpuUse, Measured};
use spec::{GpuRequest, NodeSpec, WorkloadSpec};
use units::Instant;
use view::{PodState, PodView, View};

use crate::chaos::Dice;
use crate::world::{World, elastic, nodes, training, with};

const HOUR_MS: u64 = 3_600_000;

/// Project, owner, model.
type Key = (u64, String, String);
type Held = BTreeMap<Key, u64>;

/// Two nodes with different GPUs.
fn two_models() -> Vec<NodeSpec> {
    let mut both = nodes(2, 2);
    both[1].gpu_type = "H100".to_owned();
    both
}

/// Allocated GPUs by the view, in thousandths.
fn held(view: &View) -> Held {
    let mut held = Held::new();
    for workload in view.workloads.values() {
        for pod in &workload.pods {
            let node = view.nodes.iter().find(|node| Some(&node.name) == pod.node_name.as_ref());
            let Some(node) = node.filter(|_| pod.state.holds_place()) else { continue };
            let owner = workload.spec.submitted_by.clone();
            let key = (workload.project_id, owner, node.gpu_type.clone());
            *held.entry(key).or_default() += pod.gpus.iter().map(|(_, millis)| millis).sum::<u64>();
        }
    }
    held
}

/// Waits until all that was begun is done.
async fn settle(w: &World) {
    let done = |view: &View| {
        use PodState::{Reserved, Running, Starting, Terminating};
        let pods = || view.workloads.values().flat_map(|workload| &workload.pods);
        let pauses = |pod: &PodView| pod.state == Starting && pod.last_exit.is_some();
        let restless = |pod: &PodView| matches!(pod.state, Starting | Terminating | Reserved);
        let running = pods().filter(|pod| pod.state == Running).count();
        !pods().any(|pod| restless(pod) && !pauses(pod)) && running == w.engine.alive().len()
    };
    loop {
        w.until("settled", done).await;
        w.decided().await;
        if done(&w.handle.view()) {
            return;
        }
    }
}

/// Allocated GPU time by the ledger, in thousandths of GPUs times milliseconds.
async fn ledger(w: &World, from: u64, until: u64) -> Held {
    let rows = w.handle.ledger(Instant(from), Instant(until)).await.unwrap();
    let rows = rows.into_iter().filter(|row| row.allocated > 0);
    rows.map(|row| ((row.project_id, row.owner, row.gpu_model), row.allocated)).collect()
}

/// Allocations by the view, each with its start and end.
struct Seen(Vec<(u64, u64, Held)>);

impl Seen {
    /// The integral over a time.
    fn sum(&self, from: u64, until: u64) -> Held {
        let mut sum = Held::new();
        for (start, end, held) in &self.0 {
            let ms = (*end.min(&until)).saturating_sub(*start.max(&from));
            for (key, millis) in held {
                *sum.entry(key.clone()).or_default() += millis * ms;
            }
        }
        sum.retain(|_, amount| *amount > 0);
        sum
    }
}

/// Changes the allocation at random.
async fn step(w: &mut World, dice: &mut Dice, names: &mut BTreeSet<String>, count: u64) {
    let index = usize::try_from(dice.roll(names.len().max(1) as u64)).unwrap();
    let some = names.iter().nth(index).cloned();
    match (dice.roll(8), some) {
        (0..3, _) | (_, None) => {
            let name = format!("w{count}");
            let gpus = u32::try_from(1 + dice.roll(3)).unwrap();
            let spec = match dice.roll(4) {
                0 => elastic(&name, gpus),
                1 => with(training(&name, 1), |pod| {
                    pod.gpu = GpuRequest::share(1, 300);
                }),
                _ => training(&name, gpus),
            };
            let owner = ["ann", "bob"][usize::try_from(dice.roll(2)).unwrap()];
            let spec = WorkloadSpec { submitted_by: owner.to_owned(), ..spec };
            // One that can never fit is refused, which is fine.
            if w.handle.submit(1 + dice.roll(2), spec, false).await.is_ok() {
                names.insert(name);
            }
        }
        (3, Some(name)) => {
            w.delete(&name).await;
            names.remove(&name);
        }
        (4, Some(name)) => {
            // Refused when it has ended.
            let _ = w.handle.suspend("ann", w.id(&name)).await;
        }
        (5, Some(name)) => {
            let _ = w.handle.resume("ann", w.id(&name)).await;
        }
        (6, Some(name)) => {
            if w.engine.alive().iter().any(|(alive, _)| *alive == name) {
                let exits = [Exit::Code(0), Exit::Code(1), Exit::Lost];
                let exit = exits[usize::try_from(dice.roll(3)).unwrap()].clone();
                w.engine.end(w.engine.run_of(&name).key, exit);
            }
        }
        _ => w.restart().await,
    }
}

async fn history(seed: u64) {
    let mut w = World::new(two_models(), &[2, 2]).await;
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (mut seen, mut names) = (Seen(Vec::new()), BTreeSet::new());
    for count in 0..40 {
        step(&mut w, &mut dice, &mut names, count).await;
        settle(&w).await;
        let (start, now_held) = (w.clock.now().0, held(&w.handle.view()));
        // Sometimes the server is down meanwhile; allocated GPUs stay allocated.
        let away = dice.roll(6) == 0;
        if away {
            w.crash().await;
        }
        w.clock.advance_ms(dice.roll(HOUR_MS));
        seen.0.push((start, w.clock.now().0, now_held));
        if away {
            w.start().await;
        }
        settle(&w).await;
    }
    let (first, last) = (seen.0[0].0, w.clock.now().0);
    assert!(!seen.sum(first, last).is_empty(), "seed {seed}: nothing was ever held");
    assert_eq!(ledger(&w, 0, last).await, seen.sum(0, last), "seed {seed}");
    for _ in 0..10 {
        let (a, b) = (first + dice.roll(last - first), first + dice.roll(last - first));
        let (from, until) = (a.min(b), a.max(b) + 1);
        assert_eq!(ledger(&w, from, until).await, seen.sum(from, until), "seed {seed} {from}");
    }
}

/// More histories on demand: `ELASTANE_SEEDS=500 cargo test -p elastane-control ledger`.
#[tokio::test]
async fn the_ledger_is_the_integral_of_what_was_held() {
    let seeds = std::env::var("ELASTANE_SEEDS").map_or(2, |count| count.parse().unwrap());
    for seed in 1..=seeds {
        history(seed).await;
    }
}

#[tokio::test]
async fn what_is_used_is_booked_once_and_only_where_it_is_measured() {
    let mut w = World::new(two_models(), &[2]).await;
    w.until("a sample", |_| w.handle.sample().at.0 > 0).await;
    w.submit(1, training("a", 1)).await;
    w.submit(1, training("b", 1)).await;
    w.becomes("a Running 1/1\nb Running 1/1").await;
    // The driver reports only one of the two GPUs.
    let uuid = w.engine.run_of("a").devices[0].uuid.clone();
    let gpu = GpuUse { uuid, busy_millis: Some(250), memory_bytes: Some(4 << 30) };
    w.engine.uses(Measured { runs: Vec::new(), gpus: vec![gpu] });
    for _ in 0..4 {
        w.clock.advance_ms(15_000);
        let now = w.clock.now();
        w.until("a sample", |_| w.handle.sample().at == now).await;
    }
    let book = async |w: &World| {
        let rows = w.handle.ledger(Instant(0), w.clock.now()).await.unwrap();
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert!(row.memory_measured > row.memory_used, "{row:?}");
        (row.allocated, row.measured, row.used, row.memory_used)
    };
    let want = (2 * 60_000_000, 60_000_000, 15_000_000, 4096 * 60_000);
    assert_eq!(book(&w).await, want);
    w.restart().await;
    assert_eq!(book(&w).await, want, "nothing is booked twice");
    // While the server was down there were no measurements: allocated, but not measured.
    w.crash().await;
    w.clock.advance_ms(600_000);
    w.start().await;
    let (allocated, measured, ..) = book(&w).await;
    assert_eq!((allocated, measured), (2 * 660_000_000, want.1));
}
