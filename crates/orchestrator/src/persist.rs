//! Between the types of this crate and the storage types. Owns: the explicit conversion, both
//! ways, and the words phases are stored as.

use std::collections::BTreeMap;

use records::{
    DepartmentBody, DepartmentRow, EventRow, PlacementBody, PodBody, PodRow, ProjectBody,
    ProjectRow, ReasonBody, WorkloadRow, WorkloadState,
};
use spec::ShareChange;
use units::Instant;

use crate::Error;
use crate::org::{Department, Project, Unit};
use crate::pools::POOL_DEFAULT_ID;
use crate::view::{Event, Phase, ReasonView};
use crate::workloads::{Ended, Pod, Workload};

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

words!(Phase, phase_word, phase, "phase":
    Updating = "updating", Pending = "pending", Initializing = "initializing", Running = "running",
    Degraded = "degraded",
    Stopping = "stopping", Stopped = "stopped", Resuming = "resuming", Deleting = "deleting",
    Completed = "completed", Failed = "failed");
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
            rules: unit.rules,
            pool_shares,
            default_pools: unit.default_pools.clone(),
            node_types: unit.node_types.clone(),
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
        shares: shares_from_body(body.share.as_ref(), &body.pool_shares),
        rules: body.rules,
        default_pools: body.default_pools.clone(),
        node_types: body.node_types.clone(),
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
            rules: unit.rules,
            pool_shares,
            default_pools: unit.default_pools.clone(),
            node_types: unit.node_types.clone(),
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
        shares: shares_from_body(Some(&body.share), &body.pool_shares),
        rules: body.rules,
        default_pools: body.default_pools.clone(),
        node_types: body.node_types.clone(),
    };
    Ok(Project { unit, department_id: body.department_id, queue })
}

/// Shares by the ids of their pools: that of the pool `default`, and the others.
fn shares_body(
    shares: &BTreeMap<String, ShareChange>,
) -> (Option<ShareChange>, BTreeMap<String, ShareChange>) {
    let mut all: BTreeMap<_, _> =
        shares.iter().map(|(pool, share)| (pool.clone(), *share)).collect();
    (all.remove(POOL_DEFAULT_ID), all)
}

fn shares_from_body(
    default: Option<&ShareChange>,
    others: &BTreeMap<String, ShareChange>,
) -> BTreeMap<String, ShareChange> {
    let default = default.map(|body| (POOL_DEFAULT_ID, body));
    let others = others.iter().map(|(pool, body)| (pool.as_str(), body));
    let all = default.into_iter().chain(others);
    all.map(|(pool, body)| (pool.to_owned(), *body)).collect()
}

pub(crate) fn workload_row(workload: &Workload) -> WorkloadRow {
    WorkloadRow {
        id: workload.id,
        seq: workload.seq,
        project_id: workload.project_id,
        created_at: workload.created_at,
        spec: workload.spec.clone(),
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
        spec: row.spec,
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
            parked: pod.scaled_down,
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
        scaled_down: body.parked,
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

/// An event from its row.
#[must_use]
pub fn event_from_row(row: EventRow) -> Event {
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
