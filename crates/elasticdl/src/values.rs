//! Values of flags that are more than a word. Owns: their published forms. Does not know about:
//! their flags, and their use.

/// Resource requests or limits of a pod; `None` if not given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resources {
    /// CPU in thousandths of a core.
    pub cpu_millis: Option<u64>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Number of GPUs.
    pub gpus: Option<u32>,
    /// Bytes of disk; not enforced.
    pub disk_bytes: Option<u64>,
}

/// A volume of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Source of the volume.
    pub source: VolumeSource,
    /// Mount path in the pod.
    pub mount_path: String,
    /// Part of the volume that is mounted; empty = all of it.
    pub sub_path: String,
}

/// Source of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeSource {
    /// A claim by name.
    Claim(String),
    /// A folder of the machine.
    Host(String),
}

/// Reads thousandths of cores in their first form: a whole number above 0 and `m`.
///
/// # Errors
/// Says what is allowed.
pub fn millicores(text: &str) -> Result<u64, String> {
    let digits = text.strip_suffix('m').filter(|digits| !digits.starts_with('0'));
    let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let millis = digits.and_then(|digits| digits.parse().ok());
    millis.ok_or_else(|| "write whole thousandths of a core, such as 1000m for one".to_owned())
}

/// Reads memory: a whole number above 0 and one of E, P, T, G, M, K, Ei, Pi, Ti, Gi, Mi, Ki.
///
/// # Errors
/// Says what is allowed.
pub fn memory(text: &str) -> Result<u64, String> {
    const UNITS: [&str; 12] = ["Ei", "Pi", "Ti", "Gi", "Mi", "Ki", "E", "P", "T", "G", "M", "K"];
    let wrong = || format!("write a whole number and one of {}, such as 4096Mi", UNITS.join(", "));
    let unit = UNITS.iter().find(|unit| text.ends_with(*unit)).ok_or_else(wrong)?;
    let digits = text.strip_suffix(unit).unwrap_or_default();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || digits.starts_with('0') {
        return Err(wrong());
    }
    let (first, binary) = unit.split_at(1);
    let step: u64 = if binary.is_empty() { 1000 } else { 1024 };
    let power = "KMGTPE".find(first).and_then(|at| u32::try_from(at + 1).ok());
    let bytes = power
        .and_then(|power| step.checked_pow(power))
        .and_then(|scale| digits.parse::<u64>().ok()?.checked_mul(scale));
    bytes.ok_or_else(|| "is more memory than can be counted".to_owned())
}

/// Reads resources by name.
///
/// # Errors
/// A name is unknown or given twice, or a value has another form.
pub fn resources(text: &str) -> Result<Resources, String> {
    let mut all = Resources::default();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let Some((name, value)) = item.split_once('=') else {
            return Err(format!("`{}` has no value; write NAME=VALUE", units::shown(item)));
        };
        let (name, value) = (name.trim(), value.trim());
        let in_words = |why: &dyn std::fmt::Display| format!("{name}: {why}");
        let had = match resource(name)? {
            Resource::Cpu => {
                let millis = units::parse_cpu_millis(value).map_err(|error| in_words(&error))?;
                all.cpu_millis.replace(millis).is_some()
            }
            Resource::Memory => {
                let bytes = memory(value).map_err(|error| in_words(&error))?;
                all.memory_bytes.replace(bytes).is_some()
            }
            Resource::Disk => {
                let bytes = memory(value).map_err(|error| in_words(&error))?;
                all.disk_bytes.replace(bytes).is_some()
            }
            Resource::Gpu => {
                let gpus = value.parse().map_err(|_| in_words(&"write a whole number of GPUs"))?;
                all.gpus.replace(gpus).is_some()
            }
        };
        if had {
            return Err(format!("{name} is given twice; leave one of them out"));
        }
    }
    Ok(all)
}

enum Resource {
    Cpu,
    Memory,
    Disk,
    Gpu,
}

fn resource(name: &str) -> Result<Resource, String> {
    match name {
        "cpu" => Ok(Resource::Cpu),
        "memory" => Ok(Resource::Memory),
        "disk" | "ephemeral-storage" => Ok(Resource::Disk),
        "gpu" => Ok(Resource::Gpu),
        // MIG instances have names of this form as well; a pod of a job has whole GPUs.
        _ if name.starts_with("nvidia.com/") && !name.starts_with("nvidia.com/mig-") => {
            Ok(Resource::Gpu)
        }
        _ if name.ends_with("/gpu") && name.contains('.') => Ok(Resource::Gpu),
        _ => Err(format!(
            "`{}` is no resource; cpu, memory, disk, ephemeral-storage, gpu and VENDOR.DOMAIN/gpu \
             are",
            units::shown(name)
        )),
    }
}

/// Reads variables, `A=1,B=2`. A comma may be part of a value: a name is what follows the last
/// comma before an `=`.
///
/// # Errors
/// There is no name before an `=`, or none at all.
pub fn variables(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut all: Vec<(String, String)> = Vec::new();
    if text.trim().is_empty() {
        return Ok(all);
    }
    let mut parts = text.split('=');
    let mut name = parts.next().unwrap_or_default().trim().to_owned();
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return Err("write NAME=VALUE,NAME=VALUE".to_owned());
    }
    while let Some(part) = parts.next() {
        if name.is_empty() || name.contains(',') {
            return Err(format!("`{}` is no name; write NAME=VALUE", units::shown(&name)));
        }
        let (value, next) = match (parts.peek(), part.rsplit_once(',')) {
            (Some(_), Some((value, next))) => (value, next),
            (Some(_), None) => return Err(format!("the value of {name} has an `=` in it")),
            (None, _) => (part, ""),
        };
        all.push((std::mem::replace(&mut name, next.trim().to_owned()), value.to_owned()));
    }
    Ok(all)
}

