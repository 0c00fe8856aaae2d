//! Reading a run's output while it is being written. Owns: finding the last lines and those since
//! a time, and detecting the end. Older output may be deleted (`log_retention`).

use std::io::{self, SeekFrom};
use std::sync::Arc;
use std::time::Duration;

use engine::{Error, LogRange, RunKey, Timestamps};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::mpsc;

use crate::log_retention::first_kept;
use crate::record::{RunDir, StateFile};
use crate::shared::LocalEngineState;
use crate::times::Times;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks that a slow reader may be behind.
const CHUNKS_AHEAD: usize = 4;
/// How often a followed log is checked for more.
const FOLLOW_PAUSE: Duration = Duration::from_millis(100);

type Chunk = io::Result<Vec<u8>>;

/// Starts reading a run's output.
pub(crate) fn read(
    shared: &Arc<LocalEngineState>,
    key: RunKey,
    range: LogRange,
) -> Result<mpsc::Receiver<Chunk>, Error> {
    shared.state(key).ok_or(Error::NoSuchRun(key))?;
    let (chunks, receiver) = mpsc::channel(CHUNKS_AHEAD);
    let own = Arc::clone(shared);
    shared.spawn(async move {
        if let Err(error) = pump(&own, key, &range, &chunks).await {
            // A reader that disconnected needs no error.
            let _gone = chunks.send(Err(error)).await;
        }
    });
    Ok(receiver)
}

/// How many bytes precede this part of a run's output.
pub(crate) async fn bytes_before(
    shared: &LocalEngineState,
    key: RunKey,
    range: &LogRange,
) -> Result<u64, Error> {
    shared.state(key).ok_or(Error::NoSuchRun(key))?;
    let opened = open(&shared.dir(key), range).await;
    let opened = opened.map_err(|source| match source.kind() {
        io::ErrorKind::Unsupported => Error::Invalid(source.to_string()),
        _ => Error::io(format!("read the output of run {key}"), source),
    })?;
    Ok(opened.map_or(0, |reading| reading.at))
}

async fn pump(
    shared: &LocalEngineState,
    key: RunKey,
    range: &LogRange,
    chunks: &mpsc::Sender<Chunk>,
) -> io::Result<()> {
    let dir = shared.dir(key);
    let mut reading = None;
    loop {
        // Read the state before the log: then the log up to that state is complete.
        let ended =
            !matches!(shared.state(key), Some(StateFile::Starting | StateFile::Running { .. }));
        if reading.is_none() {
            reading = open(&dir, range).await?;
        }
        if let Some(reading) = &mut reading
            && !reading.copy(chunks).await?
        {
            return Ok(());
        }
        if ended || !range.follow {
            return Ok(());
        }
        tokio::select! {
            () = chunks.closed() => return Ok(()),
            () = tokio::time::sleep(FOLLOW_PAUSE) => {}
        }
    }
}

/// A log being read.
struct Reading {
    log: File,
    /// A second handle, to find holes: that moves the position.
    kept: std::fs::File,
    /// Bytes that were read or skipped.
    at: u64,
    /// If times are requested.
    stamps: Option<(Timestamps, Times)>,
}

/// Opens the log at a range; `None` if nothing has been written yet.
async fn open(dir: &RunDir, range: &LogRange) -> io::Result<Option<Reading>> {
    let mut log = match File::open(dir.log_path()).await {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let kept = File::open(dir.log_path()).await?.into_std().await;
    let first = first_kept(&kept, 0)?;
    let at = match (range.from_byte, range.since) {
        (Some(from), _) => from,
        (None, Some(since)) => {
            let before = times(dir).await?.bytes_before(since).await?;
            since_start(&mut log, first, before).await?.max(tail(&mut log, first, range).await?)
        }
        (None, None) => tail(&mut log, first, range).await?,
    };
    let at = first_kept(&kept, at)?;
    let stamps = if range.timestamps {
        let stamps = Timestamps::going_on(!begins_a_line(&mut log, at).await?);
        Some((stamps, times(dir).await?))
    } else {
        None
    };
    log.seek(SeekFrom::Start(at)).await?;
    Ok(Some(Reading { log, kept, at, stamps }))
}

async fn times(dir: &RunDir) -> io::Result<Times> {
    let older = "when it wrote was not taken down: it was started by an older version; leave out \
                 since and timestamps";
    Times::open(dir).await?.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, older))
}

impl Reading {
    /// Sends what there is. False: the reader disconnected.
    async fn copy(&mut self, chunks: &mpsc::Sender<Chunk>) -> io::Result<bool> {
        loop {
            let mut chunk = vec![0; CHUNK_BYTES];
            let count = self.log.read(&mut chunk).await?;
            if count == 0 {
                return Ok(true);
            }
            if first_kept(&self.kept, self.at)? > self.at {
                return Err(io::Error::other(
                    "it was printed faster than it was read, and part of it is not kept any more",
                ));
            }
            chunk.truncate(count);
            if chunks.send(Ok(self.stamped(chunk).await?)).await.is_err() {
                return Ok(false);
            }
        }
    }

