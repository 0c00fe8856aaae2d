//! Health of GPUs and their computing processes, as the driver reports them. Owns: which answers of
//! the driver mean that a device is lost. Does not know which runs the processes belong to, and
//! what follows.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, EventSet, Nvml};

use crate::processes::{self, listed};

/// Errors of the driver's log (Xid) after which a GPU computes no more before it is reset: memory
/// that cannot be corrected (48, 64, 95), off the bus (79), its own processor hangs (119, 120) or
/// stopped (140). Others are mostly faults of programs. Source: NVIDIA, "XID Errors".
const XIDS_FATAL: [u64; 7] = [48, 64, 79, 95, 119, 120, 140];

/// The PID namespace in which Linux starts: there the driver and `/proc` mean the same processes.
const PID_NAMESPACE_FIRST: &str = "pid:[4026531836]";

/// Health and processes of a GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// Reason why it cannot be used; `None` if it can.
    pub fault: Option<String>,
    /// Memory of processes that compute on it, in bytes by process id; `None` if the driver does
    /// not report it now. Processes that also draw on a screen are not included, and none are if
    /// process ids have no meaning here.
    pub processes: Option<BTreeMap<u32, u64>>,
}

impl Health {
    /// True if there are processes on it.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.processes.as_ref().is_some_and(|processes| !processes.is_empty())
    }

    /// Processes outside our runs, converted by `told` from each and its memory; `None` if the
    /// owner of any process is unknown.
    pub fn foreign<T>(
        &self,
        ours: impl Fn(u32) -> Option<bool>,
        told: impl Fn(Program, u64) -> T,
    ) -> Option<BTreeMap<u32, T>> {
        let mut foreign = BTreeMap::new();
        for (&pid, &bytes) in self.processes.as_ref()? {
            // One that has ended meanwhile holds nothing.
            if !ours(pid)?
                && let Some(program) = program(pid)
            {
                foreign.insert(pid, told(program, bytes));
            }
        }
        Some(foreign)
    }
}

/// A process, for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The name of its program, without arguments: those may be secret.
    pub name: String,
    /// Name of its user, or its number.
    pub user: String,
}

/// Looks at GPUs again and again.
pub struct Watcher {
    nvml: &'static Nvml,
    gpus: BTreeMap<String, Watched>,
    /// True if process ids of the driver have the same meaning here.
    sees_processes: bool,
}

/// State of a GPU between queries.
struct Watched {
    /// True if it was divided when it was first seen.
    divided: Option<bool>,
    errors: Option<EventSet<'static>>,
    /// The fatal error it had.
    fatal: Option<u64>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher").finish_non_exhaustive()
    }
}

impl Watcher {
    /// Connects to the driver; `None` if there is none, or it does not answer. Blocks while the
    /// driver wakes up. The connection stays for the life of the process.
    #[must_use]
    pub fn open() -> Option<Self> {
        let nvml: &'static Nvml = Box::leak(Box::new(Nvml::init().ok()?));
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let sees_processes = namespace.as_os_str() == PID_NAMESPACE_FIRST;
        Some(Self { nvml, gpus: BTreeMap::new(), sees_processes })
    }

    /// How each of these GPUs is. Blocks for milliseconds.
    ///
    /// # Errors
    /// The driver does not say; nothing is known of any GPU then.
    pub fn look(&mut self, uuids: &[String]) -> Result<BTreeMap<String, Health>, String> {
        self.nvml.device_count().map_err(|error| error.to_string())?;
        let each = uuids.iter().map(|uuid| {
            let lost = |error| Health { fault: Some(fault_of(&error)), ..Health::default() };
            (uuid.clone(), self.look_at(uuid).unwrap_or_else(lost))
        });
        Ok(each.collect())
    }

    fn look_at(&mut self, uuid: &str) -> Result<Health, NvmlError> {
        let device = self.nvml.device_by_uuid(uuid)?;
        // Answered from the device itself; names and numbers are the driver's memory.
        match device.memory_info() {
            Ok(_) | Err(NvmlError::NotSupported | NvmlError::NoPermission) => {}
            Err(error) => return Err(error),
        }
        let nvml = self.nvml;
        let known = self.gpus.entry(uuid.to_owned()).or_insert_with(|| Watched {
            divided: is_divided(&device),
            errors: errors_of(nvml, &device),
            fatal: None,
        });
        known.fatal = known.fatal.or_else(|| known.errors.as_ref().and_then(next_fatal));
        let fault = match known.fatal {
            Some(xid) => Some(format!("the driver reported fatal error Xid {xid} of it")),
            None if is_divided(&device)
                .zip(known.divided)
                .is_some_and(|(now, then)| now != then) =>
            {
                Some("it was divided into MIG instances, or made whole again".to_owned())
            }
            None => None,
        };
        let processes =
            if self.sees_processes { computing(&device).ok() } else { Some(BTreeMap::new()) };
        Ok(Health { fault, processes })
    }
}

