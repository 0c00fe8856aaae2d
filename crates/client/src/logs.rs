//! Output of a workload as a stream. Owns: the read position, at which a reader can continue after
//! an interruption.

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;

use crate::Error;

/// Selection of the output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Logs {
    /// Maximum number of last lines; `None` = all.
    pub tail_lines: Option<u64>,
    /// Start of the output; `None` = all.
    pub since: Option<Since>,
    /// True if each line begins with its time.
    pub timestamps: bool,
    /// True if future output is included.
    pub follow: bool,
    /// True for the run before the newest.
    pub previous: bool,
}

/// Start of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// This many seconds ago, by the server's clock.
    Seconds(u64),
    /// This time.
    Time(api_types::Time),
}

/// Read position in the output of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPosition {
    /// Id of the run.
    pub(crate) run: String,
    /// Offset in bytes.
    pub(crate) offset: u64,
    /// State of the line at this position.
    pub(crate) line: TimestampSplitter,
}

impl LogPosition {
    /// The pod of the output and the generation of its run, if the server sends them.
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
    /// The next chunk; `None` at the end.
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

    /// Read position; `None` if the server does not send one.
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

/// Separates output from the times before its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimestampSplitter {
    /// True if each line begins with a time.
    pub(crate) stamped: bool,
    /// Received part of an incomplete time; `None` within the line.
    time: Option<Vec<u8>>,
}

impl TimestampSplitter {
    pub(crate) const fn new(stamped: bool) -> Self {
        Self { stamped, time: Some(Vec::new()) }
    }

    /// Output to return, and its number of bytes without times. A time is returned as a whole:
    /// after an interruption within a time, it is sent once more.
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

    /// The state with which reading continues at the last position.
    pub(crate) fn restarted(&self) -> Self {
        Self { time: self.time.as_ref().map(|_| Vec::new()), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_whole_and_do_not_count() {
        let mut line = TimestampSplitter::new(true);
        let mut told = |chunk: &str| {
            let (told, written) = line.pass(chunk.as_bytes());
            (String::from_utf8(told).unwrap(), written)
        };
        assert_eq!(told("12:00 a b\n12"), ("12:00 a b\n".to_owned(), 4));
        assert_eq!(told(":01 c"), ("12:01 c".to_owned(), 1));
        assert_eq!(told("\n\n"), ("\n".to_owned(), 1), "a time that is not complete");
        assert_eq!(line.restarted().time, Some(Vec::new()), "comes once more");
        assert_eq!(TimestampSplitter::new(false).pass(b"1 a\n"), (b"1 a\n".to_vec(), 4));
    }
}
