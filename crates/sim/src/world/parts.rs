//! What a workload is made of: its pod sets, groups and topologies. Owns: the checks that make
//! them a tree, each with the place of the part that is wrong. Refuses to know: the rest of the
//! workload.

use std::borrow::Cow;

use model::{GroupSpec, PodSetSpec, TopologyConstraint, WorkloadSpec};

use super::{PODS_MAX, Simulation, convert};
use crate::Error;
use crate::near::nearest;
use crate::scenario::{self as wire, At, PodSet, Workload};

/// Most pod sets of a workload, and most groups.
const PARTS_MAX: usize = 256;
/// Most topologies, and most levels of one.
const TOPOLOGIES_MAX: usize = 16;

impl Simulation {
    /// Adds a topology.
    pub(super) fn add_topology(&mut self, wire: &At<wire::Topology>) -> Result<(), Error> {
        let name = &wire.name;
        let fault = |fault: String| Err(wire.fault(format!("topology `{name}`: {fault}")));
        super::add::check_name(name).map_err(|fault| wire.fault(fault))?;
        if self.cluster.topology_named(name).is_some() {
            return fault("there is another of this name".into());
        }
        if self.cluster.topologies().len() >= TOPOLOGIES_MAX {
            return fault(format!("a scenario has at most {TOPOLOGIES_MAX} topologies"));
        }
        let levels = &wire.levels;
        if !(1..=TOPOLOGIES_MAX).contains(&levels.len()) {
            let count = levels.len();
            return fault(format!("has {count} levels; 1 to {TOPOLOGIES_MAX} are allowed"));
        }
        if let Some((_, twice)) =
            levels.iter().enumerate().find(|(at, l)| levels[..*at].contains(l))
        {
            return fault(format!("level `{twice}` is given twice"));
        }
        let added = self.cluster.add_topology(name, levels.clone());
        added.map(|_| ()).or_else(|error| fault(error.to_string()))
    }

