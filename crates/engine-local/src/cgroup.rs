//! The control groups of runs. Owns: one group for each run, its limits, and its counters. Does
//! not know where groups may be created ([`place`]).
//!
//! A group is one folder under version 2, and one in the hierarchy of each controller under
//! version 1. The run's specification records which, and where.

mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::{Limits, TASKS_MAX};
use engine_fractions::UNLIMITED;
use rustix::fs::{AtFlags, CWD, OFlags, unlinkat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use trees::{Entry, Next, Visitor};

pub(crate) use place::Place;

/// The period of CPU limits, in microseconds: the kernel's default.
const CPU_PERIOD_US: u64 = 100_000;
/// The largest pages of memory of a GPU that limits are rounded to.
const PAGE_BYTES_MAX: u64 = 64 << 10;
/// Least CPU time in a period that the kernel accepts.
const CPU_QUOTA_US_MIN: u64 = 1000;
/// How often it is checked whether all processes are frozen, and the pause between.
const FREEZE_CHECKS_MAX: u32 = 20;
const FREEZE_PAUSE: Duration = Duration::from_millis(1);
/// How often a group is killed before giving up, and the pause between.
const KILL_ROUNDS_MAX: u32 = 300;
const END_PAUSE: Duration = Duration::from_millis(10);
/// Processes that are signalled after one look at all, one by one: each is an open file meanwhile.
const KILLED_AT_ONCE: usize = 64;

/// The cgroup version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Version {
    /// A hierarchy for each controller.
    V1,
    /// One for all.
    V2,
}

/// Controller of a control group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Controller {
    /// Limits CPU time.
    Cpu,
    /// Counts CPU time.
    Cpuacct,
    /// Limits and counts memory.
    Memory,
    /// Limits the number of processes and threads.
    Pids,
    /// Holds or ends all processes at once.
    Freezer,
    /// Limits memory of devices.
    Dmem,
}

/// The group of a run, which may not exist yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Group {
    version: Version,
    /// Its folder in the hierarchy of each controller that there is.
    folders: BTreeMap<Controller, PathBuf>,
}

/// Resource use of the processes of a group, including ended ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupUse {
    /// CPU time since the group's creation, in milliseconds.
    pub(crate) cpu_time_ms: u64,
    /// Current memory in bytes, without page cache that the kernel can drop.
    pub(crate) memory_bytes: u64,
}

/// Reserves memory of a region for a group, if the kernel supports it. `file`: file of the limit.
///
/// # Errors
/// It does not take the value.
fn guarantee(file: &Path, region: &str, bytes: u64) -> io::Result<()> {
    let least = file.with_file_name("dmem.min");
    if !least.exists() {
        return Ok(());
    }
    set(&least, &format!("{region} {bytes}"))
}

impl Group {
    /// Creates it if it does not exist, and sets its limits.
    ///
    /// # Errors
    /// The kernel rejects a folder or a value.
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

