//! Parts of real GPUs that NVIDIA's MPS keeps: programs that connect to its server are refused
//! memory beyond what their variables say. Owns: the control daemon, those variables, and trying
//! them. Does not know about: starting the daemon, which is the administrator's.
//!
//! A program whose daemon does not answer runs without MPS and without a limit, so the server asks
//! it before each run. Its memory limits have whole MiB, by the place of a GPU among those of the
//! program.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use engine::{Device, Enforcement, FractionLimit, Mechanism, RunSpec, TimeSlicing};
use fraction_agent::Delivery;
use rustix::process::geteuid;
use units::GPU_MILLIS;

use crate::attempt::{LIMIT_MIB, MIB, Tried, attempt, not_for_containers};
use crate::policy::{FractionOptions, MpsPlace, Runs};

const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";
const MEMORY: &str = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
const COMPUTE: &str = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
/// Which GPUs a program has. By index, it would depend on what the daemon was started with.
const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

/// A command that every control daemon answers with a number, with or without a server.
const QUESTION: &str = "get_default_active_thread_percentage\n";
const PATIENCE: Duration = Duration::from_secs(10);
/// A folder of pipes where there is never a daemon.
const NOWHERE: &str = "/dev/null";
/// How the names of NVIDIA's server and control daemon begin, which the kernel keeps 15 letters of.
const PROGRAMS: &str = "nvidia-cuda-mps";

/// Limit and variables of a run with a part of a GPU.
pub(crate) struct Granted {
    /// Memory limit on its first GPU, in bytes; 0 for none.
    pub(crate) bytes: u64,
    /// Variables that give the run its part.
    pub(crate) delivery: Delivery,
}

/// A control daemon that answers.
#[derive(Debug)]
pub(crate) struct Mps {
    place: MpsPlace,
    tried: Tried,
}

impl Mps {
    /// Finds the daemon, and tries on the first GPU with room whether it keeps limits. `program` is
    /// the server's.
    ///
    /// # Errors
    /// Why MPS cannot keep the parts of these runs, and what to do.
    pub(crate) fn find(
        program: &Path,
        runs: Runs<'_>,
        options: &FractionOptions,
    ) -> Result<Self, String> {
        let Runs::Processes(at) = runs else {
            return Err(not_for_containers("mps"));
        };
        let mut mps = Self { place: options.mps.clone(), tried: Tried::NoRoom };
        mps.check_owner()?;
        mps.ask()?;
        mps.tried = attempt(&options.gpus, |gpu, limited| {
            let mut command = Command::new(program);
            command.env_clear().current_dir("/");
            command.envs(mps.variables(&[(gpu, limited.then_some(LIMIT_MIB))], None));
            if let Some((_, enter)) = at {
                enter(&mut command, Vec::new()).map_err(|error| error.to_string())?;
            }
            Ok(command)
        })
        .map_err(|why| format!("MPS keeps no limit: {why}"))?;
        Ok(mps)
    }

    /// Any account can make a folder at the usual place, and a daemon that grants everything.
    fn check_owner(&self) -> Result<(), String> {
        let pipes = self.place.pipes.display();
        let owner = fs::metadata(&self.place.pipes).map(|folder| folder.uid());
        let owner = owner.map_err(|error| self.silent(&format!("{pipes}: {error}")))?;
        if owner != 0 && owner != geteuid().as_raw() {
            return Err(format!(
                "{pipes} belongs to account {owner}, who could lift the limits of MPS; start the \
                 control daemon as root or as the account of the server"
            ));
        }
        Ok(())
    }

    fn silent(&self, why: &str) -> String {
        format!(
            "the control daemon of MPS does not answer ({why}); start it with \
             `nvidia-cuda-mps-control -d`, as root where workloads have accounts of their own, and with \
             {PIPES} as for the server if that is not {}",
            MpsPlace::default().pipes.display()
        )
    }

    /// Asks the daemon for something that it always knows.
    ///
    /// # Errors
    /// It does not answer.
    pub(crate) fn ask(&self) -> Result<(), String> {
        let mut control = Command::new(&self.place.control);
        control.env(PIPES, &self.place.pipes);
        let name = self.place.control.display();
        let answer = fraction_agent::answer(&mut control, QUESTION, PATIENCE)
            .map_err(|why| self.silent(&format!("{name}: {why}")))?;
        match answer.trim().parse::<f64>() {
            Ok(percent) if percent > 0.0 => Ok(()),
            _ => Err(self.silent(&format!("{name} says `{}`", units::shown(answer.trim())))),
        }
    }

