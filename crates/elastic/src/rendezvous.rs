//! Groups of workers that train together (worlds). Owns: generations of the world, ranks, when a
//! world changes. Does not know about: addresses, or how a worker learns of a world.
//!
//! Unlike polling for a rank, a change is decided once and pushed. A world changes as soon as a
//! member of it is gone, because the others cannot continue; joins are gathered for a moment, so
//! that two hundred joins make one change and not two hundred.

use serde::{Deserialize, Serialize};
use units::Instant;

use crate::task::WorkerId;

/// Sizes of a world, and the waits before one changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorldLimits {
    /// Minimum number of members.
    pub min: u32,
    /// Maximum number of members.
    pub max: u32,
    /// Sizes of a world are multiples of this number.
    pub unit: u32,
    /// How long the first rendezvous waits for `max` members once it has `min`, in milliseconds.
    pub first_ms: u64,
    /// How long joins are gathered while there is a world, in milliseconds.
    pub gather_ms: u64,
}

/// Limits that no world can keep to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RendezvousError {
    /// No allowed size lies between `min` and `max`.
    #[error("no multiple of unit {unit} lies between min {min} and max {max}, both at least 1")]
    Sizes {
        /// Minimum, as given.
        min: u32,
        /// Maximum, as given.
        max: u32,
        /// Unit, as given.
        unit: u32,
    },
}

/// Workers that train together, by rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct World {
    /// Rises with every change.
    pub generation: u64,
    /// Members by rank. Members of the previous world keep their order, so rank 0 is always the
    /// oldest: it has the newest state to pass on.
    pub members: Vec<WorkerId>,
}

/// The membership of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Rendezvous {
    limits: WorldLimits,
    world: World,
    /// Workers in the order in which they joined, with the time.
    waiting: Vec<(WorkerId, Instant)>,
    /// True if a member of the world is gone.
    broken: bool,
}

impl Rendezvous {
    /// Creates the membership of a job that begins.
    ///
    /// # Errors
    ///
    /// [`RendezvousError`], if no size is allowed.
    pub fn new(limits: WorldLimits) -> Result<Self, RendezvousError> {
        let WorldLimits { min, max, unit, .. } = limits;
        if min == 0 || unit == 0 || max / unit * unit < min {
            return Err(RendezvousError::Sizes { min, max, unit });
        }
        let world = World { generation: 0, members: Vec::new() };
        Ok(Self { limits, world, waiting: Vec::new(), broken: false })
    }

    /// A job whose world was decided elsewhere: these are those of its members that are still
    /// there.
    ///
    /// # Errors
    ///
    /// [`RendezvousError`], if no size is allowed.
    pub fn resume(
        limits: WorldLimits,
        world: World,
        is_whole: bool,
    ) -> Result<Self, RendezvousError> {
        Ok(Self { world, broken: !is_whole, ..Self::new(limits)? })
    }

    /// A member restarts, so all have to: the next world has the same members by the same ranks.
    pub fn renew(&mut self, worker: WorkerId) {
        self.broken |= self.world.members.contains(&worker);
    }

    /// The world now; without members while there are too few.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Workers that are there and not in the world.
    pub fn waiting(&self) -> impl Iterator<Item = WorkerId> {
        self.waiting.iter().map(|(worker, _)| *worker)
    }

    /// A worker has joined and is ready. A known worker changes nothing.
    pub fn join(&mut self, worker: WorkerId, now: Instant) {
        let known = self.world.members.contains(&worker) || self.waiting().any(|w| w == worker);
        if !known {
            self.waiting.push((worker, now));
        }
    }

    /// A worker is gone, or has no more work.
    pub fn leave(&mut self, worker: WorkerId) {
        self.waiting.retain(|(waiting, _)| *waiting != worker);
        self.broken |= self.world.members.contains(&worker);
        self.world.members.retain(|member| *member != worker);
    }

    /// Takes other sizes from now on.
    ///
    /// # Errors
    ///
    /// [`RendezvousError`], if no size is allowed; the old limits stay.
    pub fn limit(&mut self, limits: WorldLimits) -> Result<(), RendezvousError> {
        self.limits = Self::new(limits)?.limits;
        Ok(())
    }

    /// Time at which [`Self::turn`] may change the world without another event.
    #[must_use]
    pub fn wake_at(&self) -> Option<Instant> {
        let WorldLimits { min, unit, first_ms, gather_ms, .. } = self.limits;
        let (from, span_ms) = if self.world.members.is_empty() {
            // The join that made them enough.
            (min.div_ceil(unit) * unit - 1, first_ms)
        } else {
            (0, gather_ms)
        };
        let (_, since) = self.waiting.get(from as usize)?;
        self.grows().then(|| since.plus_ms(span_ms))
    }

    /// The world that takes the place of the present one now, if it changes.
    pub fn turn(&mut self, now: Instant) -> Option<&World> {
        let due = self.wake_at().is_some_and(|at| at <= now);
        let full = self.size(self.there()) == self.size(self.limits.max) && self.grows();
        let first_and_full = full && self.world.members.is_empty();
        let too_large = self.count() > self.limits.max;
        if !self.broken && !due && !first_and_full && !too_large {
            return None;
        }
        self.install();
        Some(&self.world)
    }

    fn install(&mut self) {
        let size = self.size(self.there()) as usize;
        let joining: Vec<_> = self.waiting.drain(..).collect();
        let members = std::mem::take(&mut self.world.members);
        // Members that must step back wait again in front of the others.
        let all = members.into_iter().map(|member| (member, Instant(0))).chain(joining);
        let mut all: Vec<_> = all.collect();
        self.waiting = all.split_off(size.min(all.len()));
        self.world.members = all.into_iter().map(|(worker, _)| worker).collect();
        self.world.generation += 1;
        self.broken = false;
    }

    /// True if the world would be larger with those who wait.
    fn grows(&self) -> bool {
        self.size(self.there()) > self.size(self.count())
            || (self.world.members.is_empty() && self.size(self.there()) > 0)
    }

    /// The largest size that so many workers can be.
    fn size(&self, there: u32) -> u32 {
        let WorldLimits { min, max, unit, .. } = self.limits;
        let size = there.min(max) / unit * unit;
        if size < min { 0 } else { size }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.world.members.len()).unwrap_or(u32::MAX)
    }

    fn there(&self) -> u32 {
        let waiting = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        self.count().saturating_add(waiting)
    }
}
