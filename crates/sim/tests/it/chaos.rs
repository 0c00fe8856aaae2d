//! The control plane keeps every invariant in random histories.

#![expect(clippy::unwrap_used, reason = "in a test, an error that is not expected is a panic")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use sched::Policy;
use sim::chaos::{self, Broken, Tally};

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |text| text.parse().unwrap())
}

/// Number of failing seeds after which no more are run.
const FAILURES_MAX: usize = 8;

/// Runs the histories of these seeds, on all cores.
fn run(first: u64, count: u64, policy: &Policy) -> Tally {
    let next = AtomicU64::new(first);
    let failed = Mutex::new(Vec::new());
    let work = || {
        let mut all = Tally::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count || failed.lock().unwrap().len() >= FAILURES_MAX {
                return all;
            }
            match chaos::run(seed, 60, policy) {
                Ok(tally) => all += tally,
                Err(broken) => {
                    let Broken { step, fault, history } = *broken;
                    let text = format!("seed {seed}, step {step}: {fault}\n{history}");
                    failed.lock().unwrap().push((seed, text));
                }
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut all = Tally::default();
        threads.into_iter().for_each(|thread| all += thread.join().unwrap());
        all
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort_unstable();
    let (seeds, texts): (Vec<_>, Vec<_>) = failed.into_iter().unzip();
    assert!(seeds.is_empty(), "{}\nthe histories of these seeds fail: {seeds:?}", texts.join("\n"));
    all
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
fn so_do_those_of_profile_kai() {
    let count = number("ELASTANE_SEEDS", 500) / 5;
    let all = run(number("ELASTANE_SEED", 1), count, &Policy::kai().unwrap());
    assert!(all.crashes > count && all.starts > count, "too little happens: {all:?}");
}

#[test]
fn a_seed_always_has_the_same_history() {
    let policy = Policy::default();
    assert_eq!(run(1, 10, &policy), run(1, 10, &policy));
    assert_ne!(run(1, 10, &policy).digest, run(11, 10, &policy).digest);
}
