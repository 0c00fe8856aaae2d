//! Events that refresh an answer with `--watch`. Owns: the kinds of changes that affect each
//! intent.

use api_types::ChangeKind::{
    self, Asset, Department, Gpu, Node, NodePool, Pod, Project, Template, Workload,
};
use cli_kit::change_wait::ChangeWait;
use dialects::intent::{Intent, Objects};

use super::context::Context;

/// The changes that may affect an answer; `None` if the stream has none of them: then the answer is
/// refreshed every second.
pub(super) fn pulse(intent: &Intent, context: &Context) -> Option<ChangeWait> {
    let project = |all: bool| context.project().ok().filter(|_| !all);
    // Measurements, and the parts of an explanation about other workloads, are not in the stream.
    let (kinds, project, has_unseen) = match intent {
        Intent::ListWorkloads(list) => (vec![Workload], project(list.all_projects), false),
        Intent::Describe(_) => (vec![Workload, Pod], project(false), false),
        Intent::Explain(..) | Intent::ExplainPod(..) => (vec![Workload], None, true),
        Intent::Metrics(_) => (vec![Workload], project(false), true),
        Intent::TopJobs { all_projects, .. } => (vec![Workload], project(*all_projects), true),
        Intent::TopNodes { .. } => (vec![Node], None, true),
        Intent::DescribeNodes(..) => (vec![Node, Gpu], None, false),
        Intent::ListProjects(..) => (vec![Project], None, false),
        Intent::ListNodes(..) => (vec![Node], None, false),
        Intent::ListObjects(list) => (kinds_of(list.of), None, false),
        Intent::DescribeObject(of, ..) => (kinds_of(*of), None, false),
        _ => (Vec::new(), None, false),
    };
    let pulse = (!kinds.is_empty()).then(|| ChangeWait::watch(&context.client, &kinds, project))?;
    Some(if has_unseen { pulse.with_unseen() } else { pulse })
}

fn kinds_of(objects: Objects) -> Vec<ChangeKind> {
    match objects {
        Objects::Template => vec![Template],
        Objects::Environment
        | Objects::Compute
        | Objects::Datasource
        | Objects::Pvc
        | Objects::Credential => vec![Asset],
        Objects::Department => vec![Department],
        Objects::Nodepool => vec![NodePool],
        Objects::Datavolume | Objects::WorkloadType => Vec::new(),
    }
}
