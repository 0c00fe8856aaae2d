//! The engine for this machine: runs pods as processes, each under a supervisor of its own that
//! outlives the server.
//!
//! Owns: the run directories on disk, the supervisor, the environment of a run, the image table.
//! Does not know about scheduling, the database, or permissions of users.
//!
//! ```text
//! server ── spawn ──> supervisor (own session, holds <run>/lock for its life)
//!    ^                    │  claims <run>/state.json, starts the command in a session of its own,
//!    │  state, one JSON   │  adopts orphans, ends and reaps the whole tree, records the exit
//!    └─ line each (pipe) ─┘
//! ```
//!
//! After a crash of the server only the files are left, and they are enough: the holder of the
//! lock of a run directory supervises it; an unfinished state with a free lock is a run whose
//! supervisor vanished; a specification without a state is an interrupted start, which the next
//! server finishes. So after `open` every run that may have processes is in `list`.
//!
//! Sessions (exec and attach) go through the supervisor, by a socket in the run's folder, and get
//! a process below it (`session`). So what they start belongs to the run, and needs no marks or
//! limits of its own.
//!
//! A process is attributed to a run by three marks: while the supervisor lives, by descent (it is
//! the subreaper); after that, by the run's key in the environment, and by a limit on file locks,
//! which a process inherits even if it changes its environment, session, descriptors or user.
//! While a marked process survives SIGKILL, the run has not ended, and its resources are not free.
//!
//! Limits: after the supervisor was killed, a process that lowered its own limit on file locks
//! *and* cleared its environment is not found: not by accident, but a run that wants to hide can.
//! Nor is a process found that only cleared its environment, if the server itself was started under
//! such a limit.

#![deny(unsafe_op_in_unsafe_fn)]

mod access;
mod cgroup;
mod console;
mod container;
mod copies;
mod disk;
mod engine_impl;
mod environment;
mod events;
mod footprint;
mod force_kill;
mod gpu_watch;
mod image;
mod isolation;
mod launch;
mod log_retention;
mod logs;
mod measure;
mod memory;
mod open;
mod ownership;
mod paths;
mod ports;
mod process;
mod protocol;
mod record;
mod secrets;
mod session;
mod session_client;
mod session_server;
mod shared;
mod smi;
mod stop;
mod supervise;
mod sys;
mod tasks;
mod times;
mod tree;

pub use footprint::Footprint;
pub use image::{Image, ImageTable};
pub use isolation::{AccountPolicy, Separation, restore_private_ids};
pub use open::{LocalEngine, Options};
pub use session::session;
pub use smi::nvidia_smi;
pub use supervise::supervise;
