//! When the output of a run was written. Owns: `output.times`, pairs of a time and the length of
//! the output then. A run writes directly into its log; so the supervisor checks its length and
//! modification time once a second. The time of a line is never too early, and at most that second
//! too late.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, SeekFrom, Write as _};
use std::time::{Duration, Instant as Tick, UNIX_EPOCH};

use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use units::Instant;

use crate::log_retention::first_kept;
use crate::record::RunDir;

/// The file of a run.
pub(crate) const TIMES: &str = "output.times";
/// Size limit of the file: 12 days for a run that prints all the time. Older output gets the time
/// of the first pair that is kept.
pub(crate) const TIMES_BYTES_MAX: u64 = 16 << 20;
/// How often the supervisor checks. inotify would notify it, but allows 128 watches for each user
/// by default, and workloads need those.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Milliseconds since the epoch, and bytes.
const PAIR_BYTES: usize = 16;
/// Pairs read at a time.
const PAIRS_AT_ONCE: usize = 1024;

/// The writer of the file, in the supervisor.
#[derive(Debug)]
pub(crate) struct TimesWriter {
    log: File,
    times: File,
    /// Length of the log at the last check.
    bytes: u64,
    due: Tick,
}

impl TimesWriter {
    pub(crate) fn open(dir: &RunDir) -> io::Result<Self> {
        let (log, times) = (dir.append("output.log")?, dir.append(TIMES)?);
        Ok(Self { log, times, bytes: 0, due: Tick::now() })
    }

    /// Time until the next check.
    pub(crate) fn pause(&self) -> Duration {
        self.due.saturating_duration_since(Tick::now())
    }

    /// Checks, if it is due.
    ///
    /// # Errors
    /// A disk error. The next pair stands for this one as well.
    pub(crate) fn check_when_due(&mut self) -> io::Result<()> {
        if !self.pause().is_zero() {
            return Ok(());
        }
        self.due = Tick::now() + CHECK_INTERVAL;
        self.look()
    }

    /// Checks now.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        let log = self.log.metadata()?;
        if log.len() == self.bytes {
            return Ok(());
        }
        if log.len() < self.bytes {
            // The run emptied its output: the pairs refer to bytes that no longer exist.
            self.times.set_len(0)?;
        }
        let pair = [written(&log)?.0.to_le_bytes(), log.len().to_le_bytes()].concat();
        let before = self.times.metadata()?.len();
        if let Err(error) = self.times.write_all(&pair) {
            // Write whole pairs only.
            self.times.set_len(before)?;
            return Err(error);
        }
        self.bytes = log.len();
        Ok(())
    }
}

/// When a file was last modified.
fn written(file: &Metadata) -> io::Result<Instant> {
    let since = file.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Instant(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}

/// The times of an output, read from start to end.
#[derive(Debug)]
pub(crate) struct Times {
    log: tokio::fs::File,
    times: tokio::fs::File,
    /// Offset of the next pairs.
    at: u64,
    /// Pairs read.
    ahead: VecDeque<(Instant, u64)>,
}

impl Times {
    /// Opens the times of a run; `None` if an older supervisor recorded none.
    pub(crate) async fn open(dir: &RunDir) -> io::Result<Option<Self>> {
        let times = match tokio::fs::File::open(dir.file(TIMES)).await {
            Ok(times) => times,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let log = tokio::fs::File::open(dir.log_path()).await?;
        let at = first_kept(&times, 0)?;
        Ok(Some(Self { log, times, at, ahead: VecDeque::new() }))
    }

    /// When the output reached this length; call it with growing lengths.
    pub(crate) async fn of(&mut self, bytes: u64) -> io::Result<Instant> {
        loop {
            match self.ahead.front().copied() {
                Some((at, there)) if there >= bytes => return Ok(at),
                Some(_) => drop(self.ahead.pop_front()),
                None if self.read_more().await? => {}
                // Not checked since.
                None => return written(&self.log.metadata().await?),
            }
        }
    }

    /// How many bytes were there before this time, as far as recorded.
    pub(crate) async fn bytes_before(mut self, since: Instant) -> io::Result<u64> {
        let mut before = 0;
        loop {
            match self.ahead.pop_front() {
                Some((at, there)) if at < since => before = there,
                Some(_) => return Ok(before),
                None if self.read_more().await? => {}
                None => break,
            }
        }
        let log = self.log.metadata().await?;
        Ok(if written(&log)? < since { log.len() } else { before })
    }

    async fn read_more(&mut self) -> io::Result<bool> {
        self.times.seek(SeekFrom::Start(self.at)).await?;
        let mut bytes = Vec::new();
        let most = (PAIRS_AT_ONCE * PAIR_BYTES) as u64;
        (&mut self.times).take(most).read_to_end(&mut bytes).await?;
        let number = |half: &[u8]| half.try_into().map(u64::from_le_bytes).unwrap_or_default();
        let (pairs, _half) = bytes.as_chunks::<PAIR_BYTES>();
        self.ahead.extend(pairs.iter().map(|p| (Instant(number(&p[..8])), number(&p[8..]))));
        self.at += size_of_val(pairs) as u64;
        Ok(!pairs.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::log_retention::LogRetention;

    /// A run that wrote `a`, and later `bb`.
    async fn wrote(folder: &tempfile::TempDir) -> RunDir {
        let dir = RunDir::at(folder.path());
        let mut notes = TimesWriter::open(&dir).expect("opened");
        for (at, text) in [(1000, "a\n"), (5000, "bb\n")] {
            notes.log.write_all(text.as_bytes()).expect("written");
            let at: SystemTime = UNIX_EPOCH + Duration::from_millis(at);
            notes.log.set_modified(at).expect("set");
            notes.look().expect("taken down");
            notes.look().expect("nothing new");
        }
        dir
    }

    #[tokio::test]
    async fn what_was_written_between_two_looks_has_the_time_of_the_later() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = wrote(&folder).await;
        let mut times = Times::open(&dir).await.expect("read").expect("there");
        for (bytes, at) in [(1, 1000), (2, 1000), (3, 5000), (5, 5000)] {
            assert_eq!(times.of(bytes).await.expect("known"), Instant(at), "{bytes}");
        }
    }

    #[tokio::test]
    async fn of_times_that_are_given_back_the_first_that_is_kept_stands_for_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = RunDir::at(folder.path());
        let notes = TimesWriter::open(&dir).expect("opened");
        let pairs = (1..=12_288_u64).flat_map(|n| [(1000 * n).to_le_bytes(), n.to_le_bytes()]);
        (&notes.times).write_all(&pairs.flatten().collect::<Vec<_>>()).expect("written");
        let mut bound = LogRetention::new(TIMES, dir.append(TIMES).expect("opened"), 64 << 10);
        assert!(bound.keep());
        let mut times = Times::open(&dir).await.expect("read").expect("there");
        for (bytes, at) in [(1, 8_193_000), (8193, 8_193_000), (8194, 8_194_000)] {
            assert_eq!(times.of(bytes).await.expect("known"), Instant(at), "{bytes}");
        }
    }

    #[tokio::test]
    async fn what_was_there_before_a_moment_is_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = wrote(&folder).await;
        for (since, before) in [(0, 0), (1000, 0), (1001, 2), (5000, 2), (5001, 5)] {
            let times = Times::open(&dir).await.expect("read").expect("there");
            assert_eq!(times.bytes_before(Instant(since)).await.expect("known"), before, "{since}");
        }
    }
}
