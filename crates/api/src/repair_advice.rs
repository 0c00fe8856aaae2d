//! Advice to bring GPUs back into service. Owns: which of them are tried out, and the sentence and
//! the command of each that would let a waiting workload start. Does not know about: how the effect
//! is predicted.

use std::time::Duration;

use access::Caller;
use api_types::{AdvisedChange, RepairedGpus};
use convert::FurtherAdvice;
use http_kit::ApiError;
use serde_json::json;
use sim::Decision;
use view::{NodeView, View, WorkloadView};

use crate::ApiState;
use crate::prediction::predicted;
use crate::what_if::read_steps;

/// Most repairs of single GPUs, and of all of a node, that are tried out, each about as long as a
/// decision.
const SINGLE_MAX: usize = 4;
const NODES_MAX: usize = 2;
/// Maximum time for all of them: other reasons of a workload are of use without them.
const WAIT: Duration = Duration::from_secs(5);

/// Repair of GPUs of a node.
#[derive(Debug)]
struct Repair {
    node: String,
    gpus: Vec<u32>,
    /// The fault of the first.
    fault: String,
    simulated: bool,
}

impl Repair {
    fn of(node: &NodeView, gpus: Vec<u32>) -> Self {
        let fault = gpus.first().and_then(|gpu| node.gpu_faults.get(gpu));
        let fault = fault.map(|fault| format!(" ({} {fault})", fault.code().code));
        let (name, simulated) = (node.name.clone(), node.simulated);
        Self { node: name, gpus, fault: fault.unwrap_or_default(), simulated }
    }

    fn all_of(node: &NodeView) -> Self {
        Self::of(node, node.gpu_faults.keys().copied().collect())
    }
}

/// Repairs that may help.
struct Candidates {
    /// Repairs of single GPUs, then of all GPUs of a node. Each is tried by itself.
    apart: Vec<Repair>,
    /// Repairs of all nodes, which are tried together.
    together: Vec<Repair>,
}

impl Candidates {
    fn of(view: &View) -> Self {
        let nodes = || view.nodes.iter().filter(|node| !node.gpu_faults.is_empty());
        let single = |node: &NodeView| {
            let gpus = node.gpu_faults.keys();
            gpus.map(|gpu| Repair::of(node, vec![*gpu])).collect::<Vec<_>>()
        };
        let mut apart: Vec<_> = nodes().flat_map(|node| single(node)).take(SINGLE_MAX).collect();
        let several = nodes().filter(|node| node.gpu_faults.len() > 1).take(NODES_MAX);
        apart.extend(several.map(|node| Repair::all_of(node)));
        Self { apart, together: nodes().map(|node| Repair::all_of(node)).collect() }
    }
}

/// Repairs after which a waiting workload would start: of single GPUs, else of all of a node, else
/// of all. There are none where they cannot be tried out in time.
pub(crate) async fn repairs(
    by: (&ApiState, &Caller),
    may: bool,
    view: &View,
    workload: &WorkloadView,
) -> Vec<FurtherAdvice> {
    match tokio::time::timeout(WAIT, helpful(by, may, view, workload)).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            let why = &error.message();
            tracing::warn!(workload = %workload.id, why, "no repair of a GPU was tried out");
            Vec::new()
        }
        Err(_) => {
            tracing::warn!(workload = %workload.id, "repairs of GPUs were not tried out in time");
            Vec::new()
        }
    }
}

async fn helpful(
    by: (&ApiState, &Caller),
    may: bool,
    view: &View,
    workload: &WorkloadView,
) -> Result<Vec<FurtherAdvice>, ApiError> {
    if workload.spec.sets().all(|set| set.pod.gpu.counted().devices() == 0) {
        return Ok(Vec::new());
    }
    let Candidates { apart, together } = Candidates::of(view);
    let mut found: Vec<FurtherAdvice> = Vec::new();
    for repair in apart {
        let is_known = found.iter().any(|one| is_of(one, &repair.node));
        if is_known && repair.gpus.len() > 1 {
            continue;
        }
        found.extend(tried(by, view, workload, &[repair], may).await?);
    }
    if found.is_empty() && together.len() > 1 {
        found.extend(tried(by, view, workload, &together, may).await?);
    }
    Ok(found)
}

