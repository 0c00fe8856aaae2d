//! *What if*: converts a question for the simulated server, and its result for the answer. Owns:
//! which questions are allowed, and how many. Changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_types::{
    AdvisedChange, CreationRequest, PodFate, RepairedGpus, Search, WorkloadType, WouldDo,
    WouldHappen, WouldWait,
};
use convert::Made;
use http_kit::ApiError;
use orchestrator::StoredState;
use records::{Archived, ArchivedLookup};
use serde_json::json;
use sim::Decision;
use sim::scenario::amount::{Count, Size, Span};
use sim::scenario::{self, GpuAsk, Step, Workload};
use sim::what_if::{Asked, what_if};
use spec::{PodSet, PodSpec, WorkloadKind, WorkloadSpec};
use units::Instant;
use uuid::Uuid;
use view::{View, WorkloadView};

/// Most steps, pods and nodes of a question; a scenario of one's own may have more.
pub(crate) const STEPS_MAX: usize = 100;
const PODS_MAX: u64 = 10_000;
const NODES_MAX: u64 = 1_000;
/// Field of the changes of a question.
const CHANGES: &str = "changes";
const ELSEWHERE: &str = "for `elastane simulate --from` a snapshot";
/// Workloads whose waiting is explained at length.
const EXPLAINED_MAX: usize = 5;

/// Specification of a creation, as the server would accept it, for a what-if without a server.
///
/// # Errors
/// A value that the server would reject, with the server's message.
pub fn workload_asked_for(
    workload_type: WorkloadType,
    request: CreationRequest,
) -> Result<WorkloadSpec, String> {
    let assets = request.spec.as_ref().is_some_and(|spec| spec.assets.is_some());
    if assets || request.template_id.is_some() {
        return Err("assets and templates are the server's; leave them out".to_owned());
    }
    let kind = match workload_type {
        WorkloadType::Training => WorkloadKind::Training,
        WorkloadType::Workspace => WorkloadKind::Workspace,
        WorkloadType::Distributed => WorkloadKind::Distributed,
        WorkloadType::Inference => WorkloadKind::Inference,
    };
    let asker = convert::Submitter::anonymous("what-if");
    let asked = convert::command(kind, request, asker);
    asked.map(|(_, spec)| spec).map_err(|fault| fault.message())
}

/// A specification as a workload of a scenario.
#[must_use]
pub fn as_in_a_scenario(spec: &WorkloadSpec, project: &str) -> Workload {
    let mut workload = Workload::named(&spec.name, project);
    let id = Uuid::new_v4();
    let set = |set: &PodSet| {
        let pods = pods_in(spec, set);
        let mut asked = scenario::PodSet {
            pods,
            pods_min: Some(set.pods_min).filter(|least| *least < pods),
            gpu: gpus(&set.pod),
            cpu: Some(Count::new(set.pod.cpu_millis)),
            memory: Some(Size::new(set.pod.memory_bytes)),
            task_priority: set.pod_priority,
            ..scenario::PodSet::named(&set.role)
        };
        asked.confine(&spec::node_constraints(spec, set, id));
        asked
    };
    workload.set_pods(spec.sets().map(set).collect());
    workload.pools.clone_from(&spec.node_pools);
    workload.elastic = spec.elastic;
    workload.may_be_elastic = (spec.kind != WorkloadKind::Training).then_some(false);
    workload.priority = Some(spec.priority.value);
    workload.spare_priority = spec.spare_priority.as_ref().map(|spare| spare.value);
    workload.preemptible = Some(spec.preemptible);
    workload.preemption_delay =
        (spec.preemption_delay_ms > 0).then(|| Span::new(spec.preemption_delay_ms));
    workload.time_limit = spec.time_limit_ms.map(Span::new);
    workload.gated = !spec.gates.is_empty();
    workload
}

fn gpus(pod: &PodSpec) -> GpuAsk {
    GpuAsk(pod.gpu.counted())
}

