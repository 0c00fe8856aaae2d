//! A timing model of synchronous training: a worker computes for 20 ms and then does something else
//! for 3 ms, each 30 % more or less at random. The 3 ms were chosen once; all published figures
//! follow. A bench prints it beside real trainings.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use elastic::{Gate, Mode, Push, Verdict, WorkerId};
use proptest::prelude::RngExt as _;
use proptest::test_runner::{RngAlgorithm, TestRng};

pub(crate) const SEEDS: std::ops::RangeInclusive<u64> = 1..=100;
const MINIBATCHES: u64 = 150;
pub(crate) const COMPUTE_US: u64 = 20_000;
const BETWEEN_US: u64 = 3_000;

/// Next step of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Pulls the model.
    Pull,
    /// Pushes a gradient computed on this version.
    Push(u64),
}

/// A training: gradients that counted, that were thrown away, and when it ended.
pub(crate) struct Training {
    pub(crate) counted: u64,
    pub(crate) rejected: u64,
    pub(crate) end_us: u64,
}

impl Training {
    pub(crate) fn rejected_percent(&self) -> f64 {
        100.0 * self.rejected as f64 / (self.counted + self.rejected) as f64
    }
}

/// Trains until all minibatches count. `waits`: a worker computes only what has a place in the next
/// update.
pub(crate) fn train(workers: u32, gradients: u32, waits: bool, seed: u64) -> Training {
    train_in(Mode::Synchronous { gradients, tolerance: 0 }, workers, waits, seed)
}

pub(crate) fn train_in(mode: Mode, workers: u32, waits: bool, seed: u64) -> Training {
    let seed: Vec<u8> = seed.to_le_bytes().into_iter().cycle().take(16).collect();
    let mut random = TestRng::from_seed(RngAlgorithm::XorShift, &seed);
    let mut about = |us: u64| random.random_range(us * 7 / 10..=us * 13 / 10);
    let mut gate = Gate::new(mode, 0);
    let mut next: BinaryHeap<_> =
        (0..workers).map(|worker| Reverse((about(COMPUTE_US), worker, Step::Pull))).collect();
    let mut sequences = vec![1; workers as usize];
    let (mut waiting, mut open) = (Vec::new(), MINIBATCHES - u64::from(workers));
    let mut training = Training { counted: 0, rejected: 0, end_us: 0 };
    while let Some(Reverse((now_us, worker, step))) = next.pop() {
        match step {
            Step::Pull if waits && !gate.admit(WorkerId(worker)) => waiting.push(worker),
            Step::Pull => {
                let push = Step::Push(gate.version());
                next.push(Reverse((now_us + about(COMPUTE_US), worker, push)));
            }
            Step::Push(version) => {
                let sequence = sequences[worker as usize];
                let push = Push { worker: WorkerId(worker), generation: 0, sequence, version };
                let verdict = gate.push(push);
                if matches!(verdict, Verdict::Stale { .. }) {
                    training.rejected += 1;
                    next.push(Reverse((now_us, worker, Step::Pull)));
                    continue;
                }
                assert!(matches!(verdict, Verdict::Held { .. } | Verdict::Update { .. }));
                training.counted += 1;
                training.end_us = now_us;
                sequences[worker as usize] += 1;
                if open > 0 {
                    open -= 1;
                    next.push(Reverse((now_us + about(BETWEEN_US), worker, Step::Pull)));
                }
                for worker in waiting.drain(..) {
                    next.push(Reverse((now_us, worker, Step::Pull)));
                }
            }
        }
    }
    gate.flush();
    assert_eq!(training.counted, MINIBATCHES, "each minibatch counts once");
    training
}

/// Savings of waiting: seconds of computing of a training, and its end with and without waiting.
pub(crate) fn saved(workers: u32, gradients: u32) -> [f64; 3] {
    let [mut thrown, mut ours_us, mut published_us] = [0, 0, 0];
    for seed in SEEDS {
        let (published, ours) =
            (train(workers, gradients, false, seed), train(workers, gradients, true, seed));
        assert_eq!(ours.rejected, 0);
        thrown += published.rejected;
        published_us += published.end_us;
        ours_us += ours.end_us;
    }
    [thrown * COMPUTE_US, ours_us, published_us].map(|us| us as f64 / 1e8)
}
