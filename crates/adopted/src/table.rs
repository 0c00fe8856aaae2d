//! The table of adopted pods and their nodes, as the feed reported them last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use records::Change;
use spec::{AdoptedPod, NodeGpu, NodeSpec};
use uuid::Uuid;
use view::{AdoptedPodView, HeldPod, SharedMap};

/// A pod of the table.
#[derive(Debug, Clone)]
struct Known {
    pod: Arc<AdoptedPod>,
    /// The workload that it is a pod of, whose queue is charged.
    workload: Option<Uuid>,
    /// Number of its last run: a late answer about a run is never taken for one of another.
    generation: u32,
    /// Its place in the order of submissions, since it was first in a workload.
    seq: Option<u64>,
    /// True if there was no room for it on its node, which may change with the node.
    lacks_room: bool,
    /// The reason that keeps it out of a workload.
    held: Option<HeldPod>,
}

/// A node of the table.
#[derive(Debug, Clone, Default)]
struct NodeEntry {
    /// The node as reported; `None` after its end.
    spec: Option<NodeSpec>,
    /// Last memory of each GPU that it ever had, in bytes.
    slots: Vec<u64>,
    /// Pods that hold amounts on it.
    pods: BTreeSet<Uuid>,
}

/// The last reported state of all pods and nodes. Without a feed it is closed and empty.
#[derive(Debug, Clone, Default)]
pub struct Table {
    is_open: bool,
    /// True while the first listing is taken over.
    is_listing: bool,
    pods: BTreeMap<Uuid, Known>,
    nodes: BTreeMap<String, NodeEntry>,
    /// Pods removed in this batch.
    gone: BTreeSet<Uuid>,
    /// Pods that exist of each workload.
    workloads: BTreeMap<Uuid, BTreeSet<Uuid>>,
    /// Workloads that lost their last pod in this batch.
    ended: BTreeSet<Uuid>,
    /// Pods of each gang.
    gangs: BTreeMap<Uuid, BTreeSet<Uuid>>,
    /// Gangs that got or lost pods.
    unsettled: BTreeSet<Uuid>,
    /// True if pods lost their workload while they exist.
    has_loose: bool,
    /// The pods that this server has to place, by namespace and name, as readers see them.
    shown: SharedMap<(String, String), Arc<AdoptedPodView>>,
}

impl Table {
    /// Opens the table: from now on the nodes and pods of the state are those of a feed.
    pub const fn open(&mut self) {
        (self.is_open, self.is_listing) = (true, true);
    }

    /// Ends the first listing: pods that come from now on are new.
    pub const fn end_listing(&mut self) {
        self.is_listing = false;
    }

    /// True while the first listing is taken over.
    #[must_use]
    pub const fn is_listing(&self) -> bool {
        self.is_listing
    }

    /// True if the nodes and pods are those of a feed.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// The last state of a pod.
    #[must_use]
    pub fn get(&self, uid: Uuid) -> Option<Arc<AdoptedPod>> {
        self.pods.get(&uid).map(|known| known.pod.clone())
    }

    /// True if this is a pod of the table, or was one before this batch.
    #[must_use]
    pub fn knows(&self, uid: Uuid) -> bool {
        self.is_open && (self.pods.contains_key(&uid) || self.gone.contains(&uid))
    }

    /// Records the state of a pod; returns the state before.
    pub fn take(&mut self, pod: AdoptedPod) -> Option<Arc<AdoptedPod>> {
        let (uid, pod) = (pod.uid, Arc::new(pod));
        let before = self.pods.get(&uid).cloned();
        let fresh = Known {
            pod: pod.clone(),
            workload: None,
            generation: 0,
            seq: None,
            lacks_room: false,
            held: None,
        };
        let known = before.clone().map_or(fresh, |known| Known { pod: pod.clone(), ..known });
        self.leave_node(before.as_ref().map(|known| &known.pod));
        if let Some(gang) = before.as_ref().and_then(|known| known.pod.gang.as_ref())
            && pod.gang.as_ref() != Some(gang)
        {
            self.leave_gang(gang.id, uid);
        }
        if let Some(gang) = pod.gang.as_ref().filter(|_| pod.is_ours) {
            self.gangs.entry(gang.id).or_default().insert(uid);
        }
        if let Some(node) = pod.node.as_ref().filter(|_| pod.holds()) {
            self.nodes.entry(node.clone()).or_default().pods.insert(uid);
        }
        self.pods.insert(uid, known);
        self.show(uid);
        before.map(|known| known.pod)
    }

