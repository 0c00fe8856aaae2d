//! The actions of a cycle, one file each, in order of rising disruption.

pub(crate) mod allocate;
pub(crate) mod consolidate;
pub(crate) mod drain;
pub(crate) mod elastic;
pub(crate) mod explain;
pub(crate) mod preempt;
pub(crate) mod promote;
pub(crate) mod reclaim;
pub(crate) mod stale;
mod take_back;
