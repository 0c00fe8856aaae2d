//! *What if*: from a submission to a workload of a scenario, and from what came of it to the answer.
//! Owns: what may be asked, and how much. Touches nothing.

use api_types::{CreationRequest, PodFate, Search, WorkloadType, WouldDo, WouldHappen, WouldWait};
use http_kit::ApiError;
use orchestrator::view::WorkloadKind;
use sim::scenario::amount::{Count, Size, Span};
use sim::scenario::{self, At, GpuAsk, Scenario, Step, Submit, Workload};
use sim::{Decision, Outcome, Record, Waiting};
use spec::{PodSet, PodSpec, WorkloadSpec};
use units::Instant;
use uuid::Uuid;

/// Most steps, pods and nodes of a question; a scenario of one's own may have more.
const STEPS_MAX: usize = 100;
const PODS_MAX: u64 = 10_000;
const NODES_MAX: u64 = 1_000;
const ELSEWHERE: &str = "for `elastane simulate --from` a snapshot";
/// Workloads whose waiting is explained at length.
const EXPLAINED_MAX: usize = 5;

/// What a creation asks for, as the server would take it; for asking *what if* without one.
///
/// # Errors
/// A value that the server would refuse, in its words.
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
    let asker = convert::Asker::anonymous("what-if");
    let asked = convert::command(kind, request, asker);
    asked.map(|(_, spec)| spec).map_err(|fault| fault.message)
}

/// A specification as a workload of a scenario.
#[must_use]
pub fn as_in_a_scenario(spec: &WorkloadSpec, project: &str) -> Workload {
    let mut workload = Workload::named(&spec.name, project);
    // As many as an inference begins with; of none, the one that the first request brings up.
    let replicas = spec.serving.as_ref().map(|serving| serving.scaling.replicas_initial.max(1));
    let id = Uuid::new_v4();
    let set = |set: &PodSet| {
        let pods = replicas.unwrap_or(set.wanted());
        let mut asked = scenario::PodSet {
            pods,
            pods_min: Some(set.pods_min).filter(|least| *least < pods),
            gpu: gpus(&set.pod),
            cpu: Some(Count::new(set.pod.cpu_millis)),
            memory: Some(Size::new(set.pod.memory_bytes)),
            task_priority: set.pod_priority,
            ..scenario::PodSet::named(&set.role)
        };
        asked.confine(&orchestrator::node_constraints(spec, set, id));
        asked
    };
    workload.set_pods(spec.sets().map(set).collect());
    workload.pools.clone_from(&spec.node_pools);
    workload.elastic = spec.elastic;
    workload.priority = Some(spec.priority.value);
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

/// The steps that are asked for, and then what is submitted.
pub(crate) fn steps(
    asked: &[serde_json::Value],
    submitted: Vec<At<Workload>>,
) -> Result<Vec<Step>, ApiError> {
    if asked.len() > STEPS_MAX {
        let why = format!("{} are too many; more than {STEPS_MAX} are {ELSEWHERE}", asked.len());
        return Err(ApiError::field("steps", why));
    }
    let mut steps = Vec::new();
    for (at, step) in asked.iter().enumerate() {
        let name = format!("steps[{at}]");
        let step = Step::read(&step.to_string())
            .map_err(|error| ApiError::field(&name, error.message().to_owned()))?;
        if step.advance.is_some() || step.cycles.is_some() || step.expect.is_some() {
            let why = format!("`advance`, `cycles` and `expect` are {ELSEWHERE}");
            return Err(ApiError::field(&name, why));
        }
        steps.push(step);
    }
    if !submitted.is_empty() {
        let submit = Some(At::from(Submit(submitted)));
        steps.push(Step { submit, ..Step::default() });
    }
    check(&steps)?;
    Ok(steps)
}

/// A server answers one question in bounded time.
fn check(steps: &[Step]) -> Result<(), ApiError> {
    let submitted = steps.iter().filter_map(|step| step.submit.as_ref());
    let pods = submitted.flat_map(|submit| &submit.0).map(|workload| pods_of(workload));
    let added = steps.iter().filter_map(|step| step.add_node.as_ref());
    let nodes = added.map(|node| u64::from(node.count.unwrap_or(1)));
    let (pods, nodes) = (pods.fold(0, u64::saturating_add), nodes.sum::<u64>());
    for (what, count, most) in [("pods", pods, PODS_MAX), ("nodes", nodes, NODES_MAX)] {
        if count > most {
            return Err(ApiError::bad(format!("{count} {what}; more than {most} are {ELSEWHERE}")));
        }
    }
    Ok(())
}

fn pods_of(workload: &Workload) -> u64 {
    let sets: u64 = workload.pod_sets.iter().map(|set| u64::from(set.pods)).sum();
    let pods =
        if workload.pod_sets.is_empty() { u64::from(workload.pods.unwrap_or(1)) } else { sets };
    pods.saturating_mul(u64::from(workload.count.unwrap_or(1)))
}

/// Plays the scenario; `now` is when its state was taken.
pub(crate) fn play(scenario: &Scenario, now: Instant) -> Result<WouldHappen, ApiError> {
    let wrong = |error: sim::Error| ApiError::bad(error.message().to_owned());
    let mut outcome = sim::run(scenario, Record::Decisions).map_err(wrong)?;
    let submitted = scenario.steps.iter().filter_map(|step| step.submit.as_ref());
    let asked: Vec<(String, String)> = submitted.flat_map(|submit| submit.names()).collect();
    if let Some(last) = outcome.frames.last_mut() {
        last.pending.retain(|waiting| is_asked(&asked, &waiting.project, &waiting.workload));
    }
    sim::diagnose(&mut outcome, EXPLAINED_MAX);
    Ok(to_wire(&outcome, &asked, now))
}

fn is_asked(asked: &[(String, String)], project: &str, name: &str) -> bool {
    asked.iter().any(|of| (of.0.as_str(), of.1.as_str()) == (project, name))
}

/// What came of it; before the first step is what would happen without being asked.
fn to_wire(outcome: &Outcome, asked: &[(String, String)], now: Instant) -> WouldHappen {
    let asked_for = outcome.frames.iter().filter(|frame| frame.step > 0);
    let decisions = asked_for.flat_map(|frame| &frame.decisions);
    let last = outcome.frames.last();
    let tasks = last.into_iter().flat_map(|frame| &frame.tasks);
    let tasks = tasks.filter(|task| is_asked(asked, &task.project, &task.workload));
    let pods = tasks.map(|task| PodFate {
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
        as_of: now.into(),
        pods: pods.collect(),
        waiting: last.into_iter().flat_map(|frame| &frame.pending).map(would_wait).collect(),
        decisions: decisions.map(would_do).collect(),
    }
}

fn would_wait(waiting: &Waiting) -> WouldWait {
    let reasons = waiting
        .reasons
        .iter()
        .map(|reason| Search { code: reason.code.to_owned(), message: reason.message.clone() });
    let like = waiting.like.as_ref().map(|other| format!("It waits as {other} does."));
    let lines = waiting.diagnosis.iter().flat_map(|diagnosis| diagnosis.lines.clone());
    WouldWait {
        project_name: waiting.project.clone(),
        workload_name: waiting.workload.clone(),
        reasons: reasons.collect(),
        lines: like.into_iter().chain(lines).collect(),
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
