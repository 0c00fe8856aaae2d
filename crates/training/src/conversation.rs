//! The conversation with one master. Owns: the connection, the events of pods that it gets, and its
//! progress for readers. Does not know about: the times of requests.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use api_types::{JobTraining, Millis, PodTraining, Time};
use elastic_proto::v1::master_client::MasterClient;
use elastic_proto::v1::tell_request::Event;
use elastic_proto::v1::{PodGone, PodLeaves, StatusReply, WorkerStatus};
use elastic_proto::{Credentials, Sign, pod_of};
use hyper_util::rt::TokioIo;
use spec::{Framework, MASTER};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Uri};
use uuid::Uuid;
use view::{PodState, View, WorkloadView};

/// Timeout of a request to a master.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) type Master = MasterClient<InterceptedService<Channel, Sign>>;

/// A run of a master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MasterRun {
    pub(crate) workload: Uuid,
    pod: Uuid,
    generation: u32,
    name: String,
    port: u16,
    /// Key of the object that holds the token of its job.
    pub(crate) token: String,
}

impl MasterRun {
    /// The run of a workload's master, if it is a training whose master runs.
    pub(crate) fn of(workload: &WorkloadView) -> Option<Self> {
        let framework = workload.spec.distributed?.framework;
        let is_master = |index: &usize| workload.spec.set_of(*index).0.role == MASTER;
        let index = (0..workload.pods.len()).find(is_master)?;
        let pod = &workload.pods[index];
        // A master that is being stopped still answers, and its workers leave.
        let runs = matches!(pod.state, PodState::Running | PodState::Terminating);
        (framework == Framework::ElasticDl && runs).then_some(())?;
        let (name, port) = (pod.name.clone(), pod.port?);
        let (pod, generation) = (pod.id, pod.generation);
        let token = control::job_token(workload.id, &workload.spec.set_of(index).0.pod.env);
        Some(Self { workload: workload.id, pod, generation, name, port, token })
    }

    /// True if it is the present run.
    pub(crate) fn is_in(&self, view: &View) -> bool {
        let workload = view.workloads.get(&self.workload);
        workload.and_then(|workload| Self::of(workload)).is_some_and(|now| now == *self)
    }

    /// Connects to it: to a port on which only a process of this run listens.
    pub(crate) fn connect(&self, control: &control::Handle, token: &str) -> Option<Master> {
        let credentials = Credentials::new(token)?;
        let (control, run) = (control.clone(), self.clone());
        let connector = tower::service_fn(move |_: Uri| {
            let (control, run) = (control.clone(), run.clone());
            async move {
                let connected = control.connect(run.workload, Some(&run.name), run.port).await;
                connected.map(TokioIo::new).map_err(io::Error::other)
            }
        });
        let endpoint = credentials.endpoint("master")?.timeout(PATIENCE);
        let channel = endpoint.connect_with_connector_lazy(connector);
        Some(MasterClient::with_interceptor(channel, credentials.sign()))
    }
}

/// Events that a master does not know of its pods. `workers` is older than the view of the
/// workload, so each of them was placed before, or has lost its place since.
pub(crate) fn news(workload: &WorkloadView, workers: &[WorkerStatus]) -> Vec<Event> {
    workers.iter().filter_map(|worker| news_of(workload, worker)).collect()
}

fn news_of(workload: &WorkloadView, worker: &WorkerStatus) -> Option<Event> {
    let pod = worker.pod.clone();
    let index = workload.pods.iter().position(|one| one.name == pod_of(&pod));
    match index.map(|index| workload.pods[index].state) {
        Some(state) if state.is_starting_or_running() => None,
        Some(PodState::Terminating) if worker.leaving => None,
        Some(PodState::Terminating) => {
            let within_ms = workload.spec.set_of(index?).0.pod.grace_ms;
            Some(Event::PodLeaves(PodLeaves { pod, within_ms }))
        }
        // A pod that has lost its place is relaunched under another name.
        _ => Some(Event::PodGone(PodGone { pod, ..PodGone::default() })),
    }
}

/// Progress of a training, for readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) job: JobTraining,
    /// Worker pods by name.
    pub(crate) pods: BTreeMap<String, PodTraining>,
}

impl Progress {
    pub(crate) fn of(status: &StatusReply, checkpointed_ms: Option<u64>) -> Self {
        let mut pods = BTreeMap::<String, PodTraining>::new();
        for (number, worker) in (0..).zip(&status.workers) {
            let process = of_worker(number, worker);
            let name = pod_of(&worker.pod).to_owned();
            pods.entry(name).and_modify(|pod| add(pod, &process)).or_insert(process);
        }
        let rate = pods.values().map(|pod| pod.samples_per_second.0).sum();
        let job = JobTraining {
            epoch: status.epoch,
            records: status.records,
            records_total: Some(status.records_total).filter(|total| *total > 0),
            bad_records: status.bad_records,
            model_version: status.model_version,
            checkpoint_version: status.checkpoint_version,
            checkpointed_at: checkpointed_ms.map(|at| Time(units::Instant(at))),
            samples_per_second: Millis(rate),
            workers: u32::try_from(status.workers.len()).unwrap_or(u32::MAX),
            old_gradients: status.gradients_rejected,
            embedding_rows: status.rows,
        };
        Self { job, pods }
    }
}

/// Adds a process to its pod: the processes of a pod are shown as one, with the rank of the first.
fn add(pod: &mut PodTraining, process: &PodTraining) {
    pod.rank = pod.rank.min(process.rank);
    pod.tasks.extend(&process.tasks);
    pod.model_version = pod.model_version.max(process.model_version);
    pod.samples_per_second.0 += process.samples_per_second.0;
    pod.leaving |= process.leaving;
}

/// Status of a worker process. Workers that train independently have ranks by age, like those of a
/// world.
fn of_worker(number: u32, worker: &WorkerStatus) -> PodTraining {
    let report = worker.report.unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let rate = (report.samples_per_second.max(0.0) * 1000.0) as u64;
    PodTraining {
        rank: worker.rank.unwrap_or(number),
        tasks: worker.task_ids.clone(),
        model_version: report.model_version,
        samples_per_second: Millis(rate),
        leaving: worker.leaving,
    }
}

#[cfg(test)]
mod tests {
    use elastic_proto::v1::WorkerReport;

    use super::*;

    #[test]
    fn the_processes_of_a_pod_are_shown_as_one() {
        let worker = |pod: &str, rank, task| WorkerStatus {
            pod: pod.to_owned(),
            rank: Some(rank),
            task_ids: vec![task],
            report: Some(WorkerReport {
                model_version: u64::from(rank),
                samples_per_second: 10.0,
                ..WorkerReport::default()
            }),
            ..WorkerStatus::default()
        };
        let workers = vec![worker("b", 0, 7), worker("a/0", 1, 8), worker("a/1", 2, 9)];
        let found = Progress::of(&StatusReply { workers, ..StatusReply::default() }, None);
        assert_eq!((found.job.workers, found.job.samples_per_second), (3, Millis(30_000)));
        assert_eq!(found.pods.keys().collect::<Vec<_>>(), ["a", "b"]);
        let pod = &found.pods["a"];
        assert_eq!((pod.rank, pod.model_version, &*pod.tasks), (1, 2, &[8, 9][..]));
        assert_eq!(pod.samples_per_second, Millis(20_000));
    }
}