/// The advice to make some repairs together, if the workload would start then.
async fn tried(
    by: (&ApiState, &Caller),
    view: &View,
    workload: &WorkloadView,
    repairs: &[Repair],
    may: bool,
) -> Result<Option<FurtherAdvice>, ApiError> {
    let step = |one: &Repair| json!({"return_gpu": {"node": one.node, "gpus": one.gpus}});
    let steps: Vec<_> = repairs.iter().map(step).collect();
    let (_, decisions) = predicted(by, read_steps(&steps, Vec::new())?).await?;
    let starts = starts(view, workload, &decisions);
    let disturbs = disturbed(workload, &decisions);
    Ok(starts.then(|| advice((view, workload), repairs, may, disturbs)))
}

/// True for a repair of GPUs of this node.
fn is_of(advice: &FurtherAdvice, node: &str) -> bool {
    match &advice.change {
        AdvisedChange::Repair { repairs } => repairs.iter().any(|one| one.node == node),
        _ => false,
    }
}

fn starts(view: &View, workload: &WorkloadView, decisions: &[Decision]) -> bool {
    let revisions = workload.revisions.iter().filter_map(|id| view.revisions.get(id));
    let names: Vec<_> = revisions.map(|one| &one.spec.name).chain([&workload.spec.name]).collect();
    decisions.iter().any(|one| {
        matches!(one.kind, "bind" | "reserve")
            && one.project == workload.project_name
            && names.contains(&&one.workload)
    })
}

/// Number of other workloads that are stopped or moved.
fn disturbed(workload: &WorkloadView, decisions: &[Decision]) -> u32 {
    let is_other = |one: &&Decision| {
        (&one.project, &one.workload) != (&workload.project_name, &workload.spec.name)
    };
    let stops = |one: &&Decision| matches!(one.kind, "evict" | "move");
    let others = decisions.iter().filter(stops).filter(is_other);
    let mut others: Vec<_> = others.map(|one| (&one.project, &one.workload)).collect();
    others.sort_unstable();
    others.dedup();
    u32::try_from(others.len()).unwrap_or(u32::MAX)
}

impl Repair {
    /// Its GPUs, and the fault of the first.
    fn text(&self) -> String {
        let Self { node, gpus, fault, .. } = self;
        let numbers: Vec<_> = gpus.iter().map(ToString::to_string).collect();
        let plural = if gpus.len() == 1 { "" } else { "s" };
        format!("GPU{plural} {} of {node}{fault}", numbers.join(", "))
    }

    fn commands(&self) -> impl Iterator<Item = String> {
        let Self { node, gpus, simulated, .. } = self;
        let gpus = gpus.iter().filter(|_| *simulated);
        gpus.map(move |gpu| format!("elastane simulate gpu-heal {node} {gpu}"))
    }
}

fn advice(
    (view, workload): (&View, &WorkloadView),
    repairs: &[Repair],
    may: bool,
    disturbs: u32,
) -> FurtherAdvice {
    let others = match disturbs {
        0 => String::new(),
        1 => "; that stops or moves 1 other".to_owned(),
        many => format!("; that stops or moves {many} others"),
    };
    let ask = (!may).then(|| "an administrator of the cluster".to_owned());
    let asked = ask.as_ref().map_or_else(String::new, |who| format!("; ask {who}"));
    let gpus: Vec<_> = repairs.iter().map(Repair::text).collect();
    let gpus = gpus.join(", ");
    let repaired = |one: &Repair| RepairedGpus { node: one.node.clone(), gpus: one.gpus.clone() };
    let change = AdvisedChange::Repair { repairs: repairs.iter().map(repaired).collect() };
    FurtherAdvice {
        kind: "repair",
        request: convert::request_of(&change, workload, view).filter(|_| may),
        change,
        disturbs,
        message: format!("bring back into service {gpus}{others}{asked}"),
        commands: repairs.iter().filter(|_| may).flat_map(Repair::commands).collect(),
        ask,
    }
}
