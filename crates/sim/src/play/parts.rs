//! A workload of a scenario as it would be submitted: its pod sets, groups and topologies. Owns:
//! the checks that they form a tree, each with the position of the invalid part. Does not know
//! about: fields that only initial workloads have.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::{Operator, Requirement};
use sched::Profile;
use spec::{
    BACKOFF_LIMIT_DEFAULT, CleanPods, Container, DistributedSpec, Framework, GpuRequest, Place,
    PodSpec, Priority, Restart, TopologyUse, WorkloadKind, WorkloadSpec,
};

use super::convert::{self, constraints};
use super::names::check_name;
use super::ranks::Ranks;
use crate::Error;
use crate::scenario::{self as wire, At, Evicted, PodSet, Workload};
use crate::suggest::nearest;

/// Maximum number of pods of a scenario, over its whole length.
pub const PODS_MAX: u64 = 1_000_000;
/// Maximum number of pod sets of a workload, and of its groups.
const PARTS_MAX: usize = 256;
/// Maximum number of pods that start together, as on a server.
const GANG_MAX: u32 = 1000;
/// Name of the scheduling gate of a gated workload.
const GATE: &str = "scenario";

/// Objects that a workload may name, and the defaults of its fields.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// Topologies by name: the id and the labels of the levels of each.
    pub(crate) topologies: BTreeMap<String, (String, Vec<String>)>,
    pub(crate) profile: Profile,
    /// Default treatment of evicted pods.
    pub(crate) evicted: Evicted,
    /// Mapping of the priorities of queues.
    pub(crate) ranks: Ranks,
}

impl Known {
    /// The specification of a workload; its name is that of the first of several equal workloads.
    ///
    /// # Errors
    /// An invalid part, with its position, or a name of an object that does not exist.
    pub(crate) fn specification(&self, wire: &At<Workload>) -> Result<WorkloadSpec, Error> {
        let fault = |fault: String| wire.fault(format!("workload `{}`: {fault}", wire.name));
        if wire.work.is_some() && (wire.runs_for.is_some() || wire.completions.is_some()) {
            let other = if wire.runs_for.is_some() { "runs_for" } else { "completions" };
            return Err(fault(format!("`work` and `{other}` cannot be used together")));
        }
        if wire.warm_up.is_some() && wire.work.is_none() {
            return Err(fault("`warm_up` is for workloads with `work`".into()));
        }
        if wire.completions == Some(0) {
            return Err(fault("`completions` is 0; at least 1 is allowed".into()));
        }
        let sets = sets(wire).map_err(fault)?;
        let groups = self.groups(wire)?;
        let mut pod_sets: Vec<spec::PodSet> = Vec::with_capacity(sets.len());
        for set in &*sets {
            let what = if is_mixed(wire) { "task" } else { "pod set" };
            let fault = |fault: String| in_part(wire, set, what, &set.name, &fault);
            let twice = pod_sets.iter().any(|other| other.role == set.name);
            if !wire.pod_sets.is_empty() {
                new_name(&set.name, twice).map_err(fault)?;
            }
            pod_sets.push(self.pod_set(wire, set, &groups).map_err(fault)?);
        }
        if pod_sets.iter().all(|set| set.pods_min == 0) {
            return Err(fault("`pods_min` is 0 in every pod set; one must need a pod".into()));
        }
        if pod_sets.iter().map(|set| u64::from(set.pods)).sum::<u64>() > PODS_MAX {
            return Err(fault(format!("a scenario has at most {PODS_MAX} pods")));
        }
        if wire.elastic && pod_sets.len() > 1 {
            return Err(fault("`elastic` is for a workload with one pod set; leave it out".into()));
        }
        let (preemptible, priority) = self.precedence(wire);
        let evicted = wire.evicted.unwrap_or(self.evicted);
        let distributed = gang(&pod_sets, wire);
        let first = pod_sets.remove(0);
        let kind = match wire.may_be_elastic {
            Some(false) => WorkloadKind::Workspace,
            _ => WorkloadKind::Training,
        };
        let spec = WorkloadSpec {
            submitted_by: "scenario".to_owned(),
            more: pod_sets,
            distributed,
            elastic: wire.elastic,
            priority: Priority { value: priority, class: String::new() },
            spare_priority: wire
                .spare_priority
                .map(|value| Priority { value, class: String::new() }),
            preemptible,
            backoff_limit: wire.backoff_limit.unwrap_or(BACKOFF_LIMIT_DEFAULT),
            delete_when_preempted: evicted == Evicted::Gone,
            node_pools: wire.pools.clone(),
            topology: self.constraint(wire.topology.as_ref()).map_err(fault)?,
            groups,
            children_min: if is_mixed(wire) { wire.pods_min } else { wire.children_min },
            gates: wire.gated.then(|| GATE.to_owned()).into_iter().collect(),
            preemption_delay_ms: wire.preemption_delay.map_or(0, |span| span.0),
            time_limit_ms: wire.time_limit.map(|span| span.0),
            ..WorkloadSpec::new(wire.name.clone(), kind, first)
        };
        check_minimum(&spec, None, spec.children_min).map_err(fault)?;
        for (wire_group, group) in wire.groups.iter().zip(&spec.groups) {
            check_minimum(&spec, Some(&group.name), group.children_min)
                .map_err(|fault| in_part(wire, wire_group, "group", &group.name, &fault))?;
        }
        Ok(spec)
    }