/// Changes for workloads that wait, and the questions for their outcomes. All of them are read before
/// the first is made, so that each node and each request changes once.
pub(crate) fn read_changes(
    changes: &[(AdvisedChange, Arc<WorkloadView>)],
    view: &View,
) -> Result<Vec<Asked>, ApiError> {
    let (mut new_nodes, mut changed) = (BTreeMap::new(), BTreeSet::new());
    let twice = |what: String| ApiError::field(CHANGES, format!("{what} is changed twice"));
    let mut asked = Vec::new();
    for (change, workload) in changes {
        if let AdvisedChange::MoreNodes { node, nodes } = change
            && new_nodes.insert(node, u64::from(*nodes)).is_some()
        {
            return Err(twice(format!("the number of nodes like `{node}`")));
        }
        let count = new_nodes.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        if count > NODES_MAX {
            let why = format!("{count} nodes are too many; {NODES_MAX} at most");
            return Err(ApiError::field(CHANGES, why));
        }
        let steps = convert::steps_of(change, workload, view)?;
        let changes_request = |made: &Made| matches!(made, Made::Submit(..) | Made::Revise(..));
        if steps.iter().any(changes_request) && !changed.insert(workload.id) {
            return Err(twice(format!("the request of `{}`", workload.spec.name)));
        }
        let is_again = steps.iter().any(|made| matches!(made, Made::Submit(..)));
        for made in steps {
            asked.extend(read_made(made)?);
        }
        asked.extend((!is_again).then_some(Asked::Outcome(workload.id)));
    }
    let waits = asked.iter().filter(|one| matches!(one, Asked::Wait(_))).count();
    if waits > 1 {
        return Err(ApiError::field(CHANGES, "wait once; the latest `until` is enough"));
    }
    Ok(asked)
}

fn read_made(made: Made) -> Result<Option<Asked>, ApiError> {
    Ok(match made {
        Made::Submit(project_id, spec) => Some(Asked::Submission(project_id, spec)),
        Made::Nodes(nodes) => Some(Asked::Nodes(nodes)),
        Made::Wait(until) => Some(Asked::Wait(until)),
        Made::Repair(RepairedGpus { node, gpus }) => {
            let step = json!({"return_gpu": {"node": node, "gpus": gpus}});
            Some(Asked::Step(Box::new(read_step(CHANGES, &step)?)))
        }
        made => made.command()?.map(|command| Asked::Command(Box::new(command))),
    })
}

fn read_step(field: &str, step: &serde_json::Value) -> Result<Step, ApiError> {
    Step::read(&step.to_string())
        .map_err(|error| ApiError::field(field, error.message().to_owned()))
}

/// The requested steps, and what follows them.
pub(crate) fn read_steps(
    steps: &[serde_json::Value],
    then: Vec<Asked>,
) -> Result<Vec<Asked>, ApiError> {
    // Submissions are bounded by their pods.
    let is_step = |one: &&Asked| !matches!(one, Asked::Submission(..) | Asked::Outcome(_));
    let count = steps.len() + then.iter().filter(is_step).count();
    if count > STEPS_MAX {
        let why = format!("{count} are too many; more than {STEPS_MAX} are {ELSEWHERE}");
        return Err(ApiError::field("steps", why));
    }
    let mut asked = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let name = format!("steps[{at}]");
        let step = read_step(&name, step)?;
        if step.advance.is_some() || step.cycles.is_some() || step.expect.is_some() {
            let why = format!("`advance`, `cycles` and `expect` are {ELSEWHERE}");
            return Err(ApiError::field(&name, why));
        }
        asked.push(Asked::Step(Box::new(step)));
    }
    asked.extend(then);
    check(&asked)?;
    Ok(asked)
}

/// A server answers one question in bounded time.
fn check(asked: &[Asked]) -> Result<(), ApiError> {
    let pods = asked.iter().map(|one| match one {
        Asked::Step(step) => {
            let submitted = step.submit.iter().flat_map(|submit| &submit.0);
            submitted.map(|workload| pods_of(workload)).fold(0, u64::saturating_add)
        }
        Asked::Submission(_, spec) | Asked::Replacement(.., spec) => {
            spec.sets().map(|set| u64::from(pods_in(spec, set))).sum()
        }
        Asked::Command(_) | Asked::Nodes(_) | Asked::Wait(_) | Asked::Outcome(_) => 0,
    });
    let nodes = asked.iter().map(|one| match one {
        Asked::Step(step) => {
            step.add_node.as_ref().map_or(0, |node| u64::from(node.count.unwrap_or(1)))
        }
        Asked::Nodes(nodes) => nodes.len() as u64,
        _ => 0,
    });
    let (pods, nodes) = (pods.fold(0, u64::saturating_add), nodes.sum::<u64>());
    for (what, count, most) in [("pods", pods, PODS_MAX), ("nodes", nodes, NODES_MAX)] {
        if count > most {
            return Err(ApiError::bad(format!("{count} {what}; more than {most} are {ELSEWHERE}")));
        }
    }
    Ok(())
}

