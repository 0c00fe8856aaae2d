//! The engine for containers on this machine, over the Docker Engine API (Podman speaks it as
//! well).
//!
//! Owns: which container a run is, its network, its image and its output. Does not know about
//! scheduling, the database, or permissions of users.
//!
//! The daemon is the truth: a run is the container of its name, and its labels name the owner. No
//! other state is kept, so a later server finds the same. A container that was created and never
//! started is no run: the next server removes it and starts the run again.
//!
//! Events of the daemon are hints, inspection is the truth. After an outage of the daemon, all
//! containers are inspected again. A restarted daemon ends the containers of its predecessor; such
//! a run is *lost*, whatever its exit code: the workload restarts without using up a retry.

mod base_image;
mod channel;
mod container;
mod container_options;
mod copies;
mod daemon;
mod disk;
mod events;
mod files;
mod gpu_fraction;
mod gpu_watch;
mod image;
mod inspect;
mod libpod;
mod logs;
mod measure;
mod names;
mod network;
mod open;
mod owner;
mod program;
mod run_registry;
mod session;
mod shared;
mod silence;
mod start;
#[cfg(feature = "testing")]
pub mod testing;
mod toolbox;
mod user;
mod verbs;

pub use daemon::{Daemon, PODMAN};
pub use image::PULL_PAUSE;
pub use open::{DockerEngine, Options};
pub use program::Program;

use std::io;

use bollard::errors::Error as Fault;
use engine::Error;

/// An error of the daemon, with the attempted action as a phrase after "failed to".
pub(crate) fn failed(what: impl Into<String>, fault: Fault) -> Error {
    let source = match fault {
        Fault::DockerResponseServerError { message, .. } => io::Error::other(message),
        fault if silence::is_silent(&fault) => silence::of(&fault),
        Fault::IOError { err } => err,
        other => io::Error::other(chain(&other)),
    };
    Error::Io { what: what.into(), source }
}

/// In Podman's answer about a container that does not run, which has the status of a fault of its
/// own.
const NOT_RUNNING: &str = "container state improper";
const CONFLICT: u16 = 409;

/// The HTTP status of an error, in Docker's sense; `None` without a valid answer.
pub(crate) fn status(fault: &Fault) -> Option<u16> {
    match fault {
        Fault::DockerResponseServerError { message, .. } if message.contains(NOT_RUNNING) => {
            Some(CONFLICT)
        }
        Fault::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Not found and not modified count as success.
pub(crate) fn unless(done: Result<(), Fault>, fine: &[u16]) -> Result<(), Fault> {
    match done {
        Err(fault) if status(&fault).is_some_and(|status| fine.contains(&status)) => Ok(()),
        done => done,
    }
}

/// An error with its causes: the client's own texts contain little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
