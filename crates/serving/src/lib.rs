//! Serving: requests to replicas, and as many replicas as the requests need.
//!
//! ```text
//!  request -> Endpoint (waits for a replica) -> forward -> replica
//!                 | measured, each second
//!               Scaler -> control: so many replicas -> the scheduler finds them places
//! ```
//!
//! Owns: which replica answers, what waits and for how long, what is measured, when a replica is
//! ready, how many there should be. Does not know who may ask (`api`), where replicas run.

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
