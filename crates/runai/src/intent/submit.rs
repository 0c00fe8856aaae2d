//! What is to be submitted, whichever dialect it was said in. What was not said stays open: a
//! template or the server decides it.

use std::path::PathBuf;

use api_types::{ExposedUrl, ImagePullPolicy, Port, Security, Storage};

use super::{Dialect, Framework, Noun, Target, Tie};
use crate::args::v2::{CleanPodPolicy, RestartPolicy, Serving};

/// A workload to submit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Submit {
    /// How it was said.
    pub(crate) dialect: Dialect,
    /// Name or prefix.
    pub(crate) name: Name,
    /// Type.
    pub(crate) kind: Kind,
    /// What it inherits, by name.
    pub(crate) inherits: Inherits,
    /// What runs, and with what.
    pub(crate) spec: Spec,
    /// What is done with it.
    pub(crate) deed: Deed,
    /// How whoever submits it comes to it at once.
    pub(crate) access: Option<Access>,
    /// What is said of it first.
    pub(crate) notes: Vec<String>,
    /// What was typed.
    pub(crate) command_line: String,
}

/// How whoever submits a workload comes to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// Ports that are brought here: the one here, and the one there.
    pub(crate) ports: Vec<(u16, u16)>,
    /// Where they listen here.
    pub(crate) address: String,
    /// Whether another port here will do, because nobody asked for one.
    pub(crate) any_port: bool,
    /// Whether it is a notebook, which tells a token.
    pub(crate) notebook: bool,
    /// Whether it is started to serve at a path of its own.
    pub(crate) own_path: bool,
}

/// What is done with a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
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
pub(crate) struct Manifest {
    /// Where it is.
    pub(crate) file: PathBuf,
    /// Name or prefix; none is as it says.
    pub(crate) name: Option<Name>,
    /// What it is for.
    pub(crate) category: Option<String>,
    /// Priority by name.
    pub(crate) priority: Option<String>,
    /// Whether it may be evicted; none leaves it to its type.
    pub(crate) preemptible: Option<bool>,
}

/// A workload to change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Update {
    /// Which.
    pub(crate) of: Target,
    /// What becomes different of what runs.
    pub(crate) spec: Spec,
    /// What becomes different of how it serves.
    pub(crate) serving: Serving,
    /// Labels that are removed.
    pub(crate) labels_gone: Vec<String>,
    /// Annotations that are removed.
    pub(crate) annotations_gone: Vec<String>,
}

impl Update {
    /// One that changes nothing.
    #[must_use]
    pub(crate) fn new(of: Target) -> Self {
        let (spec, serving) = (Spec::default(), Serving::default());
        Self { of, spec, serving, labels_gone: Vec::new(), annotations_gone: Vec::new() }
    }
}

/// How a workload gets its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Name {
    /// As given.
    Given(String),
    /// With the smallest free number appended.
    Numbered(String),
}

/// Types of workloads, with what only they can be asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
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
    pub(crate) fn noun(&self) -> Noun {
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
pub(crate) struct Runs {
    /// How many are to end well.
    pub(crate) completions: Option<u32>,
    /// Most at a time.
    pub(crate) parallelism: Option<u32>,
    /// Whether its number of GPUs may change.
    pub(crate) elastic: bool,
}

/// Pods that work together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Distributed {
    /// By whose rules.
    pub(crate) framework: Framework,
    /// Workers.
    pub(crate) workers: Option<u32>,
    /// Fewest workers.
    pub(crate) workers_min: Option<u32>,
    /// Most workers.
    pub(crate) workers_max: Option<u32>,
    /// Ranks in each worker.
    pub(crate) slots: Option<u32>,
    /// What happens to pods that run when it has ended.
    pub(crate) clean: Option<CleanPodPolicy>,
    /// The pod that leads.
    pub(crate) master: Master,
}

/// The pod that leads others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Master {
    /// One like the workers.
    AsWorkers,
    /// None.
    None,
    /// One of its own; what is not said is as with the workers.
    Own(Box<Spec>),
}

/// What a workload inherits, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Inherits {
    /// A template.
    pub(crate) template: Option<String>,
    /// An environment.
    pub(crate) environment: Option<String>,
    /// A compute resource.
    pub(crate) compute: Option<String>,
    /// Data sources.
    pub(crate) data: Vec<DataSource>,
}

/// A data source by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataSource {
    /// Of which type.
    pub(crate) kind: Option<String>,
    /// Name.
    pub(crate) name: String,
}

