//! Agents of `torchrun` in pods that come and go.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::*;
use crate::protocol::Store;

/// Agents, each with the last world it was in.
struct Agents {
    meeting: Meeting,
    seats: BTreeMap<u128, Option<Seat>>,
    now: u64,
    limits: (u32, u32),
}

/// The run of a pod; 101 is the second run of pod 1.
fn key(run: u128) -> RunKey {
    let generation = u32::try_from(run / 100).expect("few runs") + 1;
    RunKey { pod: Uuid::from_u128(run % 100), generation }
}

impl Agents {
    /// From one pod to three.
    fn new(pods: &[u128]) -> Self {
        let seats = pods.iter().map(|pod| (*pod, None)).collect();
        let mut all = Self { meeting: Meeting::default(), seats, now: 0, limits: (1, 3) };
        pods.iter().for_each(|pod| all.meeting.open(key(*pod), true, Instant(0)));
        all
    }

    fn begins(&mut self, pod: u128) {
        self.meeting.open(key(pod), true, Instant(self.now));
        self.seats.insert(pod, None);
    }

    /// It is stopped for another workload.
    fn is_lost(&mut self, pod: u128) {
        self.meeting.stop(key(pod));
        self.fails(pod);
    }

    fn fails(&mut self, pod: u128) {
        self.seats.remove(&pod);
        self.meeting.close(key(pod), Instant(self.now));
    }

    fn request(&self, pod: u128) -> Meet {
        let (min, max) = self.limits;
        let of = self.seats[&pod];
        let (arrives, done, leaves) = (false, false, false);
        Meet { min, max, unit: 1, wait_ms: 5000, of, arrives, store: None, done, leaves }
    }

    fn ask(&mut self, pod: u128, request: &Meet) -> World {
        self.meeting.meet(key(pod), request, Instant(self.now)).expect("an answer")
    }

    /// The world that a pod sees while its processes run.
    fn looks(&mut self, pod: u128) -> World {
        let request = self.request(pod);
        self.ask(pod, &request)
    }

    /// One that waits asks once, and opens the store if it is the first.
    fn arrives(&mut self, pod: u128) -> World {
        let request = Meet { arrives: true, ..self.request(pod) };
        let world = self.ask(pod, &request);
        if world.rank != Some(0) || world.store.is_some() {
            return world;
        }
        let generation = world.generation;
        let store = Some(Store { generation, address: format!("{pod}:{generation}") });
        self.ask(pod, &Meet { store, ..request })
    }

    /// It knows its place.
    fn takes(&mut self, pod: u128, world: &World) {
        let rank = world.rank.expect("a rank");
        let seat = Seat { generation: world.generation, rank, size: world.size };
        self.seats.insert(pod, Some(seat));
    }

    /// All wait until each has a place in one world. Returns its generation, its pods by rank, and
    /// its store.
    fn meet(&mut self) -> (u64, Vec<u128>, String) {
        let mut found = BTreeMap::new();
        for _ in 0..100 {
            for pod in self.seats.keys().copied().collect::<Vec<_>>() {
                if found.contains_key(&pod) {
                    continue;
                }
                let world = self.arrives(pod);
                if world.store.is_some() {
                    self.takes(pod, &world);
                    found.insert(pod, world);
                }
            }
            if found.len() == self.seats.len() {
                let first = found.values().next().expect("a pod").clone();
                let is_one = |world: &World| {
                    (world.generation, &world.store) == (first.generation, &first.store)
                };
                assert!(found.values().all(is_one), "{found:?}");
                let mut by_rank: Vec<_> = found.iter().map(|(pod, at)| (at.rank, *pod)).collect();
                by_rank.sort_unstable();
                let pods = by_rank.into_iter().map(|(_, pod)| pod).collect();
                return (first.generation, pods, first.store.expect("a store"));
            }
            self.now += 100;
        }
        panic!("they do not meet: {found:?}")
    }

    /// Another server takes over.
    fn next_server(&mut self) {
        self.meeting = Meeting::default();
        for pod in self.seats.keys() {
            self.meeting.open(key(*pod), false, Instant(self.now));
        }
    }
}

