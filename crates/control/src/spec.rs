//! What the pods of a workload are. Owns: sets of pods that are alike, and what one pod runs and
//! asks for. Validation of values happens in `admission`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use engine::{Container, Framework, SecretPlace};
use model::{MigRequest, Term, Toleration};

use crate::command::WorkloadSpec;

/// Pods that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSet {
    /// What they are among the others, `master` or `worker`; empty where all pods are alike.
    pub role: String,
    /// How many there are.
    pub pods: u32,
    /// Fewest of them that make sense: so many of every set start, or none.
    pub pods_min: u32,
    /// Most that run at a time; none = all of them. Those that are not yet done take turns.
    pub at_once: Option<u32>,
    /// What each of them is.
    pub pod: PodSpec,
}

impl PodSet {
    /// One pod.
    #[must_use]
    pub const fn one(pod: PodSpec) -> Self {
        Self { role: String::new(), pods: 1, pods_min: 1, at_once: None, pod }
    }

    /// How many of them are to run.
    #[must_use]
    pub fn wanted(&self) -> u32 {
        self.at_once.map_or(self.pods, |most| most.min(self.pods))
    }
}

/// What a pod runs and asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub secrets: Vec<SecretUse>,
    /// Working directory.
    pub working_dir: Option<String>,
    /// Which nodes it may go to.
    pub place: Place,
    /// GPUs.
    pub gpu: GpuSpec,
    /// CPU request, thousandths of a core.
    pub cpu_millis: u64,
    /// Memory request, bytes.
    pub memory_bytes: u64,
    /// What happens when the process ends.
    pub restart: Restart,
    /// SIGTERM to SIGKILL, milliseconds.
    pub grace_ms: u64,
    /// Whether the main process reads what somebody who attaches types.
    pub stdin: bool,
    /// Whether the main process has a terminal.
    pub tty: bool,
    /// What it needs around it, without logins: those are among the secrets.
    pub container: Container,
}

/// Which nodes a pod may go to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// One of these terms holds for the labels of the node; none = every node will do.
    pub affinity: Vec<Term>,
    /// Taints that do not matter.
    pub tolerations: Vec<Toleration>,
    /// How close it belongs to the others of its workload.
    pub near: Option<Near>,
}

/// How close together the pods of a workload belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Near {
    /// The label of nodes whose value is the same for all of them.
    pub key: String,
    /// Whether they must be.
    pub required: bool,
}

/// A value of a credential that a pod gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUse {
    /// The object that holds it, `<kind>/<id>`.
    pub object: String,
    /// What it was named by.
    pub named: String,
    /// Which of its values; none: each as a file of its name in the folder that `to` names, or those
    /// of a login.
    pub key: Option<String>,
    /// Who gets it.
    pub to: SecretTo,
}

/// Who gets a value of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretTo {
    /// The run, here.
    Run(SecretPlace),
    /// Whoever pulls its image from this registry.
    Registry(String),
    /// Whoever copies a repository or a bucket.
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

/// GPUs of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuSpec {
    /// So many whole devices; 0 for CPU-only work.
    Whole(u32),
    /// The same share of each of so many devices.
    Share {
        /// Devices.
        devices: u32,
        /// Thousandths of each, 1–999.
        millis: u64,
    },
    /// So much memory on each of so many devices.
    Memory {
        /// Devices.
        devices: u32,
        /// Bytes on each.
        bytes: u64,
    },
    /// MIG instances.
    Mig(MigRequest),
}

impl GpuSpec {
    /// Devices, whole or in part.
    #[must_use]
    pub fn devices(self) -> u32 {
        match self {
            Self::Whole(devices) | Self::Share { devices, .. } | Self::Memory { devices, .. } => {
                devices
            }
            Self::Mig(instances) => instances.instances(),
        }
    }
}

/// What happens when the main process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Exit 0 completes the pod; a failure is retried as a new run, up to the back-off limit. Pods
    /// that work together are all started anew.
    Never,
    /// A failure restarts the process in place after a growing delay, up to the back-off limit; that of a
    /// workspace for ever.
    OnFailure,
    /// Any exit restarts the process in place.
    Always,
}

/// How pods work together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Together {
    /// By whose rules they find each other, and whose end is the end of all.
    pub framework: Framework,
    /// MPI ranks in each worker.
    pub slots_per_worker: u32,
    /// Whether the first pod begins only when all others run.
    pub first_waits: bool,
    /// What happens to those that still run when the workload has ended.
    pub clean: CleanPods,
}

/// What happens to pods when their workload has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyUse {
    /// Id of the network topology.
    pub id: String,
    /// Label of the level of which all are in one domain.
    pub required: Option<String>,
    /// Label of the level of which they are in as few domains as possible.
    pub preferred: Option<String>,
}

impl WorkloadSpec {
    /// The sets of its pods, for change.
    pub fn sets_mut(&mut self) -> impl Iterator<Item = &mut PodSet> {
        std::iter::once(&mut self.pods).chain(&mut self.more)
    }

    /// The sets of its pods, in order; the pods are numbered in this order.
    pub fn sets(&self) -> impl Iterator<Item = &PodSet> + Clone {
        std::iter::once(&self.pods).chain(&self.more)
    }

    /// What its pods get of credentials.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretUse> {
        self.sets().flat_map(|set| &set.pod.secrets)
    }

    /// The set of the pod with this number, and its number there.
    #[must_use]
    pub fn set_of(&self, number: usize) -> (&PodSet, usize) {
        let (mut at, mut left) = (&self.pods, number);
        for set in self.sets() {
            at = set;
            match left.checked_sub(set.pods as usize) {
                Some(rest) => left = rest,
                None => break,
            }
        }
        (at, left)
    }

    /// How many pods it has.
    #[must_use]
    pub fn pod_count(&self) -> u32 {
        self.sets().map(|set| set.pods).fold(0, u32::saturating_add)
    }

    /// The set of this role, if it has one.
    #[must_use]
    pub fn set_named(&self, role: &str) -> Option<&PodSet> {
        self.sets().find(|set| set.role == role)
    }
}
