//! Pages that are right, wrong, cut short, or written by a workload that lies.

use fraction_abi::claim::{self, Claim};
use fraction_abi::control::{Control, Limit, OTHERS_ALLOWED, Unusable, Writer};
use fraction_abi::lease::{Activity, Lease};
use fraction_abi::ledger::Ledger;
use fraction_abi::owner::Owner;
use fraction_abi::sys::ENOENT;

use crate::support::{MIB, Page, c_path, odd_is_dead, owner};

fn control(folder: &tempfile::TempDir, limits: &[Limit]) -> std::ffi::CString {
    let path = folder.path().join("control");
    let mut bytes = Control::new(limits, OTHERS_ALLOWED).as_bytes().to_vec();
    bytes.resize(fraction_abi::control::BYTES, 0);
    std::fs::write(&path, bytes).unwrap();
    c_path(&path)
}

#[test]
fn a_change_of_a_limit_is_seen_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let first = Limit { uuid: [7; 16], bytes: 8 * MIB, uncounted: 0, context: MIB };
    let path = control(&folder, &[first, Limit { uuid: [9; 16], ..first }]);
    let (control, writer) = (Control::map(&path).unwrap(), Writer::map(&path).unwrap());
    assert_eq!((control.devices(), control.policy()), (2, OTHERS_ALLOWED));
    assert_eq!((control.find([9; 16]), control.find([1; 16])), (Some(1), None));
    assert_eq!(control.limit(0), Some(first));
    writer.set_limit(1, 5 * MIB);
    writer.set_uncounted(1, 2 * MIB);
    let changed = Limit { uuid: [9; 16], bytes: 5 * MIB, uncounted: 2 * MIB, context: MIB };
    assert_eq!((control.limit(1), control.limit(2)), (Some(changed), None));
}

#[test]
fn more_devices_than_a_page_has_room_for_are_left_out() {
    let control = Control::new(&[Limit::default(); 20], 0);
    assert_eq!(control.devices(), fraction_abi::DEVICES_MAX);
}

#[test]
fn a_page_that_is_missing_short_or_of_another_version_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = control(&folder, &[]);
    let file = folder.path().join("control");
    let whole = std::fs::read(&file).unwrap();
    let mut newer = whole.clone();
    newer[8] = 9;
    for (bytes, why) in [
        (&whole[..fraction_abi::control::BYTES - 1], Unusable::Short),
        (&[0; fraction_abi::control::BYTES], Unusable::Version),
        (&newer[..], Unusable::Version),
        (&[], Unusable::Short),
    ] {
        std::fs::write(&file, bytes).unwrap();
        assert_eq!(Control::map(&path).unwrap_err(), why);
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(Control::map(&path).unwrap_err(), Unusable::Open(ENOENT));
    assert_eq!(Claim::map(&path).unwrap_err(), Unusable::Open(ENOENT));
}

#[test]
fn the_agent_reads_what_each_process_claims() {
    let page = Page::new();
    let ledger = Ledger::new(page.map());
    let seats = [2, 4].map(|pid| ledger.attach_with(owner(pid), &odd_is_dead).unwrap());
    ledger.charge(seats[0], 0, 5 * MIB);
    ledger.charge(seats[1], 15, 7);
    let claims: Vec<_> = claim::claims(&page.bytes()).collect();
    assert_eq!(claims.len(), 2);
    assert_eq!((claims[0].owner, claims[0].bytes[0]), (owner(2), 5 * MIB));
    assert_eq!((claims[1].owner, claims[1].bytes[15]), (owner(4), 7));
}

#[test]
fn the_agent_believes_no_length_and_no_version_of_a_page() {
    let page = Page::new();
    let ledger = Ledger::new(page.map());
    ledger.charge(ledger.attach_with(owner(2), &odd_is_dead).unwrap(), 0, 5);
    let whole = page.bytes();
    for length in [0, 1, 15, 16, 17, 1200, 1400, whole.len() - 1, whole.len()] {
        assert!(claim::claims(&whole[..length]).count() <= 1);
    }
    let mut longer = whole.clone();
    longer.extend(&whole);
    assert_eq!(claim::claims(&longer).count(), 1);
    let mut newer = whole;
    newer[8] = 9;
    assert_eq!(claim::claims(&newer).count(), 0);
}

#[test]
fn a_workload_that_fills_its_page_with_anything_gets_answers_and_no_crash() {
    for filler in [0xff, 0x80, 0x55, 0x01] {
        let page = Page::new();
        let mut bytes = claim::header().to_vec();
        bytes.resize(claim::BYTES, filler);
        std::fs::write(page.path(), &bytes).unwrap();
        let ledger = Ledger::new(page.map());
        let _attached = ledger.attach_with(owner(2), &odd_is_dead);
        for device in [0, 15, 16, usize::MAX] {
            let _answered = (ledger.used(device), ledger.correct(device));
        }
        ledger.reap_with(&odd_is_dead);
        assert!(claim::claims(&page.bytes()).count() <= fraction_abi::SLOTS_MAX);
    }
}