    /// A workload with its parts, and without anything else: its name and its number are to come.
    pub(super) fn parts(&self, wire: &At<Workload>) -> Result<WorkloadSpec, Error> {
        let fault = |fault: String| wire.fault(format!("workload `{}`: {fault}", wire.name));
        let sets = sets(wire).map_err(fault)?;
        let groups = self.groups(wire)?;
        let mut pod_sets: Vec<PodSetSpec> = Vec::with_capacity(sets.len());
        for set in &*sets {
            let what = if is_mixed(wire) { "task" } else { "pod set" };
            let fault = |fault: String| in_part(wire, set, what, &set.name, &fault);
            let twice = pod_sets.iter().any(|other| other.name == set.name);
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
        let queue = self.queue(&wire.project).map_err(fault)?;
        let spec = WorkloadSpec {
            groups,
            children_min: if is_mixed(wire) { wire.pods_min } else { wire.children_min },
            topology: self.constraint(wire.topology.as_ref()).map_err(fault)?,
            pod_sets,
            ..WorkloadSpec::new("", queue, 0, convert::request(&sets[0], self.policy.profile))
        };
        check_minimum(&spec, None).map_err(fault)?;
        for (at, group) in wire.groups.iter().enumerate() {
            check_minimum(&spec, Some(at))
                .map_err(|fault| in_part(wire, group, "group", &group.name, &fault))?;
        }
        Ok(spec)
    }

    fn groups(&self, wire: &At<Workload>) -> Result<Vec<GroupSpec>, Error> {
        let mut groups: Vec<GroupSpec> = Vec::with_capacity(wire.groups.len());
        for group in &wire.groups {
            let fault = |fault: String| in_part(wire, group, "group", &group.name, &fault);
            let twice = groups.iter().any(|other| other.name == group.name);
            new_name(&group.name, twice).map_err(fault)?;
            groups.push(GroupSpec {
                name: group.name.clone(),
                parent: group_named("earlier group", group.parent.as_ref(), &groups)
                    .map_err(fault)?,
                children_min: group.children_min,
                topology: self.constraint(group.topology.as_ref()).map_err(fault)?,
            });
        }
        Ok(groups)
    }

    fn pod_set(
        &self,
        wire: &Workload,
        set: &PodSet,
        groups: &[GroupSpec],
    ) -> Result<PodSetSpec, String> {
        if set.pods == 0 {
            return Err("`pods` is 0; at least 1 is allowed".into());
        }
        // Of those that end one by one, each makes sense alone.
        let usual = if wire.completions.is_some() { 1 } else { set.pods };
        let pods_min = set.pods_min.unwrap_or(usual);
        // A set among several may be one that the others can do without.
        let least = u32::from(wire.pod_sets.is_empty());
        if !(least..=set.pods).contains(&pods_min) {
            let pods = set.pods;
            return Err(format!(
                "`pods_min` is {pods_min}; {least} to {pods} (all its pods) are allowed"
            ));
        }
        Ok(PodSetSpec {
            name: set.name.clone(),
            pods: set.pods,
            pods_min,
            constraints: convert::constraints(set, &wire.pools)?,
            task_priority: set.task_priority,
            group: group_named("group", set.group.as_ref(), groups)?,
            topology: self.constraint(set.topology.as_ref())?,
            ..convert::request(set, self.policy.profile).into()
        })
    }

    fn constraint(
        &self,
        wire: Option<&wire::TopologyConstraint>,
    ) -> Result<Option<TopologyConstraint>, String> {
        let Some(wire::TopologyConstraint { name, required, preferred }) = wire else {
            return Ok(None);
        };
        let found = self.cluster.topology_named(name).ok_or_else(|| {
            let known = self.cluster.topologies().iter().map(|topology| topology.name.as_str());
            unknown("topology", name, known.collect())
        })?;
        let topology = self.cluster.topology(found);
        let level = |label: &String| {
            topology.level(label).ok_or_else(|| {
                let known = topology.levels.iter().map(String::as_str).collect();
                format!("topology `{name}`: {}", unknown("level", label, known))
            })
        };
        if required.is_none() && preferred.is_none() {
            let levels = topology.levels.join(", ");
            return Err(format!(
                "`topology` says neither `required` nor `preferred`; give one, a level of {levels}"
            ));
        }
        Ok(Some(TopologyConstraint {
            topology: found,
            required: required.as_ref().map(level).transpose()?,
            preferred: preferred.as_ref().map(level).transpose()?,
        }))
    }
}

/// The pod sets listed, or the one that the workload's own keys describe.
pub(crate) fn sets(wire: &At<Workload>) -> Result<Cow<'_, [At<PodSet>]>, String> {
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

/// Whether its pods are alike but for what some tasks say.
fn is_mixed(wire: &Workload) -> bool {
    wire.pod_sets.is_empty() && wire.tasks.iter().any(|task| task.is_unlike())
}

/// A pod set for each pod: what the workload says, and what its task says instead.
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

/// A fault of a part: where the part stands, if it stood in a file.
fn in_part<T>(of: &At<Workload>, part: &At<T>, what: &str, name: &str, fault: &str) -> Error {
    let of_part = if name.is_empty() && of.pod_sets.is_empty() {
        String::new()
    } else {
        format!("{what} `{name}`: ")
    };
    part.fault(format!("workload `{}`: {of_part}{fault}", of.name))
}

fn new_name(name: &str, twice: bool) -> Result<(), String> {
    super::add::check_name(name)?;
    if twice { Err("there is another of this name in the workload".into()) } else { Ok(()) }
}

fn group_named(
    what: &str,
    name: Option<&String>,
    groups: &[GroupSpec],
) -> Result<Option<usize>, String> {
    let Some(name) = name else { return Ok(None) };
    let found = groups.iter().position(|group| group.name == *name);
    let known = || groups.iter().map(|group| group.name.as_str()).collect();
    found.map(Some).ok_or_else(|| unknown(what, name, known()))
}

/// Whether a group (none: the workload) has parts, and as many as its minimum.
fn check_minimum(spec: &WorkloadSpec, group: Option<usize>) -> Result<(), String> {
    let (parts, fewest) = (spec.children(group).count(), spec.children_min_of(group));
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
