//! Forecasts of the start of a pending workload, in virtual time.

use std::collections::BTreeMap;

use orchestrator::{Error, StoredState};
use sim::machine::Machine;
use sim::{Course, Forecast, forecast};
use spec::{GpuRequest, WorkloadSpec};
use uuid::Uuid;

use super::machine::{rest, server, submit, training};

const MINUTE: u64 = 60_000;

/// A server with four GPUs, on which four trainings of one GPU have run for four minutes.
struct Full {
    machine: Machine,
    course: Course,
}

impl Full {
    fn new() -> Self {
        let machine = server(4, [4000, 0], sched::Policy::default());
        let mut full = Self { machine, course: Course::default() };
        full.submit(training("a", GpuRequest::Whole(1)), Some(10));
        full.submit(training("b", GpuRequest::Whole(1)), Some(20));
        let c = training("c", GpuRequest::Whole(1));
        full.submit(WorkloadSpec { time_limit_ms: Some(30 * MINUTE), ..c }, None);
        let d = training("d", GpuRequest::Whole(1));
        full.submit(WorkloadSpec { backoff_limit: 99, ..d }, None);
        full.machine.clock.advance_ms(4 * MINUTE);
        full
    }

    /// Submits a training with a known run time in minutes; `None` for an unknown run time.
    fn submit(&mut self, spec: WorkloadSpec, minutes: Option<u64>) {
        let name = spec.name.clone();
        submit(&mut self.machine, 1, spec);
        rest(&mut self.machine);
        let id = self.id(&name);
        self.course.ends.extend(minutes.map(|minutes| (id, minutes * MINUTE)));
    }

    fn id(&self, name: &str) -> Uuid {
        let view = self.machine.view().expect("a server that runs");
        let found = view.workloads.values().find(|workload| workload.spec.name == name);
        found.unwrap_or_else(|| panic!("no {name}")).id
    }

    /// Each pod of a workload, with a time in milliseconds.
    fn pods(&self, name: &str, ms: u64) -> BTreeMap<Uuid, u64> {
        let view = self.machine.view().expect("a server that runs");
        view.workloads[&self.id(name)].pods.iter().map(|pod| (pod.id, ms)).collect()
    }

    fn forecast(&self, id: Uuid) -> Result<Forecast, Error> {
        let (_, policy) = self.machine.replica().expect("a server that runs");
        let Machine { rows, nodes, gpus, clock, settings, .. } = &self.machine;
        let stored = StoredState {
            rows: rows.snapshot(),
            nodes: nodes.clone(),
            gpus: gpus.clone(),
            policy: policy.clone(),
            settings: settings.clone(),
            now: clock.now(),
        };
        forecast(stored, id, &self.course)
    }

    /// Minutes until it starts.
    fn minutes(&self, name: &str) -> Option<u64> {
        match self.forecast(self.id(name)).unwrap_or_else(|error| panic!("{error}")) {
            Forecast::StartsAfterMs(ms) => Some(ms / MINUTE),
            Forecast::Never | Forecast::TooFarAhead => None,
        }
    }
}

#[test]
fn the_first_in_line_starts_when_the_first_ends() {
    let mut full = Full::new();
    full.submit(training("e", GpuRequest::Whole(1)), Some(60));
    assert_eq!(full.minutes("e"), Some(6));
}

#[test]
fn the_next_in_line_waits_for_more() {
    let mut full = Full::new();
    full.submit(training("e", GpuRequest::Whole(1)), Some(60));
    full.submit(training("f", GpuRequest::Whole(2)), Some(60));
    // b ends after 16 minutes, and the server suspends c at its limit after 26.
    assert_eq!(full.minutes("f"), Some(26));
}

#[test]
fn what_waits_for_one_that_never_ends_never_starts() {
    let mut full = Full::new();
    full.submit(training("e", GpuRequest::Whole(4)), None);
    assert_eq!(full.forecast(full.id("e")), Ok(Forecast::Never));
}

#[test]
fn pods_that_take_turns_need_no_more_than_those_whose_turn_it_is() {
    let mut full = Full::new();
    let mut sweep = training("sweep", GpuRequest::Whole(1));
    (sweep.pods.pods, sweep.pods.pods_min, sweep.pods.parallelism) = (8, 1, Some(2));
    full.submit(sweep, None);
    assert_eq!(full.minutes("sweep"), Some(6));
}

#[test]
fn a_crash_loop_gives_its_place_up_when_it_has_kept_it_long_enough() {
    let mut full = Full::new();
    full.submit(training("e", GpuRequest::Whole(1)), None);
    full.course = Course { failures: full.pods("d", 1000), ..Course::default() };
    // Back-offs of 1, 2, 4, 8, 16 and 32 s, each before a run of 1 s; the next is too long for it.
    assert_eq!(full.forecast(full.id("e")), Ok(Forecast::StartsAfterMs(69_000)));
    full.machine.settings.places_kept_ms = 0;
    assert_eq!(full.forecast(full.id("e")), Ok(Forecast::StartsAfterMs(0)));
}

#[test]
fn failures_that_nothing_follows_from_end_the_search() {
    let mut full = Full::new();
    let mut restarts = training("e", GpuRequest::Whole(0));
    restarts.pods.pod.restart = spec::Restart::Always;
    full.submit(restarts, None);
    full.submit(training("f", GpuRequest::Whole(4)), None);
    // Each run lasts so long that its back-off is of a second, again and again.
    full.course = Course { failures: full.pods("e", 11 * MINUTE), ..Course::default() };
    assert_eq!(full.forecast(full.id("f")), Ok(Forecast::TooFarAhead));
}

#[test]
fn one_that_runs_already_starts_at_once_and_an_unknown_one_is_an_error() {
    let full = Full::new();
    assert_eq!(full.minutes("a"), Some(0));
    assert!(matches!(full.forecast(Uuid::nil()), Err(Error::NotFound { .. })));
}
