//! Progress that a run has reported. Owns: that checkpoints only go forward, the age of the last
//! one, and how often the scheduler learns of it. Time is an argument; setting the clock changes
//! nothing.

use std::time::Duration;

use crate::file::Stamp;

/// Minimum time between two notes to the scheduler, which counts lost work in minutes: each note is
/// a row of the database.
pub(crate) const NOTE_EVERY: Duration = Duration::from_secs(10);
/// Difference between the clock of the machine and elapsed time from which the clock counts as set.
const DRIFT_MS: i64 = 1000;
/// Delay after the announced moment at which a checkpoint counts as due.
const LATE: Duration = Duration::from_secs(2);

/// How long a run counts as asking after its last question whether a checkpoint is wanted: a step
/// may take a while.
const ASKS_EVERY: Duration = Duration::from_secs(30);

/// A moment, by the time since some start and by the machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Now {
    pub(crate) passed: Duration,
    pub(crate) wall_ms: u64,
}

impl Now {
    fn offset_ms(self) -> i64 {
        let passed = i64::try_from(self.passed.as_millis()).unwrap_or(i64::MAX);
        i64::try_from(self.wall_ms).unwrap_or(i64::MAX).saturating_sub(passed)
    }

    /// True if the clock was set between the two.
    fn is_set_since(self, before: Self) -> bool {
        self.offset_ms().abs_diff(before.offset_ms()) > DRIFT_MS.unsigned_abs()
    }
}

#[derive(Debug, Clone, Copy)]
struct Last {
    stamp: Stamp,
    step: Option<u64>,
    seen: Now,
}

/// Checkpoints and announcements of one run. Moments are times since the start of the run's
/// channel.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Moment at which the run had written nothing yet; `None` for a run of an earlier server.
    began: Option<Now>,
    last: Option<Last>,
    /// Moment at which the newest checkpoint was written; `None` once the scheduler knows of it.
    unnoted: Option<Duration>,
    noted: Option<Duration>,
    /// Announced moment of the next checkpoint.
    due: Option<Duration>,
    /// Moment of the run's last question whether a checkpoint is wanted.
    asked: Option<Duration>,
    /// End of the wait for a wanted checkpoint; `None` if none is wanted.
    wanted: Option<Duration>,
}

impl Progress {
    /// Progress of a run that begins now.
    pub(crate) fn new(began: Now) -> Self {
        Self { began: Some(began), ..Self::default() }
    }

    /// Records a checkpoint.
    ///
    /// # Errors
    /// Reason why it is not a new one.
    pub(crate) fn save(&mut self, stamp: Stamp, step: Option<u64>, now: Now) -> Result<(), String> {
        if let Some(last) = self.last {
            if last.stamp == stamp {
                return Err("the file has not changed since it was reported before".to_owned());
            }
            if let (Some(before), Some(step)) = (last.step, step)
                && step < before
            {
                return Err(format!("step {step} is before step {before}, which was reported"));
            }
            let is_older = stamp.written_ms < last.stamp.written_ms;
            if is_older && !now.is_set_since(last.seen) {
                return Err("the file is older than the one that was reported before".to_owned());
            }
        }
        let before = self.last.map(|last| last.seen).or(self.began);
        let written = now.passed.saturating_sub(age(stamp, before, now));
        self.last =
            Some(Last { stamp, step: step.or(self.last.and_then(|last| last.step)), seen: now });
        (self.unnoted, self.due, self.wanted) = (Some(written), None, None);
        Ok(())
    }

    /// The newest checkpoint is there no more.
    pub(crate) fn lose(&mut self) {
        (self.last, self.unnoted) = (None, None);
    }

    /// The next checkpoint is announced.
    pub(crate) fn announce(&mut self, within: Duration, now: Now) {
        self.due = now.passed.checked_add(within);
    }

    /// How long to wait for the next checkpoint: the run saves one when it is wanted, or has
    /// announced one within `most`. From now on it is wanted.
    pub(crate) fn wait(&mut self, most: Duration, now: Now) -> Option<Duration> {
        let asks = self.asked.is_some_and(|at| now.passed <= at.saturating_add(ASKS_EVERY));
        let wait = if asks { Some(most) } else { self.announced(most, now) };
        let until = wait.and_then(|wait| now.passed.checked_add(wait));
        self.wanted = self.wanted.max(until);
        wait
    }

    fn announced(&self, most: Duration, now: Now) -> Option<Duration> {
        let until = self.due?.checked_add(LATE)?.checked_sub(now.passed)?;
        (until <= most.saturating_add(LATE)).then(|| until.min(most))
    }

    /// The run asks whether a checkpoint is wanted: for how long it is waited for.
    pub(crate) fn ask(&mut self, now: Now) -> Option<Duration> {
        self.asked = Some(now.passed);
        self.wanted?.checked_sub(now.passed).filter(|left| !left.is_zero())
    }

    /// How long ago the newest was written, if the scheduler is to know now.
    pub(crate) fn note(&mut self, now: Now) -> Option<Duration> {
        let written = self.unnoted?;
        if self.noted.is_some_and(|noted| now.passed < noted.saturating_add(NOTE_EVERY)) {
            return None;
        }
        (self.unnoted, self.noted) = (None, Some(now.passed));
        Some(now.passed.saturating_sub(written))
    }

    /// True if something is left for [`Progress::note`].
    pub(crate) const fn has_unnoted(&self) -> bool {
        self.unnoted.is_some()
    }
}