    /// Preemptibility and priority of a workload: each profile derives a missing value from the
    /// other in its own way.
    fn precedence(&self, wire: &Workload) -> (bool, u32) {
        if let Profile::Kai(_) = self.profile {
            let priority = wire.priority.unwrap_or(50);
            return (wire.preemptible.unwrap_or(priority < 100), priority);
        }
        let preemptible = wire.preemptible.unwrap_or(true);
        (preemptible, wire.priority.unwrap_or(if preemptible { 50 } else { 100 }))
    }

    fn groups(&self, wire: &At<Workload>) -> Result<Vec<spec::Group>, Error> {
        let mut groups: Vec<spec::Group> = Vec::with_capacity(wire.groups.len());
        for group in &wire.groups {
            let fault = |fault: String| in_part(wire, group, "group", &group.name, &fault);
            let twice = groups.iter().any(|other| other.name == group.name);
            new_name(&group.name, twice).map_err(fault)?;
            is_group("earlier group", group.parent.as_ref(), &groups).map_err(fault)?;
            groups.push(spec::Group {
                name: group.name.clone(),
                parent: group.parent.clone(),
                children_min: group.children_min,
                topology: self.constraint(group.topology.as_ref()).map_err(fault)?,
                recreate: false,
            });
        }
        Ok(groups)
    }

    fn pod_set(
        &self,
        wire: &Workload,
        set: &PodSet,
        groups: &[spec::Group],
    ) -> Result<spec::PodSet, String> {
        if set.pods == 0 {
            return Err("`pods` is 0; at least 1 is allowed".into());
        }
        // Pods that complete one by one are each useful alone.
        let usual = if wire.completions.is_some() { 1 } else { set.pods };
        let pods_min = set.pods_min.unwrap_or(usual);
        // A set among several may have a minimum of 0.
        let least = u32::from(wire.pod_sets.is_empty());
        if !(least..=set.pods).contains(&pods_min) {
            let pods = set.pods;
            return Err(format!(
                "`pods_min` is {pods_min}; {least} to {pods} (all its pods) are allowed"
            ));
        }
        is_group("group", set.group.as_ref(), groups)?;
        let pods = wire.completions.unwrap_or(set.pods);
        Ok(spec::PodSet {
            role: set.name.clone(),
            pods,
            pods_min: pods_min.min(pods),
            parallelism: wire.completions.map(|_| set.pods),
            group: set.group.clone(),
            pod_names: None,
            pod_priority: set.task_priority,
            set_topology: self.constraint(set.topology.as_ref())?,
            pod: PodSpec {
                image: "scenario".to_owned(),
                command: None,
                args: Vec::new(),
                env: BTreeMap::new(),
                secrets: Vec::new(),
                working_dir: None,
                place: place(set)?,
                gpu: self.gpus(set.gpu.0),
                cpu_millis: set.cpu.map_or(0, |amount| amount.0),
                memory_bytes: set.memory.map_or(0, |amount| amount.0),
                restart: Restart::Never,
                grace_ms: 0,
                stdin: false,
                tty: false,
                container: Container::default(),
            },
        })
    }

    fn gpus(&self, of: model::GpuRequest) -> GpuRequest {
        match of {
            model::GpuRequest::Whole(devices) => GpuRequest::Whole(devices),
            model::GpuRequest::Share { devices, millis } => GpuRequest::share(devices, millis),
            model::GpuRequest::Memory { devices, bytes } => GpuRequest::memory(devices, bytes),
            model::GpuRequest::Mig(instances) => {
                GpuRequest::Mig(instances.valued(convert::slice_value(self.profile)))
            }
        }
    }

