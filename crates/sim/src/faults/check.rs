//! What must hold after each step of a history. Owns: saying what does not.

use model::{Child, Cluster, Pod, PodId, Workload, WorkloadId, WorkloadSpec};
use sched::Step as Decided;

use crate::world::Simulation;

/// What must hold of every state.
fn state(simulation: &Simulation) -> Result<(), String> {
    let cluster = simulation.cluster();
    cluster.verify()?;
    for (_, queue) in cluster.queues().iter() {
        if !queue.allocated_non_preemptible.fits_in(queue.allocated) {
            return Err(format!("queue {} holds less than what cannot be preempted", queue.name));
        }
    }
    Ok(())
}

/// What must hold of every decision.
pub(super) fn decision(old: &Simulation, new: &Simulation) -> Result<(), String> {
    state(new)?;
    let mut again = old.clone();
    again.cycle();
    if again.plan() != new.plan() {
        return Err("equal input gave another plan".into());
    }
    let cluster = new.cluster();
    cluster.verify_together(old.cluster())?;
    // The other profile does not look at them.
    if matches!(new.policy.profile, sched::Profile::Default) {
        cluster.verify_pools(old.cluster())?;
    }
    for id in cluster.waiting() {
        if new.plan().pending.get(&id).is_none_or(|why| why.is_empty()) {
            return Err(format!("{} waits without a reason", name(cluster, id)));
        }
    }
    for (id, workload) in cluster.workloads().iter() {
        gang(old.cluster(), cluster, id, workload)?;
    }
    beneficiaries(new)
}

/// A gang starts with all it needs or not at all: a pod comes only where its set, and each group
/// above, has its minimum. Another part that lost pods, and that they can do without, is no matter.
fn gang(old: &Cluster, new: &Cluster, id: WorkloadId, workload: &Workload) -> Result<(), String> {
    let runs = |cluster: &Cluster, pod: &PodId| cluster.pods().get(*pod).is_some_and(Pod::runs);
    let running =
        |cluster, set| workload.pods_of(set).iter().filter(|pod| runs(cluster, pod)).count();
    let spec = &workload.spec;
    let pods = |set| u32::try_from(running(new, set)).unwrap_or(u32::MAX);
    for (at, set) in spec.pod_sets.iter().enumerate() {
        let came = running(new, at) > running(old, at);
        let groups =
            std::iter::successors(Some(set.group), |at| at.map(|at| spec.groups[at].parent));
        let mut groups = groups.map(|group| lacks(spec, group, &pods));
        if came && (pods(at) < set.pods_min || groups.any(|lacks| lacks)) {
            let (name, set) = (name(new, id), &set.name);
            return Err(format!("{name} starts with {} pods of set `{set}`", pods(at)));
        }
    }
    Ok(())
}

/// Whether a group (none: the workload) has fewer parts with their minimum than it needs.
fn lacks(spec: &WorkloadSpec, group: Option<usize>, pods: &impl Fn(usize) -> u32) -> bool {
    let has_minimum = |child: &Child| match *child {
        Child::Group(group) => !lacks(spec, Some(group), pods),
        Child::Set(set) => pods(set) >= spec.pod_sets[set].pods_min,
    };
    spec.children(group).filter(has_minimum).count() < spec.children_min_of(group)
}

/// Nobody is stopped for somebody who then has no place.
fn beneficiaries(new: &Simulation) -> Result<(), String> {
    let cluster = new.cluster();
    for decided in &new.plan().steps {
        let (Decided::Evict { pod, cause, .. }
        | Decided::Move { pod, cause, .. }
        | Decided::Resize { pod, cause, .. }) = decided
        else {
            continue;
        };
        let Some(beneficiary) = cause.beneficiary() else { continue };
        let placed = cluster.workloads().get(beneficiary.id).is_some_and(|row| row.placed > 0);
        if !placed {
            let victim = &cluster.workload_of(*pod).spec.name;
            return Err(format!("{victim} is stopped for {beneficiary}, which gets no place"));
        }
    }
    Ok(())
}

fn name(cluster: &Cluster, id: WorkloadId) -> String {
    cluster.workloads()[id].spec.name.clone()
}
