//! Parts of real GPUs that the kernel keeps: memory of GPUs that the control group of a run may
//! have (`dmem.max`). Owns: which region of the kernel is which GPU, and trying a limit. Does not
//! know about: making the groups of runs, which is the engine's.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::{Enforcement, FractionLimit, Mechanism, RunSpec, TimeSlicing};
use units::GPU_MILLIS;

use crate::attempt::{LIMIT_MIB, MIB, Tried, attempt, not_for_containers};
use crate::fraction::UNLIMITED;
use crate::policy::{FractionOptions, Runs};

/// Has a program start in the group of this folder.
const ENTER: &str = "echo 0 >\"$0/cgroup.procs\" && exec \"$@\"";

/// The regions of this machine's GPUs.
#[derive(Debug)]
pub(crate) struct Dmem {
    /// By UUID.
    regions: BTreeMap<String, String>,
    tried: Tried,
}

impl Dmem {
    /// Finds the region of each GPU, and tries on the first with room whether the kernel keeps a
    /// limit. `program` is the server's.
    ///
    /// # Errors
    /// Why control groups cannot keep the parts of these runs, and what to do.
    pub(crate) fn find(
        program: &Path,
        runs: Runs<'_>,
        options: &FractionOptions,
    ) -> Result<Self, String> {
        if matches!(runs, Runs::Containers) {
            return Err(not_for_containers("dmem"));
        }
        let groups = options.groups.as_ref().map_err(|why| {
            format!(
                "no control group limits memory of GPUs here ({why}); that takes Linux 6.14 with the \
                 controller dmem, a driver that counts by it, and a server that is root; else choose \
                 auto, hard, mig, mps or none for --fractions"
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
        let regions =
            options.gpus.iter().map(region).collect::<Result<BTreeMap<_, _>, String>>()?;
        let own = groups.folder.join(format!("test-{}", std::process::id()));
        let tried = attempt(&options.gpus, |gpu, limited| {
            let place = limited.then(|| (own.as_path(), regions[gpu].as_str()));
            limited_program(program, gpu, place)
        });
        // Without processes it can be removed.
        match fs::remove_dir(&own) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!("cannot remove the control group {}: {error}", own.display());
            }
            _ => {}
        }
        let tried = tried.map_err(|why| format!("the kernel keeps no limit: {why}"))?;
        Ok(Self { regions, tried })
    }

    /// As [`Self::find`], but only if the limit is hard and was seen to hold.
    ///
    /// # Errors
    /// Reason why control groups do not limit these runs.
    pub(crate) fn find_hard(
        program: &Path,
        runs: Runs<'_>,
        options: &FractionOptions,
    ) -> Result<Self, String> {
        match runs {
            Runs::Processes(Some(_)) if !options.gpus.is_empty() => {}
            Runs::Processes(Some(_)) => {
                return Err("no GPU of the NVIDIA driver is used".to_owned());
            }
            Runs::Processes(None) => {
                return Err(
                    "control groups are hard for processes with accounts of their own".to_owned()
                );
            }
            Runs::Containers => {
                return Err(
                    "control groups are hard for processes only; for containers MIG instances are \
                     (`--fractions mig`)"
                        .to_owned(),
                );
            }
        }
        let dmem = Self::find(program, runs, options)?;
        match dmem.tried {
            Tried::Kept => Ok(dmem),
            Tried::NoRoom => Err("no GPU had room to try a limit of a control group".to_owned()),
        }
    }

    /// Enforcement of parts of the GPUs. A run with the account of the server may leave its group.
    pub(crate) fn kept(&self, runs: Runs<'_>, options: &FractionOptions) -> FractionLimit {
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
             the request is not used, and compute time is not divided{leaves}{}",
            self.tried.note()
        );
        let (mechanism, time_slicing) = (Mechanism::ControlGroup, TimeSlicing::None);
        FractionLimit { level, mechanism, time_slicing, why }
    }

    /// The bytes of each region that a run may have, also of GPUs that are not its own: those it
    /// may not use, although their files are there.
    ///
    /// # Errors
    /// A GPU of which it has a part has no region.
    pub(crate) fn of(&self, spec: &RunSpec) -> Result<BTreeMap<String, u64>, String> {
        let nothing = self.regions.values().map(|region| (region.clone(), 0));
        let mut all: BTreeMap<String, u64> = nothing.collect();
        for device in &spec.devices {
            let is_part = device.millis < GPU_MILLIS;
            let bytes = if is_part { device.memory.request } else { UNLIMITED };
            match self.regions.get(&device.uuid) {
                Some(region) => all.insert(region.clone(), bytes),
                None if is_part => {
                    return Err(format!("no region of the kernel's is known for {}", device.uuid));
                }
                None => None,
            };
        }
        Ok(all)
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

/// The server's program on one GPU, in a group that limits this region or where the server is.
fn limited_program(
    program: &Path,
    gpu: &str,
    place: Option<(&Path, &str)>,
) -> Result<Command, String> {
    let mut command = match place {
        None => Command::new(program),
        Some((own, region)) => {
            let shown =
                |path: PathBuf| move |error: io::Error| format!("{}: {error}", path.display());
            match fs::create_dir(own) {
                // Left by a killed server with the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.map_err(shown(own.to_owned()))?,
            }
            let limit = own.join("dmem.max");
            let text = format!("{region} {}", LIMIT_MIB * MIB);
            fs::write(&limit, text).map_err(shown(limit))?;
            let mut command = Command::new("sh");
            command.args(["-c", ENTER]).arg(own).arg(program);
            command
        }
    };
    command.env("CUDA_VISIBLE_DEVICES", gpu).current_dir("/");
    Ok(command)
}

#[cfg(test)]
mod tests;
