//! A submission in a form common to both dialects. Values that were not given stay open: a template
//! or the server decides them.

use std::path::PathBuf;

use api_types::{
    AutoScaling, CleanPodPolicy, ExposedUrl, ImagePullPolicy, Port, RestartPolicy, Security,
    ServingConfiguration, ServingPort, Storage,
};

use super::{Dialect, Framework, Noun, Stdio, Target};

/// A workload to submit.
#[derive(Debug, Clone, PartialEq)]
pub struct Submit {
    /// Dialect of the command line.
    pub dialect: Dialect,
    /// Name or prefix.
    pub name: Name,
    /// Type.
    pub kind: Kind,
    /// Template and assets that it inherits from, by name.
    pub inherits: Inherits,
    /// Pod specification.
    pub spec: Spec,
    /// Action: submit, attach or validate only.
    pub mode: Mode,
    /// True if a workload that no node could hold is refused.
    pub strict: bool,
    /// Access to open after the submission; `None` = none.
    pub access: Option<Access>,
    /// Notes to print first.
    pub notes: Vec<String>,
    /// The command line as typed.
    pub command_line: String,
}

/// Access to a submitted workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Ports to forward: local port and port of the pod.
    pub ports: Vec<(u16, u16)>,
    /// Local address to listen on.
    pub address: String,
    /// True if another local port may be used, because none was requested.
    pub any_port: bool,
    /// True for a notebook, which writes an access token to its output.
    pub notebook: bool,
    /// True if the notebook is started with a base URL of its own.
    pub own_path: bool,
}

/// Action on a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Submit it.
    Submit,
    /// Submit it, and attach this terminal to its main process.
    Attach {
        /// Maximum wait in seconds for it to run.
        within_s: u64,
    },
    /// Validate and print it.
    DryRun,
    /// Print the scheduling outcome that the server predicts.
    WhatIf,
}

/// A Kubernetes manifest to submit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Path of the file.
    pub file: PathBuf,
    /// Name or prefix; `None` = the name in the manifest.
    pub name: Option<Name>,
    /// Category of the workload.
    pub category: Option<String>,
    /// Priority by name.
    pub priority: Option<String>,
    /// True if it may be evicted; `None` = default of its type.
    pub preemptible: Option<bool>,
    /// True if a workload that no node could hold is refused.
    pub strict: bool,
}

/// A workload to change.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// Workload.
    pub of: Target,
    /// Changed values of the pod specification.
    pub spec: Spec,
    /// Changed values of the inference service.
    pub serving: Serving,
    /// True if its only replica may stop before the next one is ready.
    pub recreate: bool,
    /// Number of the revision of an inference that is changed; `None` for the newest.
    pub from_revision: Option<u32>,
    /// Names of the labels to remove.
    pub labels_gone: Vec<String>,
    /// Names of the annotations to remove.
    pub annotations_gone: Vec<String>,
}

impl Update {
    /// An update that changes nothing.
    #[must_use]
    pub fn new(of: Target) -> Self {
        let (spec, serving) = (Spec::default(), Serving::default());
        let (labels_gone, annotations_gone) = (Vec::new(), Vec::new());
        Self {
            of,
            spec,
            serving,
            recreate: false,
            from_revision: None,
            labels_gone,
            annotations_gone,
        }
    }
}

/// Name of a workload to submit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// As given.
    Given(String),
    /// With the smallest free number appended.
    Numbered(String),
}

/// Types of workloads, with the values that only they have.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Unattended, of one pod or of several independent pods.
    Training(Runs),
    /// For a person at a terminal.
    Workspace,
    /// Several pods of a distributed training.
    Distributed(Box<Distributed>),
    /// Replicas that answer requests.
    Inference(Box<Serving>),
}

impl Kind {
    /// Noun that commands use for this type.
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
    /// Number of pods that must succeed.
    pub completions: Option<u32>,
    /// Maximum number of pods that run at a time.
    pub parallelism: Option<u32>,
    /// True if its number of GPUs may change.
    pub elastic: bool,
}

/// Pods of a distributed training.
#[derive(Debug, Clone, PartialEq)]
pub struct Distributed {
    /// Framework.
    pub framework: Framework,
    /// Number of workers.
    pub workers: Option<u32>,
    /// Minimum number of workers.
    pub workers_min: Option<u32>,
    /// Maximum number of workers.
    pub workers_max: Option<u32>,
    /// Ranks in each worker.
    pub slots: Option<u32>,
    /// Clean-up of running pods after the end of the training.
    pub clean: Option<CleanPodPolicy>,
    /// Master or launcher pod.
    pub master: Master,
}

/// Master or launcher pod of a distributed training.
#[derive(Debug, Clone, PartialEq)]
pub enum Master {
    /// A master with the specification of the workers.
    AsWorkers,
    /// No master.
    None,
    /// A specification of its own; values that are not given are those of the workers.
    Own(Box<Spec>),
}

/// Port and replicas of an inference.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Serving {
    /// Port, with the users who may send requests to it.
    pub port: Option<ServingPort>,
    /// Number of replicas and its limits.
    pub autoscaling: Option<AutoScaling>,
    /// Start-up of a replica.
    pub configuration: Option<ServingConfiguration>,
}

