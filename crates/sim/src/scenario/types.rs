//! The objects of a scenario file, as written. Owns: names of keys and their defaults. Does not
//! know about: the model; `build` converts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::affinity::NodeAffinity;
use super::amount::{Count, CountLimit, Size, SizeLimit, Span};
use super::gpus::GpuAsk;
use super::is_default;
use super::list::OneOrMany;
use super::mig::Mig;
use super::parts::{Group, PodSet, TopologyConstraint};
use super::pod_affinity::PodAffinity;
use super::read::At;
use super::taint::{Taint, Toleration};

/// Behaviour of the environment of the scheduler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// Treatment of an evicted pod.
    #[serde(default)]
    pub evicted: Evicted,
    /// Time when a stopped pod terminates.
    #[serde(default)]
    pub releasing: Releasing,
    /// Times of decisions.
    #[serde(default)]
    pub schedule: Schedule,
}

/// Treatment of an evicted pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evicted {
    /// The pod waits for a place again.
    #[default]
    Pending,
    /// The pod does not come back.
    Gone,
}

/// Time when a stopped pod terminates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Releasing {
    /// Before the next cycle.
    #[default]
    AtOnce,
    /// At a step `gone`.
    UntilGone,
}

/// Times of decisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// After each step, until a decision changes nothing.
    #[default]
    ToRest,
    /// Only in steps `cycles`.
    ByHand,
}

/// A node, or several equal nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Name; with `count`, numbers from 1 are appended.
    pub name: String,
    /// Number of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Number of GPUs of each node.
    #[serde(default)]
    pub gpus: u32,
    /// Memory of each GPU: one size for all, or a list with one for each.
    #[serde(default = "gpu_memory")]
    pub gpu_memory: OneOrMany<Size>,
    /// MIG instances of its GPUs: one value for all, or a list with one for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<OneOrMany<Mig>>,
    /// Cores.
    #[serde(default = "node_cpu")]
    pub cpu: Count,
    /// Main memory.
    #[serde(default = "node_memory")]
    pub memory: Size,
    /// Maximum number of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_max: Option<u32>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Indices of GPUs that are out of service: present pods stay, and no others are placed there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_service: Vec<u32>,
    /// `true` if it accepts no new pods.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cordoned: bool,
    /// `true` if it accepts no new pods, and its pods are to leave.
    #[serde(default, skip_serializing_if = "is_default")]
    pub draining: bool,
}

fn gpu_memory() -> OneOrMany<Size> {
    OneOrMany::One(Size::new(16 << 30))
}
const fn node_cpu() -> Count {
    Count::new(100_000)
}
const fn node_memory() -> Size {
    Size::new(1 << 40)
}

/// Amounts per resource. As a quota, GPUs not given are 0 and the others unlimited; as a limit,
/// everything not given is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amounts {
    /// GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<CountLimit>,
    /// Cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CountLimit>,
    /// Main memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<SizeLimit>,
}

/// Weights per resource; 1 if not given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<u32>,
    /// Cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Main memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u32>,
}

/// A workload, or several equal workloads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Name, unique in its project; with `count`, numbers from 1 are appended.
    pub name: String,
    /// Name of its queue.
    pub project: String,
    /// Number of workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// GPUs of each pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuAsk>,
    /// Cores of each pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Count>,
    /// Main memory of each pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Priority in its project, higher first; if not given 50, or 100 if it is not preemptible; in
    /// profile `kai` always 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Priority of its pods above the minimum, if that is lower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_priority: Option<u32>,
    /// `true` if it may be evicted for others. If not given `true`; in profile `kai` `true` if its
    /// priority is below 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptible: Option<bool>,
    /// `true` if its number of GPUs may be halved to fit, and doubled into free GPUs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub elastic: bool,
    /// `false` if it cannot be made elastic, as a workspace; then no advice says so. If not given
    /// `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_be_elastic: Option<bool>,
    /// Number of pods; 1 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<u32>,
    /// Minimum number of pods; all of them if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_min: Option<u32>,
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
    /// Node pools it may use, the most preferred first; all of its pods are in one. A node's pool
    /// is its label `node-pool`, or `default`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
    /// Further required or preferred labels of nodes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub affinity: NodeAffinity,
    /// Taints that its pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Labels of its pods, to which pod affinity refers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Pods near which its pods are placed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pod_affinity: PodAffinity,
    /// Pods away from which its pods are placed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pod_anti_affinity: PodAffinity,
    /// Pod sets, if its pods are not equal; then the keys for equal pods are not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pod_sets: Vec<At<PodSet>>,
    /// Groups of its pod sets, parents before children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<At<Group>>,
    /// Minimum number of its groups and sets; all of them if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children_min: Option<u32>,
    /// Topology constraint on all its pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyConstraint>,
    /// Minimum wait before it may preempt others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption_delay: Option<Span>,
    /// `true` if it is suspended, and does not want a place.
    #[serde(default, skip_serializing_if = "is_default")]
    pub suspended: bool,
    /// `true` if its pods are gated until a step `ungate`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gated: bool,
    /// Number of runs after which it finishes: its pods end one by one, each after `runs_for`, and
    /// run again until then. `pods` is the number of parallel runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<u32>,
    /// Number of failures after which it fails; 6 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<u32>,
    /// Time since its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// Time since a pod of it was last placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Span>,
    /// Time since its last resize.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resized: Option<Span>,
    /// Time since its last checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpointed: Option<Span>,
    /// Number of times it was evicted, moved or resized.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restarts: u32,
    /// Time for which it has had fewer pods than its minimum, some of them running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<Span>,
    /// Time since its last eviction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_evicted: Option<Span>,
    /// Time until it is considered again (back-off).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Span>,
    /// Maximum run time after its last start; known to the scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Span>,
    /// Run time after its last start; not known to the scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_for: Option<Span>,
    /// Total run time of its pods until it finishes: twice as many pods take half as long. Not
    /// known to the scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Span>,
    /// Time after its start in which a pod does not work yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Span>,
    /// Treatment of its evicted pods; that of the world if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<Evicted>,
    /// Initial states of its pods, in order; pods without an entry wait. If one of them has a
    /// request of its own, each pod is a pod set, and `pods_min` of them are needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<At<Task>>,
}