#[test]
fn the_others_go_on_without_the_first_and_another_joins_last() {
    let mut all = Agents::new(&[1, 2, 3]);
    let (first, ranks, _) = all.meet();
    assert!([1, 2, 3].iter().all(|pod| !all.looks(*pod).changed));
    let lost = ranks[0];
    all.is_lost(lost);
    assert!(all.looks(ranks[1]).changed && all.looks(ranks[2]).changed);
    let (second, left, store) = all.meet();
    assert_eq!((second, &left[..]), (first + 1, &ranks[1..]));
    assert_eq!(store, format!("{}:{second}", ranks[1]), "the next one has the store");
    all.begins(9);
    all.arrives(9);
    assert!(!all.looks(ranks[1]).changed, "joins are gathered");
    all.now += GATHER_MS;
    assert!(all.looks(ranks[1]).changed);
    assert_eq!(all.meet().1, [ranks[1], ranks[2], 9]);
}

#[test]
fn one_whose_processes_fail_has_all_begin_again_with_the_same_ranks() {
    let mut all = Agents::new(&[1, 2, 3]);
    let (first, ranks, _) = all.meet();
    assert_eq!(all.arrives(2).store, None);
    assert!(all.looks(1).changed && all.looks(3).changed);
    let (second, again, _) = all.meet();
    assert_eq!((second, again), (first + 1, ranks));
}

#[test]
fn a_world_needs_as_many_as_the_least() {
    let mut all = Agents::new(&[1, 2]);
    all.limits = (2, 2);
    let (first, ..) = all.meet();
    all.is_lost(1);
    assert!(all.looks(2).changed);
    all.now += 60_000;
    assert_eq!((all.arrives(2).rank, all.looks(2).size), (None, 0));
    all.begins(3);
    let (second, ranks, _) = all.meet();
    assert!(second > first);
    assert_eq!(ranks, [2, 3]);
}

#[test]
fn all_get_the_world_that_one_has_got_and_none_another() {
    let mut all = Agents::new(&[1, 2, 3]);
    let (first, ..) = all.meet();
    let worlds = [1, 2, 3].map(|pod| all.arrives(pod));
    assert!(worlds[2].store.is_some(), "all have arrived");
    all.takes(3, &worlds[2]);
    // The world changes before the others have asked again.
    all.is_lost(1);
    assert!(all.looks(3).changed);
    let late = all.arrives(2);
    assert_eq!((late.generation, late.store), (first + 1, worlds[2].store.clone()));
    // Where none has got it, it is void.
    let mut all = Agents::new(&[1, 2]);
    let (first, ..) = all.meet();
    all.arrives(1);
    let request = Meet { arrives: true, ..all.request(2) };
    let seat = all.seats[&2];
    all.is_lost(2);
    assert_eq!(seat.map(|seat| seat.generation), request.of.map(|of| of.generation));
    let (second, alone, _) = all.meet();
    assert!(second > first + 1);
    assert_eq!(alone, [1]);
}

#[test]
fn a_world_outlives_its_server() {
    let mut all = Agents::new(&[1, 2, 3]);
    let (first, ranks, _) = all.meet();
    all.next_server();
    assert!(!all.looks(1).changed);
    // One that joins first decides nothing.
    all.begins(9);
    all.now += 20_000;
    let early = all.arrives(9);
    assert_eq!((early.generation, early.rank), (0, None));
    assert!(!all.looks(2).changed && !all.looks(3).changed && !all.looks(1).changed);
    // One that is lost while no server is there.
    all.is_lost(9);
    all.next_server();
    all.is_lost(ranks[1]);
    let left = [ranks[0], ranks[2]];
    assert!(!all.looks(left[0]).changed, "the other has said nothing yet");
    assert!(all.looks(left[1]).changed);
    let (second, found, _) = all.meet();
    assert_eq!((second, &found[..]), (first + 1, &left[..]));
}

#[test]
fn a_run_of_an_earlier_server_that_says_nothing_is_waited_for_no_longer_than_that() {
    let mut all = Agents::new(&[1, 2]);
    let (first, ranks, _) = all.meet();
    all.next_server();
    all.now += RESUME_MS - 1;
    assert!(!all.looks(ranks[0]).changed);
    all.now += 1;
    assert!(all.looks(ranks[0]).changed, "the other is gone");
    all.seats.remove(&ranks[1]);
    assert_eq!(all.meet().0, first + 1);
}

#[test]
fn the_end_of_a_script_that_has_ended_well_somewhere_changes_no_world() {
    let mut all = Agents::new(&[1, 2]);
    all.meet();
    let request = Meet { done: true, ..all.request(1) };
    assert!(all.ask(1, &request).over);
    all.is_lost(1);
    let other = all.looks(2);
    assert!(other.over && !other.changed);
    // One that was lost before that begins again after all have ended.
    assert!(!all.meeting.close(key(2), Instant(0)), "it is known still");
    all.begins(3);
    assert!(all.arrives(3).over);
}

