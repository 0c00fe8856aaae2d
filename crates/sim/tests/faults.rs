//! Random histories keep every invariant, and the script of one repeats it.

#[test]
fn random_histories_keep_every_invariant() {
    let policy = sim::scenario::Policy::default();
    let mut all = sim::faults::Tally::default();
    for seed in 0..40 {
        match sim::faults::run(seed, 40, &policy) {
            Ok(tally) => all += tally,
            Err(broken) => panic!("seed {seed}: {}\n{}", broken.fault, broken.script),
        }
    }
    assert_eq!(all.steps, 40 * 40);
    assert!(all.starts > 100 && all.stops > 20, "too little happens: {all:?}");
    assert_eq!(sim::faults::run(7, 40, &policy), sim::faults::run(7, 40, &policy));
}
