//! Serving: forwards requests to replicas, and scales the replicas to the requests.
//!
//! ```text
//!  request -> Endpoint (waits for a replica) -> forward -> replica
//!                 | measured, each second
//!               Scaler -> control: number of replicas -> the scheduler places them
//! ```
//!
//! Owns: the choice of the replica, the waiting requests and their timeouts, the measurements, the
//! readiness of replicas, the number of replicas. Does not know about: authorization (`api`), the
//! places of replicas.

mod autoscaler;
mod controller;
mod counters;
mod endpoint;
mod limits;
mod pod_proxy;
mod probe;
mod proxy;
mod rollout;
mod service;

pub use autoscaler::{Decision, ReplicaCounts, Sample, Scaler};
pub use endpoint::{Endpoint, NoReplica, Ticket, WAITING_MAX};
pub use limits::REQUESTS_MAX;
pub use proxy::{Body, BoxError, Error, Proxy, strip};
pub use service::Service;
