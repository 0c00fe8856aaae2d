//! The control plane keeps every invariant, whatever happens.

#![expect(clippy::unwrap_used, reason = "in a test, an error that is not expected is a panic")]

use std::sync::atomic::{AtomicU64, Ordering};

use sched::Policy;
use sim::chaos::{self, Tally};

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |text| text.parse().unwrap())
}

/// The histories of these seeds, on all cores.
fn run(first: u64, count: u64, policy: &Policy) -> Tally {
    let next = AtomicU64::new(first);
    let work = || {
        let mut all = Tally::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return all;
            }
            match chaos::run(seed, 60, policy) {
                Ok(tally) => all += tally,
                Err(broken) => {
                    panic!(
                        "seed {seed}, step {}: {}\n{}",
                        broken.step, broken.fault, broken.history
                    )
                }
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut all = Tally::default();
        threads.into_iter().for_each(|thread| all += thread.join().unwrap());
        all
    })
}

/// `make soak` runs more: `ELASTANE_SEEDS` of them, from `ELASTANE_SEED` on.
#[test]
fn random_histories_end_well() {
    let count = number("ELASTANE_SEEDS", 500);
    let all = run(number("ELASTANE_SEED", 1), count, &Policy::default());
    println!("{count} histories: {all:?}");
    assert!(all.crashes > count && all.starts > 2 * count, "too little happens: {all:?}");
}

#[test]
fn a_seed_always_has_the_same_history() {
    let policy = Policy::default();
    assert_eq!(run(1, 10, &policy), run(1, 10, &policy));
    assert_ne!(run(1, 10, &policy).digest, run(11, 10, &policy).digest);
}