/// How long ago a checkpoint was written: no longer than what has passed since the one before it,
/// if the clock was set.
fn age(stamp: Stamp, before: Option<Now>, now: Now) -> Duration {
    let by_clock = Duration::from_millis(now.wall_ms.saturating_sub(stamp.written_ms));
    match before {
        Some(before) if now.is_set_since(before) => {
            by_clock.min(now.passed.saturating_sub(before.passed))
        }
        _ => by_clock,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::file::{Storage, verify};

    fn now(passed_s: u64, wall_s: u64) -> Now {
        Now { passed: Duration::from_secs(passed_s), wall_ms: wall_s * 1000 }
    }

    /// Stamps of a file at these moments, in seconds.
    fn stamps(moments: &[u64]) -> Vec<Stamp> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let at = |(bytes, second): (usize, &u64)| {
            fs::write(file.path(), "x".repeat(bytes + 1)).unwrap();
            let open = fs::OpenOptions::new().write(true).open(file.path()).unwrap();
            open.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(*second)).unwrap();
            verify(&open, Storage::Machine).unwrap()
        };
        moments.iter().enumerate().map(at).collect()
    }

    #[test]
    fn checkpoints_that_follow_soon_are_one_note() {
        let [first, second, third] = stamps(&[1005, 1006, 1007])[..] else { panic!() };
        let mut progress = Progress::new(now(0, 1000));
        progress.save(first, Some(10), now(5, 1005)).unwrap();
        assert_eq!(progress.note(now(5, 1005)), Some(Duration::ZERO));
        progress.save(second, Some(20), now(6, 1006)).unwrap();
        progress.save(third, Some(20), now(8, 1008)).unwrap();
        assert!(progress.note(now(8, 1008)).is_none() && progress.has_unnoted());
        assert_eq!(progress.note(now(15, 1015)), Some(Duration::from_secs(8)));
        assert!(progress.note(now(99, 1099)).is_none() && !progress.has_unnoted());
    }

    #[test]
    fn none_goes_back_or_counts_twice() {
        let [older, newer, newest] = stamps(&[1001, 1005, 1010])[..] else { panic!() };
        let mut progress = Progress::new(now(0, 1000));
        progress.save(newer, Some(20), now(5, 1005)).unwrap();
        let mut refused = |stamp, step| progress.save(stamp, step, now(12, 1012)).unwrap_err();
        assert!(refused(newer, Some(30)).contains("not changed"));
        assert!(refused(older, Some(30)).contains("older"));
        assert!(refused(newest, Some(19)).contains("step 19 is before step 20"));
        progress.save(newest, None, now(12, 1012)).unwrap();
        let mut after = |step| progress.save(older, Some(step), now(12, 1012)).unwrap_err();
        assert!(after(19).contains("before step 20"), "one without a step keeps the last");
        progress.lose();
        assert_eq!(progress.note(now(13, 1013)), None, "it is gone before it was noted");
        progress.save(older, Some(1), now(14, 1014)).unwrap();
    }

    #[test]
    fn a_clock_that_is_set_makes_no_checkpoint_older_or_younger() {
        // Set back by an hour between two checkpoints.
        let [first, back] = stamps(&[10_000, 6_460])[..] else { panic!() };
        let mut progress = Progress::new(now(0, 9_990));
        progress.save(first, None, now(10, 10_000)).unwrap();
        assert!(progress.note(now(10, 10_000)).is_some());
        progress.save(back, None, now(62, 6_462)).expect("it is newer");
        assert_eq!(progress.note(now(62, 6_462)), Some(Duration::from_secs(2)));
        // Set forward by an hour after one was written.
        let [first, second] = stamps(&[10_000, 10_030])[..] else { panic!() };
        let mut progress = Progress::new(now(0, 9_990));
        progress.save(first, None, now(10, 10_000)).unwrap();
        assert!(progress.note(now(10, 10_000)).is_some());
        progress.save(second, None, now(41, 13_631)).unwrap();
        assert_eq!(progress.note(now(41, 13_631)), Some(Duration::from_secs(31)), "not an hour");
    }

    #[test]
    fn a_run_that_asks_gets_to_know_that_one_is_wanted_until_it_has_saved() {
        let most = Duration::from_secs(20);
        let [saved] = stamps(&[1001])[..] else { panic!() };
        let mut progress = Progress::new(now(0, 1000));
        assert_eq!(progress.ask(now(1, 1001)), None, "nothing is to stop it");
        assert_eq!(progress.wait(most, now(5, 1005)), Some(most));
        assert_eq!(progress.ask(now(8, 1008)), Some(Duration::from_secs(17)));
        progress.save(saved, None, now(9, 1009)).unwrap();
        assert_eq!(progress.ask(now(10, 1010)), None, "it has saved");
        assert_eq!(progress.wait(most, now(40, 1040)), Some(most), "one may not save in time");
        assert_eq!(progress.ask(now(60, 1060)), None, "then it is stopped");
        assert_eq!(progress.wait(most, now(91, 1091)), None, "one that asks no more saves nothing");
    }

    #[test]
    fn only_a_checkpoint_that_is_seconds_away_is_waited_for() {
        let most = Duration::from_secs(20);
        let mut progress = Progress::new(now(0, 1000));
        assert_eq!(progress.wait(most, now(0, 1000)), None);
        progress.announce(Duration::from_secs(300), now(0, 1000));
        assert_eq!(progress.wait(most, now(0, 1000)), None, "too far away");
        assert_eq!(progress.wait(most, now(290, 1290)), Some(Duration::from_secs(12)));
        assert_eq!(progress.wait(most, now(281, 1281)), Some(most), "no longer than that");
        assert_eq!(progress.wait(most, now(303, 1303)), None, "it did not come");
        let [saved] = stamps(&[1001])[..] else { panic!() };
        progress.announce(Duration::from_secs(5), now(1, 1001));
        progress.save(saved, None, now(1, 1001)).unwrap();
        assert_eq!(progress.wait(most, now(1, 1001)), None, "it has come");
    }
}
