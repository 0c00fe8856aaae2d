//! When a training last saved its progress. Owns: from what its master says to what the scheduler
//! gets to know, and how often. Does not know about: what is in a checkpoint.

/// Between two notes to the scheduler, which counts lost work in minutes: each is a row of the
/// database.
const NOTE_EVERY_MS: u64 = 10_000;

/// The checkpoints of one training.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    /// The newest version of which there is one.
    version: Option<u64>,
    /// When that was seen first.
    saved_ms: Option<u64>,
    noted_ms: Option<u64>,
    is_new: bool,
}

impl Checkpoints {
    /// The master has a checkpoint of this version. Returns how long ago it was saved, if the
    /// scheduler is to know. When the one was saved that is seen first is not known.
    pub(crate) fn see(&mut self, version: u64, now_ms: u64) -> Option<u64> {
        let before = self.version.replace(version);
        if before.is_some_and(|before| before != version) {
            (self.saved_ms, self.is_new) = (Some(now_ms), true);
        }
        // A clock that was set back says nothing of how long ago the last note was.
        let is_soon = |noted: u64| (noted..noted + NOTE_EVERY_MS).contains(&now_ms);
        let is_due = !self.noted_ms.is_some_and(is_soon);
        if !self.is_new || !is_due {
            return None;
        }
        (self.is_new, self.noted_ms) = (false, Some(now_ms));
        self.saved_ms.map(|saved| now_ms.saturating_sub(saved))
    }

    /// When the newest one was saved.
    pub(crate) const fn saved_ms(&self) -> Option<u64> {
        self.saved_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_one_is_noted_and_those_that_follow_soon_are_one_note() {
        let mut checkpoints = Checkpoints::default();
        assert_eq!(checkpoints.see(50, 0), None, "it may be old");
        assert_eq!(checkpoints.saved_ms(), None);
        assert_eq!(checkpoints.see(100, 1_000), Some(0));
        assert_eq!(checkpoints.see(100, 2_000), None);
        assert_eq!(checkpoints.see(150, 3_000), None, "too soon after the last note");
        assert_eq!(checkpoints.saved_ms(), Some(3_000));
        assert_eq!(checkpoints.see(150, 11_000), Some(8_000));
        assert_eq!(checkpoints.see(150, 99_000), None);
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_none_from_being_noted() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.see(50, 3_600_000);
        assert_eq!(checkpoints.see(100, 3_601_000), Some(0));
        assert_eq!(checkpoints.see(150, 2_000), Some(0));
        assert_eq!(checkpoints.see(200, 3_000), None, "too soon after that");
    }

    #[test]
    fn one_that_goes_back_has_the_progress_of_then() {
        let mut checkpoints = Checkpoints::default();
        checkpoints.see(100, 0);
        assert_eq!(checkpoints.see(50, 5_000), Some(0), "what came after is lost already");
    }
}