    async fn stamped(&mut self, chunk: Vec<u8>) -> io::Result<Vec<u8>> {
        let Some((stamps, times)) = &mut self.stamps else {
            self.at += chunk.len() as u64;
            return Ok(chunk);
        };
        let mut told = Vec::with_capacity(chunk.len() * 2);
        for line in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.at += line.len() as u64;
            let millis = i64::try_from(times.of(self.at).await?.0).unwrap_or(i64::MAX);
            let at = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
            stamps.line(format_args!("{at:.3}"), line, &mut told);
        }
        Ok(told)
    }
}

/// Where the requested last lines start.
async fn tail(log: &mut File, first: u64, range: &LogRange) -> io::Result<u64> {
    let Some(lines) = range.tail_lines else { return Ok(0) };
    let end = log.seek(SeekFrom::End(0)).await?;
    tail_start(log, first, end, lines).await
}

/// Where the first line starts of which a part was written after this many bytes.
async fn since_start(log: &mut File, first: u64, before: u64) -> io::Result<u64> {
    if before >= log.seek(SeekFrom::End(0)).await? || begins_a_line(log, before).await? {
        return Ok(before);
    }
    tail_start(log, first, before, 1).await
}

async fn begins_a_line(log: &mut File, at: u64) -> io::Result<bool> {
    let Some(before) = at.checked_sub(1) else { return Ok(true) };
    log.seek(SeekFrom::Start(before)).await?;
    let mut byte = [0];
    // No line starts after the end.
    Ok(log.read(&mut byte).await? == 0 || byte == *b"\n")
}

/// Where the last `lines` lines before `end` start, of those after `first`. A line without an end
/// counts as one.
async fn tail_start(log: &mut File, first: u64, mut end: u64, lines: u64) -> io::Result<u64> {
    if lines == 0 {
        return Ok(end);
    }
    let size = end;
    let mut wanted = lines;
    let mut block = vec![0; CHUNK_BYTES];
    while end > first {
        let start = end.saturating_sub(CHUNK_BYTES as u64).max(first);
        let count = usize::try_from(end - start).unwrap_or(CHUNK_BYTES);
        log.seek(SeekFrom::Start(start)).await?;
        log.read_exact(&mut block[..count]).await?;
        for (at, _) in block[..count].iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            let next = start + at as u64 + 1;
            // The end of the last line starts no line.
            if next == size {
                continue;
            }
            wanted -= 1;
            if wanted == 0 {
                return Ok(next);
            }
        }
        end = start;
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tail(text: &str, lines: u64) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = RunDir::at(folder.path());
        tokio::fs::write(dir.log_path(), text).await.expect("written");
        let range = LogRange { tail_lines: Some(lines), ..LogRange::default() };
        let mut reading = open(&dir, &range).await.expect("opened").expect("there");
        let mut rest = String::new();
        reading.log.read_to_string(&mut rest).await.expect("read");
        rest
    }

    #[tokio::test]
    async fn the_last_lines_are_counted_from_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2).await, "b\nc\n");
        assert_eq!(tail("a\nb\nc", 2).await, "b\nc");
        assert_eq!(tail("a\nb\n", 9).await, "a\nb\n");
        assert_eq!(tail("a\n\n", 1).await, "\n");
        assert_eq!(tail("a\nb\n", 0).await, "");
        assert_eq!(tail("", 3).await, "");
    }

    #[tokio::test]
    async fn times_that_nobody_took_down_are_not_made_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = RunDir::at(folder.path());
        tokio::fs::write(dir.log_path(), "a\n").await.expect("written");
        let range = LogRange { timestamps: true, ..LogRange::default() };
        let refused = open(&dir, &range).await.err().expect("refused").to_string();
        assert!(refused.contains("started by an older version"), "{refused}");
    }

    #[tokio::test]
    async fn a_line_that_had_begun_before_is_told_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        tokio::fs::write(&path, "a\nbb\nc").await.expect("written");
        let mut log = File::open(path).await.expect("opened");
        for (at, start) in [(0, 0), (1, 0), (2, 2), (3, 2), (4, 2), (5, 5), (6, 6), (9, 9)] {
            assert_eq!(since_start(&mut log, 0, at).await.expect("read"), start, "{at}");
        }
    }

    #[tokio::test]
    async fn lines_longer_than_a_block_are_kept_whole() {
        let long = "x".repeat(CHUNK_BYTES * 2 + 7);
        assert_eq!(tail(&format!("first\n{long}\nlast\n"), 2).await, format!("{long}\nlast\n"));
    }
}
