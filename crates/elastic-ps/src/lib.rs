//! The parameter server of an elastic training: a part of a model, variables and rows of embedding
//! tables, which workers pull and push gradients to.
//!
//! ```text
//!   master --orders--> every server       (orders)
//!   workers --parts--> servers 1..N-1     (service: kept until the leader decides)
//!           --last---> server 0, the leader: judges, numbers versions, tells the others (leader)
//!   leader --Begin, End checkpoint--> master: model and ledger are one cut
//! ```
//!
//! Owns: the model, its updates, its checkpoints. Does not know about: tasks and records but as
//! numbers that a checkpoint carries to the master, or what a model is for.

mod checkpoint;
mod core;
mod files;
mod leader;
mod model;
mod model_error;
mod optimizer;
mod orders;
mod place;
mod run;
mod server;
mod service;
mod table;

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use checkpoint::CheckpointError;
pub use run::{Server, run, run_until};

/// What a parameter server is started with. What a job decides comes from its master.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Its number, from 0. Server 0 leads.
    pub index: u32,
    /// How many there are.
    pub servers: u32,
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where workers reach it, as host or host:port; nothing: where it listens.
    pub advertise: Option<String>,
    /// The master, as host:port.
    pub master: String,
    /// The file with the token of the job.
    pub token_file: PathBuf,
    /// Where checkpoints are written and restored from: a folder of its own, or one for all servers
    /// of a job. Both folders may be in a bucket (`s3://BUCKET/KEY`).
    pub checkpoint_dir: Option<PathBuf>,
    /// A training begins with the newest checkpoint in this folder. It may be of another job and of
    /// another number of servers.
    pub init_dir: Option<PathBuf>,
    /// The largest message, in bytes.
    pub message_bytes_max: usize,
}

/// What became of the gradients that were pushed to a server since it started; only the leader judges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pushes {
    /// They are in the model, or wait to be.
    pub accepted: u64,
    /// They were too old, and were computed again.
    pub rejected: u64,
}

/// Why a parameter server ends early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its number is none.
    #[error("index {index}: {servers} parameter servers have the numbers 0 to {servers} - 1")]
    Index {
        /// As given.
        index: u32,
        /// As given.
        servers: u32,
    },
    /// It has no token.
    #[error(transparent)]
    Credentials(#[from] elastic_proto::CredentialsError),
    /// It cannot listen.
    #[error("cannot listen on {address}: {source}; give another address or port 0")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The address of the master is none.
    #[error("master {master:?} is not an address: give host:port")]
    Master {
        /// As given.
        master: String,
    },
    /// A bucket of checkpoints that cannot be reached for want of a login.
    #[error(transparent)]
    Checkpoints(#[from] CheckpointError),
    /// The master refuses it.
    #[error("the master refuses this server: {0}")]
    Refused(String),
    /// It has to stop and could not save the model.
    #[error("the last checkpoint was not written: {0}")]
    Unsaved(String),
    /// The connection of the server broke.
    #[error("serving failed: {0}")]
    Serve(#[from] tonic::transport::Error),
}
