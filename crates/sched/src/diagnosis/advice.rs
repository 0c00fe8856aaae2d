//! Changes that would let a workload start. Owns: trying a change out, and the search for the
//! smallest of a kind; `candidates` selects the changes. Every change is made on a copy of the
//! cluster, where the scheduler decides until nothing changes. Nothing is guessed.

mod candidates;

use std::collections::BTreeSet;

use model::{Cluster, WorkloadId};
use units::{Instant, Resources};

use crate::{Policy, Profile, Step, cycle};
use reasons::diagnosis::{Advice, Change, Part, apply_change};

/// Maximum number of decisions for one diagnosis.
const TRIES_MAX: u32 = 150;
/// Maximum number of decisions after a change until one changes nothing.
const CYCLES_TO_REST_MAX: u32 = 12;
/// Number of node trials in all these decisions after which no more are made.
const TRIALS_MAX: u64 = 300_000;
/// Maximum number of nodes and pods copied for one diagnosis.
const COPIED_MAX: usize = 4_000_000;

/// Result of the search.
pub(super) struct Found {
    pub(super) advice: Vec<Advice>,
    pub(super) tries: u32,
    pub(super) complete: bool,
}

/// A waiting workload, in a cluster in which a decision changes nothing.
#[derive(Clone, Copy)]
pub(super) struct Base<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) id: WorkloadId,
    /// Request of its next pods.
    pub(super) asked: Resources,
    pub(super) now: Instant,
    pub(super) policy: &'a Policy,
}

/// The changes that let a workload start, its own first. `parts` are the nodes on which it does not
/// fit, `times` the times at which something changes by itself.
pub(super) fn advice(base: Base<'_>, parts: &[Part], times: &[Instant]) -> Found {
    let Base { cluster, id, asked, now, policy } = base;
    let copied = cluster.nodes().len() + cluster.pods().len();
    let affordable = u32::try_from(COPIED_MAX / copied.max(1)).unwrap_or(u32::MAX);
    let tries_max = affordable.clamp(1, TRIES_MAX);
    let found = Vec::new();
    let mut what_if =
        WhatIf { cluster, id, asked, now, policy, trials: 0, tries: 0, tries_max, found };
    if !parts.is_empty() {
        what_if.smaller();
        what_if.otherwise();
        what_if.elsewhere(parts);
    }
    if cluster.workloads()[id].pods.iter().any(|pod| cluster.gated().contains(pod)) {
        what_if.consider(&Change::Ungate);
    }
    what_if.later(times);
    if !parts.is_empty() {
        what_if.more();
        what_if.nodes(parts);
        what_if.without_others();
    }
    Found { complete: what_if.tries < tries_max, tries: what_if.tries, advice: what_if.found }
}

/// The cluster, and the results of trials on copies of it.
struct WhatIf<'a> {
    cluster: &'a Cluster,
    id: WorkloadId,
    asked: Resources,
    now: Instant,
    policy: &'a Policy,
    trials: u64,
    tries: u32,
    tries_max: u32,
    found: Vec<Advice>,
}

impl WhatIf<'_> {
    /// Tries a change: the workload must get a place and keep it through further decisions. Returns
    /// the advice with the number of disturbed workloads; `None` if it does not start.
    fn starts(&mut self, change: &Change) -> Option<Advice> {
        let mut copy = self.cluster.clone();
        let (id, now) = apply_change(change, &mut copy, self.id, self.now)?;
        let before = copy.workloads()[id].placed;
        let mut disturbed = BTreeSet::new();
        for _ in 0..CYCLES_TO_REST_MAX {
            if self.tries == self.tries_max {
                return None;
            }
            self.tries += 1;
            let plan = cycle(&mut copy, now, self.policy);
            // A trial of profile `kai` visits every node.
            let kai = matches!(self.policy.profile, Profile::Kai(_));
            let nodes = if kai { copy.nodes().len() as u64 } else { 1 };
            self.trials += plan.stats.trials.saturating_mul(nodes);
            if self.trials > TRIALS_MAX {
                self.tries_max = self.tries;
            }
            let steps = plan.steps;
            if copy.workloads()[id].placed <= before {
                return None;
            }
            if steps.is_empty() {
                let disturbs = u32::try_from(disturbed.len()).unwrap_or(u32::MAX);
                let workload = self.reference(self.id);
                return Some(Advice { workload, change: change.clone(), disturbs });
            }
            for step in steps {
                if let Step::Evict { pod, .. } | Step::Move { pod, .. } | Step::Resize { pod, .. } =
                    step
                {
                    disturbed.insert(copy.pods()[pod].workload);
                    copy.vacate(pod);
                }
            }
        }
        None
    }

    fn consider(&mut self, change: &Change) -> bool {
        let advice = self.starts(change);
        let helps = advice.is_some();
        self.found.extend(advice);
        helps
    }

    /// The least `n` in `low..=high` with whose change the workload starts, if it does with `high`.
    /// A larger change is assumed to help no less.
    fn least(&mut self, low: u64, high: u64, change: impl Fn(u64) -> Change) -> bool {
        if low > high {
            return false;
        }
        let Some(mut best) = self.starts(&change(high)) else { return false };
        let (mut low, mut high) = (low, high);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.starts(&change(middle)) {
                Some(advice) => (high, best) = (middle, advice),
                None => low = middle + 1,
            }
        }
        self.found.push(best);
        true
    }

    /// The largest `n` in `low..=high` with whose change the workload starts, if `low` lets it.
    fn most(&mut self, low: u64, high: u64, change: impl Fn(u64) -> Change) -> bool {
        low <= high && self.least(0, high - low, |less| change(high - less))
    }
}
