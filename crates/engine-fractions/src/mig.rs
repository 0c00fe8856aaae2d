//! Parts of real GPUs that are MIG instances: a run gets one of its own, and the hardware grants nothing
//! beyond it. Owns: which instance a run gets, and trying one. Does not know about: making instances,
//! which is the administrator's.
//!
//! The scheduler counts parts of a GPU and knows no instances. So a run may come to a GPU whose instances
//! are all in use: it is refused then, and the words say what there is.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::{Device, Enforcement, FractionLimit, Mechanism, RunKey, RunSpec, TimeSlicing};
use fraction_agent::Delivery;
use gpu::MigInstance;
use units::{GPU_MILLIS, format_bytes};

use crate::attempt::{GRANTED, MIB, OUT_OF_MEMORY, Tried, answers};
use crate::fraction::Instance;
use crate::policy::{FractionOptions, Runs};

/// What a program and a container runtime take for the devices they have.
const VISIBLE: [&str; 2] = ["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"];
/// What says to a program how much memory it has.
const LIMITS: [&str; 2] = ["CUDA_DEVICE_MEMORY_LIMIT", "GPU_MEMORY_LIMIT"];
/// Memory of all GPUs that can be divided comes in so many slices, or in half as many.
const MEMORY_SLICES: u64 = 8;

/// The instances of this machine's GPUs, and who has them.
#[derive(Debug)]
pub(crate) struct Mig {
    /// By UUID of the GPU, the smallest first.
    gpus: BTreeMap<String, Vec<MigInstance>>,
    /// By UUID of the instance.
    taken: Mutex<BTreeMap<String, RunKey>>,
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
        let mut gpus = options.instances.clone();
        for all in gpus.values_mut() {
            all.sort_by(|left, right| {
                (left.memory_bytes, &left.uuid).cmp(&(right.memory_bytes, &right.uuid))
            });
        }
        let start = |instance: &MigInstance| {
            let mut command = Command::new(program);
            command.env_clear().current_dir("/").envs(variables(&instance.uuid));
            if let Runs::Processes(Some((_, enter))) = runs {
                enter(&mut command, Vec::new()).map_err(|error| error.to_string())?;
            }
            Ok(command)
        };
        let tried = attempt(gpus.values().flatten(), start)
            .map_err(|why| format!("MIG keeps no limit: {why}"))?;
        Ok(Self { gpus, taken: Mutex::default(), tried })
    }

    /// What keeps parts of the GPUs. A container sees its own instance only; a process of this machine
    /// can open the files of all.
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
            "MIG was not tried on hardware before this version; a run gets a whole instance, a limit above \
             the request is not used, and a run waits for no instance that is in use{others}{}",
            self.tried.note()
        );
        FractionLimit { level, mechanism: Mechanism::Mig, time_slicing: TimeSlicing::None, why }
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<String, RunKey>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instance of a run, which has it from now on until [`Self::free`]; none: it has no GPU.
    ///
    /// # Errors
    /// Why it gets none.
    pub(crate) fn take(&self, spec: &RunSpec) -> Result<Option<Instance>, String> {
        let Some((device, fitting)) = self.fitting(spec)? else { return Ok(None) };
        let mut taken = self.taken();
        let is_free =
            |one: &&&MigInstance| taken.get(&one.uuid).is_none_or(|owner| *owner == spec.key);
        // Its own first, where its start is repeated.
        let own = fitting.iter().find(|one| taken.get(&one.uuid) == Some(&spec.key));
        let Some(found) = own.or_else(|| fitting.iter().find(is_free)) else {
            let all = self.list(device, &taken);
            let wants = wants(device);
            return Err(format!(
                "every MIG instance of {} that holds {wants} is in use; it has {all}; submit it again \
                 when one is free, or ask for less",
                device.uuid
            ));
        };
        taken.insert(found.uuid.clone(), spec.key);
        Ok(Some(Instance { uuid: found.uuid.clone(), bytes: found.memory_bytes }))
    }

    /// Whether a run could have an instance if none were in use.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(&self, spec: &RunSpec) -> Result<(), String> {
        self.fitting(spec).map(drop)
    }

    /// The GPU of a run and its instances that are large enough, the smallest first.
    fn fitting<'a>(
        &self,
        spec: &'a RunSpec,
    ) -> Result<Option<(&'a Device, Vec<&MigInstance>)>, String> {
        let device = match &*spec.devices {
            [] => return Ok(None),
            [device] => device,
            several => {
                return Err(format!(
                    "a program has one MIG instance at a time, and it asks for parts of {} GPUs; ask \
                     for one",
                    several.len()
                ));
            }
        };
        let all = self.gpus.get(&device.uuid).map(Vec::as_slice).unwrap_or_default();
        let fitting: Vec<_> = all.iter().filter(|one| holds(one, device)).collect();
        if fitting.is_empty() {
            let (wants, all) = (wants(device), self.list(device, &self.taken()));
            return Err(format!(
                "no MIG instance of {} holds {wants}; it has {all}; ask for less, or have it divided \
                 otherwise and the server restarted",
                device.uuid
            ));
        }
        Ok(Some((device, fitting)))
    }

    /// A run has this instance: one that an earlier server started.
    pub(crate) fn adopt(&self, key: RunKey, instance: &Instance) {
        self.taken().insert(instance.uuid.clone(), key);
    }

    /// A run may have any instance of these GPUs, as nothing says which: all that no other has are its.
    pub(crate) fn adopt_unknown(&self, key: RunKey, has: impl Fn(&str) -> bool) {
        let mut taken = self.taken();
        for one in self.gpus.iter().filter(|(gpu, _)| has(gpu)).flat_map(|(_, all)| all) {
            taken.entry(one.uuid.clone()).or_insert(key);
        }
    }

    /// The run needs its instance no longer.
    pub(crate) fn free(&self, key: RunKey) {
        self.taken().retain(|_, owner| *owner != key);
    }

    fn list(&self, device: &Device, taken: &BTreeMap<String, RunKey>) -> String {
        let one = |one: &MigInstance| {
            let state = if taken.contains_key(&one.uuid) { "in use" } else { "free" };
            let (profile, bytes) = (units::shown(&one.profile), format_bytes(one.memory_bytes));
            format!("{profile} of {bytes} ({}, {state})", one.uuid)
        };
        let all = self.gpus.get(&device.uuid).into_iter().flatten().map(one);
        let all = all.collect::<Vec<_>>().join(", ");
        if all.is_empty() { "none".to_owned() } else { all }
    }
}

