//! Settings of a master. Owns: the settings, and the training that they describe. Does not know
//! about: the command line.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use elastic::{Epochs, Kind, Limits, Order, Plan, Shard, Training, WorldLimits};
use elastic_proto::v1::{JobKind, JobSettings, ServerSettings, UpdateMode};
use serde::{Deserialize, Serialize};

/// Settings of a master.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The file with the token of the job.
    pub token_file: PathBuf,
    /// The folder of its journal. A master that finds one there resumes from it.
    pub journal_dir: PathBuf,
    /// When the journal is written to the disk.
    #[serde(default)]
    pub journal_sync: Sync,
    /// How long it answers after the end, for callers that read the outcome, in milliseconds. It
    /// waits longer, for half a minute at most, while workers have not left.
    #[serde(default = "linger")]
    pub linger_ms: u64,
    /// The job.
    pub job: JobConfig,
}

/// When the journal is written to the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    /// Before any answer. Entries that arrive during a write go into the next one, so many workers
    /// share one. A power cut loses nothing.
    #[default]
    Always,
    /// When the operating system writes it. The death of the master loses nothing; a power cut can
    /// lose the last seconds, and the job then has to restart.
    Os,
}

fn linger() -> u64 {
    2_000
}

/// Settings of a job. They do not change while it lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct JobConfig {
    /// Its name.
    pub name: String,
    /// Train, evaluate or predict.
    pub kind: Kind,
    /// `--minibatch_size`.
    pub minibatch_size: u32,
    /// Arguments for the workers; not interpreted.
    pub arguments: BTreeMap<String, String>,
    /// The data; empty: the first worker reports them.
    pub shards: Vec<Shard>,
    /// Data of the evaluations; empty: the first worker reports them.
    pub validation_shards: Vec<Shard>,
    /// The size of a task.
    pub records_per_task: u64,
    /// Passes over the data.
    pub epochs: Epochs,
    /// Order of the records.
    pub order: Order,
    /// `--max_step` times the minibatch.
    pub records_max: Option<u64>,
    /// True if a worker exports the model at the end.
    pub saves: bool,
    /// Limits of failures and of work at a time.
    pub limits: Limits,
    /// How many workers in a row may fail outside of tasks; if none is left after that, the job
    /// fails.
    pub worker_crashes_max: u32,
    /// `--evaluation_steps`: number of versions between two evaluations; 0: never.
    pub evaluation_steps: u64,
    /// The sizes of the world, if workers train together. Its first worker then takes the place of
    /// the one parameter server: it attends, and makes the checkpoints.
    pub world: Option<WorldLimits>,
    /// See [`Training::silent_ms`].
    pub silent_ms: Option<u64>,
    /// Milliseconds without a call after which a worker is given up.
    pub worker_timeout_ms: u64,
    /// `--num_ps_pods`.
    pub parameter_servers: u32,
    /// How updates are made.
    pub mode: Mode,
    /// `--grads_to_wait`.
    pub grads_to_wait: u32,
    /// `--sync_version_tolerance`.
    pub sync_version_tolerance: u64,
    /// `--staleness_max`: age in versions that a gradient of the asynchronous modes may have; 0:
    /// any age.
    pub staleness_max: u64,
    /// `--lr_staleness_modulation`.
    pub lr_staleness_modulation: bool,
    /// `--get_model_steps`.
    pub get_model_steps: u32,
    /// `--checkpoint_steps`; 0: only at the end.
    pub checkpoint_steps: u64,
    /// `--keep_checkpoint_max`; 0: all.
    pub keep_checkpoint_max: u32,
    /// The largest message, in bytes.
    pub message_bytes_max: usize,
}

/// How updates are made; see `UpdateMode` of the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Each update is the mean of several gradients; none is rejected.
    #[default]
    Synchronous,
    /// Synchronous as published: stale gradients are rejected.
    SynchronousReject,
    /// Each gradient is an update; none is rejected.
    Asynchronous,
    /// Each gradient is an update; gradients that are too old are rejected.
    AsynchronousReject,
}

