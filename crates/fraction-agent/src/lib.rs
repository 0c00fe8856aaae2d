//! The part of the server that keeps runs within their fractions of GPUs, from outside of them.
//!
//! Owns: the libraries as files; the two pages of each run (made, changed, read as bytes that may
//! say anything); how a run gets both (variables and mounts); the simulated driver's processes,
//! which outlive the server; and trying all of it before it is relied on. Does not know about:
//! runs, engines, and who decides a limit.
//!
//! Everything that a limit needs is in files of the run. So limits hold while the server is away,
//! and the next server finds them.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

/// Where the pages of a run are mounted. On the machine itself it is an empty folder.
pub use fraction_abi::{CLAIM_FILE, DIRECTORY as POINT};

mod check;
mod delivery;
mod driver;
mod libraries;
mod pages;
mod reach;
mod self_test;

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub use check::{Allocation, CheckError, Report, gpu_check, leave, look, try_sizes};
pub use delivery::{Delivery, Target, Way};
pub use driver::{
    Connection, Simulated, State, drive, hold_over_exec, parse_uuid, uuid_of, uuid_text,
};
pub use libraries::{Libraries, RealDriver, open_folder, open_point};
pub use pages::{Grant, Pages, Writer};
pub use reach::{Unreached, unreached};
pub use self_test::{Place, answer, reports, self_test};

/// Why a run cannot be limited.
#[derive(Debug, Error)]
pub enum Error {
    /// A file or a process could not be made, read or changed.
    #[error("failed to {what}")]
    Io {
        /// Attempted action, as a phrase after "failed to".
        what: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The path does not fit where it has to be written.
    #[error("the path {0} is too long or holds a colon; choose another state directory")]
    Path(PathBuf),
    /// A page of a run is cut short or of another version.
    #[error("{0} is no control page of this version; stop the workload and start it again")]
    Page(PathBuf),
    /// The process of the simulated driver does not answer.
    #[error("the simulated driver at {path} does not answer: {why}")]
    Driver {
        /// Its socket.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

fn failed(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let what = format!("{what} {}", path.display());
    move |source| Error::Io { what, source }
}