#[test]
fn a_reservation_that_cannot_be_is_refused() {
    let page = Page::new();
    let ledger = Ledger::new(page.map());
    let seat = ledger.attach_with(owner(2), &odd_is_dead).unwrap();
    for (device, bytes, limit) in [
        (0, 1, 0),
        (0, u64::MAX, u64::MAX),
        (0, 1 << 47, u64::MAX),
        (16, 1, 100),
        (usize::MAX, 0, 100),
    ] {
        assert!(ledger.reserve_with(seat, device, bytes, limit, &odd_is_dead).is_err());
    }
    assert_eq!(ledger.used(0), 0);
    ledger.reserve_with(seat, 0, 100, 100, &odd_is_dead).unwrap();
    // A limit below what is held takes nothing.
    assert!(ledger.reserve_with(seat, 0, 1, 50, &odd_is_dead).is_err());
    assert_eq!(ledger.used(0), 100);
}

#[test]
fn slots_of_ended_processes_are_taken_again() {
    let page = Page::new();
    let ledger = Ledger::new(page.map());
    for pid in 0..2 * fraction_abi::SLOTS_MAX {
        let pid = u32::try_from(pid).unwrap() + 1;
        let seat = ledger.attach_with(owner(pid * 2 + 1), &odd_is_dead).unwrap();
        ledger.charge(seat, 0, 1);
    }
    while ledger.attach_with(owner(2), &odd_is_dead).is_some() {}
    assert_eq!(claim::claims(&page.bytes()).count(), fraction_abi::SLOTS_MAX);
    assert_eq!(ledger.used(0), 0);
}

#[test]
fn what_a_process_held_before_an_exec_comes_back_when_it_attaches_again() {
    let page = Page::new();
    let ledger = Ledger::new(page.map());
    let now = Owner::current();
    let before = Owner { image: now.image + 16, ..now };
    let seat = ledger.attach_with(before, &odd_is_dead).unwrap();
    ledger.charge(seat, 0, 100);
    let seat = ledger.attach(now).unwrap();
    assert_eq!(ledger.used(0), 0);
    // A second library in the same program is the same process, and keeps what it holds.
    ledger.charge(seat, 0, 7);
    ledger.attach(now).unwrap();
    assert_eq!(ledger.used(0), 7);
}

#[test]
fn the_agent_says_who_ended_where_the_run_cannot_see_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = control(&folder, &[]);
    let (control, writer) = (Control::map(&path).unwrap(), Writer::map(&path).unwrap());
    let page = Page::new();
    let ledger = Ledger::with_control(page.map(), control);
    let me = Owner::current();
    let elsewhere = Owner { namespace: me.namespace + 1, ..me };
    for bytes in [40, 2] {
        ledger.charge(ledger.attach(elsewhere).unwrap(), 0, bytes);
    }
    assert_eq!((ledger.reap(&me), ledger.used(0)), (0, 42));
    let first = claim::claims(&page.bytes()).next().unwrap();
    assert_eq!((first.slot, first.bytes[0]), (0, 40));
    writer.set_ended(first.slot, first.word);
    assert_eq!((ledger.reap(&me), ledger.used(0)), (1, 2));
    // The next process in that slot is another one.
    ledger.charge(ledger.attach(elsewhere).unwrap(), 0, 5);
    assert_eq!((ledger.reap(&me), ledger.used(0)), (0, 7));
}

#[test]
fn a_lease_opens_and_closes_the_gate_and_each_change_differs() {
    let folder = tempfile::tempdir().unwrap();
    let path = control(&folder, &[Limit::default(); 2]);
    let (control, writer) = (Control::map(&path).unwrap(), Writer::map(&path).unwrap());
    let gate = || control.gate().load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!((gate(), writer.lease(0)), (0, Lease::NONE));
    assert!(Lease::NONE.may_launch());
    let mut seen = vec![Lease::NONE];
    for granted in [false, true, false, false, true] {
        let next = writer.lease(1).next(granted);
        assert!(next.is_controlled() && next.may_launch() == granted && !seen.contains(&next));
        seen.push(next);
        writer.set_lease(1, next);
        assert_eq!((gate(), writer.lease(1), writer.lease(0)), (1, next, Lease::NONE));
    }
    writer.set_lease(1, Lease::NONE);
    assert_eq!(gate(), 0);
}

#[test]
fn the_agent_reads_what_each_process_does() {
    let page = Page::new();
    let ledger = Ledger::new(page.map());
    let seats = [2, 4].map(|pid| ledger.attach_with(owner(pid), &odd_is_dead).unwrap());
    let waits = Activity { at_ns: 5, waits: true, busy: false };
    let busy = Activity { at_ns: 1 << 50, waits: false, busy: true };
    ledger.set_activity(seats[0], 3, waits);
    ledger.set_activity(seats[1], 3, busy);
    ledger.set_activity(seats[1], 16, busy);
    let row = |device| {
        let (bytes, at) = (page.bytes(), usize::try_from(claim::activities_at(device)).unwrap());
        let row = bytes[at..at + claim::ACTIVITIES_BYTES].to_vec();
        claim::activities(&row).collect::<Vec<_>>()
    };
    assert_eq!((row(3), row(2)), (vec![waits, busy], vec![]));
    assert_eq!(claim::activities(&[0xff; 17]).count(), 2);
}
