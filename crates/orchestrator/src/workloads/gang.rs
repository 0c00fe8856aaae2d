//! Pods that work together. Owns: that they start together, each on a port of its own; that they
//! restart together where a single one would not find the others; and the pod whose end ends the
//! workload. Does not know about: the variables of each framework (`spec::Gang`).

use std::collections::BTreeSet;

use pod_life::{Input, Life};
use spec::{CleanPods, Framework, Gang, MASTER, Member, Restart};
use uuid::Uuid;

use crate::effect::Action;
use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::{Pod, PortsWanted, Workload};

impl Workload {
    /// True if the workload is complete now that this pod has succeeded: with the master, or
    /// TensorFlow's first worker in its place; else with the last pod.
    pub(crate) fn is_complete_with(&self, number: usize) -> bool {
        let led = self.spec.distributed.is_some_and(|together| {
            self.spec.pods.role == MASTER || together.framework == Framework::Tf
        });
        (led && number == 0) || self.pods.iter().all(|pod| pod.life().has_succeeded())
    }

    /// True if its pods restart together when this one has to: the pods of a gang do, unless this
    /// one restarts in place or the others can do without it.
    pub(super) fn is_lost_without(&self, number: usize) -> bool {
        let (set, _) = self.spec.set_of(number);
        let spare = set.pods_min < set.pods
            || self.is_elastic_training()
            || self.spec.meets_at_server()
            || self.meets_without(number);
        let alone = set.pod.restart != Restart::Never && !self.recreates(number);
        self.spec.distributed.is_some() && !alone && !spare
    }

    /// True if other pods than this one compute in a world that they have met for at the server.
    fn meets_without(&self, number: usize) -> bool {
        let others = self.pods.iter().filter(|pod| pod.number() != number);
        others.into_iter().any(|pod| pod.meets && pod.life().is_running())
    }

    /// True if the group of a pod is recreated as a whole when the pod has to be.
    pub(super) fn recreates(&self, number: usize) -> bool {
        let group = self.spec.group(self.spec.set_of(number).0.group.as_ref());
        group.is_some_and(|at| self.spec.groups[at].recreate)
    }

    /// True if the state of the other pods lets a placed pod start.
    fn may_begin(&self, number: usize) -> bool {
        let others = self.pods.iter().skip(1);
        let first_waits = self.spec.distributed.is_some_and(|together| together.first_waits);
        let too_soon = || {
            let mut lives = others.clone().map(Pod::life);
            lives.any(|life| life.started_at().is_none() && life.ended().is_none())
        };
        self.pods[number].life().is_assembling() && !(number == 0 && first_waits && too_soon())
    }

    /// True if its pods get ports of their own.
    fn needs_ports(&self) -> bool {
        self.spec.distributed.is_some() || self.spec.serving.is_some()
    }

    /// Policy for pods that still run when it has ended.
    pub(crate) fn clean(&self) -> CleanPods {
        self.spec.distributed.map(|together| together.clean).unwrap_or_default()
    }
}

impl State {
    /// True if the pods for which `is` holds reach the minimum of a workload: of each set and of
    /// each group.
    pub(crate) fn is_enough(&self, workload: &Workload, is: impl Fn(&Pod) -> bool) -> bool {
        let Some(model) = workload.model.and_then(|id| self.cluster.workloads().get(id)) else {
            return false;
        };
        let count = |pods: &[Pod]| pods.iter().filter(|pod| is(pod)).count();
        let counts: Vec<_> = workload.pods_by_set().map(|(_, pods)| count(pods)).collect();
        let count = |set: usize| u32::try_from(counts[set]).unwrap_or(u32::MAX);
        match workload.spec.is_of_groups() {
            // An incomplete group takes nothing from the others.
            true => model.spec.reaches_minimum(None, &count),
            false => model.spec.is_whole(&count),
        }
    }

    /// True if the pods that start together can start: all of a group, or the minimum of the
    /// workload, are placed or have ended.
    fn has_places(&self, workload: &Workload, gang: &[usize]) -> bool {
        let is_there = |pod: &Pod| {
            let place = self.binding(pod);
            pod.life().ended().is_some() || (place.current.is_some() && !place.releasing)
        };
        match workload.spec.is_of_groups() {
            true => gang.iter().all(|&number| workload.pods.get(number).is_some_and(is_there)),
            false => self.is_enough(workload, is_there),
        }
    }

