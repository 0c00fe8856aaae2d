//! Random operations against a model that is nothing but a map.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fraction_abi::ledger::{Ledger, Probe, Seat};
use fraction_abi::owner::{Life, Owner};
use proptest::prelude::*;

use crate::support::{Page, owner};

/// Ends an operation at a step, as SIGKILL would: an operation has nothing to unwind.
struct AbandonAt<'a>(&'a Cell<Option<u32>>);

struct Abandoned;

impl Probe for AbandonAt<'_> {
    fn step(&self) {
        match self.0.get() {
            Some(0) => {
                self.0.set(None);
                std::panic::resume_unwind(Box::new(Abandoned));
            }
            Some(left) => self.0.set(Some(left - 1)),
            None => {}
        }
    }
}

#[derive(Debug, Clone)]
enum Operation {
    Start,
    Reserve { process: usize, device: usize, bytes: u64 },
    Release { process: usize, device: usize, part: u64 },
    End { process: usize },
    Limit { device: usize, bytes: u64 },
}

fn operations() -> impl Strategy<Value = Vec<(Operation, Option<u32>)>> {
    let operation = prop_oneof![
        1 => Just(Operation::Start),
        6 => (0..8_usize, 0..3_usize, 0..400_u64)
            .prop_map(|(process, device, bytes)| Operation::Reserve { process, device, bytes }),
        4 => (0..8_usize, 0..3_usize, 1..4_u64)
            .prop_map(|(process, device, part)| Operation::Release { process, device, part }),
        1 => (0..8_usize).prop_map(|process| Operation::End { process }),
        1 => (0..3_usize, 0..1500_u64)
            .prop_map(|(device, bytes)| Operation::Limit { device, bytes }),
    ];
    // One in ten is killed at one of its steps.
    let kill = prop_oneof![9 => Just(None), 1 => (0..12_u32).prop_map(Some)];
    prop::collection::vec((operation, kill), 1..80)
}

/// Expected memory of each living process.
#[derive(Default)]
struct Model {
    living: BTreeMap<u32, (Seat, [u64; 3])>,
    next: u32,
}

impl Model {
    fn held(&self, device: usize) -> u64 {
        self.living.values().map(|(_, held)| held[device]).sum()
    }

    fn pid(&self, index: usize) -> Option<u32> {
        self.living.keys().nth(index % self.living.len().max(1)).copied()
    }
}

fn play(operations: &[(Operation, Option<u32>)]) {
    let page = Page::new();
    let kill = Cell::new(None);
    let ledger = Ledger::with_probe(page.map(), AbandonAt(&kill));
    let mut model = Model::default();
    let mut limits = [1000_u64; 3];
    for (operation, kill_at) in operations {
        kill.set(*kill_at);
        let done = catch_unwind(AssertUnwindSafe(|| {
            step(&ledger, &mut model, &mut limits, operation);
        }));
        kill.set(None);
        if done.is_err() {
            // The process that did it is the one that was killed.
            if let Some(pid) = actor(&model, operation) {
                model.living.remove(&pid);
            }
        }
        check(&ledger, &model, limits);
    }
}

fn actor(model: &Model, operation: &Operation) -> Option<u32> {
    match operation {
        Operation::Reserve { process, .. } | Operation::Release { process, .. } => {
            model.pid(*process)
        }
        _ => None,
    }
}

fn step(
    ledger: &Ledger<'_, AbandonAt<'_>>,
    model: &mut Model,
    limits: &mut [u64; 3],
    operation: &Operation,
) {
    let living: Vec<u32> = model.living.keys().copied().collect();
    let life = |owner: &Owner| {
        if living.contains(&owner.pid) { Life::Alive } else { Life::Dead }
    };
    match operation {
        Operation::Start => {
            model.next += 1;
            let pid = model.next;
            if let Some(seat) = ledger.attach_with(owner(pid), &life) {
                model.living.insert(pid, (seat, [0; 3]));
            }
        }
        Operation::Reserve { process, device, bytes } => {
            let Some(pid) = model.pid(*process) else { return };
            let fits = model.held(*device) + bytes <= limits[*device];
            let seat = model.living[&pid].0;
            let answer = ledger.reserve_with(seat, *device, *bytes, limits[*device], &life);
            assert_eq!(answer.is_ok(), fits, "{bytes} of device {device}");
            if fits {
                model.living.get_mut(&pid).unwrap().1[*device] += bytes;
            }
        }
        Operation::Release { process, device, part } => {
            let Some(pid) = model.pid(*process) else { return };
            let (seat, held) = model.living.get_mut(&pid).unwrap();
            let bytes = held[*device] / part;
            held[*device] -= bytes;
            ledger.release(*seat, *device, bytes);
        }
        Operation::End { process } => {
            if let Some(pid) = model.pid(*process) {
                model.living.remove(&pid);
            }
        }
        Operation::Limit { device, bytes } => limits[*device] = *bytes,
    }
}

/// The ledger says the same as the model once those that ended are taken out, and exactly what is
/// left of each limit fits.
fn check(ledger: &Ledger<'_, AbandonAt<'_>>, model: &Model, limits: [u64; 3]) {
    let life = |owner: &Owner| {
        if model.living.contains_key(&owner.pid) { Life::Alive } else { Life::Dead }
    };
    ledger.reap_with(&life);
    for (device, limit) in limits.into_iter().enumerate() {
        assert!(ledger.correct(device), "nothing is under way");
        assert_eq!(ledger.used(device), model.held(device), "device {device}");
        let Some((seat, _)) = model.living.values().next() else { continue };
        let left = limit.saturating_sub(model.held(device));
        assert!(ledger.reserve_with(*seat, device, left + 1, limit, &life).is_err());
        if model.held(device) <= limit {
            ledger.reserve_with(*seat, device, left, limit, &life).unwrap();
            ledger.release(*seat, device, left);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn the_ledger_says_what_a_map_says(operations in operations()) {
        play(&operations);
    }

    #[test]
    fn the_agent_reads_any_page_without_harm(page in prop::collection::vec(any::<u8>(), 0..4000)) {
        let mut bytes = fraction_abi::claim::header().to_vec();
        bytes.extend(page);
        let claims = fraction_abi::claim::claims(&bytes).count();
        assert!(claims <= fraction_abi::SLOTS_MAX);
    }
}

#[test]
fn a_process_gives_back_no_more_than_it_holds() {
    let page = Page::new();
    let ledger = Ledger::new(page.map());
    let [first, second] = [2, 4].map(|pid| ledger.attach_with(owner(pid), &|_| Life::Alive));
    let (first, second) = (first.unwrap(), second.unwrap());
    ledger.reserve_with(first, 0, 10, 100, &|_| Life::Alive).unwrap();
    ledger.reserve_with(second, 0, 5, 100, &|_| Life::Alive).unwrap();
    ledger.release(first, 0, 12);
    assert_eq!(ledger.used(0), 5);
    ledger.reserve_with(first, 0, 3, 100, &|_| Life::Alive).unwrap();
    assert!(ledger.correct(0));
    assert_eq!(ledger.used(0), 8);
}