/// How many pods of a set there are at a time. An inference begins with as many as it says; of
/// none, the first request brings one up.
fn pods_in(spec: &WorkloadSpec, set: &PodSet) -> u32 {
    let replicas = spec.serving.as_ref().map(|serving| serving.scaling.replicas_initial.max(1));
    replicas.unwrap_or(set.wanted())
}

fn pods_of(workload: &Workload) -> u64 {
    let sets: u64 = workload.pod_sets.iter().map(|set| u64::from(set.pods)).sum();
    let pods =
        if workload.pod_sets.is_empty() { u64::from(workload.pods.unwrap_or(1)) } else { sets };
    pods.saturating_mul(u64::from(workload.count.unwrap_or(1)))
}

/// The archived workloads that may have the names of what steps submit.
pub(crate) fn lookups(asked: &[Asked], stored: &StoredState) -> Vec<ArchivedLookup> {
    let mut all = Vec::new();
    for one in asked {
        let Asked::Step(step) = one else { continue };
        for (project, name) in step.submit.iter().flat_map(|submit| submit.names()) {
            let project = stored.rows.projects.iter().find(|own| own.name == project);
            all.extend(project.map(|own| ArchivedLookup::Name(own.id, name)));
        }
    }
    all
}

/// Has archived workloads in memory again.
pub(crate) fn restore(stored: &mut StoredState, found: Archived) {
    let Archived { mut workloads, pods } = found;
    let known: BTreeSet<Uuid> = stored.rows.workloads.iter().map(|row| row.id).collect();
    workloads.retain(|row| !known.contains(&row.id));
    stored.rows.pods.extend(pods.into_iter().filter(|row| !known.contains(&row.workload_id)));
    stored.rows.workloads.extend(workloads);
    stored.rows.workloads.sort_by_key(|row| row.seq);
}

/// Asks a simulated server that continues from the stored state.
pub(crate) fn play(
    stored: StoredState,
    asked: &[Asked],
) -> Result<(Instant, sim::what_if::WouldHappen), ApiError> {
    let as_of = stored.now;
    Ok((as_of, what_if(stored, asked, EXPLAINED_MAX)?))
}

/// A prediction as the wire shows it, with advice for a caller with these rights.
pub(crate) fn shown(
    as_of: Instant,
    came: &sim::what_if::WouldHappen,
    view: &View,
    may: &convert::May<'_>,
) -> WouldHappen {
    let pods = came.tasks.iter().map(|task| PodFate {
        project_name: task.project.clone(),
        workload_name: task.workload.clone(),
        pod: task.task,
        fate: match (&task.place, &task.next) {
            (Some(_), _) => "start",
            (None, Some(_)) => "reserve",
            (None, None) => "wait",
        }
        .to_owned(),
        place: task.place.as_ref().or(task.next.as_ref()).map(ToString::to_string),
    });
    WouldHappen {
        as_of: as_of.into(),
        pods: pods.collect(),
        waiting: came.waiting.iter().map(|waiting| would_wait(waiting, view, may)).collect(),
        decisions: came.decisions.iter().map(would_do).collect(),
    }
}

fn would_wait(waiting: &sim::what_if::WouldWait, view: &View, may: &convert::May<'_>) -> WouldWait {
    let reasons = waiting.reasons.iter().map(|reason| Search {
        code: reason.code.to_string(),
        message: reason.message.to_string(),
    });
    let lines = |found| convert::lines_before_submission(found, view, waiting.at, may);
    let like = waiting.like.as_ref().map(|other| format!("It waits as {other} does."));
    WouldWait {
        project_name: waiting.project.clone(),
        workload_name: waiting.workload.clone(),
        reasons: reasons.collect(),
        lines: like.into_iter().chain(waiting.diagnosis.iter().flat_map(lines)).collect(),
    }
}

fn would_do(decision: &Decision) -> WouldDo {
    WouldDo {
        kind: decision.kind.to_owned(),
        project_name: decision.project.clone(),
        workload_name: decision.workload.clone(),
        pod: decision.task,
        from: decision.from.as_ref().map(ToString::to_string),
        to: decision.to.as_ref().map(ToString::to_string),
        code: decision.code.map(str::to_owned),
        reason: decision.reason.clone(),
        beneficiary: decision.beneficiary.clone(),
    }
}
