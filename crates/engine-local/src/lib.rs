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
//! Whoever comes to a run (a command in it, or somebody who attaches) is let in by its supervisor,
//! through a socket in the run's folder, and gets a process of their own below it (`session`). So
//! what they start belongs to the run like everything else, and needs no marks or limits of its own.
//!
//! A process is known to be a run's by three marks: while the supervisor lives, by descent (it
//! is the subreaper of all); after that, by the run's key in the environment, and by a limit on
//! file locks, which a process inherits whatever it does to its environment, its session, its
//! descriptors or its user. While a marked process lives that cannot be killed, the run has not
//! ended, and what it holds is not free.
//!
//! Limits: found while the supervisor lives, but not
//! after that was killed, is a process that lowered its own limit on file locks *and* cleared its
//! environment: not by accident, but a run that wants to hide can. The same holds for one that
//! only cleared its environment where the server itself was started under such a limit.

#![deny(unsafe_op_in_unsafe_fn)]

mod bound;
mod cgroup;
mod console;
mod container;
mod copies;
mod door;
mod engine_impl;
mod environment;
mod footprint;
mod frame;
mod image;
mod insist;
mod isolation;
mod logs;
mod measure;
mod open;
mod ownership;
mod ports;
mod process;
mod record;
mod secrets;
mod session;
mod smi;
mod supervise;
mod sys;
mod times;
mod tree;
mod visit;
mod watch;

pub use footprint::Footprint;
pub use image::{Image, ImageTable};
pub use isolation::{AccountPolicy, Separation, restore_private_ids};
pub use open::{LocalEngine, Options};
pub use session::session;
pub use smi::nvidia_smi;
pub use supervise::supervise;
