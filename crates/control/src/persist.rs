//! Between the types of this crate and the storage types. Owns: the explicit conversion, both
//! ways, and the words phases are stored as.

use std::collections::BTreeMap;

use engine::Framework;
use store::{
    DepartmentBody, DepartmentRow, EventRow, GpuBody, NodeTypesBody, PlacementBody, PodBody,
    PodRow, PodSetBody, ProjectBody, ProjectRow, ReasonBody, RulesBody, ShareBody, TogetherBody,
    TopologyUseBody, WorkloadRow, WorkloadSpecBody, WorkloadState,
};
use units::Instant;

use crate::Error;
use crate::command::{ShareChange, WorkloadSpec};
use crate::pools::POOL_DEFAULT_ID;
use crate::spec::{CleanPods, GpuSpec, PodSet, PodSpec, Restart, Together, TopologyUse};
use crate::state::{Department, Ended, Pod, Project, Unit, Workload};
use crate::view::{Event, NodeTypes, Phase, Rank, ReasonView, Rules, WorkloadKind};

/// Words for the values of an enum, both ways: adding a value without a word does not compile.
macro_rules! words {
    ($of:ident, $to:ident, $from:ident, $what:literal: $($value:ident = $word:literal),+) => {
        pub(crate) const fn $to(value: $of) -> &'static str {
            match value {
                $($of::$value => $word,)+
            }
        }

        fn $from(word: &str) -> Result<$of, Error> {
            match word {
                $($word => Ok($of::$value),)+
                _ => Err(Error::Internal {
                    message: format!(
                        "the database holds `{word}` as {}, which this program does not know",
                        $what
                    ),
                }),
            }
        }
    };
}

mod container;
mod place;
mod secret;
mod serving;

use place::{mig, place_body, place_from_body};

words!(Phase, phase_word, phase, "phase":
    Updating = "updating", Pending = "pending", Initializing = "initializing", Running = "running",
    Degraded = "degraded",
    Stopping = "stopping", Stopped = "stopped", Resuming = "resuming", Deleting = "deleting",
    Completed = "completed", Failed = "failed");
words!(Rank, rank_word, rank, "rank":
    VeryLow = "very-low", Low = "low", MediumLow = "medium-low", Medium = "medium",
    MediumHigh = "medium-high", High = "high", VeryHigh = "very-high");
words!(WorkloadKind, kind_word, kind, "kind of workload":
    Training = "training", Workspace = "workspace", Distributed = "distributed", Inference = "inference");
words!(Restart, restart_word, restart, "restart policy":
    Never = "never", OnFailure = "on-failure", Always = "always");
words!(Framework, framework_word, framework, "framework":
    PyTorch = "pytorch", Mpi = "mpi", Tf = "tf", XgBoost = "xgboost", Jax = "jax");
words!(CleanPods, clean_word, clean, "what becomes of pods":
    Running = "running", All = "all", None = "none");
words!(Ended, ended_word, ended, "end of a pod": Succeeded = "succeeded", Failed = "failed");

pub(crate) fn department_row(
    Department { unit, .. }: &Department,
    deleted_at: Option<Instant>,
) -> DepartmentRow {
    let (share, pool_shares) = shares_body(&unit.shares);
    DepartmentRow {
        id: unit.id,
        name: unit.name.clone(),
        body: DepartmentBody {
            description: unit.description.clone(),
            created_by: unit.created_by.clone(),
            created_at_ms: unit.created_at.0,
            updated_by: unit.updated_by.clone(),
            updated_at_ms: unit.updated_at.0,
            share,
            rules: rules_body(unit.rules),
            pool_shares,
            default_pools: unit.default_pools.clone(),
            node_types: types_body(&unit.node_types),
        },
        deleted_at,
    }
}

/// A department, with its place in the model.
pub(crate) fn department_from_row(
    row: &DepartmentRow,
    queue: model::QueueId,
) -> Result<Department, Error> {
    let body = &row.body;
    let unit = Unit {
        id: row.id,
        name: row.name.clone(),
        description: body.description.clone(),
        created_by: body.created_by.clone(),
        created_at: Instant(body.created_at_ms),
        updated_by: body.updated_by.clone(),
        updated_at: Instant(body.updated_at_ms),
        shares: shares_from_body(body.share.as_ref(), &body.pool_shares)?,
        rules: rules_from_body(body.rules),
        default_pools: body.default_pools.clone(),
        node_types: types_from_body(&body.node_types),
    };
    Ok(Department { unit, queue })
}

