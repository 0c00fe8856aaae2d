//! One server per state directory. Owns: the directory and the lock file in it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::Error;

/// Longest wait for the lock of a server that has ended: a process that it was starting when it was
/// killed has the file open, too, until its program is loaded.
const RELEASE_MAX: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(10);

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
        let deadline = Instant::now() + RELEASE_MAX;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(errno) => return Err(access("lock")(errno.into())),
            }
            let pid = holder(&mut file);
            if is_living(&pid) || Instant::now() > deadline {
                return Err(Error::Locked { dir: dir.to_owned(), pid });
            }
            std::thread::sleep(RETRY);
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

/// Process id of the owner, as it wrote it into the lock file; `unknown` if it did not.
fn holder(file: &mut File) -> String {
    let mut pid = String::new();
    // A pid that cannot be read is as good as one not yet written.
    let _ = file.rewind().and_then(|()| file.read_to_string(&mut pid));
    let pid = pid.trim();
    (if pid.is_empty() { "unknown" } else { pid }).to_owned()
}

/// False if the owner is known to have ended.
fn is_living(pid: &str) -> bool {
    pid.parse::<u32>().is_err() || Path::new("/proc").join(pid).exists()
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn held_by(dir: &Path, pid: u32) -> Lock {
        let lock = Lock::take(dir).expect("a new directory");
        std::fs::write(dir.join("lock"), pid.to_string()).expect("an owner");
        lock
    }

    #[test]
    fn the_lock_of_a_killed_server_is_awaited() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut ended = Command::new("true").spawn().expect("a process");
        ended.wait().expect("it ends");
        let lock = held_by(dir.path(), ended.id());
        let release = std::thread::spawn(move || {
            // By then the other thread has tried to take the lock at least once.
            std::thread::sleep(10 * RETRY);
            drop(lock);
        });
        Lock::take(dir.path()).expect("the lock");
        release.join().expect("a release");
    }

    #[test]
    fn the_lock_of_a_living_server_is_refused_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let _lock = held_by(dir.path(), std::process::id());
        let refusal = Lock::take(dir.path()).expect_err("a refusal");
        assert!(
            matches!(refusal, Error::Locked { pid, .. } if pid == std::process::id().to_string())
        );
    }
}
