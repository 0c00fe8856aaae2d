//! What is to be submitted, whichever dialect it was said in. What was not said stays open: a
//! template or the server decides it.

use std::path::PathBuf;

use api_types::{
    AutoScaling, CleanPodPolicy, ExposedUrl, ImagePullPolicy, Port, RestartPolicy, Security,
    ServingConfiguration, ServingPort, Storage,
};

use super::{Dialect, Framework, Noun, Stdio, Target};

/// A workload to submit.
#[derive(Debug, Clone, PartialEq)]
pub struct Submit {
    /// How it was said.
    pub dialect: Dialect,
    /// Name or prefix.
    pub name: Name,
    /// Type.
    pub kind: Kind,
    /// What it inherits, by name.
    pub inherits: Inherits,
    /// What runs, and with what.
    pub spec: Spec,
    /// What is done with it.
    pub mode: Mode,
    /// True if it is refused if no node could hold it.
    pub strict: bool,
    /// How it is opened at once.
    pub access: Option<Access>,
    /// What is said of it first.
    pub notes: Vec<String>,
    /// What was typed.
    pub command_line: String,
}

/// How a submitted workload is opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Ports that are brought here: the one here, and the one there.
    pub ports: Vec<(u16, u16)>,
    /// Where they listen here.
    pub address: String,
    /// True if another local port will do, because none was requested.
    pub any_port: bool,
    /// True if it is a notebook, which tells a token.
    pub notebook: bool,
    /// True if it is started to serve at a path of its own.
    pub own_path: bool,
}

/// What is done with a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is submitted.
    Submit,
    /// It is submitted, and this terminal becomes that of its main process.
    Attach {
        /// How many seconds are waited for it to run.
        within_s: u64,
    },
    /// It is checked and printed.
    DryRun,
    /// It is asked what would happen.
    WhatIf,
}

/// A manifest of Kubernetes to submit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Where it is.
    pub file: PathBuf,
    /// Name or prefix; none is as it says.
    pub name: Option<Name>,
    /// What it is for.
    pub category: Option<String>,
    /// Priority by name.
    pub priority: Option<String>,
    /// True if it may be evicted; none leaves it to its type.
    pub preemptible: Option<bool>,
    /// True if it is refused if no node could hold it.
    pub strict: bool,
}

/// A workload to change.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// Which.
    pub of: Target,
    /// What becomes different of what runs.
    pub spec: Spec,
    /// What becomes different of how it serves.
    pub serving: Serving,
    /// Set if its only replica may stop before the next one is ready.
    pub recreate: bool,
    /// Labels that are removed.
    pub labels_gone: Vec<String>,
    /// Annotations that are removed.
    pub annotations_gone: Vec<String>,
}

impl Update {
    /// One that changes nothing.
    #[must_use]
    pub fn new(of: Target) -> Self {
        let (spec, serving) = (Spec::default(), Serving::default());
        let (labels_gone, annotations_gone) = (Vec::new(), Vec::new());
        Self { of, spec, serving, recreate: false, labels_gone, annotations_gone }
    }
}

/// How a workload gets its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// As given.
    Given(String),
    /// With the smallest free number appended.
    Numbered(String),
}

/// Types of workloads, with what only they can be asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Unattended, of one pod or of many that know nothing of each other.
    Training(Runs),
    /// For a person at a terminal.
    Workspace,
    /// Several pods that work together.
    Distributed(Box<Distributed>),
    /// Replicas that answer requests.
    Inference(Box<Serving>),
}

impl Kind {
    /// What a command calls it.
    #[must_use]
    pub fn noun(&self) -> Noun {
        match self {
            Self::Training(_) => Noun::Training,
            Self::Workspace => Noun::Workspace,
            Self::Distributed(distributed) => Noun::Framework(distributed.framework),
            Self::Inference(_) => Noun::Inference,
        }
    }
}

/// The pods of a training.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runs {
    /// How many are to end well.
    pub completions: Option<u32>,
    /// Most at a time.
    pub parallelism: Option<u32>,
    /// True if its number of GPUs may change.
    pub elastic: bool,
}

/// Pods that work together.
#[derive(Debug, Clone, PartialEq)]
pub struct Distributed {
    /// By whose rules.
    pub framework: Framework,
    /// Workers.
    pub workers: Option<u32>,
    /// Fewest workers.
    pub workers_min: Option<u32>,
    /// Most workers.
    pub workers_max: Option<u32>,
    /// Ranks in each worker.
    pub slots: Option<u32>,
    /// What happens to pods that run when it has ended.
    pub clean: Option<CleanPodPolicy>,
    /// The pod that leads.
    pub master: Master,
}

/// The pod that leads others.
#[derive(Debug, Clone, PartialEq)]
pub enum Master {
    /// One like the workers.
    AsWorkers,
    /// None.
    None,
    /// One of its own; what is not said is as with the workers.
    Own(Box<Spec>),
}

