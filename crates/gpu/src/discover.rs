//! The GPUs the driver reports. Owns: the difference between no driver, which is an answer, a
//! broken one, which is an error, and one that has lost some of its GPUs.

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use crate::health::fault_of;
use crate::{Error, Gpu, MigInstance};

/// The GPUs of this machine in PCI bus order, those that do not answer included. `None`: no NVIDIA
/// driver is installed.
///
/// Blocks for as long as the driver needs to wake up (up to seconds).
///
/// # Errors
/// A driver is installed but does not answer, for none of its GPUs.
pub fn discover() -> Result<Option<Vec<Gpu>>, Error> {
    let broken = |error: NvmlError| Error::Driver(error.to_string());
    let nvml = match Nvml::init() {
        Ok(nvml) => nvml,
        Err(NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound) => return Ok(None),
        Err(error) => return Err(broken(error)),
    };
    let count = nvml.device_count().map_err(broken)?;
    let ask = |index| ask(&nvml, index).map_err(|error| fault_of(&error));
    gpus_from_answers((0..count).map(ask).collect()).map(Some)
}

/// Answer of the driver for one GPU.
#[derive(Debug, Clone)]
struct Answer {
    uuid: String,
    product: String,
    memory_bytes: u64,
    instances: Option<Vec<MigInstance>>,
}

fn ask(nvml: &Nvml, index: u32) -> Result<Answer, NvmlError> {
    let device = nvml.device_by_index(index)?;
    Ok(Answer {
        uuid: device.uuid()?,
        product: device.name()?,
        memory_bytes: device.memory_info()?.total,
        instances: match whether_divided(device.mig_mode().map(|mode| mode.current == 1))? {
            Some(true) => Some(instances(&device)?),
            Some(false) | None => None,
        },
    })
}

