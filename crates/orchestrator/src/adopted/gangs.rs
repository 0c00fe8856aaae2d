//! Adopted pods that start together. Owns: the pods of each gang. A gang is made again as pods come
//! and go while it is incomplete; from then on its pods are fixed, and a pod that comes in place of
//! one that has left takes the number of that. Pods above the number that start together are
//! workloads by themselves.

use std::sync::Arc;

use adopted::{gang_of, member_of};
use records::Desired;
use spec::{AdoptedPhase, AdoptedPod};
use uuid::Uuid;

use crate::state::State;
use crate::workloads::{Home, Pod, Workload};

impl State {
    /// Updates the gangs that got or lost pods.
    pub(crate) fn settle_gangs(&mut self) {
        for gang in self.adopted.take_unsettled() {
            self.settle_gang(gang);
        }
    }

    fn settle_gang(&mut self, gang: Uuid) {
        let pods = self.adopted.gang(gang);
        let mut homes =
            pods.iter().filter_map(|pod| Some((pod.uid, self.workloads.home(pod.uid)?.0)));
        let stands = |w: &Workload| w.desired == Desired::Run && w.completed_at.is_none();
        let standing = homes.find(|(uid, id)| uid != id && stands(&self.workloads[id]));
        match standing.map(|(_, id)| id) {
            Some(id) if self.workloads[&id].pods_are_complete() => self.join_gang(id, pods),
            Some(id) => {
                self.remake(id);
                self.adopted.settled(gang);
                self.form_gang(gang, pods);
            }
            None => self.form_gang(gang, pods),
        }
    }

    /// The pods among these that are in no workload and can be, the first to be placed first.
    fn unattached(&mut self, pods: Vec<Arc<AdoptedPod>>) -> Vec<(Arc<AdoptedPod>, u64)> {
        let mut free: Vec<_> = pods
            .into_iter()
            .filter(|pod| {
                let home = self.workloads.home(pod.uid);
                home.is_none_or(|home| pod.node.is_none() && self.has_left(home))
            })
            .filter(|pod| !pod.phase.is_over() && !pod.deleting)
            .filter(|pod| !self.adopted.lacks_room(pod.uid))
            .collect();
        free.sort_by(|a, b| {
            let key = |pod: &AdoptedPod| (!pod.holds(), pod.created_at);
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        let charged = free.into_iter().filter_map(|pod| {
            let project_id = self.charged_project(&pod)?;
            Some((pod, project_id))
        });
        charged.collect()
    }

    /// Makes a gang of the pods that exist.
    fn form_gang(&mut self, gang: Uuid, pods: Vec<Arc<AdoptedPod>>) {
        let some_succeeded = pods.iter().any(|pod| pod.phase == AdoptedPhase::Succeeded);
        let pods = self.unattached(pods);
        let Some((first, project_id)) = pods.first().map(|(pod, project)| (pod.uid, *project))
        else {
            return;
        };
        let pods_min = pods.iter().filter_map(|(pod, _)| Some(pod.gang.as_ref()?.pods_min)).max();
        let pods_min = pods_min.unwrap_or(1);
        let (own, others): (Vec<_>, Vec<_>) =
            pods.into_iter().partition(|(_, project)| *project == project_id);
        let together = own.len().min(pods_min as usize);
        let members: Vec<&AdoptedPod> = own[..together].iter().map(|(pod, _)| &**pod).collect();
        // Some of its pods may have ended already, and will not come again.
        let has_begun = some_succeeded || members.iter().any(|pod| pod.holds());
        if let Some((spec, numbers)) = gang_of(&members, if has_begun { 0 } else { pods_min }) {
            let numbered: Vec<_> = members.into_iter().zip(numbers).collect();
            let id = Uuid::new_v5(&gang, first.as_bytes());
            self.adopt_pods((id, project_id), spec, &numbered);
        }
        for (pod, _) in &own[..together] {
            self.settle_member(pod);
        }
        for (pod, project_id) in own[together..].iter().chain(&others) {
            self.take_in_alone(pod, *project_id);
            self.settle_member(pod);
        }
    }

    /// Gives pods the numbers of those that have left. While such a one still ends, they wait for
    /// its number; without one they are workloads by themselves.
    fn join_gang(&mut self, id: Uuid, pods: Vec<Arc<AdoptedPod>>) {
        self.drop_members(id);
        let ready = self.unattached(pods).into_iter().filter(|(pod, _)| pod.gates.is_empty());
        for (pod, project_id) in ready {
            let workload = &self.workloads[&id];
            let of = member_of(&pod);
            let left = workload.pods.iter().filter(|own| own.left);
            let mut left = left.filter(|own| workload.spec.set_of(own.number()).0.pod == of);
            let (free, ending) = (left.clone().find(|own| own.model.is_none()), left.next());
            match (free.map(|own| own.index), ending) {
                (Some(number), _) if workload.project_id == project_id => {
                    let record = self.record_of(&pod, number);
                    let seq = self.seq_of(pod.uid);
                    self.replace_member(id, record);
                    self.adopted.charge(pod.uid, id, seq);
                }
                (None, Some(_)) if workload.project_id == project_id => continue,
                _ => self.take_in_alone(&pod, project_id),
            }
            self.settle_member(&pod);
        }
    }

    /// True if a pod has left the set of its workload and has no place.
    pub(super) fn has_left(&self, (id, number): Home) -> bool {
        self.workloads.pod(id, number).is_some_and(|own| own.left && own.model.is_none())
    }

    fn settle_member(&mut self, pod: &AdoptedPod) {
        self.follow_adopted(pod);
        self.settle_held_on(pod.node.clone());
    }

    /// Takes a pod out of its gang; `false` if no other pod of it lives. A gang without a place is
    /// made again.
    pub(super) fn leave_if_others_live(&mut self, home: Home) -> bool {
        let (id, number) = home;
        let Some(workload) = self.workloads.get(&id) else { return false };
        let lives = |pod: &Pod| !pod.left && pod.life().ended().is_none();
        let others = workload.pods.iter().any(|pod| pod.number() != number && lives(pod));
        if !others || !self.holds_any(workload) || workload.desired == Desired::Delete {
            return false;
        }
        let uid = workload.pods[number].id;
        self.leave_set(home);
        self.outbox.withdraw(uid);
        true
    }

    /// Puts a pod that has left its gang into it again: its node is back.
    pub(super) fn come_back(&mut self, (id, number): Home, pod: &AdoptedPod) {
        let Some(own) = self.workloads.pod(id, number) else { return };
        if !own.left || own.model.is_some() || pod.deleting {
            return;
        }
        let record = self.record_of(pod, own.index);
        let seq = self.seq_of(pod.uid);
        self.replace_member(id, record);
        self.adopted.charge(pod.uid, id, seq);
    }
}
