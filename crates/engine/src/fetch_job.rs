//! One attempt to fetch a copy, of a bucket or a repository alike. Owns: its folder, its limits, how its
//! progress is reported, and which failures are worth another attempt.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

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
    let (mut bytes, mut folders) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for found in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Of a link, not of what it leads to.
            let Ok(about) = found.metadata() else { continue };
            bytes += about.blocks() * BLOCK_BYTES;
            if bytes > most {
                return bytes;
            }
            if about.is_dir() {
                folders.push(found.path());
            }
        }
    }
    bytes
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
        match tokio::fs::remove_dir_all(self.to).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => tokio::fs::create_dir_all(self.to).await,
        }
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
