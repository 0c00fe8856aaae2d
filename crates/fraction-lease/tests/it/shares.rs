//! Shares on a virtual clock: a device that runs one kernel at a time, and runs that launch.

use std::collections::BTreeMap;

use fraction_lease::{Demand, Policy, Schedule, Share};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const QUANTUM: u64 = 50 * MS;
/// How often the agent looks while something is under way.
const LOOK: u64 = MS / 4;

/// A run that launches kernels as soon as it may, in some part of the time.
#[derive(Debug, Clone, Copy)]
struct Load {
    share: Share,
    kernel_ns: u64,
    /// When it wants the device: from, to.
    from_ns: u64,
    to_ns: u64,
}

fn always(millionths: u32, policy: Policy, kernel_ns: u64) -> Load {
    Load { share: Share { millionths, policy }, kernel_ns, from_ns: 0, to_ns: u64::MAX }
}

/// Nanoseconds of the device that each run had in a time.
fn play(loads: &[Load], ns: u64) -> Vec<u64> {
    let mut schedule = Schedule::new(QUANTUM, 1000 * MS);
    let numbered = || (0_u64..).zip(loads);
    for (run, load) in numbered() {
        schedule.set(run, load.share);
    }
    // Until when the last kernel of each run is under way.
    let mut until = BTreeMap::new();
    let mut had = vec![0; loads.len()];
    for now in (0..ns).step_by(usize::try_from(LOOK).unwrap()) {
        let wants = |load: &Load| (load.from_ns..load.to_ns).contains(&now);
        let demand = |run: u64| Demand {
            wants: loads.get(usize::try_from(run).unwrap()).is_some_and(wants),
            busy: until.get(&run).is_some_and(|until| *until > now),
        };
        let holder = schedule.advance(now, demand);
        for (run, load) in numbered().filter(|(run, load)| holder == Some(*run) && wants(load)) {
            // It launches what keeps the device busy until the agent looks again.
            let end = until.entry(run).or_insert(0_u64);
            let begin = (*end).max(now);
            *end = begin
                + (now + LOOK).saturating_sub(begin).div_ceil(load.kernel_ns) * load.kernel_ns;
            had[usize::try_from(run).unwrap()] += *end - begin;
        }
    }
    had
}

/// Hundredths of per cent of the time.
fn points(had: u64, ns: u64) -> u64 {
    had * 10_000 / ns
}

#[test]
fn failure_11_runs_that_always_want_the_device_have_their_shares_within_a_point() {
    const NS: u64 = 20_000 * MS;
    for policy in [Policy::Strict, Policy::Fair] {
        for kernel in [MS / 4, 7 * MS] {
            for shares in [&[50, 50][..], &[30, 70], &[10, 90], &[20, 30, 50], &[5, 5, 40, 50]] {
                let loads: Vec<_> =
                    shares.iter().map(|share| always(share * 10_000, policy, kernel)).collect();
                let had = play(&loads, NS);
                for (had, share) in had.iter().zip(shares) {
                    let off = points(*had, NS).abs_diff(u64::from(*share) * 100);
                    assert!(off <= 100, "{policy:?} {kernel} {shares:?}: {had} is off by {off}");
                }
                assert!(points(had.iter().sum(), NS) >= 9800, "{policy:?} {kernel} {shares:?}");
            }
        }
    }
}

#[test]
fn a_long_kernel_is_charged_to_the_run_that_launched_it() {
    const NS: u64 = 120_000 * MS;
    let loads = [always(500_000, Policy::Fair, 400 * MS), always(500_000, Policy::Fair, MS)];
    for had in play(&loads, NS) {
        assert!(points(had, NS).abs_diff(5000) <= 100, "{had}");
    }
}

#[test]
fn a_fair_run_alone_has_the_device_and_a_strict_one_its_share() {
    const NS: u64 = 30_000 * MS;
    let idle = |policy| Load { from_ns: u64::MAX, ..always(700_000, policy, MS) };
    let had = play(&[always(300_000, Policy::Fair, MS), idle(Policy::Fair)], NS);
    assert!(points(had[0], NS) >= 9800, "{had:?}");
    let had = play(&[always(300_000, Policy::Strict, MS), idle(Policy::Fair)], NS);
    assert!(points(had[0], NS).abs_diff(3000) <= 100, "{had:?}");
    let had = play(&[always(300_000, Policy::Strict, MS)], NS);
    assert!(points(had[0], NS).abs_diff(3000) <= 100, "{had:?}");
}

