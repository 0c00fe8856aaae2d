//! Fractions of GPUs for the runs of an engine. Owns: which run gets which libraries, pages and
//! simulated GPUs; what its processes hold beyond what they say. Does not know about: how the
//! libraries work, who decides a limit, and how an engine makes mounts.
//!
//! All that a run needs is in the folder of its pages and in files of the state directory. So its
//! limits hold while the server is away; [`Fractions::adopt`] is for what has to be measured and
//! changed.

mod measured;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::image::has_simulated_driver;
use engine::{
    Device, Enforcement, Error, FractionLimit, PoolFractions, RunKey, RunSpec, TimeSlicing,
};
use fraction_agent::{
    Connection, Delivery, Grant, Libraries, Pages, RealDriver, Simulated, Target, Way, Writer,
    parse_uuid, uuid_of,
};
use fraction_lease::{Policy, Share, Turner};
use units::GPU_MILLIS;

use crate::burst::{Holder, divide};
use crate::contexts;
use crate::fraction::{Fraction, Limit, SimulatedGpu};
use crate::keeper::Keeper;
use crate::mps::{self, Granted};
use crate::policy::{
    FractionOptions, FractionPolicy, MemoryOver, Runs, refuse_all_instances, refuse_lifting,
    with_whole_gpus,
};
use crate::run::{Run, held};
use crate::way::{Chosen, choose, kept, log_unkept, open_point};

/// Where containers have the sockets of their simulated GPUs.
pub(crate) const SOCKETS_IN_CONTAINERS: &str = "/run/elastane/gpu/sockets";

impl SimulatedGpu {
    fn described(&self) -> Simulated {
        Simulated { name: self.gpu.clone(), bytes: self.bytes }
    }
}

impl Fraction {
    /// As the driver of the run knows its GPU.
    fn uuid(&self, gpu: &str) -> Option<[u8; 16]> {
        if self.simulated.is_empty() { parse_uuid(gpu) } else { Some(uuid_of(gpu)) }
    }

    /// `contexts`: what a context takes of real GPUs.
    fn grants(&self, contexts: &BTreeMap<String, u64>) -> Vec<Grant> {
        let grant = |limit: &Limit| {
            let own = self.simulated.iter().find(|own| own.gpu == limit.gpu);
            let context = match own {
                Some(own) => own.described().context_bytes(),
                None => contexts.get(&limit.gpu).copied().unwrap_or(0),
            };
            Some(Grant { uuid: self.uuid(&limit.gpu)?, bytes: limit.bytes, context })
        };
        self.limits.iter().filter_map(grant).collect()
    }
}

/// Additions to a run for its GPUs.
#[derive(Debug)]
pub struct Added {
    /// Limits and simulated GPUs of the run.
    pub fraction: Fraction,
    /// Mounts and variables that give them to the run.
    pub delivery: Delivery,
}

/// The fractions of this machine's runs.
#[derive(Debug)]
pub struct Fractions {
    program: PathBuf,
    folder: PathBuf,
    policy: FractionPolicy,
    over: MemoryOver,
    look_ms_max: u64,
    /// Division of compute time for runs that do not set it.
    time_slicing: TimeSlicing,
    /// Divides compute time between runs; `None` if it cannot be started.
    turner: Option<Turner>,
    way: Way,
    /// Libraries for the runs; `None` if they cannot be written here.
    libraries: Option<Libraries>,
    installed: FractionLimit,
    simulated: FractionLimit,
    /// Mechanism that enforces parts of real GPUs.
    keeper: Keeper,
    /// Memory that a context takes on real GPUs, in bytes by UUID.
    contexts: BTreeMap<String, u64>,
    connections: Mutex<BTreeMap<Simulated, Connection>>,
    runs: Mutex<BTreeMap<RunKey, Run>>,
    /// Uncounted memory of each GPU at the last check, in bytes by UUID.
    uncounted: Mutex<BTreeMap<String, u64>>,
}

/// No code panics inside a change while it holds one of these locks.
fn open<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(what: impl Into<String>) -> impl FnOnce(fraction_agent::Error) -> Error {
    let what = what.into();
    move |error| Error::io(what, std::io::Error::other(text(&error)))
}

