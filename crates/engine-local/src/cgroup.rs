//! The control groups of runs. Owns: one group of its own for each run, the limits written into it, and
//! what the kernel counts there. Refuses to know: where groups may be made ([`place`]).
//!
//! A group is one folder under version 2, and one in the hierarchy of each controller under version 1.
//! Which it is and where it lies stands in the run's specification, so whoever comes later finds it.

mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::{Limits, TASKS_MAX};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

pub(crate) use place::Place;

/// What a limit of CPU time is counted over, in microseconds: the kernel's own default.
const CPU_PERIOD_US: u64 = 100_000;
/// Least CPU time in a period that the kernel takes.
const CPU_QUOTA_US_MIN: u64 = 1000;
/// How often it is looked whether all stand still, and how long between.
const FREEZE_LOOKS_MAX: u32 = 20;
const FREEZE_LOOK: Duration = Duration::from_millis(1);
/// How often a group is ended before it is given up, and how long between.
const END_ROUNDS_MAX: u32 = 300;
const END_PAUSE: Duration = Duration::from_millis(10);

/// Which interface the kernel shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Version {
    /// A hierarchy for each controller.
    V1,
    /// One for all.
    V2,
}

/// What is limited, counted or done through a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Controller {
    /// Limits CPU time.
    Cpu,
    /// Counts it.
    Cpuacct,
    /// Limits and counts memory.
    Memory,
    /// Limits how many processes and threads there are.
    Pids,
    /// Holds or ends all processes at once.
    Freezer,
}

/// The group of a run, which may not be made yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Group {
    version: Version,
    /// Its folder in the hierarchy of each controller that there is.
    folders: BTreeMap<Controller, PathBuf>,
}

/// What the processes of a group use, those that have ended included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupUse {
    /// Since it was made, in milliseconds.
    pub(crate) cpu_time_ms: u64,
    /// Now, without what the kernel keeps of files and can drop.
    pub(crate) memory_bytes: u64,
}

impl Group {
    /// Makes it, or finds it made, and limits it.
    ///
    /// # Errors
    /// The kernel refuses a folder or a value.
    pub(crate) fn make(&self, limits: &Limits) -> io::Result<()> {
        for folder in self.places() {
            match fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        self.limit_cpu(limits.cpu_millis_max)?;
        self.limit_memory(limits.memory_bytes_max)?;
        self.set(Controller::Pids, "pids.max", TASKS_MAX)
    }

    fn limit_cpu(&self, millis: Option<u64>) -> io::Result<()> {
        let Some(millis) = millis else { return Ok(()) };
        let quota_us = millis.saturating_mul(CPU_PERIOD_US / 1000).max(CPU_QUOTA_US_MIN);
        match self.version {
            Version::V1 => {
                self.set(Controller::Cpu, "cpu.cfs_period_us", CPU_PERIOD_US)?;
                self.set(Controller::Cpu, "cpu.cfs_quota_us", quota_us)
            }
            Version::V2 => {
                self.set(Controller::Cpu, "cpu.max", format!("{quota_us} {CPU_PERIOD_US}"))
            }
        }
    }

    /// Without swap, where the kernel counts that: else a limit would only slow a run down.
    fn limit_memory(&self, bytes: Option<u64>) -> io::Result<()> {
        let Some(bytes) = bytes else { return Ok(()) };
        let (limit, with_swap, swap) = match self.version {
            Version::V1 => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes),
            Version::V2 => ("memory.max", "memory.swap.max", 0),
        };
        self.set(Controller::Memory, limit, bytes)?;
        match self.file(Controller::Memory, with_swap) {
            Some(file) if file.exists() => self.set(Controller::Memory, with_swap, swap),
            _ => Ok(()),
        }
    }

    /// What a process writes `0` into to come into the group.
    ///
    /// # Errors
    /// It is not made, or is not this user's.
    pub(crate) fn doors(&self) -> io::Result<Vec<File>> {
        let open =
            |folder: &PathBuf| OpenOptions::new().write(true).open(folder.join("cgroup.procs"));
        self.places().into_iter().map(open).collect()
    }

    /// How many of its processes were killed because it had more memory than it may.
    pub(crate) fn out_of_memory_kills(&self) -> u64 {
        let name = match self.version {
            Version::V1 => "memory.oom_control",
            Version::V2 => "memory.events",
        };
        self.read(Controller::Memory, name).and_then(|text| value(&text, "oom_kill")).unwrap_or(0)
    }

