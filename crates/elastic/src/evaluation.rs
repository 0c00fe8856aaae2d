//! Measuring versions of the model while it is trained. Owns: which version is measured when, and
//! that each piece of the data counts once. Does not know about: what a metric is; what workers
//! report is kept and handed out in the order of the data, so that sums come out the same.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// A version that was measured: what was reported for each piece of the data, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluated<R> {
    /// The version.
    pub version: u64,
    /// The reports.
    pub reports: Vec<R>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Round<R> {
    version: u64,
    /// Pieces by their place. A piece that comes back has another number and the same place.
    open: BTreeSet<u64>,
    reports: BTreeMap<u64, R>,
}

/// The measurements of a job. One version is measured at a time; while it is, of the versions that
/// come due only the newest waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Evaluations<R> {
    /// Number of versions between two measurements; 0 for never.
    every: u64,
    newest: u64,
    waiting: Option<u64>,
    round: Option<Round<R>>,
}

impl<R> Evaluations<R> {
    /// Measures every `every` versions; 0 for never.
    #[must_use]
    pub fn new(every: u64) -> Self {
        Self { every, newest: 0, waiting: None, round: None }
    }

    /// Records that the model has reached a version. Returns the version to measure now, if one is
    /// due: the caller makes tasks of it and calls [`Self::begin`].
    pub fn reach(&mut self, version: u64) -> Option<u64> {
        if self.every == 0 || version / self.every <= self.newest / self.every {
            self.newest = self.newest.max(version);
            return None;
        }
        self.newest = version;
        self.waiting = Some(version);
        self.due()
    }

    /// The version that is to be measured now, if one is.
    pub fn due(&mut self) -> Option<u64> {
        if self.round.is_some() { None } else { self.waiting.take() }
    }

    /// A version is measured in so many pieces, numbered by their place in the data.
    pub fn begin(&mut self, version: u64, pieces: u64) {
        self.round = Some(Round { version, open: (0..pieces).collect(), reports: BTreeMap::new() });
    }

    /// A piece of the version that is measured was reported. A second report of a piece, or one of
    /// another version, changes nothing. Returns the whole, with the last piece.
    pub fn report(&mut self, version: u64, piece: u64, report: R) -> Option<Evaluated<R>> {
        let round = self.round.as_mut().filter(|round| round.version == version)?;
        if round.open.remove(&piece) {
            round.reports.insert(piece, report);
        }
        if !round.open.is_empty() {
            return None;
        }
        let Round { version, reports, .. } = self.round.take()?;
        Some(Evaluated { version, reports: reports.into_values().collect() })
    }

    /// The model went back to this version: what is being measured is dropped with the tasks of
    /// it, and versions from here on come due again.
    pub fn rewind(&mut self, version: u64) {
        self.newest = self.newest.min(version);
        self.waiting = None;
        self.round = None;
    }
}
