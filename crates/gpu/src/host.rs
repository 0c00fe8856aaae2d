//! Capacity of this machine: cores, memory, its name. Owns: the limits that a container sets
//! (cgroup v2), so that the scheduler promises no more than a run can use.

use std::fs;
use std::path::{Path, PathBuf};

use units::check_name;

/// CPU and memory that may be used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Thousandths of a core.
    pub cpu_millis: u64,
    /// Bytes of main memory.
    pub memory_bytes: u64,
}

/// Capacity that this process may use: the least of the hardware, the CPU affinity, and the limits
/// of every control group it is in. Memory is 0 if `/proc` is hidden.
#[must_use]
pub fn host_capacity() -> Capacity {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let whole = Capacity { cpu_millis: cores as u64 * 1000, memory_bytes: memory_installed() };
    cgroup_folders().iter().fold(whole, |capacity, folder| tighten(capacity, folder))
}

/// This machine's name, if it can name a node; else `node-0`.
#[must_use]
pub fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // Only the first label: a node name is one label, as Kubernetes' host names are.
    let label = name.trim().split('.').next().unwrap_or_default().to_ascii_lowercase();
    if check_name(&label).is_ok() { label } else { "node-0".to_owned() }
}

fn memory_installed() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

/// The folder of this process's control group and of every group above it.
fn cgroup_folders() -> Vec<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    let leaf = root.join(own);
    leaf.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_owned).collect()
}

fn tighten(capacity: Capacity, folder: &Path) -> Capacity {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    // Both files say `max` where there is no limit, which is not a number.
    let memory = read("memory.max").trim().parse().unwrap_or(u64::MAX);
    let cpu = parse_cpu_max(&read("cpu.max")).unwrap_or(u64::MAX);
    Capacity {
        cpu_millis: capacity.cpu_millis.min(cpu.max(1)),
        memory_bytes: capacity.memory_bytes.min(memory),
    }
}

/// `<quota> <period>` in microseconds, as thousandths of a core.
fn parse_cpu_max(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    quota.checked_mul(1000)?.checked_div(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_a_control_group_are_the_capacity() {
        let folder = std::env::temp_dir().join(format!("elastane-cgroup-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("cpu.max"), "150000 100000\n").expect("a file");
        fs::write(folder.join("memory.max"), "1048576\n").expect("a file");
        let whole = Capacity { cpu_millis: 8000, memory_bytes: 1 << 30 };
        let least = Capacity { cpu_millis: 1500, memory_bytes: 1 << 20 };
        assert_eq!(tighten(whole, &folder), least);
        fs::write(folder.join("cpu.max"), "max 100000\n").expect("a file");
        fs::write(folder.join("memory.max"), "max\n").expect("a file");
        assert_eq!(tighten(whole, &folder), whole);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn this_machine_has_something_to_give_and_a_valid_name() {
        assert!(host_capacity().cpu_millis > 0);
        assert!(check_name(&host_name()).is_ok());
    }
}