pub(crate) fn project_row(project: &Project, deleted_at: Option<Instant>) -> ProjectRow {
    let unit = &project.unit;
    let (share, pool_shares) = shares_body(&unit.shares);
    ProjectRow {
        id: unit.id,
        name: unit.name.clone(),
        body: ProjectBody {
            description: unit.description.clone(),
            created_by: unit.created_by.clone(),
            created_at_ms: unit.created_at.0,
            updated_by: Some(unit.updated_by.clone()),
            updated_at_ms: unit.updated_at.0,
            department_id: project.department_id,
            share: share.unwrap_or_default(),
            rules: rules_body(unit.rules),
            pool_shares,
            default_pools: unit.default_pools.clone(),
            node_types: types_body(&unit.node_types),
        },
        deleted_at,
    }
}

/// A project without workloads, with its place in the model.
pub(crate) fn project_from_row(row: &ProjectRow, queue: model::QueueId) -> Result<Project, Error> {
    let body = &row.body;
    let unit = Unit {
        id: row.id,
        name: row.name.clone(),
        description: body.description.clone(),
        created_by: body.created_by.clone(),
        created_at: Instant(body.created_at_ms),
        updated_by: body.updated_by.as_ref().unwrap_or(&body.created_by).clone(),
        updated_at: Instant(body.updated_at_ms),
        shares: shares_from_body(Some(&body.share), &body.pool_shares)?,
        rules: rules_from_body(body.rules),
        default_pools: body.default_pools.clone(),
        node_types: types_from_body(&body.node_types),
    };
    Ok(Project { unit, department_id: body.department_id, queue, names: BTreeMap::new() })
}

fn rules_body(rules: Rules) -> RulesBody {
    RulesBody {
        training_run_ms_max: rules.training_run_ms_max,
        workspace_run_ms_max: rules.workspace_run_ms_max,
        training_idle_ms_max: rules.training_idle_ms_max,
        workspace_idle_ms_max: rules.workspace_idle_ms_max,
        preemptible_workspace_idle_ms_max: rules.preemptible_workspace_idle_ms_max,
    }
}

fn rules_from_body(body: RulesBody) -> Rules {
    Rules {
        training_run_ms_max: body.training_run_ms_max,
        workspace_run_ms_max: body.workspace_run_ms_max,
        training_idle_ms_max: body.training_idle_ms_max,
        workspace_idle_ms_max: body.workspace_idle_ms_max,
        preemptible_workspace_idle_ms_max: body.preemptible_workspace_idle_ms_max,
    }
}

fn types_body(types: &NodeTypes) -> NodeTypesBody {
    let NodeTypes { training, workspace, names } = types.clone();
    NodeTypesBody { training, workspace, names }
}

fn types_from_body(body: &NodeTypesBody) -> NodeTypes {
    let NodeTypesBody { training, workspace, names } = body.clone();
    NodeTypes { training, workspace, names }
}

/// Shares by the ids of their pools: that of the pool `default`, and the others.
fn shares_body(
    shares: &BTreeMap<String, ShareChange>,
) -> (Option<ShareBody>, BTreeMap<String, ShareBody>) {
    let mut all: BTreeMap<_, _> =
        shares.iter().map(|(pool, share)| (pool.clone(), share_body(share))).collect();
    (all.remove(POOL_DEFAULT_ID), all)
}

fn shares_from_body(
    default: Option<&ShareBody>,
    others: &BTreeMap<String, ShareBody>,
) -> Result<BTreeMap<String, ShareChange>, Error> {
    let default = default.map(|body| (POOL_DEFAULT_ID, body));
    let others = others.iter().map(|(pool, body)| (pool.as_str(), body));
    let all = default.into_iter().chain(others);
    all.map(|(pool, body)| Ok((pool.to_owned(), share_from_body(body)?))).collect()
}

