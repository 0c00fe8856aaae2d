//! The state of a server: the model of one generation, what was pushed and is not in it yet, who
//! may push. Owns: what each message changes here. Does not know about: other servers, the master,
//! waiting.

use std::collections::{BTreeMap, BTreeSet};

use elastic::{Gate, Mode, WorkerId};
use elastic_proto::v1::{
    AttendReply, LeftWorker, Position, PullOutcome, PullReply, PullRequest, PullRowsReply,
    PullRowsRequest, PushId, Rows, ServerSettings, UpdateMode,
};
use prost::bytes::Bytes;
use tonic::Status;

use crate::model::{Gradients, Model};

/// Tasks of a worker whose position is kept: it may hold two, and reports each soon after its end.
const POSITIONS_MAX: usize = 16;

/// Message of a worker that the leader has not decided about.
#[derive(Debug)]
pub(crate) enum Staged {
    Init(Model),
    Push(Gradients),
}

/// Error of a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("this server waits for its orders from the master; repeat the call")]
    Closed,
    #[error(
        "model generation {sent} is not the present one, {present}: drop the task, ask the master \
         for another, and pull again"
    )]
    Generation { sent: u64, present: u64 },
    #[error("worker {0} was given up by the master: its work went to others; register again")]
    Gone(u32),
    #[error("there is no model yet: call InitModel first")]
    NoModel,
    #[error("push {sequence} of worker {worker} was not sent to this server before the leader")]
    NotStaged { worker: u32, sequence: u64 },
    #[error("version {version} does not follow version {present} of this server")]
    Order { version: u64, present: u64 },
}

fn position((task_id, finished_records): (&u64, &u64)) -> Position {
    Position { task_id: *task_id, finished_records: *finished_records }
}

pub(crate) struct Core {
    /// The model generation that is served; 0 for none.
    pub generation: u64,
    pub version: u64,
    pub model: Option<Model>,
    pub gate: Gate,
    pub settings: ServerSettings,
    /// The leader only: pushes that wait for others to make an update with.
    pub held: Vec<PushId>,
    /// The leader only: visited records of the newest tasks of each worker that may push, or about
    /// which the master asks.
    positions: BTreeMap<u32, BTreeMap<u64, u64>>,
    staged: BTreeMap<(u32, u64), Staged>,
    /// Workers that are gone, and about whose positions the master asks.
    unsettled: BTreeSet<u32>,
    workers: BTreeSet<u32>,
    workers_numbered: u32,
    /// The reply to a pull of this version, once a worker has pulled it.
    pulled: Option<PullReply>,
    /// The reply to a pull of the version before, of a server behind the leader in a synchronous
    /// mode: the leader may have answered a worker with it just before the update.
    before: Option<PullReply>,
    /// Versions whose rows workers read.
    kept: BTreeMap<u32, u64>,
}

impl Core {
    pub(crate) fn closed() -> Self {
        Self {
            generation: 0,
            version: 0,
            model: None,
            gate: Gate::new(Mode::Asynchronous { staleness_max: None }, 0),
            settings: ServerSettings::default(),
            held: Vec::new(),
            positions: BTreeMap::new(),
            staged: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            workers: BTreeSet::new(),
            workers_numbered: 0,
            pulled: None,
            before: None,
            kept: BTreeMap::new(),
        }
    }

    /// Serves a generation that starts with this model.
    pub(crate) fn open(
        &mut self,
        generation: u64,
        settings: ServerSettings,
        at: (u64, Option<Model>),
    ) {
        let (version, model) = at;
        let mode = match settings.mode() {
            UpdateMode::Asynchronous | UpdateMode::AsynchronousReject => Mode::Asynchronous {
                staleness_max: Some(settings.staleness_max).filter(|max| *max > 0),
            },
            UpdateMode::SynchronousReject => Mode::Synchronous {
                gradients: settings.grads_to_wait.max(1),
                tolerance: settings.sync_version_tolerance,
            },
            UpdateMode::Synchronous | UpdateMode::Unspecified => {
                Mode::Synchronous { gradients: settings.grads_to_wait.max(1), tolerance: 0 }
            }
        };
        let (workers, workers_numbered) =
            (std::mem::take(&mut self.workers), self.workers_numbered);
        let unsettled = std::mem::take(&mut self.unsettled);
        *self = Self {
            generation,
            version,
            model,
            gate: Gate::new(mode, version),
            settings,
            unsettled,
            workers,
            workers_numbered,
            ..Self::closed()
        };
    }

