//! Copies for runs, made before they start. Owns: what there is to copy, how often it is tried, and what is
//! told meanwhile. Does not know how each is copied, whose the copy is, and where it is seen.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::fetch_job::{FetchError, FetchJob};
use crate::{Bucket, Container, MountSource, Repository, bucket, repository};

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
