//! The side of the run. Owns: finding the newest file of a checkpoint, opening it, and one request.
//! The Python package has the same.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use crate::protocol::{Reply, Request, Saved};
use crate::socket;

/// How long an answer may take: to a report, and to a question between two steps, which must not
/// slow them down.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_OF_A_STEP: Duration = Duration::from_secs(1);
/// How deep a checkpoint that is a folder is looked through, and how many files of it.
const DEPTH_MAX: u32 = 4;
const ENTRIES_MAX: usize = 10_000;

/// Report of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report<'a> {
    /// The written file, or a folder with such files.
    pub path: Option<&'a Path>,
    /// The step of the training.
    pub step: Option<u64>,
    /// Seconds until the next checkpoint is complete.
    pub next_in_s: Option<f64>,
}

/// Reason why a report did not arrive.
#[derive(Debug)]
pub enum ClientError {
    /// The path cannot be opened for writing, or is an empty folder.
    File(PathBuf, io::Error),
    /// The server does not answer.
    Channel(io::Error),
    /// The server rejected the report, with the reason.
    Refused(String),
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Channel(error) => write!(f, "the server does not answer: {error}"),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ClientError {}

/// Reports on the channel at this path, and waits for the answer.
///
/// # Errors
/// See [`ClientError`]. The run can go on: a report only changes what stopping it costs.
pub fn report(channel: &Path, what: Report<'_>) -> Result<(), ClientError> {
    let file = what.path.map(open).transpose()?;
    let checkpoint = file.as_ref().map(|_| Saved { step: what.step });
    let request = Request { checkpoint, next_in_s: what.next_in_s, ..Request::default() };
    ask(channel, &request, file.as_ref(), PATIENCE).map(drop)
}

/// Longest time that the server waits for a checkpoint of the run, which is to be stopped, moved or
/// resized; `None` if it waits for none.
///
/// # Errors
/// See [`ClientError`].
pub fn wanted(channel: &Path) -> Result<Option<Duration>, ClientError> {
    let request = Request { asks: true, ..Request::default() };
    let reply = ask(channel, &request, None, PATIENCE_OF_A_STEP)?;
    let span = reply.save_within_s.map(Duration::try_from_secs_f64).transpose();
    span.map_err(|error| ClientError::Channel(io::Error::other(error)))
}

fn ask(
    channel: &Path,
    request: &Request,
    file: Option<&File>,
    patience: Duration,
) -> Result<Reply, ClientError> {
    let reply = exchange(channel, request, file, patience).map_err(ClientError::Channel)?;
    if reply.ok {
        return Ok(reply);
    }
    Err(ClientError::Refused(reply.why.unwrap_or_else(|| "refused".to_owned())))
}

fn exchange(
    channel: &Path,
    request: &Request,
    file: Option<&File>,
    patience: Duration,
) -> io::Result<Reply> {
    let folder = File::open(channel.parent().unwrap_or(Path::new("/")))?;
    let name = channel.file_name().unwrap_or_default().to_string_lossy();
    let stream = UnixStream::connect(socket::short(&folder, &name))?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    let sent = socket::send(&stream, &line, file.map(File::as_fd))?;
    if sent < line.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    let mut answer = Vec::new();
    (&stream).take(crate::protocol::REQUEST_BYTES_MAX as u64).read_to_end(&mut answer)?;
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&answer)?)
}

/// Opens a file, or the newest that has content of those below a folder, for writing, which proves
/// that this process may.
fn open(path: &Path) -> Result<File, ClientError> {
    let failed = |error| ClientError::File(path.to_owned(), error);
    let newest = if fs::metadata(path).map_err(failed)?.is_dir() {
        let newest = newest_below(path).map_err(failed)?;
        newest.ok_or_else(|| failed(io::Error::other("no file with content is in it")))?
    } else {
        path.to_owned()
    };
    // A pipe would be waited for.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(newest).map_err(failed)
}

/// The newest file with content, within [`ENTRIES_MAX`] entries and [`DEPTH_MAX`] levels.
fn newest_below(folder: &Path) -> io::Result<Option<PathBuf>> {
    let (mut newest, mut left) = (None::<(SystemTime, PathBuf)>, ENTRIES_MAX);
    let mut ahead = vec![(folder.to_owned(), DEPTH_MAX)];
    while let Some((folder, depth)) = ahead.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let found = entry.metadata()?;
            left = left.saturating_sub(1);
            if left == 0 {
                return Ok(newest.map(|(_, path)| path));
            }
            if found.is_dir() && depth > 0 {
                ahead.push((entry.path(), depth - 1));
            } else if found.is_file() && found.len() > 0 {
                let written = found.modified()?;
                if newest.as_ref().is_none_or(|(before, _)| *before < written) {
                    newest = Some((written, entry.path()));
                }
            }
        }
    }
    Ok(newest.map(|(_, path)| path))
}
