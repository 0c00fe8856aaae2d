//! The detailed diagnosis of a pending workload. Owns: its JSON.

use model::{Cluster, WorkloadId};
use reasons::diagnosis::{Holder, NodeClass, Part};
use sched::Policy;
use serde::Serialize;
use units::Instant;

/// The detailed diagnosis of a pending workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// The nodes, by pod set and node class.
    pub nodes: Vec<Nodes>,
    /// Projects that hold the resources it needs, the largest amount first.
    pub projects: Vec<Held>,
    /// Workloads that hold the resources it needs.
    pub workloads: Vec<Held>,
    /// Reasons why nothing was moved or evicted for it.
    pub searches: Vec<Reason>,
    /// Single changes after which it would start, each tried out.
    pub advice: Vec<Advice>,
    /// `true` if all changes that might help were tried.
    pub complete: bool,
    /// The diagnosis as lines of text, without the reasons.
    #[serde(skip)]
    pub lines: Vec<String>,
}

/// A coded reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Stable code.
    pub code: &'static str,
    /// Short name of the code.
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
    /// Number of its pods to place, and the number of them that find a place.
    pub pods: u32,
    /// See `pods`.
    pub placeable: u32,
    /// Number of nodes.
    pub nodes: u32,
    /// Name of the first node of the class.
    pub like: String,
    /// Number of nodes with room for one pod.
    pub room: u32,
    /// Obstacles on the other nodes.
    pub failing: Vec<Failing>,
    /// The counts as text.
    pub message: String,
}

/// Nodes with a common obstacle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failing {
    /// Name of the obstacle.
    pub obstacle: &'static str,
    /// Number of nodes.
    pub nodes: u32,
    /// Amount that a pod needs; `None` if the obstacle has no amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needed: Option<u64>,
    /// Largest amount on one of the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
    /// Name of the node with the largest amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closest: Option<String>,
}

/// A project or workload that holds needed resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Project, or project and workload.
    pub name: String,
    /// Amount held.
    pub held: u64,
    /// `may_give` if the workload may be evicted, else the reason why not; `None` for projects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<&'static str>,
    /// The entry as text.
    pub message: String,
}

/// A change after which the workload would start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// Kind of the change.
    pub kind: &'static str,
    /// Number of workloads that would then be stopped or moved for it.
    pub disturbs: u32,
    /// The change as text.
    pub message: String,
    /// Commands that make the change, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

/// The diagnosis of a pending workload of this cluster; `None` if it is not pending. No command
/// changes a workload that a step submits: it exists on no server.
pub(crate) fn diagnosis(
    cluster: &Cluster,
    id: WorkloadId,
    now: Instant,
    policy: &Policy,
    submitted: bool,
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
        commands: match submitted {
            true => advice.commands(),
            false => advice.commands_before_submission(),
        },
    });
    Some(Diagnosis {
        nodes: classes.map(|(part, class)| nodes(part, class)).collect(),
        projects: queues.collect(),
        workloads: workloads.collect(),
        searches: searches.collect(),
        advice: advice.collect(),
        complete: found.complete,
        lines: match submitted {
            true => found.details(now),
            false => found.details_before_submission(now),
        },
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
        message: class.text(part.pods),
    }
}
