//! Clusters that exist only in memory, for measuring and for asking *what if*.
//!
//! Owns: generated states, scenario files and their outcome, trace replay, random histories. Does
//! not know about: processes, storage, files, the network. The decisions are made by the same
//! `model` and `sched` as in the product.

pub mod chaos;
mod diagnosis;
mod error;
mod expect;
mod forecast;
pub mod machine;
mod play;
mod report;
pub mod rng;
pub mod scenario;
mod snapshot;
pub mod states;
mod suggest;
mod svg;
pub mod trace;
pub mod what_if;

pub use diagnosis::{Diagnosis, Reason};
pub use error::Error;
pub use forecast::{Course, Forecast, forecast};
pub use play::{
    CYCLES_TO_REST_MAX, Failure, GPUS_PER_NODE_MAX, NODES_MAX, Outcome, PODS_MAX, QUEUES_MAX,
    Record, Simulation, policy, run,
};
pub use report::{Amounts, Decision, Frame, GpuShare, Place, Queue, Task, Waiting};
pub use snapshot::snapshot;
pub use svg::svg;
