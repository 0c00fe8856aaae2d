//! Commands of the control plane. Owns: the shape of every request after authentication and
//! conversion from the wire, with its author, the object that its answer is about, and the admission
//! checks that need no more than numbers and names. Does not know about: the state that a command
//! changes.

pub mod admission;
mod change;
mod command;
mod object;
mod object_use;
mod workload_use;

pub use change::{NodeChange, PoolChange};
pub use command::{Command, OrgChange, Readiness, Record, Subject, Wanted, WorkloadChange};
pub use object::{Edit, Edited, NewId, NewObject, check_name};
pub use object_use::ObjectTable;
pub use spec::RequestError as Error;
pub use workload_use::{UseTable, WorkloadUse};
