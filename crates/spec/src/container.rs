//! What a run needs around it besides its image: what lies in its file system, ports, its user,
//! limits and rights. Owns: the data. Each engine says what of it it cannot do; none leaves
//! anything out in silence.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where the temporary home of a run is, for those that ask for one.
pub const HOME_FOLDER: &str = "/home/runai-home";

/// Most processes and threads of a run. No training comes near it, and a fork bomb leaves the
/// machine, which has at least twice as many ids, to the others.
pub const TASKS_MAX: u64 = 16_384;

/// What a run needs around it. The default asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Container {
    /// What lies in its file system, besides the image and its secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Ports it listens on that are to be reached from outside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// Who it runs as.
    #[serde(flatten)]
    pub user: User,
    /// Most it may use.
    #[serde(flatten)]
    pub limits: Limits,
    /// True if its shared memory may be as large as its memory; else the engine's small default.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared_memory_large: bool,
    /// When its image is pulled.
    #[serde(skip_serializing_if = "PullPolicy::is_default")]
    pub pull: PullPolicy,
    /// What it may do beyond others, and what not.
    #[serde(skip_serializing_if = "Security::is_default")]
    pub security: Security,
}

/// Something in the file system of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where a run finds it, an absolute path.
    pub to: PathBuf,
    /// What it is.
    pub from: MountSource,
    /// True if it can only be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// What a mount shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountSource {
    /// A folder or file of the node.
    HostPath {
        /// Its absolute path there, without links: where one has taken its place since, nothing is
        /// mounted.
        path: PathBuf,
        /// Whether mounts made below it later are seen.
        propagation: Propagation,
    },
    /// A volume that the engine keeps from one run to the next. It is made when it is first used.
    Volume {
        /// Its name, unique in the engine: those of different projects differ.
        name: String,
        /// True if it belongs to the pod alone, and goes with it.
        ephemeral: bool,
    },
    /// A folder of an NFS server.
    Nfs {
        /// Server.
        server: String,
        /// Folder there.
        path: String,
    },
    /// An empty folder that ends with the run.
    Scratch {
        /// Most it may hold; none = what there is.
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
    /// What its server calls it.
    #[serde(rename = "bucket")]
    pub name: String,
    /// Its server: `http://` or `https://`.
    pub address: String,
    /// Id and secret of an access key, for a bucket that is not open to all.
    #[serde(skip)]
    pub login: Option<Login>,
}

/// A Git repository, and what of it is copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// Where it is: `http://`, `https://` or `git://`.
    #[serde(rename = "repository")]
    pub address: String,
    /// Branch; none = the repository's own choice.
    pub branch: Option<String>,
    /// Commit or tag, which goes before the branch; none = the newest of the branch.
    pub revision: Option<String>,
    /// For a repository that is not open to all.
    #[serde(skip)]
    pub login: Option<Login>,
}

/// Whether mounts made below a folder of the node after the start are seen on the other side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Propagation {
    /// No.
    #[default]
    None,
    /// Those of the node are seen in the run.
    HostToContainer,
    /// Those of each are seen by the other.
    Bidirectional,
}

/// A port that a run listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(u16, Option<u16>)", into = "(u16, Option<u16>)")]
pub struct Port {
    /// In the run.
    pub container: u16,
    /// On the node; none = the engine's choice.
    pub host: Option<u16>,
}

/// Who a run runs as; what is not said is as the image says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct User {
    /// User id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Group id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// Further groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u32>,
}

/// Most a run may use; what is not said is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Thousandths of a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis_max: Option<u64>,
    /// Bytes of memory.
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

/// What a run may do beyond others, and what not. The default asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Security {
    /// Capabilities added, without `CAP_`: `SYS_PTRACE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// True if it may do all that the node's administrator may.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub privileged: bool,
    /// True if it may gain rights that its start did not have; none = the engine's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privilege_escalation: Option<bool>,
    /// True if it must not be root: with root it does not start.
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
    /// What filters its system calls; none = the engine's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<Seccomp>,
}

/// What filters system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seccomp {
    /// What the runtime has for everyone.
    RuntimeDefault,
    /// Nothing.
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

/// Without the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({:?})", self.user)
    }
}

/// Who may pull from an image registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryLogin {
    /// The registry, as the credential names it: `ghcr.io`, `https://index.docker.io/v1/`.
    pub registry: String,
    /// Who.
    pub login: Login,
}

impl Container {
    /// True if it asks for nothing.
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
