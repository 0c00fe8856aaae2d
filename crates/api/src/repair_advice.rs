//! Advice to bring GPUs back into service. Owns: which of them are tried out, and the sentence and
//! the command of each that would let a waiting workload start. Does not know about: how the effect
//! is predicted.

use std::sync::Arc;

use convert::FurtherAdvice;
use http_kit::ApiError;
use serde_json::json;
use sim::Decision;
use view::{NodeView, View, WorkloadView};

use crate::ApiState;
use crate::routes::predicted;
use crate::what_if::read_steps;

/// Most changes that are tried out, each about as long as a decision.
const TRIED_MAX: usize = 6;

/// GPUs of a node that are out of service.
#[derive(Debug)]
struct Repair {
    node: String,
    gpus: Vec<u32>,
    /// The fault of the first.
    fault: String,
    simulated: bool,
}

/// Repairs that are tried out: of single GPUs, then of all of a node.
fn candidates(view: &View) -> Vec<Repair> {
    let repair = |node: &NodeView, gpus: Vec<u32>| {
        let fault = gpus.first().and_then(|gpu| node.gpu_faults.get(gpu));
        let fault = fault.map(|fault| format!(" ({} {fault})", fault.code().code));
        let (name, simulated) = (node.name.clone(), node.simulated);
        Repair { node: name, gpus, fault: fault.unwrap_or_default(), simulated }
    };
    let mut all = Vec::new();
    for node in &view.nodes {
        all.extend(node.gpu_faults.keys().map(|gpu| repair(node, vec![*gpu])));
    }
    for node in view.nodes.iter().filter(|node| node.gpu_faults.len() > 1) {
        all.push(repair(node, node.gpu_faults.keys().copied().collect()));
    }
    all.truncate(TRIED_MAX);
    all
}

/// Repairs after which a waiting workload would start: of single GPUs, else of all of a node, else
/// of all.
pub(crate) async fn repairs(
    state: &ApiState,
    may: bool,
    view: Arc<View>,
    workload: Arc<WorkloadView>,
) -> Result<Vec<FurtherAdvice>, ApiError> {
    if workload.spec.sets().all(|set| set.pod.gpu.counted().devices() == 0) {
        return Ok(Vec::new());
    }
    let mut found: Vec<FurtherAdvice> = Vec::new();
    let all = candidates(&view);
    for repair in &all {
        let is_known = found.iter().any(|one| one.node.as_ref() == Some(&repair.node));
        if is_known && repair.gpus.len() > 1 {
            continue;
        }
        let repairs = std::slice::from_ref(repair);
        found.extend(tried(state, &view, &workload, repairs, may).await?);
    }
    if found.is_empty() && all.len() > 1 {
        let single: Vec<_> = all.into_iter().filter(|repair| repair.gpus.len() == 1).collect();
        found.extend(tried(state, &view, &workload, &single, may).await?);
    }
    Ok(found)
}

/// The advice to make some repairs together, if the workload would start then.
async fn tried(
    state: &ApiState,
    view: &View,
    workload: &WorkloadView,
    repairs: &[Repair],
    may: bool,
) -> Result<Option<FurtherAdvice>, ApiError> {
    let step = |one: &Repair| json!({"return_gpu": {"node": one.node, "gpus": one.gpus}});
    let steps: Vec<_> = repairs.iter().map(step).collect();
    let (_, decisions) = predicted(state, read_steps(&steps, Vec::new())?).await?;
    let starts = starts(view, workload, &decisions);
    Ok(starts.then(|| advice(repairs, may, disturbed(workload, &decisions))))
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

fn advice(repairs: &[Repair], may: bool, disturbs: u32) -> FurtherAdvice {
    let others = match disturbs {
        0 => String::new(),
        1 => "; that stops or moves 1 other".to_owned(),
        many => format!("; that stops or moves {many} others"),
    };
    let ask = (!may).then(|| "an administrator of the cluster".to_owned());
    let asked = ask.as_ref().map_or_else(String::new, |who| format!("; ask {who}"));
    let gpus: Vec<_> = repairs.iter().map(Repair::text).collect();
    let gpus = gpus.join(", ");
    FurtherAdvice {
        kind: "repair",
        disturbs,
        message: format!("bring back into service {gpus}{others}{asked}"),
        commands: repairs.iter().filter(|_| may).flat_map(Repair::commands).collect(),
        ask,
        node: repairs.first().map(|repair| repair.node.clone()),
    }
}
