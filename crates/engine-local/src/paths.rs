//! The folders of the state directory. Owns: where each is, and how it is created.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use engine::Error;
use uuid::Uuid;

/// The paths in the state directory.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) root: PathBuf,
}

impl Paths {
    pub(crate) fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }
    pub(crate) fn pods(&self) -> PathBuf {
        self.root.join("pods")
    }
    pub(crate) fn pod(&self, pod: Uuid) -> PathBuf {
        self.pods().join(pod.to_string())
    }
    pub(crate) fn work(&self, pod: Uuid) -> PathBuf {
        self.pod(pod).join("work")
    }
    pub(crate) fn home(&self, pod: Uuid) -> PathBuf {
        self.pod(pod).join("home")
    }
    pub(crate) fn checkpoint(&self, pod: Uuid) -> PathBuf {
        self.pod(pod).join("checkpoint")
    }
    pub(crate) fn shims(&self) -> PathBuf {
        self.root.join("shims")
    }
    pub(crate) fn tools(&self) -> PathBuf {
        self.root.join("tools")
    }
    pub(crate) fn fraction(&self) -> PathBuf {
        self.root.join("fraction")
    }
    pub(crate) fn trash(&self) -> PathBuf {
        self.root.join("trash")
    }
}

/// Creates a folder that only its owner may read.
pub(crate) fn make_dir(path: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| Error::io(format!("create {}", path.display()), source))
}
