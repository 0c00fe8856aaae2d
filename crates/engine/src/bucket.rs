//! Copies of S3 buckets. Owns: listing and fetching objects, where each lies in the copy, and what
//! the server's refusals mean. Does not know for which run the copy is, and where it is mounted.
//!
//! Requests are signed one by one, so the secret of a login never leaves this process, whatever the
//! server answers. No name of an object leads out of the copy.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use buckets::REGION_DEFAULT;
use futures_util::{StreamExt as _, stream};
use reqwest::{Response, StatusCode, Url};
use rusty_s3::actions::{GetObject, ListObjectsV2, ListObjectsV2Response, S3Action};
use rusty_s3::{Credentials, UrlStyle};
use tokio::io::AsyncWriteExt as _;

use crate::Bucket;
use crate::fetch_job::{FetchError, FetchJob, PROGRESS_INTERVAL, too_large};

mod error_response;

/// How long the signature of a request is valid.
const SIGNED_FOR: Duration = Duration::from_secs(3600);
/// Objects fetched at a time.
const AT_ONCE: usize = 8;
/// Minimum size of an object on the disk, in bytes.
const OBJECT_BYTES_MIN: u64 = 4096;
/// Longest page of a list that is read: a thousand names of 1 KiB, in the longest spelling, with
/// the attributes of each.
const PAGE_BYTES_MAX: usize = 16 << 20;
/// Longest refusal that is read.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// Copies all of a bucket.
pub(crate) async fn attempt<T: Fn(String) + Sync>(
    bucket: &Bucket,
    job: &mut FetchJob<'_, T>,
) -> Result<(), FetchError> {
    job.make_folder().await?;
    let (to, silence_max) = (job.to, job.silence_max);
    let done = Done { bytes_max: job.bytes_max, ..Done::default() };
    let mut copying = pin!(async { Store::new(bucket, silence_max)?.copy(to, &done).await });
    let mut beat = tokio::time::interval(PROGRESS_INTERVAL);
    loop {
        tokio::select! {
            ended = &mut copying => return ended,
            _ = &mut *job.stop => return Err(FetchError::Stopped),
            _ = beat.tick() => job.progress(|| Some(done.summary())),
        }
    }
}

/// Progress of a copy.
#[derive(Default)]
struct Done {
    objects: AtomicU64,
    bytes: AtomicU64,
    /// Bytes on the disk, at least a block for each object and folder.
    taken: AtomicU64,
    bytes_max: u64,
}

impl Done {
    /// Counts what is about to be written.
    fn take(&self, bytes: u64) -> Result<(), FetchError> {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= self.bytes_max;
        if fits { Ok(()) } else { Err(too_large(self.bytes_max)) }
    }

    fn summary(&self) -> String {
        let objects = self.objects.load(Ordering::Relaxed);
        format!("{objects} objects, {}", units::format_bytes(self.bytes.load(Ordering::Relaxed)))
    }
}

/// A bucket and the way to it.
struct Store<'a> {
    of: &'a Bucket,
    http: reqwest::Client,
    bucket: rusty_s3::Bucket,
    login: Option<Credentials>,
    silence_max: Duration,
}

impl<'a> Store<'a> {
    fn new(of: &'a Bucket, silence_max: Duration) -> Result<Self, FetchError> {
        let login = of.login.as_ref().map(|own| Credentials::new(&own.user, &own.password));
        let http = buckets::client(silence_max).map_err(FetchError::Final)?;
        Ok(Self { of, http, bucket: bucket(of, None)?, login, silence_max })
    }

    async fn copy(&mut self, to: &Path, done: &Done) -> Result<(), FetchError> {
        let mut page = self.first().await?;
        loop {
            let objects = page.contents.into_iter().map(|one| self.object(one.key, to, done));
            let mut copying = stream::iter(objects).buffer_unordered(AT_ONCE);
            while let Some(copied) = copying.next().await {
                copied?;
            }
            let Some(after) = page.next_continuation_token else { return Ok(()) };
            page = self.read(self.ask(self.page(Some(after))).await?).await?;
        }
    }

    /// The first page of the list of objects. A server says so if the bucket is in another region
    /// than the requests are signed for.
    async fn first(&mut self) -> Result<ListObjectsV2Response, FetchError> {
        let answer = self.ask(self.page(None)).await?;
        if answer.status() != StatusCode::BAD_REQUEST {
            return self.read(answer).await;
        }
        let (status, text) = (answer.status(), self.text(answer, REFUSAL_BYTES_MAX).await?);
        let Some(region) = error_response::part(&text, "Region") else {
            return Err(error_response::fault(status, None, &text, self.login.is_some()));
        };
        self.bucket = bucket(self.of, Some(region))?;
        self.read(self.ask(self.page(None)).await?).await
    }

    /// Signed address of a page of the list.
    fn page(&self, after: Option<String>) -> Url {
        let mut list = ListObjectsV2::new(&self.bucket, self.login.as_ref());
        if let Some(after) = after {
            list.with_continuation_token(after);
        }
        list.sign(SIGNED_FOR)
    }

    async fn read(&self, answer: Response) -> Result<ListObjectsV2Response, FetchError> {
        let answer = self.granted(answer).await?;
        let text = self.text(answer, PAGE_BYTES_MAX).await?;
        ListObjectsV2::parse_response(&text).map_err(|_| {
            let why = "what answers is not a list of objects; check that its address is that of an S3 \
                       server";
            FetchError::Final(why.to_owned())
        })
    }

