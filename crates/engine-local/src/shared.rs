//! State shared by the engine and its tasks. Owns: the state of each run, its operations in
//! progress, and the tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{
    Error, KeyedLock, ListedRun, Observation, Observations, Outage, RunEvent, RunKey, RunState,
};
use engine_channel::{Channels, Opens, Owner, Storage};
use engine_fractions::Fractions;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use trees::Trash;

use crate::cgroup::Place;
use crate::image::ImageTable;
use crate::isolation::{Account, Isolator};
use crate::memory::Pods;
use crate::paths::Paths;
use crate::process::{is_below, kill_marked};
use crate::record::{RunDir, StateFile};

/// Ends the processes of runs that lost their supervisor; returns the keys of the survivors.
pub(crate) type Sweep = fn(&BTreeSet<String>) -> BTreeSet<String>;

/// State shared by the engine and its tasks.
#[derive(Debug)]
pub(crate) struct LocalEngineState {
    pub(crate) paths: Paths,
    pub(crate) supervisor: PathBuf,
    pub(crate) images: ImageTable,
    pub(crate) inherited: BTreeMap<String, String>,
    pub(crate) umask: Option<u32>,
    /// Maximum stored output of a run, in bytes; `None` for all.
    pub(crate) output_bytes_max: Option<u64>,
    /// Largest copy of a repository or bucket, in bytes.
    pub(crate) copy_bytes_max: u64,
    /// The parent control groups of runs.
    pub(crate) place: Place,
    /// The isolation of runs.
    pub(crate) separator: Isolator,
    /// [`kill_marked`]; replaced in tests, where no process survives.
    pub(crate) kill_marked: Sweep,
    pub(crate) driver: gpu::Driver,
    /// Enforcement of fractions of GPUs.
    pub(crate) fractions: Fractions,
    pub(crate) observations: Arc<Observations>,
    /// Where runs report their checkpoints.
    pub(crate) channels: Channels,
    /// Deletes the files of ended runs; dropped before the memory that some of them are in.
    pub(crate) trash: Trash,
    /// Folders in memory for copies of checkpoints; `None` if this machine has none.
    pub(crate) memory: Option<Pods>,
    /// Out-of-memory kills of each run that were reported.
    kills: Mutex<BTreeMap<RunKey, u64>>,
    states: Mutex<BTreeMap<RunKey, StateFile>>,
    /// Operations of one run are serialized.
    pub(crate) turns: KeyedLock,
    /// Runs whose repositories are being copied; dropping the sender cancels that.
    copying: Mutex<BTreeMap<RunKey, oneshot::Sender<()>>>,
    /// Outage because the disk of the state is almost full.
    outage: Mutex<Option<Outage>>,
    /// The runs that are being killed in place of their supervisors.
    forced: Mutex<BTreeSet<RunKey>>,
    /// `None` once the engine is dropped.
    tasks: Mutex<Option<JoinSet<()>>>,
}

