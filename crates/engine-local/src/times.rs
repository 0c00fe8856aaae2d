//! When the output of a run was written. Owns: `output.times`, pairs of a moment and how long the
//! output was then. A run writes straight into its log and nobody sees it; so it is looked once a
//! second how long the log is and when it was last written to. What is told of a line is never earlier
//! than it was, and at most that second later.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, SeekFrom, Write as _};
use std::time::{Duration, Instant as Tick, UNIX_EPOCH};

use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use units::Instant;

use crate::bound::first_kept;
use crate::record::RunDir;

/// The file of a run.
pub(crate) const TIMES: &str = "output.times";
/// Most of it that is kept, in bytes: of a run that prints all the time, 12 days. What was printed before is
/// told to have been there when what is kept begins.
pub(crate) const TIMES_BYTES_MAX: u64 = 16 << 20;
/// How often the supervisor looks. The kernel could tell (inotify), but 128 times for each user unless somebody
/// allows more, and the programs of workloads need those.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Milliseconds since the epoch, and bytes.
const PAIR_BYTES: usize = 16;
/// Pairs read at a time.
const PAIRS_AT_ONCE: usize = 1024;

/// What the supervisor takes down.
#[derive(Debug)]
pub(crate) struct Notes {
    log: File,
    times: File,
    /// Bytes of the log at the last look.
    bytes: u64,
    due: Tick,
}

impl Notes {
    pub(crate) fn open(dir: &RunDir) -> io::Result<Self> {
        let (log, times) = (dir.append("output.log")?, dir.append(TIMES)?);
        Ok(Self { log, times, bytes: 0, due: Tick::now() })
    }

    /// How long until the next look.
    pub(crate) fn pause(&self) -> Duration {
        self.due.saturating_duration_since(Tick::now())
    }

    /// Looks, if it is time.
    ///
    /// # Errors
    /// The disk refuses. The next pair stands for this one as well.
    pub(crate) fn look_when_due(&mut self) -> io::Result<()> {
        if !self.pause().is_zero() {
            return Ok(());
        }
        self.due = Tick::now() + LOOK_EVERY;
        self.look()
    }

    /// Looks.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        let log = self.log.metadata()?;
        if log.len() == self.bytes {
            return Ok(());
        }
        if log.len() < self.bytes {
            // It was emptied: what was taken down is of bytes that are no more.
            self.times.set_len(0)?;
        }
        let pair = [written(&log)?.0.to_le_bytes(), log.len().to_le_bytes()].concat();
        let before = self.times.metadata()?.len();
        if let Err(error) = self.times.write_all(&pair) {
            // No half pairs.
            self.times.set_len(before)?;
            return Err(error);
        }
        self.bytes = log.len();
        Ok(())
    }
}

/// When a file was last written to.
fn written(file: &Metadata) -> io::Result<Instant> {
    let since = file.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Instant(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}

/// The times of an output, read from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Times {
    log: tokio::fs::File,
    times: tokio::fs::File,
    /// Where the next pairs are.
    at: u64,
    /// Those that were read.
    ahead: VecDeque<(Instant, u64)>,
}

impl Times {
    /// None: nothing was taken down, by an older supervisor.
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

    /// When the output was so long; asked for more and more bytes.
    pub(crate) async fn of(&mut self, bytes: u64) -> io::Result<Instant> {
        loop {
            match self.ahead.front().copied() {
                Some((at, there)) if there >= bytes => return Ok(at),
                Some(_) => drop(self.ahead.pop_front()),
                None if self.read_more().await? => {}
                // It was not looked since.
                None => return written(&self.log.metadata().await?),
            }
        }
    }

    /// How many bytes were there before this moment, for all that is known.
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
    use crate::bound::Bound;

    /// A run that wrote `a`, and later `bb`.
    async fn wrote(folder: &tempfile::TempDir) -> RunDir {
        let dir = RunDir::at(folder.path());
        let mut notes = Notes::open(&dir).expect("opened");
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
        let notes = Notes::open(&dir).expect("opened");
        let pairs = (1..=12_288_u64).flat_map(|n| [(1000 * n).to_le_bytes(), n.to_le_bytes()]);
        (&notes.times).write_all(&pairs.flatten().collect::<Vec<_>>()).expect("written");
        let mut bound = Bound::new(TIMES, dir.append(TIMES).expect("opened"), 64 << 10);
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
