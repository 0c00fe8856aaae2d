//! Fields of workloads that lists are sorted and filtered by.

use http_kit::{Row, Scalar, Type};
use units::Instant;
use view::{Phase, WorkloadView};

use super::made_of::{self, COMPUTE_ASSET, ENVIRONMENT_ASSET};
use super::workload::{
    category, framework_name, gpu_memory, idle_gpu_millis, idle_gpus, images, kind_name, nodes,
    phase_name, requested_gpu_memory, requested_pods, running_pods, times_s,
};

/// Sort key of the published list of workloads: running first, then larger allocations, then within
/// quota, then older ones.
fn activity(view: &WorkloadView) -> String {
    let rank = match view.phase {
        Phase::Running | Phase::Degraded => 0,
        Phase::Initializing | Phase::Updating | Phase::Stopping | Phase::Deleting => 1,
        Phase::Pending | Phase::Resuming => 2,
        Phase::Stopped => 3,
        Phase::Completed | Phase::Failed => 4,
    };
    let held_last = u64::MAX - view.allocated.gpu_millis;
    let (over, created, name) = (u8::from(view.over_quota), view.created_at.0, &view.spec.name);
    format!("{rank} {held_last:020} {over} {created:020} {name}")
}

impl Row<crate::Listed> for WorkloadView {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("id", Type::Text),
        ("type", Type::Text),
        ("name", Type::Text),
        // The same in all rows: `ListQuery::settle` decides it.
        ("clusterId", Type::Text),
        ("projectId", Type::Text),
        ("projectName", Type::Text),
        ("departmentId", Type::Text),
        ("departmentName", Type::Text),
        ("createdAt", Type::Time),
        ("completedAt", Type::Time),
        ("deletedAt", Type::Time),
        ("submittedBy", Type::Text),
        ("source", Type::Text),
        ("phase", Type::Text),
        ("phaseUpdatedAt", Type::Time),
        ("nodepool", Type::Text),
        ("distributedFramework", Type::Text),
        ("architecture", Type::Text),
        ("allocatedGPU", Type::Number),
        ("requestedGPU", Type::Number),
        ("requestedGPUMemory", Type::Number),
        ("allocatedGPUMemory", Type::Number),
        ("idleGpus", Type::Number),
        ("idleAllocatedGpus", Type::Number),
        ("idleTimeSeconds", Type::Number),
        ("allocatedCPU", Type::Number),
        ("requestedCPU", Type::Number),
        ("allocatedCPUMemory", Type::Number),
        ("requestedCPUMemory", Type::Number),
        ("runningPods", Type::Number),
        ("requestedPods", Type::Number),
        ("images", Type::Text),
        ("template", Type::Text),
        ("environments", Type::Text),
        ("computeResource", Type::Text),
        ("datasources", Type::Text),
        ("connections", Type::Text),
        ("category", Type::Text),
        ("priority", Type::Number),
        ("priorityClassName", Type::Text),
        ("preemptible", Type::Flag),
        ("totalPendingTimeSeconds", Type::Number),
        ("totalRunningTimeSeconds", Type::Number),
        ("nodes", Type::Text),
        ("labels", Type::Text),
        ("qualifiedName", Type::Text),
        ("activity", Type::Text),
    ];
    const SEARCHED: &'static [&'static str] =
        &["name", "type", "projectName", "phase", "submittedBy"];

    fn field(&self, name: &str, now: Instant) -> Scalar<'_> {
        match name {
            "id" => Scalar::text(self.id.to_string()),
            "type" => Scalar::text(kind_name(self.spec.kind)),
            "name" => Scalar::text(self.spec.name.as_str()),
            "projectId" => Scalar::text(self.project_id.to_string()),
            "projectName" => Scalar::text(self.project_name.as_str()),
            "departmentId" => Scalar::text(self.department_id.to_string()),
            "departmentName" => Scalar::text(self.department_name.as_str()),
            "createdAt" => Scalar::time(self.created_at),
            "completedAt" => self.completed_at.map_or(Scalar::Absent, Scalar::time),
            "deletedAt" => self.deleted_at.map_or(Scalar::Absent, Scalar::time),
            "submittedBy" => Scalar::text(self.spec.submitted_by.as_str()),
            "source" => Scalar::text(self.spec.source.as_str()),
            "phase" => Scalar::text(phase_name(self.phase)),
            "phaseUpdatedAt" => Scalar::time(self.phase_since),
            "distributedFramework" => self
                .spec
                .distributed
                .map_or(Scalar::Absent, |one| Scalar::text(framework_name(one.framework))),
            "nodepool" => self.pool.as_deref().map_or(Scalar::Absent, Scalar::text),
            "architecture" => Scalar::text(match self.spec.distributed {
                Some(_) => "Distributed",
                None => "Standard",
            }),
            "allocatedGPU" => Scalar::Number(self.allocated.gpu_millis),
            "requestedGPU" => Scalar::Number(self.requested.gpu_millis),
            "requestedGPUMemory" => {
                requested_gpu_memory(&self.spec).map_or(Scalar::Absent, Scalar::count)
            }
            "idleGpus" => Scalar::count(idle_gpus(self)),
            "idleAllocatedGpus" => Scalar::Number(idle_gpu_millis(self)),
            "idleTimeSeconds" => {
                Scalar::count(self.idle_since.map_or(0, |since| now.since_ms(since) / 1000))
            }
            "allocatedGPUMemory" => Scalar::count(gpu_memory(&self.pods)),
            "allocatedCPU" => Scalar::Number(self.allocated.cpu_millis),
            "requestedCPU" => Scalar::Number(self.requested.cpu_millis),
            "allocatedCPUMemory" => Scalar::count(self.allocated.memory_bytes),
            "requestedCPUMemory" => Scalar::count(self.requested.memory_bytes),
            "runningPods" => Scalar::count(running_pods(self)),
            "requestedPods" => Scalar::count(requested_pods(self).number),
            "images" => Scalar::Texts(images(&self.spec).into_iter().map(Into::into).collect()),
            "template" => made_of::names(&self.spec, made_of::TEMPLATE),
            "environments" => made_of::names(&self.spec, ENVIRONMENT_ASSET),
            "computeResource" => made_of::names(&self.spec, COMPUTE_ASSET),
            "datasources" => {
                let sources = made_of::data_sources(&self.spec).into_iter();
                Scalar::Texts(sources.map(|source| source.name.into()).collect())
            }
            "connections" => {
                let names = super::urls::connection_names(&self.spec);
                Scalar::Texts(names.map(Into::into).collect())
            }
            "category" => Scalar::text(category(self.spec.kind)),
            "priority" => Scalar::count(self.spec.priority.value.into()),
            "priorityClassName" => Scalar::text(self.spec.priority.class.as_str()),
            "preemptible" => Scalar::Flag(self.spec.preemptible),
            "totalPendingTimeSeconds" => Scalar::count(times_s(self, now).0),
            "totalRunningTimeSeconds" => Scalar::count(times_s(self, now).1),
            "nodes" => Scalar::Texts(nodes(self).into_iter().map(Into::into).collect()),
            "labels" => {
                let pair = |(name, value): (&String, &String)| format!("{name}={value}").into();
                Scalar::Texts(self.spec.labels.iter().map(pair).collect())
            }
            "qualifiedName" => Scalar::text(format!("{} {}", self.project_name, self.spec.name)),
            "activity" => Scalar::text(activity(self)),
            _ => Scalar::Absent,
        }
    }
}
