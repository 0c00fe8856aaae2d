//! Which GPUs and how much CPU and memory a machine has, found or simulated.
//!
//! Owns: discovery and health through NVML, the notation of simulated machines (`4x16GiB`,
//! `2x2x16GiB`), and this machine's capacity. Does not know who gets a GPU.

mod activity;
mod discover;
mod driver;
mod health;
mod host;
mod processes;
mod simulate;
mod snapshot;

pub use activity::{Activity, ProcessActivity, Sampler};
pub use discover::discover;
pub use driver::Driver;
pub use health::{Health, Program, Watcher};
pub use host::{Capacity, host_capacity, host_name};
pub use simulate::{GPUS_PER_NODE_MAX, NODES_MAX, simulate_gpus, simulate_node, simulate_nodes};
pub use snapshot::{Snapshot, SnapshotGpu, simulated_driver};

use std::collections::BTreeMap;

use thiserror::Error;

/// One GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// Index on its node, from 0, in PCI bus order.
    pub index: u32,
    /// What the driver calls it, or `GPU-sim-<node>-<index>`.
    pub uuid: String,
    /// Product name; `simulated` for one that is not there.
    pub product: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// True if it is simulated.
    pub simulated: bool,
    /// Its MIG instances, if it is in MIG mode: programs can use those only.
    pub instances: Option<Vec<MigInstance>>,
    /// Why it cannot be used; none if it can. The driver tells no UUID, product and memory of one
    /// that it has lost: those are made up.
    pub fault: Option<String>,
}

/// A MIG instance of a GPU, which an administrator made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigInstance {
    /// What the driver calls it.
    pub uuid: String,
    /// Its slices and memory, such as `3g.40gb`.
    pub profile: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// A node and its GPUs; none for a CPU-only node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGpus {
    /// Name of the node.
    pub name: String,
    /// Its GPUs by index.
    pub gpus: Vec<Gpu>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What of the machine it may have.
    pub host: HostPart,
}

/// What of a machine a node may have; what is not said is that of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostPart {
    /// Thousandths of cores.
    pub cpu_millis: Option<u64>,
    /// Bytes of main memory.
    pub memory_bytes: Option<u64>,
}

/// Why GPUs could not be found or made up.
#[derive(Debug, Error)]
pub enum Error {
    /// A driver is installed but does not answer.
    #[error(
        "the NVIDIA driver is installed but does not work ({0}); check `nvidia-smi`, \
         start without GPUs with `--gpus 0`, or simulate some with `--gpus 4x16GiB`"
    )]
    Driver(String),
    /// The text is not in the notation at all.
    #[error("`{text}` is not {what}; write {example}")]
    Notation {
        /// As typed.
        text: String,
        /// What was expected.
        what: &'static str,
        /// How it is written.
        example: &'static str,
    },
    /// A number is outside its range.
    #[error("`{text}` has {count} {what}; 1 to {max} are allowed")]
    OutOfRange {
        /// As typed.
        text: String,
        /// The number.
        count: u64,
        /// What was counted.
        what: &'static str,
        /// Largest allowed.
        max: u32,
    },
    /// A label is wrong.
    #[error("`{text}` has no usable labels: {fault}")]
    Labels {
        /// As typed.
        text: String,
        /// What is wrong with them.
        fault: String,
    },
    /// What it may have of the machine is wrong.
    #[error("`{text}` has no usable cores and memory: {fault}")]
    Host {
        /// As typed.
        text: String,
        /// What is wrong with them.
        fault: String,
    },
    /// The memory size is wrong.
    #[error("`{text}` has no usable memory size per GPU: {fault}")]
    Size {
        /// As typed.
        text: String,
        /// What is wrong with it.
        fault: String,
    },
}
