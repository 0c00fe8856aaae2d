//! Adopted pods: pods of a cluster with its own API, placed by this server. Owns: that each of them
//! with a project is in a workload as long as it exists, in the place that it has, and that the
//! requests to the engine about it become operations on it. Does not know about: what is reported
//! of a pod (`adopted`), and the life of a workload, which is the same as of any other.

mod gangs;

use std::collections::BTreeSet;
use std::sync::Arc;

use adopted::{Held, held_by_field, project_of, workload_of};
use model::{DeviceShare, NodeId, Placement, PodBinding};
use records::Desired;
use spec::{
    AdoptedPhase, AdoptedPod, Exit, FeedChange, FeedListing, FeedVerb, Observation,
    PlacementReport, RunKey, RunState, WorkloadSpec,
};
use units::GPU_MILLIS;
use uuid::Uuid;
use view::{Event, HeldPod, PENDING};

use crate::Error;
use crate::effect::{Action, Note};
use crate::emit::EventBuilder;
use crate::input::NodeEvent;
use crate::org::Project;
use crate::state::State;
use crate::workloads::{Home, Pod, Workload};

impl State {
    /// Takes over all nodes and pods of the feed.
    pub(crate) fn feed_listed(&mut self, FeedListing { nodes, pods }: FeedListing) {
        self.adopted.open();
        for pod in pods {
            self.adopted.take(pod);
        }
        self.node_event(NodeEvent::Listed(nodes));
        self.settle_uncharged();
        self.settle_gangs();
        self.adopted.end_listing();
    }

    /// Takes over a change of the feed.
    pub(crate) fn feed_changed(&mut self, change: FeedChange) {
        match change {
            FeedChange::Node(spec) => {
                let name = spec.name.clone();
                self.node_event(NodeEvent::Applied(spec));
                for uid in self.adopted.uncharged_on(&name) {
                    self.adopted.set_lacks_room(uid, false);
                    self.settle_pod(uid);
                }
            }
            FeedChange::NodeGone(name) => {
                self.adopted.pods_on(&name).into_iter().for_each(|uid| self.drop_pod(uid));
                self.node_event(NodeEvent::Deleted(name));
            }
            FeedChange::Pod(pod) => self.pod_changed(*pod),
            FeedChange::PodGone(uid) => {
                let before = self.adopted.remove(uid);
                self.drop_pod(uid);
                self.settle_freed(before.and_then(|pod| pod.node.clone()));
            }
        }
    }

    fn pod_changed(&mut self, pod: AdoptedPod) {
        let (uid, now) = (pod.uid, pod.clone());
        let before = self.adopted.take(pod);
        let freed = before.as_ref().filter(|before| before.holds() && !now.holds());
        let freed = freed.and_then(|before| before.node.clone());
        let differs = |before: &Arc<AdoptedPod>| adopted::differs(before, &now);
        if now.node.is_none() && before.as_ref().is_some_and(differs) {
            self.drop_pod(uid);
        }
        if before.is_some_and(|before| before.protected != now.protected) {
            self.protection_changed(&now);
        }
        self.settle_pod(uid);
        self.settle_freed(freed);
    }

    /// Takes a pod for one that stays if its cluster refuses to evict it, so that others are chosen.
    fn protection_changed(&mut self, pod: &AdoptedPod) {
        let Some((id, _)) = self.workloads.home(pod.uid) else { return };
        let is_ending = self.workloads[&id].desired == Desired::Delete;
        match &pod.protected {
            Some(why) if is_ending && !pod.deleting => {
                let message = format!("pod {} is not evicted: {why}", pod.full_name());
                self.emit(id, EventBuilder::new("EvictionRefused", message).warning());
                self.remake(id);
            }
            _ => {
                let numbered = self.workloads[&id].pods.iter().map(|own| own.id);
                let pods: Vec<_> = numbered.filter_map(|uid| self.adopted.get(uid)).collect();
                let preemptible = adopted::is_preemptible(pods.iter().map(|pod| &**pod));
                self.set_preemptible(id, preemptible);
            }
        }
    }

    /// Takes in the pods that are in no workload and can be now.
    pub(crate) fn settle_uncharged(&mut self) {
        self.adopted.uncharged().into_iter().for_each(|uid| self.settle_pod(uid));
    }

    /// Updates a pod, and the amounts that are left on its node.
    fn settle_pod(&mut self, uid: Uuid) {
        self.settle_adopted(uid);
        self.settle_held_on(self.adopted.get(uid).and_then(|pod| pod.node.clone()));
    }

    /// Updates a node that a pod has left: others there may have had no room until now.
    fn settle_freed(&mut self, node: Option<String>) {
        let uncharged = node.iter().flat_map(|name| self.adopted.uncharged_on(name));
        for uid in uncharged.collect::<Vec<_>>() {
            self.adopted.set_lacks_room(uid, false);
            self.settle_adopted(uid);
        }
        self.settle_held_on(node);
    }

