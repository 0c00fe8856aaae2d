//! Parts of GPUs for container runtimes without a server of ours: a specification of the Container
//! Device Interface (CDI). Owns: what a part is made of, and the form of the specification. Does
//! not know about: who starts containers, and what else they need of a real GPU.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use engine::Error;
use fraction_agent::{
    CLAIM_FILE, Delivery, Grant, Libraries, POINT, Pages, Simulated, Target, Way, Writer,
    parse_uuid,
};
use serde_json::{Value, json};

use crate::contexts;
use crate::fractions::SOCKETS_IN_CONTAINERS;

/// The version of the specification, the oldest whose names may begin with a digit: runtimes know
/// none of the devices in a newer one than they have, and Podman 4.3 has this.
const VERSION: &str = "0.5.0";
/// Kind of the devices, which runtimes name as `elastane/gpu=NAME`.
const KIND: &str = "elastane/gpu";
/// Prefix of a simulated GPU, before its memory.
const SIMULATED: &str = "simulated:";
const FORM: &str = "write NAME=GPU:MEMORY, such as half=GPU-7c2f…:40GiB or half=simulated:16GiB:8GiB, \
                    with a comma between several GPUs";

/// Parts of one or more GPUs, as one device of the specification.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CdiDevice {
    name: String,
    of: Vec<Of>,
}

/// A part of one GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Of {
    /// A UUID, or `simulated:` and memory.
    gpu: String,
    place: Gpu,
    bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Gpu {
    Real([u8; 16]),
    Simulated(Simulated),
}

/// A CDI specification.
#[derive(Debug)]
pub struct Specification {
    /// The specification as JSON.
    pub text: String,
    /// Arguments for this program, for each process that has to run while simulated GPUs are used.
    pub drivers: Vec<Vec<String>>,
}

impl CdiDevice {
    fn parse(text: &str) -> Result<Self, Error> {
        let invalid = |why: &str| Error::Invalid(format!("`{text}`: {why}"));
        let (name, rest) = text.split_once('=').ok_or_else(|| invalid(FORM))?;
        if !is_device_name(name) {
            let why = "the name has letters, digits, and `_`, `-`, `.` between them";
            return Err(invalid(why));
        }
        let of = rest.split(',').map(|one| Of::parse(one).map_err(|why| invalid(&why)));
        let of = of.collect::<Result<Vec<_>, _>>()?;
        let gpus: BTreeSet<_> = of.iter().map(Of::uuid).collect();
        if gpus.len() < of.len() {
            return Err(invalid("it names a GPU twice; write all of its memory once"));
        }
        let real = of.iter().filter(|one| matches!(one.place, Gpu::Real(_))).count();
        if real != 0 && real != of.len() {
            return Err(invalid("a container has real GPUs or simulated ones, not both"));
        }
        Ok(Self { name: name.to_owned(), of })
    }

    /// A file of its pages that has no other name in any container.
    fn mark(&self) -> String {
        format!("part-{}", self.name)
    }
}

impl Of {
    fn parse(text: &str) -> Result<Self, String> {
        let (gpu, memory) = text.rsplit_once(':').ok_or(FORM)?;
        let memory_of = |text: &str| {
            let bytes = units::parse_bytes(text).map_err(|error| error.to_string())?;
            if bytes == 0 { Err("the memory must be above 0".to_owned()) } else { Ok(bytes) }
        };
        let bytes = memory_of(memory)?;
        let place = match gpu.strip_prefix(SIMULATED) {
            Some(whole) => {
                let whole = memory_of(whole)?;
                if bytes > whole {
                    return Err("it is more than the GPU has".to_owned());
                }
                Gpu::Simulated(Simulated { name: format!("GPU-cdi-{whole}"), bytes: whole })
            }
            None => Gpu::Real(
                parse_uuid(gpu)
                    .ok_or("the GPU is a UUID as `nvidia-smi -L` prints it, or simulated:MEMORY")?,
            ),
        };
        // As the driver writes it.
        let gpu = match gpu.strip_prefix("GPU-") {
            Some(digits) => format!("GPU-{}", digits.to_ascii_lowercase()),
            None => gpu.to_owned(),
        };
        Ok(Self { gpu, place, bytes })
    }

    fn uuid(&self) -> [u8; 16] {
        match &self.place {
            Gpu::Real(uuid) => *uuid,
            Gpu::Simulated(gpu) => gpu.uuid(),
        }
    }
}

/// As the interface allows it.
fn is_device_name(name: &str) -> bool {
    let alone = |c: char| c.is_ascii_alphanumeric();
    name.starts_with(alone)
        && name.ends_with(alone)
        && name.chars().all(|c| alone(c) || ['_', '-', '.'].contains(&c))
}

