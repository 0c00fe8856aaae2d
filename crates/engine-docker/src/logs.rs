//! Reading a run's output while it is being written. Owns: resuming after an outage of the daemon,
//! and detecting the end. Each stream is in order; across the two, lines are in the order in which
//! the daemon received them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::LogsOptionsBuilder;
use engine::{Error, LogRange, RunKey, Timestamps};
use futures_util::StreamExt as _;
use tokio::sync::mpsc;

use crate::run_registry::has_ended;
use crate::shared::DockerEngineState;
use crate::{chain, names, status};

/// Chunks that a slow reader may be behind.
const CHUNKS_AHEAD: usize = 64;
/// Pause before an interrupted output, or that of a run without a container, is requested again.
const FOLLOW_PAUSE: Duration = Duration::from_millis(100);

type Chunk = io::Result<Vec<u8>>;

/// Starts reading a run's output.
pub(crate) fn read(
    shared: &Arc<DockerEngineState>,
    key: RunKey,
    range: LogRange,
) -> Result<mpsc::Receiver<Chunk>, Error> {
    shared.runs.state(key).ok_or(Error::NoSuchRun(key))?;
    let (chunks, receiver) = mpsc::channel(CHUNKS_AHEAD);
    let own = Arc::clone(shared);
    shared.spawn(async move {
        tokio::select! {
            () = pump(&own, key, &range, &chunks) => {}
            () = chunks.closed() => {}
        }
    });
    Ok(receiver)
}

/// Position up to which the output has been read.
#[derive(Debug, Default)]
struct Mark {
    /// Time of the last line, as the daemon writes it.
    last: Option<jiff::Timestamp>,
    /// Bytes to skip. The daemon counts lines, whose order does not change.
    skip: u64,
    stamps: Timestamps,
}

async fn pump(
    shared: &DockerEngineState,
    key: RunKey,
    range: &LogRange,
    chunks: &mpsc::Sender<Chunk>,
) {
    let skip = range.from_byte.unwrap_or(0);
    let mut mark = Mark { last: None, skip, stamps: Timestamps::default() };
    loop {
        // Read the state before the output: then the output up to that state is complete.
        let ended = shared.runs.state(key).is_none_or(|state| has_ended(&state));
        if let Err(error) = copy(shared, key, range, &mut mark, chunks).await
            && (ended || !range.follow)
        {
            // A reader that disconnected needs no error.
            let _gone = chunks.send(Err(error)).await;
            return;
        }
        if ended || !range.follow {
            return;
        }
        tokio::time::sleep(FOLLOW_PAUSE).await;
    }
}

/// Sends what there is, and what follows while the run lives, if requested.
async fn copy(
    shared: &DockerEngineState,
    key: RunKey,
    range: &LogRange,
    mark: &mut Mark,
    chunks: &mpsc::Sender<Chunk>,
) -> io::Result<()> {
    let mut options = LogsOptionsBuilder::default()
        .stdout(true)
        .stderr(true)
        .timestamps(true)
        .follow(range.follow);
    let anew = range.from_byte.is_none() && mark.last.is_none();
    if let Some(lines) = range.tail_lines.filter(|_| anew) {
        options = options.tail(&lines.to_string());
    }
    let since = range.since.filter(|_| anew).map(moment);
    // In seconds; earlier lines are skipped below.
    if let Some(from) = mark.last.or(since) {
        options = options.since(i32::try_from(from.as_second()).unwrap_or(i32::MAX));
    }
    let name = names::container(key);
    let mut lines = Box::pin(shared.daemon.docker.logs(&name, Some(options.build())));
    let read_before = mark.last;
    while let Some(line) = lines.next().await {
        let line = match line {
            Ok(line) => line.into_bytes(),
            // No container yet, or never one.
            Err(fault) if status(&fault) == Some(404) => return Ok(()),
            Err(fault) => return Err(io::Error::other(chain(&fault))),
        };
        let (at, text) = split(&line);
        if at.is_some() && (at <= read_before || at < since) {
            continue;
        }
        mark.last = mark.last.max(at);
        let left_out = usize::try_from(mark.skip).unwrap_or(usize::MAX).min(text.len());
        mark.skip -= left_out as u64;
        if let Some(last) = text[..left_out].last() {
            mark.stamps = Timestamps::going_on(*last != b'\n');
        }
        let text = &text[left_out..];
        let told = match at {
            Some(at) if range.timestamps => mark.stamps.stamped(at, text),
            _ => text.to_vec(),
        };
        if !told.is_empty() && chunks.send(Ok(told)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

fn moment(at: units::Instant) -> jiff::Timestamp {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX)
}

/// Time and text of a line, or of a part of one that is long.
fn split(line: &[u8]) -> (Option<jiff::Timestamp>, &[u8]) {
    let Some(space) = line.iter().position(|byte| *byte == b' ') else { return (None, line) };
    let at = std::str::from_utf8(&line[..space]).ok().and_then(|at| at.parse().ok());
    match at {
        Some(at) => (Some(at), &line[space + 1..]),
        None => (None, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_from_its_time() {
        let (at, text) = split(b"2026-11-21T17:19:22.424963592Z  two spaces\n");
        assert_eq!(text, b" two spaces\n");
        assert!(at.is_some_and(|at| at.subsec_nanosecond() == 424_963_592));
        assert_eq!(split(b"no time\n"), (None, b"no time\n".as_slice()));
        assert_eq!(split(b"x"), (None, b"x".as_slice()));
    }
}
