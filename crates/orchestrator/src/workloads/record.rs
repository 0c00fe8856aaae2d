//! Workloads and their pods as the state keeps them.

use std::sync::Arc;

use model::{PodId, WorkloadId};
use records::Desired;
use spec::{PodSpec, RunKey, WorkloadSpec};
use units::{Instant, Resources};
use uuid::Uuid;

use crate::view::{Phase, ReasonView};

/// A workload.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    pub(crate) id: Uuid,
    pub(crate) seq: u64,
    pub(crate) project_id: u64,
    pub(crate) spec: Arc<WorkloadSpec>,
    pub(crate) created_at: Instant,
    /// Its place in the model; none once it has ended.
    pub(crate) model: Option<WorkloadId>,
    pub(crate) phase: Phase,
    pub(crate) phase_since: Instant,
    pub(crate) desired: Desired,
    pub(crate) restarts: u32,
    pub(crate) not_before: Option<Instant>,
    pub(crate) completed_at: Option<Instant>,
    pub(crate) waited_ms: u64,
    pub(crate) ran_ms: u64,
    pub(crate) pending: Vec<ReasonView>,
    pub(crate) last_eviction: Option<ReasonView>,
    pub(crate) over_quota: bool,
    /// What all its pods ask for together.
    pub(crate) requested: Resources,
    pub(crate) pods: Vec<Pod>,
    /// Its revisions, the oldest first, if it is an inference.
    pub(crate) revisions: Vec<Uuid>,
}

/// How a pod ended for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Succeeded,
    Failed,
}

/// A pod. Where it is, the model knows.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) id: Uuid,
    pub(crate) index: u32,
    pub(crate) generation: u32,
    /// Its place in the model; none once the workload has ended.
    pub(crate) model: Option<PodId>,
    pub(crate) placed_at: Option<Instant>,
    /// Since when its workload has held places without a break.
    pub(crate) held_since: Option<Instant>,
    pub(crate) started_at: Option<Instant>,
    pub(crate) resized_at: Option<Instant>,
    /// The run has ended and is to be started again in its place at this time. While this is
    /// set the pod holds its place without a process.
    pub(crate) restart_at: Option<Instant>,
    /// It has its place, and begins when the others of its gang have theirs. Until then it holds
    /// the place without a process, too.
    pub(crate) waits_for_others: bool,
    /// It is a replica that is not wanted.
    pub(crate) scaled_down: bool,
    /// Its own port, where the pods of its workload work together or serve.
    pub(crate) port: Option<u16>,
    pub(crate) ended: Option<Ended>,
    pub(crate) last_exit: Option<String>,
    /// What keeps its run from starting, or from serving; not stored, because it is found again.
    pub(crate) condition: Option<ReasonView>,
    /// When its run was told to stop, by the machine's clock. Not stored: it only tells an end of its own accord from
    /// one that was asked for, and after a restart of the server the latter is assumed.
    pub(crate) released_at: Option<Instant>,
    /// Runs lost in a row, and failures in its place in a row: only delays follow from them, so
    /// they are not stored.
    pub(crate) setbacks: u32,
    pub(crate) failures: u32,
    /// As it was written last.
    pub(crate) written: Option<Box<records::PodRow>>,
}

impl Pod {
    /// A pod that has not run yet.
    pub(crate) fn new(id: Uuid, index: u32) -> Self {
        Self {
            id,
            index,
            generation: 0,
            model: None,
            placed_at: None,
            held_since: None,
            started_at: None,
            resized_at: None,
            restart_at: None,
            waits_for_others: false,
            scaled_down: false,
            port: None,
            ended: None,
            last_exit: None,
            condition: None,
            released_at: None,
            setbacks: 0,
            failures: 0,
            written: None,
        }
    }

    /// Whether it holds its place without a process.
    pub(crate) const fn is_idle(&self) -> bool {
        self.restart_at.is_some() || self.waits_for_others
    }

    pub(crate) const fn run(&self) -> RunKey {
        RunKey { pod: self.id, generation: self.generation }
    }
}

/// Name of a pod: of its run, or of the one that begins as soon as the pod need not wait in its
/// place. One with a role has the same name in all its runs, as published.
pub(crate) fn pod_name(spec: &WorkloadSpec, pod: &Pod) -> String {
    let (workload, (set, number)) = (&spec.name, spec.set_of(pod.index as usize));
    let generation = pod.generation + u32::from(pod.waits_for_others);
    match set.role.as_str() {
        "" => format!("{workload}-{}-{generation}", pod.index),
        role => format!("{workload}-{role}-{number}"),
    }
}

/// A pod's request in the scheduler's terms.
pub(crate) const fn model_request(spec: &PodSpec) -> model::PodRequest {
    model::PodRequest {
        gpu: spec.gpu,
        cpu_millis: spec.cpu_millis,
        memory_bytes: spec.memory_bytes,
    }
}
