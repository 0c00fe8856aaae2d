//! What a workload asks for, as it is stored. Owns: how its JSON looks on disk, for good: a field may
//! be added with a default, never renamed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a workload asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadSpecBody {
    /// Name.
    pub name: String,
    /// `training`, `workspace`, `distributed`.
    pub kind: String,
    /// Who asked.
    pub submitted_by: String,
    /// Which principal that was; empty in what earlier versions wrote.
    #[serde(default)]
    pub submitter_id: String,
    /// From where.
    pub source: String,
    /// Its pods, or the first set of them.
    #[serde(flatten)]
    pub pods: PodSetBody,
    /// Further sets of pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<PodSetBody>,
    /// How its pods work together, if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<TogetherBody>,
    /// How it serves, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving: Option<crate::ServingBody>,
    /// Ports that are opened in a browser.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<crate::UrlBody>,
    /// Pages elsewhere that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_urls: Vec<crate::RelatedUrlBody>,
    /// Whose revision it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<crate::RevisionBody>,
    /// Whether it may shrink and grow.
    pub elastic: bool,
    /// Priority.
    pub priority: u32,
    /// Its name.
    pub priority_class: String,
    /// Whether it may be evicted.
    pub preemptible: bool,
    /// Retries.
    pub backoff_limit: u32,
    /// After how long it is deleted once it has ended; none = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_after_ms: Option<u64>,
    /// Whether it is deleted when it is evicted for others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete_when_preempted: bool,
    /// Command line it was submitted with.
    pub command_line: Option<String>,
    /// Objects that values were taken from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Node pools, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_pools: Vec<String>,
    /// Types of nodes; empty = all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_types: Vec<String>,
    /// How close together its pods are to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyUseBody>,
    /// The manifest it was submitted as, JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
}

/// Pods that belong close together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyUseBody {
    /// Id of the network topology.
    pub id: String,
    /// Label of the level of which all are in one domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<String>,
    /// Label of the level of which they are in as few domains as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<String>,
}

/// Pods of a workload that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSetBody {
    /// `master` or `worker`; empty where all pods are alike.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// How many.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pods: u32,
    /// Fewest that make sense.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pods_min: u32,
    /// Most that run at a time; none = all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// Image.
    pub image: String,
    /// Entrypoint.
    pub command: Option<Vec<String>>,
    /// Arguments.
    pub args: Vec<String>,
    /// Environment.
    pub env: BTreeMap<String, String>,
    /// Values of credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretBody>,
    /// Working directory.
    pub working_dir: Option<String>,
    /// Which nodes they may go to.
    #[serde(default, skip_serializing_if = "PlaceBody::is_anywhere")]
    pub place: PlaceBody,
    /// GPUs of each pod.
    pub gpu: GpuBody,
    /// CPU thousandths of each pod.
    pub cpu_millis: u64,
    /// Bytes of memory of each pod.
    pub memory_bytes: u64,
    /// `never`, `on-failure` or `always`.
    pub restart: String,
    /// SIGTERM to SIGKILL.
    pub grace_ms: u64,
    /// Whether the main process reads what somebody who attaches types.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stdin: bool,
    /// Whether the main process has a terminal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tty: bool,
    /// What it needs around it.
    #[serde(default, skip_serializing_if = "crate::ContainerBody::is_default")]
    pub container: crate::ContainerBody,
}

const fn one() -> u32 {
    1
}

/// As serde asks.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_one(count: &u32) -> bool {
    *count == 1
}

/// How the pods of a workload work together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TogetherBody {
    /// `pytorch`, `mpi`, `tf`, `xgboost` or `jax`.
    pub framework: String,
    /// MPI ranks in each worker.
    pub slots_per_worker: u32,
    /// Whether the first pod begins only when all others run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_waits: bool,
    /// What becomes of those that run at the end: `running`, `all` or `none` are cleaned.
    pub clean: String,
}

/// A value of a credential that a pod gets, in a variable or a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretBody {
    /// The object that holds it.
    pub object: String,
    /// What it was named by.
    pub named: String,
    /// Which of its values; none = all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Environment variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// File, or folder for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Permissions of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// Image registry that it is the login of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Mount of the repository that it is the login of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Which of its values are the user and the password of the login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_keys: Option<(String, String)>,
}

/// GPUs of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuBody {
    /// Whole devices.
    Whole {
        /// How many.
        devices: u32,
    },
    /// The same share of each device.
    Share {
        /// Devices.
        devices: u32,
        /// Thousandths of each.
        millis: u64,
    },
    /// The same memory on each device.
    Memory {
        /// Devices.
        devices: u32,
        /// Bytes on each.
        bytes: u64,
    },
    /// MIG instances.
    Mig {
        /// Profiles and how many of each.
        instances: Vec<(String, u16)>,
    },
}

/// Which nodes pods may go to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlaceBody {
    /// One of these terms holds for the labels of the node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub affinity: Vec<Vec<RequirementBody>>,
    /// Taints that do not matter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<TolerationBody>,
    /// The label whose value is the same for all pods, and whether it must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<(String, bool)>,
}

impl PlaceBody {
    /// Whether every node will do.
    #[must_use]
    pub fn is_anywhere(&self) -> bool {
        *self == Self::default()
    }
}

/// What a label must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequirementBody {
    /// Name of the label.
    pub key: String,
    /// `in`, `not-in`, `exists`, `does-not-exist`, `gt` or `lt`.
    pub operator: String,
    /// What it is compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// A taint that does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TolerationBody {
    /// Its name; none = every name.
    pub key: Option<String>,
    /// Its value; none = every value.
    pub value: Option<String>,
    /// `no-schedule`, `prefer-no-schedule` or `no-execute`; none = every effect.
    pub effect: Option<String>,
}
