//! Adopted pods: pods of a cluster with its own API, placed by this server. Owns: that each of them
//! with a project is a workload as long as it exists, in the place that it has, and that the
//! requests to the engine about it become operations on it. Does not know about: what is reported
//! of a pod (`adopted`), and the life of a workload, which is the same as of any other.

use std::collections::BTreeSet;
use std::sync::Arc;

use adopted::{Held, held_by_field, project_of, workload_of};
use model::{DeviceShare, NodeId, Placement, PodBinding};
use records::Desired;
use spec::{
    AdoptedPhase, AdoptedPod, Exit, FeedChange, FeedListing, FeedVerb, Observation,
    PlacementReport, RunKey, RunState,
};
use units::GPU_MILLIS;
use uuid::Uuid;
use view::Event;

use crate::Error;
use crate::effect::{Action, Note};
use crate::emit::EventBuilder;
use crate::input::NodeEvent;
use crate::state::State;
use crate::workloads::{Pod, Workload};

/// Kind of the events with the reasons of waiting workloads.
const PENDING: &str = "Pending";

impl State {
    /// Takes over all nodes and pods of the feed.
    pub(crate) fn feed_listed(&mut self, FeedListing { nodes, pods }: FeedListing) {
        self.adopted.open();
        for pod in pods {
            self.adopted.take(pod);
        }
        self.node_event(NodeEvent::Listed(nodes));
        self.settle_uncharged();
    }

    /// Takes over a change of the feed.
    pub(crate) fn feed_changed(&mut self, change: FeedChange) {
        match change {
            FeedChange::Node(spec) => {
                let name = spec.name.clone();
                self.node_event(NodeEvent::Applied(spec));
                let uncharged = self.adopted.uncharged_on(&name);
                uncharged.into_iter().for_each(|uid| self.settle_pod(uid));
            }
            FeedChange::NodeGone(name) => {
                self.adopted.pods_on(&name).into_iter().for_each(|uid| self.drop_adopted(uid));
                self.node_event(NodeEvent::Deleted(name));
            }
            FeedChange::Pod(pod) => self.pod_changed(*pod),
            FeedChange::PodGone(uid) => {
                self.drop_adopted(uid);
                let before = self.adopted.remove(uid);
                self.settle_held_on(before.and_then(|pod| pod.node.clone()));
            }
        }
    }

    fn pod_changed(&mut self, pod: AdoptedPod) {
        let (uid, now) = (pod.uid, pod.clone());
        let before = self.adopted.take(pod);
        if now.node.is_none() && before.is_some_and(|before| adopted::differs(&before, &now)) {
            self.drop_adopted(uid);
        }
        self.settle_pod(uid);
    }

    /// Takes in the pods that are no workloads and can be now.
    pub(crate) fn settle_uncharged(&mut self) {
        self.adopted.uncharged().into_iter().for_each(|uid| self.settle_pod(uid));
    }

    /// Updates a pod, and the amounts that are left on its node.
    fn settle_pod(&mut self, uid: Uuid) {
        self.settle_adopted(uid);
        self.settle_held_on(self.adopted.get(uid).and_then(|pod| pod.node.clone()));
    }

    /// Updates a node after a change of the pods that hold amounts on it without a charge.
    fn settle_held_on(&mut self, node: Option<String>) {
        let Some(spec) = node.and_then(|name| self.adopted.net(&name)) else { return };
        let id = self.nodes.named(&spec.name).map(|node| node.id);
        self.node_seen(spec);
        id.into_iter().for_each(|id| self.settle_gpus_of(id));
    }

    /// Makes a pod a workload, or updates the workload that it is.
    fn settle_adopted(&mut self, uid: Uuid) {
        let Some(pod) = self.adopted.get(uid).filter(|pod| pod.is_ours) else { return };
        if self.workloads.get(&uid).is_none() {
            if pod.phase.is_over() || (pod.deleting && !pod.holds()) {
                return;
            }
            match self.take_in_adopted(&pod) {
                Ok(()) => {}
                Err(held) if !pod.holds() => {
                    let run = RunKey { pod: uid, generation: 0 };
                    let verb = FeedVerb::Report(held.report());
                    return self.outbox.act([Action::Adopted(run, verb)]);
                }
                Err(Held { message, .. }) => {
                    let name = pod.full_name();
                    let note = format!("pod {name} is charged to no project: {message}");
                    return self.outbox.note(Note::Warning(note));
                }
            }
        }
        self.follow_adopted(&pod);
    }

