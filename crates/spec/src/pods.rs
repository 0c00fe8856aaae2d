//! The pods of a workload: sets of pods that are alike, and what one pod runs and asks for.

pub(crate) mod wire;

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::{PodPreference, PodTerm, Preference, Term, Toleration};
use serde::{Deserialize, Serialize};

use crate::GpuRequest;
use crate::container::Container;
use wire::{PlaceWire, SecretWire};

/// Pods that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSet {
    /// What they are among the others, `master`, `ps` or `worker`; empty where all pods are alike.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// How many there are.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pods: u32,
    /// Fewest of them that make sense: so many of every set start, or none.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pods_min: u32,
    /// Most that run at a time; none = all of them. Those that are not yet done take turns.
    #[serde(rename = "at_once", default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<u32>,
    /// The group of sets it is in; none: directly in the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What its pods are called; `{}` is the number of each among those of its role. None: after
    /// the workload, the role and the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_names: Option<String>,
    /// Pods of a higher one are placed before those of other sets.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pod_priority: u32,
    /// How close together they are to be, beside what holds for the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_topology: Option<TopologyUse>,
    /// What each of them is.
    #[serde(flatten)]
    pub pod: PodSpec,
}

impl PodSet {
    /// One pod.
    #[must_use]
    pub const fn one(pod: PodSpec) -> Self {
        Self {
            role: String::new(),
            pods: 1,
            pods_min: 1,
            parallelism: None,
            group: None,
            pod_names: None,
            pod_priority: 0,
            set_topology: None,
            pod,
        }
    }

    /// How many of them are to run.
    #[must_use]
    pub fn wanted(&self) -> u32 {
        self.parallelism.map_or(self.pods, |most| most.min(self.pods))
    }
}

/// What a pod runs and asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSpec {
    /// Container image.
    pub image: String,
    /// Replaces the entrypoint.
    pub command: Option<Vec<String>>,
    /// Arguments.
    pub args: Vec<String>,
    /// Environment.
    pub env: BTreeMap<String, String>,
    /// Values of credentials, by reference: they are looked up at each start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretUse>,
    /// Working directory.
    pub working_dir: Option<String>,
    /// Which nodes it may go to.
    #[serde(default, skip_serializing_if = "Place::is_anywhere")]
    pub place: Place,
    /// GPUs.
    pub gpu: GpuRequest,
    /// CPU request, thousandths of a core.
    pub cpu_millis: u64,
    /// Memory request, bytes.
    pub memory_bytes: u64,
    /// What happens when the process ends.
    pub restart: Restart,
    /// SIGTERM to SIGKILL, milliseconds.
    pub grace_ms: u64,
    /// True if standard input stays open for those who attach.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stdin: bool,
    /// True if the main process has a terminal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tty: bool,
    /// What it needs around it, without logins: those are among the secrets.
    #[serde(default, skip_serializing_if = "Container::is_default")]
    pub container: Container,
}

/// Which nodes a pod may go to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PlaceWire", into = "PlaceWire")]
pub struct Place {
    /// One of these terms holds for the labels of the node; none = every node will do.
    pub affinity: Vec<Term>,
    /// Terms that make a node better.
    pub preferred: Vec<Preference>,
    /// Taints that do not matter.
    pub tolerations: Vec<Toleration>,
    /// Names of tolerations, by their position; those beyond the list have none.
    pub toleration_names: Vec<Option<String>>,
    /// How close it belongs to the others of its workload.
    pub colocation: Option<Colocation>,
    /// Its labels, by which pod affinity finds it.
    pub labels: BTreeMap<String, String>,
    /// Pods that must be in the same domain.
    pub pod_affinity: Vec<PodTerm>,
    /// Pods that must not be in the same domain.
    pub pod_anti_affinity: Vec<PodTerm>,
    /// Pods that make a domain better or worse.
    pub pod_preferences: Vec<PodPreference>,
}

/// How close together the pods of a workload belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Colocation {
    /// The label of nodes whose value is the same for all of them.
    pub key: String,
    /// True if they must be.
    pub required: bool,
}

