//! The folders of the state directory. Owns: where each is, how it is created, and that a crash
//! leaves no folder half deleted.

use std::fs::{self, DirBuilder};
use std::io;
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

    /// Moves a folder to the trash; the next start deletes it.
    pub(crate) fn move_to_trash(&self, folder: &Path) -> io::Result<PathBuf> {
        let grave = self.trash().join(Uuid::new_v4().to_string());
        fs::rename(folder, &grave).map(|()| grave)
    }

    /// Moves a folder to the trash, then deletes it. After a crash in between, the next start
    /// deletes it. An absent folder is no error.
    pub(crate) fn discard(&self, folder: &Path) -> io::Result<()> {
        match self.move_to_trash(folder).and_then(fs::remove_dir_all) {
            // Absent, or another task is deleting it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    pub(crate) fn empty_trash(&self) {
        for grave in fs::read_dir(self.trash()).into_iter().flatten().flatten() {
            if let Err(error) = fs::remove_dir_all(grave.path())
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!("cannot delete {}: {error}", grave.path().display());
            }
        }
    }
}

/// Creates a folder that only its owner may read.
pub(crate) fn make_dir(path: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| Error::io(format!("create {}", path.display()), source))
}
