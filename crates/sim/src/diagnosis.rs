//! The long answer to why a workload waits, in words and numbers of its own. Owns: the JSON of it.

use model::{Cluster, WorkloadId};
use reasons::diagnosis::{Holder, NodeClass, Part};
use sched::Policy;
use serde::Serialize;
use units::Instant;

/// Why a workload waits, at length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// The nodes, by pod set and class.
    pub nodes: Vec<Nodes>,
    /// Projects that hold what it needs, those with most first.
    pub projects: Vec<Held>,
    /// Workloads that do.
    pub workloads: Vec<Held>,
    /// Why nothing was moved or taken for it.
    pub searches: Vec<Reason>,
    /// Single changes that would let it start, each tried out.
    pub advice: Vec<Advice>,
    /// True if everything that might help was tried.
    pub complete: bool,
    /// All of it in lines for people, the reasons left out.
    #[serde(skip)]
    pub lines: Vec<String>,
}

/// A coded reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Stable code.
    pub code: &'static str,
    /// Its short name.
    pub name: &'static str,
    /// One sentence with the numbers.
    pub message: String,
}

/// A class of nodes, as one pod set sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Nodes {
    /// Name of the pod set.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub set: String,
    /// Pods of it that are due, and how many of them find a place.
    pub pods: u32,
    /// See `pods`.
    pub placeable: u32,
    /// Number of nodes.
    pub nodes: u32,
    /// The first of them.
    pub like: String,
    /// How many have room for one pod.
    pub room: u32,
    /// What stands in the way on the others.
    pub failing: Vec<Failing>,
    /// The same in words.
    pub message: String,
}

/// Nodes that fail for the same thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failing {
    /// What it is.
    pub obstacle: &'static str,
    /// Number of nodes.
    pub nodes: u32,
    /// What a pod needs of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needed: Option<u64>,
    /// The most there is on one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
    /// That node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closest: Option<String>,
}

/// Somebody who holds what is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Project, or project and workload.
    pub name: String,
    /// How much.
    pub held: u64,
    /// Whether it may be taken from: `may_give`, or why not. Not said of projects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<&'static str>,
    /// The same in words.
    pub message: String,
}

/// A change that would let it start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// What kind of change.
    pub kind: &'static str,
    /// Workloads that would be stopped or moved for it then.
    pub disturbs: u32,
    /// In words.
    pub message: String,
    /// What to type for it, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

/// Why a workload of this cluster waits; none if it does not.
pub(crate) fn diagnosis(
    cluster: &Cluster,
    id: WorkloadId,
    now: Instant,
    policy: &Policy,
) -> Option<Diagnosis> {
    let found = sched::diagnose(cluster, id, now, policy)?;
    let classes = found.parts.iter().flat_map(|part| part.classes.iter().map(move |c| (part, c)));
    let queues = found.holders.queues.iter().map(|queue| Held {
        name: queue.queue.name.clone(),
        held: queue.held,
        standing: None,
        message: queue.text(),
    });
    let workloads = found.holders.workloads.iter().map(|holder: &Holder| Held {
        name: holder.workload.to_string(),
        held: holder.held,
        standing: Some(holder.standing.name()),
        message: holder.text(now),
    });
    let searches = found.searches.iter().map(|search| Reason {
        code: search.code().code,
        name: search.code().name,
        message: search.text(now),
    });
    let advice = found.advice.iter().map(|advice| Advice {
        kind: advice.change.name(),
        disturbs: advice.disturbs,
        message: advice.text(now),
        commands: advice.commands(),
    });
    Some(Diagnosis {
        nodes: classes.map(|(part, class)| nodes(part, class)).collect(),
        projects: queues.collect(),
        workloads: workloads.collect(),
        searches: searches.collect(),
        advice: advice.collect(),
        complete: found.complete,
        lines: found.details(now),
    })
}

fn nodes(part: &Part, class: &NodeClass) -> Nodes {
    let failing = class.failing.iter().map(|failing| {
        let amount = |amount: u64| (failing.needed > 0).then_some(amount);
        Failing {
            obstacle: failing.obstacle.name(),
            nodes: failing.nodes,
            needed: amount(failing.needed),
            most: amount(failing.most),
            closest: (failing.needed > 0).then(|| failing.closest.clone()),
        }
    });
    Nodes {
        set: part.set.clone(),
        pods: part.pods,
        placeable: part.placeable,
        nodes: class.nodes,
        like: class.like.clone(),
        room: class.room,
        failing: failing.collect(),
        message: class.text(),
    }
}