/// A value of a credential that a pod gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SecretWire", into = "SecretWire")]
pub struct SecretUse {
    /// The object that holds it, `<kind>/<id>`.
    pub object: String,
    /// What it was named by.
    pub named: String,
    /// Which of its values; none: each as a file of its name in the folder that `to` names, or
    /// those of a login.
    pub key: Option<String>,
    /// Who gets it.
    pub to: SecretTo,
}

/// The kind of the objects that config maps are.
pub const CONFIG_MAP: &str = "config-map";

impl SecretUse {
    /// What it is of a config map of the project: `object`.
    #[must_use]
    pub fn of_config_map(name: &str) -> String {
        format!("{CONFIG_MAP}/{name}")
    }

    /// The config map that the value is of, if it is no credential's.
    #[must_use]
    pub fn config_map(&self) -> Option<&str> {
        self.object.split_once('/').filter(|(kind, _)| *kind == CONFIG_MAP).map(|(_, name)| name)
    }
}

/// Where a run finds a secret value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// In this environment variable.
    Variable(String),
    /// In a file.
    File {
        /// Its path, as a container that has it mounted would see it.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

/// Who gets a value of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretTo {
    /// The run, here.
    Run(SecretPlace),
    /// The engine, which pulls its image from this registry.
    Registry(String),
    /// The engine, which copies a repository or a bucket.
    Copy {
        /// Where it is mounted.
        mount: PathBuf,
        /// Which of the values is the user.
        user_key: String,
        /// Which is the password.
        password_key: String,
    },
}

impl SecretTo {
    /// Where the run finds it, if the run does.
    #[must_use]
    pub const fn place(&self) -> Option<&SecretPlace> {
        match self {
            Self::Run(place) => Some(place),
            Self::Registry(_) | Self::Copy { .. } => None,
        }
    }
}

/// What happens when the main process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Exit 0 completes the pod; a failure is retried as a new run, up to the back-off limit. Pods
    /// that work together are all restarted.
    Never,
    /// A failure restarts the process in place after a growing delay, up to the back-off limit;
    /// that of a workspace for ever.
    OnFailure,
    /// Any exit restarts the process in place.
    Always,
}

/// How pods work together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DistributedSpec {
    /// By whose rules they find each other, and whose end is the end of all.
    pub framework: Framework,
    /// MPI ranks in each worker.
    pub slots_per_worker: u32,
    /// True if the first pod begins only when all others run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_waits: bool,
    /// What happens to those that still run when the workload has ended.
    pub clean: CleanPods,
}

/// What happens to pods when their workload has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CleanPods {
    /// Those that run are stopped.
    #[default]
    Running,
    /// Those that run are stopped, and the output of all is deleted.
    All,
    /// Those that run go on.
    None,
}

/// Pods that belong close together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyUse {
    /// Id of the network topology.
    pub id: String,
    /// Label of the level of which all are in one domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<String>,
    /// Label of the level of which they are in as few domains as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<String>,
}

/// By whose rules the pods of a workload find each other, and whose end is the end of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framework {
    /// `torch.distributed`, `torchrun`.
    PyTorch,
    /// `mpirun` in a launcher.
    Mpi,
    /// TensorFlow.
    Tf,
    /// Rabit.
    XgBoost,
    /// `jax.distributed`.
    Jax,
    /// A master that hands out tasks, and parameter servers, which may be in its pod. Workers come
    /// and go: each begins as soon as it has its place, and one that has lost it begins again as
    /// another.
    ElasticDl,
    /// Groups of a leader and workers, each of which begins and restarts on its own
    /// (`LeaderWorkerSet` of Kubernetes).
    Lws,
}

/// The role of the pod whose end is the end of all.
pub const MASTER: &str = "master";
/// The role of the pod that the others of its group look for.
pub const LEADER: &str = "leader";
/// The role of those that hold the model of an elastic training.
pub const PARAMETER_SERVER: &str = "ps";
/// The role of the others.
pub const WORKER: &str = "worker";

impl Place {
    /// True if every node will do.
    #[must_use]
    pub fn is_anywhere(&self) -> bool {
        *self == Self::default()
    }
}

const fn one() -> u32 {
    1
}

/// As serde asks.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// As serde asks.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_one(count: &u32) -> bool {
    *count == 1
}