/// Two parts do not have one name.
fn check(parts: &[CdiDevice]) -> Result<(), Error> {
    let mut names = BTreeSet::new();
    if let Some(part) = parts.iter().find(|part| !names.insert(&part.name)) {
        return Err(Error::Invalid(format!("two parts are called `{}`", part.name)));
    }
    if parts.is_empty() {
        return Err(Error::Invalid("a specification needs a part: NAME=GPU:MEMORY".to_owned()));
    }
    Ok(())
}

/// None of these is a part of a GPU in MIG mode.
fn refuse_divided(parts: &[CdiDevice], known: &[gpu::Gpu]) -> Result<(), Error> {
    let mut of = parts.iter().flat_map(|part| &part.of);
    let is_divided = |one: &gpu::Gpu| one.instances.is_some();
    let divided = of.find_map(|of| known.iter().find(|one| is_divided(one) && one.uuid == of.gpu));
    match divided {
        None => Ok(()),
        Some(gpu::Gpu { uuid, index, .. }) => Err(Error::Invalid(format!(
            "{uuid} is in MIG mode: programs have nothing of it but its instances, which this command does \
             not give out; use NVIDIA's specification for those, or end the mode with \
             `nvidia-smi -i {index} -mig 0`"
        ))),
    }
}

/// All parts of a GPU fit on it: these, and those that an earlier command made in this folder.
/// `memory`: of a real GPU, where it is known.
fn check_room(
    parts: &[CdiDevice],
    folder: &Path,
    memory: impl Fn(&str) -> Option<u64>,
) -> Result<(), Error> {
    let names: BTreeSet<&str> = parts.iter().map(|part| &*part.name).collect();
    let mut taken = BTreeMap::<[u8; 16], (u64, Vec<String>)>::new();
    let mut take = |uuid, bytes: u64, name: &str| {
        let (sum, by) = taken.entry(uuid).or_default();
        *sum = sum.saturating_add(bytes);
        by.push(name.to_owned());
    };
    let read = || failed(format!("read {}", folder.display()));
    for entry in fs::read_dir(folder).map_err(read())? {
        let entry = entry.map_err(read())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !names.contains(&*name) && entry.path().join(CLAIM_FILE).exists() {
            let limits = Pages::at(&entry.path()).limits().map_err(broken)?;
            limits.iter().for_each(|limit| take(limit.uuid, limit.bytes, &name));
        }
    }
    for part in parts {
        part.of.iter().for_each(|of| take(of.uuid(), of.bytes, &part.name));
    }
    for of in parts.iter().flat_map(|part| &part.of) {
        let whole = match &of.place {
            Gpu::Real(_) => memory(&of.gpu),
            Gpu::Simulated(gpu) => Some(gpu.bytes),
        };
        if let (Some((sum, by)), Some(whole)) = (taken.get(&of.uuid()), whole)
            && *sum > whole
        {
            let (sum, whole) = (units::format_bytes(*sum), units::format_bytes(whole));
            return Err(Error::Invalid(format!(
                "the parts of {} are together {sum}, more than its {whole} ({}); ask for less, or delete \
                 the folder of one that no container uses any more, in {}",
                of.gpu,
                by.join(", "),
                folder.display()
            )));
        }
    }
    Ok(())
}

fn failed(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.to_string();
    move |error| Error::io(what, error)
}

fn broken(error: fraction_agent::Error) -> Error {
    Error::io("make the parts", std::io::Error::other(error))
}

