//! The dispatcher and everything it decides with. (Contract first; see `view` and `command`.)
mod command;
pub mod view;
pub use command::{GpuSpec, ProjectSpec, Restart, WorkloadSpec};
