//! The calls of a master. Owns: what each means as entries, and how long each waits. Does not know
//! about: what an entry changes.

use std::collections::BTreeMap;
use std::time::Duration;

use elastic::{Effect, Input, Job, Shard, TaskId, WorkerId};
use elastic_proto::v1::master_server::Master;
use elastic_proto::v1::{self, tell_request};
use tokio::sync::oneshot;
use tonic::{Request, Response, Status};
use units::Instant;

use crate::desk::{Desk, Handle, LEAVE_MS, refused};
use crate::entry::{Entry, Parting, Reason, Report};
use crate::outside::Want;

/// The longest wait of a call.
const WAIT_MAX_MS: u64 = 30_000;

pub(crate) struct Service(pub Handle);

type Reply<T> = Result<Response<T>, Status>;

async fn waited<T>(receiver: oneshot::Receiver<T>, wait_ms: u64) -> Option<T> {
    let wait = Duration::from_millis(wait_ms.min(WAIT_MAX_MS));
    tokio::time::timeout(wait, receiver).await.ok()?.ok()
}

fn shards(shards: Vec<v1::Shard>) -> Vec<Shard> {
    let shard = |v1::Shard { name, start, count }| Shard { name, start, count };
    shards.into_iter().map(shard).collect()
}

fn reason(reason: v1::LeaveReason) -> Reason {
    match reason {
        v1::LeaveReason::Done => Reason::Done,
        v1::LeaveReason::Preempted => Reason::Preempted,
        v1::LeaveReason::CodeError => Reason::CodeError,
        v1::LeaveReason::Unspecified => Reason::Lost,
    }
}

/// True if a worker has the task that it reports about. If not, the worker made no mistake: the
/// task was taken back, or the report arrives again.
fn held(desk: &Desk, worker: u32, task: u64) -> bool {
    let job = desk.state.job.as_ref();
    job.is_some_and(|job| job.held_by(WorkerId(worker)).any(|held| held.id.0 == task))
}

fn count(desk: &mut Desk, counters: BTreeMap<String, u64>) -> Result<(), Status> {
    if !counters.is_empty() {
        desk.put(Entry::Counted(counters))?;
    }
    Ok(())
}

fn register(desk: &mut Desk, register: v1::RegisterRequest) -> Result<v1::RegisterReply, Status> {
    let v1::RegisterRequest { pod, instance, host } = register;
    if pod.is_empty() {
        return Err(Status::invalid_argument("pod is empty; give the name of the pod"));
    }
    let present = desk.state.of_pod(&pod);
    let same = |worker: &u32| {
        desk.state.workers.get(worker).is_some_and(|worker| worker.instance == instance)
    };
    let is_ready = is_reachable(&host);
    let worker_id = if let Some(worker) = present.filter(same) {
        worker
    } else {
        if let Some(worker) = present {
            gone(desk, worker, Reason::Lost, "another process of its pod registered")?;
        }
        restore_lost_world(desk)?;
        let next = desk.state.numbered;
        desk.put(Entry::Registered { pod, instance, host: host.clone() })?;
        next
    };
    let known = desk.state.workers.get(&worker_id);
    if is_ready && known.is_some_and(|known| !known.is_ready || known.host != host) {
        desk.put(Entry::Ready { worker: worker_id, host })?;
    }
    desk.heard(worker_id)?;
    Ok(v1::RegisterReply {
        worker_id,
        settings: Some(desk.state.config.for_workers(&desk.state.job_id)),
        model_generation: desk.state.generation,
        parameter_servers: desk.servers(),
        needs_data: desk.state.job.is_none(),
    })
}

