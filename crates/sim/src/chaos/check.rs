//! Invariants that hold after each step of a history, and after the last faults have ended. Owns:
//! the checks, and the descriptions of violations.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use model::{Child, Cluster, Pod, PodId, Workload, WorkloadSpec};
use sched::{Plan, Policy, Step};
use spec::{RunKey, WorkloadPast};
use units::Instant;
use uuid::Uuid;
use view::{OrgUnit, Phase, PodState, PodView, PoolView, QueueStatus, View, WorkloadView};

use crate::machine::Machine;

/// Checks a decision, on the cluster before it and on the cluster after it was carried out.
pub(super) fn decision(
    old: &Cluster,
    plan: &Plan,
    policy: &Policy,
    now: Instant,
) -> Result<(), String> {
    let mut new = old.clone();
    sched::carry(&mut new, now, plan);
    new.verify()?;
    new.verify_together(old)?;
    if matches!(policy.profile, sched::Profile::Default) {
        new.verify_pools(old)?;
    }
    let from_scratch = sched::cycle(&mut old.clone(), now, policy);
    if from_scratch.steps != plan.steps {
        let (got, wanted) = (&plan.steps, &from_scratch.steps);
        return Err(format!(
            "what the scheduler remembers changes its plan: {got:?}, not {wanted:?}"
        ));
    }
    if sched::cycle(&mut old.clone(), now, policy) != from_scratch {
        return Err("equal input gave another plan".to_owned());
    }
    for id in new.waiting() {
        if from_scratch.pending.get(&id).is_none_or(|reasons| reasons.is_empty()) {
            let name = &new.workloads()[id].spec.name;
            return Err(format!("{name} waits, and a decision from scratch gives no reason"));
        }
    }
    for (_, queue) in new.queues().iter() {
        if !queue.allocated_non_preemptible.fits_in(queue.allocated) {
            let name = &queue.name;
            return Err(format!("queue {name} holds less than what of it cannot be preempted"));
        }
    }
    for (_, workload) in new.workloads().iter() {
        gang(old, &new, workload)?;
    }
    beneficiaries(&new, plan)
}

/// A gang starts with its minimum or not at all: a pod starts only if its pod set, and each group
/// above, has its minimum. Other parts that lost pods do not matter if the minimum of their group
/// holds without them.
fn gang(old: &Cluster, new: &Cluster, workload: &Workload) -> Result<(), String> {
    let runs = |cluster: &Cluster, pod: &PodId| cluster.pods().get(*pod).is_some_and(Pod::runs);
    let count =
        |cluster, set| workload.pods_of(set).iter().filter(|pod| runs(cluster, pod)).count();
    // Pods that have succeeded count as running.
    let done = |pod: &&PodId| new.pods().get(**pod).is_some_and(|pod| pod.succeeded);
    let spec = &workload.spec;
    let pods = |set| {
        let succeeded = workload.pods_of(set).iter().filter(done).count();
        u32::try_from(count(new, set) + succeeded).unwrap_or(u32::MAX)
    };
    for (at, set) in spec.pod_sets.iter().enumerate() {
        let came = count(new, at) > count(old, at);
        let groups =
            std::iter::successors(Some(set.group), |at| at.map(|at| spec.groups[at].parent));
        let mut groups = groups.map(|group| lacks(spec, group, &pods));
        if came && (pods(at) < set.pods_min || groups.any(|lacks| lacks)) {
            let (name, set) = (&spec.name, &set.name);
            return Err(format!("{name} starts with {} pods of set `{set}`", pods(at)));
        }
    }
    Ok(())
}

/// `true` if a group, or the workload if `group` is `None`, has fewer children with their minimum
/// than it needs.
fn lacks(spec: &WorkloadSpec, group: Option<usize>, pods: &impl Fn(usize) -> u32) -> bool {
    let has_minimum = |child: &Child| match *child {
        Child::Group(group) => !lacks(spec, Some(group), pods),
        Child::Set(set) => pods(set) >= spec.pod_sets[set].pods_min,
    };
    spec.children(group).filter(has_minimum).count() < spec.children_min_of(group)
}

/// No pod is evicted for a workload that then has no place.
fn beneficiaries(new: &Cluster, plan: &Plan) -> Result<(), String> {
    for step in &plan.steps {
        let (Step::Evict { pod, cause, .. }
        | Step::Move { pod, cause, .. }
        | Step::Resize { pod, cause, .. }) = step
        else {
            continue;
        };
        let Some(beneficiary) = cause.beneficiary() else { continue };
        if new.workloads().get(beneficiary.id).is_none_or(|row| row.placed == 0) {
            let victim = &new.workload_of(*pod).spec.name;
            return Err(format!("{victim} is stopped for {beneficiary}, which gets no place"));
        }
    }
    Ok(())
}