/// True for MIG mode; `None` if the GPU does not support it. After any other error the GPU may be
/// in MIG mode, and must not be given out as a whole one.
fn whether_divided(answer: Result<bool, NvmlError>) -> Result<Option<bool>, NvmlError> {
    match answer {
        Ok(is_divided) => Ok(Some(is_divided)),
        Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The instances of a GPU in MIG mode that programs can use. Their numbers may have gaps. Not those
/// that have a part of the processors of one and share its memory, which keep no limit.
fn instances(device: &Device<'_>) -> Result<Vec<MigInstance>, NvmlError> {
    let instance = |index| match device.mig_device_by_index(index) {
        Ok(instance) => Some(described(&instance)),
        Err(NvmlError::NotFound) => None,
        Err(error) => Some(Err(error)),
    };
    let all: Vec<MigInstance> =
        (0..device.mig_device_count()?).filter_map(instance).collect::<Result<_, _>>()?;
    let (whole, shared): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|one| has_own_memory(&one.profile));
    for MigInstance { uuid, profile, .. } in shared {
        tracing::warn!(
            "{uuid} ({profile}) is not given out: it shares its memory with others; make one compute \
             instance of all of each GPU instance, as `nvidia-smi mig -cgi PROFILES -C` does"
        );
    }
    Ok(whole)
}

/// A compute instance that is a part of its GPU instance has its own slices in front: `1c.3g.40gb`.
fn has_own_memory(profile: &str) -> bool {
    profile.split('.').next().is_none_or(|slices| !slices.ends_with('c'))
}

fn described(instance: &Device<'_>) -> Result<MigInstance, NvmlError> {
    Ok(MigInstance {
        uuid: instance.uuid()?,
        profile: profile(&instance.name()?).to_owned(),
        memory_bytes: instance.memory_info()?.total,
    })
}

/// The driver calls one `NVIDIA H100 80GB HBM3 MIG 3g.40gb`.
fn profile(name: &str) -> &str {
    name.rsplit_once(" MIG ").map_or(name, |(_, profile)| profile)
}

/// One that does not answer keeps its number, so that the others keep theirs. Nothing will come to
/// it, and it is described like the first that answers.
fn gpus_from_answers(answers: Vec<Result<Answer, String>>) -> Result<Vec<Gpu>, Error> {
    let Some(known) = answers.iter().find_map(|answer| answer.as_ref().ok()).cloned() else {
        let Some(Err(first)) = answers.first() else { return Ok(Vec::new()) };
        let count = answers.len();
        return Err(Error::Driver(format!("of {count} GPUs none answers; the first: {first}")));
    };
    let gpu = |(index, answer): (u32, Result<Answer, String>)| {
        let (Answer { uuid, product, memory_bytes, instances }, fault) = match answer {
            Ok(answer) => (answer, None),
            Err(why) => {
                let uuid = format!("GPU-lost-{index}");
                (Answer { uuid, instances: None, ..known.clone() }, Some(why))
            }
        };
        Gpu { index, uuid, product, memory_bytes, simulated: false, instances, fault }
    };
    Ok((0..).zip(answers).map(gpu).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn works(uuid: &str) -> Result<Answer, String> {
        let instances = Some(Vec::new());
        let (uuid, product) = (uuid.into(), "H100".into());
        Ok(Answer { uuid, product, memory_bytes: 80 << 30, instances })
    }

    #[test]
    fn an_instance_is_known_by_its_profile() {
        assert_eq!(profile("NVIDIA H100 80GB HBM3 MIG 3g.40gb"), "3g.40gb");
        assert_eq!(profile("NVIDIA A30 MIG 1g.6gb+me"), "1g.6gb+me");
        assert_eq!(profile("other"), "other");
    }

    #[test]
    fn a_gpu_that_may_be_divided_is_no_whole_one() {
        assert!(matches!(whether_divided(Ok(true)), Ok(Some(true))));
        assert!(matches!(whether_divided(Err(NvmlError::NotSupported)), Ok(None)));
        let missing = NvmlError::FailedToLoadSymbol("nvmlDeviceGetMigMode".to_owned());
        assert!(matches!(whether_divided(Err(missing)), Ok(None)));
        assert!(matches!(whether_divided(Err(NvmlError::Unknown)), Err(NvmlError::Unknown)));
    }

    #[test]
    fn an_instance_that_shares_its_memory_is_told_by_its_profile() {
        for own in ["3g.40gb", "1g.6gb+me", "1g.10gb+gfx", "7g.80gb", "other"] {
            assert!(has_own_memory(own), "{own}");
        }
        for shared in ["1c.3g.40gb", "2c.7g.80gb", "1c.2g.12gb+me"] {
            assert!(!has_own_memory(shared), "{shared}");
        }
    }

    #[test]
    fn a_gpu_that_does_not_answer_keeps_its_number_and_says_why() {
        let gpus = gpus_from_answers(vec![Err(fault_of(&NvmlError::GpuLost)), works("GPU-b")])
            .expect("one");
        let [lost, works] = &gpus[..] else { panic!("{gpus:?}") };
        assert_eq!((lost.index, works.index, works.uuid.as_str()), (0, 1, "GPU-b"));
        assert_eq!((lost.memory_bytes, lost.product.as_str()), (80 << 30, "H100"));
        assert!(
            lost.fault.as_ref().is_some_and(|why| why.contains("fell off the bus")),
            "{lost:?}"
        );
        assert_eq!(works.fault, None);
        assert_ne!(lost.uuid, works.uuid);
        assert_eq!((&lost.instances, &works.instances), (&None, &Some(Vec::new())));
    }

    #[test]
    fn no_gpu_is_an_answer_and_none_that_answers_is_a_broken_driver() {
        assert_eq!(gpus_from_answers(Vec::new()).expect("no GPU"), []);
        let said = gpus_from_answers(vec![Err("gone".into()), Err("gone, too".into())])
            .expect_err("broken");
        let said = said.to_string();
        assert!(said.contains("of 2 GPUs none answers; the first: gone)"), "{said}");
        assert!(said.contains("`--gpus 0`") && said.contains("`nvidia-smi`"), "{said}");
    }

    #[test]
    fn a_machine_with_or_without_a_driver_gets_an_answer() {
        // The answer depends on the machine; that each real GPU is complete does not.
        let Some(gpus) = discover().expect("no driver, or one that works") else { return };
        for (at, gpu) in (0_u32..).zip(&gpus) {
            assert_eq!(gpu.index, at);
            assert!(gpu.memory_bytes > 0 && !gpu.uuid.is_empty() && !gpu.simulated, "{gpu:?}");
        }
    }
}
