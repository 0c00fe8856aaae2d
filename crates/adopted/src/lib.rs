//! Adopted pods: pods whose existence another API decides, such as that of Kubernetes. Owns: the
//! table of what the feed reported last, the amounts that pods hold without a charge to a queue,
//! the project of a pod, its specification as a workload, and the reasons that hold it before it
//! becomes one. Pure.
//!
//! Does not know about: the life of a pod, the places of charged pods, and the decisions; a charged
//! pod is a workload of the state machine like any other, except that nothing of it is stored.

mod project;
mod table;
#[cfg(test)]
mod tests;
mod workload;

pub use project::{Charged, Held, held_by_field, project_of};
pub use table::{Table, slot_name};
pub use workload::{differs, gang_of, is_preemptible, member_of, workload_of};