#[test]
fn a_fair_run_has_what_strict_ones_leave() {
    const NS: u64 = 60_000 * MS;
    let loads = [always(300_000, Policy::Strict, MS), always(200_000, Policy::Fair, MS)];
    let had = play(&loads, NS);
    assert!(points(had[0], NS).abs_diff(3000) <= 100, "{had:?}");
    assert!(points(had[1], NS).abs_diff(7000) <= 100, "{had:?}");
}

#[test]
fn lent_time_comes_back_within_a_quantum_and_a_kernel() {
    let kernel = 20 * MS;
    let other = |from_ns| Load { from_ns, ..always(500_000, Policy::Fair, MS) };
    for from in (1000 * MS..1100 * MS).step_by(7_000_000) {
        let within = from + QUANTUM + kernel + 2 * LOOK;
        let had = play(&[always(500_000, Policy::Fair, kernel), other(from)], within);
        assert!(had[1] > 0, "from {from}");
    }
}

#[test]
fn idle_time_is_not_saved_up() {
    const NS: u64 = 20_000 * MS;
    for policy in [Policy::Strict, Policy::Fair] {
        let late = Load { from_ns: NS / 2, ..always(500_000, policy, MS) };
        let had = play(&[always(500_000, policy, MS), late], NS);
        assert!(points(had[1], NS / 2).abs_diff(5000) <= 100, "{policy:?} {had:?}");
    }
}

#[test]
fn a_run_that_is_removed_or_says_that_it_is_busy_for_ever_stops_none_for_long() {
    let mut schedule = Schedule::new(QUANTUM, 1000 * MS);
    let share = Share { millionths: 500_000, policy: Policy::Fair };
    schedule.set(1, share);
    assert!(schedule.needs_no_turns());
    schedule.set(2, share);
    assert!(!schedule.needs_no_turns());
    let wants = |_| Demand { wants: true, busy: true };
    assert_eq!(schedule.advance(0, wants), Some(1));
    assert_eq!(schedule.advance(QUANTUM - 1, wants), Some(1));
    assert_eq!(schedule.advance(QUANTUM, wants), None);
    assert!(schedule.is_between());
    assert_eq!(schedule.advance(QUANTUM + 1000 * MS - 1, wants), None);
    assert_eq!(schedule.advance(QUANTUM + 1000 * MS, wants), Some(2));
    schedule.remove(2);
    assert_eq!(schedule.advance(QUANTUM + 1001 * MS, wants), Some(1));
    // Time that goes back changes nothing.
    assert_eq!(schedule.advance(0, wants), Some(1));
}

fn loads() -> impl Strategy<Value = Vec<Load>> {
    let load = (1..100_u32, any::<bool>(), 1..8_u64, 0..4_u64, 0..4_u64);
    prop::collection::vec(load, 1..5).prop_map(|all| {
        let whole: u32 = all.iter().map(|(share, ..)| share).sum();
        let load = |&(share, strict, kernel, from, length): &(u32, bool, u64, u64, u64)| Load {
            share: Share {
                millionths: share * 1_000_000 / whole,
                policy: if strict { Policy::Strict } else { Policy::Fair },
            },
            kernel_ns: kernel * MS,
            from_ns: from * 5000 * MS,
            to_ns: if length == 0 { u64::MAX } else { (from + length) * 5000 * MS },
        };
        all.iter().map(load).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 25, failure_persistence: None, ..Default::default() })]

    #[test]
    fn whoever_wants_its_share_has_it_and_no_strict_run_has_more(loads in loads()) {
        const NS: u64 = 20_000 * MS;
        let had = play(&loads, NS);
        for (load, had) in loads.iter().zip(had) {
            let wanted = load.to_ns.min(NS).saturating_sub(load.from_ns.min(NS));
            let share = wanted / 1000 * u64::from(load.share.millionths) / 1000;
            // A turn more or less at each end, and of each other run.
            let slack = 5 * (QUANTUM + 10 * MS) + wanted / 100;
            prop_assert!(had + slack >= share, "{load:?} had {had} of {share}");
            if load.share.policy == Policy::Strict {
                prop_assert!(had <= share + slack, "{load:?} had {had} of {share}");
            }
        }
    }
}
