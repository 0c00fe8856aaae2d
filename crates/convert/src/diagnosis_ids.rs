//! Ids of the workloads that a diagnosis names, and the resources on the wire.

use std::collections::{BTreeMap, BTreeSet};

use api_types::{ResourceKind, WorkloadName};
use reasons::WorkloadRef;
use reasons::diagnosis as found;
use reasons::diagnosis::Change;
use units::Kind;
use uuid::Uuid;
use view::{View, WorkloadView};

/// Ids of the workloads in a diagnosis, by project and name.
pub(crate) struct Ids(BTreeMap<(String, String), Uuid>);

impl Ids {
    pub(crate) fn new(found: &found::Diagnosis, view: &View) -> Self {
        let ends = found.advice.iter().filter_map(|advice| match &advice.change {
            Change::End { workload } => Some(workload),
            _ => None,
        });
        let all = found.holders.workloads.iter().map(|holder| &holder.workload).chain(ends);
        let waiting = found.advice.iter().map(|advice| &advice.workload);
        let waiting = waiting.chain(found.ahead.named.iter().map(|one| &one.workload));
        let wanted: BTreeSet<_> = all.chain(waiting).map(key).collect();
        let own = |of: &WorkloadView| (of.project_name.clone(), of.spec.name.clone());
        let there = view.workloads.values().map(|workload| (own(workload), workload.id));
        Self(there.filter(|(key, _)| wanted.contains(key)).collect())
    }

    pub(crate) fn of(&self, of: &WorkloadRef) -> Option<Uuid> {
        self.0.get(&key(of)).copied()
    }

    pub(crate) fn named(&self, of: &WorkloadRef) -> WorkloadName {
        let key = key(of);
        let id = self.0.get(&key).map(ToString::to_string);
        let (project_name, name) = key;
        let revision = of.revision_of.as_ref().map(|_| of.name.clone());
        WorkloadName { id, name, revision, project_name }
    }
}

/// The project of a workload and its name for users.
fn key(of: &WorkloadRef) -> (String, String) {
    (of.queue.clone(), of.typed_name().to_owned())
}

pub(crate) const fn resource(kind: Kind) -> ResourceKind {
    match kind {
        Kind::Gpu => ResourceKind::Gpu,
        Kind::Cpu => ResourceKind::Cpu,
        Kind::Memory => ResourceKind::Memory,
    }
}
