//! The GPUs of a pod: how many devices, and how much of each. Owns: separate requests for compute
//! and memory, each with a limit; the amount that the scheduler counts; the form in documents.

use model::{MigError, MigRequest};
use serde::{Deserialize, Serialize};
use units::GPU_MILLIS;

/// GPUs of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub enum GpuRequest {
    /// Number of whole devices of one node; 0 for CPU-only work.
    Whole(u32),
    /// Equal parts of each of several devices.
    Shared(SharedGpus),
    /// MIG instances.
    Mig(MigRequest),
}

/// Shared devices, and the request on each. Without a request for compute or for memory, that
/// follows from the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedGpus {
    /// Number of devices.
    pub devices: u32,
    /// Compute of each device, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Bounds>,
    /// Memory of each device, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bounds>,
}

/// Guaranteed amount, and the maximum while more is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Guaranteed amount.
    pub request: u64,
    /// Maximum; `None` if it is the guaranteed amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Maximum of a shared device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuLimit {
    /// Thousandths of the device.
    Portion(u64),
    /// Bytes of the device's memory.
    Memory(u64),
}

impl std::fmt::Display for GpuLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Portion(millis) => f.write_str(&units::format_millis(*millis)),
            Self::Memory(bytes) => f.write_str(&units::format_bytes(*bytes)),
        }
    }
}

impl Bounds {
    /// Maximum that may be used.
    #[must_use]
    pub const fn most(self) -> u64 {
        match self.limit {
            Some(limit) if limit > self.request => limit,
            _ => self.request,
        }
    }

    /// A request whose limit is equal to it.
    #[must_use]
    pub const fn of(request: u64) -> Self {
        Self { request, limit: None }
    }
}

impl GpuRequest {
    /// Request for `millis` thousandths of each of `devices` devices.
    #[must_use]
    pub const fn share(devices: u32, millis: u64) -> Self {
        Self::Shared(SharedGpus { devices, compute: Some(Bounds::of(millis)), memory: None })
    }

    /// Request for `bytes` bytes of memory on each of `devices` devices.
    #[must_use]
    pub const fn memory(devices: u32, bytes: u64) -> Self {
        Self::Shared(SharedGpus { devices, compute: None, memory: Some(Bounds::of(bytes)) })
    }

    /// Bytes of a device of `memory_bytes`, of which the scheduler granted `millis` thousandths. A
    /// limit above the device's memory is capped at it.
    #[must_use]
    pub fn memory_of(self, memory_bytes: u64, millis: u64) -> Bounds {
        let part = |millis: u64| {
            let bytes = u128::from(memory_bytes) * u128::from(millis.min(GPU_MILLIS));
            u64::try_from(bytes / u128::from(GPU_MILLIS)).unwrap_or(memory_bytes)
        };
        let within = |bytes: u64| bytes.min(memory_bytes);
        match self {
            Self::Shared(SharedGpus { compute: Some(compute), .. }) => {
                Bounds { request: part(millis), limit: compute.limit.map(part) }
            }
            Self::Shared(SharedGpus { memory: Some(memory), .. }) => {
                Bounds { request: within(memory.request), limit: memory.limit.map(within) }
            }
            Self::Whole(_) | Self::Shared(_) | Self::Mig(_) => Bounds::of(part(millis)),
        }
    }

    /// This request with another limit of compute or memory; `None` if it requests no part of that
    /// kind.
    #[must_use]
    pub fn with_limit(self, most: GpuLimit) -> Option<Self> {
        let Self::Shared(mut shared) = self else { return None };
        let (bounds, limit) = match most {
            GpuLimit::Portion(millis) => (&mut shared.compute, millis),
            GpuLimit::Memory(bytes) => (&mut shared.memory, bytes),
        };
        bounds.as_mut()?.limit = Some(limit);
        Some(Self::Shared(shared))
    }

    /// Limit of the requested part; `None` if it has none.
    #[must_use]
    pub fn limit(self) -> Option<GpuLimit> {
        let Self::Shared(SharedGpus { compute, memory, .. }) = self else { return None };
        let of = |bounds: Option<Bounds>| bounds.and_then(|bounds| bounds.limit);
        of(compute).map(GpuLimit::Portion).or(of(memory).map(GpuLimit::Memory))
    }

    /// Number of devices; each MIG instance counts as one.
    #[must_use]
    pub fn devices(self) -> u32 {
        self.counted().devices()
    }

    /// Guaranteed amount, as the scheduler counts it and the ledger holds it.
    #[must_use]
    pub const fn counted(self) -> model::GpuRequest {
        match self {
            Self::Whole(devices)
            | Self::Shared(SharedGpus {
                devices,
                compute: Some(Bounds { request: GPU_MILLIS.., .. }),
                ..
            }) => model::GpuRequest::Whole(devices),
            Self::Shared(SharedGpus { devices, compute: Some(compute), .. }) => {
                model::GpuRequest::Share { devices, millis: compute.request }
            }
            Self::Shared(SharedGpus { devices, memory: Some(memory), .. }) => {
                model::GpuRequest::Memory { devices, bytes: memory.request }
            }
            // A part without compute and memory is none; the check refuses it.
            Self::Shared(SharedGpus { .. }) => model::GpuRequest::Whole(0),
            Self::Mig(instances) => model::GpuRequest::Mig(instances),
        }
    }
}

/// Form in documents.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wire {
    Whole { devices: u32 },
    Shared(SharedGpus),
    Mig { instances: Vec<(String, u16)> },
}

impl From<GpuRequest> for Wire {
    fn from(gpu: GpuRequest) -> Self {
        match gpu {
            GpuRequest::Whole(devices) => Self::Whole { devices },
            GpuRequest::Shared(shared) => Self::Shared(shared),
            GpuRequest::Mig(instances) => Self::Mig {
                instances: instances.iter().map(|(profile, n)| (profile.to_string(), n)).collect(),
            },
        }
    }
}

/// Invalid MIG instances in a document.
#[derive(Debug, thiserror::Error)]
#[error("MIG instances that are none: {0}")]
struct NoMig(#[from] MigError);

impl TryFrom<Wire> for GpuRequest {
    type Error = NoMig;
    fn try_from(wire: Wire) -> Result<Self, NoMig> {
        Ok(match wire {
            Wire::Whole { devices } => Self::Whole(devices),
            Wire::Shared(shared) => Self::Shared(shared),
            Wire::Mig { instances } => {
                let each = instances.into_iter().map(|(profile, n)| Ok((profile.parse()?, n)));
                Self::Mig(MigRequest::new(each.collect::<Result<Vec<_>, MigError>>()?)?)
            }
        })
    }
}
