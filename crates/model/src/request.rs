//! Resource requests of a pod. Owns: the kinds of GPU request and the value of each on a device.

use units::{GPU_MILLIS, Resources};

use crate::{Gpu, GpuPart, MigRequest};

/// GPUs of one pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GpuRequest {
    /// Number of whole devices of one node; 0 for CPU-only work.
    Whole(u32),
    /// Equal shares of each of several devices.
    Share {
        /// Number of devices.
        devices: u32,
        /// Thousandths of each, 1–999.
        millis: u64,
    },
    /// Equal amounts of memory on each of several devices.
    Memory {
        /// Number of devices.
        devices: u32,
        /// Bytes on each device.
        bytes: u64,
    },
    /// MIG instances.
    Mig(MigRequest),
}

impl GpuRequest {
    /// Number of devices; each MIG instance is one.
    #[must_use]
    #[inline]
    pub fn devices(self) -> u32 {
        match self {
            Self::Whole(devices) | Self::Share { devices, .. } | Self::Memory { devices, .. } => {
                devices
            }
            Self::Mig(instances) => instances.instances(),
        }
    }

    /// The request in parts for different devices: one, except for several MIG profiles.
    #[inline]
    pub fn parts(self) -> impl Iterator<Item = Self> + Clone {
        let count = match self {
            Self::Mig(instances) => instances.profiles(),
            _ => 1,
        };
        (0..count).map(move |at| match self {
            Self::Mig(instances) => Self::Mig(instances.part(at)),
            whole => whole,
        })
    }

    /// Thousandths that it needs of this device when all of it is free; `None` when it does not
    /// fit, or the device is out of service. MIG instances with a profile serve only requests for
    /// the profile, and other devices only other requests.
    #[must_use]
    #[inline]
    pub fn needs_of(self, gpu: &Gpu) -> Option<u64> {
        self.needs_of_sound(gpu).filter(|_| gpu.in_service)
    }

    /// Result of [`Self::needs_of`] also for a device that is out of service.
    #[must_use]
    #[inline]
    pub fn needs_of_sound(self, gpu: &Gpu) -> Option<u64> {
        match (self, gpu.profile()) {
            (Self::Mig(wanted), Some(here)) => wanted.has(here).then(|| here.millis()),
            (Self::Mig(_), None) | (_, Some(_)) => None,
            (_, None) => match gpu.part {
                Some(part) => self.millis_of_part(part, gpu.memory_bytes),
                None => self.millis_on(gpu.memory_bytes),
            },
        }
    }

    /// Thousandths of the GPU that it is charged for on an instance with `memory_bytes`; `None` if
    /// it does not fit. A program has one instance at a time, so a request for several devices gets
    /// none.
    fn millis_of_part(self, part: GpuPart, memory_bytes: u64) -> Option<u64> {
        if self.devices() != 1 || part.millis == 0 {
            return None;
        }
        if let Self::Memory { bytes, .. } = self
            && bytes > memory_bytes
        {
            return None;
        }
        let millis = self.millis_on(part.gpu_memory_bytes)?;
        match self {
            Self::Memory { .. } => Some(millis.min(part.millis)),
            _ => Some(millis).filter(|&millis| millis <= part.millis),
        }
    }

    /// Thousandths needed of a device with this much memory; `None` when the device is too small. A
    /// memory request is rounded up to the next thousandth.
    #[inline]
    fn millis_on(self, device_memory_bytes: u64) -> Option<u64> {
        match self {
            Self::Whole(_) => Some(GPU_MILLIS),
            Self::Share { millis, .. } => Some(millis),
            Self::Memory { bytes, .. } if bytes <= device_memory_bytes => {
                let scaled = u128::from(bytes) * u128::from(GPU_MILLIS);
                u64::try_from(scaled.div_ceil(u128::from(device_memory_bytes.max(1)))).ok()
            }
            Self::Memory { .. } | Self::Mig(_) => None,
        }
    }
}

/// Resource requests of one pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRequest {
    /// GPUs.
    pub gpu: GpuRequest,
    /// CPU, in thousandths of a core.
    pub cpu_millis: u64,
    /// Main memory, in bytes.
    pub memory_bytes: u64,
}

impl PodRequest {
    /// The request as amounts without a place, where GPUs have these memory sizes. A memory request
    /// is valued on the smallest GPU that can hold it.
    #[must_use]
    pub fn demand(self, memories: impl Iterator<Item = u64>) -> Resources {
        let device = match self.gpu {
            GpuRequest::Memory { bytes, .. } => {
                memories.filter(|&memory| memory >= bytes).min().unwrap_or(bytes)
            }
            _ => 1,
        };
        self.resources(device)
    }

    /// The request as amounts, valued on devices with this much memory.
    #[must_use]
    #[inline]
    pub fn resources(self, device_memory_bytes: u64) -> Resources {
        let each = || self.gpu.millis_on(device_memory_bytes).unwrap_or(GPU_MILLIS);
        Resources {
            gpu_millis: match self.gpu {
                GpuRequest::Mig(instances) => instances.millis(),
                other => each().saturating_mul(u64::from(other.devices())),
            },
            cpu_millis: self.cpu_millis,
            memory_bytes: self.memory_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_valued_per_device_and_rounded_up() {
        let request = GpuRequest::Memory { devices: 1, bytes: 5 };
        assert_eq!(request.millis_on(16), Some(313));
        assert_eq!(request.millis_on(5), Some(1000));
        assert_eq!(request.millis_on(4), None);
        assert_eq!(request.millis_on(0), None);
    }

    #[test]
    fn an_instance_holds_the_eighths_that_it_is_nearest_to_and_requests_for_bytes_by_bytes() {
        const MIB: u64 = 1 << 20;
        let gpu = 81_559 * MIB;
        let half = GpuPart::new(0, 40_448 * MIB, gpu);
        let eighth = GpuPart::new(0, 9856 * MIB, gpu);
        let whole = GpuPart::new(0, 81_000 * MIB, gpu);
        assert_eq!([half.millis, eighth.millis, whole.millis], [500, 125, 1000]);
        let share = |millis| GpuRequest::Share { devices: 1, millis };
        let bytes = |bytes| GpuRequest::Memory { devices: 1, bytes };
        assert_eq!(share(500).millis_of_part(half, 40_448 * MIB), Some(500));
        assert_eq!(share(501).millis_of_part(half, 40_448 * MIB), None);
        assert_eq!(bytes(40_448 * MIB).millis_of_part(half, 40_448 * MIB), Some(496));
        assert_eq!(bytes(40_448 * MIB + 1).millis_of_part(half, 40_448 * MIB), None);
        assert_eq!(GpuRequest::Whole(1).millis_of_part(half, 40_448 * MIB), None);
        assert_eq!(GpuRequest::Whole(1).millis_of_part(whole, 81_000 * MIB), Some(1000));
        assert_eq!(GpuRequest::Whole(2).millis_of_part(whole, 81_000 * MIB), None);
        let two = GpuRequest::Share { devices: 2, millis: 100 };
        assert_eq!(two.millis_of_part(whole, 81_000 * MIB), None, "a program has one");
        let odd = GpuPart::new(0, 21 * MIB, 40 * MIB);
        assert_eq!(
            bytes(21 * MIB).millis_of_part(odd, 21 * MIB),
            Some(500),
            "never more than it is"
        );
    }
}
