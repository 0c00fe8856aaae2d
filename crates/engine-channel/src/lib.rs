//! The channel of a run: a socket on which its processes report their checkpoints.
//!
//! ```text
//! process of the run -> opens its checkpoint for writing, passes the file -> socket of the run
//! socket -> verified (file) -> paced (progress) -> Observation -> what a stop would cost
//! runs of one workload -> their sockets -> meeting -> the world that torchrun begins
//! ```
//!
//! Owns: the sockets, the protocol on both of its sides, the definition of a checkpoint, and
//! waiting for one that is due; the meeting point of the pods of a workload; writing what a run
//! leaves in memory. Does not know about: which runs exist, and the contents of a checkpoint.

mod client;
mod environment;
mod file;
mod meeting;
mod memory;
mod progress;
mod protocol;
mod server;
mod socket;

pub use client::{ClientError, Report, report, wanted};
pub use environment::{CHANNEL_VARIABLE, MEMORY_VARIABLE};
pub use memory::{finish, has_copies};
pub use protocol::NEXT_IN_S_MAX;
pub use server::{Channels, IsOwn, Owner, Storage};
pub use socket::Opens;

/// The name of the socket in its folder.
pub const SOCKET: &str = "socket";
