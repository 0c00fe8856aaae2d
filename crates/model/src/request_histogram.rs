//! Histogram of requests: the number of pods that should run, by request and constraints. Owns: the
//! counts. They predict the requests of future pods.

use std::collections::BTreeMap;

use crate::{ConstraintsId, PodRequest};

/// Number of pods that should run, waiting or running, by shape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestHistogram {
    shapes: BTreeMap<(PodRequest, ConstraintsId), u64>,
    pods: u64,
}

impl RequestHistogram {
    pub(crate) fn change(&mut self, shape: (PodRequest, ConstraintsId), wants: bool) {
        let count = self.shapes.entry(shape).or_insert(0);
        let step = |count: &mut u64| if wants { *count += 1 } else { *count -= 1 };
        step(count);
        step(&mut self.pods);
        if *count == 0 {
            self.shapes.remove(&shape);
        }
    }

    /// Replaces ids of constraints by new ones.
    pub(crate) fn rename(&mut self, ids: &BTreeMap<ConstraintsId, ConstraintsId>) {
        let renamed =
            |((request, id), pods)| ((request, ids.get(&id).copied().unwrap_or(id)), pods);
        self.shapes = std::mem::take(&mut self.shapes).into_iter().map(renamed).collect();
    }

    /// Number of pods.
    #[must_use]
    pub const fn pods(&self) -> u64 {
        self.pods
    }

    /// Each shape and its number of pods.
    pub fn iter(&self) -> impl Iterator<Item = (PodRequest, ConstraintsId, u64)> + use<'_> {
        self.shapes.iter().map(|(&(request, constraints), &pods)| (request, constraints, pods))
    }
}