    /// Sets the present workers; the places of others become free. Staged messages of the others
    /// stay: the leader may hold them for an update, and orders their removal when it does not.
    pub(crate) fn know_workers(&mut self, orders: &AttendReply) {
        let before = std::mem::take(&mut self.workers);
        // A worker may have come and gone since the last orders.
        let new = self.workers_numbered..orders.workers_numbered;
        self.workers = orders.workers.iter().copied().collect();
        self.workers_numbered = orders.workers_numbered;
        self.unsettled = orders.unsettled_workers.iter().copied().collect();
        for gone in before.into_iter().chain(new).filter(|one| !self.workers.contains(one)) {
            self.gate.release(WorkerId(gone));
            self.kept.remove(&gone);
        }
        let (numbered, workers) = (self.workers_numbered, &self.workers);
        let unsettled = &self.unsettled;
        self.positions.retain(|worker, _| {
            *worker >= numbered || workers.contains(worker) || unsettled.contains(worker)
        });
    }

    /// The answer to the master about workers that are gone: `admit` refuses what they push, so
    /// their positions are final. It is repeated until the master asks no more.
    pub(crate) fn left(&self) -> Vec<LeftWorker> {
        let left = |worker: &u32| {
            let positions = self.positions.get(worker).into_iter().flatten().map(position);
            LeftWorker { worker_id: *worker, positions: positions.collect() }
        };
        self.unsettled.iter().map(left).collect()
    }

    /// Workers that may still push to the leader, and how many it has known.
    pub(crate) fn pushing(&self) -> (Vec<u32>, u32) {
        (self.workers.iter().copied().collect(), self.workers_numbered)
    }

    /// Drops staged messages of workers that may no longer push to the leader.
    pub(crate) fn drop_gone(&mut self, workers: &[u32], workers_numbered: u32) {
        self.staged
            .retain(|(worker, _), _| *worker >= workers_numbered || workers.contains(worker));
    }

    /// Checks that a worker may write now.
    pub(crate) fn admit(&self, worker: u32, generation: u64) -> Result<(), Refused> {
        if self.generation == 0 {
            return Err(Refused::Closed);
        }
        self.is_present(generation)?;
        self.is_here(worker)
    }

    fn is_here(&self, worker: u32) -> Result<(), Refused> {
        // A worker newer than the last orders is present.
        let gone = worker < self.workers_numbered && !self.workers.contains(&worker);
        if gone { Err(Refused::Gone(worker)) } else { Ok(()) }
    }

    pub(crate) fn is_present(&self, sent: u64) -> Result<(), Refused> {
        let present = self.generation;
        match (present, sent == present) {
            (_, true) => Ok(()),
            // A message that is ahead of the orders, or before them.
            (0, false) => Err(Refused::Closed),
            (_, false) => Err(Refused::Generation { sent, present }),
        }
    }

    pub(crate) fn model(&self) -> Result<&Model, Refused> {
        self.model.as_ref().ok_or(Refused::NoModel)
    }

    /// Keeps what a worker has sent until it is decided about.
    pub(crate) fn stage(&mut self, (worker, sequence): (u32, u64), staged: Staged) {
        self.staged.insert((worker, sequence), staged);
    }

    pub(crate) fn know_positions(&mut self, worker: u32, positions: &[Position]) {
        let of_worker = self.positions.entry(worker).or_default();
        for Position { task_id, finished_records } in positions {
            let finished = of_worker.entry(*task_id).or_default();
            *finished = (*finished).max(*finished_records);
        }
        while of_worker.len() > POSITIONS_MAX {
            of_worker.pop_first();
        }
    }

    pub(crate) fn positions(&self) -> Vec<Position> {
        self.positions.values().flatten().map(position).collect()
    }

    fn is_synchronous(&self) -> bool {
        matches!(
            self.settings.mode(),
            UpdateMode::Synchronous | UpdateMode::SynchronousReject | UpdateMode::Unspecified
        )
    }

    /// The oldest version whose rows stay readable after an update to this version.
    fn keeps_from(&self, version: u64) -> u64 {
        let one_before = version.saturating_sub(u64::from(self.is_synchronous()));
        self.kept.values().copied().fold(one_before, u64::min)
    }

    /// The worker pushes: it reads no rows of an earlier version any more.
    pub(crate) fn reads_no_more(&mut self, worker: u32) {
        self.kept.remove(&worker);
    }