    /// None: it does not count one of them.
    pub(crate) fn usage(&self) -> Option<GroupUse> {
        let (cpu_time_ms, name, droppable) = match self.version {
            Version::V1 => {
                let nanoseconds = self.read(Controller::Cpuacct, "cpuacct.usage")?;
                let ms = nanoseconds.trim().parse::<u64>().ok()? / 1_000_000;
                (ms, "memory.usage_in_bytes", "total_inactive_file")
            }
            Version::V2 => {
                let stat = self.read(Controller::Cpuacct, "cpu.stat")?;
                (value(&stat, "usage_usec")? / 1000, "memory.current", "inactive_file")
            }
        };
        let all: u64 = self.read(Controller::Memory, name)?.trim().parse().ok()?;
        let stat = self.read(Controller::Memory, "memory.stat")?;
        let memory_bytes = all.saturating_sub(value(&stat, droppable).unwrap_or(0));
        Some(GroupUse { cpu_time_ms, memory_bytes })
    }

    /// Kills all its processes, those as well that are being forked meanwhile. They may take a moment to
    /// be gone.
    pub(crate) fn kill(&self) {
        if self.version == Version::V2 {
            let by_kernel = self.set(Controller::Freezer, "cgroup.kill", 1);
            // Before Linux 5.14 it cannot.
            return by_kernel.unwrap_or_else(|_| self.kill_each());
        }
        // Whoever stands still forks nothing. One that is stuck in a driver never does; it forks nothing
        // either.
        let freeze = |state: &str| self.set(Controller::Freezer, "freezer.state", state).is_ok();
        let frozen =
            || self.read(Controller::Freezer, "freezer.state").is_none_or(|s| s == "FROZEN\n");
        if freeze("FROZEN") {
            for _ in 0..FREEZE_LOOKS_MAX {
                if frozen() {
                    break;
                }
                std::thread::sleep(FREEZE_LOOK);
            }
        }
        self.kill_each();
        freeze("THAWED");
    }

    fn kill_each(&self) {
        for pid in self.processes() {
            let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            // The handle pins the id; that it is still in the group proves that it was not another's.
            if self.processes().contains(&pid) {
                let _ended = pidfd_send_signal(handle, Signal::KILL);
            }
        }
    }

    /// Those that this process can see. An ended one that nobody has waited for is none.
    fn processes(&self) -> Vec<Pid> {
        let folders = self.places().into_iter().flat_map(|folder| whole(folder));
        let lists = folders.map(|folder| folder.join("cgroup.procs"));
        let text: String = lists.filter_map(|list| fs::read_to_string(list).ok()).collect();
        let found: BTreeSet<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        found.into_iter().filter_map(Pid::from_raw).collect()
    }

    /// Kills what is in it, and removes it. False: something resists. One that is not there is as good.
    /// Blocks, at most some seconds.
    pub(crate) fn end(&self) -> bool {
        for _ in 0..END_ROUNDS_MAX {
            match self.remove() {
                Ok(()) => return true,
                Err(_) => self.kill(),
            }
            std::thread::sleep(END_PAUSE);
        }
        self.processes().is_empty()
    }

    /// Removes it where no process is in it.
    pub(crate) fn discard(&self) -> io::Result<()> {
        if self.processes().is_empty() { self.remove() } else { Ok(()) }
    }

    fn remove(&self) -> io::Result<()> {
        let mut all = self.places().into_iter().flat_map(|folder| whole(folder));
        all.try_for_each(|folder| match fs::remove_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
    }

    /// Its folders, each once.
    fn places(&self) -> BTreeSet<&PathBuf> {
        self.folders.values().collect()
    }

    fn file(&self, controller: Controller, name: &str) -> Option<PathBuf> {
        self.folders.get(&controller).map(|folder| folder.join(name))
    }

    fn read(&self, controller: Controller, name: &str) -> Option<String> {
        fs::read_to_string(self.file(controller, name)?).ok()
    }

    /// Nothing where there is no such controller: what cannot be limited was told before.
    fn set(&self, controller: Controller, name: &str, value: impl ToString) -> io::Result<()> {
        self.file(controller, name).map_or(Ok(()), |file| set(&file, &value.to_string()))
    }
}

/// A group and those that the run made in it, the innermost first.
fn whole(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let inner = inner.flat_map(|entry| whole(&entry.path()));
    inner.chain([folder.to_owned()]).collect()
}

fn set(file: &Path, value: &str) -> io::Result<()> {
    fs::write(file, value).map_err(|error| {
        io::Error::new(error.kind(), format!("write {value} to {}: {error}", file.display()))
    })
}

/// The number behind a name, in a file of one on each line.
fn value(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests;
