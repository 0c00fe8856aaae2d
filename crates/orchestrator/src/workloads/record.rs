//! Records of workloads and their pods, in memory and as rows.

use std::ops::Index;
use std::sync::Arc;

use model::{PodId, WorkloadId};
use pod_life::{Ended, Life};
use records::{Desired, PlacementBody, PodBody, PodRow, Relaunch, WorkloadRow, WorkloadState};
use spec::{ExitKind, PodSpec, RunKey, WorkloadPast, WorkloadSpec};
use units::{Instant, Resources};
use uuid::Uuid;

use crate::Error;
use view::{EvictionView, PendingReason, Phase};

/// A workload.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    pub(crate) id: Uuid,
    pub(crate) seq: u64,
    pub(crate) project_id: u64,
    pub(crate) spec: Arc<WorkloadSpec>,
    pub(crate) created_at: Instant,
    /// Its id in the model; `None` once it has ended.
    pub(crate) model: Option<WorkloadId>,
    pub(crate) phase: Phase,
    pub(crate) phase_since: Instant,
    pub(crate) desired: Desired,
    pub(crate) restarts: u32,
    pub(crate) not_before: Option<Instant>,
    pub(crate) completed_at: Option<Instant>,
    pub(crate) waited_ms: u64,
    pub(crate) ran_ms: u64,
    /// Changed by `Workloads::set_pending` only.
    pub(crate) pending: Arc<[PendingReason]>,
    pub(crate) last_eviction: Option<EvictionView>,
    /// Last written history for decisions; the present one is in the model.
    pub(crate) past: Option<Box<WorkloadPast>>,
    pub(crate) over_quota: bool,
    /// Sum of the requests of all its pods.
    pub(crate) requested: Resources,
    pub(crate) pods: Pods,
    /// True if it is an adopted pod: nothing of it is stored.
    pub(crate) is_adopted: bool,
    /// Its revisions, the oldest first, if it is an inference.
    pub(crate) revisions: Vec<Uuid>,
}

/// A pod. Its place is in the model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pod {
    pub(crate) id: Uuid,
    pub(crate) index: u32,
    /// Its name, if another API has made it.
    pub(crate) name: Option<String>,
    pub(crate) generation: u32,
    /// Its id in the model; `None` if it is no member of its set, or the workload has ended.
    pub(crate) model: Option<PodId>,
    /// Changed by `Workloads::set_life` only.
    life: Life,
    pub(crate) placed_at: Option<Instant>,
    /// Start of the time in which its workload has held places without a break.
    pub(crate) held_since: Option<Instant>,
    pub(crate) resized_at: Option<Instant>,
    /// GPU thousandths of its newest run, if the scheduler chooses them; and those of the run
    /// before it, if the number was another.
    pub(crate) run_gpu_millis: Option<u64>,
    pub(crate) resized_from: Option<u64>,
    /// Time of the last checkpoint that its run reported. Not stored: for a single pod the model
    /// has it, and several report again.
    pub(crate) saved_at: Option<Instant>,
    /// True if its run has met the others of its workload at the server.
    pub(crate) meets: bool,
    /// True if it has left its set, or does so as soon as its run has stopped.
    pub(crate) left: bool,
    /// Its own port, if the pods of its workload work together or serve.
    pub(crate) port: Option<u16>,
    /// Its identity since it was relaunched as another pod.
    pub(crate) relaunch: Option<Relaunch>,
    pub(crate) last_exit: Option<String>,
    pub(crate) last_exit_kind: Option<ExitKind>,
    /// Numbers of successive lost runs, and of successive failures in its place. Delays depend on
    /// them, and when a master is given up.
    pub(crate) setbacks: u32,
    pub(crate) failures: u32,
    /// Time in which it has held its place in back-offs after failures, or while other pods of its
    /// gang were away, in milliseconds.
    pub(crate) kept_ms: u64,
    /// Length of its last run, if that failed by itself, in milliseconds.
    pub(crate) failed_after_ms: Option<u64>,
    /// Last written row.
    pub(crate) written: Option<Box<records::PodRow>>,
}

impl Pod {
    /// A pod that has not run yet.
    pub(crate) fn new(id: Uuid, index: u32) -> Self {
        Self { id, index, ..Self::default() }
    }