/// True if others can connect to a worker: it has said a port as well.
fn is_reachable(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(name, port)| {
        let is_name = !name.contains(':') || name.ends_with(']');
        is_name && !name.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

/// The model of a world that has lost all its workers before the last checkpoint was made. While a
/// job goes on, its next worker finds that out by itself; one that has no work left would not.
fn restore_lost_world(desk: &mut Desk) -> Result<(), Status> {
    let state = &desk.state;
    let is_lost = state.config.world.is_some() && state.workers.is_empty();
    if is_lost && state.is_over() && !state.has_ended() {
        let message = "all workers are gone, and the last checkpoint is missing".to_owned();
        desk.put(Entry::Restore { unreadable: None, message })?;
    }
    Ok(())
}

fn gone(desk: &mut Desk, worker: u32, reason: Reason, message: &str) -> Result<(), Status> {
    desk.put(Entry::Gone { worker, reason, message: message.to_owned() })?;
    desk.forget(worker);
    Ok(())
}

fn report_task(desk: &mut Desk, report: v1::ReportTaskRequest) -> Result<bool, Status> {
    let outcome = report.outcome();
    let v1::ReportTaskRequest { worker_id, task_id, finished_records, message, .. } = report;
    desk.heard(worker_id)?;
    if !held(desk, worker_id, task_id) {
        return Ok(false);
    }
    let (worker, task) = (WorkerId(worker_id), TaskId(task_id));
    for bad in report.bad_records {
        let v1::BadRecord { position, message } = bad;
        desk.put(Entry::Job(Input::BadRecord(worker, task, position, message)))?;
    }
    // The gradients of these records are in the model: they are not given out again.
    if outcome == v1::TaskOutcome::Failed && finished_records > 0 {
        desk.put(Entry::Job(Input::Advanced(worker, task, finished_records)))?;
    }
    let input = match outcome {
        v1::TaskOutcome::Progress => Input::Advanced(worker, task, finished_records),
        v1::TaskOutcome::Finished => Input::Finished(worker, task),
        v1::TaskOutcome::Failed => Input::Failed(worker, task, message),
        v1::TaskOutcome::Unspecified => {
            return Err(Status::invalid_argument("outcome is missing"));
        }
    };
    desk.put(Entry::Job(input))?;
    count(desk, report.exec_counters)?;
    Ok(true)
}

fn report_evaluation(
    desk: &mut Desk,
    report: v1::ReportEvaluationRequest,
) -> Result<v1::ReportEvaluationReply, Status> {
    let v1::ReportEvaluationRequest { worker_id, task_id, records, metrics, exec_counters, .. } =
        report;
    desk.heard(worker_id)?;
    if !held(desk, worker_id, task_id) {
        return Ok(v1::ReportEvaluationReply::default());
    }
    let report = Report { records, metrics };
    let measured = Input::Measured(WorkerId(worker_id), TaskId(task_id), report);
    let effects = desk.put(Entry::Job(measured))?;
    count(desk, exec_counters)?;
    let whole = effects.iter().any(|effect| matches!(effect, Effect::Evaluated(_)));
    let evaluation = desk.state.evaluations.last().filter(|_| whole).cloned();
    Ok(v1::ReportEvaluationReply { held: true, evaluation })
}

/// A parameter server is there; one that was and has another memory now has lost its model.
fn attend(desk: &mut Desk, attend: &v1::AttendRequest) -> Result<(), Status> {
    let v1::AttendRequest { index, instance, .. } = *attend;
    let servers = desk.state.config.parameter_servers;
    if index >= servers {
        let text = format!("index {index}: the job has {servers} parameter servers, from 0");
        return Err(Status::invalid_argument(text));
    }
    let known = desk.state.servers.get(&index);
    let is_new = known.is_none_or(|known| known.instance != instance);
    let is_lost = known.is_some() && is_new && !desk.state.servers_done;
    let is_elsewhere = known.is_some_and(|known| known.address != attend.address);
    let unreadable = attend.unreadable_version.filter(|version| *version == desk.state.restored);
    // The restore comes before the server is recorded: a journal that is cut between the two
    // restores twice.
    if is_lost || unreadable.is_some() {
        desk.put(Entry::Restore { unreadable, message: attend.message.clone() })?;
    }
    if is_new || is_elsewhere {
        let address = attend.address.clone();
        desk.put(Entry::Server { index, instance, address })?;
    }
    desk.rows.insert(index, attend.rows);
    if index == 0 {
        desk.saved = attend.saved;
        desk.gradients = (attend.accepted, attend.rejected);
        desk.applied_records = attend.applied_records;
    }
    let generation = desk.state.generation;
    let is_leader = index == 0 && attend.model_generation == generation;
    if is_leader && attend.done && !desk.state.servers_done && desk.state.is_over() {
        desk.put(Entry::ServersDone)?;
    }
    if is_leader {
        desk.state.version = desk.state.version.max(attend.model_version);
        settle(desk, attend)?;
    }
    Ok(())
}

/// Gives out again what the leader has not accepted of workers that are gone. A leader of an earlier
/// version never says how much that is: then what they reported counts.
fn settle(desk: &mut Desk, attend: &v1::AttendRequest) -> Result<(), Status> {
    let unsettled = desk.state.job.as_ref().map(Job::unsettled).unwrap_or_default();
    for worker in unsettled {
        let left = attend.left.iter().find(|left| left.worker_id == worker.0);
        if left.is_none() && attend.settles {
            continue;
        }
        let positions = left.map(|left| left.positions.clone()).unwrap_or_default();
        desk.put(Entry::Job(Input::Settled(worker, by_task(positions))))?;
    }
    Ok(())
}

fn by_task(positions: Vec<v1::Position>) -> BTreeMap<TaskId, u64> {
    let position = |position: v1::Position| (TaskId(position.task_id), position.finished_records);
    positions.into_iter().map(position).collect()
}

/// Two workers of a world do not reach each other, and both reach the master: only the master can
/// end that. A slow worker handles its handshakes in a thread of its own, and a worker that is gone
/// is silent before.
fn part(desk: &mut Desk, worker: u32, unreached: v1::Unreached) -> Result<(), Status> {
    let v1::Unreached { generation, worker_id: other, for_ms } = unreached;
    let world = desk.state.world.as_ref().filter(|world| world.generation == generation);
    let place = |id| world?.members.iter().position(|member| member.0 == id);
    let (Some(own), Some(theirs)) = (place(worker), place(other)) else { return Ok(()) };
    let younger = if own > theirs { worker } else { other };
    let leaves = desk.state.known(younger).map_err(refused)?.leaves_at.is_some();
    if leaves || for_ms < desk.state.config.worker_timeout_ms / 2 * 3 {
        return Ok(());
    }
    let pod = |id: u32| desk.state.pods(&[WorkerId(id)]).concat();
    let (pod, unreached, leaves) = (pod(worker), pod(other), pod(younger));
    let parting = Parting { pod, unreached, leaves, for_ms };
    let Parting { pod, unreached, leaves, .. } = parting.clone();
    let deadline = desk.now().plus_ms(LEAVE_MS);
    desk.put(Entry::Parted { worker: younger, deadline, parting })?;
    desk.want(Want::Part { pod, unreached, leaves, for_ms });
    Ok(())
}

fn is_present(desk: &Desk, generation: u64) -> Result<(), Status> {
    let present = desk.state.generation;
    let text = format!("model generation {generation} is over; the present one is {present}");
    if generation == present { Ok(()) } else { Err(Status::failed_precondition(text)) }
}

fn apply_event(desk: &mut Desk, event: tell_request::Event) -> Result<(), Status> {
    match event {
        tell_request::Event::PodGone(gone_pod) => {
            let reason = reason(gone_pod.reason());
            if let Some(worker) = desk.state.of_pod(&gone_pod.pod) {
                gone(desk, worker, reason, &gone_pod.message)?;
            }
        }
        tell_request::Event::PodLeaves(v1::PodLeaves { pod, within_ms }) => {
            let deadline = Instant(desk.now().0.saturating_add(within_ms));
            // Before the data are known no worker has anything to hand back.
            if let Some(worker) = desk.state.of_pod(&pod)
                && desk.state.job.is_some()
            {
                desk.put(Entry::Job(Input::Leaving(WorkerId(worker), deadline)))?;
            }
        }
    }
    Ok(())
}

#[tonic::async_trait]
impl Master for Service {
    async fn register(&self, request: Request<v1::RegisterRequest>) -> Reply<v1::RegisterReply> {
        let request = request.into_inner();
        self.0.call(move |desk| register(desk, request)).await.map(Response::new)
    }

    async fn report_data(
        &self,
        request: Request<v1::ReportDataRequest>,
    ) -> Reply<v1::ReportDataReply> {
        let v1::ReportDataRequest { worker_id, shards: all, validation_shards } =
            request.into_inner();
        let report = move |desk: &mut Desk| {
            desk.heard(worker_id)?;
            if desk.state.job.is_none() {
                let (shards, validation) = (shards(all), shards(validation_shards));
                let settles = desk.state.config.settles();
                desk.put(Entry::Data { shards, validation, settles })?;
            }
            Ok(v1::ReportDataReply {})
        };
        self.0.call(report).await.map(Response::new)
    }

    async fn get_task(&self, request: Request<v1::GetTaskRequest>) -> Reply<v1::GetTaskReply> {
        let v1::GetTaskRequest { worker_id, holding, wait_ms } = request.into_inner();
        let (sender, receiver) = oneshot::channel();
        self.0.call(move |desk| desk.get_task(worker_id, &holding, sender)).await?;
        let wait = v1::GetTaskReply { kind: v1::TaskKind::Wait.into(), task: None };
        Ok(Response::new(waited(receiver, wait_ms).await.unwrap_or(wait)))
    }

    async fn report_task(
        &self,
        request: Request<v1::ReportTaskRequest>,
    ) -> Reply<v1::ReportTaskReply> {
        let request = request.into_inner();
        let held = self.0.call(move |desk| report_task(desk, request)).await?;
        Ok(Response::new(v1::ReportTaskReply { held }))
    }

    async fn hand_back(&self, request: Request<v1::HandBackRequest>) -> Reply<v1::HandBackReply> {
        let v1::HandBackRequest { worker_id, task_id, finished_records } = request.into_inner();
        let hand_back = move |desk: &mut Desk| {
            desk.heard(worker_id)?;
            if !held(desk, worker_id, task_id) {
                return Ok(v1::HandBackReply { held: false });
            }
            let (worker, task) = (WorkerId(worker_id), TaskId(task_id));
            desk.put(Entry::Job(Input::HandedBack(worker, task, finished_records)))?;
            desk.stop_asking(worker_id);
            Ok(v1::HandBackReply { held: true })
        };
        self.0.call(hand_back).await.map(Response::new)
    }

    async fn report_evaluation(
        &self,
        request: Request<v1::ReportEvaluationRequest>,
    ) -> Reply<v1::ReportEvaluationReply> {
        let request = request.into_inner();
        self.0.call(move |desk| report_evaluation(desk, request)).await.map(Response::new)
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Reply<v1::WatchReply> {
        let v1::WatchRequest { worker_id, revision, wait_ms, report, unreached } =
            request.into_inner();
        let (sender, receiver) = oneshot::channel();
        let watch = move |desk: &mut Desk| {
            desk.heard(worker_id)?;
            if let Some(report) = report {
                desk.reports.insert(worker_id, report);
            }
            if let Some(unreached) = unreached {
                part(desk, worker_id, unreached)?;
            }
            desk.watch(worker_id, revision, sender);
            Ok(())
        };
        self.0.call(watch).await?;
        if let Some(reply) = waited(receiver, wait_ms).await {
            return Ok(Response::new(reply));
        }
        self.0.call(move |desk| Ok(desk.watch_reply(worker_id))).await.map(Response::new)
    }

    async fn leave(&self, request: Request<v1::LeaveRequest>) -> Reply<v1::LeaveReply> {
        let request = request.into_inner();
        let leave = move |desk: &mut Desk| {
            // Again changes nothing.
            if desk.state.workers.contains_key(&request.worker_id) {
                let reason = reason(request.reason());
                gone(desk, request.worker_id, reason, &request.message)?;
            }
            Ok(v1::LeaveReply {})
        };
        self.0.call(leave).await.map(Response::new)
    }

    async fn attend(&self, request: Request<v1::AttendRequest>) -> Reply<v1::AttendReply> {
        let request = request.into_inner();
        let (index, revision, wait_ms) = (request.index, request.revision, request.wait_ms);
        let (sender, receiver) = oneshot::channel();
        let work = move |desk: &mut Desk| {
            attend(desk, &request)?;
            desk.attend(index, revision, sender);
            Ok(())
        };
        self.0.call(work).await?;
        if let Some(reply) = waited(receiver, wait_ms).await {
            return Ok(Response::new(reply));
        }
        self.0.call(move |desk| Ok(desk.attend_reply(index))).await.map(Response::new)
    }

    async fn report_version(
        &self,
        request: Request<v1::ReportVersionRequest>,
    ) -> Reply<v1::ReportVersionReply> {
        let v1::ReportVersionRequest { model_generation, model_version } = request.into_inner();
        let report = move |desk: &mut Desk| {
            is_present(desk, model_generation)?;
            desk.put(Entry::Job(Input::Version(model_version)))?;
            Ok(v1::ReportVersionReply {})
        };
        self.0.call(report).await.map(Response::new)
    }

    async fn begin_checkpoint(
        &self,
        request: Request<v1::BeginCheckpointRequest>,
    ) -> Reply<v1::BeginCheckpointReply> {
        let v1::BeginCheckpointRequest { model_generation, model_version: version, positions } =
            request.into_inner();
        let begin = move |desk: &mut Desk| {
            is_present(desk, model_generation)?;
            let positions = by_task(positions);
            desk.put(Entry::Job(Input::Held { version, positions }))?;
            Ok(v1::BeginCheckpointReply {})
        };
        self.0.call(begin).await.map(Response::new)
    }

    async fn end_checkpoint(
        &self,
        request: Request<v1::EndCheckpointRequest>,
    ) -> Reply<v1::EndCheckpointReply> {
        let v1::EndCheckpointRequest { model_generation, model_version, oldest_version } =
            request.into_inner();
        let end = move |desk: &mut Desk| {
            is_present(desk, model_generation)?;
            let (version, oldest) = (model_version, oldest_version);
            // A repeated call is about one that is known.
            if !desk.state.checkpoints.contains(&version) {
                desk.put(Entry::Job(Input::Checkpointed { version, oldest }))?;
            }
            Ok(v1::EndCheckpointReply {})
        };
        self.0.call(end).await.map(Response::new)
    }

    async fn tell(&self, request: Request<v1::TellRequest>) -> Reply<v1::TellReply> {
        let event = request.into_inner().event;
        let event = event.ok_or_else(|| Status::invalid_argument("event is missing"))?;
        let work = move |desk: &mut Desk| apply_event(desk, event).map(|()| v1::TellReply {});
        self.0.call(work).await.map(Response::new)
    }

    async fn status(&self, _: Request<v1::StatusRequest>) -> Reply<v1::StatusReply> {
        self.0.call(|desk| Ok(desk.status())).await.map(Response::new)
    }
}
