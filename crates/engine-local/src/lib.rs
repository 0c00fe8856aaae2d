//! The engine for this machine: runs pods as processes, each under a supervisor of its own that
//! outlives the server.
//!
//! Owns: the run directories on disk, the supervisor, the environment a run sees, the image
//! table. Refuses to know: scheduling, the database, and who may do what.
//!
//! ```text
//! server ── spawn ──> supervisor (own session, holds <run>/lock for its life)
//!    ^                    │  claims <run>/state.json, starts the command in a session of its own,
//!    │  state, one JSON   │  adopts orphans, ends and reaps the whole tree, records the exit
//!    └─ line each (pipe) ─┘
//! ```
//!
//! After a crash of the server only the files are left, and they are enough: who holds the lock
//! of a run directory supervises it; an unfinished state beside a lock nobody holds is a run
//! whose supervisor vanished; a specification without a state is a start cut short, which the
//! next server finishes. So after `open` every run that may have processes is in `list`.
//!
//! Limits: a run's log is bounded by the disk only; a process that changes its user and clears
//! its environment is found while its supervisor lives, but not after that was killed.

#![deny(unsafe_op_in_unsafe_fn)]

mod engine_impl;
mod environment;
mod image;
mod logs;
mod open;
mod process;
mod record;
mod smi;
mod supervise;
mod sys;
mod watch;

pub use image::{Image, ImageTable};
pub use open::{LocalEngine, Options};
pub use smi::nvidia_smi;
pub use supervise::supervise;
