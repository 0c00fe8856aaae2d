//! Workers that did not reach each other. Owns: that each pair is reported once. Does not know
//! about: the consequences.

use std::collections::BTreeSet;

use elastic_proto::v1::{Parting, StatusReply};

/// Reported pairs of one training.
#[derive(Debug, Default)]
pub(crate) struct Partings {
    /// Ids of the workers in the last status of the master; `None` before the first.
    known: Option<BTreeSet<u32>>,
}

impl Partings {
    /// Records the status of a master. Returns its new pairs. Those of the first status were
    /// reported before, or happened while no server was running.
    pub(crate) fn see<'a>(&mut self, status: &'a StatusReply) -> Vec<&'a Parting> {
        let named = status.partings.iter().map(|parting| parting.worker_id).collect();
        let Some(known) = self.known.replace(named) else { return Vec::new() };
        let is_new = |parting: &&Parting| !known.contains(&parting.worker_id);
        status.partings.iter().filter(is_new).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_is_reported_once_and_none_of_before() {
        let status = |workers: &[u32]| {
            let parting = |worker_id: &u32| Parting { worker_id: *worker_id, ..Parting::default() };
            let partings = workers.iter().map(parting).collect();
            StatusReply { partings, ..StatusReply::default() }
        };
        let mut partings = Partings::default();
        let mut see = |workers: &[u32]| {
            let status = status(workers);
            let new = partings.see(&status);
            new.into_iter().map(|parting| parting.worker_id).collect::<Vec<_>>()
        };
        assert!(see(&[]).is_empty());
        assert_eq!(see(&[1]), [1]);
        assert!(see(&[1]).is_empty());
        assert_eq!(see(&[1, 5, 4]), [5, 4]);
        let mut next = Partings::default();
        assert!(next.see(&status(&[1, 4])).is_empty(), "they were reported before");
        assert_eq!(next.see(&status(&[1, 4, 6])).len(), 1);
    }
}