    /// The pods that this server has to place, by namespace and name, as readers see them.
    #[must_use]
    pub const fn shown(&self) -> &SharedMap<(String, String), Arc<AdoptedPodView>> {
        &self.shown
    }

    /// Shows readers the state of a pod.
    fn show(&mut self, uid: Uuid) {
        let Some(Known { pod, workload, held, .. }) = self.pods.get(&uid) else { return };
        if !pod.is_ours {
            return;
        }
        let held = held.clone().filter(|_| workload.is_none() && !pod.phase.is_over());
        let view = AdoptedPodView { pod: pod.clone(), workload_id: *workload, held };
        self.shown.insert(key_of(pod), Arc::new(view));
    }

    /// Records the reason that keeps a pod out of a workload from a time on.
    pub fn hold(&mut self, uid: Uuid, held: HeldPod) {
        let Some(known) = self.pods.get_mut(&uid) else { return };
        let since = known.held.as_ref().filter(|before| before.reason == held.reason);
        let at = since.map_or(held.at, |before| before.at);
        known.held = Some(HeldPod { at, ..held });
        self.show(uid);
    }

    /// Removes a pod; returns its last state.
    pub fn remove(&mut self, uid: Uuid) -> Option<Arc<AdoptedPod>> {
        let known = self.pods.remove(&uid)?;
        self.leave_node(Some(&known.pod));
        self.leave_workload(known.workload, uid);
        if let Some(gang) = &known.pod.gang {
            self.leave_gang(gang.id, uid);
        }
        self.gone.insert(uid);
        let key = key_of(&known.pod);
        if self.shown.get(&key).is_some_and(|shown| shown.pod.uid == uid) {
            self.shown.remove(&key);
        }
        Some(known.pod)
    }

    fn leave_gang(&mut self, gang: Uuid, uid: Uuid) {
        if let Some(pods) = self.gangs.get_mut(&gang) {
            pods.remove(&uid);
            if pods.is_empty() {
                self.gangs.remove(&gang);
            }
        }
        self.unsettled.insert(gang);
    }

    fn leave_workload(&mut self, workload: Option<Uuid>, uid: Uuid) {
        let Some(workload) = workload else { return };
        if let Some(pods) = self.workloads.get_mut(&workload) {
            pods.remove(&uid);
            if pods.is_empty() {
                self.workloads.remove(&workload);
                self.ended.insert(workload);
            }
        }
    }

    fn leave_node(&mut self, pod: Option<&Arc<AdoptedPod>>) {
        let Some((pod, node)) = pod.and_then(|pod| Some((pod, pod.node.as_ref()?))) else { return };
        if let Some(entry) = self.nodes.get_mut(node) {
            entry.pods.remove(&pod.uid);
            if entry.spec.is_none() && entry.pods.is_empty() {
                self.nodes.remove(node);
            }
        }
    }

