//! Opening the engine. Owns: the folders under the state directory, and the recovery of runs of an
//! earlier server: which are alive, which ended, which lost their supervisor.
//!
//! ```text
//! runs/<pod>.<generation>/     one run (`record`)
//! pods/<pod>/work, home, checkpoint  what a pod keeps from one run to the next
//! shims/nvidia-smi, gpu-check  put on the PATH of runs with simulated GPUs
//! tools/elastane               at the end of the PATH of every run
//! fraction/                    libraries of GPU fractions, sockets of simulated GPUs
//! trash/                       removed, being deleted
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use engine::{Error, IsolationKind, RunKey};
use engine_channel::Opens;
use engine_fractions::{FractionOptions, FractionPolicy, Fractions, Runs};

use crate::cgroup::Place;
use crate::disk;
use crate::environment;
use crate::events;
use crate::gpu_watch;
use crate::image::ImageTable;
use crate::isolation::{Boundary, Isolator, Separation};
use crate::launch::spawn_supervisor;
use crate::memory;
use crate::paths::{Paths, make_dir};
use crate::process;
use crate::record::{ExitFile, RunDir, Runtime, StateFile};
use crate::shared::LocalEngineState;

/// The options of the engine.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where runs and their data are kept. Used by one server at a time.
    pub state_dir: PathBuf,
    /// The `elastane` program; `<supervisor> supervise <run dir>` must call
    /// [`supervise`](crate::supervise), `<supervisor> nvidia-smi`
    /// [`nvidia_smi`](crate::nvidia_smi).
    pub supervisor: PathBuf,
    /// Programs that stand in for images, by name.
    pub images: ImageTable,
    /// The umask of runs, for a server that has a stricter one itself; `None` for the server's.
    pub umask: Option<u32>,
    /// Maximum stored output of a run, in bytes. Older output is deleted.
    pub output_bytes_max: u64,
    /// Largest copy of a repository or bucket, in bytes.
    pub copy_bytes_max: u64,
    /// Isolation of runs; `None` for no isolation.
    pub separation: Option<Separation>,
    /// Enforcement of fractions of GPUs; `None` for an engine that starts nothing.
    pub fractions: Option<FractionOptions>,
}

/// The engine for this machine. Dropping it leaves every run running.
#[derive(Debug)]
pub struct LocalEngine {
    pub(crate) shared: Arc<LocalEngineState>,
    /// See [`memory::Pods::keep`].
    _memory: Option<OwnedFd>,
}

impl LocalEngine {
    /// Opens the engine on a state directory, and adopts the runs of an earlier server. Must be
    /// called in a tokio runtime; blocks for some milliseconds, longer if supervisors vanished
    /// and left processes that are slow to die.
    ///
    /// # Errors
    /// The state directory cannot be read or written.
    pub fn open(options: Options) -> Result<Self, Error> {
        let Options {
            state_dir,
            supervisor,
            images,
            umask,
            output_bytes_max,
            copy_bytes_max,
            separation,
            fractions,
        } = options;
        make_dir(&state_dir)?;
        let root = state_dir
            .canonicalize()
            .map_err(|source| Error::io(format!("find {}", state_dir.display()), source))?;
        let paths = Paths { root };
        for folder in [paths.runs(), paths.pods(), paths.shims(), paths.tools()] {
            make_dir(&folder)?;
        }
        for name in ["nvidia-smi", "gpu-check"] {
            write_shim(&paths.shims(), name, &supervisor)?;
        }
        write_program(&paths.tools(), "elastane", &supervisor)?;
        let separator = match separation {
            Some(wanted) => {
                let seen = [&*paths.pods(), &*paths.shims()];
                Isolator::find(wanted, &paths.root, seen, &supervisor)?
            }
            None => Isolator::none("the server was not asked to keep runs apart"),
        };
        let mut place = Place::find();
        let fractions = match fractions {
            Some(mut options) => {
                let hard = options.policy == FractionPolicy::HardOnly && !options.gpus.is_empty();
                if hard || options.policy == FractionPolicy::Dmem {
                    options.groups = place.limit_devices();
                }
                let folder = paths.fraction();
                let enter = |command: &mut Command, mounts: Vec<(PathBuf, PathBuf)>| {
                    separator.enter_first(command, &folder, mounts)
                };
                let first = separator.first().map(|first| ((first.uid, first.gid), &enter as _));
                Fractions::open(&folder, &supervisor, Runs::Processes(first), &options)?
            }
            None => Fractions::none("nothing is started"),
        };
        let inherited = environment::inherited();
        let mut shared = LocalEngineState::new(paths, supervisor, images, inherited);
        let trash = shared.paths.trash();
        let added = shared.trash.add(&trash);
        added.map_err(|source| Error::io(format!("empty {}", trash.display()), source))?;
        shared.umask = umask;
        shared.place = place;
        shared.separator = separator;
        shared.fractions = fractions;
        shared.output_bytes_max = Some(output_bytes_max);
        shared.copy_bytes_max = copy_bytes_max;
        // Landlock can close that folder only with all that is beside it.
        if shared.separator.found().kind != IsolationKind::Landlock {
            let (root, pods) = (&shared.paths.root, shared.paths.pods());
            shared.memory = memory::Pods::open(root, &shared.supervisor, &pods, &shared.trash);
        }
        let shared = Arc::new(shared);
        recover_all(&shared)?;
        gpu_watch::spawn(&shared);
        disk::spawn(&shared);
        let memory = shared.memory.as_ref().and_then(memory::Pods::keep);
        Ok(Self { shared, _memory: memory })
    }
}