    fn take_in_adopted(&mut self, pod: &AdoptedPod) -> Result<(), Held> {
        let named = |name: &str| self.org.projects().find(|project| project.unit.name == name);
        let project_id = project_of(pod, |name| named(name).map(|project| project.unit.id))?;
        if let Some(hold) = pod.hold.as_ref().filter(|_| !pod.holds()) {
            return Err(held_by_field(hold));
        }
        let (seq, spec) = (self.workloads.next_seq(), Arc::new(workload_of(pod)));
        let mut own = Pod::new(pod.uid, 0);
        own.generation = self.adopted.generation(pod.uid);
        let workload = Workload {
            pods: std::iter::once(own).collect(),
            created_at: pod.created_at.min(self.now),
            is_adopted: true,
            ..Workload::new(pod.uid, seq, project_id, spec, self.now)
        };
        if let Err(error) = self.add(workload, false) {
            let message = format!("pod {} is left out: {error}", pod.full_name());
            self.outbox.note(Note::Error(message.clone()));
            return Err(Held { code: view::codes::SET_ASIDE, message });
        }
        self.adopted.set_charged(pod.uid, true);
        self.touch(pod.uid);
        let message = format!("pod {} names this scheduler", pod.full_name());
        self.emit(pod.uid, EventBuilder::new("Adopted", message));
        Ok(())
    }

    /// Updates the workload of a pod: its place, then its state.
    fn follow_adopted(&mut self, pod: &AdoptedPod) {
        let uid = pod.uid;
        if let Some(node) = pod.node.as_ref().filter(|_| pod.holds()) {
            let place = self.workloads.pod(uid, 0).and_then(|own| self.binding(own).current);
            let at = place.map(|place| self.node_name(place.node));
            if at.as_ref().is_some_and(|at| at != node) {
                // Another has bound it elsewhere.
                self.drop_adopted(uid);
                return self.settle_adopted(uid);
            }
            if at.is_none() && !self.place_adopted(uid, node) {
                self.drop_adopted(uid);
                let name = pod.full_name();
                let note = format!("pod {name} has no room on {node}: it is charged to no project");
                return self.outbox.note(Note::Warning(note));
            }
        }
        let exited = |code| RunState::Exited { exit: Exit::Code(code), at: self.now };
        let state = match pod.phase {
            AdoptedPhase::Pending => None,
            AdoptedPhase::Running => Some(RunState::Running { pid: None, started_at: self.now }),
            AdoptedPhase::Succeeded => Some(exited(0)),
            AdoptedPhase::Failed => Some(exited(1)),
        };
        if let (Some(state), Some(own)) = (state, self.workloads.pod(uid, 0)) {
            let key = own.run();
            self.observe(&Observation::new(key, state));
        }
        if pod.deleting && self.workloads.get(&uid).is_some_and(|w| w.desired != Desired::Delete) {
            self.set_desired(uid, Desired::Delete);
            self.release_all(uid);
        }
    }

    /// Puts a pod in its place on a node; `false` if the node is unknown or has too few GPUs.
    fn place_adopted(&mut self, uid: Uuid, node: &str) -> bool {
        let Some(id) = self.nodes.named(node).map(|node| node.id) else { return false };
        let Some(model) = self.workloads.pod(uid, 0).and_then(|pod| pod.model) else {
            return false;
        };
        let count = self.adopted.get(uid).map_or(0, |pod| pod.gpus as usize);
        let slots = self.free_slots(id, |gpu| (gpu.committed_millis, !gpu.in_service));
        let devices: Vec<_> = slots.into_iter().take(count).collect();
        if devices.len() < count {
            return false;
        }
        let share = |gpu| DeviceShare { gpu, millis: GPU_MILLIS };
        let place = Placement { node: id, devices: devices.into_iter().map(share).collect() };
        self.cluster.set_binding(model, PodBinding::at(place));
        self.placed(uid, 0);
        true
    }

    /// GPUs of a node that no pod of a queue uses, in the order of `key`.
    fn free_slots<K: Ord>(&self, node: NodeId, key: impl Fn(&model::Gpu) -> K) -> Vec<u32> {
        let all = (0..).zip(&self.cluster.nodes()[node].gpus);
        let mut free: Vec<_> = all.filter(|(_, gpu)| gpu.used_millis == 0).collect();
        free.sort_by_key(|(_, gpu)| key(gpu));
        free.into_iter().map(|(at, _)| at).collect()
    }

