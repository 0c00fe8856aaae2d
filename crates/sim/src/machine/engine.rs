//! A simulated engine. Owns: runs, from their start to their end, with the devices that they hold.
//! The caller sets which operations fail, and decides what happens next; the engine uses no
//! randomness.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use spec::{
    Exit, ListedRun, MountSource, Observation, RunKey, RunNews, RunPlace, RunSpec, RunState,
};
use units::{GPU_MILLIS, Instant};
use uuid::Uuid;

/// An existing run; a dead run exists until it is removed.
#[derive(Debug, Clone)]
pub struct Run {
    /// Specification that it was started from.
    pub spec: RunSpec,
    /// Last observed state.
    pub state: RunState,
    /// `true` after a request to stop.
    pub is_stopping: bool,
}

impl Run {
    /// `true` if it has processes.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        !matches!(self.state, RunState::Exited { .. })
    }
}

/// Kind of a failure to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFault {
    /// The run can never start on this machine.
    Never,
    /// The run cannot start now.
    NotNow,
    /// The start reports a failure although a process has begun.
    Half,
}

/// Operations that fail.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// Failure of starts; `None` if they succeed.
    pub start: Option<StartFault>,
    /// Requests to stop fail.
    pub stop: bool,
    /// Runs go on after a request to stop.
    pub stubborn: bool,
    /// Remains of runs cannot be removed.
    pub remove: bool,
    /// Volumes cannot be deleted.
    pub volume: bool,
    /// No port is free.
    pub ports: bool,
}

/// Reason why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    Never(String),
    NotNow(String),
}

/// The simulated engine.
#[derive(Debug, Clone, Default)]
pub struct Engine {
    runs: BTreeMap<RunKey, Run>,
    /// Observations that the server has not received, the oldest first.
    pub(super) seen: VecDeque<Observation>,
    /// Operations that fail.
    pub faults: Faults,
    /// Runs whose processes cannot be killed.
    pub unkillable: BTreeSet<RunKey>,
    volumes: BTreeSet<String>,
    /// Pods that have files.
    pods: BTreeSet<Uuid>,
    /// Description of the first request that violates the rules of the engine.
    pub(super) misuse: Option<String>,
}

impl Engine {
    /// All existing runs.
    #[must_use]
    pub const fn runs(&self) -> &BTreeMap<RunKey, Run> {
        &self.runs
    }

    /// The runs that have processes.
    pub fn alive(&self) -> impl Iterator<Item = (&RunKey, &Run)> {
        self.runs.iter().filter(|(_, run)| run.is_alive())
    }

    /// All runs with their states.
    #[must_use]
    pub fn list(&self) -> Vec<ListedRun> {
        let listed = |(key, run): (&RunKey, &Run)| {
            let place = run.is_alive().then(|| RunPlace::of(&run.spec));
            ListedRun { key: *key, state: run.state.clone(), place }
        };
        self.runs.iter().map(listed).collect()
    }

    /// Adds a run that was started before.
    pub(super) fn adopt(&mut self, spec: RunSpec, state: RunState) {
        self.pods.insert(spec.key.pod);
        self.runs.insert(spec.key, Run { spec, state, is_stopping: false });
    }

    pub(super) fn start(&mut self, spec: RunSpec) -> Result<(), Refusal> {
        let key = spec.key;
        let fault = self.faults.start;
        match fault {
            Some(StartFault::Never) => return Err(Refusal::Never("no such image".to_owned())),
            Some(StartFault::NotNow) => return Err(Refusal::NotNow("too busy".to_owned())),
            Some(StartFault::Half) | None => {}
        }
        // A start of an existing run changes nothing.
        if !self.runs.contains_key(&key) {
            let mounts = spec.container.mounts.iter();
            self.volumes.extend(mounts.filter_map(|mount| match &mount.from {
                MountSource::Volume { name, ephemeral: false } => Some(name.clone()),
                _ => None,
            }));
            self.pods.insert(key.pod);
            self.runs.insert(key, Run { spec, state: RunState::Starting, is_stopping: false });
            self.check_devices(key);
            self.tell(key, RunState::Starting);
        }
        match fault {
            Some(_) => Err(Refusal::NotNow("failed half-way".to_owned())),
            None => Ok(()),
        }
    }

