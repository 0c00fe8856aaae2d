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
    /// UUID that the driver gives the GPU, or `GPU-sim-<node>-<index>`.
    pub uuid: String,
    /// Product name; `simulated` for a simulated GPU.
    pub product: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// True if it is simulated.
    pub simulated: bool,
    /// MIG instances of a GPU in MIG mode; programs can use only these.
    pub instances: Option<Vec<MigInstance>>,
    /// Reason why it cannot be used; `None` if it can. The driver reports no UUID, product and
    /// memory of a lost GPU: these values are made up.
    pub fault: Option<String>,
}

/// A MIG instance of a GPU, which an administrator made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigInstance {
    /// UUID that the driver gives the instance.
    pub uuid: String,
    /// Slices and memory, such as `3g.40gb`.
    pub profile: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// A node and its GPUs; empty for a CPU-only node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGpus {
    /// Name of the node.
    pub name: String,
    /// GPUs by index.
    pub gpus: Vec<Gpu>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Part of the machine that the node may use.
    pub host: HostPart,
}

/// Part of a machine that a node may use; `None` for all of the machine's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostPart {
    /// Thousandths of cores.
    pub cpu_millis: Option<u64>,
    /// Bytes of main memory.
    pub memory_bytes: Option<u64>,
}

/// Reason why GPUs could not be found or simulated.
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
        /// Expected form.
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
        /// Name of the counted items.
        what: &'static str,
        /// Largest allowed.
        max: u32,
    },
    /// A label is wrong.
    #[error("`{text}` has no usable labels: {fault}")]
    Labels {
        /// As typed.
        text: String,
        /// Error in the labels.
        fault: String,
    },
    /// The part of the machine that a node may use is wrong.
    #[error("`{text}` has no usable cores and memory: {fault}")]
    Host {
        /// As typed.
        text: String,
        /// Error in the cores or memory.
        fault: String,
    },
    /// The memory size is wrong.
    #[error("`{text}` has no usable memory size per GPU: {fault}")]
    Size {
        /// As typed.
        text: String,
        /// Error in the size.
        fault: String,
    },
}
