//! Placement defaults of workloads: node pools in order of preference, and node types. Owns: the
//! values that a workload gets from its project and department, and that a project only restricts
//! the values of its department. They are resolved once, when a workload is submitted.

use crate::Error;
use crate::org::{self, Project};
use crate::state::State;
use command::admission;
use spec::WorkloadSpec;

impl State {
    /// Resolves the pools, the node types and the topology of a workload; refuses values that its
    /// project does not allow.
    pub(crate) fn settle_places(
        &self,
        project: &Project,
        spec: &mut WorkloadSpec,
    ) -> Result<(), Error> {
        self.pools.check_names("nodePools", &spec.node_pools)?;
        if spec.node_pools.is_empty() {
            spec.node_pools = self.org.effective_pools(project).to_vec();
        }
        let department = self.org.department(project.department_id).ok();
        let above = department.map_or(&[][..], |found| found.unit.node_types.of(spec.kind));
        let own = project.unit.node_types.of(spec.kind);
        let left = org::both(above, own).ok_or_else(|| {
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
}