    /// Starts a pod that was placed, or makes it wait in its place for the pods that it works with.
    pub(crate) fn placed(&mut self, id: Uuid, number: usize) {
        let now = self.now;
        if self.workloads.get(&id).is_none_or(|workload| !workload.needs_ports()) {
            self.start(id, number);
            return;
        }
        if self.happens((id, number), &Input::Placed).is_none() {
            return;
        }
        if let Some(pod) = self.workloads.pod_mut(id, number) {
            pod.placed_at = Some(now);
        }
        self.runs.assembling.insert(id);
        self.touch(id);
    }

    /// Restarts a pod that kept its place.
    pub(crate) fn again_in_place(&mut self, id: Uuid, number: usize) {
        let Some(workload) = self.workloads.get(&id) else { return };
        if workload.spec.serving.is_some() || workload.is_lost_without(number) {
            // At another port: another process may have taken the old one. Pods that work together
            // start together.
            self.placed(id, number);
        } else {
            self.start(id, number);
        }
    }

    /// Starts the waiting pods whose gang is placed now.
    pub(crate) fn assemble(&mut self) {
        for id in std::mem::take(&mut self.runs.assembling) {
            let Some(workload) = self.workloads.get(&id) else { continue };
            if workload.spec.serving.is_some() {
                self.begin_replicas(id);
                continue;
            }
            if workload.is_elastic_training() {
                self.begin_members(id);
                continue;
            }
            let waits = |gang: &Vec<usize>| {
                let pods = || gang.iter().filter_map(|&number| workload.pods.get(number));
                let pauses = |pod: &Pod| {
                    matches!(pod.life(), Life::Paused { .. })
                        && workload.is_lost_without(pod.number())
                };
                pods().any(|pod| pod.life().is_assembling())
                    && !pods().any(pauses)
                    && self.has_places(workload, gang)
            };
            let (begun, new): (Vec<_>, Vec<_>) =
                workload.spec.gangs().into_iter().filter(waits).partition(|gang| {
                    let mut pods = gang.iter().filter_map(|&number| workload.pods.get(number));
                    pods.any(|pod| !pod.is_idle() && self.binding(pod).current.is_some())
                });
            let (mut begin, new) = (begun.concat(), new.concat());
            if !new.is_empty() && self.give_ports(id, &new) {
                begin.extend(new);
            }
            for number in begin {
                if self.workloads[&id].may_begin(number) {
                    self.start(id, number);
                }
            }
        }
    }

    /// Starts the replicas that are placed. Each is independent.
    fn begin_replicas(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let waiting = workload.pods.iter().filter(|pod| pod.life().is_assembling());
        let waiting: Vec<_> = waiting.map(Pod::number).collect();
        if waiting.is_empty() {
            return;
        }
        if self.give_ports(id, &waiting) {
            for number in waiting {
                self.start(id, number);
            }
        }
    }

    /// Assigns ports to some pods, which no placed pod has and no program listens on. They are new
    /// each time, so that the next runs do not meet leftovers of the last. The engine finds free
    /// ports first; if there are too few, no pod gets one and the search is repeated a little
    /// later.
    pub(super) fn give_ports(&mut self, id: Uuid, numbers: &[usize]) -> bool {
        let taken = self.ports_in_use(id, numbers);
        let Some(workload) = self.workloads.get_mut(&id) else { return false };
        let before = workload.pods.iter().filter_map(|pod| pod.port).max();
        match self.runs.ports.take(id, numbers.len(), taken, before) {
            Ok(ports) => {
                for (&number, port) in numbers.iter().zip(ports) {
                    if let Some(pod) = workload.pods.get_mut(number) {
                        pod.port = Some(port);
                    }
                }
                self.touch(id);
                true
            }
            Err(wanted) => {
                self.outbox.act(wanted.map(Action::FindPorts));
                false
            }
        }
    }

