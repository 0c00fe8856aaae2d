//! Priorities of queues, which a scenario gives as numbers, as ranks. Owns: that the mapping keeps
//! their order.

use std::collections::{BTreeMap, BTreeSet};

use spec::Rank;

use crate::scenario::{Queue, Scenario};

/// The rank of each priority.
#[derive(Debug, Clone)]
pub(crate) struct Ranks(BTreeMap<u32, Rank>);

/// Maps the number of each rank to the rank.
impl Default for Ranks {
    fn default() -> Self {
        Self(Rank::ALL.into_iter().map(|rank| (rank.value(), rank)).collect())
    }
}

impl Ranks {
    /// The ranks of the priorities that a scenario gives. Numbers that are not those of a rank are
    /// mapped to the next ranks below or above the default one.
    ///
    /// # Errors
    /// The scenario has more priorities than there are ranks.
    pub(super) fn of_scenario(scenario: &Scenario) -> Result<Self, String> {
        let own = |queue: &Queue| {
            let pools = queue.pools.values().map(|share| share.priority);
            pools.chain([queue.priority]).flatten().collect::<Vec<_>>()
        };
        let changes = scenario.steps.iter().filter_map(|step| step.quota.as_ref()?.priority);
        let all: BTreeSet<u32> =
            scenario.queues.iter().flat_map(|queue| own(queue)).chain(changes).collect();
        let ranks = Self::default();
        if all.iter().all(|priority| ranks.0.contains_key(priority)) {
            return Ok(ranks);
        }
        let usual = Rank::default();
        let (low, high): (Vec<_>, Vec<_>) = Rank::ALL.into_iter().partition(|rank| *rank < usual);
        let high = &high[1..];
        let below: Vec<_> = all.iter().filter(|&&priority| priority < usual.value()).collect();
        let above: Vec<_> = all.iter().filter(|&&priority| priority > usual.value()).collect();
        if below.len() > low.len() || above.len() > high.len() {
            return Err(format!(
                "queues have {} different priorities below {} and {} above; at most {} and {} are \
                 allowed",
                below.len(),
                usual.value(),
                above.len(),
                low.len(),
                high.len()
            ));
        }
        let low = low[low.len() - below.len()..].iter();
        let pairs = below.into_iter().zip(low).chain(above.into_iter().zip(high));
        let pairs = pairs.map(|(&priority, &rank)| (priority, rank));
        Ok(Self(pairs.chain([(usual.value(), usual)]).collect()))
    }

    /// The rank of a priority.
    pub(super) fn of(&self, priority: u32) -> Result<Rank, String> {
        self.0.get(&priority).copied().ok_or_else(|| {
            let all: Vec<_> = self.0.keys().map(ToString::to_string).collect();
            format!("`priority` is {priority}; a project has one of {}", all.join(", "))
        })
    }
}