    async fn object(&self, key: String, to: &Path, done: &Done) -> Result<(), FetchError> {
        let of_key = |error: io::Error| unwritten(&key, &error);
        let of_object =
            |fault: FetchError| fault.of(&format!("its object `{}`", units::shown(&key)));
        let Some(place) = place(&key).map(|inner| to.join(inner)) else {
            let why = "not a path inside a folder; give it another name, or copy in the command what \
                       is needed";
            let key = units::shown(&key);
            return Err(FetchError::Final(format!("the name of its object `{key}` is {why}")));
        };
        done.take(OBJECT_BYTES_MIN)?;
        if key.ends_with('/') {
            return tokio::fs::create_dir_all(place).await.map_err(of_key);
        }
        tokio::fs::create_dir_all(place.parent().unwrap_or(to)).await.map_err(of_key)?;
        let get = GetObject::new(&self.bucket, self.login.as_ref(), &key);
        let answer = self.ask(get.sign(SIGNED_FOR)).await.map_err(of_object)?;
        let mut answer = self.granted(answer).await.map_err(of_object)?;
        let broken = |error| of_object(self.broken(error));
        let mut file = tokio::fs::File::create_new(place).await.map_err(of_key)?;
        let mut left_of_block = OBJECT_BYTES_MIN;
        while let Some(piece) = answer.chunk().await.map_err(broken)? {
            let bytes = piece.len() as u64;
            done.take(bytes.saturating_sub(left_of_block))?;
            left_of_block = left_of_block.saturating_sub(bytes);
            file.write_all(&piece).await.map_err(of_key)?;
            done.bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        file.flush().await.map_err(of_key)?;
        done.objects.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn ask(&self, url: Url) -> Result<Response, FetchError> {
        self.http.get(url).send().await.map_err(|error| self.broken(error))
    }

    /// The answer, or the error that a refusal amounts to.
    async fn granted(&self, answer: Response) -> Result<Response, FetchError> {
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let region = answer.headers().get("x-amz-bucket-region");
        let region = region.and_then(|name| name.to_str().ok()).map(str::to_owned);
        let text = self.text(answer, REFUSAL_BYTES_MAX).await?;
        Err(error_response::fault(status, region, &text, self.login.is_some()))
    }

    /// The beginning of an answer.
    async fn text(&self, mut answer: Response, bytes_max: usize) -> Result<String, FetchError> {
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|error| self.broken(error))? {
            bytes.extend(piece);
            if bytes.len() > bytes_max {
                break;
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A connection that failed.
    fn broken(&self, error: reqwest::Error) -> FetchError {
        if error.is_timeout() && !error.is_connect() {
            return FetchError::Passing(format!(
                "nothing came for {} s",
                self.silence_max.as_secs()
            ));
        }
        let why = buckets::causes(error);
        FetchError::Passing(format!("{why}; check its address, and that its server runs"))
    }
}

/// A bucket in a region, else in that of its server.
fn bucket(of: &Bucket, in_region: Option<&str>) -> Result<rusty_s3::Bucket, FetchError> {
    let wrong = |why: String| FetchError::Final(format!("its address cannot be used: {why}"));
    let address: Url = of.address.parse().map_err(|error| wrong(format!("{error}")))?;
    let region = in_region.unwrap_or_else(|| region(address.host_str().unwrap_or_default()));
    let (name, region) = (of.name.clone(), region.to_owned());
    let bucket = rusty_s3::Bucket::new(address, UrlStyle::Path, name, region);
    bucket.map_err(|error| wrong(error.to_string()))
}

/// The region of a server by its name, which has it where it counts: `s3.eu-west-1.amazonaws.com`.
fn region(host: &str) -> &str {
    let mut labels = host.split('.').filter(|label| *label != "dualstack");
    match (labels.next(), labels.next(), labels.clone().count()) {
        (Some("s3"), Some(region), 2..) => region,
        _ => REGION_DEFAULT,
    }
}

/// Path of an object within a copy; `None` if its name leads out of it.
fn place(key: &str) -> Option<PathBuf> {
    let parts = key.strip_suffix('/').unwrap_or(key).split('/');
    let inner = |part: &&str| !matches!(*part, "" | "." | "..") && !part.contains('\0');
    parts.map(|part| Some(part).filter(inner)).collect()
}

/// An object that could not be written.
fn unwritten(key: &str, error: &io::Error) -> FetchError {
    use io::ErrorKind::{AlreadyExists, InvalidFilename, IsADirectory, NotADirectory};
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    let key = units::shown(key);
    match error.kind() {
        AlreadyExists | IsADirectory | NotADirectory => FetchError::Final(format!(
            "its object `{key}` would be a file and a folder, or is there twice; give it another name"
        )),
        InvalidFilename => FetchError::Final(format!("the name of its object `{key}` is too long")),
        // Another attempt would fill the disk again, which the server needs for itself.
        StorageFull | QuotaExceeded => FetchError::Final(
            "the machine of the server is full; make room, or copy in the command what is needed"
                .to_owned(),
        ),
        _ => FetchError::Passing(format!("object `{key}` cannot be written: {error}")),
    }
}

#[cfg(test)]
mod tests;
