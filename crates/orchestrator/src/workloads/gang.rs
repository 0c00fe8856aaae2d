//! Pods that work together. Owns: that they begin together, each on a port of its own; that they
//! are restarted together where one alone would not find the others; and whose end is the end of
//! all. Does not know what a framework needs of this (`spec::Gang`).

use std::collections::BTreeSet;

use spec::{CleanPods, Framework, Gang, MASTER, Member, Restart};
use uuid::Uuid;

use crate::effect::Action;
use crate::emit::EventBuilder;
use crate::state::State;
use crate::workloads::{Ended, Pod, PortsWanted, Workload};

impl Workload {
    /// True if all has ended well now that this pod has: with the master, where there is one, and
    /// TensorFlow's first worker stands in for it; else with the last of them.
    pub(crate) fn is_complete_with(&self, number: usize) -> bool {
        let led = self.spec.distributed.is_some_and(|together| {
            self.spec.pods.role == MASTER || together.framework == Framework::Tf
        });
        (led && number == 0) || self.pods.iter().all(|pod| pod.ended == Some(Ended::Succeeded))
    }

    /// True if its pods restart together when this one has to be: those that work
    /// together are, unless it keeps its place or they can do with fewer.
    pub(super) fn is_lost_without(&self, number: usize) -> bool {
        let (set, _) = self.spec.set_of(number);
        let spare =
            set.pods_min < set.pods || self.is_elastic_training() || self.spec.meets_at_server();
        let alone = set.pod.restart != Restart::Never && !self.recreates(number);
        self.spec.distributed.is_some() && !alone && !spare
    }

    /// True if the group of a pod begins again as a whole when the pod has to.
    pub(super) fn recreates(&self, number: usize) -> bool {
        let group = self.spec.group(self.spec.set_of(number).0.group.as_ref());
        group.is_some_and(|at| self.spec.groups[at].recreate)
    }

    /// True if a pod that has its place may begin, as far as the others matter.
    fn may_begin(&self, number: usize) -> bool {
        let others = self.pods.iter().skip(1);
        let first_waits = self.spec.distributed.is_some_and(|together| together.first_waits);
        let too_soon = || others.clone().any(|pod| pod.started_at.is_none() && pod.ended.is_none());
        self.pods[number].waits_for_others && !(number == 0 && first_waits && too_soon())
    }

    /// True if its pods are told ports of their own.
    fn needs_ports(&self) -> bool {
        self.spec.distributed.is_some() || self.spec.serving.is_some()
    }

    /// What happens to those that still run when it has ended.
    pub(crate) fn clean(&self) -> CleanPods {
        self.spec.distributed.map(|together| together.clean).unwrap_or_default()
    }
}

impl State {
    /// True if so many of its pods are as described that a workload makes sense: those of each set,
    /// and those parts of each group, that it needs at least.
    pub(crate) fn is_enough(&self, workload: &Workload, is: impl Fn(&Pod) -> bool) -> bool {
        let Some(model) = workload.model.and_then(|id| self.cluster.workloads().get(id)) else {
            return false;
        };
        let count = |pods: &[Pod]| pods.iter().filter(|pod| is(pod)).count();
        let counts: Vec<_> = workload.pods_by_set().map(|(_, pods)| count(pods)).collect();
        let count = |set: usize| u32::try_from(counts[set]).unwrap_or(u32::MAX);
        match workload.spec.is_of_groups() {
            // A group that is not whole takes nothing from the others.
            true => model.spec.reaches_minimum(None, &count),
            false => model.spec.is_whole(&count),
        }
    }

    /// True if the pods of a workload that begin together can: all of a group, or as many as the
    /// workload needs at least, have their places or have ended.
    fn has_places(&self, workload: &Workload, gang: &[usize]) -> bool {
        let is_there = |pod: &Pod| {
            let place = self.binding(pod);
            pod.ended.is_some() || (place.current.is_some() && !place.releasing)
        };
        match workload.spec.is_of_groups() {
            true => gang.iter().all(|&number| workload.pods.get(number).is_some_and(is_there)),
            false => self.is_enough(workload, is_there),
        }
    }

    /// A pod has got its place: it begins, or waits there for those it works together with.
    pub(crate) fn placed(&mut self, id: Uuid, number: usize) {
        let now = self.now;
        if self.workloads.get(&id).is_none_or(|workload| !workload.needs_ports()) {
            self.start(id, number);
            return;
        }
        let Some(pod) = self.workloads.pod_mut(id, number) else { return };
        pod.waits_for_others = true;
        pod.started_at = None;
        pod.placed_at = Some(now);
        self.workloads.set_restart((id, number), None);
        self.runs.assembling.insert(id);
        self.touch(id);
    }

    /// A pod that kept its place is to begin there again.
    pub(crate) fn again_in_place(&mut self, id: Uuid, number: usize) {
        let Some(workload) = self.workloads.get(&id) else { return };
        if workload.spec.serving.is_some() || workload.is_lost_without(number) {
            // At another port: another process may have taken its own. Those that work together
            // begin together.
            self.placed(id, number);
        } else {
            self.start(id, number);
        }
    }

    /// Begins what waited for others that have their places now.
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
                let pauses =
                    |pod: &Pod| pod.restart_at.is_some() && workload.is_lost_without(pod.number());
                pods().any(|pod| pod.waits_for_others)
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

    /// Begins the replicas that have their places. Each is on its own.
    fn begin_replicas(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let waiting = workload.pods.iter().filter(|pod| pod.waits_for_others);
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

    /// Gives some pods ports that no pod in a place has and no program listens on. Each time
    /// others, so that the next runs do not meet what may be left of the last. Which are free the
    /// engine is asked first; where there are too few, no pod gets one and it is asked again a
    /// little later.
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

    /// The engine has looked for ports: these are free, and as many as were wanted unless there
    /// are too few.
    pub(crate) fn ports_found(&mut self, wanted: &PortsWanted, found: Vec<u16>) {
        let id = wanted.workload;
        // It may have given up its places meanwhile, or be gone.
        let waits = |workload: &Workload| workload.pods.iter().any(|pod| pod.waits_for_others);
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

    /// Searches for ports again where there were too few and the time has come.
    pub(crate) fn search_ports_due(&mut self) {
        self.runs.assembling.extend(self.runs.ports.take_due(self.now));
    }

    /// The ports of all pods in a place but those of a workload that get others.
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
        })
    }

    /// A part of a gang is lost and may be back soon: the others hold their places.
    pub(crate) fn lack(&mut self, id: Uuid, number: usize) {
        let Some(workload) = self.workloads.get(&id) else { return };
        // How long a gang in parts lacks one of them is not looked at.
        match workload.spec.is_of_groups() {
            true => self.restart_with(id, number),
            false => self.hold_with(id, number),
        }
    }

    /// A pod gives up its place and is to be started again: so are all that would be lost without.
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

    /// Once nothing of a gang runs, those of it that had done their part restart with the
    /// others. A group that has ended well stays as it is.
    pub(crate) fn rewind_if_stopped(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id).filter(|w| w.completed_at.is_none()) else {
            return;
        };
        let is_over = |pod: &Pod| pod.ended == Some(Ended::Succeeded);
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
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        if workload.spec.distributed.is_none() {
            return;
        }
        for &number in gang {
            if let Some(pod) = workload.pods.get_mut(number) {
                pod.ended = None;
            }
        }
        self.update_members(id);
    }
}
