//! A worker that trains a model on which everything can be read off: `seen` has an element for each
//! record, and a step adds 1 for each record in it, so it counts what the model was trained on;
//! `line` learns y = 2 x + 1 beside it. The embedding table `marks` has a row for each record, to
//! which a step adds 1 and 2 as well.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::time::Duration;

use elastic_proto::v1::master_client::MasterClient;
use elastic_proto::v1::optimizer::Rule;
use elastic_proto::v1::parameter_server_client::ParameterServerClient;
use elastic_proto::v1::row_initializer::Distribution;
use elastic_proto::v1::{
    EmbeddingTable, GetTaskRequest, HandBackRequest, InitModelRequest, LeaveReason, LeaveRequest,
    Metric, Optimizer, Position, PullOutcome, PullReply, PullRequest, PullRowsRequest,
    PushGradientsRequest, PushOutcome, RegisterRequest, ReportEvaluationRequest, ReportTaskRequest,
    RowInitializer, Rows, Sgd, Task, TaskKind, TaskOutcome, Variable, WatchRequest,
};
use elastic_proto::{Credentials, Sign, floats, server_of, tensor};
use tokio::sync::watch;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use crate::cluster::client;

pub(crate) type Signed = InterceptedService<Channel, Sign>;
pub(crate) type Master = MasterClient<Signed>;
pub(crate) type Server = ParameterServerClient<Signed>;

const WAIT_MS: u64 = 2_000;
pub(crate) const SEEN: &str = "seen";
pub(crate) const LINE: &str = "line";
pub(crate) const MARKS: &str = "marks";

/// The row of a record: ids are any numbers.
pub(crate) fn mark(record: u64) -> u64 {
    record.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Rows with these ids, and the numbers of a row for each.
fn rows(mut ids: Vec<u64>, values: [f32; 2]) -> Rows {
    ids.sort_unstable();
    Rows {
        table: MARKS.into(),
        dim: 2,
        values: ids.iter().flat_map(|_| values).flat_map(f32::to_le_bytes).collect(),
        ids: ids.iter().flat_map(|id| id.to_le_bytes()).collect(),
    }
}

pub(crate) fn channel(address: &str, credentials: &Credentials) -> Channel {
    credentials.endpoint(address).expect("an address").connect_lazy()
}

/// Repeats a call until it is answered or refused for good.
pub(crate) async fn until<T, F>(call: impl Fn() -> F) -> Result<T, Status>
where
    F: Future<Output = Result<Response<T>, Status>>,
{
    loop {
        match call().await {
            Ok(reply) => return Ok(reply.into_inner()),
            Err(status) if is_final(status.code()) => return Err(status),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::FailedPrecondition
            | Code::InvalidArgument
            | Code::Unauthenticated
            | Code::ResourceExhausted
            | Code::OutOfRange
    )
}

/// Signal of a test to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Go,
    /// Continue after the pause.
    On,
    /// Hand back all tasks, and leave.
    Leave,
}

/// End of its work.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    Left,
}

/// Behaviour of a worker.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Habits {
    /// Sends each push twice.
    pub pushes_twice: bool,
    /// Its code fails on every task.
    pub fails: bool,
    /// Duration of a step.
    pub step_ms: u64,
    /// Delay of each push to the leader after the other servers.
    pub leader_after_ms: u64,
    /// Pushes after which it waits for a signal; 0 for never.
    pub pauses_after: u64,
    /// Computes the gradients of its first step until a signal.
    pub computes_long: bool,
    /// Pushes after which it vanishes without leaving; 0 for never.
    pub vanishes_after: u64,
}

pub(crate) struct Worker {
    pub(crate) id: u32,
    pub(crate) master: Master,
    credentials: Credentials,
    servers: Vec<(String, Server)>,
    sequence: u64,
    records: u64,
    signal: watch::Receiver<Signal>,
    habits: Habits,
    /// Gradients that were computed and not used.
    pub(crate) rejected: u64,
}

/// The task is not its any more.
struct Dropped;

