//! A place for a pod. Owns: its node and the shares of the node's devices.

use smallvec::SmallVec;
use units::Resources;

use crate::NodeId;

/// A share of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceShare {
    /// Index of the device on its node.
    pub gpu: u32,
    /// Thousandths of it.
    pub millis: u64,
}

impl DeviceShare {
    pub(crate) const fn index(self) -> usize {
        self.gpu as usize
    }
}

/// A place: a node and shares of its devices. The CPU and memory amounts are those of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Node.
    pub node: NodeId,
    /// Devices; empty for CPU-only work.
    pub devices: SmallVec<[DeviceShare; 2]>,
}

impl Placement {
    /// Thousandths of GPUs in it.
    #[must_use]
    pub fn gpu_millis(&self) -> u64 {
        self.devices.iter().map(|share| share.millis).sum()
    }

    /// True if a device of its node is part of it.
    #[must_use]
    pub fn uses(&self, gpu: u32) -> bool {
        self.devices.iter().any(|share| share.gpu == gpu)
    }
}

/// Amounts of a pod with this demand at a place.
pub(crate) fn amounts(place: &Placement, demand: Resources) -> Resources {
    Resources { gpu_millis: place.gpu_millis(), ..demand }
}
