//! The thread, with pages as the agent makes them and processes as they say what they do.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use fraction_abi::claim::{self, Claim};
use fraction_abi::control::{self, Control, Limit};
use fraction_abi::lease::{Activity, Lease};
use fraction_abi::ledger::{Ledger, Seat};
use fraction_abi::owner::Owner;
use fraction_abi::sys::monotonic_ns;
use fraction_lease::{Policy, Run, Share, Turner};
use tempfile::TempDir;

/// A run with one process.
struct Pages {
    folder: TempDir,
    control: &'static Control,
    ledger: Ledger<'static>,
    seat: Seat,
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

impl Pages {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let limits = [7, 9].map(|uuid| Limit { uuid: [uuid; 16], ..Limit::default() });
        let mut bytes = Control::new(&limits, 0).as_bytes().to_vec();
        bytes.resize(control::BYTES, 0);
        std::fs::write(folder.path().join("control"), bytes).unwrap();
        let mut bytes = claim::header().to_vec();
        bytes.resize(claim::BYTES, 0);
        std::fs::write(folder.path().join("claim"), bytes).unwrap();
        let control = Control::map(&c_path(&folder.path().join("control"))).unwrap();
        let claim = Claim::map(&c_path(&folder.path().join("claim"))).unwrap();
        let ledger = Ledger::new(claim);
        let seat = ledger.attach(Owner::current()).unwrap();
        Self { folder, control, ledger, seat }
    }

    fn run(&self, millionths: u32, policy: Policy) -> Run {
        let share = Share { millionths, policy };
        Run { pages: self.folder.path().to_owned(), device: [9; 16], share }
    }

    fn lease(&self) -> Lease {
        Lease(self.control.lease(1).unwrap().load(std::sync::atomic::Ordering::SeqCst))
    }

    fn waits(&self) {
        let activity = Activity { at_ns: monotonic_ns(), waits: true, busy: false };
        self.ledger.set_activity(self.seat, 1, activity);
    }

    /// Says that it waits until it has the lease.
    fn gets_the_lease(&self) {
        while !self.lease().is_controlled() || !self.lease().may_launch() {
            self.waits();
            std::thread::yield_now();
        }
    }
}

#[test]
fn runs_that_wait_have_the_lease_in_turn_and_none_is_left_behind() {
    let (first, second) = (Pages::new(), Pages::new());
    let turner = Turner::start().unwrap();
    for pages in [&first, &second] {
        turner.set(&pages.run(500_000, Policy::Fair)).unwrap();
    }
    for _ in 0..3 {
        first.gets_the_lease();
        second.gets_the_lease();
    }
    turner.remove(second.folder.path());
    assert_eq!(second.lease(), Lease::NONE);
    // A fair run that is alone has no turns.
    while first.lease().is_controlled() {
        std::thread::yield_now();
    }
    // A strict one has.
    turner.set(&first.run(500_000, Policy::Strict)).unwrap();
    first.gets_the_lease();
    drop(turner);
    assert_eq!(first.lease(), Lease::NONE);
}

#[test]
fn pages_without_the_device_or_of_nothing_are_refused() {
    let pages = Pages::new();
    let turner = Turner::start().unwrap();
    let run = Run { device: [1; 16], ..pages.run(1, Policy::Fair) };
    assert!(turner.set(&run).unwrap_err().to_string().contains("does not have the device"));
    let run = Run { pages: "/nowhere".into(), ..pages.run(1, Policy::Fair) };
    assert!(turner.set(&run).is_err());
    // A claim page that is cut short says nothing, and nothing breaks.
    let other = Pages::new();
    turner.set(&pages.run(500_000, Policy::Fair)).unwrap();
    turner.set(&other.run(500_000, Policy::Fair)).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(other.folder.path().join("claim"));
    file.unwrap().set_len(100).unwrap();
    pages.gets_the_lease();
}
