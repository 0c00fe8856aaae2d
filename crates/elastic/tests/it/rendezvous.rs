//! Groups of workers that train together.

use elastic::{Rendezvous, WorkerId, World, WorldLimits};
use proptest::prelude::*;
use units::Instant;

const LIMITS: WorldLimits =
    WorldLimits { min: 2, max: 4, unit: 1, first_ms: 30_000, gather_ms: 500 };

fn started(limits: WorldLimits, workers: std::ops::Range<u32>) -> Rendezvous {
    let mut all = Rendezvous::new(limits).expect("sizes");
    workers.for_each(|worker| all.join(WorkerId(worker), Instant(0)));
    all.turn(Instant(limits.first_ms));
    all
}

fn members(all: &Rendezvous) -> Vec<u32> {
    all.world().members.iter().map(|worker| worker.0).collect()
}

#[test]
fn a_first_world_begins_when_full_or_after_a_while_with_enough() {
    let mut all = Rendezvous::new(LIMITS).expect("sizes");
    all.join(WorkerId(0), Instant(0));
    assert_eq!((all.wake_at(), all.turn(Instant(60_000))), (None, None));
    all.join(WorkerId(1), Instant(60_000));
    assert_eq!(all.wake_at(), Some(Instant(90_000)));
    assert_eq!(members(&started(LIMITS, 0..4)), [0, 1, 2, 3]);
    let mut full = Rendezvous::new(LIMITS).expect("sizes");
    (0..4).for_each(|worker| full.join(WorkerId(worker), Instant(0)));
    assert!(full.turn(Instant(0)).is_some());
}

#[test]
fn who_is_gone_leaves_at_once_and_the_others_keep_their_order() {
    let mut all = started(LIMITS, 0..4);
    all.leave(WorkerId(1));
    assert_eq!(all.turn(Instant(40_000)).map(|world| world.generation), Some(2));
    assert_eq!(members(&all), [0, 2, 3]);
}

#[test]
fn a_member_that_begins_again_changes_the_world_and_no_rank() {
    let mut all = started(LIMITS, 0..3);
    all.renew(WorkerId(9));
    assert_eq!(all.turn(Instant(40_000)), None, "it is no member");
    all.renew(WorkerId(1));
    assert_eq!(all.turn(Instant(40_000)).map(|world| world.generation), Some(2));
    assert_eq!(members(&all), [0, 1, 2]);
}

#[test]
fn a_world_that_was_decided_before_goes_on_unless_a_member_is_gone() {
    let world = World { generation: 7, members: [4, 2].map(WorkerId).to_vec() };
    let resumed = |is_whole| Rendezvous::resume(LIMITS, world.clone(), is_whole).expect("sizes");
    assert_eq!(resumed(true).turn(Instant(0)), None);
    let mut all = resumed(false);
    assert_eq!(all.turn(Instant(0)).map(|world| world.generation), Some(8));
    assert_eq!(members(&all), [4, 2]);
}

#[test]
fn two_hundred_joins_in_a_second_are_a_few_changes() {
    let limits = WorldLimits { max: 300, ..LIMITS };
    let mut all = started(limits, 0..2);
    let mut changes = 0;
    for worker in 2..202 {
        let now = Instant(40_000 + u64::from(worker) * 5);
        all.join(WorkerId(worker), now);
        changes += u32::from(all.turn(now).is_some());
    }
    changes += u32::from(all.turn(Instant(50_000)).is_some());
    assert_eq!((members(&all).len(), changes), (202, 2));
}

#[test]
fn sizes_are_multiples_and_the_rest_waits() {
    let all = started(WorldLimits { unit: 2, ..LIMITS }, 0..3);
    assert_eq!((members(&all), all.waiting().count()), (vec![0, 1], 1));
}

#[test]
fn with_too_few_left_there_is_no_world_until_enough_are_there_again() {
    let mut all = started(LIMITS, 0..2);
    all.leave(WorkerId(0));
    all.turn(Instant(40_000));
    assert_eq!((members(&all), all.waiting().count()), (vec![], 1));
    all.join(WorkerId(2), Instant(41_000));
    all.turn(Instant(80_000));
    assert_eq!(members(&all), [1, 2]);
}

#[test]
fn smaller_limits_send_the_youngest_to_wait() {
    let mut all = started(LIMITS, 0..4);
    all.limit(WorldLimits { max: 3, ..LIMITS }).expect("sizes");
    all.turn(Instant(40_000));
    assert_eq!((members(&all), all.waiting().count()), (vec![0, 1, 2], 1));
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let error = Rendezvous::new(WorldLimits { min: 5, max: 7, unit: 4, ..LIMITS }).expect_err("no");
    let text = "no multiple of unit 4 lies between min 5 and max 7, both at least 1";
    assert_eq!(error.to_string(), text);
}

proptest! {
    #[test]
    fn worlds_keep_their_sizes_and_order_and_no_worker_is_in_twice(
        steps in proptest::collection::vec((0..8_u32, any::<bool>(), 0..1_000_u64), 0..60),
        unit in 1..3_u32,
    ) {
        let mut all = Rendezvous::new(WorldLimits { unit, ..LIMITS }).expect("sizes");
        let (mut now, mut generation) = (0, 0);
        for (worker, joins, later) in steps {
            now += later;
            let before = members(&all);
            match joins {
                true => all.join(WorkerId(worker), Instant(now)),
                false => all.leave(WorkerId(worker)),
            }
            let changed = all.turn(Instant(now)).is_some();
            let after = members(&all);
            prop_assert_eq!(all.world().generation, generation + u64::from(changed));
            generation = all.world().generation;
            let size = u32::try_from(after.len()).expect("few");
            if changed {
                prop_assert!(size == 0 || (2..=4).contains(&size) && size % unit == 0);
            }
            let stayed: Vec<_> = before.iter().filter(|w| after.contains(w)).collect();
            let order: Vec<_> = after.iter().filter(|w| before.contains(w)).collect();
            prop_assert_eq!(stayed, order);
            let mut there: Vec<_> = all.waiting().map(|w| w.0).chain(after).collect();
            let count = there.len();
            there.sort_unstable();
            there.dedup();
            prop_assert_eq!(there.len(), count);
        }
    }
}
