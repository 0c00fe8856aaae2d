//! Transactions: changes of places that are tried, and rolled back or committed. Owns: the one
//! mutation of places, its log, and that a rollback restores the old revisions.

use smallvec::SmallVec;

use super::{Change, Checkpoint};
use crate::{Cluster, DeviceShare, NodeId, Placement, PodBinding, PodId};

/// Revisions of the nodes and the state that a change touched, before and after it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Revisions {
    state: (u64, u64),
    nodes: SmallVec<[(NodeId, u64, u64); 2]>,
}

fn places_of(binding: &PodBinding) -> impl Iterator<Item = &Placement> {
    binding.current.iter().chain(&binding.next)
}

/// The one mutation of places, and transactions of it.
impl Cluster {
    /// Replaces a pod's binding. The caller ensures that the place has room; [`Cluster::commit`]
    /// checks it.
    pub fn set_binding(&mut self, pod: PodId, binding: PodBinding) {
        let mut revisions =
            Revisions { state: (self.tracker.revision(), 0), ..Revisions::default() };
        if self.recording {
            let places = [&self.pods[pod].binding, &binding].into_iter().flat_map(places_of);
            let nodes = places.map(|place| (place.node, self.revision(place.node), 0));
            revisions.nodes = nodes.collect();
        }
        let waited = self.pods[pod].waits();
        let asked_in = self.asks_in(pod);
        let before = self.account_binding(pod, binding);
        self.asks_elsewhere(pod, asked_in);
        self.index(pod, waited);
        self.note(self.pods[pod].workload);
        if self.recording {
            self.originals.entry(pod).or_insert_with(|| before.clone());
            self.log.push(Change { pod, before });
            revisions.state.1 = self.tracker.revision();
            revisions.nodes.iter_mut().for_each(|(node, _, after)| *after = self.revision(*node));
            self.log_revisions.push(revisions);
        }
    }

    /// Begins a transaction.
    ///
    /// # Panics
    /// When one is open: transactions do not nest, checkpoints do.
    pub fn begin(&mut self) {
        assert!(!self.recording, "one transaction at a time");
        self.recording = true;
        self.tracker.watch_holdings(true);
    }

    /// The present position of the open transaction.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.log.len())
    }

    /// Every binding that was set since a checkpoint of the open transaction, in order.
    #[must_use]
    pub fn changes_since(&self, checkpoint: Checkpoint) -> &[Change] {
        &self.log[checkpoint.0..]
    }

    /// Pods whose binding was set since a checkpoint of the open transaction.
    pub fn changed_since(&self, checkpoint: Checkpoint) -> impl Iterator<Item = PodId> + use<'_> {
        self.changes_since(checkpoint).iter().map(|change| change.pod)
    }

    /// The pod's binding when the open transaction began.
    #[must_use]
    pub fn original(&self, pod: PodId) -> &PodBinding {
        self.originals.get(&pod).unwrap_or(&self.pods[pod].binding)
    }

    /// Undoes everything since a checkpoint of the open transaction.
    pub fn rollback(&mut self, checkpoint: Checkpoint) {
        self.recording = false;
        // If the log has all changes since then, the state is the earlier one.
        let mut revision = Some(self.tracker.revision());
        while self.log.len() > checkpoint.0 {
            if let Some((change, revisions)) = self.log.pop().zip(self.log_revisions.pop()) {
                let Revisions { state: (before, after), mut nodes } = revisions;
                nodes.retain(|(node, _, after)| self.revision(*node) == *after);
                self.set_binding(change.pod, change.before);
                for (node, before, _) in nodes {
                    self.revisions[node.raw() as usize] = before;
                }
                revision = revision.filter(|now| *now == after).map(|_| before);
            }
        }
        self.tracker.go_back(revision);
        self.recording = true;
    }

    /// All pods whose binding differs from that at the beginning of the open transaction, in pod
    /// order.
    ///
    /// # Panics
    /// When a node or a device is committed beyond its capacity, or while it is out of service: the
    /// one check that stops a wrong plan before it takes effect.
    #[must_use]
    pub fn proposed(&self) -> Vec<Change> {
        let originals = self.originals.iter();
        let changed = originals.filter(|(pod, before)| **before != self.pods[**pod].binding);
        let changes = changed.map(|(&pod, before)| Change { pod, before: before.clone() });
        changes.inspect(|change| self.assert_sound(change)).collect()
    }

    fn assert_sound(&self, change: &Change) {
        let Change { pod, before } = change;
        let binding = &self.pods[*pod].binding;
        for place in binding.current.iter().chain(&binding.next) {
            let node = &self.nodes[place.node];
            let known = || before.current.iter().chain(&before.next);
            let had = |gpu| known().any(|had| had.node == place.node && had.uses(gpu));
            let works = |at: &DeviceShare| node.gpus[at.index()].in_service || had(at.gpu);
            let works = place.devices.iter().all(works);
            assert!(works, "a GPU of node {} that is out of service was given out", node.name);
            // CPU and memory may be short for running pods when the machine shrank.
            let sound = node.gpus.iter().all(|gpu| gpu.committed_millis <= gpu.capacity_millis());
            assert!(sound, "node {} was given out beyond its capacity", node.name);
        }
    }

    /// Ends the transaction and returns its changes, as [`Cluster::proposed`] does.
    ///
    /// # Panics
    /// As [`Cluster::proposed`].
    pub fn commit(&mut self) -> Vec<Change> {
        let changes = self.proposed();
        self.close();
        changes
    }

    /// Undoes the open transaction and ends it.
    pub fn abort(&mut self) {
        self.rollback(Checkpoint(0));
        self.close();
    }

    fn close(&mut self) {
        self.recording = false;
        self.tracker.watch_holdings(false);
        self.log.clear();
        self.log_revisions.clear();
        self.originals.clear();
    }
}
