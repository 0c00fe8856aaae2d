//! The pods of a workload: sets of identical pods, and the specification of one pod.

pub(crate) mod wire;

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::{PodPreference, PodTerm, Preference, Term, Toleration};
use serde::{Deserialize, Serialize};

use crate::GpuRequest;
use crate::container::Container;
use wire::{PlaceWire, SecretWire};

/// Pods of one specification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSet {
    /// Role among the other sets, `master`, `ps` or `worker`; empty where all pods are alike.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// Number of pods.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pods: u32,
    /// Minimum number of pods that can run: this number of every set starts, or none.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pods_min: u32,
    /// Maximum number that run at a time; `None` for all of them. Unfinished pods take turns.
    #[serde(rename = "at_once", default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<u32>,
    /// Name of its group; `None` if it is directly in the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Names of its pods; `{}` is the number of each in its role. `None`: the workload, the role
    /// and the number make the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_names: Option<String>,
    /// Placement order: pods of a higher number are placed before those of other sets.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pod_priority: u32,
    /// Topology constraint of its pods, in addition to that of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_topology: Option<TopologyUse>,
    /// Specification of each pod.
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

    /// Number of pods that should run at a time.
    #[must_use]
    pub fn wanted(&self) -> u32 {
        self.parallelism.map_or(self.pods, |most| most.min(self.pods))
    }
}

/// Specification of a pod.
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
    /// Values of credentials, by reference: they are resolved at each start.
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
    /// Policy at the end of the process.
    pub restart: Restart,
    /// SIGTERM to SIGKILL, milliseconds.
    pub grace_ms: u64,
    /// True if standard input stays open for sessions that attach.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stdin: bool,
    /// True if the main process has a terminal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tty: bool,
    /// Its container settings, without logins, which are among the secrets.
    #[serde(default, skip_serializing_if = "Container::is_default")]
    pub container: Container,
}

/// Constraints on the node of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PlaceWire", into = "PlaceWire")]
pub struct Place {
    /// Required node affinity: one of these terms matches the labels of the node; empty for every
    /// node.
    pub affinity: Vec<Term>,
    /// Terms that make a node preferred.
    pub preferred: Vec<Preference>,
    /// Taints that are ignored.
    pub tolerations: Vec<Toleration>,
    /// Names of tolerations, by their position; tolerations beyond the list have none.
    pub toleration_names: Vec<Option<String>>,
    /// Constraint to be near the other pods of its workload.
    pub colocation: Option<Colocation>,
    /// Its labels, by which pod affinity finds it.
    pub labels: BTreeMap<String, String>,
    /// Pods that must be in the same domain.
    pub pod_affinity: Vec<PodTerm>,
    /// Pods that must not be in the same domain.
    pub pod_anti_affinity: Vec<PodTerm>,
    /// Pods that make a domain preferred or less preferred.
    pub pod_preferences: Vec<PodPreference>,
}

/// Constraint to place the pods of a workload near each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Colocation {
    /// The node label whose value must be the same for all of them.
    pub key: String,
    /// True if it is required, false if it is preferred.
    pub required: bool,
}

/// A value of a credential that a pod gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SecretWire", into = "SecretWire")]
pub struct SecretUse {
    /// The object that holds it, `<kind>/<id>`.
    pub object: String,
    /// Name that the request used for it.
    pub named: String,
    /// Key of its value; `None`: each value as a file of its name in the folder `to`, or the values
    /// of a login.
    pub key: Option<String>,
    /// Recipient of the value.
    pub to: SecretTo,
}

/// Kind of the objects that hold config maps.
pub const CONFIG_MAP: &str = "config-map";

impl SecretUse {
    /// The `object` of a config map of the project.
    #[must_use]
    pub fn of_config_map(name: &str) -> String {
        format!("{CONFIG_MAP}/{name}")
    }

    /// Name of the config map that holds the value; `None` for a credential.
    #[must_use]
    pub fn config_map(&self) -> Option<&str> {
        self.object.split_once('/').filter(|(kind, _)| *kind == CONFIG_MAP).map(|(_, name)| name)
    }
}

/// Location of a secret value in a run.
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

/// Recipient of a value of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretTo {
    /// The run, at this location.
    Run(SecretPlace),
    /// The engine, which pulls its image from this registry.
    Registry(String),
    /// The engine, which copies a repository or a bucket.
    Copy {
        /// Path of its mount.
        mount: PathBuf,
        /// Key of the value that is the user.
        user_key: String,
        /// Key of the value that is the password.
        password_key: String,
    },
}

impl SecretTo {
    /// Location in the run; `None` if the engine is the recipient.
    #[must_use]
    pub const fn place(&self) -> Option<&SecretPlace> {
        match self {
            Self::Run(place) => Some(place),
            Self::Registry(_) | Self::Copy { .. } => None,
        }
    }
}

/// Policy at the end of the main process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Exit 0 completes the pod; a failure is retried as a new run, up to the back-off limit. Pods
    /// that work together are all restarted.
    Never,
    /// A failure restarts the process in place after a growing delay, up to the back-off limit,
    /// which does not hold for a workspace.
    OnFailure,
    /// Any exit restarts the process in place.
    Always,
}

/// How pods work together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DistributedSpec {
    /// Framework by which they find each other, and which decides the pod whose end ends the
    /// workload.
    pub framework: Framework,
    /// MPI ranks in each worker.
    pub slots_per_worker: u32,
    /// True if the first pod starts only when all others run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_waits: bool,
    /// Policy for pods that still run when the workload has ended.
    pub clean: CleanPods,
}

/// Policy for pods when their workload has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CleanPods {
    /// Running pods are stopped.
    #[default]
    Running,
    /// Running pods are stopped, and the output of all is deleted.
    All,
    /// Running pods continue.
    None,
}

/// Topology constraint of pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyUse {
    /// Id of the network topology.
    pub id: String,
    /// Label of the level at which all pods are in one domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<String>,
    /// Label of the level at which they are in as few domains as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<String>,
}

/// Framework by which the pods of a workload find each other, and which decides the pod whose end
/// ends the workload.
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
    /// and go: each starts as soon as it is placed, and one that lost its node is replaced by a new
    /// one.
    ElasticDl,
    /// Groups of a leader and workers, each of which begins and restarts on its own
    /// (`LeaderWorkerSet` of Kubernetes).
    Lws,
}

/// Role of the pod whose end ends the workload.
pub const MASTER: &str = "master";
/// Role of the pod that the others of its group connect to.
pub const LEADER: &str = "leader";
/// Role of the pods that hold the model of an elastic training.
pub const PARAMETER_SERVER: &str = "ps";
/// Role of all other pods.
pub const WORKER: &str = "worker";

impl Place {
    /// True if it has no constraint.
    #[must_use]
    pub fn is_anywhere(&self) -> bool {
        *self == Self::default()
    }
}

const fn one() -> u32 {
    1
}

/// Signature for serde.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Signature for serde.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_one(count: &u32) -> bool {
    *count == 1
}
