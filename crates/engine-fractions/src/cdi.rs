//! Parts of GPUs for container runtimes without a server of ours: a specification of the Container
//! Device Interface (CDI). Owns: what a part is made of, and the form of the specification. Does not
//! know about: who starts containers, and what else they need of a real GPU.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use engine::Error;
use fraction_agent::{
    CLAIM_FILE, Delivery, Grant, Libraries, Pages, Simulated, Target, Way, Writer, parse_uuid,
};
use serde_json::{Value, json};

use crate::contexts;
use crate::fractions::SOCKETS_IN_CONTAINERS;

/// The version of the specification. Nothing in it needs a newer one.
const VERSION: &str = "0.6.0";
/// What its devices are called: `elastane/gpu=NAME`.
const KIND: &str = "elastane/gpu";
/// How a GPU is named that does not exist, before its memory.
const SIMULATED: &str = "simulated:";

/// A part of a GPU, as a device of the specification.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    name: String,
    /// As it was written: a UUID, or `simulated:` and memory.
    gpu: String,
    place: Gpu,
    bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Gpu {
    Real([u8; 16]),
    Simulated(Simulated),
}

/// What was made.
#[derive(Debug)]
pub struct Specification {
    /// As JSON.
    pub text: String,
    /// The words for this program, of each process that has to run while simulated GPUs are used.
    pub drivers: Vec<Vec<String>>,
}

impl Part {
    fn parse(text: &str) -> Result<Self, Error> {
        let invalid = |why: &str| Error::Invalid(format!("`{text}`: {why}"));
        let form =
            "write NAME=GPU:MEMORY, such as half=GPU-7c2f…:40GiB or half=simulated:16GiB:8GiB";
        let (name, rest) = text.split_once('=').ok_or_else(|| invalid(form))?;
        let (gpu, memory) = rest.rsplit_once(':').ok_or_else(|| invalid(form))?;
        if !is_device_name(name) {
            let why = "the name has letters, digits, and `_`, `-`, `.` between them";
            return Err(invalid(why));
        }
        let memory_of = |text: &str| {
            let bytes = units::parse_bytes(text).map_err(|error| invalid(&error.to_string()))?;
            if bytes == 0 { Err(invalid("the memory must be above 0")) } else { Ok(bytes) }
        };
        let bytes = memory_of(memory)?;
        let place = match gpu.strip_prefix(SIMULATED) {
            Some(whole) => {
                let whole = memory_of(whole)?;
                if bytes > whole {
                    return Err(invalid("it is more than the GPU has"));
                }
                Gpu::Simulated(Simulated { name: format!("GPU-cdi-{whole}"), bytes: whole })
            }
            None => Gpu::Real(parse_uuid(gpu).ok_or_else(|| {
                invalid("the GPU is a UUID as `nvidia-smi -L` prints it, or simulated:MEMORY")
            })?),
        };
        Ok(Self { name: name.to_owned(), gpu: gpu.to_owned(), place, bytes })
    }
}

/// As the interface allows it.
fn is_device_name(name: &str) -> bool {
    let alone = |c: char| c.is_ascii_alphanumeric();
    name.starts_with(alone)
        && name.ends_with(alone)
        && name.chars().all(|c| alone(c) || ['_', '-', '.'].contains(&c))
}

