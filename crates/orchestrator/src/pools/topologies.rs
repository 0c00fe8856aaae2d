//! Network topologies: named lists of node labels, from coarse to fine (block, rack, node). Owns:
//! the list of topologies, the references to them, and the topology constraint of a workload, which
//! is resolved once, when it is submitted. Does not know about: the placement of pods
//! (`sched/topology`).

use std::sync::Arc;

use command::{NewId, NewObject, Subject, admission};
use model::TopologyConstraint;
use serde_json::{Value, json};

use crate::Error;
use crate::state::State;
use spec::{TOPOLOGY, TopologyUse, WorkloadKind, WorkloadSpec};
use view::{Object, Scope};

/// Maximum number of topologies.
const TOPOLOGIES_MAX: usize = 16;
/// Maximum number of levels of a topology.
const LEVELS_MAX: usize = 16;
/// Maximum length of the label of a level, in characters, as published.
const LEVEL_CHARS_MAX: usize = 63;
/// Annotations by which a workload names a topology, and levels of it.
const NAMED: &str = "kai.scheduler/topology";
const REQUIRED: &str = "kai.scheduler/topology-required-placement";
const PREFERRED: &str = "kai.scheduler/topology-preferred-placement";

/// Annotations for the placement of pods: read when a workload is submitted.
pub(crate) const ANNOTATIONS: [&str; 3] = [NAMED, REQUIRED, PREFERRED];

/// A topology to create.
#[must_use]
pub fn new_topology(name: String, levels: &[String]) -> NewObject {
    NewObject {
        kind: TOPOLOGY,
        id: NewId::Any,
        scope: Scope::Cluster,
        owner: String::new(),
        name,
        body: json!({ "levels": levels }),
        newest: None,
    }
}

/// The labels of its levels, from coarse to fine.
#[must_use]
pub fn levels_of(topology: &Object) -> Vec<String> {
    levels_in(&topology.body)
}

fn levels_in(body: &Value) -> Vec<String> {
    let levels = body["levels"].as_array().into_iter().flatten();
    levels.filter_map(|level| level.as_str().map(ToOwned::to_owned)).collect()
}

fn check(name: &str, levels: &[String]) -> Result<(), Error> {
    units::check_name(name).map_err(|error| Error::invalid("name", error.to_string()))?;
    let invalid = |why: String| Err(Error::invalid("levels", format!("levels: {why}")));
    if !(1..=LEVELS_MAX).contains(&levels.len()) {
        return invalid(format!(
            "there are {}; write 1 to {LEVELS_MAX} labels of nodes, from far to near",
            levels.len()
        ));
    }
    if let Some(why) = levels.iter().find_map(|level| units::check_label(level, "").err()) {
        return invalid(why);
    }
    if let Some(level) = levels.iter().find(|level| level.len() > LEVEL_CHARS_MAX) {
        return invalid(format!("`{level}` is longer than the {LEVEL_CHARS_MAX} letters allowed"));
    }
    match admission::twice(levels) {
        Some(level) => invalid(format!("`{level}` is there twice")),
        None => Ok(()),
    }
}

impl State {
    /// Restores stored topologies.
    pub(crate) fn add_topologies(&mut self) -> Result<(), Error> {
        self.documents.all(TOPOLOGY).iter().try_for_each(|topology| self.add_topology(topology))
    }

    fn add_topology(&mut self, topology: &Object) -> Result<(), Error> {
        let added = self.cluster.add_topology(&topology.name, levels_of(topology));
        added.map_err(|error| Error::Internal { message: error.to_string() })?;
        Ok(())
    }

    pub(crate) fn create_topology(&mut self, by: String, new: NewObject) -> Result<Subject, Error> {
        check(&new.name, &levels_in(&new.body))?;
        if self.documents.all(TOPOLOGY).len() >= TOPOLOGIES_MAX {
            let why = format!(
                "there are {TOPOLOGIES_MAX} network topologies, which is the most; delete some"
            );
            return Err(Error::conflict(why));
        }
        let object = self.create_object(by, new)?;
        self.add_topology(&object)?;
        Ok(Subject::Object(object))
    }

