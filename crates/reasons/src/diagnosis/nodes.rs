//! Nodes on which a pod does not fit. Owns: the counts of each class of nodes, and the sentence of
//! it. Does not know about: how the nodes are examined.

use model::{MigProfile, Taint};
use units::{Resources, format_bytes, format_millis};

use super::change::key_and_value;
use super::cores;

/// The pods of one set that are next to be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Name of the pod set; empty when there is only one.
    pub set: String,
    /// Number of pods to place.
    pub pods: u32,
    /// Number of pods that can be placed, quotas and limits aside.
    pub placeable: u32,
    /// Classes of nodes, the largest first.
    pub classes: Vec<NodeClass>,
}

impl Part {
    /// True if every pod finds a place and no node lacks room.
    pub(super) fn fits(&self) -> bool {
        self.placeable == self.pods && self.classes.iter().all(|class| class.failing.is_empty())
    }

    /// One line for the set and one for each class of nodes.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let Self { set, pods, placeable, classes } = self;
        let name = if set.is_empty() { String::new() } else { format!("{set}: ") };
        let first = match (pods, placeable) {
            // Each node has room for it alone.
            (1, 0) if !set.is_empty() && classes.iter().all(|class| class.failing.is_empty()) => {
                Some(format!("{name}its pod finds no place beside the others"))
            }
            (1, _) => None,
            _ => Some(format!("{name}{placeable} of {pods} pods that are due find a place")),
        };
        let indent = if first.is_some() || name.is_empty() { "" } else { name.as_str() };
        let each = classes.iter().map(|class| format!("{indent}{}", class.text(*pods)));
        first.into_iter().chain(each).collect()
    }
}

/// Nodes with equal properties, as far as they matter to the pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeClass {
    /// 1; in the last entry the number of small classes summed in it.
    pub classes: u32,
    /// Number of nodes.
    pub nodes: u32,
    /// Name of the first of them.
    pub like: String,
    /// Number of GPUs of the first node.
    pub gpus: u32,
    /// MIG instances of the first node, by profile; they are among its GPUs.
    pub mig: Vec<(MigProfile, u32)>,
    /// MIG instances of the first node that are assigned to parts of GPUs: thousandths of a GPU
    /// that each holds, its bytes, and their number; they are among its GPUs.
    pub parts: Vec<(u64, u64, u32)>,
    /// Memory of its largest GPU, in bytes.
    pub gpu_memory_bytes: u64,
    /// Capacity of a node.
    pub capacity: Resources,
    /// Its labels that the constraints of the workload name.
    pub labels: Vec<(String, String)>,
    /// Its taints that the workload does not tolerate; empty for several classes.
    pub taints: Vec<Taint>,
    /// Number of nodes with room for one pod.
    pub room: u32,
    /// Obstacles on the other nodes.
    pub failing: Vec<Failing>,
}

