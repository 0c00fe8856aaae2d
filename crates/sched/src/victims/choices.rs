//! Choices of some of several things, the cheapest first. Owns: the order, and that of things that are
//! alike no two choices of as many are made. Does not know what is chosen.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::eviction_cost::EvictionCost;

/// Every choice of at least one of some, in the order of what they cost together. Each is made from a
/// cheaper one, by one more or by the next in place of its last, so no more are made than are asked for.
pub(super) struct Choices {
    costs: Vec<EvictionCost>,
    /// The first after each that is not like it.
    after: Vec<usize>,
    made: BinaryHeap<Reverse<(EvictionCost, Vec<usize>)>>,
    most: usize,
}

impl Choices {
    /// Of things with these costs, the cheapest first, at most so many at once; those of one kind are
    /// alike, and side by side.
    pub(super) fn new<K: PartialEq>(
        of: impl IntoIterator<Item = (EvictionCost, K)>,
        most: usize,
    ) -> Self {
        let (costs, kinds): (Vec<_>, Vec<_>) = of.into_iter().unzip();
        debug_assert!(costs.is_sorted(), "the cheapest first");
        let last = |kind: &K| kinds.iter().rposition(|other| other == kind);
        let after = kinds.iter().filter_map(|kind| Some(last(kind)? + 1)).collect();
        let first = costs.first().map(|&cost| Reverse((cost, vec![0])));
        Self { made: first.into_iter().collect(), costs, after, most }
    }
}

impl Iterator for Choices {
    type Item = (EvictionCost, Vec<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((cost, chosen)) = self.made.pop()?;
        let (&last, others) = chosen.split_last()?;
        let next = [(chosen.as_slice(), last + 1), (others, self.after[last])];
        let is_one =
            |(with, at): &(&[usize], usize)| with.len() < self.most && *at < self.costs.len();
        for (with, at) in next.into_iter().filter(is_one) {
            let all: Vec<usize> = with.iter().copied().chain([at]).collect();
            let costs = all.iter().map(|&at| self.costs[at]);
            let cost = costs.fold(EvictionCost::NOTHING, EvictionCost::and);
            self.made.push(Reverse((cost, all)));
        }
        Some((cost, chosen))
    }
}