    /// Makes the update, or the model, that the leader has decided about. Again changes nothing.
    pub(crate) fn apply(
        &mut self,
        version: u64,
        pushes: &[PushId],
        (rate, leads): (f32, bool),
    ) -> Result<(), Refused> {
        let present = self.version;
        let is_init = pushes.iter().any(|push| push.sequence == 0);
        if is_init && self.model.is_some() || !is_init && version == present {
            return Ok(());
        }
        if !is_init && version != present + 1 {
            return Err(Refused::Order { version, present });
        }
        let key = |push: &PushId| (push.worker_id, push.sequence);
        if let Some(push) = pushes.iter().find(|push| !self.staged.contains_key(&key(push))) {
            let (worker, sequence) = key(push);
            return Err(Refused::NotStaged { worker, sequence });
        }
        let mut gradients = Vec::new();
        for push in pushes {
            match self.staged.remove(&key(push)) {
                Some(Staged::Init(model)) => self.model = Some(model),
                Some(Staged::Push(push)) => gradients.push(push),
                None => {}
            }
            // A worker sends one after the other: what is older was rejected.
            let (worker, sequence) = key(push);
            self.staged.retain(|(of, number), _| *of != worker || *number > sequence);
        }
        self.before = None;
        if !gradients.is_empty() {
            self.before = (self.is_synchronous() && !leads).then(|| self.present()).flatten();
            let kept = (present, self.keeps_from(version));
            if let Some(model) = &mut self.model {
                model.update(&gradients, rate, kept);
            }
        }
        self.version = version;
        self.pulled = None;
        Ok(())
    }

    /// The reply to a pull of the present version.
    fn present(&mut self) -> Option<PullReply> {
        let model = self.model.as_ref()?;
        let (version, model_generation) = (self.version, self.generation);
        let reply = self.pulled.get_or_insert_with(|| {
            let (trainable, state) = model.variables();
            let outcome = PullOutcome::Ready.into();
            PullReply { outcome, version, model_generation, trainable, state }
        });
        Some(reply.clone())
    }

    /// Rows of a table, and `true` if more are stored. `room` is the limit of their size in bytes.
    pub(crate) fn rows(
        &self,
        pull: &PullRowsRequest,
        room: usize,
    ) -> Result<PullRowsReply, Status> {
        if self.generation == 0 {
            return Err(Refused::Closed.into());
        }
        self.is_present(pull.model_generation)?;
        let model = self.model()?;
        let table = model.table(&pull.table)?;
        let (name, dim) = (pull.table.clone(), table.info().dim);
        let version = self.version;
        let wanted = pull.version_plus_1.checked_sub(1).unwrap_or(version);
        let has = if pull.stored { wanted == version } else { table.has(wanted, version) };
        if !has && self.is_synchronous() {
            return Ok(PullRowsReply { version, moved: true, ..PullRowsReply::default() });
        }
        let version = if has { wanted } else { version };
        let most = room / (dim as usize * 4 + 8);
        if pull.stored {
            let mut ids = table.stored(pull.stored_from, most.max(1) + 1);
            let more = ids.len() > most.max(1);
            ids.truncate(most.max(1));
            let values = table.values(&ids);
            let ids = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            let rows = Some(Rows { table: name, dim, ids, values });
            return Ok(PullRowsReply { rows, version, more, moved: false });
        }
        let ids = crate::table::ids(&name, &pull.ids)?;
        if ids.len() > most {
            let text = format!(
                "embedding table {name:?}: {} rows of {dim} numbers are more than a message of \
                 {room} bytes has: ask for fewer at once, as by a smaller --minibatch_size",
                ids.len()
            );
            return Err(Status::out_of_range(text));
        }
        table.are_here(&ids, model.place())?;
        let values = table.values_in(&ids, version);
        let rows = Some(Rows { table: name, dim, ids: Bytes::new(), values });
        Ok(PullRowsReply { rows, version, more: false, moved: false })
    }

    /// A worker does something else than to compute a gradient: its place in the next update is
    /// free. Returns whether it had one.
    pub(crate) fn release(&mut self, worker: u32) -> bool {
        self.gate.release(WorkerId(worker))
    }

