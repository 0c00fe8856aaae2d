//! Random histories keep every invariant, and the script of one repeats it.

#[test]
fn random_histories_keep_every_invariant() {
    let policy = sim::scenario::Policy::default();
    keep_every_invariant(&policy);
    assert_eq!(sim::faults::run(7, 40, &policy), sim::faults::run(7, 40, &policy));
}

#[test]
fn so_do_those_of_profile_kai() {
    let profile = Some(sim::scenario::Profile::Kai);
    keep_every_invariant(&sim::scenario::Policy { profile, ..Default::default() });
}

fn keep_every_invariant(policy: &sim::scenario::Policy) {
    let mut all = sim::faults::Tally::default();
    for seed in 0..40 {
        match sim::faults::run(seed, 40, policy) {
            Ok(tally) => all += tally,
            Err(broken) => panic!("seed {seed}: {}\n{}", broken.fault, broken.script),
        }
    }
    assert_eq!(all.steps, 40 * 40);
    assert!(all.starts > 100 && all.stops > 20, "too little happens: {all:?}");
}

#[test]
fn what_the_policy_does_not_say_is_drawn() {
    let profile = Some(sim::scenario::Profile::Kai);
    let kai = sim::scenario::Policy { profile, ..Default::default() };
    let all: String = (0..40).map(|seed| sim::faults::script(seed, 0, &kai)).collect();
    for knob in ["\"over_quota\"", "\"placement\"", "\"usage\"", "\"reserve_after\""] {
        assert!(all.contains(knob), "{knob} is never drawn");
    }
}