    pub(crate) const fn life(&self) -> &Life {
        &self.life
    }

    pub(super) fn set_life(&mut self, life: Life) -> Life {
        std::mem::replace(&mut self.life, life)
    }

    /// True if it holds its place without a process.
    pub(crate) const fn is_idle(&self) -> bool {
        self.life.is_idle()
    }

    pub(crate) const fn number(&self) -> usize {
        self.index as usize
    }

    /// Its number in its role, which changes when it is relaunched as another pod.
    pub(crate) fn number_in_role(&self, spec: &WorkloadSpec) -> u32 {
        self.relaunch.map_or_else(|| spec.number_in_role(self.number()), |now| now.number)
    }

    /// Number of restarts since it was last relaunched as another pod.
    pub(crate) fn restarts(&self) -> u32 {
        let after = self.relaunch.map_or(0, |now| now.after);
        self.generation.saturating_sub(after + 1)
    }

    pub(crate) const fn run(&self) -> RunKey {
        RunKey { pod: self.id, generation: self.generation }
    }
}

/// The pods of a workload by their numbers, which are not their positions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pods(Vec<Pod>);

impl Pods {
    fn position(&self, number: usize) -> Result<usize, usize> {
        self.0.binary_search_by_key(&number, Pod::number)
    }

    pub(crate) fn get(&self, number: usize) -> Option<&Pod> {
        self.0.get(self.position(number).ok()?)
    }

    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut Pod> {
        let at = self.position(number).ok()?;
        self.0.get_mut(at)
    }

    pub(crate) fn as_slice(&self) -> &[Pod] {
        &self.0
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Pod> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Pod> {
        self.0.iter_mut()
    }

    /// Adds a pod with an unused number.
    pub(crate) fn insert(&mut self, pod: Pod) {
        if let Err(at) = self.position(pod.number()) {
            self.0.insert(at, pod);
        }
    }
}

impl Index<usize> for Pods {
    type Output = Pod;

