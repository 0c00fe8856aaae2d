//! Parts of real GPUs that are MIG instances: a run gets one of its own, and the hardware grants
//! nothing beyond it. Owns: trying one, and what a run gets. Does not know about: making instances,
//! which is the administrator's, and which run gets which, which the scheduler decides: instances
//! are devices of a node.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use engine::{Enforcement, FractionLimit, Mechanism, RunSpec, TimeSlicing};
use fraction_agent::Delivery;
use gpu::MigInstance;

use crate::attempt::{GRANTED, MIB, OUT_OF_MEMORY, Tried, answers};
use crate::fraction::Instance;
use crate::policy::{FractionOptions, Runs};

/// Variables with the devices of a program and of a container runtime.
const VISIBLE: [&str; 2] = ["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"];
/// Variables with the memory limit of a program.
const LIMITS: [&str; 2] = ["CUDA_DEVICE_MEMORY_LIMIT", "GPU_MEMORY_LIMIT"];

/// The instances of this machine's GPUs.
#[derive(Debug)]
pub(crate) struct Mig {
    /// Size of each instance, in bytes by UUID.
    instances: BTreeMap<String, u64>,
    tried: Tried,
}

impl Mig {
    /// Tries on the first instance with room whether a program gets more than the instance has.
    /// `program` is the server's.
    ///
    /// # Errors
    /// Why MIG cannot keep the parts of these runs, and what to do.
    pub(crate) fn find(
        program: &Path,
        runs: Runs<'_>,
        options: &FractionOptions,
    ) -> Result<Self, String> {
        if options.instances.values().all(Vec::is_empty) {
            return Err(
                "no GPU of this machine has a MIG instance; divide one with `nvidia-smi -i 0 -mig 1` and \
                 `nvidia-smi mig -i 0 -cgi PROFILES -C`, or choose auto, hard, mps, dmem or none for \
                 --fractions"
                    .to_owned(),
            );
        }
        let mut all: Vec<&MigInstance> = options.instances.values().flatten().collect();
        all.sort_by_key(|one| (one.memory_bytes, &one.uuid));
        let start = |instance: &MigInstance| {
            let mut command = Command::new(program);
            command.env_clear().current_dir("/").envs(variables(&instance.uuid));
            if let Runs::Processes(Some((_, enter))) = runs {
                enter(&mut command, Vec::new()).map_err(|error| error.to_string())?;
            }
            Ok(command)
        };
        let tried = attempt(all.iter().copied(), start)
            .map_err(|why| format!("MIG keeps no limit: {why}"))?;
        let instances = all.iter().map(|one| (one.uuid.clone(), one.memory_bytes)).collect();
        Ok(Self { instances, tried })
    }

    /// Enforcement of parts of the GPUs. A container sees its own instance only; a process of this
    /// machine can open the files of all.
    pub(crate) fn kept(&self, runs: Runs<'_>) -> FractionLimit {
        let (level, others) = match runs {
            Runs::Containers => (Enforcement::Hard, ""),
            Runs::Processes(_) => (
                Enforcement::Cooperative,
                "; a process that sets CUDA_VISIBLE_DEVICES itself can use the instances of others: \
                 containers see their own only",
            ),
        };
        let why = format!(
            "MIG was not tried on hardware before this version; a run gets a whole instance, and a limit \
             above the request is not used{others}{}",
            self.tried.note()
        );
        FractionLimit { level, mechanism: Mechanism::Mig, time_slicing: TimeSlicing::None, why }
    }

    /// Instance of a run; `None` if it has no GPU.
    ///
    /// # Errors
    /// Why it gets none.
    pub(crate) fn of(&self, spec: &RunSpec) -> Result<Option<Instance>, String> {
        let uuid = match &*spec.devices {
            [] => return Ok(None),
            [device] => device.uuid.clone(),
            several => {
                return Err(format!(
                    "a program has one MIG instance at a time, and it has parts of {} GPUs; ask for one",
                    several.len()
                ));
            }
        };
        match self.instances.get(&uuid) {
            Some(&bytes) => Ok(Some(Instance { uuid, bytes })),
            None => Err(format!("{uuid} is no MIG instance of this machine; restart the server")),
        }
    }
}

impl Instance {
    /// Variables that give a run the instance.
    pub(crate) fn delivery(&self) -> Delivery {
        let mut variables = variables(&self.uuid);
        // Size of the instance, not of the request, which may be a little larger.
        let bytes = self.bytes.to_string();
        variables.extend(LIMITS.map(|name| (name.to_owned(), bytes.clone())));
        Delivery { variables, ..Delivery::default() }
    }
}

fn variables(uuid: &str) -> BTreeMap<String, String> {
    VISIBLE.map(|name| (name.to_owned(), uuid.to_owned())).into()
}

/// Tries on the first instance with room whether a program gets more than it has.
fn attempt<'i>(
    instances: impl Iterator<Item = &'i MigInstance>,
    program: impl Fn(&MigInstance) -> Result<Command, String>,
) -> Result<Tried, String> {
    for one in instances {
        let beyond = (one.memory_bytes / MIB + 1).saturating_mul(MIB);
        let sizes = ["16MiB".to_owned(), format!("{beyond}B")];
        let (reports, seen) = answers(program(one)?, &sizes)
            .map_err(|why| format!("{} ({}): {why}", one.profile, one.uuid))?;
        let [report] = &*reports else {
            return Err(format!("a program with {} alone saw {seen}", one.uuid));
        };
        let answers: Vec<i32> = report.allocations.iter().map(|one| one.answer).collect();
        if report.total > one.memory_bytes {
            return Err(format!("a program with {} alone saw {seen}", one.uuid));
        }
        match *answers {
            [GRANTED, OUT_OF_MEMORY] => return Ok(Tried::Kept),
            [OUT_OF_MEMORY, OUT_OF_MEMORY] => {} // of a run that goes on
            _ => {
                let tried = format!("a program that tried to exceed {}", one.uuid);
                return Err(format!("{tried} saw {seen}"));
            }
        }
    }
    Ok(Tried::NoRoom)
}

#[cfg(test)]
mod tests;