    /// Ends a batch in which the workloads with these ids were deleted.
    pub fn end_batch<'a>(&mut self, deleted: impl Iterator<Item = &'a Uuid>) {
        self.gone.clear();
        self.ended.clear();
        for workload in deleted {
            for uid in self.workloads.remove(workload).unwrap_or_default() {
                if let Some(known) = self.pods.get_mut(&uid) {
                    known.workload = None;
                    self.has_loose = true;
                }
                self.show(uid);
            }
        }
    }

    /// True once after pods lost their workload while they exist.
    pub const fn take_loose(&mut self) -> bool {
        std::mem::replace(&mut self.has_loose, false)
    }

    /// Records that a pod belongs to a workload, whose queue is charged, with this place in the
    /// order of submissions.
    pub fn charge(&mut self, uid: Uuid, workload: Uuid, seq: u64) {
        let Some(known) = self.pods.get_mut(&uid) else { return };
        known.seq.get_or_insert(seq);
        known.held = None;
        let before = known.workload.replace(workload);
        self.leave_workload(before.filter(|before| *before != workload), uid);
        self.workloads.entry(workload).or_default().insert(uid);
        self.show(uid);
    }

    /// Records whether there is no room for a pod on its node.
    pub fn set_lacks_room(&mut self, uid: Uuid, lacks_room: bool) {
        if let Some(known) = self.pods.get_mut(&uid) {
            known.lacks_room = lacks_room;
        }
    }

    /// True if there was no room for a pod on its node.
    #[must_use]
    pub fn lacks_room(&self, uid: Uuid) -> bool {
        self.pods.get(&uid).is_some_and(|known| known.lacks_room)
    }

    /// Gives up the place of a pod in the order of submissions, which its workload keeps.
    pub fn forget_seq(&mut self, uid: Uuid) {
        if let Some(known) = self.pods.get_mut(&uid) {
            known.seq = None;
        }
    }

    /// The place of a pod in the order of submissions, since it was first in a workload.
    #[must_use]
    pub fn seq(&self, uid: Uuid) -> Option<u64> {
        self.pods.get(&uid)?.seq
    }

    /// The pods that exist of a workload.
    #[must_use]
    pub fn pods_of(&self, workload: Uuid) -> Vec<Arc<AdoptedPod>> {
        self.named(self.workloads.get(&workload))
    }

    /// The pods of a gang.
    #[must_use]
    pub fn gang(&self, gang: Uuid) -> Vec<Arc<AdoptedPod>> {
        self.named(self.gangs.get(&gang))
    }

    fn named(&self, uids: Option<&BTreeSet<Uuid>>) -> Vec<Arc<AdoptedPod>> {
        uids.into_iter().flatten().filter_map(|uid| self.get(*uid)).collect()
    }

    /// Records that a gang got a pod, or may get one that waits.
    pub fn unsettle(&mut self, gang: Uuid) {
        self.unsettled.insert(gang);
    }

    /// Records that the pods of a gang are settled.
    pub fn settled(&mut self, gang: Uuid) {
        self.unsettled.remove(&gang);
    }

    /// The gangs that got or lost pods since they were last taken.
    pub fn take_unsettled(&mut self) -> BTreeSet<Uuid> {
        std::mem::take(&mut self.unsettled)
    }

    /// Number of the last run of a pod.
    #[must_use]
    pub fn generation(&self, uid: Uuid) -> u32 {
        self.pods.get(&uid).map_or(0, |known| known.generation)
    }

    /// Records that a pod belongs to no workload any more, and the number of its last run.
    pub fn release(&mut self, uid: Uuid, generation: u32) {
        let Some(known) = self.pods.get_mut(&uid) else { return };
        known.generation = generation.max(known.generation);
        let workload = known.workload.take();
        self.leave_workload(workload, uid);
        self.show(uid);
    }

    /// All pods that hold amounts on a node.
    #[must_use]
    pub fn pods_on(&self, node: &str) -> Vec<Uuid> {
        self.nodes.get(node).map(|entry| entry.pods.iter().copied().collect()).unwrap_or_default()
    }

    /// The pods that this server has to place and that are in no workload: those that hold a place
    /// first, then the oldest.
    #[must_use]
    pub fn uncharged(&self) -> Vec<Uuid> {
        let ours = self.pods.values().filter(|known| known.pod.is_ours && known.workload.is_none());
        let mut all: Vec<_> = ours.map(|known| &known.pod).collect();
        all.sort_unstable_by_key(|pod| (!pod.holds(), pod.created_at, pod.uid));
        all.into_iter().map(|pod| pod.uid).collect()
    }

    /// The pods among them that hold amounts on a node.
    #[must_use]
    pub fn uncharged_on(&self, node: &str) -> Vec<Uuid> {
        let Some(entry) = self.nodes.get(node) else { return Vec::new() };
        self.held_on(entry).filter(|pod| pod.is_ours).map(|pod| pod.uid).collect()
    }

    /// Records a node.
    pub fn take_node(&mut self, spec: NodeSpec) {
        let entry = self.nodes.entry(spec.name.clone()).or_default();
        let memories = spec.gpus.iter().map(|gpu| gpu.memory_bytes);
        entry.slots = memories.chain(entry.slots.iter().skip(spec.gpus.len()).copied()).collect();
        entry.spec = Some(spec);
    }

    /// Records that a node no longer exists.
    pub fn remove_node(&mut self, name: &str) {
        let Some(entry) = self.nodes.get_mut(name) else { return };
        (entry.spec, entry.slots) = (None, Vec::new());
        if entry.pods.is_empty() {
            self.nodes.remove(name);
        }
    }

    fn held_on<'a>(&'a self, entry: &'a NodeEntry) -> impl Iterator<Item = &'a AdoptedPod> {
        let pods = entry.pods.iter().filter_map(|uid| self.pods.get(uid));
        pods.filter(|known| known.workload.is_none()).map(|known| &*known.pod)
    }

    /// The node for the scheduler: without the amounts that pods hold without a charge, and with as
    /// many GPUs as it ever had, so that the numbers of the others stay. [`Table::unusable`] of them
    /// are out of service.
    #[must_use]
    pub fn net(&self, name: &str) -> Option<NodeSpec> {
        let entry = self.nodes.get(name)?;
        let mut spec = entry.spec.clone()?;
        for (slot, memory) in entry.slots.iter().enumerate().skip(spec.gpus.len()) {
            spec.gpus.push(NodeGpu::new(slot_name(name, slot), *memory));
        }
        for pod in self.held_on(entry) {
            spec.cpu_millis = spec.cpu_millis.saturating_sub(pod.cpu_millis);
            spec.memory_bytes = spec.memory_bytes.saturating_sub(pod.memory_bytes);
            // Pods of ours count by themselves once they are workloads.
            let others = u32::from(!pod.is_ours);
            spec.pods_max = spec.pods_max.map(|most| most.saturating_sub(others));
        }
        Some(spec)
    }

    /// Number of GPUs of a node that cannot be used: pods hold them without a charge, or the node
    /// reports fewer than before.
    #[must_use]
    pub fn unusable(&self, name: &str) -> usize {
        let Some(entry) = self.nodes.get(name) else { return 0 };
        let reported = entry.spec.as_ref().map_or(0, |spec| spec.gpus.len());
        let held: usize = self.held_on(entry).map(|pod| pod.gpus as usize).sum();
        entry.slots.len() - reported + held
    }

    /// True if a change is a row of adopted pods. Such rows are not written: after a restart the
    /// feed reports the pods again.
    #[must_use]
    pub fn is_row_of_one(&self, change: &Change) -> bool {
        let is_one = |id: &Uuid| self.workloads.contains_key(id) || self.ended.contains(id);
        match change {
            Change::Workload(row) => is_one(&row.id),
            Change::WorkloadSpec(id, _)
            | Change::WorkloadState(id, _)
            | Change::WorkloadPast(id, _)
            | Change::WorkloadArchived(id, ..)
            | Change::WorkloadRestored(id) => is_one(id),
            Change::Pod(row) => is_one(&row.workload_id),
            _ => false,
        }
    }
}

/// Namespace and name of a pod.
fn key_of(pod: &AdoptedPod) -> (String, String) {
    (pod.namespace.clone(), pod.name.clone())
}

/// Name of a counted GPU, which no driver knows.
#[must_use]
pub fn slot_name(node: &str, slot: usize) -> String {
    format!("counted:{node}/{slot}")
}