    fn index(&self, number: usize) -> &Pod {
        self.get(number).expect("the number of a pod")
    }
}

impl FromIterator<Pod> for Pods {
    fn from_iter<T: IntoIterator<Item = Pod>>(pods: T) -> Self {
        let mut all = Self::default();
        pods.into_iter().for_each(|pod| all.insert(pod));
        all
    }
}

/// Name of a pod: of its run, or of its first or next run while it waits in its place. A pod with a
/// role has the same name in all its runs, as published.
pub(crate) fn pod_name(spec: &WorkloadSpec, pod: &Pod) -> String {
    if let Some(name) = &pod.name {
        return name.clone();
    }
    let (workload, (set, _)) = (&spec.name, spec.set_of(pod.number()));
    let generation = (pod.generation + u32::from(pod.life.is_assembling())).max(1);
    let number = pod.number_in_role(spec);
    if spec.is_of_groups()
        && let Some(group) = spec.group(set.group.as_ref())
    {
        // Names of Kubernetes: the leader after its group, the others after the leader.
        let gang = spec.gang_with(pod.number());
        return match gang.iter().position(|&other| other == pod.number()) {
            None | Some(0) => format!("{workload}-{group}"),
            Some(at) => format!("{workload}-{group}-{at}"),
        };
    }
    match (&set.pod_names, set.role.as_str()) {
        (Some(names), _) => names.replace("{}", &number.to_string()),
        (None, "") => format!("{workload}-{}-{generation}", pod.index),
        (None, role) => format!("{workload}-{role}-{number}"),
    }
}

/// A pod's request as the scheduler's type.
pub(crate) const fn model_request(spec: &PodSpec) -> model::PodRequest {
    model::PodRequest {
        gpu: spec.gpu.counted(),
        cpu_millis: spec.cpu_millis,
        memory_bytes: spec.memory_bytes,
    }
}

/// Words for the values of an enum, in both directions: adding a value without a word does not
/// compile.
macro_rules! words {
    ($of:ident, $to:ident, $from:ident, $what:literal: $($value:ident = $word:literal),+) => {
        const fn $to(value: $of) -> &'static str {
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

pub(super) fn workload_row(workload: &Workload) -> WorkloadRow {
    WorkloadRow {
        id: workload.id,
        seq: workload.seq,
        project_id: workload.project_id,
        created_at: workload.created_at,
        spec: workload.spec.clone(),
        state: workload_state(workload, None),
    }
}

pub(super) fn workload_state(workload: &Workload, deleted_at: Option<Instant>) -> WorkloadState {
    WorkloadState {
        phase: phase_word(workload.phase).to_owned(),
        phase_since: workload.phase_since,
        desired: workload.desired,
        restarts: workload.restarts,
        not_before: workload.not_before,
        completed_at: workload.completed_at,
        waited_ms: workload.waited_ms,
        ran_ms: workload.ran_ms,
        eviction: workload.last_eviction.as_ref().map(Into::into),
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
        pending: Arc::default(),
        last_eviction: state.eviction.map(Into::into),
        past: None,
        over_quota: false,
        requested: units::Resources::ZERO,
        pods: Pods::default(),
        is_adopted: false,
        revisions: Vec::new(),
    })
}

/// The row of a pod with its places, in the form that `place` gives.
pub(super) fn pod_row(
    workload: &Workload,
    pod: &Pod,
    binding: &model::PodBinding,
    place: impl Fn(&model::Placement) -> PlacementBody,
) -> PodRow {
    let ms = |at: Option<Instant>| at.map(|at| at.0);
    PodRow {
        id: pod.id,
        workload_id: workload.id,
        index: pod.index,
        generation: pod.generation,
        body: PodBody {
            current: binding.current.as_ref().map(&place),
            releasing: binding.releasing,
            next: binding.next.as_ref().map(&place),
            placed_at_ms: ms(pod.placed_at),
            held_since_ms: ms(pod.held_since),
            started_at_ms: ms(pod.life.started_at()),
            resized_at_ms: ms(pod.resized_at),
            run_gpu_millis: pod.run_gpu_millis,
            resized_from: pod.resized_from,
            restart_at_ms: ms(pod.life.restarts_at()),
            waits_for_others: pod.life.is_assembling(),
            left: pod.left,
            port: pod.port,
            meets: pod.meets,
            relaunch: pod.relaunch,
            ended: pod.life.ended().map(|ended| ended_word(ended).to_owned()),
            last_exit: pod.last_exit.clone(),
            last_exit_kind: pod.last_exit_kind,
            setbacks: pod.setbacks,
            failures: pod.failures,
            kept_ms: pod.kept_ms,
            failed_after_ms: pod.failed_after_ms,
        },
    }
}

/// A pod from its row, without its places.
pub(crate) fn pod_from_row(row: &PodRow) -> Result<Pod, Error> {
    let at = |ms: Option<u64>| ms.map(Instant);
    let body = &row.body;
    Ok(Pod {
        generation: row.generation,
        life: life_of(body)?,
        placed_at: at(body.placed_at_ms),
        held_since: at(body.held_since_ms),
        resized_at: at(body.resized_at_ms),
        run_gpu_millis: body.run_gpu_millis,
        resized_from: body.resized_from,
        left: body.left,
        port: body.port,
        meets: body.meets,
        relaunch: body.relaunch,
        last_exit: body.last_exit.clone(),
        last_exit_kind: body.last_exit_kind,
        setbacks: body.setbacks,
        failures: body.failures,
        kept_ms: body.kept_ms,
        failed_after_ms: body.failed_after_ms,
        written: Some(Box::new(row.clone())),
        ..Pod::new(row.id, row.index)
    })
}

/// The life of a pod from its row. Faults and the time of a request to stop are not stored: they
/// are determined again, and a run that ends after a restart of the server was stopped as asked.
fn life_of(body: &PodBody) -> Result<Life, Error> {
    let ended = body.ended.as_deref().map(ended).transpose()?;
    let since = body.started_at_ms.map(Instant);
    let until = body.restart_at_ms.map(Instant);
    Ok(match (&body.current, ended) {
        (Some(_), given_up) if body.releasing => {
            Life::Stopping { asked_at: None, since, given_up: given_up.is_some() }
        }
        (_, Some(ended)) => Life::Ended(ended),
        (None, None) => Life::waiting(),
        (Some(_), None) => match (until, since) {
            (Some(until), _) => Life::Paused { until, fault: None },
            (None, _) if body.waits_for_others => Life::Assembling,
            (None, Some(since)) => Life::Running { since, fault: None },
            (None, None) => Life::Starting { fault: None },
        },
    })
}