impl Worker {
    pub(crate) async fn register(
        (address, credentials): (&str, Credentials),
        pod: &str,
        (records, habits): (u64, Habits),
        signal: watch::Receiver<Signal>,
    ) -> Self {
        let master = client(address, &credentials);
        let request = RegisterRequest { pod: pod.into(), instance: 1, host: "127.0.0.1:9".into() };
        let registered = until(|| {
            let (mut master, request) = (master.clone(), request.clone());
            async move { master.register(request).await }
        })
        .await
        .expect("registered");
        let id = registered.worker_id;
        let (servers, sequence, rejected) = (Vec::new(), 0, 0);
        Self { id, master, credentials, servers, sequence, records, signal, habits, rejected }
    }

    /// Works until there is nothing more, or it is to leave.
    pub(crate) async fn work(&mut self) -> Ended {
        while !self.vanishes() {
            self.pause().await;
            if *self.signal.borrow() == Signal::Leave {
                self.leave(LeaveReason::Preempted, "").await;
                return Ended::Left;
            }
            let request = GetTaskRequest { worker_id: self.id, holding: Vec::new(), wait_ms: 200 };
            let reply = until(|| {
                let (mut master, request) = (self.master.clone(), request.clone());
                async move { master.get_task(request).await }
            });
            let Ok(reply) = reply.await else { return Ended::Left };
            match (reply.kind(), reply.task) {
                (TaskKind::Done, _) => {
                    self.leave(LeaveReason::Done, "").await;
                    return Ended::Done;
                }
                (TaskKind::Train, Some(task)) => self.train(&task).await,
                (TaskKind::Evaluate, Some(task)) => self.evaluate(&task).await,
                (_, Some(task)) => self.save(&task).await,
                _ => {}
            }
        }
        Ended::Left
    }

    async fn pause(&mut self) {
        if self.habits.pauses_after > 0 && self.sequence == self.habits.pauses_after {
            // Without a test that could give a signal the worker continues.
            let _gone = self.signal.wait_for(|signal| *signal != Signal::Go).await;
        }
    }

    fn vanishes(&self) -> bool {
        self.habits.vanishes_after > 0 && self.sequence == self.habits.vanishes_after
    }

    pub(crate) async fn leave(&self, reason: LeaveReason, message: &str) {
        let request =
            LeaveRequest { worker_id: self.id, reason: reason.into(), message: message.into() };
        let left = until(|| {
            let (mut master, request) = (self.master.clone(), request.clone());
            async move { master.leave(request).await }
        });
        left.await.expect("left");
    }

    async fn report(&self, task: u64, outcome: TaskOutcome, message: &str) {
        let request = ReportTaskRequest {
            worker_id: self.id,
            task_id: task,
            outcome: outcome.into(),
            message: message.into(),
            ..Default::default()
        };
        // A worker that was given up does not report.
        let _ = until(|| {
            let (mut master, request) = (self.master.clone(), request.clone());
            async move { master.report_task(request).await }
        })
        .await;
    }

    async fn train(&mut self, task: &Task) {
        if self.habits.fails {
            self.report(task.task_id, TaskOutcome::Failed, "Traceback: no loss").await;
            return;
        }
        let mut start = task.start;
        while start < task.end {
            self.pause().await;
            if *self.signal.borrow() == Signal::Leave {
                let request = HandBackRequest {
                    worker_id: self.id,
                    task_id: task.task_id,
                    finished_records: start - task.start,
                };
                let handed_back = until(|| {
                    let mut master = self.master.clone();
                    async move { master.hand_back(request).await }
                });
                handed_back.await.expect("handed back");
                return;
            }
            let end = task.end.min(start + 5);
            if self.step(task, start..end).await.is_err() || self.vanishes() {
                return;
            }
            start = end;
        }
        self.report(task.task_id, TaskOutcome::Finished, "").await;
    }

