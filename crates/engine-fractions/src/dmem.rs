//! Parts of real GPUs that the kernel keeps: memory of a GPU that the control group of a run may have
//! (`dmem.max`), whatever its programs do. Owns: which region of the kernel is which GPU, and trying a
//! limit. Does not know about: making the groups of runs, which is the engine's.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::{Device, Enforcement, FractionLimit, Mechanism, RunSpec, TimeSlicing};
use units::GPU_MILLIS;

use crate::policy::{DeviceGroups, FractionOptions, Runs};

const MIB: u64 = 1 << 20;
/// The limit of the test; what is granted and what is refused of it, as a real context takes some.
const TEST_BYTES: u64 = 1024 * MIB;
const TEST_SIZES: [&str; 2] = ["16MiB", "1025MiB"];
/// Has a program start in the group of this folder.
const ENTER: &str = "echo 0 >\"$0/cgroup.procs\" && exec \"$@\"";

/// The regions of this machine's GPUs.
#[derive(Debug)]
pub(crate) struct Dmem {
    /// By UUID.
    regions: BTreeMap<String, String>,
}

impl Dmem {
    /// Finds the region of each GPU, and tries on the first whether the kernel keeps a limit. `program` is
    /// the server's.
    ///
    /// # Errors
    /// Why control groups cannot keep the parts of these runs, and what to do.
    pub(crate) fn find(
        program: &Path,
        runs: Runs<'_>,
        options: &FractionOptions,
    ) -> Result<Self, String> {
        if matches!(runs, Runs::Containers) {
            return Err(
                "`--fractions dmem` is for processes: add `--runtime process`, or choose auto, \
                        hard or none"
                    .to_owned(),
            );
        }
        let groups = options.groups.as_ref().map_err(|why| {
            format!(
                "no control group limits memory of GPUs here ({why}); that takes Linux 6.14 with the \
                 controller dmem, a driver that counts by it, and a server that is root; else choose \
                 auto, hard, mps or none for --fractions"
            )
        })?;
        let places = places(&options.driver_gpus);
        let region = |gpu: &String| {
            let place = places.get(gpu).ok_or_else(|| {
                format!("{} has no place of {gpu} on the bus", options.driver_gpus.display())
            })?;
            let region = region(&groups.regions, place).ok_or_else(|| {
                let all = groups.regions.trim().replace('\n', ", ");
                format!("no region of memory is that of {gpu} at {place}; the kernel has: {all}")
            })?;
            Ok((gpu.clone(), region))
        };
        let regions = options.gpus.iter().map(region).collect::<Result<_, String>>()?;
        let dmem = Self { regions };
        if let Some((gpu, region)) = dmem.regions.first_key_value() {
            attempt(program, groups, gpu, region)
                .map_err(|why| format!("the kernel keeps no limit on {gpu}: {why}"))?;
        }
        Ok(dmem)
    }

    /// What keeps parts of the GPUs. A run with the account of the server may leave its group.
    pub(crate) fn kept(runs: Runs<'_>, options: &FractionOptions) -> FractionLimit {
        if options.gpus.is_empty() {
            return FractionLimit::none("no GPU of the NVIDIA driver is used");
        }
        let (level, leaves) = match runs {
            Runs::Processes(Some(_)) => (Enforcement::Hard, ""),
            Runs::Processes(None) | Runs::Containers => (
                Enforcement::Cooperative,
                "; a program with the account of the server can leave the group: start the server as \
                 root, with accounts for workloads",
            ),
        };
        let why = format!(
            "control groups of GPU memory were not tried on hardware before this version; a limit above \
             the request is not used, and compute time is not divided{leaves}"
        );
        let (mechanism, time_slicing) = (Mechanism::ControlGroup, TimeSlicing::None);
        FractionLimit { level, mechanism, time_slicing, why }
    }

    /// The bytes of each region that a run may have; none: it has no part of a GPU.
    ///
    /// # Errors
    /// A GPU of it has no region.
    pub(crate) fn of(&self, spec: &RunSpec) -> Result<BTreeMap<String, u64>, String> {
        let shared = spec.devices.iter().filter(|device| device.millis < GPU_MILLIS);
        let limit = |device: &Device| {
            let region = self.regions.get(&device.uuid);
            let none = || format!("no region of the kernel's is known for {}", device.uuid);
            Ok((region.ok_or_else(none)?.clone(), device.memory.request))
        };
        shared.map(limit).collect()
    }
}

/// The place of each GPU on the bus, by UUID, as NVIDIA's driver shows it.
fn places(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let place = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("information")).ok()?;
        let uuid = text.lines().find_map(|line| line.strip_prefix("GPU UUID:"))?;
        Some((uuid.trim().to_owned(), entry.file_name().to_str()?.to_ascii_lowercase()))
    };
    entries.filter_map(place).collect()
}

/// The largest region at this place: `drm/0000:03:00.0/vram0 8514437120`.
fn region(regions: &str, place: &str) -> Option<String> {
    let each = regions.lines().filter_map(|line| {
        let (name, bytes) = line.trim().rsplit_once(' ')?;
        let is_there = name.split('/').any(|part| part.eq_ignore_ascii_case(place));
        is_there.then_some((bytes.parse::<u64>().ok()?, name.to_owned()))
    });
    each.max().map(|(_, name)| name)
}

fn attempt(program: &Path, groups: &DeviceGroups, gpu: &str, region: &str) -> Result<(), String> {
    let own = groups.folder.join(format!("test-{}", std::process::id()));
    let result = attempt_in(&own, program, gpu, region);
    // Without processes it can be removed.
    match fs::remove_dir(&own) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!("cannot remove the control group {}: {error}", own.display());
        }
        _ => {}
    }
    result
}

fn attempt_in(own: &Path, program: &Path, gpu: &str, region: &str) -> Result<(), String> {
    let shown = |path: PathBuf| move |error: io::Error| format!("{}: {error}", path.display());
    fs::create_dir(own).map_err(shown(own.to_owned()))?;
    let limit = own.join("dmem.max");
    fs::write(&limit, format!("{region} {TEST_BYTES}")).map_err(shown(limit))?;
    let mut command = Command::new("sh");
    command.args(["-c", ENTER]).arg(own).arg(program).args(["gpu-check", "--json"]);
    command.args(TEST_SIZES).env("CUDA_VISIBLE_DEVICES", gpu).current_dir("/");
    let (reports, seen) = fraction_agent::reports(&mut command)?;
    let keeps = reports.first().is_some_and(|first| {
        let answers: Vec<i32> = first.allocations.iter().map(|one| one.answer).collect();
        answers == [0, 2]
    });
    let wrong = || format!("a program that tried to exceed {} MiB saw {seen}", TEST_BYTES / MIB);
    keeps.then_some(()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests;