/// Checks the state after a batch. `known` are the acknowledged workloads, each with `true` if it
/// may be gone.
pub(super) fn batch(machine: &Machine, known: &BTreeMap<Uuid, bool>) -> Result<(), String> {
    if let Some(misuse) = machine.misuse() {
        return Err(misuse.to_owned());
    }
    let (Some(view), Some((cluster, _))) = (machine.view(), machine.replica()) else {
        return Ok(());
    };
    cluster.verify()?;
    for (id, may_go) in known {
        let is_there = view.workloads.contains_key(id) || machine.rows.archived_ids().contains(id);
        if !may_go && !is_there {
            return Err(format!("workload {id} was acknowledged and is not there"));
        }
    }
    for workload in view.workloads.values() {
        let name = &workload.spec.name;
        if !known.contains_key(&workload.id) {
            return Err(format!("workload {name} is there, and was never acknowledged"));
        }
        // A workload with a reserved place needs no reason to wait.
        let is_served = |pod: &PodView| pod.state == PodState::Reserved;
        let waits = workload.phase == Phase::Pending
            && workload.revisions.is_empty()
            && !workload.pods.iter().any(is_served);
        if waits && view.why(workload).is_empty() && !machine.is_halted() {
            return Err(format!("{name} waits without a reason"));
        }
    }
    if machine.written().is_empty() { Ok(()) } else { same_after_a_start(machine, view) }
}

/// A server recovered from the rows shows the same view as the server that wrote them.
fn same_after_a_start(machine: &Machine, living: &View) -> Result<(), String> {
    let recovered = machine.recovered();
    let recovered = recovered.map_err(|error| format!("the rows are of no use: {error}"))?;
    let Some((recovered, model)) = recovered else { return Ok(()) };
    if let Some((living, _)) = machine.replica() {
        // Ended workloads are not in the model after a start, and before that only as long as a pod
        // of them runs.
        let (mut living, recovered) = (pasts(living), pasts(&model));
        living.retain(|seq, _| recovered.contains_key(seq));
        same("pasts", living, recovered)?;
    }
    let workload = |view: &Arc<WorkloadView>| stored_of(view);
    let unit = |unit: &OrgUnit| stored_of_unit(unit);
    same("archived", living.archived.iter(), recovered.archived.iter())?;
    same(
        "workloads",
        living.workloads.values().map(workload),
        recovered.workloads.values().map(workload),
    )?;
    same(
        "revisions",
        living.revisions.values().map(workload),
        recovered.revisions.values().map(workload),
    )?;
    let projects = |view: &View| view.projects.values().map(|p| unit(&p.unit)).collect::<Vec<_>>();
    same("projects", projects(living), projects(&recovered))?;
    let departments = |view: &View| view.departments.values().map(|d| unit(d)).collect::<Vec<_>>();
    same("departments", departments(living), departments(&recovered))?;
    let nodes = |view: &View| {
        let nodes = view.nodes.iter().map(|node| (node.name.clone(), node.clone()));
        nodes.collect::<BTreeMap<_, _>>()
    };
    same("nodes", nodes(living), nodes(&recovered))?;
    let pools = |view: &View| {
        let mut pools: Vec<_> = view.pools.iter().map(|pool| PoolView::clone(pool)).collect();
        pools.iter_mut().for_each(|pool| pool.nodes.sort());
        pools
    };
    same("node pools", pools(living), pools(&recovered))?;
    same("names", living.by_name.iter(), recovered.by_name.iter())?;
    let objects = |view: &View| {
        view.objects.kinds().flat_map(|kind| view.objects.all(kind)).collect::<Vec<_>>()
    };
    same("objects", objects(living), objects(&recovered))?;
    same("events", [living.event_seq], [recovered.event_seq])
}

/// History of each workload of the model, by its sequence number.
fn pasts(model: &Cluster) -> BTreeMap<u64, WorkloadPast> {
    model.workloads().iter().map(|(_, row)| (row.spec.seq, WorkloadPast::of(row))).collect()
}

fn same<T: PartialEq + Debug>(
    what: &str,
    living: impl IntoIterator<Item = T>,
    recovered: impl IntoIterator<Item = T>,
) -> Result<(), String> {
    let (mut living, mut recovered) = (living.into_iter(), recovered.into_iter());
    loop {
        match (living.next(), recovered.next()) {
            (None, None) => return Ok(()),
            (living, recovered) if living == recovered => {}
            (living, recovered) => {
                let differences = differences(&format!("{living:#?}"), &format!("{recovered:#?}"));
                return Err(format!("{what}: after a start there would be{differences}"));
            }
        }
    }
}