    /// Deletes a topology that no node pool and no workload uses.
    pub(crate) fn delete_topology(&mut self, by: &str, id: &str) -> Result<Subject, Error> {
        let topology = self.topology(id)?;
        let bound = |spec: &WorkloadSpec| spec.topology.as_ref().is_some_and(|of| of.id == id);
        let living = self.workloads.values().filter(|workload| workload.completed_at.is_none());
        let bound: Vec<_> =
            living.filter(|w| bound(&w.spec)).map(|w| w.spec.name.as_str()).collect();
        if !bound.is_empty() {
            return Err(Error::conflict(format!(
                "network topology `{}` says where the pods of {} are ({}); delete them \
                 first",
                topology.name,
                units::counted(bound.len(), "workload"),
                admission::some_of(bound.iter().copied())
            )));
        }
        let object = self.delete_object(by, TOPOLOGY, id)?;
        self.cluster.retire_topology(&object.name);
        Ok(Subject::Object(object))
    }

    /// The topology with this id.
    pub(crate) fn topology(&self, id: &str) -> Result<&Arc<Object>, Error> {
        self.documents.get(TOPOLOGY, id).ok_or_else(|| Error::NotFound {
            what: "network topology",
            name: id.to_owned(),
            hint: "see GET /api/v1/network-topologies".to_owned(),
        })
    }

    /// Resolves the topology constraint of a workload: by its annotations, or else, if its pods
    /// work together, as near as possible in the topology of its first node pool that has one.
    pub(crate) fn settle_topology(&self, spec: &mut WorkloadSpec) -> Result<(), Error> {
        let said = |key: &str| spec.annotations.get(key).cloned();
        let (named, required, preferred) = (said(NAMED), said(REQUIRED), said(PREFERRED));
        let says = [&named, &required, &preferred].iter().any(|said| said.is_some());
        let invalid = |key: &str, why: String| {
            Err(Error::invalid("annotations", format!("annotation {key}: {why}")))
        };
        if !says && spec.kind != WorkloadKind::Distributed {
            return Ok(());
        }
        let topology = match &named {
            Some(name) => {
                let all = self.documents.all(TOPOLOGY);
                let Some(found) = all.iter().find(|one| one.name == *name) else {
                    let known = admission::some_of(all.iter().map(|one| one.name.as_str()));
                    let name = units::shown(name);
                    return invalid(NAMED, format!("there is no `{name}`; there are: {known}"));
                };
                found.clone()
            }
            None => match self.topology_of_pools(&spec.node_pools) {
                Some(found) => found,
                None if says => {
                    let why = "its node pools have no network topology; name one".to_owned();
                    return invalid(NAMED, why);
                }
                None => return Ok(()),
            },
        };
        if spec.serving.is_some() {
            let why = "replicas of an inference come one by one; leave it out".to_owned();
            return invalid(NAMED, why);
        }
        let levels = levels_of(&topology);
        for (key, level) in [(REQUIRED, &required), (PREFERRED, &preferred)] {
            if let Some(level) = level.as_ref().filter(|level| !levels.contains(level)) {
                let (level, name) = (units::shown(level), &topology.name);
                let known = levels.join(", ");
                return invalid(key, format!("`{level}` is no level of {name}; it has {known}"));
            }
        }
        let nearest = || levels.last().cloned().filter(|_| required.is_none());
        let preferred = preferred.or_else(nearest);
        spec.topology = Some(TopologyUse { id: topology.id.clone(), required, preferred });
        Ok(())
    }

    /// The topology of the first of these node pools that has one; of all pools for an empty list.
    fn topology_of_pools(&self, names: &[String]) -> Option<Arc<Object>> {
        let of = |name: &str| {
            let pool = self.pools.iter().find(|pool| pool.name() == name)?;
            self.documents.get(TOPOLOGY, pool.settings.topology.as_ref()?).cloned()
        };
        match names {
            [] => self.pools.iter().find_map(|pool| of(pool.name())),
            names => names.iter().find_map(|name| of(name)),
        }
    }

    /// A topology constraint as the scheduler's type.
    pub(crate) fn constraint(&self, of: &TopologyUse) -> Option<TopologyConstraint> {
        let topology = self.documents.get(TOPOLOGY, &of.id)?;
        let id = self.cluster.topology_named(&topology.name)?;
        let level = |label: &String| self.cluster.topology(id).level(label);
        Some(TopologyConstraint {
            topology: id,
            required: of.required.as_ref().and_then(level),
            preferred: of.preferred.as_ref().and_then(level),
        })
    }
}
