//! The model's view of a workload. Owns: the part of its specification in the model, and that
//! changes reach it.

use model::{GroupSpec, PodSetSpec, QueueId, TopologyConstraint, WorkloadId};
use spec::{PodSet, TopologyUse, WorkloadKind, node_constraints};
use units::Instant;
use uuid::Uuid;

use crate::state::State;
use crate::workloads::{Workload, model_request};

impl State {
    /// A workload of a queue as the scheduler's type. One that is over keeps its places and
    /// requests nothing; objects that it named may be deleted.
    pub(crate) fn in_model(&self, workload: &Workload, queue: QueueId) -> model::WorkloadSpec {
        let (spec, over) = (&workload.spec, workload.is_over());
        let near = |of: Option<&TopologyUse>| -> Option<TopologyConstraint> {
            of.filter(|_| !over).and_then(|of| self.constraint(of))
        };
        let set = |set: &PodSet| PodSetSpec {
            name: set.role.clone(),
            pods_min: set.pods_min,
            constraints: match over {
                true => model::Constraints::default(),
                false => node_constraints(spec, set, workload.id),
            },
            task_priority: set.pod_priority,
            group: spec.group(set.group.as_ref()),
            topology: near(set.set_topology.as_ref()),
            ..PodSetSpec::gang(model_request(&set.pod), set.pods)
        };
        let group = |group: &spec::Group| GroupSpec {
            name: group.name.clone(),
            parent: spec.group(group.parent.as_ref()),
            children_min: group.children_min,
            topology: near(group.topology.as_ref()),
        };
        let head = spec.revision.and_then(|revision| self.workloads.get(&revision.of));
        model::WorkloadSpec {
            revision_of: head.map(|head| head.spec.name.clone()),
            priority: spec.priority.value,
            spare_priority: spec.spare_priority.as_ref().map(|spare| spare.value),
            preemptible: spec.preemptible,
            elastic: spec.elastic,
            may_be_elastic: spec.kind == WorkloadKind::Training,
            created_at: workload.created_at,
            pod_sets: spec.sets().map(set).collect(),
            groups: spec.groups.iter().map(group).collect(),
            children_min: spec.children_min,
            topology: near(spec.topology.as_ref()),
            preemption_delay_ms: spec.preemption_delay_ms,
            time_limit_ms: self.run_limit_ms(workload),
            ..model::WorkloadSpec::new(&spec.name, queue, workload.seq, set(&spec.pods))
        }
    }

    /// Maximum run time of a workload at a time: the minimum of the limits of its project, its
    /// department and its own; `None` is unlimited.
    pub(crate) fn run_limit_ms(&self, workload: &Workload) -> Option<u64> {
        let project = self.org.project(workload.project_id).ok()?;
        let allowed = self.org.effective_rules(project).run_ms_max(workload.spec.kind);
        allowed.into_iter().chain(workload.spec.time_limit_ms).min()
    }

    /// Updates the maximum run time of a project's workloads in the model.
    pub(crate) fn tell_limits(&mut self, project: u64) {
        let theirs = self.workloads.ids_in(project).map(|id| &self.workloads[&id]);
        let limits: Vec<(WorkloadId, Option<u64>)> = theirs
            .filter_map(|workload| Some((workload.model?, self.run_limit_ms(workload))))
            .collect();
        for (model, limit_ms) in limits {
            self.cluster.set_time_limit(model, limit_ms);
        }
    }

    /// Updates the model after a change of a workload.
    pub(crate) fn rebind(&mut self, id: Uuid) {
        let Some(workload) = self.workloads.get(&id) else { return };
        let Some(model) = workload.model else { return };
        let spec = &workload.spec;
        let (priority, preemptible, limit_ms) =
            (spec.priority.value, spec.preemptible, self.run_limit_ms(workload));
        self.cluster.set_precedence(model, priority, preemptible);
        self.cluster.set_time_limit(model, limit_ms);
        if self.decisions.take_back(id) {
            self.cluster.set_not_before(model, Instant(0));
        }
        self.update_members(id);
    }
}