    /// One minibatch: pull, compute, push.
    async fn step(&mut self, task: &Task, records: Range<u64>) -> Result<(), Dropped> {
        self.sequence += 1;
        loop {
            let (version, variables) = self.pull(task.model_generation, true).await?;
            tokio::time::sleep(Duration::from_millis(self.habits.step_ms)).await;
            if self.habits.computes_long && self.sequence == 1 {
                let _gone = self.signal.wait_for(|signal| *signal != Signal::Go).await;
            }
            let gradients = self.gradients(&variables, &records);
            let ids: Vec<u64> = records.clone().map(mark).collect();
            self.pull_rows(task.model_generation, &ids).await?;
            let positions = vec![Position {
                task_id: task.task_id,
                finished_records: records.end - task.start,
            }];
            let push = PushGradientsRequest {
                worker_id: self.id,
                model_generation: task.model_generation,
                sequence: self.sequence,
                version,
                gradients,
                positions,
                records: records.end - records.start,
                ..Default::default()
            };
            let times = 1 + usize::from(self.habits.pushes_twice);
            let mut accepted = false;
            for _ in 0..times {
                accepted = self.push(&push, &ids).await?;
            }
            if accepted {
                return Ok(());
            }
            self.rejected += 1;
        }
    }

    fn gradients(
        &self,
        variables: &BTreeMap<String, Vec<f32>>,
        records: &Range<u64>,
    ) -> Vec<Variable> {
        let mut seen = vec![0.0; variables[SEEN].len()];
        let (slope, offset) = (variables[LINE][0], variables[LINE][1]);
        let (mut of_slope, mut of_offset) = (0.0, 0.0);
        for record in records.clone() {
            // The rate of the optimizer is 1 in a hundred.
            seen[usize::try_from(record).expect("small")] = -100.0;
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let x = (record % 7) as f32 / 7.0;
            let error = slope * x + offset - (2.0 * x + 1.0);
            of_slope += error * x;
            of_offset += error;
        }
        let length = seen.len() as u64;
        vec![
            Variable { name: SEEN.into(), value: Some(tensor(&[length], &seen)) },
            Variable { name: LINE.into(), value: Some(tensor(&[2], &[of_slope, of_offset])) },
        ]
    }

    /// The addresses of the servers, once all are there.
    async fn refresh(&mut self) {
        let request = WatchRequest { worker_id: self.id, ..Default::default() };
        let reply = until(|| {
            let mut master = self.master.clone();
            async move { master.watch(request).await }
        });
        let Ok(reply) = reply.await else { return };
        if !reply.parameter_servers.iter().eq(self.servers.iter().map(|(address, _)| address)) {
            let server = |address: &String| {
                let sign = self.credentials.sign();
                let channel = channel(address, &self.credentials);
                let server = ParameterServerClient::with_interceptor(channel, sign);
                (address.clone(), server)
            };
            self.servers = reply.parameter_servers.iter().map(server).collect();
        }
    }