    /// The reply to a pull, if it needs not wait.
    pub(crate) fn pull(
        &mut self,
        pull: &PullRequest,
        leads: bool,
    ) -> Result<Option<PullReply>, Refused> {
        if self.generation == 0 {
            return Err(Refused::Closed);
        }
        if pull.model_generation != 0 {
            self.is_present(pull.model_generation)?;
        }
        let (version, model_generation) = (self.version, self.generation);
        let empty = |outcome: PullOutcome| PullReply {
            outcome: outcome.into(),
            version,
            model_generation,
            ..PullReply::default()
        };
        if self.model.is_none() {
            return Ok(Some(empty(PullOutcome::Uninitialized)));
        }
        let takes_place = leads
            && pull.for_training
            && matches!(self.settings.mode(), UpdateMode::Synchronous | UpdateMode::Asynchronous);
        if takes_place {
            // It would keep the place for ever: its push is refused.
            self.is_here(pull.worker_id)?;
        }
        let waits = takes_place && !self.gate.admit(WorkerId(pull.worker_id));
        if waits || version < pull.version {
            return Ok(None);
        }
        let reply = if pull.exact && self.is_synchronous() && pull.version != version {
            let before = self.before.as_ref().filter(|reply| reply.version == pull.version);
            let Some(reply) = before else { return Ok(Some(empty(PullOutcome::Moved))) };
            Some(reply.clone())
        } else if pull.known_version_plus_1 == version + 1 {
            Some(empty(PullOutcome::Ready))
        } else {
            self.present()
        };
        if let Some(reply) = reply.as_ref().filter(|_| pull.keeps_rows) {
            self.kept.insert(pull.worker_id, reply.version);
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use elastic_proto::v1::optimizer::Rule;
    use elastic_proto::v1::{InitModelRequest, Optimizer, Sgd};

    use super::*;

    fn orders(workers: &[u32], workers_numbered: u32, unsettled: &[u32]) -> AttendReply {
        AttendReply {
            workers: workers.to_vec(),
            workers_numbered,
            unsettled_workers: unsettled.to_vec(),
            ..AttendReply::default()
        }
    }

    /// A leader whose updates are made of two gradients.
    fn leader() -> Core {
        let mut core = Core::closed();
        let mode = UpdateMode::Synchronous.into();
        let settings = ServerSettings { mode, grads_to_wait: 2, ..ServerSettings::default() };
        core.open(1, settings, (0, None));
        core
    }

    #[test]
    fn the_place_of_a_worker_that_came_and_went_between_two_orders_is_free() {
        let mut core = leader();
        core.know_workers(&orders(&[0], 1, &[]));
        assert!(core.gate.admit(WorkerId(0)) && core.gate.admit(WorkerId(1)));
        assert!(!core.gate.admit(WorkerId(2)), "both places are taken");
        core.know_workers(&orders(&[0, 2], 3, &[]));
        assert!(core.gate.admit(WorkerId(2)));
    }

    #[test]
    fn a_worker_that_was_given_up_gets_no_place() {
        let mut core = leader();
        let optimizer = Optimizer { rule: Some(Rule::Sgd(Sgd::default())), learning_rate: 0.1 };
        let init = InitModelRequest { optimizer: Some(optimizer), ..Default::default() };
        core.model = Some(Model::begin(&init, (0, 1)).expect("a model"));
        core.know_workers(&orders(&[1], 2, &[]));
        let pull = |worker_id, for_training| PullRequest {
            worker_id,
            for_training,
            ..PullRequest::default()
        };
        assert_eq!(core.pull(&pull(0, true), true), Err(Refused::Gone(0)));
        for worker in [1, 2] {
            assert!(core.pull(&pull(worker, true), true).expect("here").is_some());
        }
        assert!(core.pull(&pull(0, false), true).expect("it takes no place").is_some());
    }

    #[test]
    fn positions_of_a_worker_that_is_gone_are_final_and_kept_while_the_master_asks() {
        let mut core = leader();
        core.know_workers(&orders(&[0, 1], 2, &[]));
        let positions = [position((&7, &5))];
        core.know_positions(0, &positions);
        assert_eq!(core.left(), []);
        core.know_workers(&orders(&[1], 3, &[0, 2]));
        assert_eq!(core.admit(0, 1), Err(Refused::Gone(0)));
        let left = |worker_id, positions| LeftWorker { worker_id, positions };
        assert_eq!(core.left(), [left(0, positions.to_vec()), left(2, vec![])]);
        assert_eq!(core.positions(), positions, "a checkpoint has them as well");
        core.know_workers(&orders(&[1], 3, &[]));
        assert_eq!((core.left(), core.positions()), (vec![], vec![]));
    }

    #[test]
    fn a_new_generation_has_nothing_of_workers_before_and_still_answers() {
        let mut core = leader();
        core.know_workers(&orders(&[0], 1, &[]));
        core.know_positions(0, &[position((&7, &5))]);
        core.know_workers(&orders(&[], 1, &[0]));
        core.open(2, ServerSettings::default(), (0, None));
        assert_eq!(core.left(), [LeftWorker { worker_id: 0, positions: vec![] }]);
    }
}