fn share_body(share: &ShareChange) -> ShareBody {
    ShareBody {
        gpu_quota_millis: share.gpu_quota_millis,
        gpu_limit_millis: share.gpu_limit_millis,
        over_quota_weight: share.over_quota_weight,
        cpu_quota_millis: share.cpu_quota_millis,
        memory_quota_bytes: share.memory_quota_bytes,
        cpu_limit_millis: share.cpu_limit_millis,
        memory_limit_bytes: share.memory_limit_bytes,
        cpu_weight: share.cpu_weight,
        memory_weight: share.memory_weight,
        rank: share.rank.map(|rank| rank_word(rank).to_owned()),
    }
}

fn share_from_body(body: &ShareBody) -> Result<ShareChange, Error> {
    Ok(ShareChange {
        gpu_quota_millis: body.gpu_quota_millis,
        gpu_limit_millis: body.gpu_limit_millis,
        over_quota_weight: body.over_quota_weight,
        cpu_quota_millis: body.cpu_quota_millis,
        memory_quota_bytes: body.memory_quota_bytes,
        cpu_limit_millis: body.cpu_limit_millis,
        memory_limit_bytes: body.memory_limit_bytes,
        cpu_weight: body.cpu_weight,
        memory_weight: body.memory_weight,
        rank: body.rank.as_deref().map(rank).transpose()?,
    })
}

pub(crate) fn workload_row(workload: &Workload) -> WorkloadRow {
    WorkloadRow {
        id: workload.id,
        seq: workload.seq,
        project_id: workload.project_id,
        created_at: workload.created_at,
        spec: spec_body(&workload.spec),
        state: workload_state(workload, None),
    }
}

pub(crate) fn workload_state(workload: &Workload, deleted_at: Option<Instant>) -> WorkloadState {
    WorkloadState {
        phase: phase_word(workload.phase).to_owned(),
        phase_since: workload.phase_since,
        desired: workload.desired,
        restarts: workload.restarts,
        not_before: workload.not_before,
        completed_at: workload.completed_at,
        waited_ms: workload.waited_ms,
        ran_ms: workload.ran_ms,
        eviction: workload.last_eviction.as_ref().map(|reason| ReasonBody {
            code: reason.code.clone(),
            message: reason.message.clone(),
            at_ms: reason.at.0,
        }),
        deleted_at,
    }
}

pub(crate) fn workload_from_row(row: WorkloadRow) -> Result<Workload, Error> {
    let state = row.state;
    Ok(Workload {
        id: row.id,
        seq: row.seq,
        project_id: row.project_id,
        spec: std::sync::Arc::new(spec_from_body(row.spec)?),
        created_at: row.created_at,
        model: None,
        phase: phase(&state.phase)?,
        phase_since: state.phase_since,
        desired: state.desired,
        restarts: state.restarts,
        not_before: state.not_before,
        completed_at: state.completed_at,
        waited_ms: state.waited_ms,
        ran_ms: state.ran_ms,
        pending: Vec::new(),
        last_eviction: state.eviction.map(|reason| ReasonView {
            code: reason.code,
            message: reason.message,
            at: Instant(reason.at_ms),
        }),
        over_quota: false,
        requested: units::Resources::ZERO,
        pods: Vec::new(),
        revisions: Vec::new(),
    })
}

