//! Turning the leases of the runs of this machine. Owns: the thread that reads what the processes
//! of each run do (their claim pages, of which nothing is believed for long) and says in their
//! control pages whose turn it is. Does not know about: whose share is how large, and why.
//!
//! A fair run that has a device for itself has no turns, and its launches cost nothing. If the
//! server ends, the pages stay as they are, and the libraries stop waiting after a few seconds.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fraction_abi::claim::{ACTIVITIES_BYTES, activities, activities_at};
use fraction_abi::control::{Control, Writer};
use fraction_abi::lease::{BUSY_NS_MAX, Lease, WAITS_NS_MAX};
use fraction_abi::sys::monotonic_ns;
use fraction_abi::{CLAIM_FILE, CONTROL_FILE};

use crate::schedule::{Demand, Schedule, Share};

/// How long a lease lasts while others wait.
const QUANTUM_NS: u64 = 50_000_000;
/// Maximum wait for work that was launched under a lease: a longer kernel runs beside the next
/// lease, and is charged until then.
const DRAIN_NS_MAX: u64 = 1_000_000_000;
/// How often the pages are read between two leases, while runs want a device, and while none does.
const BETWEEN: Duration = Duration::from_micros(100);
const BUSY: Duration = Duration::from_millis(1);
const IDLE: Duration = Duration::from_millis(5);
/// Time without activity after which a run is idle.
const IDLE_NS: u64 = 5_000_000;

/// A run on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The folder with its pages.
    pub pages: PathBuf,
    /// UUID of the device in the pages.
    pub device: [u8; 16],
    /// Share of the device's time.
    pub share: Share,
}

/// Turns leases in a thread, until it is dropped; then all runs may launch at any time.
#[derive(Debug)]
pub struct Turner {
    shared: Arc<TurnerState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct TurnerState {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stops: bool,
    last: u64,
    devices: BTreeMap<[u8; 16], Device>,
}

#[derive(Debug)]
struct Device {
    schedule: Schedule,
    runs: BTreeMap<u64, Member>,
}

/// A run as it is read and written.
#[derive(Debug)]
struct Member {
    pages: PathBuf,
    control: Writer,
    claim: File,
    /// The device's place in both pages.
    place: usize,
}

impl Turner {
    /// Starts without runs; then the thread only waits.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start() -> io::Result<Self> {
        let shared = Arc::<TurnerState>::default();
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("leases".to_owned());
        let thread = thread.spawn(move || of_thread.turn())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Gives a run turns on a device, or changes its share.
    ///
    /// # Errors
    /// Its pages cannot be used, or do not have this device.
    pub fn set(&self, run: &Run) -> io::Result<()> {
        let mut state = self.shared.state();
        let known = state.number(run);
        let (number, member) = match known {
            Some(number) => (number, None),
            None => {
                let member = Member::open(run)?;
                state.last += 1;
                (state.last, Some(member))
            }
        };
        let new =
            || Device { schedule: Schedule::new(QUANTUM_NS, DRAIN_NS_MAX), runs: BTreeMap::new() };
        let device = state.devices.entry(run.device).or_insert_with(new);
        device.runs.extend(member.map(|member| (number, member)));
        device.schedule.set(number, run.share);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// A run has no turns any more, on any device: it may launch at any time, or is gone.
    pub fn remove(&self, pages: &Path) {
        let mut state = self.shared.state();
        for device in state.devices.values_mut() {
            device.remove(pages);
        }
        state.devices.retain(|_, device| !device.runs.is_empty());
    }
}

impl Drop for Turner {
    fn drop(&mut self) {
        self.shared.state().stops = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
        for member in self.shared.state().devices.values().flat_map(|device| device.runs.values()) {
            member.control.set_lease(member.place, Lease::NONE);
        }
    }
}

impl TurnerState {
    /// No code panics inside a change while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) {
        let mut state = self.state();
        while !state.stops {
            let now_ns = monotonic_ns();
            let pauses = state.devices.values_mut().map(|device| device.turn(now_ns));
            state = match pauses.min() {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(pause) => {
                    let woken = self.changed.wait_timeout(state, pause);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl State {
    fn number(&self, run: &Run) -> Option<u64> {
        let runs = &self.devices.get(&run.device)?.runs;
        runs.iter().find(|(_, member)| member.pages == run.pages).map(|(number, _)| *number)
    }
}

impl Device {
    fn remove(&mut self, pages: &Path) {
        let schedule = &mut self.schedule;
        self.runs.retain(|number, member| {
            let stays = member.pages != pages;
            if !stays {
                schedule.remove(*number);
                member.control.set_lease(member.place, Lease::NONE);
            }
            stays
        });
    }

    /// Grants the turn in the pages. Returns the time until the next call.
    fn turn(&mut self, now_ns: u64) -> Duration {
        let open = self.schedule.needs_no_turns();
        let demands: BTreeMap<u64, Demand> = if open {
            BTreeMap::new()
        } else {
            self.runs.iter().map(|(run, member)| (*run, member.demand(now_ns))).collect()
        };
        let demand = |run: u64| demands.get(&run).copied().unwrap_or_default();
        let holder = self.schedule.advance(now_ns, demand);
        // A run that has to stop learns it before the next one may begin.
        let (granted, others): (Vec<_>, Vec<_>) =
            self.runs.iter().partition(|(run, _)| holder == Some(**run));
        for (_, member) in others {
            member.publish_lease(open, false);
        }
        for (_, member) in granted {
            member.publish_lease(open, true);
        }
        if self.schedule.is_between() {
            BETWEEN
        } else if demands.values().any(|demand| demand.wants || demand.busy) {
            BUSY
        } else {
            IDLE
        }
    }
}

impl Member {
    fn open(run: &Run) -> io::Result<Self> {
        let unusable = |error| {
            io::Error::other(format!("the control page of {}: {error:?}", run.pages.display()))
        };
        let path = CString::new(run.pages.join(CONTROL_FILE).as_os_str().as_bytes())?;
        let place = Control::map(&path).map_err(unusable)?.find(run.device);
        let place = place.ok_or_else(|| {
            let pages = run.pages.display();
            io::Error::other(format!("the control page of {pages} does not have the device"))
        })?;
        let control = Writer::map(&path).map_err(unusable)?;
        let claim = File::open(run.pages.join(CLAIM_FILE))?;
        Ok(Self { pages: run.pages.clone(), control, claim, place })
    }

    /// Demand of its processes, as their claim page reports it. A truncated page reports none.
    fn demand(&self, now_ns: u64) -> Demand {
        let mut row = [0; ACTIVITIES_BYTES];
        let read = self.claim.read_at(&mut row, activities_at(self.place)).unwrap_or(0);
        let mut demand = Demand::default();
        for activity in activities(row.get(..read).unwrap_or(&[])) {
            let since = now_ns.saturating_sub(activity.at_ns);
            let waits = activity.waits && since < WAITS_NS_MAX;
            demand.busy |= activity.drains() || (activity.busy && since < BUSY_NS_MAX);
            demand.wants |= waits || (!activity.waits && since < IDLE_NS);
        }
        demand
    }

    fn publish_lease(&self, open: bool, granted: bool) {
        self.control.beat();
        let now = self.control.lease(self.place);
        let differs = if open {
            now.is_controlled()
        } else {
            !now.is_controlled() || now.may_launch() != granted
        };
        if differs {
            let next = if open { Lease::NONE } else { now.next(granted) };
            self.control.set_lease(self.place, next);
        }
    }
}
