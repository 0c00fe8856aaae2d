//! Checkpoint times of a training. Owns: the reports to the scheduler from the status of the
//! master, and their rate. Does not know about: the contents of a checkpoint.

use std::time::Duration;

/// Minimum time between two reports to the scheduler, which counts lost work in minutes: each is a
/// row of the database.
const NOTE_EVERY: Duration = Duration::from_secs(10);

/// A moment: the monotonic time since some start, and the time of the machine's clock, which may be
/// set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) passed: Duration,
    pub(crate) wall_ms: u64,
}

/// The checkpoints of one training.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    /// Newest version that has a checkpoint.
    version: Option<u64>,
    /// When this version was first seen; `None` for the first version seen, whose age is not known.
    saved: Option<Moment>,
    noted: Option<Duration>,
    is_new: bool,
}

impl Checkpoints {
    /// Records that the master has a checkpoint of this version. Returns its age in milliseconds if
    /// a report to the scheduler is due. The age of the version that is seen first is not known.
    pub(crate) fn see(&mut self, version: u64, now: Moment) -> Option<u64> {
        let before = self.version.replace(version);
        if before.is_some_and(|before| before != version) {
            (self.saved, self.is_new) = (Some(now), true);
        }
        let is_soon = |noted: Duration| now.passed < noted.saturating_add(NOTE_EVERY);
        if !self.is_new || self.noted.is_some_and(is_soon) {
            return None;
        }
        (self.is_new, self.noted) = (false, Some(now.passed));
        let ago = now.passed.saturating_sub(self.saved?.passed);
        Some(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX))
    }

    /// Time of the newest checkpoint by the machine's clock, in milliseconds.
    pub(crate) fn saved_ms(&self) -> Option<u64> {
        self.saved.map(|saved| saved.wall_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moment after `ms` milliseconds, with the clock an hour ahead.
    fn at(ms: u64) -> Moment {
        set(ms, 3_600_000)
    }

    fn set(ms: u64, ahead_ms: u64) -> Moment {
        Moment { passed: Duration::from_millis(ms), wall_ms: ms + ahead_ms }
    }

    #[test]
    fn a_new_one_is_noted_and_those_that_follow_soon_are_one_note() {
        let mut checkpoints = Checkpoints::default();
        assert_eq!(checkpoints.see(50, at(0)), None, "it may be old");
        assert_eq!(checkpoints.saved_ms(), None);
        assert_eq!(checkpoints.see(100, at(1_000)), Some(0));
        assert_eq!(checkpoints.see(100, at(2_000)), None);
        assert_eq!(checkpoints.see(150, at(3_000)), None, "too soon after the last note");
        assert_eq!(checkpoints.saved_ms(), Some(3_603_000));
        assert_eq!(checkpoints.see(150, at(11_000)), Some(8_000));
        assert_eq!(checkpoints.see(150, at(99_000)), None);
    }

    #[test]
    fn a_clock_that_is_set_makes_none_older_and_keeps_none_from_being_noted() {
        for ahead_ms in [0, 7_200_000] {
            let mut checkpoints = Checkpoints::default();
            checkpoints.see(50, at(0));
            assert_eq!(checkpoints.see(100, at(1_000)), Some(0));
            assert_eq!(checkpoints.see(150, at(3_000)), None, "too soon after the last note");
            assert_eq!(checkpoints.see(150, set(11_000, ahead_ms)), Some(8_000));
        }
    }

    #[test]
    fn one_that_goes_back_has_the_progress_of_then() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.see(100, at(0));
        assert_eq!(checkpoints.see(50, at(5_000)), Some(0), "what came after is lost already");
    }
}
