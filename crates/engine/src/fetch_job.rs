//! One attempt to fetch a copy of a bucket or a repository. Owns: its folder, its limits, how its
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
/// Unit of `st_blocks`, the size of a file on the disk.
const BLOCK_BYTES: u64 = 512;
/// Reason why an attempt did not succeed.
#[derive(Debug)]
pub(crate) enum FetchError {
    Stopped,
    /// Another attempt would fail too.
    Final(String),
    Passing(String),
}

impl FetchError {
    /// This error, of a part of the copy.
    pub(crate) fn of(self, part: &str) -> Self {
        match self {
            Self::Stopped => Self::Stopped,
            Self::Final(why) => Self::Final(format!("{part}: {why}")),
            Self::Passing(why) => Self::Passing(format!("{part}: {why}")),
        }
    }
}

/// The copy exceeds its limit.
pub(crate) fn too_large(bytes_max: u64) -> FetchError {
    let most = units::format_bytes(bytes_max);
    FetchError::Final(format!(
        "it takes more than {most} on the disk of the server, the most that a copy may; mount the \
         data instead (host path, NFS or a volume), or have an administrator start the server with a \
         larger --copies-max"
    ))
}

/// Size of a folder on the disk in bytes, counted up to `most`, without files that vanish
/// meanwhile. Blocks.
pub(crate) fn bytes_on_disk(folder: &Path, most: u64) -> u64 {
    let mut size = Size { bytes: 0, most };
    // Files that cannot be read, or are moved meanwhile, count at the next measurement.
    let _partly = trees::open(CWD, folder).and_then(|folder| trees::walk(folder, &mut size));
    size.bytes
}

/// Size of the files that a walk has visited.
struct Size {
    bytes: u64,
    most: u64,
}

impl Visitor for Size {
    fn visit(&mut self, entry: Entry<'_>) -> io::Result<Next> {
        // The size of a link itself, not of its target.
        let Ok(about) = entry.stat() else { return Ok(Next::Past) };
        self.bytes += u64::try_from(about.st_blocks).unwrap_or(0) * BLOCK_BYTES;
        Ok(if self.bytes > self.most { Next::End } else { Next::Into })
    }
}

/// Returns when a folder exceeds `most` bytes.
pub(crate) async fn outgrown(folder: &Path, most: u64) {
    let mut pause = MEASURE_INTERVAL;
    loop {
        tokio::time::sleep(pause).await;
        let (own, begun) = (folder.to_owned(), Instant::now());
        let bytes = tokio::task::spawn_blocking(move || bytes_on_disk(&own, most)).await;
        if bytes.is_ok_and(|bytes| bytes > most) {
            return;
        }
        // Measuring a large folder takes a while.
        pause = (begun.elapsed() * 10).clamp(MEASURE_INTERVAL, MEASURE_INTERVAL * 10);
    }
}

impl From<io::Error> for FetchError {
    fn from(error: io::Error) -> Self {
        Self::Passing(error.to_string())
    }
}

/// Context of an attempt: target folder, limits, stop signal and progress reports.
pub(crate) struct FetchJob<'a, T> {
    /// Name of the source, for messages.
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
            // Removal takes less time than the copy took, and no other process writes there.
            trees::remove(&to, &|| true)?;
            fs::create_dir_all(&to)
        };
        tokio::task::spawn_blocking(made).await.map_err(io::Error::other)?
    }

    /// Reports the progress, if [`PROGRESS_INTERVAL`] has passed since the last report.
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