impl Default for JobConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            kind: Kind::Train,
            minibatch_size: 64,
            arguments: BTreeMap::new(),
            shards: Vec::new(),
            validation_shards: Vec::new(),
            records_per_task: 4096,
            epochs: Epochs::Count(1),
            order: Order::Given,
            records_max: None,
            saves: false,
            limits: Limits::default(),
            worker_crashes_max: 3,
            evaluation_steps: 0,
            world: None,
            silent_ms: None,
            worker_timeout_ms: 60_000,
            parameter_servers: 0,
            mode: Mode::default(),
            grads_to_wait: 1,
            sync_version_tolerance: 0,
            staleness_max: 0,
            lr_staleness_modulation: false,
            get_model_steps: 1,
            checkpoint_steps: 0,
            keep_checkpoint_max: 3,
            message_bytes_max: 256 << 20,
        }
    }
}

impl JobConfig {
    /// The training of these data.
    pub(crate) fn training(&self, shards: Vec<Shard>, validation: Vec<Shard>) -> Training {
        let plan = Plan {
            kind: self.kind,
            shards,
            records_per_task: self.records_per_task,
            epochs: self.epochs,
            order: self.order,
            records_max: self.records_max,
            saves: self.saves && self.kind == Kind::Train,
        };
        let measures = self.evaluation_steps > 0 && !validation.is_empty();
        let evaluation = (measures && self.kind == Kind::Train).then(|| {
            let plan = Plan {
                kind: Kind::Evaluate,
                epochs: Epochs::Count(1),
                ..Plan::training(validation, self.records_per_task)
            };
            (plan, self.evaluation_steps)
        });
        let (limits, world, silent_ms) = (self.limits, self.world, self.silent_ms);
        Training { plan, limits, evaluation, world, silent_ms, settles: false }
    }

    fn update_mode(&self) -> UpdateMode {
        match self.mode {
            Mode::Synchronous => UpdateMode::Synchronous,
            Mode::SynchronousReject => UpdateMode::SynchronousReject,
            Mode::Asynchronous => UpdateMode::Asynchronous,
            Mode::AsynchronousReject => UpdateMode::AsynchronousReject,
        }
    }

    pub(crate) fn for_workers(&self, job_id: &str) -> JobSettings {
        let kind = match self.kind {
            Kind::Evaluate => JobKind::Evaluate,
            Kind::Predict => JobKind::Predict,
            Kind::Train | Kind::Save => JobKind::Train,
        };
        JobSettings {
            job_name: self.name.clone(),
            job_id: job_id.to_owned(),
            kind: kind.into(),
            minibatch_size: self.minibatch_size,
            arguments: self.arguments.clone(),
            parameter_servers: self.servers(),
            mode: self.update_mode().into(),
            grads_to_wait: self.grads_to_wait,
            get_model_steps: self.get_model_steps,
            held_max: self.limits.held_max,
            worker_timeout_ms: self.worker_timeout_ms,
            message_bytes_max: self.message_bytes_max as u64,
        }
    }

    /// Parameter servers that run: none in a world, whose workers have the model themselves.
    #[must_use]
    pub fn servers(&self) -> u32 {
        if self.world.is_some() { 0 } else { self.parameter_servers }
    }

    /// See [`Training::settles`].
    pub(crate) fn settles(&self) -> bool {
        self.kind == Kind::Train && self.servers() > 0
    }

    pub(crate) fn for_servers(&self) -> ServerSettings {
        ServerSettings {
            mode: self.update_mode().into(),
            grads_to_wait: self.grads_to_wait,
            sync_version_tolerance: self.sync_version_tolerance,
            lr_staleness_modulation: self.lr_staleness_modulation,
            evaluation_steps: self.evaluation_steps,
            checkpoint_steps: self.checkpoint_steps,
            keep_checkpoint_max: self.keep_checkpoint_max,
            staleness_max: self.staleness_max,
        }
    }
}