/// Two parts do not have one name, and those of a simulated GPU fit on it.
fn check(parts: &[Part]) -> Result<(), Error> {
    let mut names = BTreeMap::new();
    let mut taken = BTreeMap::<_, u64>::new();
    for part in parts {
        if names.insert(&part.name, ()).is_some() {
            return Err(Error::Invalid(format!("two parts are called `{}`", part.name)));
        }
        if let Gpu::Simulated(gpu) = &part.place {
            let taken = taken.entry(&part.gpu).or_default();
            *taken = taken.saturating_add(part.bytes);
            if *taken > gpu.bytes {
                let why = format!("the parts of {} are together more than it has", part.gpu);
                return Err(Error::Invalid(why));
            }
        }
    }
    if parts.is_empty() {
        return Err(Error::Invalid("a specification needs a part: NAME=GPU:MEMORY".to_owned()));
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
/// how containers get them. `parts`: `NAME=GPU:MEMORY` each. Parts that are there already have the memory
/// that is given now, and keep what their containers hold, unless they are `reset`: no server notices
/// that a container has ended, so its memory stays counted until then. `program` is this one.
///
/// # Errors
/// A part is not possible, or the folder cannot be written.
pub fn cdi(
    folder: &Path,
    parts: &[String],
    reset: bool,
    program: &Path,
) -> Result<Specification, Error> {
    let parts = parts.iter().map(|text| Part::parse(text)).collect::<Result<Vec<_>, _>>()?;
    check(&parts)?;
    fs::create_dir_all(folder).map_err(failed(format!("make {}", folder.display())))?;
    let folder = fs::canonicalize(folder).map_err(failed(format!("open {}", folder.display())))?;
    let libraries = Libraries::write_for_containers(&folder.join("lib")).map_err(broken)?;
    let (pages, sockets) = (folder.join("parts"), folder.join("gpus"));
    // The claims of a part may be written by every account that sees them.
    let mut private = fs::DirBuilder::new();
    private.recursive(true).mode(0o700).create(&pages).map_err(failed("make a folder"))?;
    fraction_agent::open_folder(&sockets).map_err(failed("make a folder"))?;
    let real = parts.iter().filter(|part| matches!(part.place, Gpu::Real(_)));
    let contexts =
        contexts::measure(program, &real.map(|part| part.gpu.clone()).collect::<Vec<_>>());
    let mut drivers = BTreeMap::new();
    let mut devices = Vec::new();
    for part in &parts {
        let (uuid, context, target) = match &part.place {
            Gpu::Real(uuid) => {
                let context = contexts.get(&part.gpu).copied().unwrap_or(0);
                (*uuid, context, Target::Installed)
            }
            Gpu::Simulated(gpu) => {
                let socket = gpu.socket(&sockets).map_err(broken)?;
                let socket = socket.display().to_string();
                let words =
                    ["simulated-driver", &socket, &gpu.name, &gpu.bytes.to_string(), "stay"];
                drivers.insert(gpu.clone(), words.map(str::to_owned).to_vec());
                let seen = gpu.socket(Path::new(SOCKETS_IN_CONTAINERS)).map_err(broken)?;
                (gpu.uuid(), gpu.context_bytes(), Target::Simulated(vec![seen]))
            }
        };
        let own = pages.join(&part.name);
        let grant = Grant { uuid, bytes: part.bytes, context };
        if reset || !own.join(CLAIM_FILE).exists() {
            Pages::at(&own).make(&[grant], Writer::Container).map_err(broken)?;
        } else {
            change(&Pages::at(&own), grant, part)?;
        }
        let mut delivery = Delivery::of(&libraries, &target, Some(&own), Way::Containers);
        if target != Target::Installed {
            delivery.mounts.push((sockets.clone(), PathBuf::from(SOCKETS_IN_CONTAINERS)));
        }
        devices.push(json!({ "name": part.name, "containerEdits": edits(&delivery) }));
    }
    let all = json!({ "cdiVersion": VERSION, "kind": KIND, "devices": devices });
    Ok(Specification { text: format!("{all:#}\n"), drivers: drivers.into_values().collect() })
}

/// Changes the pages of a part that is there.
fn change(pages: &Pages, grant: Grant, part: &Part) -> Result<(), Error> {
    match &pages.limits().map_err(broken)?[..] {
        [limit] if limit.uuid == grant.uuid => {
            pages.set_limit(grant.uuid, grant.bytes).map(drop).map_err(broken)
        }
        _ => Err(Error::Invalid(format!(
            "the part `{}` is one of another GPU in this folder; choose another name or folder, \
             or add --reset if no container uses it",
            part.name
        ))),
    }
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