/// Template and assets that a workload inherits from, by name.
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
    /// Type of the data source; `None` if not given.
    pub kind: Option<String>,
    /// Name.
    pub name: String,
}

/// Pod specification. `None` and empty lists leave the value to a template or the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spec {
    /// Image.
    pub image: Option<String>,
    /// Command that replaces the entrypoint of the image.
    pub command: Vec<String>,
    /// Arguments.
    pub args: Vec<String>,
    /// Environment variables.
    pub environment: Vec<(String, Variable)>,
    /// Credentials mounted as files.
    pub secret_files: Vec<SecretFiles>,
    /// Working directory.
    pub working_dir: Option<String>,
    /// GPUs.
    pub gpu: Option<Gpu>,
    /// Limit on the share of each device, in thousandths.
    pub gpu_millis_max: Option<u64>,
    /// Limit on the memory of each device, as typed and checked.
    pub gpu_memory_max: Option<String>,
    /// Extended resources: name and quantity.
    pub extended: Vec<(String, String)>,
    /// CPU request in thousandths of a core.
    pub cpu_millis: Option<u64>,
    /// Memory request, as typed and checked.
    pub memory: Option<String>,
    /// True if it may be evicted; `None` = default of its type.
    pub preemptible: Option<bool>,
    /// Maximum number of retries.
    pub backoff_limit: Option<u32>,
    /// Restart policy.
    pub restart: Option<RestartPolicy>,
    /// Seconds between SIGTERM and SIGKILL.
    pub grace_seconds: Option<u64>,
    /// Standard input and terminal of its main process, for attaching.
    pub stdio: Stdio,
    /// Priority by name.
    pub priority: Option<String>,
    /// Labels.
    pub labels: Vec<(String, String)>,
    /// Annotations.
    pub annotations: Vec<(String, String)>,
    /// Node constraints.
    pub place: Place,
    /// Mounts, ports, security context and limits.
    pub around: ContainerOptions,
}

/// Container and pod options. The parts have their wire types, as there is one form of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContainerOptions {
    /// Mounts.
    pub storage: Storage,
    /// Ports that are reachable from outside.
    pub ports: Vec<Port>,
    /// Ports that are opened in a browser.
    pub urls: Vec<ExposedUrl>,
    /// Security context.
    pub security: Security,
    /// CPU limit in thousandths of a core.
    pub cpu_millis_max: Option<u64>,
    /// Memory limit, as typed and checked.
    pub memory_max: Option<String>,
    /// True if its shared memory may be as large as its memory.
    pub shared_memory_large: Option<bool>,
    /// Image pull policy.
    pub pull: Option<ImagePullPolicy>,
    /// True if it has a temporary home directory.
    pub home: Option<bool>,
    /// Seconds from its end to its deletion.
    pub delete_after_s: Option<u64>,
    /// Scheduling gates: it does not start while it has one.
    pub gates: Option<Vec<String>>,
    /// Minimum wait in seconds before it may preempt others.
    pub preemption_delay_s: Option<u64>,
    /// Maximum run time in seconds.
    pub time_limit_s: Option<u64>,
}

/// Value of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    /// Literal text.
    Text(String),
    /// A value of a credential.
    Secret {
        /// Name of the credential.
        credential: String,
        /// Key in the credential; `None` if it has one value.
        key: Option<String>,
    },
}

/// A credential mounted as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFiles {
    /// Name of the credential.
    pub credential: String,
    /// Mount path.
    pub path: String,
}

/// GPUs of each pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gpu {
    /// Whole devices, or 0.
    Devices(u32),
    /// A share of each device.
    Portion {
        /// Devices.
        devices: u32,
        /// Share of each device, in thousandths.
        millis: u64,
    },
    /// An amount of memory on each device.
    Memory {
        /// Devices.
        devices: u32,
        /// Memory of each device, as typed and checked.
        size: String,
    },
}

/// Node constraints of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Node pools, the best first.
    pub node_pools: Vec<String>,
    /// Type of the node.
    pub node_type: Option<String>,
    /// Required node labels, each with its allowed values.
    pub affinity: Vec<(String, Vec<String>)>,
    /// Names of excluded nodes.
    pub excluded: Vec<String>,
    /// Tolerated taints.
    pub tolerations: Vec<Toleration>,
    /// Topology label whose value the nodes of all its pods share; true if that is required, false
    /// if preferred.
    pub near: Option<(String, bool)>,
}

/// A tolerated taint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toleration {
    /// Key of the taint; `None` = any.
    pub key: Option<String>,
    /// Value of the taint; `None` = any.
    pub value: Option<String>,
    /// Effect of the taint; `None` = any.
    pub effect: Option<Effect>,
}

/// Effect of a taint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Pods are not placed on the node.
    NoSchedule,
    /// Pods are not placed on the node, and running pods are evicted.
    NoExecute,
    /// Pods are placed elsewhere if possible.
    PreferNoSchedule,
}