    /// The counted GPUs of a node that cannot be used: the last of those that no pod uses.
    pub(crate) fn unusable_slots(&self, node: &str) -> BTreeSet<u32> {
        let count = self.adopted.unusable(node);
        let Some(id) = self.nodes.named(node).map(|node| node.id).filter(|_| count > 0) else {
            return BTreeSet::new();
        };
        let mut free = self.free_slots(id, |_| ());
        free.reverse();
        free.sort_by_key(|&at| self.cluster.nodes()[id].gpus[at as usize].committed_millis);
        free.into_iter().take(count).collect()
    }

    /// Removes the workload of a pod, without an effect on the pod.
    fn drop_adopted(&mut self, uid: Uuid) {
        let Some(own) = self.workloads.pod(uid, 0) else { return };
        let key = own.run();
        self.adopted.release(uid, key.generation);
        self.set_desired(uid, Desired::Delete);
        self.release_all(uid);
        let state = RunState::Exited { exit: Exit::Code(0), at: self.now };
        self.observe(&Observation::new(key, state));
        self.finish_deletion(uid);
        self.outbox.withdraw(uid);
    }

    /// Takes pods in again whose workload was deleted while they exist: they were evicted before
    /// they were bound.
    pub(crate) fn settle_loose(&mut self) {
        if self.adopted.take_loose() {
            self.settle_uncharged();
        }
    }

    /// Refuses what only the owner of an adopted pod can do.
    pub(crate) fn is_own(&self, workload: &Workload) -> Result<(), Error> {
        let Some(pod) = self.adopted.get(workload.id) else { return Ok(()) };
        let (namespace, name) = (&pod.namespace, &pod.name);
        let owner = match &pod.owner {
            Some((kind, owner)) => format!("its owner is {kind} {namespace}/{owner}: change that"),
            None => format!("delete it with `kubectl delete pod -n {namespace} {name}`"),
        };
        Err(Error::conflict(format!(
            "`{}` is pod {namespace}/{name} of Kubernetes, which this server only places; {owner}",
            workload.spec.name
        )))
    }

    /// Refuses changes of nodes that the feed reports.
    pub(crate) fn nodes_are_own(&self, node: &str) -> Result<(), Error> {
        if !self.adopted.is_open() {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "node {node} is a node of Kubernetes: use `kubectl cordon`, `drain`, `taint` or `label \
             node {node}`"
        )))
    }

    /// The actions of a batch, with operations on adopted pods in place of runs.
    pub(crate) fn with_verbs<'a>(
        &self,
        actions: Vec<Action>,
        events: impl Iterator<Item = &'a Event>,
    ) -> Vec<Action> {
        if !self.adopted.is_open() {
            return actions;
        }
        let reports: Vec<_> = events.filter_map(|event| self.report_of(event)).collect();
        actions.into_iter().filter_map(|action| self.with_verb(action)).chain(reports).collect()
    }

    fn report_of(&self, event: &Event) -> Option<Action> {
        let uid = event.workload_id.filter(|uid| self.adopted.get(*uid).is_some())?;
        let code = event.code.clone().filter(|_| event.kind == PENDING)?;
        let report = PlacementReport { code, message: event.message.clone() };
        let run = RunKey { pod: uid, generation: 0 };
        Some(Action::Adopted(run, FeedVerb::Report(report)))
    }

    fn with_verb(&self, action: Action) -> Option<Action> {
        let uid = action.run().map(|run| run.pod).filter(|pod| self.adopted.knows(*pod));
        match (uid, &action) {
            (Some(uid), Action::Start(start)) => {
                let pod = self.adopted.get(uid)?;
                let verb = FeedVerb::Bind { node: start.spec.node_name.clone() };
                let is_free = pod.node.is_none() && !pod.deleting;
                is_free.then_some(Action::Adopted(start.spec.key, verb))
            }
            (Some(uid), Action::Stop(run, _) | Action::Evict { run, .. }) => {
                let pod = self.adopted.get(uid)?;
                let runs = !pod.deleting && !pod.phase.is_over();
                runs.then_some(Action::Adopted(*run, FeedVerb::Evict))
            }
            (Some(_), Action::LimitGpus(..) | Action::Remove(_)) => None,
            (None, Action::Forget(pod)) if self.adopted.knows(*pod) => None,
            _ => Some(action),
        }
    }
}
