//! The GPUs of a pod: how many devices, and how much of each. Owns: that compute and memory are
//! asked for apart, each with a limit; what the scheduler counts of it; how it looks in documents.

use model::{MigError, MigRequest};
use serde::{Deserialize, Serialize};
use units::GPU_MILLIS;

/// GPUs of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub enum GpuRequest {
    /// So many whole devices of one node; 0 for CPU-only work.
    Whole(u32),
    /// The same part of each of so many devices.
    Shared(SharedGpus),
    /// MIG instances.
    Mig(MigRequest),
}

/// Devices that are shared with others, and what is asked of each. What is not said of compute or
/// of memory follows from the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedGpus {
    /// Devices.
    pub devices: u32,
    /// Thousandths of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Bounds>,
    /// Bytes of the memory of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bounds>,
}

/// What is guaranteed, and how much more may be used while it is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Guaranteed.
    pub request: u64,
    /// Most that may be used; none = as much as is guaranteed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The most of a device that is shared with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuLimit {
    /// Thousandths.
    Portion(u64),
    /// Bytes of its memory.
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
    /// Most that may be used.
    #[must_use]
    pub const fn most(self) -> u64 {
        match self.limit {
            Some(limit) if limit > self.request => limit,
            _ => self.request,
        }
    }

    /// This much and no more.
    #[must_use]
    pub const fn of(request: u64) -> Self {
        Self { request, limit: None }
    }
}

impl GpuRequest {
    /// Thousandths of each of so many devices.
    #[must_use]
    pub const fn share(devices: u32, millis: u64) -> Self {
        Self::Shared(SharedGpus { devices, compute: Some(Bounds::of(millis)), memory: None })
    }

    /// Bytes of memory on each of so many devices.
    #[must_use]
    pub const fn memory(devices: u32, bytes: u64) -> Self {
        Self::Shared(SharedGpus { devices, compute: None, memory: Some(Bounds::of(bytes)) })
    }

    /// Bytes of a device with so much memory, of which the scheduler gave these thousandths. A limit
    /// above the device is all of it.
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

    /// The same with another limit, of the kind that it asks for; none: it asks for no such part.
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

    /// Its limit, where it asks for a part and says one.
    #[must_use]
    pub fn limit(self) -> Option<GpuLimit> {
        let Self::Shared(SharedGpus { compute, memory, .. }) = self else { return None };
        let of = |bounds: Option<Bounds>| bounds.and_then(|bounds| bounds.limit);
        of(compute).map(GpuLimit::Portion).or(of(memory).map(GpuLimit::Memory))
    }

    /// Number of devices; each MIG instance is one.
    #[must_use]
    pub fn devices(self) -> u32 {
        self.counted().devices()
    }

    /// What the scheduler counts, and the books hold: what is guaranteed.
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
            // A part of which nothing is said is none; the check refuses it.
            Self::Shared(SharedGpus { .. }) => model::GpuRequest::Whole(0),
            Self::Mig(instances) => model::GpuRequest::Mig(instances),
        }
    }
}

/// How it looks in documents.
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

/// Instances that are none.
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