/// Writes libraries and pages into a folder, which has to stay while containers use them, and says
/// how containers get them. `parts`: `NAME=GPU:MEMORY` each, with a comma between several GPUs.
/// Parts that are there already have the memory that is given now, and keep what their containers
/// hold, unless they are `reset`: no server notices that a container has ended, so its memory stays
/// counted until then. `program` is this one.
///
/// # Errors
/// A part is not possible, or the folder cannot be written.
pub fn cdi(
    folder: &Path,
    parts: &[String],
    reset: bool,
    program: &Path,
) -> Result<Specification, Error> {
    let parts = parts.iter().map(|text| CdiDevice::parse(text)).collect::<Result<Vec<_>, _>>()?;
    check(&parts)?;
    fs::create_dir_all(folder).map_err(failed(format!("make {}", folder.display())))?;
    let folder = fs::canonicalize(folder).map_err(failed(format!("open {}", folder.display())))?;
    let libraries = Libraries::write_for_containers(&folder.join("lib")).map_err(broken)?;
    let (pages, sockets) = (folder.join("parts"), folder.join("gpus"));
    // The claims of a part may be written by every account that sees them.
    let mut private = fs::DirBuilder::new();
    private.recursive(true).mode(0o700).create(&pages).map_err(failed("make a folder"))?;
    fraction_agent::open_folder(&sockets).map_err(failed("make a folder"))?;
    let all = parts.iter().flat_map(|part| &part.of);
    let real = all.filter(|of| matches!(of.place, Gpu::Real(_))).map(|of| of.gpu.clone());
    let real: Vec<String> = real.collect();
    let known = known(&real)?;
    refuse_divided(&parts, &known)?;
    check_room(&parts, &pages, |uuid| {
        known.iter().find(|gpu| gpu.uuid == uuid).map(|gpu| gpu.memory_bytes)
    })?;
    let contexts = contexts::measure(program, &real);
    let mut drivers = BTreeMap::new();
    let mut devices = Vec::new();
    for part in &parts {
        let (mut grants, mut seen) = (Vec::new(), Vec::new());
        for of in &part.of {
            let context = match &of.place {
                Gpu::Real(_) => contexts.get(&of.gpu).copied().unwrap_or(0),
                Gpu::Simulated(gpu) => {
                    let socket = gpu.socket(&sockets).map_err(broken)?;
                    let socket = socket.display().to_string();
                    let words =
                        ["simulated-driver", &socket, &gpu.name, &gpu.bytes.to_string(), "stay"];
                    drivers.insert(gpu.clone(), words.map(str::to_owned).to_vec());
                    seen.push(gpu.socket(Path::new(SOCKETS_IN_CONTAINERS)).map_err(broken)?);
                    gpu.context_bytes()
                }
            };
            grants.push(Grant { uuid: of.uuid(), bytes: of.bytes, context });
        }
        let target = if seen.is_empty() { Target::Installed } else { Target::Simulated(seen) };
        let own = pages.join(&part.name);
        if reset || !own.join(CLAIM_FILE).exists() {
            Pages::at(&own).make(&grants, Writer::Container).map_err(broken)?;
        } else {
            change(&Pages::at(&own), &grants, part)?;
        }
        let mut delivery = Delivery::of(&libraries, &target, Some(&own), Way::Containers);
        if target != Target::Installed {
            delivery.mounts.push((sockets.clone(), PathBuf::from(SOCKETS_IN_CONTAINERS)));
        }
        // A container with two parts would have the pages of one, and no limit of the other's GPUs.
        // The mark of a part is in no other's pages, which are read-only: so it cannot be mounted
        // there.
        let mark = own.join(part.mark());
        fs::write(&mark, "").map_err(failed(format!("write {}", mark.display())))?;
        delivery.mounts.push((mark, Path::new(POINT).join(part.mark())));
        devices.push(json!({ "name": part.name, "containerEdits": edits(&delivery) }));
    }
    let all = json!({ "cdiVersion": VERSION, "kind": KIND, "devices": devices });
    Ok(Specification { text: format!("{all:#}\n"), drivers: drivers.into_values().collect() })
}

/// GPUs of the driver, if any of `real` is requested.
fn known(real: &[String]) -> Result<Vec<gpu::Gpu>, Error> {
    if real.is_empty() {
        return Ok(Vec::new());
    }
    let found = gpu::discover();
    Ok(found.map_err(|error| Error::Invalid(error.to_string()))?.unwrap_or_default())
}

/// Changes the pages of a part that is there.
fn change(pages: &Pages, grants: &[Grant], part: &CdiDevice) -> Result<(), Error> {
    let before = pages.limits().map_err(broken)?;
    if before.iter().map(|limit| limit.uuid).ne(grants.iter().map(|grant| grant.uuid)) {
        return Err(Error::Invalid(format!(
            "the part `{}` is one of other GPUs in this folder; choose another name or folder, \
             or add --reset if no container uses it",
            part.name
        )));
    }
    let mut each = grants.iter();
    each.try_for_each(|grant| pages.set_limit(grant.uuid, grant.bytes).map(drop)).map_err(broken)
}

fn edits(delivery: &Delivery) -> Value {
    let variables = delivery.variables.iter().chain(&delivery.before);
    let env: Vec<String> = variables.map(|(name, value)| format!("{name}={value}")).collect();
    let mount = |(host, container): &(PathBuf, PathBuf), rights: &str| {
        json!({
            "hostPath": host.display().to_string(),
            "containerPath": container.display().to_string(),
            "options": ["bind", rights, "nosuid", "nodev"],
        })
    };
    let fixed = delivery.mounts.iter().map(|paths| mount(paths, "ro"));
    let own = delivery.writable.iter().map(|paths| mount(paths, "rw"));
    let mounts: Vec<Value> = fixed.chain(own).collect();
    let mut edits = json!({ "mounts": mounts });
    if !env.is_empty() {
        edits["env"] = json!(env);
    }
    edits
}

#[cfg(test)]
mod tests;
