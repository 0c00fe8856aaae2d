//! Subsets of several items, the cheapest first. Owns: the order, and the omission of equal
//! subsets, in which items are replaced by equal ones. Does not know about: the items.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::eviction_cost::EvictionCost;

/// Every non-empty subset, in the order of its total cost. Each is made from a cheaper one, by
/// adding an item or by replacing its last with the next, so no more are made than consumed.
pub(super) struct Choices {
    costs: Vec<EvictionCost>,
    /// Index of the first item after each that is not equal to it.
    after: Vec<usize>,
    made: BinaryHeap<Reverse<(EvictionCost, Vec<usize>)>>,
    most: usize,
}

impl Choices {
    /// Subsets of items with these costs, sorted by cost, of at most `most` items; items of one
    /// kind are equal, and adjacent.
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