    /// Updates a node after a change of the pods that hold amounts on it without a charge.
    fn settle_held_on(&mut self, node: Option<String>) {
        let Some(spec) = node.and_then(|name| self.adopted.net(&name)) else { return };
        let id = self.nodes.named(&spec.name).map(|node| node.id);
        self.node_seen(spec);
        id.into_iter().for_each(|id| self.settle_gpus_of(id));
    }

    /// Puts a pod into a workload, or updates the workload that it is in.
    fn settle_adopted(&mut self, uid: Uuid) {
        let Some(pod) = self.adopted.get(uid).filter(|pod| pod.is_ours) else { return };
        let home = self.workloads.home(uid);
        if home.is_none_or(|home| pod.node.is_none() && self.has_left(home)) {
            if pod.phase.is_over() || (pod.deleting && !pod.holds()) {
                return;
            }
            let Some(project_id) = self.charged_project(&pod) else { return };
            if let Some(gang) = &pod.gang {
                return self.adopted.unsettle(gang.id);
            }
            self.take_in_alone(&pod, project_id);
        }
        self.follow_adopted(&pod);
    }

    /// The project that is charged for a pod. Without one the reason is reported to the cluster, or
    /// noted in the log if the pod runs.
    fn charged_project(&mut self, pod: &AdoptedPod) -> Option<u64> {
        let default = self.settings.default_project.as_deref();
        let found = project_of(pod, self.org.projects().map(Project::charged), default);
        let project_id = found.as_ref().ok().copied();
        let hold = pod.hold.as_ref().filter(|_| !pod.holds());
        match found.and_then(|id| hold.map_or(Ok(id), |hold| Err(held_by_field(hold)))) {
            Ok(project_id) => Some(project_id),
            Err(held) => {
                self.hold(pod, project_id, &held);
                None
            }
        }
    }

    /// Keeps a pod out of a workload for a reason, which its cluster shows if it waits.
    fn hold(&mut self, pod: &AdoptedPod, project_id: Option<u64>, held: &Held) {
        let reason = held.report();
        let held_pod = HeldPod { project_id, reason: reason.clone(), at: self.now };
        self.adopted.hold(pod.uid, held_pod);
        if pod.holds() {
            let (name, message) = (pod.full_name(), &held.message);
            let note = format!("pod {name} is charged to no project: {message}");
            return self.outbox.note(Note::Warning(note));
        }
        let run = RunKey { pod: pod.uid, generation: 0 };
        self.outbox.act([Action::Adopted(run, FeedVerb::Report(reason))]);
    }

    /// Reports the node on which room is kept for an adopted pod; `None` for none any more.
    pub(crate) fn nominate(&mut self, (id, number): Home, node: Option<String>) {
        let Some(run) = self.workloads.pod(id, number).map(Pod::run) else { return };
        if self.adopted.knows(run.pod) {
            self.outbox.act([Action::Adopted(run, FeedVerb::Nominate(node))]);
        }
    }

    /// Makes a pod a workload by itself.
    fn take_in_alone(&mut self, pod: &AdoptedPod, project_id: u64) {
        self.adopt_pods((pod.uid, project_id), workload_of(pod), &[(pod, 0)]);
    }

    /// Makes pods a workload, with the number of each.
    fn adopt_pods(
        &mut self,
        (id, project_id): (Uuid, u64),
        spec: WorkloadSpec,
        pods: &[(&AdoptedPod, u32)],
    ) {
        let is_new = pods.iter().all(|(pod, _)| self.adopted.seq(pod.uid).is_none());
        let seqs: Vec<_> = pods.iter().map(|(pod, _)| self.seq_of(pod.uid)).collect();
        let seq = seqs.iter().copied().min().unwrap_or_default();
        let created_at = pods.iter().map(|(pod, _)| pod.created_at).min().unwrap_or(self.now);
        let name = self.free_name(project_id, &spec.name);
        let spec = WorkloadSpec { name, ..spec };
        let workload = Workload {
            pods: pods.iter().map(|(pod, number)| self.record_of(pod, *number)).collect(),
            created_at: created_at.min(self.now),
            is_adopted: true,
            ..Workload::new(id, seq, project_id, Arc::new(spec), self.now)
        };
        if let Err(error) = self.add(workload, false) {
            let code = view::codes::SET_ASIDE;
            for (pod, _) in pods {
                let message = format!("pod {} is left out: {error}", pod.full_name());
                self.outbox.note(Note::Error(message.clone()));
                self.hold(pod, Some(project_id), &Held { code, message });
            }
            return;
        }
        for ((pod, _), seq) in pods.iter().zip(seqs) {
            self.adopted.charge(pod.uid, id, seq);
        }
        self.touch(id);
        if is_new && !self.adopted.is_listing() {
            let names: Vec<_> = pods.iter().map(|(pod, _)| pod.full_name()).collect();
            let names = command::admission::some_of(names.iter().map(String::as_str));
            let message = format!("{} ({names})", units::counted(pods.len() as u64, "pod"));
            self.emit(id, EventBuilder::new("Adopted", message));
        }
    }

