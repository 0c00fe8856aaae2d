//! Pods of a node that is removed, loses a GPU or gets a taint. Owns: that they give up their
//! places and wait for others, that a run left behind is stopped before its pod starts elsewhere,
//! and that a gang restarts together.

use std::collections::BTreeSet;

use model::{Effect, NodeId, Placement, PodBinding, PodId, Taint};
use pod_life::Input;
use reasons::Code;
use spec::RunPlace;
use uuid::Uuid;

use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::Pod;
use view::codes::{NODE_GONE, TAINTED};

impl State {
    /// Removes all present and reserved places on a node for which `is_lost` holds. The runs of
    /// their pods are stopped without delay, if possible.
    pub(crate) fn lose_places(
        &mut self,
        node: NodeId,
        is_lost: impl Fn(&Placement) -> bool,
        why: &str,
    ) {
        let lost = |place: &Placement| place.node == node && is_lost(place);
        let mut evicted = Vec::new();
        let mut ended = BTreeSet::new();
        for pod in self.cluster.nodes()[node].pods.clone() {
            let before = self.cluster.pods()[pod].binding.clone();
            let mut now = before.clone();
            now.next = now.next.filter(|place| !lost(place));
            if now.current.as_ref().is_some_and(lost) {
                (now.current, now.releasing) = (None, false);
            }
            let loses_current = now.current != before.current;
            if now == before {
                continue;
            }
            self.cluster.set_binding(pod, now);
            let Some((id, number)) = self.home_of(pod) else { continue };
            self.touch(id);
            if loses_current {
                self.leave_run(id, number, before.current.as_ref());
                if before.releasing || self.workloads[&id].completed_at.is_some() {
                    ended.insert(id);
                } else {
                    evicted.push((id, number));
                }
            }
        }
        for (id, number) in evicted {
            self.say_place_gone(id, number, why);
            self.relaunch(id, number, false);
            self.hold_with(id, number);
            ended.insert(id);
        }
        for id in ended {
            self.leave_if_over(id);
            self.rewind_if_stopped(id);
            self.finish_deletion(id);
        }
    }

    /// Reports that a pod has lost its place.
    pub(crate) fn say_place_gone(&mut self, id: Uuid, number: usize, why: &str) {
        self.evicted(id, NODE_GONE.code, why.to_owned());
        let event = EventBuilder::new("Evicted", why).warning().pod(number).code(NODE_GONE.code);
        self.emit(id, event);
    }

    /// Stops the run of a pod whose place no longer exists, if it has one.
    fn leave_run(&mut self, id: Uuid, number: usize, place: Option<&Placement>) {
        let place = place.and_then(|place| self.run_place(place));
        let Some(run) = self.workloads.pod(id, number).map(Pod::run) else { return };
        let lost = self.happens((id, number), &Input::LosesPlace);
        if lost.and_then(|lost| lost.effect) != Some(pod_life::Effect::StopOrphan) {
            return;
        }
        // A removed node gives no time for an orderly end.
        self.adopt_orphan(run, place, None, 0);
    }

    /// A place in the form that engines use.
    fn run_place(&self, place: &Placement) -> Option<RunPlace> {
        let node = &self.nodes.get(place.node)?.spec;
        let share = |share: &model::DeviceShare| {
            Some((node.gpus.get(share.gpu as usize)?.uuid.clone(), share.millis))
        };
        let devices = place.devices.iter().filter_map(share).collect();
        Some(RunPlace { node: node.name.clone(), devices: Some(devices) })
    }

    /// Stops these pods, with their grace period, unless they are being stopped.
    pub(crate) fn move_off(&mut self, pods: Vec<PodId>, code: Code, why: &str) {
        let runs = |pod: &PodId| {
            let binding = &self.cluster.pods()[*pod].binding;
            binding.current.is_some() && !binding.releasing
        };
        let homes = pods.into_iter().filter(runs).filter_map(|pod| self.home_of(pod));
        let homes: Vec<_> = homes.collect();
        for &(id, number) in &homes {
            self.evicted(id, code.code, why.to_owned());
            let event = EventBuilder::new("Evicted", why).warning().pod(number).code(code.code);
            self.emit(id, event);
            self.release_those(id, |pod| pod.number() == number);
        }
        // Pods of one gang that leave together do not keep their places for each other.
        for (id, number) in homes {
            self.hold_with(id, number);
            self.rewind_if_stopped(id);
        }
    }

    /// Stops the pods on a node that do not tolerate one of its `NoExecute` taints. Their
    /// reservations there are given up. Nodes that a feed reports are of a cluster that evicts itself.
    pub(crate) fn evict_intolerant(&mut self, node: NodeId) {
        if self.adopted.is_open() {
            return;
        }
        let row = &self.cluster.nodes()[node];
        let evicts = |taint: &&Taint| taint.effect == Effect::NoExecute;
        let taints: Vec<_> = row.taints.iter().filter(evicts).collect();
        let texts: Vec<_> = taints.iter().map(ToString::to_string).collect();
        let tolerates = |pod: PodId| {
            let constraints = self.cluster.constraints(self.cluster.set_of(pod).constraints);
            taints.iter().all(|taint| constraints.tolerates(taint))
        };
        let pods: Vec<_> = row.pods.iter().copied().filter(|&pod| !tolerates(pod)).collect();
        let why =
            format!("{} has taint {}, which it does not tolerate", row.name, texts.join(", "));
        for &pod in &pods {
            let binding = self.cluster.pods()[pod].binding.clone();
            if binding.next.as_ref().is_some_and(|place| place.node == node) {
                self.cluster.set_binding(pod, PodBinding { next: None, ..binding });
                self.home_of(pod).into_iter().for_each(|(id, _)| self.touch(id));
            }
        }
        let is_here = |pod: &PodId| {
            let current = self.cluster.pods()[*pod].binding.current.as_ref();
            current.is_some_and(|place| place.node == node)
        };
        let pods = pods.into_iter().filter(is_here).collect();
        self.move_off(pods, TAINTED, &why);
    }
}