impl Drop for LocalEngine {
    fn drop(&mut self) {
        self.shared.end_tasks();
        self.shared.trash.end();
    }
}

fn write_shim(folder: &Path, name: &str, binary: &Path) -> Result<(), Error> {
    write_script(folder, name, &format!("{} {name}", quoted(binary)))
}

/// So that runs find the program although the `PATH` of the server does not have it.
fn write_program(folder: &Path, name: &str, binary: &Path) -> Result<(), Error> {
    write_script(folder, name, &quoted(binary))
}

fn quoted(binary: &Path) -> String {
    shell_words::quote(&binary.display().to_string()).into_owned()
}

fn write_script(folder: &Path, name: &str, command: &str) -> Result<(), Error> {
    let script = format!("#!/bin/sh\nexec {command} \"$@\"\n");
    let path = folder.join(name);
    let write = || {
        // A run may be executing the old file: replace it, never rewrite it.
        let new = folder.join(format!("{name}.new"));
        fs::write(&new, script)?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
        fs::rename(&new, &path)?;
        // For runs of other accounts, which see this folder and not the state directory around it.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
    };
    write().map_err(|source| Error::io(format!("write {}", path.display()), source))
}

/// State of a run directory that recovery finds.
enum RecoveredRun {
    Ended(StateFile),
    Alive(StateFile),
    Vanished(StateFile),
    /// Prepared and not claimed: the server crashed during a start, and a supervisor may exist.
    Prepared,
    /// Not prepared, so there is no supervisor.
    Empty,
}

fn recover_all(shared: &Arc<LocalEngineState>) -> Result<(), Error> {
    let mut vanished = BTreeMap::new();
    let groups = shared.place.runs();
    let mut others = groups.clone();
    let mut unbounded = 0_usize;
    for (key, dir) in run_dirs(&shared.paths.runs())? {
        others.remove(&key);
        match recover(&dir) {
            Ok(RecoveredRun::Ended(state)) => {
                // A group that the supervisor could not remove.
                if groups.contains(&key) && dir.group().is_some_and(|group| !group.end()) {
                    tracing::warn!("the control group of the ended run {key} cannot be removed");
                }
                shared.know(key, state);
            }
            Ok(RecoveredRun::Alive(state)) => {
                unbounded += usize::from(has_no_boundary(&dir));
                let kills = dir.group().map_or(0, |group| group.out_of_memory_kills());
                shared.restore_out_of_memory_kills(key, kills);
                adopt(shared, key, &dir);
                shared.know(key, state);
                events::spawn_adopted(shared, key);
            }
            Ok(RecoveredRun::Vanished(state)) => drop(vanished.insert(key, (dir, state))),
            Ok(RecoveredRun::Prepared) => {
                adopt(shared, key, &dir);
                finish_start(shared, key, &dir);
            }
            Ok(RecoveredRun::Empty) => {
                if let Err(error) = shared.trash.discard(dir.path()) {
                    tracing::warn!("cannot take away {}: {error}", dir.path().display());
                }
            }
            // It may have processes, so it is listed; its end is reported once its files can be
            // read. Recovery of the other runs continues.
            Err(error) => {
                tracing::warn!("cannot read run {key}: {error}; trying again");
                adopt(shared, key, &dir);
                shared.know(key, StateFile::Starting);
                events::spawn_adopted(shared, key);
            }
        }
    }
    if unbounded > 0 && shared.separator.found().kind != IsolationKind::None {
        tracing::warn!(
            "{unbounded} runs began before runs were kept apart, and have the rights of the \
             server; suspend and resume their workloads"
        );
    }
    end_vanished(shared, vanished);
    clear_groups(shared, others);
    Ok(())
}

