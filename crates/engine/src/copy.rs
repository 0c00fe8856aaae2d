//! Copies for runs, made before they start. Owns: which copies a run has, how often they are tried,
//! and the progress messages. Does not know how each is copied, for which run it is, and where it
//! is mounted.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::fetch_job::{FetchError, FetchJob};
use crate::{Bucket, Container, MountSource, Repository, bucket, repository};

/// Silence after which the copy from a server fails.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// Pauses before further attempts; after the last attempt the copy fails.
const RETRY_PAUSES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(10)];

/// Source of a copy.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// A Git repository.
    Repository(&'a Repository),
    /// An S3 bucket.
    Bucket(&'a Bucket),
}

/// Copies that a container mounts: mount point and source.
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

    /// Warning about a property that users may not expect; empty if there is none.
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

/// Reason why there is no copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotCopied {
    /// The caller stopped it.
    Stopped,
    /// Reason and advice, for the user.
    Failed(String),
}

/// Copies a source into a folder, which is recreated, and reports progress. Failures that may pass
/// are tried again a few times. Copying ends when this returns, or soon after it is dropped; the
/// folder then holds an incomplete copy, unless this returned `Ok`. The copy takes at most
/// `bytes_max` on the disk, apart from growth between two measurements.
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

/// [`copy`] with the given bounds.
pub(crate) async fn patiently(
    origin: Origin<'_>,
    to: &Path,
    stop: &mut oneshot::Receiver<()>,
    tell: &(impl Fn(String) + Sync),
    Bounds { bytes_max, silence_max, pauses }: Bounds<'_>,
) -> Result<(), NotCopied> {
    let mut pauses = pauses.iter();
    let mut job = FetchJob::new(origin.to_string(), to, stop, tell, (bytes_max, silence_max));
    loop {
        tell(format!("copying {origin}{}", origin.note()));
        let done = match origin {
            Origin::Repository(one) => repository::attempt(one, &mut job).await,
            Origin::Bucket(one) => bucket::attempt(one, &mut job).await,
        };
        let (why, pause) = match done {
            Ok(()) => return Ok(()),
            Err(FetchError::Stopped) => return Err(NotCopied::Stopped),
            Err(FetchError::Final(why)) => (why, None),
            Err(FetchError::Passing(why)) => (why, pauses.next()),
        };
        let why = format!("{origin} cannot be copied: {why}");
        let Some(pause) = pause else { return Err(NotCopied::Failed(why)) };
        tell(format!("{why}; trying again in {} s", pause.as_secs()));
        tokio::select! {
            () = tokio::time::sleep(*pause) => {}
            _ = &mut *job.stop => return Err(NotCopied::Stopped),
        }
    }
}