/// Where an inference serves, and with how many replicas.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Serving {
    /// The port, and who may send requests to it.
    pub port: Option<ServingPort>,
    /// How many replicas there are.
    pub autoscaling: Option<AutoScaling>,
    /// How a replica starts.
    pub configuration: Option<ServingConfiguration>,
}

/// What a workload inherits, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inherits {
    /// A template.
    pub template: Option<String>,
    /// An environment.
    pub environment: Option<String>,
    /// A compute resource.
    pub compute: Option<String>,
    /// Data sources.
    pub data: Vec<DataSource>,
}

/// A data source by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSource {
    /// Of which type.
    pub kind: Option<String>,
    /// Name.
    pub name: String,
}

/// What runs, and with what.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spec {
    /// Image.
    pub image: Option<String>,
    /// Replaces the entrypoint.
    pub command: Vec<String>,
    /// Arguments.
    pub args: Vec<String>,
    /// Environment.
    pub environment: Vec<(String, Variable)>,
    /// Credentials as files.
    pub secret_files: Vec<SecretFiles>,
    /// Working directory.
    pub working_dir: Option<String>,
    /// GPUs.
    pub gpu: Option<Gpu>,
    /// Most of each device, in thousandths.
    pub gpu_millis_max: Option<u64>,
    /// Most memory of each device, as typed and checked.
    pub gpu_memory_max: Option<String>,
    /// Resources that only some nodes have: name and quantity.
    pub extended: Vec<(String, String)>,
    /// Thousandths of a core.
    pub cpu_millis: Option<u64>,
    /// Memory, as typed and checked.
    pub memory: Option<String>,
    /// True if it may be evicted; none leaves it to its type.
    pub preemptible: Option<bool>,
    /// Retries.
    pub backoff_limit: Option<u32>,
    /// What happens at the end.
    pub restart: Option<RestartPolicy>,
    /// Seconds between SIGTERM and SIGKILL.
    pub grace_seconds: Option<u64>,
    /// Input and terminal of its main process, for those who attach.
    pub stdio: Stdio,
    /// Priority by name.
    pub priority: Option<String>,
    /// Labels.
    pub labels: Vec<(String, String)>,
    /// Annotations.
    pub annotations: Vec<(String, String)>,
    /// Where it may run.
    pub place: Place,
    /// What it has around it.
    pub around: ContainerOptions,
}

/// What a workload has around it. The parts are as they are sent; there is one form of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContainerOptions {
    /// Mounts.
    pub storage: Storage,
    /// Ports that are reached from outside.
    pub ports: Vec<Port>,
    /// Ports that are opened in a browser.
    pub urls: Vec<ExposedUrl>,
    /// User and rights.
    pub security: Security,
    /// Most thousandths of a core.
    pub cpu_millis_max: Option<u64>,
    /// Most memory, as typed and checked.
    pub memory_max: Option<String>,
    /// True if its shared memory may be as large as its memory.
    pub shared_memory_large: Option<bool>,
    /// When its image is pulled.
    pub pull: Option<ImagePullPolicy>,
    /// True if it has a temporary home directory.
    pub home: Option<bool>,
    /// Seconds after its end at which it is deleted.
    pub delete_after_s: Option<u64>,
    /// What holds it back.
    pub gates: Option<Vec<String>>,
    /// Minimum wait in seconds before others are stopped for it.
    pub preemption_delay_s: Option<u64>,
    /// Seconds that it may run.
    pub time_limit_s: Option<u64>,
}

/// What a variable of the environment is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    /// This text.
    Text(String),
    /// A value of a credential.
    Secret {
        /// Name of the credential.
        credential: String,
        /// Which of its values; none where it has one.
        key: Option<String>,
    },
}

/// A credential as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFiles {
    /// Name of the credential.
    pub credential: String,
    /// Folder.
    pub path: String,
}

/// GPUs of each pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gpu {
    /// Whole devices, or 0.
    Devices(u32),
    /// The same share of each device.
    Portion {
        /// Devices.
        devices: u32,
        /// Thousandths of each.
        millis: u64,
    },
    /// The same memory on each device.
    Memory {
        /// Devices.
        devices: u32,
        /// As typed and checked.
        size: String,
    },
}

/// Where a workload may run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Node pools, the best first.
    pub node_pools: Vec<String>,
    /// Type of the node.
    pub node_type: Option<String>,
    /// Labels that its nodes have, each with one of some values.
    pub affinity: Vec<(String, Vec<String>)>,
    /// Nodes that will not do.
    pub excluded: Vec<String>,
    /// Taints that do not matter.
    pub tolerations: Vec<Toleration>,
    /// The label of nodes at one value of which its pods are to be, and whether they must.
    pub near: Option<(String, bool)>,
}

/// A taint that does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toleration {
    /// Its name; none is every name.
    pub key: Option<String>,
    /// Its value; none is every value.
    pub value: Option<String>,
    /// Its effect; none is every effect.
    pub effect: Option<Effect>,
}

/// What a taint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Pods are not placed there.
    NoSchedule,
    /// They are not placed there, nor left there.
    NoExecute,
    /// They are placed elsewhere if that is possible.
    PreferNoSchedule,
}