fn text(error: &fraction_agent::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Starts the division of compute time; `None` if that fails.
fn turner() -> Option<Turner> {
    let turner = Turner::start();
    turner.map_err(|error| tracing::error!("no compute time is divided: {error}")).ok()
}

impl Fractions {
    /// Nothing is limited.
    #[must_use]
    pub fn none(why: &str) -> Self {
        let none = FractionLimit::none(why);
        Self {
            program: PathBuf::new(),
            folder: PathBuf::new(),
            policy: FractionPolicy::Counted,
            over: MemoryOver::Report,
            look_ms_max: 0,
            time_slicing: TimeSlicing::None,
            turner: None,
            way: Way::Variables,
            libraries: None,
            installed: none.clone(),
            simulated: none,
            keeper: Keeper::Libraries,
            contexts: BTreeMap::new(),
            connections: Mutex::default(),
            runs: Mutex::default(),
            uncounted: Mutex::default(),
        }
    }

    /// Writes the libraries into a folder, and checks that a program with them is refused memory
    /// beyond a limit. `program` calls this crate's programs. Blocks for some hundredths of a
    /// second, longer with a real driver.
    ///
    /// # Errors
    /// The administrator's choice cannot be used here.
    pub fn open(
        folder: &Path,
        program: &Path,
        runs: Runs<'_>,
        options: &FractionOptions,
    ) -> Result<Self, Error> {
        let keeper = match Keeper::find(program, runs, options) {
            Ok(keeper) => keeper,
            Err(why) if options.policy == FractionPolicy::HardOnly => {
                let libraries = Self::with_libraries(folder, program, runs, options);
                let FractionLimit { why: soft, .. } = &libraries.installed;
                let both = [&**soft, &*why].into_iter().filter(|text| !text.is_empty());
                let why = both.collect::<Vec<_>>().join("; ");
                let installed = FractionLimit { why, ..libraries.installed.clone() };
                return Ok(Self { installed, ..libraries });
            }
            Err(why) => return Err(Error::Invalid(why)),
        };
        let Some(installed) = keeper.kept(runs, options) else {
            return Ok(Self::with_libraries(folder, program, runs, options));
        };
        // Limits of simulated GPUs.
        let without = FractionOptions { gpus: Vec::new(), ..options.clone() };
        let libraries = Self::with_libraries(folder, program, runs, &without);
        // Also where the libraries cannot be written, which these parts do not need.
        let way = match runs {
            Runs::Containers => Way::Containers,
            Runs::Processes(_) => libraries.way,
        };
        let FractionOptions { policy, look_ms_max, .. } = *options;
        let program = program.to_owned();
        Ok(Self { installed, keeper, way, policy, program, look_ms_max, ..libraries })
    }

    fn with_libraries(
        folder: &Path,
        program: &Path,
        runs: Runs<'_>,
        options: &FractionOptions,
    ) -> Self {
        let FractionOptions { policy, gpus, look_ms_max, over, time_slicing, .. } = options;
        if let Err(error) = fraction_agent::open_folder(folder) {
            return Self::none(&format!("cannot make {}: {error}", folder.display()));
        }
        let libraries = match Libraries::write(&folder.join("lib"), RealDriver::find()) {
            Ok(libraries) => libraries,
            Err(error) => return Self::none(&text(&error)),
        };
        let test = |installed, place| {
            fraction_agent::self_test(program, &libraries, folder, installed, place)
        };
        let counts = *policy == FractionPolicy::Counted;
        let tried = |place| if counts { Ok(()) } else { test(None, place) };
        let Chosen { way, place, failed } = choose(runs, tried);
        let delivered = match way {
            Way::Containers => Libraries::write_for_containers(&folder.join("container-lib")),
            Way::Mounts | Way::Variables => Ok(libraries.clone()),
        };
        let delivered = match delivered {
            Ok(delivered) => delivered,
            Err(error) => return Self::none(&text(&error)),
        };
        let turner = turner();
        let time_slicing = turner.as_ref().map_or(TimeSlicing::None, |_| *time_slicing);
        let attempt = |installed: Option<[u8; 16]>| {
            if counts {
                return FractionLimit::none("the server was started with --fractions none");
            }
            let is_known = installed.is_none() && place.is_some(); // the way was chosen by it
            match if is_known { Ok(()) } else { test(installed, place) } {
                Ok(()) => kept(way, installed.is_some(), time_slicing, failed.as_deref()),
                Err(why) => FractionLimit::none(&why),
            }
        };
        let simulated = attempt(None);
        let uuid = gpus.iter().find_map(|gpu| parse_uuid(gpu));
        let installed = match (libraries.real(), uuid) {
            (None, _) => FractionLimit::none("no NVIDIA driver is installed"),
            (_, None) => FractionLimit::none("no GPU of it is used"),
            (Some(_), uuid) => attempt(uuid),
        };
        log_unkept("simulated", &simulated);
        log_unkept("installed", &installed);
        let contexts = match installed.level {
            Enforcement::None => BTreeMap::new(),
            Enforcement::Cooperative | Enforcement::Hard => contexts::measure(program, gpus),
        };
        Self {
            program: program.to_owned(),
            folder: folder.to_owned(),
            policy: *policy,
            over: *over,
            look_ms_max: *look_ms_max,
            time_slicing,
            turner,
            way,
            libraries: Some(delivered),
            installed,
            simulated,
            contexts,
            ..Self::none("")
        }
    }

    /// Enforcement of fractions of a simulated or a real GPU.
    #[must_use]
    pub fn limit(&self, simulated: bool) -> FractionLimit {
        if simulated { self.simulated.clone() } else { self.installed.clone() }
    }

    /// True if a process that uses GPUs belongs to the mechanism that enforces parts of them.
    #[must_use]
    pub fn is_keeper(&self, pid: u32) -> bool {
        matches!(self.keeper, Keeper::Mps(_)) && mps::is_server(Path::new("/proc"), pid)
    }

    /// Additions to a run whose pages are in this folder; `None` if it needs none.
    ///
    /// # Errors
    /// Its part of a GPU would not be kept as the administrator wants it.
    pub fn of(&self, spec: &RunSpec, pages: &Path) -> Result<Option<Added>, Error> {
        if matches!(self.keeper, Keeper::Mig(_)) {
            refuse_all_instances(spec, self.way)?;
        }
        let devices = &spec.devices;
        let simulated = !devices.is_empty() && devices.iter().all(|device| device.simulated);
        let level = self.refuse_soft(spec, simulated)?;
        let is_counted = spec.fractions == Some(PoolFractions::Counted);
        let is_shared = |device: &Device| device.millis < GPU_MILLIS;
        if !simulated && !matches!(self.keeper, Keeper::Libraries) {
            // A GPU in MIG mode has instances only.
            let is_whole = is_counted && !matches!(self.keeper, Keeper::Mig(_));
            return if is_whole {
                self.without_libraries(&with_whole_gpus(spec))
            } else {
                self.without_libraries(spec)
            };
        }
        let Some(libraries) = &self.libraries else { return Ok(None) };
        let has_driver = simulated && has_simulated_driver(spec);
        if devices.is_empty() || (simulated && !has_driver) {
            return Ok(None);
        }
        let holds = level != Enforcement::None;
        let shared = devices.iter().filter(|device| holds && is_shared(device));
        let limits = shared.map(|device| Limit {
            gpu: device.uuid.clone(),
            bytes: device.memory.request,
            most: device.memory.most(),
            device: device.memory_bytes,
            millis: device.millis,
            time_slicing: spec.time_slicing,
        });
        let own =
            |device: &Device| SimulatedGpu { gpu: device.uuid.clone(), bytes: device.memory_bytes };
        let limits: Vec<Limit> = limits.collect();
        if !limits.is_empty() {
            refuse_lifting(spec, self.way)?;
        }
        let fraction = Fraction {
            preloaded: !limits.is_empty() && self.is_preloaded(has_driver),
            limits,
            simulated: devices.iter().filter(|_| has_driver).map(own).collect(),
            ..self.unlimited()
        };
        let target = if has_driver {
            let folder = match self.way {
                Way::Containers => Path::new(SOCKETS_IN_CONTAINERS),
                Way::Mounts | Way::Variables => &fraction.sockets,
            };
            let socket = |gpu: &SimulatedGpu| gpu.described().socket(folder);
            let sockets = fraction.simulated.iter().map(socket).collect::<Result<Vec<_>, _>>();
            Target::Simulated(sockets.map_err(failed("give the run its simulated GPUs"))?)
        } else {
            Target::Installed
        };
        let pages = (!fraction.limits.is_empty()).then_some(pages);
        let mut delivery = Delivery::of(libraries, &target, pages, self.way);
        if has_driver && self.way == Way::Containers {
            // The folder, since a driver that is started again has another socket.
            delivery.mounts.push((fraction.sockets.clone(), SOCKETS_IN_CONTAINERS.into()));
        }
        Ok(Some(Added { fraction, delivery }))
    }

    /// How well the part of a run is kept.
    fn refuse_soft(&self, spec: &RunSpec, simulated: bool) -> Result<Enforcement, Error> {
        let is_counted = spec.fractions == Some(PoolFractions::Counted);
        let level = if is_counted { Enforcement::None } else { self.limit(simulated).level };
        if level != Enforcement::Hard && spec.devices.iter().any(|one| one.millis < GPU_MILLIS) {
            self.policy.allow_soft(spec)?;
        }
        Ok(level)
    }

    /// Additions to a run with real GPUs by a mechanism other than libraries; `None` if it needs
    /// none.
    fn without_libraries(&self, spec: &RunSpec) -> Result<Option<Added>, Error> {
        let own = self.unlimited();
        let added = match &self.keeper {
            Keeper::Libraries => Ok(None),
            Keeper::Mps(mps) => mps.of(spec, self.time_slicing).map(|granted| {
                let Granted { bytes, delivery } = granted?;
                Some(Added { fraction: Fraction { mps_bytes: bytes, ..own }, delivery })
            }),
            Keeper::Dmem(dmem) => dmem.of(spec).map(|regions| {
                let fraction = Fraction { regions, ..own };
                let added = Added { fraction, delivery: Delivery::default() };
                (!added.fraction.regions.is_empty()).then_some(added)
            }),
            Keeper::Mig(mig) => mig.of(spec).map(|instance| {
                let instance = instance?;
                let delivery = instance.delivery();
                Some(Added { fraction: Fraction { instance: Some(instance), ..own }, delivery })
            }),
        };
        added.map_err(Error::NotKept)
    }

    /// Settings that all runs share.
    fn unlimited(&self) -> Fraction {
        Fraction {
            sockets: self.sockets(),
            program: self.program.clone(),
            look_ms_max: self.look_ms_max,
            ..Fraction::default()
        }
    }

    /// True if limits are in a library that only programs of one loader have.
    const fn is_preloaded(&self, has_driver: bool) -> bool {
        match self.way {
            Way::Mounts => false,
            Way::Variables => true,
            Way::Containers => !has_driver,
        }
    }

    fn sockets(&self) -> PathBuf {
        self.folder.join("gpus")
    }

    /// The folder of the libraries and sockets, which runs may read.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates the files that a run needs before it starts. `account`: user and group of a process.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn prepare(
        &self,
        key: RunKey,
        fraction: &Fraction,
        pages: &Path,
        account: Option<(u32, u32)>,
    ) -> Result<(), Error> {
        if !fraction.limits.is_empty() {
            if self.way == Way::Mounts {
                open_point().map_err(|error| Error::io("make /run/elastane/fraction", error))?;
            }
            let writer = match (self.way, account) {
                (Way::Containers, _) => Writer::Container,
                (_, Some((uid, gid))) => Writer::Account(uid, gid),
                (_, None) => Writer::Server,
            };
            let made = Pages::at(pages).make(&fraction.grants(&self.contexts), writer);
            made.map_err(failed(format!("make the pages of {key}")))?;
        }
        self.adopt(key, fraction, pages)?;
        self.divide(fraction.limits.iter().map(|limit| limit.gpu.as_str()));
        Ok(())
    }

    /// Follows a run: also one that an earlier server started. `pages`: the folder of its pages.
    ///
    /// # Errors
    /// A simulated GPU of it does not answer.
    pub fn adopt(&self, key: RunKey, fraction: &Fraction, pages: &Path) -> Result<(), Error> {
        let (fraction, pages) = (fraction.clone(), pages.to_owned());
        let mut each = fraction.simulated.iter();
        let run = Run::new(fraction.clone(), pages);
        self.give_turns(&run);
        open(&self.runs).insert(key, run);
        let connected = each.try_for_each(|gpu| self.connect(&gpu.described(), &fraction.sockets));
        connected.map_err(failed(format!("give {key} its simulated GPUs")))
    }

    /// Gives a run its share of the compute time of its GPUs. Without, its programs wait for
    /// nothing.
    fn give_turns(&self, run: &Run) {
        let Some(turner) = &self.turner else { return };
        for limit in run.fraction.limits.iter().filter(|limit| limit.millis > 0) {
            let Some(policy) = policy(limit.time_slicing.unwrap_or(self.time_slicing)) else {
                continue;
            };
            let Some(device) = run.fraction.uuid(&limit.gpu) else { continue };
            let millionths = u32::try_from(limit.millis.saturating_mul(1000)).unwrap_or(u32::MAX);
            let share = Share { millionths, policy };
            let run = fraction_lease::Run { pages: run.pages.clone(), device, share };
            if let Err(error) = turner.set(&run) {
                tracing::warn!("compute time of {} is not divided: {error}", limit.gpu);
            }
        }
    }

    fn connect(&self, gpu: &Simulated, sockets: &Path) -> Result<(), fraction_agent::Error> {
        let mut connections = open(&self.connections);
        let works = connections.get(gpu).is_some_and(|known| known.state(gpu.bytes).is_ok());
        if !works {
            connections.insert(gpu.clone(), gpu.connect(sockets, &self.program)?);
        }
        Ok(())
    }

    /// The run is gone.
    pub fn forget(&self, key: RunKey) {
        let mut runs = open(&self.runs);
        let Some(gone) = runs.remove(&key) else { return };
        let simulated = runs.values().flat_map(|run| &run.fraction.simulated);
        let used: Vec<Simulated> = simulated.map(SimulatedGpu::described).collect();
        drop(runs);
        if let Some(turner) = &self.turner {
            turner.remove(&gone.pages);
        }
        // Without a connection their processes end.
        open(&self.connections).retain(|gpu, _| used.contains(gpu));
        self.divide(gone.fraction.limits.iter().map(|limit| limit.gpu.as_str()));
    }

    /// Changes the maximum of a run's GPU memory. Memory in use stays.
    ///
    /// # Errors
    /// Its pages cannot be changed.
    pub fn set_most(&self, key: RunKey, most: &BTreeMap<String, u64>) -> Result<(), Error> {
        let mut changed = Vec::new();
        if let Some(run) = open(&self.runs).get_mut(&key) {
            let Fraction { mps_bytes, regions, instance, .. } = &run.fraction;
            if *mps_bytes > 0 || !regions.is_empty() || instance.is_some() {
                tracing::warn!("{key} has the limit of its start: what keeps it has no other");
            }
            for limit in &mut run.fraction.limits {
                if let Some(&most) = most.get(&limit.gpu) {
                    limit.most = most;
                    changed.push(limit.gpu.clone());
                }
            }
        }
        let mut gpus = changed.iter();
        let done = gpus.try_for_each(|gpu| self.divide_gpu(gpu));
        done.map_err(failed(format!("change the limits of {key}")))
    }

    /// Sets the current limits of all runs on these GPUs. Limits that cannot be set now are set
    /// later.
    fn divide<'a>(&self, gpus: impl Iterator<Item = &'a str>) {
        for gpu in gpus {
            if let Err(error) = self.divide_gpu(gpu) {
                tracing::warn!("limits of memory of {gpu} stay as they are: {}", text(&error));
            }
        }
    }

    fn divide_gpu(&self, gpu: &str) -> Result<(), fraction_agent::Error> {
        // Held meanwhile: two that divide at a time would undo each other's.
        let runs = open(&self.runs);
        let on = runs.values().filter_map(|run| {
            let (place, limit) = run.limit(gpu)?;
            Some((run, place, limit, run.fraction.uuid(gpu)?))
        });
        let on: Vec<_> = on.collect();
        let holder = |(run, place, limit, uuid): &(&Run, usize, &Limit, _)| Holder {
            guaranteed: limit.bytes,
            most: limit.most(),
            held: held(&run.pages, *place, *uuid),
        };
        let holders: Vec<Holder> = on.iter().map(holder).collect();
        let device = on.iter().map(|(_, _, limit, _)| limit.device).max().unwrap_or(0);
        let mut done = Ok(());
        for ((run, _, _, uuid), bytes) in on.iter().zip(divide(device, &holders)) {
            done = done.and(Pages::at(&run.pages).set_limit(*uuid, bytes).map(drop));
        }
        done
    }
}

const fn policy(time_slicing: TimeSlicing) -> Option<Policy> {
    match time_slicing {
        TimeSlicing::None => None,
        TimeSlicing::Strict => Some(Policy::Strict),
        TimeSlicing::Fair => Some(Policy::Fair),
    }
}

/// Connections to simulated GPUs, whose processes stay while it has them.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "held for what is connected")] Vec<Connection>);

/// Connects to the simulated GPUs of a run, for its life.
///
/// # Errors
/// One does not answer.
pub fn hold(fraction: &Fraction) -> std::io::Result<Held> {
    let connect =
        |gpu: &SimulatedGpu| gpu.described().connect(&fraction.sockets, &fraction.program);
    let held = fraction.simulated.iter().map(connect).collect::<Result<_, _>>();
    held.map(Held).map_err(|error| std::io::Error::other(text(&error)))
}
