//! What a workload wrote, as it comes. Owns: how far it was read, so that a reader that was cut off
//! can go on there.

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;

use crate::Error;

/// Which part of the output is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Logs {
    /// Only so many of the last lines.
    pub tail_lines: Option<u64>,
    /// Only what was written since.
    pub since: Option<Since>,
    /// With the time before each line.
    pub timestamps: bool,
    /// With what is still to come.
    pub follow: bool,
    /// Of the run before the newest.
    pub previous: bool,
}

/// Since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// So many seconds ago, by the server's clock.
    Seconds(u64),
    /// This moment.
    Time(api_types::Time),
}

/// How far the output of a run was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPosition {
    /// The run.
    pub(crate) run: String,
    /// Bytes of it.
    pub(crate) offset: u64,
    /// What was read of the line there.
    pub(crate) line: Line,
}

impl LogPosition {
    /// The pod it is of and which of its runs, if the server says so.
    #[must_use]
    pub fn pod_and_generation(&self) -> Option<(&str, u32)> {
        let (pod, generation) = self.run.rsplit_once('.')?;
        Some((pod, generation.parse().ok()?))
    }
}

/// Output of a workload, chunk by chunk.
pub struct LogStream {
    pub(crate) chunks: BoxStream<'static, Result<Vec<u8>, Error>>,
    pub(crate) position: Option<LogPosition>,
}

impl LogStream {
    /// The next chunk; none at the end.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let Some(chunk) = self.chunks.next().await.transpose()? else { return Ok(None) };
        let Some(LogPosition { offset, line, .. }) = &mut self.position else {
            return Ok(Some(chunk));
        };
        let (told, written) = line.pass(&chunk);
        *offset += written;
        Ok(Some(told))
    }

    /// How far it was read; none where the server cannot tell.
    #[must_use]
    pub const fn position(&self) -> Option<&LogPosition> {
        self.position.as_ref()
    }
}

impl std::fmt::Debug for LogStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogStream")
    }
}

/// Tells what was written from the times before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// True if there is a time before each.
    pub(crate) stamped: bool,
    /// What came of the time, while it is not complete; none within the line.
    time: Option<Vec<u8>>,
}

impl Line {
    pub(crate) const fn new(stamped: bool) -> Self {
        Self { stamped, time: Some(Vec::new()) }
    }

    /// What is to be told, and how many bytes of it were written. A time is told whole: who is cut
    /// off in the middle of it gets it once more.
    fn pass(&mut self, chunk: &[u8]) -> (Vec<u8>, u64) {
        if !self.stamped {
            return (chunk.to_vec(), chunk.len() as u64);
        }
        let (mut told, mut written) = (Vec::with_capacity(chunk.len()), 0);
        for byte in chunk {
            match &mut self.time {
                Some(time) => {
                    time.push(*byte);
                    if *byte == b' ' {
                        told.append(time);
                        self.time = None;
                    }
                }
                None => {
                    told.push(*byte);
                    written += 1;
                    self.time = (*byte == b'\n').then(Vec::new);
                }
            }
        }
        (told, written)
    }

    /// The same line from the last position on.
    pub(crate) fn restarted(&self) -> Self {
        Self { time: self.time.as_ref().map(|_| Vec::new()), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_whole_and_do_not_count() {
        let mut line = Line::new(true);
        let mut told = |chunk: &str| {
            let (told, written) = line.pass(chunk.as_bytes());
            (String::from_utf8(told).unwrap(), written)
        };
        assert_eq!(told("12:00 a b\n12"), ("12:00 a b\n".to_owned(), 4));
        assert_eq!(told(":01 c"), ("12:01 c".to_owned(), 1));
        assert_eq!(told("\n\n"), ("\n".to_owned(), 1), "a time that is not complete");
        assert_eq!(line.restarted().time, Some(Vec::new()), "comes once more");
        assert_eq!(Line::new(false).pass(b"1 a\n"), (b"1 a\n".to_vec(), 4));
    }
}
