//! Container settings of a run besides its image: mounts, ports, user, limits and privileges. Owns:
//! the data. Each engine reports the settings that it cannot apply; none ignores a setting
//! silently.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Path of the temporary home folder of a run, for runs that request one.
pub const HOME_FOLDER: &str = "/home/runai-home";

/// Maximum number of processes and threads of a run. No training comes near it, and a fork bomb
/// leaves at least half of the process ids of the machine to others.
pub const TASKS_MAX: u64 = 16_384;

/// Container settings of a run. The default requests nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Container {
    /// Mounts in its file system, besides the image and its secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Ports it listens on that are reachable from outside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// User that it runs as.
    #[serde(flatten)]
    pub user: User,
    /// CPU and memory limits.
    #[serde(flatten)]
    pub limits: Limits,
    /// True if its shared memory may be as large as its memory; else the engine's small default.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared_memory_large: bool,
    /// When its image is pulled.
    #[serde(skip_serializing_if = "PullPolicy::is_default")]
    pub pull: PullPolicy,
    /// Privileges and restrictions.
    #[serde(skip_serializing_if = "Security::is_default")]
    pub security: Security,
}

/// A mount in the file system of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Absolute path of the mount in the run.
    pub to: PathBuf,
    /// Source of the mount.
    pub from: MountSource,
    /// True if the mount is read-only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// Source of a mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountSource {
    /// A folder or file of the node.
    HostPath {
        /// Its absolute path on the node, without links: if a link has replaced part of it since,
        /// nothing is mounted.
        path: PathBuf,
        /// Visibility of mounts that are made below the folder later.
        propagation: Propagation,
    },
    /// A volume that the engine keeps from one run to the next. It is created at its first use.
    Volume {
        /// Its name, unique in the engine, so different for each project.
        name: String,
        /// True if it belongs to one pod, and is deleted with it.
        ephemeral: bool,
    },
    /// A folder of an NFS server.
    Nfs {
        /// Name or address of the server.
        server: String,
        /// Folder on the server.
        path: String,
    },
    /// An empty folder that is deleted with the run.
    Scratch {
        /// Maximum size in bytes; `None` if only the disk limits it.
        bytes_max: Option<u64>,
        /// True if it lies in memory.
        in_memory: bool,
    },
    /// A copy of a Git repository, made when the run starts.
    Git(Repository),
    /// A copy of an S3 bucket, made when the run starts.
    S3(Bucket),
}

/// An S3 bucket, all of which is copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Its name on the server.
    #[serde(rename = "bucket")]
    pub name: String,
    /// Address of its server: `http://` or `https://`.
    pub address: String,
    /// Id and secret of an access key; `None` for a public bucket.
    #[serde(skip)]
    pub login: Option<Login>,
}

/// A Git repository, and the part of it that is copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// Its address: `http://`, `https://` or `git://`.
    #[serde(rename = "repository")]
    pub address: String,
    /// Branch; `None` for the default branch of the repository.
    pub branch: Option<String>,
    /// Commit or tag, which takes precedence over the branch; `None` for the newest of the branch.
    pub revision: Option<String>,
    /// User and password; `None` for a public repository.
    #[serde(skip)]
    pub login: Option<Login>,
}

/// Propagation of mounts between a folder of the node and the run, after the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Propagation {
    /// Later mounts are not propagated.
    #[default]
    None,
    /// Mounts on the node are visible in the run.
    HostToContainer,
    /// Mounts on either side are visible on the other.
    Bidirectional,
}

/// A port that a run listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(u16, Option<u16>)", into = "(u16, Option<u16>)")]
pub struct Port {
    /// Port number in the run.
    pub container: u16,
    /// Port number on the node; `None` if the engine chooses it.
    pub host: Option<u16>,
}

/// User and groups of a run; a field without a value is as the image sets it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct User {
    /// User id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Group id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// Supplementary group ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u32>,
}

/// Limits of a run; `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// CPU limit, in thousandths of a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis_max: Option<u64>,
    /// Memory limit, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
}

/// When an image is pulled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PullPolicy {
    /// Before every start.
    Always,
    /// When the node does not have it.
    #[default]
    IfNotPresent,
    /// Never: without it the run cannot start.
    Never,
}

/// Privileges and restrictions of a run. The default requests nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Security {
    /// Capabilities added, without `CAP_`: `SYS_PTRACE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// True if it has all privileges of the node's administrator.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub privileged: bool,
    /// True if it may gain privileges that its start did not have; `None` if the engine chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privilege_escalation: Option<bool>,
    /// True if it must not run as root: as root it does not start.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub not_root: bool,
    /// True if it can write only to its mounts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub read_only_root: bool,
    /// True if it uses the node's network.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub host_network: bool,
    /// True if it shares the node's shared memory and semaphores.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub host_ipc: bool,
    /// Filter of its system calls; `None` if the engine chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<Seccomp>,
}

/// Seccomp profile: the filter of system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seccomp {
    /// The default profile of the container runtime.
    RuntimeDefault,
    /// No filter.
    Unconfined,
}

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// User.
    pub user: String,
    /// Password.
    pub password: String,
}

/// Leaves out the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({:?})", self.user)
    }
}

/// Login at an image registry, to pull images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryLogin {
    /// The registry, as the credential names it: `ghcr.io`, `https://index.docker.io/v1/`.
    pub registry: String,
    /// User and password.
    pub login: Login,
}

impl Container {
    /// True if no field differs from the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Security {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl PullPolicy {
    /// As serde asks.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl From<(u16, Option<u16>)> for Port {
    fn from((container, host): (u16, Option<u16>)) -> Self {
        Self { container, host }
    }
}

impl From<Port> for (u16, Option<u16>) {
    fn from(port: Port) -> Self {
        (port.container, port.host)
    }
}