/// What runs, and with what.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Spec {
    /// Image.
    pub(crate) image: Option<String>,
    /// Replaces the entrypoint.
    pub(crate) command: Vec<String>,
    /// Arguments.
    pub(crate) args: Vec<String>,
    /// Environment.
    pub(crate) environment: Vec<(String, Variable)>,
    /// Credentials as files.
    pub(crate) secret_files: Vec<SecretFiles>,
    /// Working directory.
    pub(crate) working_dir: Option<String>,
    /// GPUs.
    pub(crate) gpu: Option<Gpu>,
    /// Most of each device, in thousandths.
    pub(crate) gpu_millis_max: Option<u64>,
    /// Most memory of each device, as typed and checked.
    pub(crate) gpu_memory_max: Option<String>,
    /// Resources that only some nodes have: name and quantity.
    pub(crate) extended: Vec<(String, String)>,
    /// Thousandths of a core.
    pub(crate) cpu_millis: Option<u64>,
    /// Memory, as typed and checked.
    pub(crate) memory: Option<String>,
    /// Whether it may be evicted; none leaves it to its type.
    pub(crate) preemptible: Option<bool>,
    /// Retries.
    pub(crate) backoff_limit: Option<u32>,
    /// What happens at the end.
    pub(crate) restart: Option<RestartPolicy>,
    /// Seconds between SIGTERM and SIGKILL.
    pub(crate) grace_seconds: Option<u64>,
    /// Input and terminal of its main process, for those who attach.
    pub(crate) tie: Tie,
    /// Priority by name.
    pub(crate) priority: Option<String>,
    /// Labels.
    pub(crate) labels: Vec<(String, String)>,
    /// Annotations.
    pub(crate) annotations: Vec<(String, String)>,
    /// Where it may run.
    pub(crate) place: Place,
    /// What it has around it.
    pub(crate) around: Around,
}

/// What a workload has around it. The parts are as they are sent; there is one form of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Around {
    /// Mounts.
    pub(crate) storage: Storage,
    /// Ports that are reached from outside.
    pub(crate) ports: Vec<Port>,
    /// Ports that are opened in a browser.
    pub(crate) urls: Vec<ExposedUrl>,
    /// User and rights.
    pub(crate) security: Security,
    /// Most thousandths of a core.
    pub(crate) cpu_millis_max: Option<u64>,
    /// Most memory, as typed and checked.
    pub(crate) memory_max: Option<String>,
    /// Whether its shared memory may be as large as its memory.
    pub(crate) shared_memory_large: Option<bool>,
    /// When its image is pulled.
    pub(crate) pull: Option<ImagePullPolicy>,
    /// Whether it has a temporary home directory.
    pub(crate) home: Option<bool>,
    /// Seconds after its end at which it is deleted.
    pub(crate) delete_after_s: Option<u64>,
    /// What holds it back.
    pub(crate) gates: Option<Vec<String>>,
    /// Minimum wait in seconds before others are stopped for it.
    pub(crate) preemption_delay_s: Option<u64>,
    /// Seconds that it may run.
    pub(crate) time_limit_s: Option<u64>,
}

/// What a variable of the environment is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Variable {
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
pub(crate) struct SecretFiles {
    /// Name of the credential.
    pub(crate) credential: String,
    /// Folder.
    pub(crate) path: String,
}

/// GPUs of each pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gpu {
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
pub(crate) struct Place {
    /// Node pools, the best first.
    pub(crate) node_pools: Vec<String>,
    /// Type of the node.
    pub(crate) node_type: Option<String>,
    /// Labels that its nodes have, each with one of some values.
    pub(crate) affinity: Vec<(String, Vec<String>)>,
    /// Nodes that will not do.
    pub(crate) excluded: Vec<String>,
    /// Taints that do not matter.
    pub(crate) tolerations: Vec<Toleration>,
    /// The label of nodes at one value of which its pods are to be, and whether they must.
    pub(crate) near: Option<(String, bool)>,
}

/// A taint that does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Toleration {
    /// Its name; none is every name.
    pub(crate) key: Option<String>,
    /// Its value; none is every value.
    pub(crate) value: Option<String>,
    /// Its effect; none is every effect.
    pub(crate) effect: Option<Effect>,
}

/// What a taint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Pods are not placed there.
    NoSchedule,
    /// They are not placed there, nor left there.
    NoExecute,
    /// They are placed elsewhere if that is possible.
    PreferNoSchedule,
}
