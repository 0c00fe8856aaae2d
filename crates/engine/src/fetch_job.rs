//! One attempt to fetch a copy, of a bucket or a repository alike. Owns: its folder, its limits, how its
//! progress is reported, and which failures are worth another attempt.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::CWD;
use tokio::sync::oneshot;
use tokio::time::Instant;
use trees::{Entry, Next, Visitor};

/// Least time between two progress reports.
pub(crate) const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// How often the size of a copy is measured.
const MEASURE_INTERVAL: Duration = Duration::from_millis(500);
/// What the size of a file on the disk is counted in.
const BLOCK_BYTES: u64 = 512;
/// Why an attempt did not succeed.
#[derive(Debug)]
pub(crate) enum FetchError {
    Stopped,
    /// Trying again would change nothing.
    Final(String),
    Passing(String),
}

impl FetchError {
    /// The same of a part of what is copied.
    pub(crate) fn of(self, part: &str) -> Self {
        match self {
            Self::Stopped => Self::Stopped,
            Self::Final(why) => Self::Final(format!("{part}: {why}")),
            Self::Passing(why) => Self::Passing(format!("{part}: {why}")),
        }
    }
}

/// There is more than there may be.
pub(crate) fn too_large(bytes_max: u64) -> FetchError {
    let most = units::format_bytes(bytes_max);
    FetchError::Final(format!(
        "it takes more than {most} on the disk of the server, the most that a copy may; mount the \
         data instead (host path, NFS or a volume), or have an administrator start the server with a \
         larger --copies-max"
    ))
}

/// What a folder takes on the disk, as far as that is at most so much. What vanishes meanwhile does not
/// count. Blocks.
pub(crate) fn bytes_on_disk(folder: &Path, most: u64) -> u64 {
    let mut size = Size { bytes: 0, most };
    // What cannot be read, or is moved meanwhile, counts the next time.
    let _partly = trees::open(CWD, folder).and_then(|folder| trees::walk(folder, &mut size));
    size.bytes
}

/// The size of what a walk has come by.
struct Size {
    bytes: u64,
    most: u64,
}

impl Visitor for Size {
    fn visit(&mut self, entry: Entry<'_>) -> io::Result<Next> {
        // Of a link, not of what it leads to.
        let Ok(about) = entry.stat() else { return Ok(Next::Past) };
        self.bytes += u64::try_from(about.st_blocks).unwrap_or(0) * BLOCK_BYTES;
        Ok(if self.bytes > self.most { Next::End } else { Next::Into })
    }
}

/// Returns when a folder takes more than so much.
pub(crate) async fn outgrown(folder: &Path, most: u64) {
    let mut pause = MEASURE_INTERVAL;
    loop {
        tokio::time::sleep(pause).await;
        let (own, begun) = (folder.to_owned(), Instant::now());
        let bytes = tokio::task::spawn_blocking(move || bytes_on_disk(&own, most)).await;
        if bytes.is_ok_and(|bytes| bytes > most) {
            return;
        }
        // A large folder takes a while to look at.
        pause = (begun.elapsed() * 10).clamp(MEASURE_INTERVAL, MEASURE_INTERVAL * 10);
    }
}

impl From<io::Error> for FetchError {
    fn from(error: io::Error) -> Self {
        Self::Passing(error.to_string())
    }
}

/// What an attempt works with, beside what it copies.
pub(crate) struct FetchJob<'a, T> {
    /// What is copied, for people.
    origin: String,
    pub(crate) to: &'a Path,
    pub(crate) stop: &'a mut oneshot::Receiver<()>,
    tell: &'a T,
    pub(crate) bytes_max: u64,
    pub(crate) silence_max: Duration,
    reported: Instant,
}

impl<'a, T: Fn(String) + Sync> FetchJob<'a, T> {
    pub(crate) fn new(
        origin: String,
        to: &'a Path,
        stop: &'a mut oneshot::Receiver<()>,
        tell: &'a T,
        (bytes_max, silence_max): (u64, Duration),
    ) -> Self {
        let reported = Instant::now();
        Self { origin, to, stop, tell, bytes_max, silence_max, reported }
    }

    /// Recreates the folder.
    pub(crate) async fn make_folder(&self) -> io::Result<()> {
        let to = self.to.to_owned();
        let made = move || {
            // Takes less time than making it took, and nobody else writes there.
            trees::remove(&to, &|| true)?;
            fs::create_dir_all(&to)
        };
        tokio::task::spawn_blocking(made).await.map_err(io::Error::other)?
    }

    /// Tells how far it is, if that was not reported just before.
    pub(crate) fn progress(&mut self, how_far: impl FnOnce() -> Option<String>) {
        if self.reported.elapsed() < PROGRESS_INTERVAL {
            return;
        }
        if let Some(how_far) = how_far() {
            self.reported = Instant::now();
            (self.tell)(format!("copying {}: {how_far}", self.origin));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_that_grows_is_noticed_and_links_lead_nowhere() {
        let (folder, other) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        fs::write(other.path().join("large"), vec![7; 1 << 20]).expect("written");
        std::os::unix::fs::symlink(other.path(), folder.path().join("link")).expect("linked");
        let most = 256 << 10;
        assert!(bytes_on_disk(folder.path(), most) <= most);
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).expect("made");
        let growing = outgrown(folder.path(), most);
        fs::write(inner.join("large"), vec![7; 512 << 10]).expect("written");
        growing.await;
        assert!(bytes_on_disk(folder.path(), most) > most);
    }
}
