//! Processes that race, and processes that are killed between any two steps.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use fraction_abi::ledger::{Ledger, Probe, Seat};
use fraction_abi::owner::Owner;

use crate::support::{MIB, Page, fork, kill_this_process, wait};

/// Kills this process at a step.
struct KillAt(Cell<u32>);

impl Probe for KillAt {
    fn step(&self) {
        match self.0.get() {
            0 => kill_this_process(),
            left => self.0.set(left - 1),
        }
    }
}

const LIMIT: u64 = 64 * MIB;

/// Runs `work` in children that are killed at its first step, its second and so on, until one gets
/// to the end. After each, exactly the limit fits, beside what this process holds.
fn killed_at_every_step(work: impl Fn(&Ledger<'_, KillAt>, Owner)) -> u32 {
    let page = Page::new();
    let ledger = Ledger::new(page.map());
    let me = ledger.attach(Owner::current()).unwrap();
    ledger.reserve(me, 0, 10 * MIB, LIMIT).unwrap();
    for step in 0.. {
        let child = fork(|| {
            let probed = Ledger::with_probe(page.map(), KillAt(Cell::new(step)));
            work(&probed, Owner::current());
        });
        let killed = wait(child).is_some();
        ledger.reserve(me, 0, 54 * MIB, LIMIT).unwrap();
        assert_eq!(ledger.used(0), LIMIT, "killed at step {step}");
        assert!(ledger.reserve(me, 0, 1, LIMIT).is_err());
        ledger.release(me, 0, 54 * MIB);
        if !killed {
            return step;
        }
    }
    0
}

fn attach(ledger: &Ledger<'_, KillAt>, owner: Owner) -> Option<Seat> {
    ledger.attach(owner)
}

#[test]
fn failure_5_a_process_killed_at_any_step_of_reserving_leaves_exactly_its_room() {
    let steps = killed_at_every_step(|ledger, owner| {
        let Some(seat) = attach(ledger, owner) else { return };
        let _held = ledger.reserve(seat, 0, 3 * MIB, LIMIT);
        let _held = ledger.reserve(seat, 0, 5 * MIB, LIMIT);
        ledger.release(seat, 0, 3 * MIB);
        let _refused = ledger.reserve(seat, 0, 60 * MIB, LIMIT);
    });
    assert!(steps > 15, "{steps} steps only");
}

#[test]
fn a_process_killed_while_it_takes_out_another_harms_nothing() {
    killed_at_every_step(|ledger, owner| {
        let grandchild = fork(|| {
            let silent = Ledger::with_probe(ledger.claim(), KillAt(Cell::new(u32::MAX)));
            let Some(seat) = silent.attach(Owner::current()) else { return };
            silent.charge(seat, 0, 7 * MIB);
            kill_this_process();
        });
        wait(grandchild);
        ledger.reap(&owner);
    });
}

/// The first of the numbers that are shared by children.
fn shared_numbers() -> &'static [AtomicU64; 8] {
    let memory = {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new zeroed memory, which stays.
        unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) }
    };
    // SAFETY: zero is a value of these numbers, and the memory is large enough and aligned.
    unsafe { &*memory.cast() }
}

#[test]
fn failure_4_of_1024_mib_eight_racing_processes_get_exactly_1024() {
    for _ in 0..20 {
        let page = Page::new();
        let [granted, done, ..] = shared_numbers();
        let race = || {
            let ledger = Ledger::new(page.map());
            let Some(seat) = ledger.attach(Owner::current()) else { return };
            while ledger.reserve(seat, 0, 16 * MIB, 1024 * MIB).is_ok() {
                granted.fetch_add(16, SeqCst);
            }
            done.fetch_add(1, SeqCst);
            // Memory of a process counts for as long as it lives.
            while done.load(SeqCst) < 8 {
                std::thread::yield_now();
            }
        };
        let children: Vec<_> = (0..8).map(|_| fork(race)).collect();
        for child in children {
            assert_eq!(wait(child), None);
        }
        assert_eq!(granted.load(SeqCst), 1024);
    }
}

#[test]
fn a_million_operations_of_eight_racing_processes_add_up() {
    let page = Page::new();
    let sums = shared_numbers();
    let work = |index: usize| {
        let ledger = Ledger::new(page.map());
        let Some(seat) = ledger.attach(Owner::current()) else { return };
        let mut held = 0;
        for turn in 0..125_000_u64 {
            let bytes = 1 + (turn * 7919 + index as u64 * 104_729) % 5000;
            if turn % 2 == 0 && ledger.reserve(seat, 0, bytes, 8 * MIB).is_ok() {
                held += bytes;
            } else if held > 0 {
                let back = held.min(bytes);
                ledger.release(seat, 0, back);
                held -= back;
            }
        }
        ledger.release(seat, 0, held);
        ledger.charge(seat, 0, 1000 + index as u64);
        sums[index].store(ledger.used(0), SeqCst);
        // The others see these bytes for as long as this process lives.
        while sums.iter().any(|sum| sum.load(SeqCst) == 0) {
            std::thread::yield_now();
        }
        if !ledger.correct(0) || ledger.holders(0).any(|(_, bytes)| bytes > 8 * MIB) {
            kill_this_process();
        }
    };
    let children: Vec<_> = (0..8).map(|index| fork(|| work(index))).collect();
    for child in children {
        assert_eq!(wait(child), None);
    }
    // Nothing has been taken out yet: the total is what the eight have charged at the end.
    let charged: u64 = (0..8).map(|index| 1000 + index).sum();
    assert_eq!(Ledger::new(page.map()).used(0), charged);
}

#[test]
fn failure_1_a_slot_that_was_freed_moves_no_other_slot() {
    let page = Page::new();
    let ledger = Ledger::new(page.map());
    let first = fork(|| {
        let ledger = Ledger::new(page.map());
        if let Some(seat) = ledger.attach(Owner::current()) {
            ledger.charge(seat, 0, 100 * MIB);
        }
    });
    wait(first);
    let second = ledger.attach(Owner::current()).unwrap();
    let third = ledger.attach(Owner::current()).unwrap();
    ledger.reserve(second, 0, 8000 * MIB, 8192 * MIB).unwrap();
    ledger.reserve(third, 0, 192 * MIB, 8192 * MIB).unwrap();
    assert_eq!(ledger.used(0), 8192 * MIB);
    assert!(ledger.reserve(third, 0, 1, 8192 * MIB).is_err());
}

#[test]
fn three_hundred_processes_have_a_slot_each() {
    let page = Page::new();
    let ready = &shared_numbers()[0];
    let live = || {
        let ledger = Ledger::new(page.map());
        if let Some(seat) = ledger.attach(Owner::current()) {
            ledger.charge(seat, 3, MIB);
            ready.fetch_add(1, SeqCst);
        }
        loop {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
    };
    let children: Vec<_> = (0..300).map(|_| fork(live)).collect();
    while ready.load(SeqCst) < 300 {
        std::thread::yield_now();
    }
    let ledger = Ledger::new(page.map());
    assert_eq!((ledger.used(3), ledger.holders(3).count()), (300 * MIB, 300));
    for child in children {
        // SAFETY: a child of this test, not collected yet.
        unsafe { libc::kill(child, libc::SIGKILL) };
        wait(child);
    }
    assert_eq!(ledger.reap(&Owner::current()), 300);
    assert_eq!(ledger.used(3), 0);
}