    /// Calls a server until it answers; it may be another process meanwhile.
    async fn call<T, F>(&mut self, index: usize, call: impl Fn(Server) -> F) -> Result<T, Dropped>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        loop {
            if let Some((_, server)) = self.servers.get(index) {
                match call(server.clone()).await {
                    Ok(reply) => return Ok(reply.into_inner()),
                    Err(status) if is_final(status.code()) => return Err(Dropped),
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
            self.refresh().await;
        }
    }

    async fn pull(
        &mut self,
        model_generation: u64,
        for_training: bool,
    ) -> Result<(u64, BTreeMap<String, Vec<f32>>), Dropped> {
        let mut request = PullRequest {
            worker_id: self.id,
            model_generation,
            wait_ms: WAIT_MS,
            for_training,
            flush: !for_training,
            ..Default::default()
        };
        let first: PullReply = loop {
            let reply =
                self.call(0, |mut server| async move { server.pull(request).await }).await?;
            match reply.outcome() {
                PullOutcome::Ready => break reply,
                PullOutcome::Uninitialized => self.init(reply.model_generation).await?,
                _ => {}
            }
        };
        let version = first.version;
        (request.version, request.exact) = (version, true);
        let mut all = vec![first];
        for index in 1..self.servers.len() {
            let reply =
                self.call(index, |mut server| async move { server.pull(request).await }).await?;
            if reply.outcome() == PullOutcome::Moved {
                return Box::pin(self.pull(model_generation, for_training)).await;
            }
            all.push(reply);
        }
        let all = all.into_iter().flat_map(|reply| reply.trainable);
        let values = |variable: Variable| {
            let values = variable.floats().expect("floats").0;
            (variable.name, values)
        };
        Ok((version, all.map(values).collect()))
    }

    async fn init(&mut self, model_generation: u64) -> Result<(), Dropped> {
        let servers = u32::try_from(self.servers.len()).expect("few");
        let model = [(SEEN, self.records), (LINE, 2)];
        for index in (0..servers).rev() {
            let own = model.iter().filter(|(name, _)| server_of(name, servers) == index);
            let variable = |(name, length): &(&str, u64)| Variable {
                name: (*name).into(),
                value: Some(tensor(
                    &[*length],
                    &vec![0.0; usize::try_from(*length).expect("small")],
                )),
            };
            let sgd = Sgd { momentum: 0.0, nesterov: false };
            let init = InitModelRequest {
                worker_id: self.id,
                model_generation,
                trainable: own.map(variable).collect(),
                state: Vec::new(),
                tables: vec![EmbeddingTable {
                    name: MARKS.into(),
                    dim: 2,
                    initializer: Some(RowInitializer {
                        seed: 0,
                        distribution: Some(Distribution::Constant(0.0)),
                    }),
                }],
                optimizer: Some(Optimizer { learning_rate: 0.01, rule: Some(Rule::Sgd(sgd)) }),
            };
            let call = |mut server: Server| {
                let init = init.clone();
                async move { server.init_model(init).await }
            };
            self.call(index as usize, call).await?;
        }
        Ok(())
    }

    /// Rows of an embedding table that a minibatch needs: whole numbers, as only whole steps count.
    async fn pull_rows(&mut self, model_generation: u64, ids: &[u64]) -> Result<(), Dropped> {
        let servers = self.servers.len();
        for index in 0..servers {
            let own = ids.iter().filter(|id| *id % servers as u64 == index as u64);
            let pull = PullRowsRequest {
                worker_id: self.id,
                model_generation,
                table: MARKS.into(),
                ids: own.clone().flat_map(|id| id.to_le_bytes()).collect(),
                ..Default::default()
            };
            let call = |mut server: Server| {
                let pull = pull.clone();
                async move { server.pull_rows(pull).await }
            };
            let rows = self.call(index, call).await?.rows.expect("rows");
            let values = floats(&rows.values);
            assert_eq!(values.len(), 2 * own.count());
            assert!(values.chunks(2).all(|row| (row[1] - 2.0 * row[0]).abs() < 0.01), "{values:?}");
        }
        Ok(())
    }

    /// `true` if the push counts.
    async fn push(&mut self, push: &PushGradientsRequest, ids: &[u64]) -> Result<bool, Dropped> {
        let servers = u32::try_from(self.servers.len()).expect("few");
        for index in (0..servers).rev() {
            let is_here = |variable: &&Variable| server_of(&variable.name, servers) == index;
            let gradients = push.gradients.iter().filter(is_here).cloned().collect();
            let own = ids.iter().copied().filter(|id| id % u64::from(servers) == u64::from(index));
            // The rate of the optimizer is 1 in a hundred.
            let rows = vec![rows(own.collect(), [-100.0, -200.0])];
            let part = PushGradientsRequest { gradients, rows, ..push.clone() };
            if index == 0 {
                tokio::time::sleep(Duration::from_millis(self.habits.leader_after_ms)).await;
            }
            let call = |mut server: Server| {
                let part = part.clone();
                async move { server.push_gradients(part).await }
            };
            let reply = self.call(index as usize, call).await?;
            if index == 0 {
                return Ok(reply.outcome() == PushOutcome::Accepted);
            }
        }
        Ok(false)
    }

    async fn evaluate(&mut self, task: &Task) {
        let Ok((model_version, variables)) = self.pull(0, false).await else { return };
        let records = task.end - task.start;
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let weight = records as f64;
        let error = f64::from((variables[LINE][0] - 2.0).abs());
        let metric =
            Metric { name: "error".into(), total: error * weight, weight, state: vec![weight] };
        let request = ReportEvaluationRequest {
            worker_id: self.id,
            task_id: task.task_id,
            model_version,
            records,
            metrics: vec![metric],
            ..Default::default()
        };
        let _ = until(|| {
            let (mut master, request) = (self.master.clone(), request.clone());
            async move { master.report_evaluation(request).await }
        })
        .await;
    }

    async fn save(&mut self, task: &Task) {
        if self.pull(task.model_generation, false).await.is_ok() {
            self.report(task.task_id, TaskOutcome::Finished, "").await;
        }
    }
}