    /// Takes over the free ports that the engine has found: as many as requested unless there are
    /// too few.
    pub(crate) fn ports_found(&mut self, wanted: &PortsWanted, found: Vec<u16>) {
        let id = wanted.workload;
        // It may have given up its places meanwhile, or been deleted.
        let waits =
            |workload: &Workload| workload.pods.iter().any(|pod| pod.life().is_assembling());
        if !self.workloads.get(&id).is_some_and(waits) {
            self.runs.ports.forget(id);
        }
        if !self.runs.ports.is_searching(id) {
            return;
        }
        self.runs.assembling.insert(id);
        if self.runs.ports.found(wanted, found, self.now) {
            let message = "too few ports are free on this machine for its pods, which wait";
            self.emit(id, EventBuilder::new("TooFewPorts", message.to_owned()).warning());
        }
    }

    /// Repeats due searches for ports after one that found too few.
    pub(crate) fn search_ports_due(&mut self) {
        self.runs.assembling.extend(self.runs.ports.take_due(self.now));
    }

    /// The ports of all placed pods except for these pods of a workload.
    fn ports_in_use(&self, id: Uuid, numbers: &[usize]) -> BTreeSet<u16> {
        let there = self.cluster.nodes().iter().flat_map(|(_, node)| &node.pods);
        let there = there.filter(|pod| self.cluster.pods()[**pod].binding.current.is_some());
        let homes = there.filter_map(|&pod| self.home_of(pod));
        let keep = homes.filter(|(home, number)| *home != id || !numbers.contains(number));
        let pods = keep.filter_map(|(home, number)| self.workloads.get(&home)?.pods.get(number));
        pods.filter_map(|pod| pod.port).collect()
    }

    /// The pods that a pod works together with.
    pub(crate) fn gang_of(&self, workload: &Workload, number: usize) -> Option<Gang> {
        let together = workload.spec.distributed?;
        let member = |pod: &Pod| {
            let (set, _) = workload.spec.set_of(pod.number());
            let place = self.binding(pod);
            Member {
                role: set.role.clone(),
                index: pod.number_in_role(&workload.spec),
                node: place.current.map(|at| self.node_name(at.node)).unwrap_or_default(),
                port: pod.port.unwrap_or_default(),
            }
        };
        let gang = workload.spec.gang_with(number);
        let members: Vec<_> = gang.iter().filter_map(|&other| workload.pods.get(other)).collect();
        let sets = workload.spec.sets().filter(|set| match workload.spec.is_of_groups() {
            true => set.group == workload.spec.set_of(number).0.group,
            false => true,
        });
        Some(Gang {
            workload: workload.id,
            framework: together.framework,
            rank: members.iter().position(|pod| pod.number() == number)?,
            members: members.into_iter().map(member).collect(),
            members_min: sets.map(|set| set.pods_min).sum(),
            slots_per_worker: together.slots_per_worker,
            may_meet_at_server: workload.spec.may_meet_at_server(),
        })
    }

    /// Restarts the pods that would be lost without a pod which gives up its place.
    pub(crate) fn restart_with(&mut self, id: Uuid, number: usize) {
        let Some(workload) = self.workloads.get(&id) else { return };
        if !workload.is_lost_without(number) {
            return;
        }
        let gang = workload.spec.gang_with(number);
        if workload.spec.is_of_groups() {
            // Another group may be waiting for its ports.
            self.release_those(id, |pod| gang.contains(&pod.number()));
        } else {
            self.release_all(id);
        }
        self.rewind(id, &gang);
    }

    /// Once no pod of a gang runs, its succeeded pods restart with the others. A succeeded group
    /// stays as it is.
    pub(crate) fn rewind_if_stopped(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id).filter(|w| w.completed_at.is_none()) else {
            return;
        };
        let is_over = |pod: &Pod| pod.life().has_succeeded();
        let stopped = |gang: &Vec<usize>| {
            let pods = || gang.iter().filter_map(|&number| workload.pods.get(number));
            pods().all(|pod| self.binding(pod).current.is_none())
                && !(workload.spec.is_of_groups() && pods().all(is_over))
        };
        let gangs = workload.spec.gangs().into_iter().filter(stopped);
        for gang in gangs.collect::<Vec<_>>() {
            self.rewind(id, &gang);
        }
    }

    pub(super) fn rewind(&mut self, id: Uuid, gang: &[usize]) {
        if self.workloads.get(&id).is_none_or(|workload| workload.spec.distributed.is_none()) {
            return;
        }
        for &number in gang {
            self.happens((id, number), &Input::StartsOver);
        }
        self.update_members(id);
    }
}