    fn constraint(
        &self,
        wire: Option<&wire::TopologyConstraint>,
    ) -> Result<Option<TopologyUse>, String> {
        let Some(wire::TopologyConstraint { name, required, preferred }) = wire else {
            return Ok(None);
        };
        let known = || self.topologies.keys().map(String::as_str).collect();
        let (id, levels) =
            self.topologies.get(name).ok_or_else(|| unknown("topology", name, known()))?;
        if let Some(level) = required.iter().chain(preferred).find(|level| !levels.contains(level))
        {
            let known = levels.iter().map(String::as_str).collect();
            return Err(format!("topology `{name}`: {}", unknown("level", level, known)));
        }
        if required.is_none() && preferred.is_none() {
            let levels = levels.join(", ");
            return Err(format!(
                "`topology` says neither `required` nor `preferred`; give one, a level of {levels}"
            ));
        }
        let (required, preferred) = (required.clone(), preferred.clone());
        Ok(Some(TopologyUse { id: id.clone(), required, preferred }))
    }
}

/// The distributed specification of a workload whose pods must all run: if one fails, all restart.
fn gang(sets: &[spec::PodSet], wire: &Workload) -> Option<DistributedSpec> {
    let pods: u32 = sets.iter().map(|set| set.pods).sum();
    let groups = wire.groups.iter().map(|group| group.children_min);
    let needs_all = wire.completions.is_none()
        && sets.iter().all(|set| set.pods_min == set.pods)
        && groups.chain([wire.children_min]).all(|fewest| fewest.is_none())
        && wire.pods_min.is_none_or(|pods_min| pods_min == pods);
    (needs_all && (2..=GANG_MAX).contains(&pods)).then_some(DistributedSpec {
        framework: Framework::PyTorch,
        slots_per_worker: 1,
        first_waits: false,
        clean: CleanPods::default(),
    })
}

/// Node constraints of a pod set, without node pools, which belong to the workload.
fn place(set: &PodSet) -> Result<Place, String> {
    let said = constraints(set)?;
    let mut affinity = said.required;
    let selected = said
        .selector
        .into_iter()
        .map(|(key, value)| Requirement { key, operator: Operator::In(vec![value]) });
    let selected: Vec<_> = selected.collect();
    if affinity.is_empty() && !selected.is_empty() {
        affinity.push(Vec::new());
    }
    affinity.iter_mut().for_each(|term| term.extend(selected.iter().cloned()));
    Ok(Place {
        affinity,
        preferred: said.preferred,
        tolerations: said.tolerations,
        toleration_names: Vec::new(),
        colocation: None,
        labels: said.labels,
        pod_affinity: said.pod_affinity,
        pod_anti_affinity: said.pod_anti_affinity,
        pod_preferences: said.pod_preferences,
    })
}

/// The listed pod sets, or one made of the workload's own keys.
fn sets(wire: &At<Workload>) -> Result<Cow<'_, [At<PodSet>]>, String> {
    let given = wire.own_keys();
    if !wire.pod_sets.is_empty() {
        if let Some(key) = given.first() {
            return Err(format!("has `{key}` and `pod_sets`; write it in the pod sets"));
        }
        if let Some(task) = wire.tasks.iter().position(|task| task.is_unlike()) {
            return Err(format!(
                "task {task} asks for something of its own and there are `pod_sets`; \
                                write it in the pod sets"
            ));
        }
        if wire.completions.is_some() {
            return Err("`completions` and `pod_sets` cannot be used together".into());
        }
        if wire.pod_sets.len() > PARTS_MAX || wire.groups.len() > PARTS_MAX {
            return Err(format!("has more than {PARTS_MAX} pod sets or groups"));
        }
        return Ok(Cow::Borrowed(&wire.pod_sets));
    }
    if !wire.groups.is_empty() || wire.children_min.is_some() {
        return Err("`groups` and `children_min` are of `pod_sets`; it has none".into());
    }
    let only = PodSet {
        pods: wire.pods.unwrap_or(1),
        pods_min: wire.pods_min,
        gpu: wire.gpu.unwrap_or_default(),
        cpu: wire.cpu,
        memory: wire.memory,
        selector: wire.selector.clone(),
        affinity: wire.affinity.clone(),
        tolerations: wire.tolerations.clone(),
        labels: wire.labels.clone(),
        pod_affinity: wire.pod_affinity.clone(),
        pod_anti_affinity: wire.pod_anti_affinity.clone(),
        ..PodSet::named("")
    };
    if is_mixed(wire) {
        return each_its_own(wire, &only).map(Cow::Owned);
    }
    Ok(Cow::Owned(vec![At { value: only, line: wire.line, column: wire.column }]))
}