/// Reads volumes: items between `;`, each a list of `key=value`.
///
/// # Errors
/// A key is unknown or given twice, or something is missing.
pub fn volumes(text: &str) -> Result<Vec<Volume>, String> {
    const KEYS: [&str; 5] = ["claim_name", "host_path", "mount_path", "sub_path", "type"];
    let mut all = Vec::new();
    for item in text.split(';').map(str::trim).filter(|item| !item.is_empty()) {
        let mut given: [Option<&str>; 5] = [None; 5];
        for field in item.split(',') {
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            let (key, value) = (key.trim(), value.trim());
            let Some(at) = KEYS.iter().position(|known| *known == key) else {
                let near = cli_kit::suggest::hint_or(
                    key,
                    KEYS,
                    "claim_name, host_path, \
                    mount_path, sub_path and type are",
                );
                return Err(format!("`{}` is no key of a volume{near}", units::shown(key)));
            };
            if given[at].replace(value).is_some() {
                return Err(format!("{key} is given twice; leave one of them out"));
            }
        }
        let [claim, host, mount, sub, _] = given;
        let source = match (claim, host) {
            (Some(name), None) => VolumeSource::Claim(name.to_owned()),
            (None, Some(path)) => VolumeSource::Host(path.to_owned()),
            (Some(_), Some(_)) => {
                return Err("claim_name and host_path exclude each other".to_owned());
            }
            (None, None) => {
                return Err(format!(
                    "`{}` has neither claim_name nor host_path; give one of them",
                    units::shown(item)
                ));
            }
        };
        let mount_path = mount.filter(|path| path.starts_with('/'));
        let Some(mount_path) = mount_path.map(str::to_owned) else {
            return Err("mount_path is missing; write mount_path=/FOLDER".to_owned());
        };
        all.push(Volume { source, mount_path, sub_path: sub.unwrap_or_default().to_owned() });
    }
    Ok(all)
}

/// Reads `a=1; b=2`.
///
/// # Errors
/// An item has no `=`.
pub fn parameters(text: &str) -> Result<Vec<(String, String)>, String> {
    let items = text.split(';').map(str::trim).filter(|item| !item.is_empty());
    let pair = |item: &str| match item.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("`{}` has no value; write NAME=VALUE; NAME=VALUE", units::shown(item))),
    };
    items.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_of_the_first_form_are_whole_thousandths() {
        assert_eq!(millicores("3920m"), Ok(3920));
        for wrong in ["1", "0.5", "0m", "01m", "m", "-1m", "1.5m", "1000M", ""] {
            assert!(millicores(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn memory_has_a_unit() {
        let bytes = ["1024Mi", "4096Mi", "15G", "1K", "1Ki", "2E"].map(|text| memory(text).ok());
        let want = [1 << 30, 4 << 30, 15_000_000_000, 1000, 1024, 2_000_000_000_000_000_000];
        assert_eq!(bytes, want.map(Some));
        for wrong in ["1024", "Mi", "1.5Gi", "0Mi", "1Zi", "1mi", "99999999Ei", "-1Mi", ""] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn resources_are_known_and_given_once() {
        let all = resources("cpu=0.1,memory=1024Mi, gpu=2,disk=1Gi").expect("reads");
        assert_eq!(
            (all.cpu_millis, all.memory_bytes, all.gpus, all.disk_bytes),
            (Some(100), Some(1 << 30), Some(2), Some(1 << 30))
        );
        assert_eq!(resources("amd.com/gpu=1").expect("reads").gpus, Some(1));
        assert_eq!(resources("nvidia.com/gpu=1").expect("reads").gpus, Some(1));
        assert_eq!(resources("cpu=500m").expect("reads").cpu_millis, Some(500));
        for (wrong, why) in [
            ("cpu=1,cpu=2", "cpu is given twice"),
            ("gpu=0.5", "whole number of GPUs"),
            ("gpu=1,nvidia.com/gpu=1", "given twice"),
            ("cores=1", "is no resource"),
            ("gpu", "has no value"),
            ("memory=1024", "4096Mi"),
            ("cpu=much", "cpu: "),
        ] {
            let said = resources(wrong).expect_err(wrong);
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }

    #[test]
    fn a_comma_may_be_part_of_a_variable() {
        let text = |text: &str| {
            let all = variables(text).expect("reads").into_iter();
            all.map(|(name, value)| format!("{name}:{value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(text("A=1,B=2"), "A:1 B:2");
        assert_eq!(text("A=1,2,3,B=x"), "A:1,2,3 B:x");
        assert_eq!((text(""), text("A="), text("A=,B=")), ("".into(), "A:".into(), "A: B:".into()));
        for wrong in ["A", "=1", "A=1=2", "A,B=1"] {
            assert!(variables(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn volumes_have_one_source_and_a_place() {
        let all =
            volumes("host_path=/data,mount_path=/data;claim_name=c,mount_path=/c,sub_path=train");
        let all = all.expect("reads");
        assert_eq!(all[0].source, VolumeSource::Host("/data".into()));
        assert_eq!(all[1].source, VolumeSource::Claim("c".into()));
        assert_eq!((all[1].mount_path.as_str(), all[1].sub_path.as_str()), ("/c", "train"));
        for (wrong, why) in [
            ("host_path=/a", "mount_path is missing"),
            ("mount_path=/a", "neither claim_name nor host_path"),
            ("claim_name=a,host_path=/b,mount_path=/c", "exclude each other"),
            ("hostpath=/a,mount_path=/a", "did you mean `host_path`?"),
            ("host_path=/a,host_path=/b,mount_path=/a", "given twice"),
        ] {
            let said = volumes(wrong).expect_err(wrong);
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }
}