/// Initial state of a pod.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// State.
    #[serde(default)]
    pub state: TaskState,
    /// Node of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Indices of the GPUs that it holds there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<u32>,
    /// Place reserved for its next run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Place>,
    /// GPU request, where that differs from the other pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuAsk>,
    /// Cores, where they differ from the other pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Count>,
    /// Main memory, where it differs from the other pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Labels that its node must have besides those of the workload.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
    /// Pods of a higher priority are placed before the others.
    #[serde(default, skip_serializing_if = "is_default")]
    pub task_priority: u32,
    /// `true` if it does not come back after its termination.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unwanted: bool,
}

/// Initial state of a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// Waits for a place, or for its reserved place.
    #[default]
    Pending,
    /// Holds its place.
    #[serde(alias = "bound", alias = "binding", alias = "allocated")]
    Running,
    /// Is being stopped; holds its place until it terminates.
    Releasing,
    /// Has ended, or does not want a place.
    #[serde(alias = "failed")]
    Ended,
    /// Has ended with success: the rest of its gang is not stale.
    Succeeded,
}

/// A node and GPUs of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Node.
    pub node: String,
    /// Indices of GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<u32>,
}

impl Task {
    /// `true` if it has a request of its own.
    pub(crate) fn is_unlike(&self) -> bool {
        let Self { gpu, cpu, memory, selector, task_priority, .. } = self;
        gpu.is_some()
            || cpu.is_some()
            || memory.is_some()
            || !selector.is_empty()
            || *task_priority > 0
    }
}

impl Node {
    /// A node without GPUs and with default values.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            count: None,
            gpus: 0,
            gpu_memory: gpu_memory(),
            mig: None,
            cpu: node_cpu(),
            memory: node_memory(),
            pods_max: None,
            labels: BTreeMap::new(),
            taints: Vec::new(),
            out_of_service: Vec::new(),
            cordoned: false,
            draining: false,
        }
    }
}

impl Workload {
    /// One preemptible pod without GPUs.
    #[must_use]
    pub fn named(name: &str, project: &str) -> Self {
        Self { name: name.to_owned(), project: project.to_owned(), ..Self::default() }
    }

    /// Sets its pod sets: one set without a name in its own keys, others in a list.
    pub fn set_pods(&mut self, mut sets: Vec<PodSet>) {
        match sets.pop() {
            Some(only) if sets.is_empty() && only.name.is_empty() => {
                self.gpu = Some(only.gpu);
                (self.cpu, self.memory) = (only.cpu, only.memory);
                (self.pods, self.pods_min) = (Some(only.pods), only.pods_min);
                self.selector = only.selector;
                self.affinity = only.affinity;
                self.tolerations = only.tolerations;
                self.labels = only.labels;
                self.pod_affinity = only.pod_affinity;
                self.pod_anti_affinity = only.pod_anti_affinity;
                self.topology = self.topology.take().or(only.topology);
            }
            last => self.pod_sets = sets.into_iter().chain(last).map(At::from).collect(),
        }
    }

    /// Names of its keys for equal pods.
    pub(crate) fn own_keys(&self) -> Vec<&'static str> {
        let given = [
            ("gpu", self.gpu.is_some()),
            ("cpu", self.cpu.is_some()),
            ("memory", self.memory.is_some()),
            ("pods", self.pods.is_some()),
            ("pods_min", self.pods_min.is_some()),
            ("selector", !self.selector.is_empty()),
            ("affinity", !is_default(&self.affinity)),
            ("tolerations", !self.tolerations.is_empty()),
            ("labels", !self.labels.is_empty()),
            ("pod_affinity", !self.pod_affinity.is_empty()),
            ("pod_anti_affinity", !self.pod_anti_affinity.is_empty()),
        ];
        given.iter().filter(|(_, is)| *is).map(|(key, _)| *key).collect()
    }
}
