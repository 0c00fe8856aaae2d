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

mod endpoint;
mod forward;
mod keeper;
mod limits;
mod meter;
mod pass;
mod probe;
mod roll;
mod scale;
mod service;

pub use endpoint::{Endpoint, NoReplica, Ticket, WAITING_MAX};
pub use forward::{Body, BoxError, Error, Proxy, strip};
pub use limits::REQUESTS_MAX;
pub use scale::{Decision, Sample, Scaler, Standing};
pub use service::Service;
