//! Activity of GPUs, as the driver reports it. Owns: a connection to the driver that stays open,
//! and omitting values that a device cannot report. Does not know which runs the processes belong
//! to.

use std::collections::BTreeMap;

use nvml_wrapper::{Device, Nvml};

use crate::processes::computing;

/// Utilisation and processes of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// UUID that the driver gives the GPU.
    pub uuid: String,
    /// Thousandths of the time in which it computed, over the driver's last period (up to 1 s);
    /// `None` if unknown.
    pub busy_millis: Option<u64>,
    /// Memory in use, in bytes; `None` if unknown.
    pub memory_bytes: Option<u64>,
    /// Activity of single processes, by process id.
    pub processes: BTreeMap<u32, ProcessActivity>,
}

/// Activity of a process on a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessActivity {
    /// Thousandths of the time in which it computed, by the driver's newest sample; `None` if
    /// unknown.
    pub busy_millis: Option<u64>,
    /// Memory in use, in bytes; `None` if unknown.
    pub memory_bytes: Option<u64>,
}

impl Activity {
    /// Sum over some of the processes on it; `None` if the driver lists none of them.
    #[must_use]
    pub fn of(&self, are: impl Fn(u32) -> bool) -> Option<ProcessActivity> {
        let own = self.processes.iter().filter(|(pid, _)| are(**pid));
        let own: Vec<_> = own.map(|(_, process)| process).collect();
        if own.is_empty() {
            return None;
        }
        let sum = |parts: Vec<u64>| (!parts.is_empty()).then(|| parts.iter().sum::<u64>());
        Some(ProcessActivity {
            busy_millis: sum(own.iter().filter_map(|one| one.busy_millis).collect())
                .map(|busy| busy.min(1000)),
            memory_bytes: sum(own.iter().filter_map(|one| one.memory_bytes).collect()),
        })
    }
}

/// An open connection to the driver.
#[derive(Debug)]
pub struct Sampler {
    nvml: Nvml,
}

impl Sampler {
    /// Connects to the driver; `None` if there is none, or it does not answer. Blocks while the
    /// driver wakes up.
    #[must_use]
    pub fn open() -> Option<Self> {
        Nvml::init().ok().map(|nvml| Self { nvml })
    }

    /// Activity of every GPU, without devices that do not answer. Blocks for milliseconds.
    #[must_use]
    pub fn sample(&self) -> Vec<Activity> {
        let count = self.nvml.device_count().unwrap_or_else(|error| {
            tracing::warn!("the driver does not count its GPUs: {error}");
            0
        });
        let devices = (0..count).filter_map(|index| self.nvml.device_by_index(index).ok());
        devices.filter_map(|device| activity(&device)).collect()
    }
}

fn activity(device: &Device<'_>) -> Option<Activity> {
    let percent = |busy: u32| u64::from(busy.min(100)) * 10;
    let held = computing(device).unwrap_or_default().into_iter();
    let mut processes: BTreeMap<u32, ProcessActivity> = held
        .map(|(pid, bytes)| (pid, ProcessActivity { busy_millis: None, memory_bytes: Some(bytes) }))
        .collect();
    // The driver keeps some samples of each process; the newest counts. Not every device tells.
    let mut samples = device.process_utilization_stats(None).unwrap_or_default();
    samples.sort_by_key(|sample| sample.timestamp);
    for sample in samples {
        processes.entry(sample.pid).or_default().busy_millis = Some(percent(sample.sm_util));
    }
    Some(Activity {
        uuid: device.uuid().ok()?,
        busy_millis: device.utilization_rates().ok().map(|rates| percent(rates.gpu)),
        memory_bytes: device.memory_info().ok().map(|memory| memory.used),
        processes,
    })
}

#[cfg(test)]
mod tests {
    use super::Sampler;

    #[test]
    fn a_machine_with_or_without_a_driver_gets_an_answer() {
        // The answer depends on the machine; that there is one does not.
        for gpu in Sampler::open().map(|sampler| sampler.sample()).unwrap_or_default() {
            assert!(!gpu.uuid.is_empty(), "{gpu:?}");
            assert!(gpu.busy_millis.is_none_or(|busy| busy <= 1000), "{gpu:?}");
        }
    }
}