/// `true` if it has no pod sets, and some of its tasks have requests of their own.
fn is_mixed(wire: &Workload) -> bool {
    wire.pod_sets.is_empty() && wire.tasks.iter().any(|task| task.is_unlike())
}

/// A pod set for each pod: the workload's keys, overridden by those of its task.
fn each_its_own(wire: &At<Workload>, all: &PodSet) -> Result<Vec<At<PodSet>>, String> {
    if wire.completions.is_some() || wire.elastic {
        return Err("a task asks for something of its own; that is not for `completions` and \
                    `elastic`"
            .into());
    }
    if all.pods as usize > PARTS_MAX {
        let pods = all.pods;
        return Err(format!(
            "has {pods} pods, and a task that asks for something of its own; at most {PARTS_MAX} \
             pods are allowed then"
        ));
    }
    if all.pods_min.is_some_and(|pods_min| !(1..=all.pods).contains(&pods_min)) {
        let (pods_min, pods) = (all.pods_min.unwrap_or(0), all.pods);
        return Err(format!("`pods_min` is {pods_min}; 1 to {pods} (all its pods) are allowed"));
    }
    let own = |number: usize| {
        let task = wire.tasks.get(number);
        let (line, column) = task.map_or((wire.line, wire.column), |task| (task.line, task.column));
        let mut set =
            PodSet { name: format!("{number:03}"), pods: 1, pods_min: None, ..all.clone() };
        if let Some(task) = task {
            set.gpu = task.gpu.unwrap_or(set.gpu);
            set.cpu = task.cpu.or(set.cpu);
            set.memory = task.memory.or(set.memory);
            set.selector.extend(task.selector.clone());
            set.task_priority = task.task_priority;
        }
        At { value: set, line, column }
    };
    Ok((0..all.pods as usize).map(own).collect())
}

/// An error about a part, with the position of the part.
fn in_part<T>(of: &At<Workload>, part: &At<T>, what: &str, name: &str, fault: &str) -> Error {
    let of_part = if name.is_empty() && of.pod_sets.is_empty() {
        String::new()
    } else {
        format!("{what} `{name}`: ")
    };
    part.fault(format!("workload `{}`: {of_part}{fault}", of.name))
}

fn new_name(name: &str, twice: bool) -> Result<(), String> {
    check_name(name)?;
    if twice { Err("there is another of this name in the workload".into()) } else { Ok(()) }
}

fn is_group(what: &str, name: Option<&String>, groups: &[spec::Group]) -> Result<(), String> {
    let is_there = |name: &&String| !groups.iter().any(|group| group.name == **name);
    let known = || groups.iter().map(|group| group.name.as_str()).collect();
    name.filter(is_there).map_or(Ok(()), |name| Err(unknown(what, name, known())))
}

/// Checks that a group, or the workload if `group` is `None`, has children, and at least its
/// minimum.
fn check_minimum(
    spec: &WorkloadSpec,
    group: Option<&String>,
    fewest: Option<u32>,
) -> Result<(), String> {
    let groups = spec.groups.iter().filter(|other| other.parent.as_ref() == group);
    let parts = groups.count() + spec.sets().filter(|set| set.group.as_ref() == group).count();
    let fewest = fewest.map_or(parts, |fewest| fewest as usize);
    if parts == 0 {
        return Err("has no parts; name it as the `group` of a pod set".into());
    }
    if !(1..=parts).contains(&fewest) {
        return Err(format!(
            "`children_min` is {fewest}; 1 to {parts} (all its groups and pod sets) are allowed"
        ));
    }
    Ok(())
}

fn unknown(what: &str, wrong: &str, known: Vec<&str>) -> String {
    let cure = match nearest(wrong, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if known.is_empty() => String::new(),
        None => format!("; known are {}", known.join(", ")),
    };
    format!("there is no {what} `{wrong}`{cure}")
}