/// Opens the channel of a run again, and follows what it has of GPUs. It works, and its limits
/// hold, without that.
fn adopt(shared: &LocalEngineState, key: RunKey, dir: &RunDir) {
    let spec = match dir.read_spec() {
        Ok(spec) => spec,
        Err(error) => {
            tracing::warn!("what {key} has of GPUs is not measured: {error}");
            return;
        }
    };
    let Runtime::Process(process) = spec.runtime;
    shared.open_channel(key, process.boundary.as_ref().and_then(Boundary::account), Opens::Again);
    let Some(fraction) = process.fraction else { return };
    if let Err(error) = shared.fractions.adopt(key, &fraction, &dir.fraction()) {
        tracing::warn!("what {key} has of GPUs is not measured: {error}");
    }
}

/// True if the run was started by a server that did not isolate runs.
fn has_no_boundary(dir: &RunDir) -> bool {
    dir.read_spec().is_ok_and(|spec| {
        let Runtime::Process(process) = spec.runtime;
        process.boundary.is_none()
    })
}

/// Removes empty control groups of runs whose state directory was deleted. A run of another server
/// has a supervisor, even while its group is empty.
fn clear_groups(shared: &LocalEngineState, mut others: BTreeSet<RunKey>) {
    // Read after the groups were listed, so that every run with a group then is found.
    let Some(supervised) = process::supervised().filter(|_| !others.is_empty()) else { return };
    others.retain(|key| !supervised.contains(key));
    for (key, group) in others.iter().filter_map(|key| Some((key, shared.place.group(*key)?))) {
        if let Err(error) = group.discard() {
            tracing::debug!(
                "the control group of {key}, which has no run, cannot be removed: {error}"
            );
        }
    }
}

/// One sweep for all runs. A run whose processes survive is followed like a living one.
fn end_vanished(shared: &Arc<LocalEngineState>, vanished: BTreeMap<RunKey, (RunDir, StateFile)>) {
    let resisting = shared.sweep(&vanished.keys().copied().collect());
    for (key, (dir, state)) in vanished {
        if resisting.contains(&key) {
            adopt(shared, key, &dir);
            shared.know(key, state);
            events::spawn_adopted(shared, key);
            continue;
        }
        events::finish(key, &dir);
        let lost = StateFile::exited(ExitFile::Lost);
        if let Err(error) = dir.write_state(&lost) {
            tracing::warn!("cannot record that run {key} is lost: {error}");
        }
        shared.know(key, lost);
    }
}

/// Finishes the interrupted start. If the first supervisor exists after all, the second finds the
/// run claimed and exits. A run that is no longer wanted is in the list and can be stopped.
fn finish_start(shared: &Arc<LocalEngineState>, key: RunKey, dir: &RunDir) {
    match spawn_supervisor(shared, dir) {
        Ok(supervisor) => {
            shared.know(key, StateFile::Starting);
            events::spawn_started(shared, key, supervisor);
        }
        // Not registered, so `start` tries again.
        Err(error) => tracing::warn!("cannot start the supervisor of run {key}: {error}"),
    }
}

fn recover(dir: &RunDir) -> io::Result<RecoveredRun> {
    // Check the lock first: a supervisor that ends in between leaves a final state.
    let holder = dir.holder()?;
    Ok(match (dir.read_state()?, holder) {
        (Some(state @ StateFile::Exited { .. }), _) => RecoveredRun::Ended(state),
        (Some(state), Some(_)) => RecoveredRun::Alive(state),
        (None, Some(_)) => RecoveredRun::Alive(StateFile::Starting),
        (Some(state), None) => RecoveredRun::Vanished(state),
        (None, None) if dir.has_spec() => RecoveredRun::Prepared,
        (None, None) => RecoveredRun::Empty,
    })
}

fn run_dirs(runs: &Path) -> Result<Vec<(RunKey, RunDir)>, Error> {
    let unreadable = |source| Error::io(format!("read {}", runs.display()), source);
    let mut found = Vec::new();
    for entry in fs::read_dir(runs).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        match entry.file_name().to_str().map(str::parse::<RunKey>) {
            Some(Ok(key)) => found.push((key, RunDir::at(&entry.path()))),
            _ => tracing::warn!("{} is not a run; left alone", entry.path().display()),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