    /// Enforcement of parts of the GPUs.
    pub(crate) fn kept(&self, options: &FractionOptions) -> FractionLimit {
        if options.gpus.is_empty() {
            return FractionLimit::none("no GPU of the NVIDIA driver is used");
        }
        let mechanism = Mechanism::Mps;
        let time_slicing = Some(options.time_slicing).filter(|wanted| mechanism.divides(*wanted));
        let fair = match time_slicing {
            Some(_) => "",
            None => "; MPS has no fair shares of compute time, so it is not divided",
        };
        FractionLimit {
            level: Enforcement::Cooperative,
            mechanism,
            time_slicing: time_slicing.unwrap_or(TimeSlicing::None),
            why: format!(
                "each program of a run may have the whole part, a limit above the request is not used, \
                 and a fatal fault of a program ends those that share its GPU{fair}{}",
                self.tried.note()
            ),
        }
    }

    /// Limit and variables of a run; `None` if it has no GPU. Programs with whole GPUs do not use
    /// MPS: they would wait for programs of other accounts, and share their faults. `otherwise`:
    /// division of compute time for a run that does not set it.
    ///
    /// # Errors
    /// Reason why the limits of the run would not hold.
    pub(crate) fn of(
        &self,
        spec: &RunSpec,
        otherwise: TimeSlicing,
    ) -> Result<Option<Granted>, String> {
        if spec.devices.is_empty() {
            return Ok(None);
        }
        let is_shared = |device: &&Device| device.millis < GPU_MILLIS;
        let shared: Vec<&Device> = spec.devices.iter().filter(is_shared).collect();
        if shared.is_empty() {
            let variables = [(PIPES.to_owned(), NOWHERE.to_owned())].into();
            let delivery = Delivery { variables, ..Delivery::default() };
            return Ok(Some(Granted { bytes: 0, delivery }));
        }
        self.check_owner()?;
        self.ask()?;
        let mib = |device: &Device| device.memory.request / MIB;
        if let Some(small) = shared.iter().find(|device| mib(device) == 0) {
            let bytes = small.memory.request;
            return Err(format!(
                "MPS has limits of whole MiB, and {bytes} bytes are less than one"
            ));
        }
        let limit = |device: &Device| is_shared(&device).then(|| mib(device));
        let devices = spec.devices.iter().map(|device| (device.uuid.as_str(), limit(device)));
        let devices: Vec<_> = devices.collect();
        let strict = spec.time_slicing.unwrap_or(otherwise) == TimeSlicing::Strict;
        let percent = shared.iter().map(|device| (device.millis / 10).max(1)).min();
        let variables = self.variables(&devices, percent.filter(|_| strict));
        let first = spec.devices.first().filter(is_shared);
        let bytes = first.map_or(0, |device| mib(device) * MIB);
        Ok(Some(Granted { bytes, delivery: Delivery { variables, ..Delivery::default() } }))
    }

    /// `gpus`: in their order, and MiB of each; `None` for no limit.
    fn variables(
        &self,
        gpus: &[(&str, Option<u64>)],
        percent: Option<u64>,
    ) -> BTreeMap<String, String> {
        let uuids: Vec<&str> = gpus.iter().map(|(uuid, _)| *uuid).collect();
        let limits = gpus.iter().enumerate();
        let limits = limits.filter_map(|(at, (_, mib))| mib.map(|mib| format!("{at}={mib}M")));
        let variables =
            [(PIPES, self.place.pipes.display().to_string()), (VISIBLE, uuids.join(","))];
        let limits = limits.collect::<Vec<_>>().join(",");
        let memory = (!limits.is_empty()).then_some((MEMORY, limits));
        let compute = percent.map(|percent| (COMPUTE, percent.to_string()));
        let all = variables.into_iter().chain(memory).chain(compute);
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// True if a process is the server of MPS, which has a context on each GPU: by its name, and by
/// that of its parent, the control daemon of an account that may keep limits. `proc`: the folder of
/// processes.
pub(crate) fn is_server(proc: &Path, pid: u32) -> bool {
    let status = |pid: &str| fs::read_to_string(proc.join(pid).join("status")).ok();
    let field = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.to_owned())
    };
    let is_of_mps = |text: &str| field(text, "Name:").as_deref() == Some(PROGRAMS);
    let parent = || {
        let server = status(&pid.to_string()).filter(|text| is_of_mps(text))?;
        let daemon = status(&field(&server, "PPid:")?).filter(|text| is_of_mps(text))?;
        field(&daemon, "Uid:")?.parse::<u32>().ok()
    };
    parent().is_some_and(|owner| owner == 0 || owner == geteuid().as_raw())
}

#[cfg(test)]
pub(crate) mod tests;
