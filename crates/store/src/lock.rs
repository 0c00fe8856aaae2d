//! One server per state directory. Owns: the directory and the lock file in it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::Error;

/// Holds the state directory until it is dropped, or the process ends in whatever way.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Creates the directory if it is missing and takes its lock.
    ///
    /// # Errors
    /// Another process has it, or the directory cannot be used.
    pub fn take(dir: &Path) -> Result<Self, Error> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|cause| {
            Error::Access { what: "create state directory", path: dir.to_owned(), cause }
        })?;
        let path = dir.join("lock");
        let access = |what| {
            let path = path.clone();
            move |cause| Error::Access { what, path, cause }
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(access("open lock file"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut pid = String::new();
                // A pid that cannot be read is as good as one not yet written.
                let _ = file.read_to_string(&mut pid);
                let pid = pid.trim();
                let pid = if pid.is_empty() { "unknown" } else { pid };
                return Err(Error::Locked { dir: dir.to_owned(), pid: pid.to_owned() });
            }
            Err(errno) => return Err(access("lock")(errno.into())),
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        // On a full disk the lock still holds; only the other server's message is poorer.
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "process id not written to the lock file");
        }
        Ok(Self { file })
    }
}

/// Closing the file is not enough: a process that is being started has it open, too, until its
/// program is loaded.
impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = flock(&self.file, FlockOperation::Unlock) {
            tracing::warn!(%error, "the state directory could not be unlocked");
        }
    }
}
