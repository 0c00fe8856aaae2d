//! Reading a run's output while it is being written. Owns: finding the last lines, and knowing
//! when everything has been read. The log has no bound but the disk.

use std::io::{self, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::{Error, LogRange, RunKey};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::mpsc;

use crate::open::io_error;
use crate::record::StateFile;
use crate::watch::Shared;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks a slow reader may be behind.
const CHUNKS_AHEAD: usize = 4;
/// How often a followed log is looked at for more.
const FOLLOW_LOOK: Duration = Duration::from_millis(100);

type Chunk = io::Result<Vec<u8>>;

/// Starts reading a run's output.
pub(crate) fn read(
    shared: &Arc<Shared>,
    key: RunKey,
    range: LogRange,
) -> Result<mpsc::Receiver<Chunk>, Error> {
    shared.state(key).ok_or(Error::NoSuchRun(key))?;
    let (chunks, receiver) = mpsc::channel(CHUNKS_AHEAD);
    let own = Arc::clone(shared);
    shared.spawn(async move {
        if let Err(error) = pump(&own, key, &range, &chunks).await {
            // A reader that went away wants no error either.
            let _gone = chunks.send(Err(error)).await;
        }
    });
    Ok(receiver)
}

/// How many bytes are before this part of a run's output.
pub(crate) async fn bytes_before(
    shared: &Shared,
    key: RunKey,
    range: &LogRange,
) -> Result<u64, Error> {
    shared.state(key).ok_or(Error::NoSuchRun(key))?;
    let opened = async {
        let Some(mut log) = open(&shared.dir(key).log_path(), range).await? else { return Ok(0) };
        log.stream_position().await
    };
    opened.await.map_err(|source| io_error(format!("read the output of run {key}"), source))
}

async fn pump(
    shared: &Shared,
    key: RunKey,
    range: &LogRange,
    chunks: &mpsc::Sender<Chunk>,
) -> io::Result<()> {
    let path = shared.dir(key).log_path();
    let mut log: Option<File> = None;
    loop {
        // Asked before reading: what is written until then is read, and then nothing follows.
        let ended =
            !matches!(shared.state(key), Some(StateFile::Starting | StateFile::Running { .. }));
        if log.is_none() {
            log = open(&path, range).await?;
        }
        if let Some(log) = &mut log
            && !copy(log, chunks).await?
        {
            return Ok(());
        }
        if ended || !range.follow {
            return Ok(());
        }
        tokio::select! {
            () = chunks.closed() => return Ok(()),
            () = tokio::time::sleep(FOLLOW_LOOK) => {}
        }
    }
}

/// None: nothing has been written yet.
async fn open(path: &Path, range: &LogRange) -> io::Result<Option<File>> {
    let mut log = match File::open(path).await {
        Ok(log) => log,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let from = match (range.from_byte, range.tail_lines) {
        (Some(from), _) => from,
        (None, Some(lines)) => tail_start(&mut log, lines).await?,
        (None, None) => 0,
    };
    log.seek(SeekFrom::Start(from)).await?;
    Ok(Some(log))
}

/// Sends what there is. False: the reader went away.
async fn copy(log: &mut File, chunks: &mpsc::Sender<Chunk>) -> io::Result<bool> {
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        let count = log.read(&mut chunk).await?;
        if count == 0 {
            return Ok(true);
        }
        chunk.truncate(count);
        if chunks.send(Ok(chunk)).await.is_err() {
            return Ok(false);
        }
    }
}

/// Where the last `lines` lines begin. A line without an end counts as one.
async fn tail_start(log: &mut File, lines: u64) -> io::Result<u64> {
    let mut end = log.seek(SeekFrom::End(0)).await?;
    if lines == 0 {
        return Ok(end);
    }
    let size = end;
    let mut wanted = lines;
    let mut block = vec![0; CHUNK_BYTES];
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES as u64);
        let count = usize::try_from(end - start).unwrap_or(CHUNK_BYTES);
        log.seek(SeekFrom::Start(start)).await?;
        log.read_exact(&mut block[..count]).await?;
        for (at, _) in block[..count].iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            let next = start + at as u64 + 1;
            // The end of the last line begins no line.
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
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tail(text: &str, lines: u64) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        tokio::fs::write(&path, text).await.expect("written");
        let range = LogRange { tail_lines: Some(lines), ..LogRange::default() };
        let mut log = open(&path, &range).await.expect("opened").expect("there");
        let mut rest = String::new();
        log.read_to_string(&mut rest).await.expect("read");
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
    async fn lines_longer_than_a_block_are_kept_whole() {
        let long = "x".repeat(CHUNK_BYTES * 2 + 7);
        assert_eq!(tail(&format!("first\n{long}\nlast\n"), 2).await, format!("{long}\nlast\n"));
    }
}
