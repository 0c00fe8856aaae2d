//! Gate for updates of the model. Owns: versions, which gradients are stale or duplicates, when
//! several gradients become an update. Does not know about: the gradients; the parameter server
//! adds them up and acts on the verdict.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::task::WorkerId;

/// How updates are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The mean of `gradients` gradients is an update. A gradient of a version more than
    /// `tolerance` behind is refused.
    Synchronous {
        /// Gradients to an update (`--grads_to_wait`), at least 1.
        gradients: u32,
        /// `--sync_version_tolerance`.
        tolerance: u64,
    },
    /// Each gradient is an update.
    Asynchronous {
        /// A gradient that is more versions behind is refused (`--staleness_max`); `None`: none is.
        staleness_max: Option<u64>,
    },
}

/// Identity of a push: it may arrive twice, and one of a worker's earlier life late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    /// Worker that pushes.
    pub worker: WorkerId,
    /// Its life: a worker that reconnects starts a new one.
    pub generation: u32,
    /// Its number in this life, rising from 1.
    pub sequence: u64,
    /// The version of the model that the gradient was computed on.
    pub version: u64,
}

/// Decision about a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Add it; an update follows when there are enough. `held` gradients wait, this one included.
    Held {
        /// Gradients that wait.
        held: u32,
    },
    /// Add it and update: the mean of `of` gradients makes this version. `staleness` is how many
    /// versions behind the gradient was; its learning rate may be divided by it.
    Update {
        /// The new version.
        version: u64,
        /// Gradients in the update.
        of: u32,
        /// Versions that the gradient was behind, at least 0.
        staleness: u64,
    },
    /// Compute it again, on this version at least.
    Stale {
        /// The version now.
        version: u64,
    },
    /// The push arrived before and counts already.
    Duplicate {
        /// The version now.
        version: u64,
    },
    /// The push is of an earlier life of its worker, whose work was given to another.
    Superseded {
        /// The life that counts.
        generation: u32,
    },
    /// The push names a version that does not exist.
    FromTheFuture {
        /// The version now.
        version: u64,
    },
}

/// The gate before a model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Gate {
    mode: Mode,
    version: u64,
    /// Pushes that wait to be an update, in the order of their arrival.
    held: Vec<Push>,
    /// The last push of each worker that counts: its life and number.
    last: BTreeMap<WorkerId, (u32, u64)>,
    /// Numbers that were refused as stale and may come again, computed on a newer version.
    stale: BTreeSet<(WorkerId, u64)>,
    /// Workers whose next gradient will count, with the version that they compute it on.
    admitted: BTreeMap<WorkerId, u64>,
}

impl Gate {
    /// Gate for a model of this version.
    #[must_use]
    pub fn new(mode: Mode, version: u64) -> Self {
        let (last, stale, admitted) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { mode, version, held: Vec::new(), last, stale, admitted }
    }

    /// The version of the model.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// True if a gradient that this worker computes on the present version will count. Where an
    /// update is made of several, it takes one of the places in the next one, and keeps it until it
    /// pushes or is released; if all are taken it has to wait. Where staleness has a bound, it has
    /// to wait while its gradient could make that of another worker too old. A job whose workers
    /// compute only after that rejects nothing.
    pub fn admit(&mut self, worker: WorkerId) -> bool {
        let admits = self.admitted.contains_key(&worker)
            || match self.mode {
                Mode::Synchronous { gradients, .. } => {
                    let taken = u64::from(self.held_count()) + self.admitted.len() as u64;
                    taken < u64::from(gradients)
                }
                Mode::Asynchronous { staleness_max: None } => return true,
                Mode::Asynchronous { staleness_max: Some(max) } => {
                    // All other admitted workers, and this one, may push before each of them.
                    let others = self.admitted.len() as u64;
                    self.admitted.values().all(|begun| self.version - begun + others <= max)
                }
            };
        if admits {
            self.admitted.insert(worker, self.version);
        }
        admits
    }

    /// A worker will not push: its place is free. Returns whether it had one.
    pub fn release(&mut self, worker: WorkerId) -> bool {
        self.admitted.remove(&worker).is_some()
    }

    /// Judges a push.
    pub fn push(&mut self, push: Push) -> Verdict {
        let version = self.version;
        let (generation, sequence) = self.last.get(&push.worker).copied().unwrap_or_default();
        if push.generation < generation {
            return Verdict::Superseded { generation };
        }
        let again = self.stale.contains(&(push.worker, push.sequence));
        if push.generation == generation && push.sequence <= sequence && !again {
            return Verdict::Duplicate { version };
        }
        self.release(push.worker);
        if push.version > version {
            return Verdict::FromTheFuture { version };
        }
        let staleness = version - push.version;
        let staleness_max = match self.mode {
            Mode::Synchronous { tolerance, .. } => Some(tolerance),
            Mode::Asynchronous { staleness_max } => staleness_max,
        };
        if staleness_max.is_some_and(|max| staleness > max) {
            self.stale.insert((push.worker, push.sequence));
            return Verdict::Stale { version };
        }
        self.stale.remove(&(push.worker, push.sequence));
        self.last.insert(push.worker, (push.generation, push.sequence.max(sequence)));
        self.held.push(push);
        match self.mode {
            Mode::Synchronous { gradients, .. } if self.held_count() < gradients => {
                Verdict::Held { held: self.held_count() }
            }
            _ => {
                let of = self.held_count();
                Verdict::Update { version: self.update(), of, staleness }
            }
        }
    }

    /// A worker connects again: what its earlier life still sends does not count any more. Returns
    /// the number of the new life.
    pub fn supersede(&mut self, worker: WorkerId) -> u32 {
        let last = self.last.entry(worker).or_default();
        *last = (last.0 + 1, 0);
        self.stale.retain(|(of, _)| *of != worker);
        last.0
    }

    /// Makes an update of the gradients that wait although they are too few: nothing else will
    /// come, because the data are at their end or the last worker leaves. Returns the new version
    /// and how many gradients are in it; nothing if none waits.
    pub fn flush(&mut self) -> Option<(u64, u32)> {
        let of = self.held_count();
        (of > 0).then(|| (self.update(), of))
    }

    /// Takes the waiting pushes, which are lost with the server that held them. Their records are
    /// not in the model and have to be opened again.
    pub fn reopen(&mut self) -> Vec<Push> {
        std::mem::take(&mut self.held)
    }

    fn held_count(&self) -> u32 {
        u32::try_from(self.held.len()).unwrap_or(u32::MAX)
    }

    fn update(&mut self) -> u64 {
        self.held.clear();
        if let Mode::Synchronous { .. } = self.mode {
            self.admitted.clear();
        }
        self.version += 1;
        self.version
    }
}
