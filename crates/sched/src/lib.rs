//! The scheduler: from the state of the cluster to a plan, with the reasons for everything it
//! does and does not do.
//!
//! Owns: fair share, ordering, the actions, the transaction they run in, reasons. Does not
//! know about: clocks, storage, engines. [`cycle`] is a pure function of its arguments.
//!
//! ```text
//!  promote    start what waited for a place that is free now
//!  allocate   give free resources to the neediest
//!  give back  shrink elastic pods that hold more than they asked for
//!  consolidate  move pods so that free resources come together
//!  reclaim    take from other queues what they hold above their share
//!  preempt    take from lower priorities of the same queue
//!  stale      stop what is left of gangs that lost too many pods
//!  fit        start elastic pods with half of what they asked for, a quarter, ...
//!  grow       double elastic pods into idle GPUs; what they requested they also get back
//!             from what other queues hold above their quota
//! ```
//! Rising disruption: each action sees only what the ones before could not place. Everything
//! happens in one transaction on the model; the plan is the difference it leaves.

mod actions;
mod candidates;
mod cycle;
mod diagnosis;
mod entitlement;
mod equivalence_class;
mod free_places;
#[cfg(feature = "kai")]
mod kai;
mod knowledge;
mod memory;
mod never_fits;
mod node_scoring;
mod order;
mod place;
mod plan;
mod policy;
mod precedence;
mod protection;
mod rank;
mod session;
mod spare;
mod try_place;
mod victims;

pub use cycle::{carry, cycle};
pub use diagnosis::diagnose;
pub use equivalence_class::alike;
pub use knowledge::fair_shares;
pub use memory::Memory;
pub use never_fits::never_fits;
pub use node_scoring::NodeScoring;
pub use plan::{Plan, Stats, Step, Waits};
pub use policy::{Action, Built, Kai, Placement, Policy, Profile, RuntimeFrom};
pub use shares::OverQuota;
pub use try_place::try_place;