    /// Records a misuse if the runs of a device need more than the device.
    fn check_devices(&mut self, key: RunKey) {
        for device in &self.runs[&key].spec.devices {
            let of = |run: &Run| {
                let same = run.spec.devices.iter().filter(|other| other.uuid == device.uuid);
                same.map(|other| other.millis).sum::<u64>()
            };
            let used: u64 = self.alive().map(|(_, run)| of(run)).sum();
            let users: Vec<_> = self.alive().filter(|(_, run)| of(run) > 0).collect();
            // A single run may have a MIG instance that counts for more than a GPU.
            if used > GPU_MILLIS && users.len() > 1 {
                let names: Vec<_> =
                    users.iter().map(|(_, run)| run.spec.pod_name.as_str()).collect();
                let fault = format!("{} is given to {}", device.uuid, names.join(" and "));
                self.misuse.get_or_insert(fault);
            }
        }
    }

    pub(super) fn stop(&mut self, key: RunKey) -> Result<(), Refusal> {
        if self.faults.stop {
            return Err(Refusal::NotNow("no signal goes through".to_owned()));
        }
        if let Some(run) = self.runs.get_mut(&key) {
            run.is_stopping = true;
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, key: RunKey) -> Result<(), Refusal> {
        let stays = self.faults.remove || self.runs.get(&key).is_some_and(Run::is_alive);
        if stays {
            return Err(Refusal::NotNow("it still has processes".to_owned()));
        }
        self.runs.remove(&key);
        Ok(())
    }

    pub(super) fn forget_pod(&mut self, pod: Uuid) {
        if self.alive().any(|(key, _)| key.pod == pod) {
            let fault = format!("pod {pod} is forgotten and has a run that lives");
            self.misuse.get_or_insert(fault);
        }
        self.pods.remove(&pod);
    }

    /// Pods that have files.
    #[must_use]
    pub const fn pods(&self) -> &BTreeSet<Uuid> {
        &self.pods
    }

    pub(super) fn remove_volume(&mut self, name: &str) -> Result<(), Refusal> {
        let uses = |run: &Run| {
            let mut mounts = run.spec.container.mounts.iter();
            mounts.any(|mount| matches!(&mount.from, MountSource::Volume { name: used, .. } if used == name))
        };
        if self.faults.volume || self.alive().any(|(_, run)| uses(run)) {
            return Err(Refusal::NotNow("it is in use".to_owned()));
        }
        self.volumes.remove(name);
        Ok(())
    }

    /// `true` if the next step of a run follows by itself: it begins, or it stops.
    #[must_use]
    pub fn moves(&self, key: RunKey, run: &Run) -> bool {
        let ends = run.is_stopping && !self.faults.stubborn && !self.unkillable.contains(&key);
        ends || !matches!(run.state, RunState::Running { .. })
    }

    /// Makes the next step of a run that begins or stops.
    pub fn go_on(&mut self, key: RunKey, now: Instant) {
        let Some(run) = self.runs.get(&key) else { return };
        match (&run.state, run.is_stopping) {
            (RunState::Exited { .. }, _) => {}
            (_, true) if !self.faults.stubborn && !self.unkillable.contains(&key) => {
                self.end(key, Exit::Signal(15), now);
            }
            (RunState::Running { .. }, _) => {}
            _ => self.tell(key, RunState::Running { pid: Some(1), started_at: now }),
        }
    }

    /// Ends a run.
    pub fn end(&mut self, key: RunKey, exit: Exit, at: Instant) {
        self.unkillable.remove(&key);
        if self.runs.get(&key).is_some_and(Run::is_alive) {
            self.tell(key, RunState::Exited { exit, at });
        }
    }

    /// Records news of a run as an observation; a state becomes that of the run.
    pub fn tell(&mut self, key: RunKey, news: impl Into<RunNews>) {
        let Some(run) = self.runs.get_mut(&key) else { return };
        let news = news.into();
        if let RunNews::State(state) = &news {
            run.state = state.clone();
        }
        self.seen.push_back(Observation { key, news });
    }

    /// Adds an orphaned run on GPUs that no other run has.
    pub fn plant(&mut self, spec: RunSpec, now: Instant) {
        let (key, state) = (spec.key, RunState::Running { pid: Some(1), started_at: now });
        self.runs.insert(key, Run { spec, state, is_stopping: false });
    }

    /// Removes a run that was never prepared, with no observation.
    pub fn lose(&mut self, key: RunKey) {
        self.runs.remove(&key);
    }

    /// Restarts the machine: all runs end.
    pub fn reboot(&mut self, at: Instant) {
        let alive: Vec<_> = self.alive().map(|(key, _)| *key).collect();
        alive.into_iter().for_each(|key| self.end(key, Exit::Lost, at));
    }
}