/// The lines that differ, each with the last equal line before it that names a field or opens a
/// list.
fn differences(living: &str, recovered: &str) -> String {
    let mut text = String::new();
    let mut around = "";
    for (living, recovered) in living.lines().zip(recovered.lines()) {
        if living == recovered
            && (living.ends_with(": [") || living.ends_with("(") || living.contains(": "))
        {
            around = living;
        } else if living != recovered {
            let words = [around, recovered, living].map(str::trim);
            text += &format!("\n  {}: {} and not {}", words[0], words[1], words[2]);
        }
    }
    text
}

/// A workload without the fields that are recomputed or measured again after a start.
fn stored_of(view: &WorkloadView) -> WorkloadView {
    let mut view = view.clone();
    view.model = None;
    view.pending = Arc::default();
    view.idle_since = None;
    for pod in &mut view.pods {
        pod.condition = None;
        if pod.state.is_pending() {
            pod.restart_at = None;
        }
        pod.state = match pod.state {
            PodState::BackingOff => PodState::Pending,
            PodState::PullFails | PodState::PlacesKept => PodState::Starting,
            stored => stored,
        };
    }
    view
}

fn stored_of_unit(unit: &OrgUnit) -> OrgUnit {
    let mut unit = unit.clone();
    let stored =
        |status: QueueStatus| QueueStatus { fair_share: Default::default(), usage: None, ..status };
    unit.status = stored(unit.status);
    unit.pools.iter_mut().for_each(|pool| pool.status = stored(pool.status));
    unit
}

/// Checks the state when nothing is in progress any more.
pub(super) fn at_rest(machine: &Machine) -> Result<(), String> {
    let (Some(view), Some((cluster, policy))) = (machine.view(), machine.replica()) else {
        return Err("the server is down".to_owned());
    };
    for workload in view.workloads.values().chain(view.revisions.values()) {
        let is_moving = matches!(
            workload.phase,
            Phase::Deleting | Phase::Initializing | Phase::Stopping | Phase::Resuming
        );
        if is_moving {
            return Err(format!("{} stays {:?}", workload.spec.name, workload.phase));
        }
        let passes = |code: &str| ["P304", "P308"].contains(&code);
        if let Some(why) = view.why(workload).iter().find(|why| passes(&why.code)) {
            return Err(format!("{} still waits: {}", workload.spec.name, why.message));
        }
    }
    let all =
        view.workloads.values().filter(|w| !w.spec.has_revisions()).chain(view.revisions.values());
    let running = all.flat_map(|w| w.pods.iter().filter(|pod| pod.state == PodState::Running));
    let mut running: Vec<_> =
        running.map(|pod| RunKey { pod: pod.id, generation: pod.generation }).collect();
    running.sort();
    let unkillable = &machine.engine.unkillable;
    let alive = machine.engine.alive().map(|(key, _)| *key);
    let alive: Vec<_> = alive.filter(|key| !unkillable.contains(key)).collect();
    if running != alive {
        return Err(format!("{running:?} should run, and {alive:?} do"));
    }
    let deleted = machine.rows.deleted_pods();
    let has_run = |pod: &Uuid| machine.engine.runs().keys().any(|key| key.pod == *pod);
    let kept = machine.engine.pods().intersection(deleted).find(|pod| !has_run(pod));
    if let Some(pod) = kept {
        return Err(format!("pod {pod} was deleted and still has files"));
    }
    for node in &view.nodes {
        let used = (0..).zip(&node.gpu_used_millis).filter(|(_, used)| **used > 0);
        if let Some((gpu, _)) = used.into_iter().find(|(gpu, _)| {
            node.gpu_faults.get(gpu).is_some_and(|why| why.is_loss() || why.is_held())
        }) {
            return Err(format!(
                "GPU {gpu} of {} is {}, and is used",
                node.name, node.gpu_faults[&gpu]
            ));
        }
        let held = node.gpu_faults.values().filter(|fault| fault.is_held()).count();
        if held > unkillable.len() {
            return Err(format!("{held} GPUs of {} are held by {unkillable:?}", node.name));
        }
    }
    let plan = sched::cycle(&mut cluster.clone(), machine.clock.now(), policy);
    if plan.steps.is_empty() {
        return Ok(());
    }
    Err(format!("there is still something to do: {:?}", plan.steps))
}
