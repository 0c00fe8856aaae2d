//! The scheduler: from the state of the cluster to a plan, with the reasons for every step and for
//! every wait.
//!
//! Owns: fair share, ordering, the actions, the transaction they run in, reasons. Does not know
//! about: clocks, storage, engines. [`cycle`] is a pure function of its arguments.
//!
//! ```text
//!  promote    start workloads whose reserved place is free now
//!  allocate   give free resources to the neediest queues
//!  give back  shrink elastic pods that hold more than they requested
//!  consolidate  move pods to reduce fragmentation
//!  reclaim    reclaim resources that other queues use above their share
//!  preempt    preempt lower priorities of the queue
//!  stale      stop the rest of gangs that lost too many pods
//!  fit        start elastic pods with half of their request, a quarter, ...
//!  grow       double elastic pods into idle GPUs; up to their request they also get GPUs
//!             that other queues use above their quota
//! ```
//! Rising disruption: each action sees only workloads that the earlier ones could not place.
//! Everything happens in one transaction on the model; the plan is the resulting difference.

mod actions;
mod candidates;
mod cycle;
mod diagnosis;
mod entitlement;
mod free_places;
#[cfg(feature = "kai")]
mod kai;
mod knowledge;
mod memory;
mod never_fits;
mod node_scoring;
mod order;
mod place;
mod policy;
mod precedence;
mod protection;
mod rank;
mod session;
mod try_place;
mod victims;

pub use cycle::{carry, cycle};
pub use diagnosis::diagnose;
pub use knowledge::fair_shares;
pub use memory::Memory;
pub use model::equivalence_class::alike;
pub use never_fits::never_fits;
pub use node_scoring::NodeScoring;
pub use policy::{Action, Built, Kai, Placement, Policy, Profile, RuntimeFrom};
pub use reasons::plan::{Plan, Stats, Step, Waits};
pub use shares::OverQuota;
pub use try_place::try_place;