/// No code panics inside a change while it holds one of these locks.
fn open<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LocalEngineState {
    pub(crate) fn new(
        paths: Paths,
        supervisor: PathBuf,
        images: ImageTable,
        inherited: BTreeMap<String, String>,
    ) -> Self {
        let observations = Arc::new(Observations::default());
        let channels = Channels::new(Arc::clone(&observations));
        Self {
            paths,
            supervisor,
            images,
            inherited,
            umask: None,
            output_bytes_max: None,
            copy_bytes_max: u64::MAX,
            place: Place::none("control groups were not looked for"),
            separator: Isolator::none("nothing was looked for"),
            kill_marked,
            driver: gpu::Driver::default(),
            fractions: Fractions::none("nothing was looked for"),
            observations,
            channels,
            trash: Trash::default(),
            memory: None,
            kills: Mutex::default(),
            states: Mutex::default(),
            turns: KeyedLock::default(),
            copying: Mutex::default(),
            outage: Mutex::default(),
            forced: Mutex::default(),
            tasks: Mutex::new(Some(JoinSet::new())),
        }
    }

    /// That the disk of the state is almost full.
    pub(crate) fn outage(&self) -> Option<Outage> {
        open(&self.outage).clone()
    }

    /// Begins or ends it; the first one stays until it ends.
    pub(crate) fn set_outage(&self, outage: Option<Outage>) {
        *open(&self.outage) = outage;
    }

    pub(crate) fn dir(&self, key: RunKey) -> RunDir {
        RunDir::new(&self.paths.runs(), key)
    }

    pub(crate) fn state(&self, key: RunKey) -> Option<StateFile> {
        open(&self.states).get(&key).cloned()
    }

    /// The runs in such a state.
    pub(crate) fn keys_where(&self, wanted: impl Fn(&StateFile) -> bool) -> Vec<RunKey> {
        let states = open(&self.states);
        states.iter().filter(|(_, state)| wanted(state)).map(|(key, _)| *key).collect()
    }

    /// Every registered run. Reads files.
    pub(crate) fn list(&self) -> Vec<ListedRun> {
        let states = open(&self.states).clone();
        let listed = |(key, state): (RunKey, StateFile)| {
            let has_ended = matches!(state, StateFile::Exited { .. });
            let place = if has_ended { None } else { self.dir(key).place() };
            ListedRun { key, state: state.into(), place }
        };
        states.into_iter().map(listed).collect()
    }

    /// Registers a run without reporting it.
    pub(crate) fn know(&self, key: RunKey, state: StateFile) {
        open(&self.states).insert(key, state);
    }

    /// False: a task is doing it already.
    pub(crate) fn begin_to_force(&self, key: RunKey) -> bool {
        open(&self.forced).insert(key)
    }

    pub(crate) fn end_to_force(&self, key: RunKey) {
        open(&self.forced).remove(&key);
    }

    pub(crate) fn forget(&self, key: RunKey) {
        open(&self.states).remove(&key);
        open(&self.kills).remove(&key);
        self.fractions.forget(key);
        self.channels.close(key);
    }

    /// Reports out-of-memory kills since the last report; `kills` counts from the start of the
    /// run.
    pub(crate) fn report_out_of_memory_kills(&self, key: RunKey, kills: u64) {
        let before = open(&self.kills).insert(key, kills).unwrap_or(0);
        if kills > before {
            let struck = RunEvent::Struck(kills - before);
            self.observations.report(Observation::new(key, struck));
        }
    }

    /// Marks them as reported: by the server before this one, if it could.
    pub(crate) fn restore_out_of_memory_kills(&self, key: RunKey, kills: u64) {
        open(&self.kills).insert(key, kills);
    }

    /// Records the state of a registered run, and reports it if it changed. The first end stays.
    pub(crate) fn report(&self, key: RunKey, state: StateFile) {
        let has_ended = matches!(state, StateFile::Exited { .. });
        if has_ended {
            // The GPU memory of the run is free before a reader can see that the run has ended.
            self.fractions.forget(key);
        }
        let mut states = open(&self.states);
        let Some(known) = states.get_mut(&key) else { return };
        let news = match (&*known, &state) {
            (StateFile::Exited { .. }, _) | (_, StateFile::Starting) => false,
            (known, state) => known != state,
        };
        if news {
            *known = state.clone();
            self.observations.report(Observation::new(key, RunState::from(state)));
        }
        drop(states);
        if has_ended {
            self.channels.close(key);
        }
    }

    /// Opens the channel of a run. A run works without.
    pub(crate) fn open_channel(&self, key: RunKey, account: Option<&Account>, opens: Opens) {
        let dir = self.dir(key);
        let folder = dir.channel();
        let is_own = move |pid| {
            // Its supervisor adopts what its processes leave behind.
            dir.holder().is_ok_and(|holder| holder.is_some_and(|root| is_below(root, pid)))
        };
        let account = account.map(|account| (account.uid, account.gid));
        let owner = Owner::Processes { account, is_own: Box::new(is_own) };
        let opened = self.channels.open(key, &folder, (owner, Storage::Machine), opens);
        if let Err(error) = opened {
            tracing::warn!("run {key} cannot report checkpoints: {error}");
        }
    }

    /// Reports progress of a run's copies. It is not stored.
    pub(crate) fn report_progress(&self, key: RunKey, what: String) {
        self.observations.report(Observation::new(key, RunEvent::Preparing(what)));
    }

    /// Marks the copies as in progress, until the returned receiver fires.
    pub(crate) fn begin_copying(&self, key: RunKey) -> oneshot::Receiver<()> {
        let (wanted, stop) = oneshot::channel();
        open(&self.copying).insert(key, wanted);
        stop
    }

    /// True if copies were in progress; they are cancelled, or complete.
    pub(crate) fn end_copying(&self, key: RunKey) -> bool {
        open(&self.copying).remove(&key).is_some()
    }

    /// Ends the processes of runs that lost their supervisor; returns the keys of the survivors.
    pub(crate) fn sweep(&self, keys: &BTreeSet<RunKey>) -> BTreeSet<RunKey> {
        let resist = |key: &&RunKey| self.dir(**key).group().is_some_and(|group| !group.end());
        let mut resisting: BTreeSet<RunKey> = keys.iter().filter(resist).copied().collect();
        // A process can leave its group where it may write, as root may everywhere.
        let marked = (self.kill_marked)(&keys.iter().map(ToString::to_string).collect());
        resisting.extend(keys.iter().filter(|key| marked.contains(&key.to_string())));
        resisting
    }

    /// Runs a task for as long as the engine lives.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(tasks) = &mut *open(&self.tasks) {
            while tasks.try_join_next().is_some() {}
            tasks.spawn(task);
        }
    }

    pub(crate) fn end_tasks(&self) {
        // Dropped outside the lock: a task's end may need it.
        let tasks = open(&self.tasks).take();
        drop(tasks);
    }
}

/// Runs work that blocks, to its end even if the caller is dropped.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|fault| Err(Error::io("finish a task", io::Error::other(fault))))
}