impl Instance {
    /// How its run gets it.
    pub(crate) fn delivery(&self) -> Delivery {
        let mut variables = variables(&self.uuid);
        // Of it, and not of the request, which an instance may be below by a little.
        let bytes = self.bytes.to_string();
        variables.extend(LIMITS.map(|name| (name.to_owned(), bytes.clone())));
        Delivery { variables, ..Delivery::default() }
    }
}

fn variables(uuid: &str) -> BTreeMap<String, String> {
    VISIBLE.map(|name| (name.to_owned(), uuid.to_owned())).into()
}

fn part(device: &Device) -> u64 {
    let bytes = u128::from(device.memory_bytes) * u128::from(device.millis);
    u64::try_from(bytes / u128::from(GPU_MILLIS)).unwrap_or(u64::MAX)
}

fn wants(device: &Device) -> String {
    if device.memory.request == part(device) {
        format!("{} of it", units::format_millis(device.millis))
    } else {
        format_bytes(device.memory.request)
    }
}

/// A request for a part is held by so many slices of memory: all instances together have a little less
/// than the GPU, so that half of it has less than half of the bytes. One for bytes is held by bytes.
fn holds(instance: &MigInstance, device: &Device) -> bool {
    if device.memory.request != part(device) {
        return instance.memory_bytes >= device.memory.request;
    }
    let total = u128::from(device.memory_bytes.max(1));
    let sliced = u128::from(instance.memory_bytes) * u128::from(MEMORY_SLICES);
    let slices = (sliced + total / 2) / total; // the nearest
    slices * u128::from(GPU_MILLIS / MEMORY_SLICES) >= u128::from(device.millis)
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
