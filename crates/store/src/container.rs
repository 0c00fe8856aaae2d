//! What pods need around them, as it is stored. Owns: how its JSON looks on disk, for good: a field may
//! be added with a default, never renamed. No password is ever in it.

use serde::{Deserialize, Serialize};

/// What a pod needs around it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerBody {
    /// What lies in its file system.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountBody>,
    /// Ports inside, and outside where it is said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<(u16, Option<u16>)>,
    /// User id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Group id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// Further groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u32>,
    /// Most thousandths of a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis_max: Option<u64>,
    /// Most bytes of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
    /// Whether its shared memory may be large.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared_memory_large: bool,
    /// `always`, `if-not-present` or `never`; none = the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull: Option<String>,
    /// What it may do, and what not.
    #[serde(skip_serializing_if = "SecurityBody::is_default")]
    pub security: SecurityBody,
}

impl ContainerBody {
    /// Whether it asks for nothing.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What a pod may do, and what not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecurityBody {
    /// Capabilities added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Whether it may do everything.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub privileged: bool,
    /// Whether it may gain rights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privilege_escalation: Option<bool>,
    /// Whether it must not be root.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub not_root: bool,
    /// Whether it can write only to its mounts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub read_only_root: bool,
    /// Whether its network is the node's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub host_network: bool,
    /// Whether it shares memory with the node.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub host_ipc: bool,
    /// `runtime-default` or `unconfined`; none = the engine's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<String>,
}

impl SecurityBody {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Something in the file system of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountBody {
    /// Where.
    pub to: String,
    /// Whether it can only be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// What.
    pub from: MountSourceBody,
}

/// What a mount shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountSourceBody {
    /// A folder of the node.
    HostPath {
        /// Its path.
        path: String,
        /// `none`, `host-to-container` or `bidirectional`.
        propagation: String,
    },
    /// A volume that is kept.
    Volume {
        /// Its name.
        name: String,
        /// Whether it goes with the pod.
        ephemeral: bool,
    },
    /// A folder of an NFS server.
    Nfs {
        /// Server.
        server: String,
        /// Folder there.
        path: String,
    },
    /// An empty folder.
    Scratch {
        /// Most it may hold.
        bytes_max: Option<u64>,
        /// Whether it lies in memory.
        in_memory: bool,
    },
    /// A copy of a repository.
    Git {
        /// Address.
        repository: String,
        /// Branch.
        branch: Option<String>,
        /// Commit or tag.
        revision: Option<String>,
    },
    /// A copy of an S3 bucket.
    S3 {
        /// Its name.
        bucket: String,
        /// Its server.
        address: String,
    },
}
