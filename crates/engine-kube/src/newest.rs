//! The newest state of each node and pod, and the objects that changed since they were last pulled.
//! Its size is that of the objects, however often they change.

use std::collections::{BTreeMap, BTreeSet};

use engine::FEED_CHANGES_MAX;
use kube_api::ObjectRef;
use kube_api::types::Pod;
use spec::{AdoptedPod, FeedChange, FeedListing, NodeSpec};
use uuid::Uuid;

use crate::pod::{adopted_pod, uid_of};
use crate::status_change::StatusChange;

/// A pod and its reference.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) pod: AdoptedPod,
    pub(crate) reference: ObjectRef,
    /// The last reason and node that were written into its status.
    pub(crate) written: StatusChange,
    /// Number of the last refusal of its eviction.
    refusal: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Node(String),
    Pod(Uuid),
}

/// Objects of a kind that a listing in progress has not given.
#[derive(Debug, Default)]
struct Listing<K> {
    is_synced: bool,
    absent: Option<BTreeSet<K>>,
}

/// All objects.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    nodes: BTreeMap<String, NodeSpec>,
    pods: BTreeMap<Uuid, Seen>,
    changed: BTreeSet<Key>,
    listing_nodes: Listing<String>,
    listing_pods: Listing<Uuid>,
    /// Number of refused evictions.
    refusals: u64,
}

impl Newest {
    /// True once both kinds are listed.
    pub(crate) const fn is_synced(&self) -> bool {
        self.listing_nodes.is_synced && self.listing_pods.is_synced
    }

    pub(crate) fn pod(&self, uid: Uuid) -> Option<&Seen> {
        self.pods.get(&uid)
    }

    /// Notes what was written into the status of a pod.
    pub(crate) fn note_status(&mut self, uid: Uuid, written: StatusChange) {
        if let Some(seen) = self.pods.get_mut(&uid) {
            seen.written = seen.written.clone().then(written);
        }
    }

    /// Notes that the cluster refuses to evict a pod, for this reason; returns the number of the
    /// refusal.
    pub(crate) fn protect(&mut self, uid: Uuid, why: String) -> u64 {
        self.refusals += 1;
        if let Some(seen) = self.pods.get_mut(&uid) {
            seen.pod.protected = Some(why);
            seen.refusal = self.refusals;
            self.changed.insert(Key::Pod(uid));
        }
        self.refusals
    }

    /// Notes that a pod may be asked to go again, unless it was refused once more meanwhile.
    pub(crate) fn unprotect(&mut self, uid: Uuid, refusal: u64) {
        if let Some(seen) = self.pods.get_mut(&uid).filter(|seen| seen.refusal == refusal) {
            seen.pod.protected = None;
            self.changed.insert(Key::Pod(uid));
        }
    }

    /// Everything; the next changes are those after it.
    pub(crate) fn all(&mut self) -> FeedListing {
        self.changed.clear();
        FeedListing {
            nodes: self.nodes.values().cloned().collect(),
            pods: self.pods.values().map(|seen| seen.pod.clone()).collect(),
        }
    }

    /// The next changes.
    pub(crate) fn take_changes(&mut self) -> Vec<FeedChange> {
        let mut taken = Vec::new();
        // A pod that replaces one of its name comes after the end of that.
        let gone = self.changed.iter().filter_map(|key| match key {
            Key::Pod(uid) => (!self.pods.contains_key(uid)).then_some(*uid),
            Key::Node(_) => None,
        });
        for uid in gone.take(FEED_CHANGES_MAX).collect::<Vec<_>>() {
            self.changed.remove(&Key::Pod(uid));
            taken.push(FeedChange::PodGone(uid));
        }
        while taken.len() < FEED_CHANGES_MAX
            && let Some(key) = self.changed.pop_first()
        {
            taken.push(match key {
                Key::Node(name) => match self.nodes.get(&name) {
                    Some(spec) => FeedChange::Node(spec.clone()),
                    None => FeedChange::NodeGone(name),
                },
                Key::Pod(uid) => match self.pods.get(&uid) {
                    Some(seen) => FeedChange::Pod(Box::new(seen.pod.clone())),
                    None => FeedChange::PodGone(uid),
                },
            });
        }
        taken
    }

    pub(crate) fn begin_nodes(&mut self) {
        self.listing_nodes.absent = Some(self.nodes.keys().cloned().collect());
    }

    pub(crate) fn end_nodes(&mut self) {
        for name in self.listing_nodes.absent.take().unwrap_or_default() {
            self.node_gone(&name);
        }
        self.listing_nodes.is_synced = true;
    }

    pub(crate) fn node(&mut self, spec: NodeSpec) {
        self.node_is_there(&spec.name);
        if self.nodes.get(&spec.name) != Some(&spec) {
            self.changed.insert(Key::Node(spec.name.clone()));
            self.nodes.insert(spec.name.clone(), spec);
        }
    }

    /// A node exists, and its state is not known.
    pub(crate) fn node_is_there(&mut self, name: &str) {
        if let Some(absent) = &mut self.listing_nodes.absent {
            absent.remove(name);
        }
    }

    pub(crate) fn node_gone(&mut self, name: &str) {
        if self.nodes.remove(name).is_some() {
            self.changed.insert(Key::Node(name.to_owned()));
        }
    }

    pub(crate) fn begin_pods(&mut self) {
        self.listing_pods.absent = Some(self.pods.keys().copied().collect());
    }

    pub(crate) fn end_pods(&mut self) {
        for uid in self.listing_pods.absent.take().unwrap_or_default() {
            self.pod_gone(uid);
        }
        self.listing_pods.is_synced = true;
    }

    /// Takes a pod. Only those that this server has to place, or that hold amounts, are kept.
    pub(crate) fn take_pod(&mut self, pod: &Pod, schedulers: &[String]) {
        let mut own = adopted_pod(pod, schedulers);
        let uid = own.uid;
        own.protected = self.pods.get(&uid).and_then(|seen| seen.pod.protected.clone());
        self.pod_is_there(uid);
        if !own.is_ours && !own.holds() {
            return self.pod_gone(uid);
        }
        let before = self.pods.remove(&uid);
        if before.as_ref().is_none_or(|seen| seen.pod != own) {
            self.changed.insert(Key::Pod(uid));
        }
        // A server before this one may have nominated a node.
        let node = Some(pod.status.nominated_node_name.clone());
        let (written, refusal) = before.map_or_else(
            || (StatusChange { node, ..StatusChange::default() }, 0),
            |seen| (seen.written, seen.refusal),
        );
        let reference = ObjectRef::of(pod);
        self.pods.insert(uid, Seen { pod: own, reference, written, refusal });
    }

    /// A pod exists, and its state is not known.
    pub(crate) fn pod_is_there(&mut self, uid: Uuid) {
        if let Some(absent) = &mut self.listing_pods.absent {
            absent.remove(&uid);
        }
    }

    pub(crate) fn pod_deleted(&mut self, pod: &Pod) {
        self.pod_gone(uid_of(pod));
    }

    fn pod_gone(&mut self, uid: Uuid) {
        if self.pods.remove(&uid).is_some() {
            self.changed.insert(Key::Pod(uid));
        }
    }
}