/// Reason for an error of a device while the driver answers: for many lost devices it is only an
/// unknown error.
pub(crate) fn fault_of(error: &NvmlError) -> String {
    match error {
        NvmlError::NotFound => "the driver does not have it any more".to_owned(),
        other => format!("the driver does not answer for it: {other}"),
    }
}

/// True if the device is in MIG mode; `None` if it does not support it.
fn is_divided(device: &Device<'_>) -> Option<bool> {
    device.mig_mode().ok().map(|mode| mode.current == 1)
}

/// Errors of a device from now on; `None` if the driver does not report them.
fn errors_of(nvml: &'static Nvml, device: &Device<'static>) -> Option<EventSet<'static>> {
    let set = nvml.create_event_set().ok()?;
    device.register_events(EventTypes::CRITICAL_XID_ERROR, set).ok()
}

/// The first fatal error since the last call.
fn next_fatal(errors: &EventSet<'static>) -> Option<u64> {
    let next = || Some(errors.wait(0).ok()?.event_data);
    std::iter::from_fn(next).find_map(|data| match data {
        Some(XidError::Value(xid)) => Some(xid).filter(|xid| XIDS_FATAL.contains(xid)),
        _ => None,
    })
}

fn computing(device: &Device<'_>) -> Result<BTreeMap<u32, u64>, NvmlError> {
    let mut held = processes::computing(device)?;
    held.retain(|_, bytes| *bytes > 0);
    for process in listed(device.running_graphics_processes())? {
        held.remove(&process.pid);
    }
    Ok(held)
}

/// Program and user of a process; `None` if there is no process with this id.
fn program(pid: u32) -> Option<Program> {
    let folder = format!("/proc/{pid}");
    let name = fs::read_to_string(format!("{folder}/comm")).ok()?;
    let uid = fs::metadata(&folder).ok()?.uid().to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = fields.find(|fields| fields.get(2) == Some(&uid.as_str()));
    let user = found.and_then(|fields| fields.first().map(ToString::to_string)).unwrap_or(uid);
    Some(Program { name: units::shown(name.trim()), user })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_as_the_driver_tells_it() {
        let lost = fault_of(&NvmlError::GpuLost);
        assert!(lost.contains("fell off the bus"), "{lost}");
        assert!(fault_of(&NvmlError::Unknown).contains("does not answer"));
    }

    #[test]
    fn a_process_of_no_run_is_foreign_as_long_as_the_process_is_there() {
        let own = std::process::id();
        let health = Health { fault: None, processes: Some([(own, 5), (u32::MAX, 6)].into()) };
        let held = |health: &Health, ours: &dyn Fn(u32) -> Option<bool>| {
            health.foreign(ours, |_, bytes| bytes)
        };
        assert_eq!(held(&health, &|_| Some(false)), Some([(own, 5)].into()));
        assert_eq!(held(&health, &|pid| Some(pid == own)), Some([].into()));
        assert_eq!(held(&health, &|pid| (pid != own).then_some(true)), None, "not known of one");
        assert_eq!(held(&Health::default(), &|_| Some(false)), None, "the driver does not tell");
    }

    #[test]
    fn a_process_is_told_by_its_program_and_user() {
        let own = program(std::process::id()).expect("this process");
        assert!(!own.name.is_empty() && !own.user.is_empty(), "{own:?}");
        assert_eq!(program(u32::MAX), None);
    }

    #[test]
    fn a_machine_with_or_without_a_driver_gets_an_answer() {
        // This GPU does not exist; where there is a driver it says so.
        let Some(mut watcher) = Watcher::open() else { return };
        let uuid = "GPU-00000000-0000-0000-0000-000000000000".to_owned();
        let seen = watcher.look(std::slice::from_ref(&uuid)).expect("a driver that works");
        assert!(seen[&uuid].fault.is_some());
    }
}
