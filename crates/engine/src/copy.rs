//! Copies for runs, made before they start. Owns: what there is to copy, how often it is tried, and what is
//! told meanwhile. Does not know how each is copied, whose the copy is, and where it is seen.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::{Bucket, Container, MountSource, Repository, bucket, repository};

/// Least time between two progress reports.
pub(crate) const TELL_EVERY: Duration = Duration::from_secs(10);
/// How often the size of a copy is measured.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// What the size of a file on the disk is counted in.
const BLOCK_BYTES: u64 = 512;
/// A server is given up when it has said nothing for so long.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// Before another attempt; after the last it is given up.
const RETRY_PAUSES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(10)];

/// What is copied.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// A Git repository.
    Repository(&'a Repository),
    /// An S3 bucket.
    Bucket(&'a Bucket),
}

/// What a run has copies of, and where.
pub fn copies(container: &Container) -> impl Iterator<Item = (&Path, Origin<'_>)> {
    container.mounts.iter().filter_map(|mount| {
        let origin = match &mount.from {
            MountSource::Git(repository) => Origin::Repository(repository),
            MountSource::S3(bucket) => Origin::Bucket(bucket),
            _ => return None,
        };
        Some((mount.to.as_path(), origin))
    })
}

impl Origin<'_> {
    /// The field of a workload that asks for it.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            Self::Repository(_) => "storage.git",
            Self::Bucket(_) => "storage.s3",
        }
    }

    /// What is easily taken for granted of it, and is not so.
    const fn note(&self) -> &'static str {
        match self {
            Self::Repository(_) => "",
            Self::Bucket(_) => "; what is written to the copy stays in the pod",
        }
    }
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repository(Repository { address, .. }) => write!(f, "repository `{address}`"),
            Self::Bucket(Bucket { name, address, .. }) => {
                write!(f, "bucket `{name}` of `{address}`")
            }
        }
    }
}

/// Why there is no copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotCopied {
    /// It was not wanted any more.
    Stopped,
    /// Why, and what to do, for people.
    Failed(String),
}

/// Copies a source into a folder, which is recreated, and reports progress. What another time
/// may go well is tried some times. Nothing goes on copying when this returns, nor soon after it was
/// dropped; what is in the folder then is half a copy, unless this returned well. It takes no more
/// than `bytes_max` on the disk, but for what comes between two looks at it.
///
/// # Errors
/// The other end of `stop` was used or dropped, or there is no copy.
pub async fn copy(
    (origin, bytes_max): (Origin<'_>, u64),
    to: &Path,
    stop: &mut oneshot::Receiver<()>,
    tell: impl Fn(String) + Sync,
) -> Result<(), NotCopied> {
    let bounds = Bounds { bytes_max, silence_max: SILENCE_MAX, pauses: &RETRY_PAUSES };
    patiently(origin, to, stop, &tell, bounds).await
}

/// How much there may be of a copy, and how long it is tried.
pub(crate) struct Bounds<'a> {
    pub(crate) bytes_max: u64,
    /// How long a server may say nothing.
    pub(crate) silence_max: Duration,
    /// Between attempts.
    pub(crate) pauses: &'a [Duration],
}

/// The same, within these bounds.
pub(crate) async fn patiently(
    origin: Origin<'_>,
    to: &Path,
    stop: &mut oneshot::Receiver<()>,
    tell: &(impl Fn(String) + Sync),
    Bounds { bytes_max, silence_max, pauses }: Bounds<'_>,
) -> Result<(), NotCopied> {
    let mut pauses = pauses.iter();
    let mut errand =
        Errand { origin, to, stop, tell, bytes_max, silence_max, told: Instant::now() };
    loop {
        tell(format!("copying {origin}{}", origin.note()));
        let done = match origin {
            Origin::Repository(one) => repository::attempt(one, &mut errand).await,
            Origin::Bucket(one) => bucket::attempt(one, &mut errand).await,
        };
        let (why, pause) = match done {
            Ok(()) => return Ok(()),
            Err(Fault::Stopped) => return Err(NotCopied::Stopped),
            Err(Fault::Final(why)) => (why, None),
            Err(Fault::Passing(why)) => (why, pauses.next()),
        };
        let why = format!("{origin} cannot be copied: {why}");
        let Some(pause) = pause else { return Err(NotCopied::Failed(why)) };
        tell(format!("{why}; trying again in {} s", pause.as_secs()));
        tokio::select! {
            () = tokio::time::sleep(*pause) => {}
            _ = &mut *errand.stop => return Err(NotCopied::Stopped),
        }
    }
}

/// Why an attempt did not succeed.
#[derive(Debug)]
pub(crate) enum Fault {
    Stopped,
    /// Trying again would change nothing.
    Final(String),
    Passing(String),
}

impl Fault {
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
pub(crate) fn too_large(bytes_max: u64) -> Fault {
    let most = units::format_bytes(bytes_max);
    Fault::Final(format!(
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
    let mut pause = LOOK_EVERY;
    loop {
        tokio::time::sleep(pause).await;
        let (own, begun) = (folder.to_owned(), Instant::now());
        let bytes = tokio::task::spawn_blocking(move || bytes_on_disk(&own, most)).await;
        if bytes.is_ok_and(|bytes| bytes > most) {
            return;
        }
        // A large folder takes a while to look at.
        pause = (begun.elapsed() * 10).clamp(LOOK_EVERY, LOOK_EVERY * 10);
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Passing(error.to_string())
    }
}

/// What an attempt has beside what it copies.
pub(crate) struct Errand<'a, T> {
    origin: Origin<'a>,
    pub(crate) to: &'a Path,
    pub(crate) stop: &'a mut oneshot::Receiver<()>,
    tell: &'a T,
    pub(crate) bytes_max: u64,
    pub(crate) silence_max: Duration,
    told: Instant,
}

impl<T: Fn(String) + Sync> Errand<'_, T> {
    /// Recreates the folder.
    pub(crate) async fn make_folder(&self) -> io::Result<()> {
        match tokio::fs::remove_dir_all(self.to).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => tokio::fs::create_dir_all(self.to).await,
        }
    }

    /// Tells how far it is, if that was not told just before.
    pub(crate) fn progress(&mut self, how_far: impl FnOnce() -> Option<String>) {
        if self.told.elapsed() < TELL_EVERY {
            return;
        }
        if let Some(how_far) = how_far() {
            self.told = Instant::now();
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
