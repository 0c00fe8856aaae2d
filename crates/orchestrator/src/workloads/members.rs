//! The pods of a workload: they join its sets and leave them while it runs. Owns: the pods that are
//! in the model. The record of a pod that has left stays, so that it is the same pod if it joins
//! again.

use records::Desired;
use spec::PodSet;
use uuid::Uuid;

use crate::effect::Note;
use crate::state::State;
use crate::workloads::{Home, Pod, Workload};

impl Workload {
    /// Its sets, each with its pods.
    pub(crate) fn pods_by_set(&self) -> impl Iterator<Item = (&PodSet, &[Pod])> {
        let (mut rest, mut end) = (self.pods.as_slice(), 0_u32);
        self.spec.sets().map(move |set| {
            end = end.saturating_add(set.pods);
            let (own, others) = rest.split_at(rest.partition_point(|pod| pod.index < end));
            rest = others;
            (set, own)
        })
    }

    /// True if each number of its sets has a pod.
    pub(crate) fn pods_are_complete(&self) -> bool {
        let pods: u32 = self.spec.sets().map(|set| set.pods).sum();
        self.pods.iter().count() == pods as usize
    }

    /// True for each pod that should run unless a command prevents it: it has not ended, and it is
    /// its turn.
    pub(crate) fn turns(&self) -> Vec<bool> {
        let mut turns = Vec::new();
        for (set, pods) in self.pods_by_set() {
            let mut left = set.wanted();
            for pod in pods {
                let turn = pod.life().ended().is_none() && !pod.left && left > 0;
                left -= u32::from(turn);
                turns.push(turn);
            }
        }
        turns
    }

    /// True for each pod that is a member: it has not left, and where pods take turns it is its
    /// turn.
    fn members(&self) -> Vec<bool> {
        let take_turns = self
            .pods_by_set()
            .flat_map(|(set, pods)| pods.iter().map(|_| set.parallelism.is_some()));
        let pods = self.pods.iter().zip(take_turns).zip(self.turns());
        pods.map(|((pod, take_turns), turn)| turn || !(pod.left || take_turns)).collect()
    }
}

impl State {
    /// Adds missing members to the model, and sets the members that should run.
    pub(crate) fn update_members(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let Some(model) = workload.model else { return };
        let runs = workload.desired == Desired::Run && workload.completed_at.is_none();
        let gated = !workload.spec.gates.is_empty();
        let pods = workload.pods.iter().zip(workload.members()).zip(workload.turns());
        let pods: Vec<_> = pods
            .filter(|((pod, is_member), _)| pod.model.is_some() || *is_member)
            .map(|((pod, _), turn)| {
                let wants = runs && turn && !self.runs.has_orphan(pod.id);
                (pod.index, pod.model, wants, pod.life().has_succeeded())
            })
            .collect();
        for (index, known, wants, succeeded) in pods {
            let Some(member) = known.or_else(|| self.cluster.join(model, index)) else { continue };
            self.cluster.set_wants(member, wants);
            self.cluster.set_gated(member, gated);
            self.cluster.set_succeeded(member, succeeded);
            if let Some(pod) = self.workloads.pod_mut(id, index as usize) {
                pod.model = Some(member);
            }
        }
    }

    /// Takes a pod out of its set: its run is stopped, and its number is free once it has no place.
    pub(crate) fn leave_set(&mut self, (id, number): Home) {
        let Some(pod) = self.workloads.pod_mut(id, number) else { return };
        pod.left = true;
        self.update_members(id);
        self.release_those(id, |pod| pod.number() == number);
        self.touch(id);
    }

    /// Gives the number of a pod that has left its set to another.
    pub(crate) fn replace_member(&mut self, id: Uuid, pod: Pod) {
        if let Some(before) = self.workloads.replace_pod(id, pod) {
            self.end_allocation(before);
        }
        self.update_members(id);
        self.touch(id);
    }

    /// Removes pods that are no longer members from the model, once they have no place.
    pub(crate) fn drop_members(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let others = workload.pods.iter().zip(workload.members());
        let others = others.filter(|(_, is_member)| !is_member);
        let is_nowhere = |pod: &Pod| self.binding(pod) == model::PodBinding::default();
        let leave: Vec<_> = others
            .filter(|(pod, _)| is_nowhere(pod))
            .filter_map(|(pod, _)| Some((pod.number(), pod.model?)))
            .collect();
        for (number, member) in leave {
            if let Err(error) = self.cluster.leave(member) {
                let note = format!("pod {number} of workload {id} is still in the model: {error}");
                self.outbox.note(Note::Error(note));
            } else if let Some(pod) = self.workloads.pod_mut(id, number) {
                pod.model = None;
            }
        }
    }
}