pub(crate) fn spec_body(spec: &WorkloadSpec) -> WorkloadSpecBody {
    WorkloadSpecBody {
        name: spec.name.clone(),
        kind: kind_word(spec.kind).to_owned(),
        submitted_by: spec.submitted_by.clone(),
        submitter_id: spec.submitter_id.clone(),
        source: spec.source.clone(),
        pods: set_body(&spec.pods),
        more: spec.more.iter().map(set_body).collect(),
        together: spec.together.map(|together| TogetherBody {
            framework: framework_word(together.framework).to_owned(),
            slots_per_worker: together.slots_per_worker,
            first_waits: together.first_waits,
            clean: clean_word(together.clean).to_owned(),
        }),
        serving: spec.serving.as_ref().map(serving::body),
        urls: spec.urls.iter().map(serving::url_body).collect(),
        related_urls: spec.related_urls.iter().map(serving::related_body).collect(),
        revision: spec.revision.map(serving::revision_body),
        elastic: spec.elastic,
        priority: spec.priority,
        priority_class: spec.priority_class.clone(),
        preemptible: spec.preemptible,
        backoff_limit: spec.backoff_limit,
        delete_after_ms: spec.delete_after_ms,
        delete_when_preempted: spec.delete_when_preempted,
        command_line: spec.command_line.clone(),
        uses: spec.uses.clone(),
        labels: spec.labels.clone(),
        annotations: spec.annotations.clone(),
        node_pools: spec.node_pools.clone(),
        node_types: spec.node_types.clone(),
        manifest: spec.manifest.as_deref().map(ToOwned::to_owned),
        topology: spec.topology.as_ref().map(|of| TopologyUseBody {
            id: of.id.clone(),
            required: of.required.clone(),
            preferred: of.preferred.clone(),
        }),
    }
}

fn set_body(set: &PodSet) -> PodSetBody {
    let pod = &set.pod;
    PodSetBody {
        role: set.role.clone(),
        pods: set.pods,
        pods_min: set.pods_min,
        at_once: set.at_once,
        image: pod.image.clone(),
        command: pod.command.clone(),
        args: pod.args.clone(),
        env: pod.env.clone(),
        secrets: pod.secrets.iter().map(secret::body).collect(),
        working_dir: pod.working_dir.clone(),
        place: place_body(&pod.place),
        gpu: match pod.gpu {
            GpuSpec::Whole(devices) => GpuBody::Whole { devices },
            GpuSpec::Share { devices, millis } => GpuBody::Share { devices, millis },
            GpuSpec::Memory { devices, bytes } => GpuBody::Memory { devices, bytes },
            GpuSpec::Mig(instances) => GpuBody::Mig {
                instances: instances.iter().map(|(profile, n)| (profile.to_string(), n)).collect(),
            },
        },
        cpu_millis: pod.cpu_millis,
        memory_bytes: pod.memory_bytes,
        restart: restart_word(pod.restart).to_owned(),
        grace_ms: pod.grace_ms,
        stdin: pod.stdin,
        tty: pod.tty,
        container: container::body(&pod.container),
    }
}

fn set_from_body(body: PodSetBody) -> Result<PodSet, Error> {
    let pod = PodSpec {
        image: body.image,
        command: body.command,
        args: body.args,
        env: body.env,
        secrets: body.secrets.into_iter().map(secret::from_body).collect::<Result<_, _>>()?,
        working_dir: body.working_dir,
        place: place_from_body(body.place)?,
        gpu: match body.gpu {
            GpuBody::Whole { devices } => GpuSpec::Whole(devices),
            GpuBody::Share { devices, millis } => GpuSpec::Share { devices, millis },
            GpuBody::Memory { devices, bytes } => GpuSpec::Memory { devices, bytes },
            GpuBody::Mig { instances } => GpuSpec::Mig(mig(instances)?),
        },
        cpu_millis: body.cpu_millis,
        memory_bytes: body.memory_bytes,
        restart: restart(&body.restart)?,
        grace_ms: body.grace_ms,
        stdin: body.stdin,
        tty: body.tty,
        container: container::from_body(body.container)?,
    };
    let PodSetBody { role, pods, pods_min, at_once, .. } = body;
    Ok(PodSet { role, pods, pods_min, at_once, pod })
}

fn together_from_body(body: &TogetherBody) -> Result<Together, Error> {
    Ok(Together {
        framework: framework(&body.framework)?,
        slots_per_worker: body.slots_per_worker,
        first_waits: body.first_waits,
        clean: clean(&body.clean)?,
    })
}

