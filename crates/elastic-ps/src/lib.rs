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

/// Settings of a parameter server. The settings of the job come from its master.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Its number, from 0. Server 0 leads.
    pub index: u32,
    /// Number of servers.
    pub servers: u32,
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Address for workers, as host or host:port; `None`: the address it listens on.
    pub advertise: Option<String>,
    /// The master, as host:port.
    pub master: String,
    /// The file with the token of the job.
    pub token_file: PathBuf,
    /// Where checkpoints are written and restored from: a folder of its own, or one for all servers
    /// of a job. Both folders may be in a bucket (`s3://BUCKET/KEY`).
    pub checkpoint_dir: Option<PathBuf>,
    /// Folder whose newest checkpoint a training starts from. It may be of another job and of
    /// another number of servers.
    pub init_dir: Option<PathBuf>,
    /// The largest message, in bytes.
    pub message_bytes_max: usize,
}

/// Counts of the gradients that were pushed to a server since it started; only the leader counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pushes {
    /// Gradients that are in the model, or wait for an update.
    pub accepted: u64,
    /// Gradients that were too old, and were computed again.
    pub rejected: u64,
}

/// Error that ends a parameter server early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The index is not below the number of servers.
    #[error("index {index}: {servers} parameter servers have the numbers 0 to {servers} - 1")]
    Index {
        /// Index, as given.
        index: u32,
        /// Number of servers, as given.
        servers: u32,
    },
    /// The server has no token.
    #[error(transparent)]
    Credentials(#[from] elastic_proto::CredentialsError),
    /// The server cannot listen.
    #[error("cannot listen on {address}: {source}; give another address or port 0")]
    Listen {
        /// Address to listen on.
        address: SocketAddr,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The address of the master is invalid.
    #[error("master {master:?} is not an address: give host:port")]
    Master {
        /// Address, as given.
        master: String,
    },
    /// There is no login for a bucket of checkpoints.
    #[error(transparent)]
    Checkpoints(#[from] CheckpointError),
    /// The master refuses the server.
    #[error("the master refuses this server: {0}")]
    Refused(String),
    /// The server has to stop and could not save the model.
    #[error("the last checkpoint was not written: {0}")]
    Unsaved(String),
    /// The connection of the server broke.
    #[error("serving failed: {0}")]
    Serve(#[from] tonic::transport::Error),
}