    /// A name that no workload of a project has: a gang that ends and the next one of its owner have
    /// different ones.
    fn free_name(&self, project_id: u64, name: &str) -> String {
        let taken = self.workloads.names_in(project_id);
        let is_free = |name: &String| taken.is_none_or(|taken| !taken.contains_key(name));
        let numbered = (2_u64..).map(|number| format!("{name}.{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(is_free).unwrap_or_default()
    }

    /// The place of a pod in the order of submissions, which it keeps in any workload.
    fn seq_of(&mut self, uid: Uuid) -> u64 {
        self.adopted.seq(uid).unwrap_or_else(|| self.workloads.next_seq())
    }

    fn record_of(&self, pod: &AdoptedPod, number: u32) -> Pod {
        let mut record = Pod::new(pod.uid, number);
        record.generation = self.adopted.generation(pod.uid);
        record.name = Some(pod.name.clone());
        record
    }

    /// Updates the workload of a pod: its place, then its state.
    fn follow_adopted(&mut self, pod: &AdoptedPod) {
        let Some(home) = self.workloads.home(pod.uid) else { return };
        let (id, number) = home;
        if let Some(node) = pod.node.as_ref().filter(|_| pod.holds()) {
            self.come_back(home, pod);
            let place = self.workloads.pod(id, number).and_then(|own| self.binding(own).current);
            let at = place.map(|place| self.node_name(place.node));
            if at.as_ref().is_some_and(|at| at != node) {
                // Another has bound it elsewhere.
                self.remake(id);
                return self.settle_adopted(pod.uid);
            }
            if at.is_none() && !self.place_adopted(home, node) {
                self.adopted.set_lacks_room(pod.uid, true);
                self.drop_pod(pod.uid);
                let name = pod.full_name();
                let note = format!("pod {name} has no room on {node}: it is charged to no project");
                return self.outbox.note(Note::Warning(note));
            }
        }
        let Some(run) = self.workloads.pod(id, number).map(Pod::run) else { return };
        let now = self.now;
        let exited = |code| RunState::Exited { exit: Exit::Code(code), at: now };
        let state = match pod.phase {
            AdoptedPhase::Pending => None,
            AdoptedPhase::Running => {
                let started_at = pod.started_at.unwrap_or(self.now);
                Some(RunState::Running { pid: None, started_at })
            }
            AdoptedPhase::Succeeded => Some(exited(0)),
            AdoptedPhase::Failed => {
                self.leave_if_others_live(home);
                Some(exited(1))
            }
        };
        if let Some(state) = state {
            self.observe(&Observation::new(run, state));
        }
        let is_kept = |w: &Workload| w.desired != Desired::Delete;
        if pod.deleting
            && self.workloads.get(&id).is_some_and(is_kept)
            && !self.leave_if_others_live(home)
        {
            self.set_desired(id, Desired::Delete);
            self.release_all(id);
        }
    }

    /// Puts a pod in its place on a node; `false` if the node is unknown or has too few GPUs.
    fn place_adopted(&mut self, (id, number): Home, node: &str) -> bool {
        let Some(at) = self.nodes.named(node).map(|node| node.id) else { return false };
        let Some(own) = self.workloads.pod(id, number) else { return false };
        let Some(model) = own.model else { return false };
        let count = self.adopted.get(own.id).map_or(0, |pod| pod.gpus as usize);
        let slots = self.free_slots(at, |gpu| (gpu.committed_millis, !gpu.in_service));
        let devices: Vec<_> = slots.into_iter().take(count).collect();
        if devices.len() < count {
            return false;
        }
        self.give_up_reserved(at, &devices);
        let share = |gpu| DeviceShare { gpu, millis: GPU_MILLIS };
        let place = Placement { node: at, devices: devices.into_iter().map(share).collect() };
        self.cluster.set_binding(model, PodBinding::at(place));
        self.placed(id, number);
        true
    }

    /// Gives up what is reserved on GPUs of a node: another API has given these away.
    fn give_up_reserved(&mut self, node: NodeId, gpus: &[u32]) {
        let pods = self.cluster.nodes()[node].pods.iter().copied();
        let waiting = pods.filter(|pod| {
            let next = self.cluster.pods()[*pod].binding.next.as_ref();
            next.is_some_and(|place| place.node == node && gpus.iter().any(|gpu| place.uses(*gpu)))
        });
        for pod in waiting.collect::<Vec<_>>() {
            let binding = self.cluster.pods()[pod].binding.clone();
            self.cluster.set_binding(pod, PodBinding { next: None, ..binding });
            self.home_of(pod).into_iter().for_each(|home| self.unreserved(home));
        }
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

    /// Removes a pod from its workload, without an effect on the pod. The workload ends with its
    /// last pod.
    fn drop_pod(&mut self, uid: Uuid) {
        let Some(home) = self.workloads.home(uid) else { return };
        let exists = self.adopted.get(uid).is_some();
        let is_ending = self.workloads[&home.0].desired == Desired::Delete;
        let others = self.adopted.pods_of(home.0).iter().any(|pod| pod.uid != uid);
        let leaves = self.leave_if_others_live(home);
        if !leaves && !(others && (is_ending || self.workloads[&home.0].completed_at.is_some())) {
            // The pods that exist go on, in this or in another workload.
            return if exists || others { self.remake(home.0) } else { self.drop_workload(home.0) };
        }
        if let Some(generation) = self.workloads.pod(home.0, home.1).map(|own| own.generation)
            && let Some(pod) = self.adopted.get(uid)
        {
            self.adopted.release(uid, generation);
            self.adopted.forget_seq(uid);
            pod.gang.iter().for_each(|gang| self.adopted.unsettle(gang.id));
        }
        self.vacate(home);
        self.outbox.withdraw(uid);
    }

    /// Ends the workload of pods that do not exist any more.
    fn drop_workload(&mut self, id: Uuid) {
        self.vacate_all(id);
        self.set_desired(id, Desired::Delete);
        self.finish_deletion(id);
    }

    /// Removes the workload of pods that exist, without an effect on them: they are taken in again.
    fn remake(&mut self, id: Uuid) {
        let nodes = self.vacate_all(id);
        self.remove_workload(id);
        nodes.into_iter().for_each(|node| self.settle_held_on(Some(node)));
    }

    /// Frees the places of the pods of a workload and gives the pods back to the table; returns the
    /// nodes that they hold amounts on.
    fn vacate_all(&mut self, id: Uuid) -> BTreeSet<String> {
        let Some(workload) = self.workloads.get(&id) else { return BTreeSet::new() };
        let pods: Vec<_> =
            workload.pods.iter().map(|pod| (pod.run(), (id, pod.number()))).collect();
        // A workload that was to be deleted is not: its end is not told.
        self.set_desired(id, Desired::Run);
        self.release_all(id);
        let mut nodes = BTreeSet::new();
        for (run, home) in pods {
            self.vacate(home);
            self.outbox.withdraw(run.pod);
            self.adopted.release(run.pod, run.generation);
            let Some(pod) = self.adopted.get(run.pod) else { continue };
            pod.gang.iter().for_each(|gang| self.adopted.unsettle(gang.id));
            nodes.extend(pod.node.clone().filter(|_| pod.holds()));
        }
        nodes
    }

    /// Frees the place of a pod that is gone, or that another API decides about.
    fn vacate(&mut self, (id, number): Home) {
        let Some(run) = self.workloads.pod(id, number).map(Pod::run) else { return };
        let state = RunState::Exited { exit: Exit::Code(0), at: self.now };
        self.observe(&Observation::new(run, state));
    }

    /// Takes pods in again whose workload was deleted while they exist: they were evicted before
    /// they were bound.
    pub(crate) fn settle_loose(&mut self) {
        if self.adopted.take_loose() {
            self.settle_uncharged();
        }
    }

    /// Refuses what only the owner of adopted pods can do.
    pub(crate) fn is_own(&self, workload: &Workload) -> Result<(), Error> {
        let Some(pod) = self.adopted.pods_of(workload.id).into_iter().next() else { return Ok(()) };
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
        let reports: Vec<_> = events.flat_map(|event| self.reports_of(event)).collect();
        actions.into_iter().filter_map(|action| self.with_verb(action)).chain(reports).collect()
    }

    /// The reports that follow from an event, one for each pod that waits.
    fn reports_of(&self, event: &Event) -> Vec<Action> {
        let code = event.code.as_ref().filter(|_| event.kind == PENDING);
        let Some((id, code)) = event.workload_id.zip(code) else { return Vec::new() };
        let report = || PlacementReport { code: code.clone(), message: event.message.clone() };
        let waiting = self.adopted.pods_of(id).into_iter().filter(|pod| pod.node.is_none());
        waiting
            .map(|pod| {
                let run = RunKey { pod: pod.uid, generation: 0 };
                Action::Adopted(run, FeedVerb::Report(report()))
            })
            .collect()
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
