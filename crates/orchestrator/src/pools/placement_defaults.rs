//! Where workloads may go: node pools in order of preference, and types of nodes. Owns: what a
//! workload gets from its project and department when it says nothing, and that a project only
//! tightens what its department allows. It is settled once, when a workload is submitted.

use crate::node_constraints::NODE_TYPE_LABEL;
use crate::org::Project;
use crate::pools::check_label;
use crate::state::State;
use crate::{Error, admission};
use spec::{NodeTypes, WorkloadSpec};

/// Most types of a list.
const TYPES_MAX: usize = 100;

/// Those that both lists allow; an empty list allows all. None if they have nothing in common.
fn both(outer: &[String], inner: &[String]) -> Option<Vec<String>> {
    match (outer, inner) {
        ([], types) | (types, []) => Some(types.to_vec()),
        _ => {
            let common: Vec<_> = inner.iter().filter(|t| outer.contains(t)).cloned().collect();
            (!common.is_empty()).then_some(common)
        }
    }
}

impl State {
    /// Node pools of workloads of a project that name none; empty = all.
    pub(crate) fn effective_pools<'a>(&'a self, project: &'a Project) -> &'a [String] {
        let department = self.org.department(project.department_id).ok();
        let above = department.map_or(&[][..], |department| &department.unit.default_pools);
        if project.unit.default_pools.is_empty() { above } else { &project.unit.default_pools }
    }

    /// Types of nodes that a project and its department leave to workloads.
    pub(crate) fn effective_types(&self, project: &Project) -> NodeTypes {
        let own = project.unit.node_types.clone();
        let Ok(department) = self.org.department(project.department_id) else { return own };
        let above = &department.unit.node_types;
        let mut names = above.names.clone();
        names.extend(own.names);
        // Where nothing is common, its own stand here, and submissions are refused.
        NodeTypes {
            training: both(&above.training, &own.training).unwrap_or(own.training),
            workspace: both(&above.workspace, &own.workspace).unwrap_or(own.workspace),
            names,
        }
    }

    /// Gives a workload the places that its project has for it, and refuses others.
    pub(crate) fn settle_places(
        &self,
        project: &Project,
        spec: &mut WorkloadSpec,
    ) -> Result<(), Error> {
        self.check_pool_names("nodePools", &spec.node_pools)?;
        if spec.node_pools.is_empty() {
            spec.node_pools = self.effective_pools(project).to_vec();
        }
        let department = self.org.department(project.department_id).ok();
        let above = department.map_or(&[][..], |found| found.unit.node_types.of(spec.kind));
        let own = project.unit.node_types.of(spec.kind);
        let left = both(above, own).ok_or_else(|| {
            Error::conflict(format!(
                "project `{}` and its department allow no type of node in common; change the \
                 nodeTypes of one of them",
                project.unit.name
            ))
        })?;
        if let Some(other) = spec.node_types.iter().find(|t| !left.is_empty() && !left.contains(t))
        {
            let why = format!(
                "nodeType: project `{}` does not allow nodes of type `{}`; it allows {}",
                project.unit.name,
                units::shown(other),
                admission::some_of(left.iter().map(String::as_str))
            );
            return Err(Error::invalid("nodeType", why));
        }
        if spec.node_types.is_empty() {
            spec.node_types = left;
        }
        self.settle_topology(spec)
    }

    /// Refuses places of a project or department that are not there.
    pub(crate) fn check_places<'a>(
        &self,
        mut shares: impl Iterator<Item = &'a String>,
        pools: &[String],
        types: &NodeTypes,
    ) -> Result<(), Error> {
        if let Some(id) = shares.find(|id| self.pool(id).is_err()) {
            let why = format!(
                "resources: there is no node pool with id `{}`; see GET /api/v1/node-pools",
                units::shown(id)
            );
            return Err(Error::invalid("resources", why));
        }
        self.check_pool_names("defaultNodePools", pools)?;
        for (field, list) in
            [("nodeTypes.training", &types.training), ("nodeTypes.workspace", &types.workspace)]
        {
            if list.len() > TYPES_MAX {
                let why = format!("{field}: at most {TYPES_MAX} types are allowed");
                return Err(Error::invalid(field, why));
            }
            list.iter().try_for_each(|of| check_label(NODE_TYPE_LABEL, of))?;
        }
        Ok(())
    }
}