    /// Limits memory of devices: bytes by the region of the kernel. Believes only what the kernel
    /// says after it.
    ///
    /// # Errors
    /// The group is gone, or the kernel does not limit one of them so.
    pub(crate) fn limit_devices(&self, regions: &BTreeMap<String, u64>) -> io::Result<()> {
        let name = "dmem.max";
        let file = self.file(Controller::Dmem, name);
        let file = file.ok_or_else(|| io::Error::other("it has no controller dmem"))?;
        // One at a time: not every kernel takes several regions at once.
        for (region, &bytes) in regions {
            if bytes == UNLIMITED {
                set(&file, &format!("{region} max"))?;
                continue;
            }
            set(&file, &format!("{region} {bytes}"))?;
            let kept = value(&fs::read_to_string(&file)?, region);
            // A kernel may round down to its pages.
            if kept.is_none_or(|kept| kept > bytes || bytes - kept >= PAGE_BYTES_MAX) {
                let shown = file.display();
                return Err(io::Error::other(format!(
                    "{shown} does not limit {region} to {bytes}"
                )));
            }
            if bytes > 0 {
                guarantee(&file, region, bytes)?;
            }
        }
        Ok(())
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

    /// Without swap, where the kernel counts it: otherwise a limit would only slow a run down.
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

    /// The files into which a process writes `0` to join the group.
    ///
    /// # Errors
    /// It does not exist, or belongs to another user.
    pub(crate) fn entry_files(&self) -> io::Result<Vec<File>> {
        let open =
            |folder: &PathBuf| OpenOptions::new().write(true).open(folder.join("cgroup.procs"));
        self.places().into_iter().map(open).collect()
    }

    /// How many of its processes the kernel killed for exceeding the memory limit.
    pub(crate) fn out_of_memory_kills(&self) -> u64 {
        let name = match self.version {
            Version::V1 => "memory.oom_control",
            Version::V2 => "memory.events",
        };
        self.read(Controller::Memory, name).and_then(|text| value(&text, "oom_kill")).unwrap_or(0)
    }

    /// Current use of the group; `None` if a value is not counted.
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

    /// Kills all its processes, including those being forked. They may take a moment to end.
    pub(crate) fn kill(&self) {
        if self.version == Version::V2 {
            let by_kernel = self.set(Controller::Freezer, "cgroup.kill", 1);
            // Linux before 5.14 cannot.
            return by_kernel.unwrap_or_else(|_| self.kill_each());
        }
        // A frozen process does not fork. One stuck in a driver never freezes, but does not fork
        // either.
        let freeze = |state: &str| self.set(Controller::Freezer, "freezer.state", state).is_ok();
        let frozen =
            || self.read(Controller::Freezer, "freezer.state").is_none_or(|s| s == "FROZEN\n");
        if freeze("FROZEN") {
            for _ in 0..FREEZE_CHECKS_MAX {
                if frozen() {
                    break;
                }
                std::thread::sleep(FREEZE_PAUSE);
            }
        }
        self.kill_each();
        freeze("THAWED");
    }

    fn kill_each(&self) {
        let found: Vec<i32> = self.processes().into_iter().collect();
        for ids in found.chunks(KILLED_AT_ONCE) {
            let handle = |id: &i32| {
                let handle = pidfd_open(Pid::from_raw(*id)?, PidfdFlags::empty());
                Some((*id, handle.ok()?))
            };
            let handles: Vec<_> = ids.iter().filter_map(handle).collect();
            // A handle pins its id; that it is still in the group proves that the id was not
            // reused.
            let left = self.processes();
            for (_, handle) in handles.iter().filter(|(id, _)| left.contains(id)) {
                let _ended = pidfd_send_signal(handle, Signal::KILL);
            }
        }
    }

    /// The ids of the processes that are visible here, without zombies.
    fn processes(&self) -> BTreeSet<i32> {
        let mut found = Members::default();
        for folder in self.places() {
            // A group that goes meanwhile has no processes.
            let _gone = trees::open(CWD, folder).and_then(|group| trees::walk(group, &mut found));
        }
        found.0
    }

    /// Kills its processes, and removes it. False: something survives. An absent group is no
    /// error. Blocks, at most some seconds.
    pub(crate) fn end(&self) -> bool {
        for _ in 0..KILL_ROUNDS_MAX {
            match self.remove() {
                Ok(()) => return true,
                Err(_) => self.kill(),
            }
            std::thread::sleep(END_PAUSE);
        }
        self.processes().is_empty()
    }

    /// Removes it if it has no processes.
    pub(crate) fn discard(&self) -> io::Result<()> {
        if self.processes().is_empty() { self.remove() } else { Ok(()) }
    }

    fn remove(&self) -> io::Result<()> {
        let remove = |folder: &PathBuf| {
            trees::walk(trees::open(CWD, folder)?, &mut Removal)?;
            fs::remove_dir(folder)
        };
        self.places().into_iter().try_for_each(|folder| match remove(folder) {
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

    /// Does nothing without the controller: capabilities have reported that already.
    fn set(&self, controller: Controller, name: &str, value: impl ToString) -> io::Result<()> {
        self.file(controller, name).map_or(Ok(()), |file| set(&file, &value.to_string()))
    }
}

/// The processes of a group and of the groups that the run created in it.
#[derive(Default)]
struct Members(BTreeSet<i32>);

impl Visitor for Members {
    fn visit(&mut self, entry: Entry<'_>) -> io::Result<Next> {
        if entry.name == c"cgroup.procs" {
            // A group with threads of its own has no such list; that around it has.
            let list = entry.open(OFlags::RDONLY).map(File::from).and_then(io::read_to_string);
            let text = list.unwrap_or_default();
            self.0.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
        }
        Ok(Next::Into)
    }
}

/// Removes the groups that the run created, innermost first.
struct Removal;

impl Visitor for Removal {
    fn visit(&mut self, _entry: Entry<'_>) -> io::Result<Next> {
        Ok(Next::Into)
    }

    fn leave(&mut self, group: Entry<'_>) -> io::Result<()> {
        match unlinkat(group.parent, group.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn set(file: &Path, value: &str) -> io::Result<()> {
    fs::write(file, value).map_err(|error| {
        io::Error::new(error.kind(), format!("write {value} to {}: {error}", file.display()))
    })
}

/// The value of a key in a flat keyed file.
fn value(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests;