fn spec_from_body(body: WorkloadSpecBody) -> Result<WorkloadSpec, Error> {
    Ok(WorkloadSpec {
        name: body.name,
        kind: kind(&body.kind)?,
        submitted_by: body.submitted_by,
        submitter_id: body.submitter_id,
        source: body.source,
        pods: set_from_body(body.pods)?,
        more: body.more.into_iter().map(set_from_body).collect::<Result<_, _>>()?,
        together: body.together.as_ref().map(together_from_body).transpose()?,
        serving: body.serving.map(serving::from_body).transpose()?,
        urls: body.urls.into_iter().map(serving::url_from_body).collect(),
        related_urls: body.related_urls.into_iter().map(serving::related_from_body).collect(),
        revision: body.revision.map(serving::revision_from_body),
        elastic: body.elastic,
        priority: body.priority,
        priority_class: body.priority_class,
        preemptible: body.preemptible,
        backoff_limit: body.backoff_limit,
        delete_after_ms: body.delete_after_ms,
        delete_when_preempted: body.delete_when_preempted,
        command_line: body.command_line,
        uses: body.uses,
        labels: body.labels,
        annotations: body.annotations,
        node_pools: body.node_pools,
        node_types: body.node_types,
        manifest: body.manifest.map(Into::into),
        topology: body.topology.map(|of| TopologyUse {
            id: of.id,
            required: of.required,
            preferred: of.preferred,
        }),
    })
}

/// A pod with its places; the model knows nodes by number, the disk by name.
pub(crate) fn pod_row(
    workload: &Workload,
    pod: &Pod,
    occupancy: &model::Occupancy,
    node_name: impl Fn(model::NodeId) -> String,
) -> PodRow {
    let place = |placement: &model::Placement| PlacementBody {
        node: node_name(placement.node),
        devices: placement.devices.iter().map(|share| (share.gpu, share.millis)).collect(),
    };
    let ms = |at: Option<Instant>| at.map(|at| at.0);
    PodRow {
        id: pod.id,
        workload_id: workload.id,
        index: pod.index,
        generation: pod.generation,
        body: PodBody {
            current: occupancy.current.as_ref().map(place),
            releasing: occupancy.releasing,
            next: occupancy.next.as_ref().map(place),
            placed_at_ms: ms(pod.placed_at),
            held_since_ms: ms(pod.held_since),
            started_at_ms: ms(pod.started_at),
            resized_at_ms: ms(pod.resized_at),
            restart_at_ms: ms(pod.restart_at),
            waits_for_others: pod.waits_for_others,
            parked: pod.parked,
            port: pod.port,
            ended: pod.ended.map(|ended| ended_word(ended).to_owned()),
            last_exit: pod.last_exit.clone(),
        },
    }
}

/// A pod without its places.
pub(crate) fn pod_from_row(row: &PodRow) -> Result<Pod, Error> {
    let at = |ms: Option<u64>| ms.map(Instant);
    let body = &row.body;
    Ok(Pod {
        id: row.id,
        index: row.index,
        generation: row.generation,
        model: None,
        placed_at: at(body.placed_at_ms),
        held_since: at(body.held_since_ms),
        started_at: at(body.started_at_ms),
        resized_at: at(body.resized_at_ms),
        restart_at: at(body.restart_at_ms),
        waits_for_others: body.waits_for_others,
        parked: body.parked,
        port: body.port,
        ended: body.ended.as_deref().map(ended).transpose()?,
        last_exit: body.last_exit.clone(),
        condition: None,
        released_at: None,
        setbacks: 0,
        failures: 0,
        written: Some(Box::new(row.clone())),
    })
}

pub(crate) fn event_row(event: &Event, project_id: Option<u64>) -> EventRow {
    EventRow {
        seq: event.seq,
        at: event.at,
        kind: event.kind.clone(),
        warning: event.warning,
        project_id,
        project_name: event.project_name.clone(),
        workload_id: event.workload_id,
        workload_name: event.workload_name.clone(),
        pod_name: event.pod_name.clone(),
        code: event.code.clone(),
        message: event.message.clone(),
    }
}

pub(crate) fn event_from_row(row: EventRow) -> Event {
    Event {
        seq: row.seq,
        at: row.at,
        kind: row.kind,
        warning: row.warning,
        workload_id: row.workload_id,
        workload_name: row.workload_name,
        pod_name: row.pod_name,
        project_id: row.project_id,
        project_name: row.project_name,
        code: row.code,
        message: row.message,
    }
}