#[test]
fn a_pod_whose_training_has_ended_well_begins_no_other() {
    let mut all = Agents::new(&[1]);
    all.meet();
    let done = Meet { done: true, ..all.request(1) };
    assert!(all.ask(1, &done).over);
    assert!(all.looks(1).used, "its next agent meets elsewhere");
    let again = Meet { arrives: true, of: None, ..all.request(1) };
    let why = all.meeting.meet(key(1), &again, Instant(0)).expect_err("it would do nothing");
    assert!(why.contains("use --rdzv_backend c10d"), "{why}");
}

#[test]
fn the_others_go_on_without_an_agent_that_ends_while_its_run_goes_on() {
    let mut all = Agents::new(&[1, 2, 3]);
    let (first, ranks, _) = all.meet();
    let leaves = Meet { leaves: true, ..all.request(ranks[0]) };
    all.ask(ranks[0], &leaves);
    all.seats.remove(&ranks[0]);
    assert!(all.looks(ranks[1]).changed && all.looks(ranks[2]).changed);
    let (second, left, _) = all.meet();
    assert_eq!((second, &left[..]), (first + 1, &ranks[1..]));
    // It may begin again in the same run.
    all.seats.insert(ranks[0], None);
    all.now += GATHER_MS;
    assert_eq!(all.meet().1, [ranks[1], ranks[2], ranks[0]]);
}

#[test]
fn the_others_go_on_without_an_agent_that_says_nothing_any_more() {
    let mut all = Agents::new(&[1, 2]);
    let (_, ranks, _) = all.meet();
    // While the server stands still, no agent is heard.
    all.now += 2 * SILENT_MS;
    let mut after = |seconds: u64| {
        (0..seconds).any(|_| {
            all.now += 1000;
            all.looks(ranks[0]).changed
        })
    };
    assert!(!after(SILENT_MS / 1000), "the other may say something yet");
    assert!(after(2));
    all.seats.remove(&ranks[1]);
    assert_eq!(all.meet().1, [ranks[0]]);
}

#[test]
fn what_cannot_be_is_refused() {
    let mut all = Agents::new(&[1]);
    all.limits = (3, 2);
    let request = all.request(1);
    let why = all.meeting.meet(key(1), &request, Instant(0)).expect_err("no such size");
    assert!(why.contains("between min 3 and max 2"), "{why}");
    let why = all.meeting.meet(key(7), &request, Instant(0)).expect_err("not there");
    assert!(why.contains("has ended"), "{why}");
}

#[test]
fn a_replacement_that_is_seconds_away_joins_before_a_smaller_world() {
    let mut all = Agents::new(&[1, 2, 3]);
    let (first, ..) = all.meet();
    all.fails(1);
    all.now += 1000;
    assert!(!all.looks(2).changed && all.arrives(3).rank.is_none(), "it restarts soon");
    all.begins(101);
    all.now += 10_000;
    assert!(!all.looks(2).changed && all.arrives(3).rank.is_none(), "it loads its program");
    let (second, ranks, _) = all.meet();
    assert_eq!((second, &ranks[..]), (first + 1, &[2, 3, 101][..]));
}

#[test]
fn a_replacement_that_does_not_come_is_waited_for_no_longer_than_that() {
    let mut all = Agents::new(&[1, 2, 3]);
    all.meet();
    all.fails(1);
    all.now += RESTARTS_MS;
    assert!(all.looks(2).changed);
    let (small, ranks, _) = all.meet();
    assert_eq!(ranks, [2, 3]);
    // One that begins and does not arrive delays the loss of another for a while.
    all.meeting.open(key(101), true, Instant(all.now));
    all.is_lost(2);
    assert!(!all.looks(3).changed);
    all.now += LOADS_MS;
    assert!(all.looks(3).changed);
    assert_eq!(all.meet().1, [3]);
    // Pods that begin one after another delay it no longer than a limit in all.
    for pod in 10..20 {
        all.meeting.open(key(pod), true, Instant(all.now));
        all.arrives(3);
        all.now += LOADS_MS / 2;
    }
    let (last, ranks, _) = all.meet();
    assert!(last > small && ranks == [3]);
}