impl NodeClass {
    /// Text in one sentence, for one of this number of pods.
    #[must_use]
    pub fn text(&self, pods: u32) -> String {
        let Self {
            classes,
            nodes,
            like,
            gpus,
            mig,
            parts,
            gpu_memory_bytes,
            capacity,
            labels,
            taints,
            room,
            failing,
        } = self;
        let instances: u32 = mig.iter().map(|(_, count)| count).sum();
        let instances = instances + parts.iter().map(|(.., count)| count).sum::<u32>();
        let who = match (*classes, *nodes) {
            (1, 1) => format!("1 node, {like}"),
            (1, nodes) => format!("{nodes} nodes like {like}"),
            (_, nodes) => format!("{nodes} nodes of other kinds, {like} and so on"),
        };
        let mut has = Vec::new();
        if *classes == 1 {
            has.push(match gpus - instances {
                0 if instances > 0 => "no whole GPU".to_owned(),
                0 => "no GPU".to_owned(),
                _ if instances > 0 => units::counted(gpus - instances, "whole GPU"),
                1 => format!("1 GPU of {}", format_bytes(*gpu_memory_bytes)),
                _ => format!("{gpus} GPUs of {}", format_bytes(*gpu_memory_bytes)),
            });
            has.extend(mig.iter().map(|(profile, count)| format!("{count} × {profile}")));
            has.extend(parts.iter().map(|&(millis, bytes, count)| {
                let (millis, bytes) = (format_millis(millis), format_bytes(bytes));
                format!("{count} × MIG instance for {millis} of a GPU, {bytes}")
            }));
            has.push(cores(capacity.cpu_millis));
            has.push(format_bytes(capacity.memory_bytes));
            has.extend(labels.iter().map(|(key, value)| format!("{key}={value}")));
        }
        let has = if has.is_empty() { String::new() } else { format!(" ({})", has.join(", ")) };
        let alone = *nodes == 1;
        let room_for = if pods > 1 { " for a pod" } else { "" };
        let mut said: Vec<_> = failing.iter().map(|failing| failing.text(*nodes, taints)).collect();
        if *room > 0 {
            said.push(match room {
                _ if alone => format!("has room{room_for}"),
                room if room == nodes && room_for.is_empty() => "all have room".to_owned(),
                room if room == nodes => format!("each has room{room_for}"),
                1 => format!("1 has room{room_for}"),
                room => format!("{room} have room{room_for}"),
            });
        }
        format!("{who}{has}: {}", said.join("; "))
    }
}

/// Nodes of a class that fail at the same obstacle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// The first obstacle.
    pub obstacle: Obstacle,
    /// Number of nodes.
    pub nodes: u32,
    /// Amount that the pod needs, in the unit of the obstacle; 0 if it has no amount.
    pub needed: u64,
    /// Largest amount on one of the nodes.
    pub most: u64,
    /// Name of this node.
    pub closest: String,
}

impl Failing {
    fn text(&self, of: u32, taints: &[Taint]) -> String {
        let Self { obstacle, nodes, needed, most, closest } = self;
        let alone = of == 1;
        let count = match *nodes {
            _ if alone => String::new(),
            nodes if nodes == of => "all ".to_owned(),
            nodes => format!("{nodes} "),
        };
        let verb = |one: &str, many: &str| {
            if alone || *nodes == 1 { one.to_owned() } else { many.to_owned() }
        };
        let amounts = |show: fn(u64) -> String| {
            let at = if alone { String::new() } else { format!(" on {closest}") };
            let most_is = if alone { "has" } else { "at most" };
            format!("needs {}, {most_is} {}{at}", show(*needed), show(*most))
        };
        let plain: fn(u64) -> String = |count| count.to_string();
        let (what, amounts) = match obstacle {
            Obstacle::Cordoned => return format!("{count}{} cordoned", verb("is", "are")),
            Obstacle::Selector => {
                return format!("{count}{} a label that it needs", verb("lacks", "lack"));
            }
            Obstacle::Affinity => {
                return format!("{count}{} outside its affinity", verb("is", "are"));
            }
            Obstacle::Pool => {
                return format!("{count}{} in another node pool", verb("is", "are"));
            }
            Obstacle::Taint => {
                return format!("{count}{} {}", verb("has", "have"), repelled(taints));
            }
            Obstacle::PodAffinity => {
                return format!("{count}{} without pods that it must be with", verb("is", "are"));
            }
            Obstacle::PodAntiAffinity => {
                return format!("{count}{} pods that it must not be with", verb("has", "have"));
            }
            Obstacle::Repelled => {
                return format!("{count}{} pods that must not be with it", verb("has", "have"));
            }
            Obstacle::Pods => return format!("{count}{} no more pods", verb("takes", "take")),
            Obstacle::Other => return format!("{count}{} ruled out", verb("is", "are")),
            Obstacle::Gpus => ("GPUs, even when empty", amounts(plain)),
            Obstacle::MigInstances => ("MIG instances, even when empty", amounts(plain)),
            Obstacle::GpuMemory => ("GPU memory, even when empty", amounts(format_bytes)),
            Obstacle::Cpu => ("cores, even when empty", amounts(format_millis)),
            Obstacle::Memory => ("memory, even when empty", amounts(format_bytes)),
            Obstacle::InService => ("GPUs in service", amounts(plain)),
            Obstacle::FreeGpus => ("free GPUs", amounts(plain)),
            Obstacle::FreeMigInstances => ("free MIG instances", amounts(plain)),
            Obstacle::FreeShare => ("of a GPU free", amounts(format_millis)),
            Obstacle::FreeCpu => ("free cores", amounts(format_millis)),
            Obstacle::FreeMemory => ("free memory", amounts(format_bytes)),
        };
        let few = match obstacle {
            Obstacle::Gpus
            | Obstacle::InService
            | Obstacle::FreeGpus
            | Obstacle::MigInstances
            | Obstacle::FreeMigInstances
            | Obstacle::Cpu
            | Obstacle::FreeCpu => "few",
            _ => "little",
        };
        format!("{count}{} too {few} {what} ({amounts})", verb("has", "have"))
    }
}

