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

/// How the world around the scheduler behaves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// What becomes of an evicted pod.
    #[serde(default)]
    pub evicted: Evicted,
    /// When a pod that is being stopped is gone.
    #[serde(default)]
    pub releasing: Releasing,
    /// When the scheduler runs.
    #[serde(default)]
    pub schedule: Schedule,
}

/// What becomes of an evicted pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evicted {
    /// It waits for a place again.
    #[default]
    Pending,
    /// It does not come back.
    Gone,
}

/// When a pod that is being stopped is gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Releasing {
    /// Before the next cycle.
    #[default]
    AtOnce,
    /// At a step `gone`.
    UntilGone,
}

/// When the scheduler runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// After each step, until nothing more happens.
    #[default]
    ToRest,
    /// Only at steps `cycles`.
    ByHand,
}

/// A machine, or several that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Name; with `count`, numbers from 1 are appended.
    pub name: String,
    /// How many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// GPUs of each.
    #[serde(default)]
    pub gpus: u32,
    /// Memory of each GPU: one size for all, or a list with one for each.
    #[serde(default = "gpu_memory")]
    pub gpu_memory: OneOrMany<Size>,
    /// The MIG instances that its GPUs are divided into: each of them, or a list with one for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<OneOrMany<Mig>>,
    /// Cores.
    #[serde(default = "node_cpu")]
    pub cpu: Count,
    /// Main memory.
    #[serde(default = "node_memory")]
    pub memory: Size,
    /// Most pods at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_max: Option<u32>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Indices of GPUs that are out of service: pods that are there stay, and no others come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_service: Vec<u32>,
    /// True if new pods may not come.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cordoned: bool,
    /// True if its pods are to leave it, too.
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

/// A workload, or several that are alike.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Name, unique in its project; with `count`, numbers from 1 are appended.
    pub name: String,
    /// The queue it belongs to.
    pub project: String,
    /// How many.
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
    /// Higher goes first inside its project; if not given 50, and 100 for what is not
    /// preemptible; in profile `kai` always 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// The same for its pods above the minimum, if that is lower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_priority: Option<u32>,
    /// True if it may be evicted for others. If not given it may; in profile `kai` it may if its
    /// priority is below 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptible: Option<bool>,
    /// True if its number of GPUs may be halved to fit and doubled to fill.
    #[serde(default, skip_serializing_if = "is_default")]
    pub elastic: bool,
    /// Pods; 1 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<u32>,
    /// Fewest pods that make sense together; all of them if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_min: Option<u32>,
    /// Labels a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
    /// Node pools it may go to, the best first; all of its pods are in one. A node's pool is its
    /// label `node-pool`, or `default`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
    /// More that a node's labels must be, or should be.
    #[serde(default, skip_serializing_if = "is_default")]
    pub affinity: NodeAffinity,
    /// Taints that do not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Labels of its pods, by which others ask for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Pods that its pods belong with.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pod_affinity: PodAffinity,
    /// Pods that its pods keep away from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pod_anti_affinity: PodAffinity,
    /// Pods that are not alike, set by set; then the keys for one kind of pod are not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pod_sets: Vec<At<PodSet>>,
    /// Groups of its pod sets, those above before those in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<At<Group>>,
    /// Fewest of its groups and sets that make sense together; all of them if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children_min: Option<u32>,
    /// How close together all its pods belong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyConstraint>,
    /// Nobody is stopped for it before it has waited so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption_delay: Option<Span>,
    /// True if it is suspended: it wants no place.
    #[serde(default, skip_serializing_if = "is_default")]
    pub suspended: bool,
    /// True if something outside holds its pods back until a step `ungate`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gated: bool,
    /// Its pods end one by one, each after `runs_for`, and run again until so many runs have
    /// finished; `pods` is how many run at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<u32>,
    /// Failures after which it is given up; 6 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<u32>,
    /// How long ago it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
    /// How long ago a pod of it was last given a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Span>,
    /// How long ago it last changed size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resized: Option<Span>,
    /// How long ago it last saved its progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpointed: Option<Span>,
    /// How often it was stopped for others, moved or resized.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restarts: u32,
    /// For how long it has had fewer pods than its minimum, some of them running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<Span>,
    /// How long ago it was last evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_evicted: Option<Span>,
    /// In how long it is looked at first (back-off).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Span>,
    /// It is over so long after its last start at the latest; the scheduler knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Span>,
    /// It finishes when it has run so long since its last start; the scheduler does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_for: Option<Span>,
    /// It finishes when its running pods have worked so long together: twice as many take half as
    /// long. The scheduler does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Span>,
    /// For so long after its start a pod does not work yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Span>,
    /// What becomes of its evicted pods; as the world says if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<Evicted>,
    /// Where its pods are at the start, in order; pods without an entry wait. If one of them asks
    /// for something of its own, each pod is a pod set, and `pods_min` of them are needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<At<Task>>,
}

/// Where a pod is at the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// State.
    #[serde(default)]
    pub state: TaskState,
    /// The node it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Indices of the GPUs it holds there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<u32>,
    /// The place reserved for its next run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Place>,
    /// What it asks for itself, where that differs from the other pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuAsk>,
    /// Its own cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Count>,
    /// Its own main memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Labels its node must have beside those of the workload.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
    /// Pods of a higher one are placed before the others.
    #[serde(default, skip_serializing_if = "is_default")]
    pub task_priority: u32,
    /// It does not come back once it is gone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unwanted: bool,
}

/// State of a pod at the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// Waits for a place, or for the one reserved for it.
    #[default]
    Pending,
    /// Holds its place.
    #[serde(alias = "bound", alias = "binding", alias = "allocated")]
    Running,
    /// Is being stopped; holds its place until it is gone.
    Releasing,
    /// Has ended, or is not wanted.
    #[serde(alias = "failed")]
    Ended,
    /// Has ended well: what is left of its gang is not stale.
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
    /// True if it asks for something of its own.
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
    /// A node without GPUs and with the usual rest.
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

    /// Gives it its pods: one set without a name in its own keys, others in a list.
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

    /// Which keys for one kind of pod it has.
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