/// The taints of nodes that a pod does not tolerate, none if they differ.
fn repelled(taints: &[Taint]) -> String {
    let names: Vec<_> = taints.iter().map(key_and_value).collect();
    let names = names.join(" and ");
    match taints {
        [] => "a taint that it does not tolerate".to_owned(),
        [_] => format!("the taint {names}, which it does not tolerate"),
        _ => format!("the taints {names}, which it does not tolerate"),
    }
}

/// Obstacle for a pod on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// The node is cordoned.
    Cordoned,
    /// A label that it selects is missing or different.
    Selector,
    /// None of its affinity terms matches.
    Affinity,
    /// The node is in none of its node pools.
    Pool,
    /// A taint that it does not tolerate.
    Taint,
    /// No pod that its affinity requires.
    PodAffinity,
    /// A pod that its anti-affinity excludes.
    PodAntiAffinity,
    /// A pod whose anti-affinity excludes it.
    Repelled,
    /// Fewer GPUs than it needs, even when empty.
    Gpus,
    /// Fewer MIG instances than it needs, even when empty.
    MigInstances,
    /// GPUs with too little memory, in bytes.
    GpuMemory,
    /// Too few cores even when empty, in thousandths.
    Cpu,
    /// Too little memory even when empty, in bytes.
    Memory,
    /// Too few GPUs or MIG instances in service.
    InService,
    /// Too few whole GPUs free.
    FreeGpus,
    /// Too few MIG instances free.
    FreeMigInstances,
    /// No GPU with enough of its share free, in thousandths.
    FreeShare,
    /// Too few cores free, in thousandths.
    FreeCpu,
    /// Too little memory free, in bytes.
    FreeMemory,
    /// The maximum number of pods is reached.
    Pods,
    /// Any other obstacle.
    Other,
}

impl Obstacle {
    /// Short stable name of the obstacle.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cordoned => "cordoned",
            Self::Selector => "selector",
            Self::Affinity => "affinity",
            Self::Pool => "node_pool",
            Self::Taint => "taint",
            Self::PodAffinity => "pod_affinity",
            Self::PodAntiAffinity => "pod_anti_affinity",
            Self::Repelled => "repelled",
            Self::Gpus => "gpus",
            Self::MigInstances => "mig_instances",
            Self::GpuMemory => "gpu_memory",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::InService => "in_service",
            Self::FreeGpus => "free_gpus",
            Self::FreeMigInstances => "free_mig_instances",
            Self::FreeShare => "free_share",
            Self::FreeCpu => "free_cpu",
            Self::FreeMemory => "free_memory",
            Self::Pods => "pods",
            Self::Other => "other",
        }
    }
}
