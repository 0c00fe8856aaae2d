//! The outcome of a batch as lines of text: equal outcomes give equal lines. Owns: these lines.
//! Secrets appear in them as their replacements.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use orchestrator::{Action, Decision, Error, Subject};
use reasons::Pending;
use records::Change;
use sched::Plan;

use crate::line::Sum;
use crate::secrets::Secrets;

/// Maximum number of lines kept of a batch.
const LINES_MAX: usize = 200;

/// The outcome of a batch.
#[derive(Debug, Default)]
pub struct BatchOutcome {
    /// Decision that the batch took over.
    pub decision: Option<Box<Decision>>,
    /// Results of the commands of the batch, in order.
    pub answers: Vec<Result<Subject, Error>>,
    /// Written rows.
    pub changes: Vec<Change>,
    /// Requests to the engine.
    pub actions: Vec<Action>,
    /// `true` if a decision was requested.
    pub asks: bool,
}

/// The outcome of a batch as lines of text, and a check sum of all lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) lines: Vec<String>,
    pub(crate) sum: String,
}

impl BatchOutcome {
    /// The outcome as lines of text. With `secrets`, replaces the secrets; without, they have been
    /// replaced already.
    pub(crate) fn words(self, secrets: Option<&Secrets>) -> Words {
        let mut lines = Vec::new();
        if let Some(decision) = &self.decision {
            decided(decision, &mut lines);
        }
        lines.extend(self.answers.iter().map(answered));
        for mut change in self.changes {
            if let Some(secrets) = secrets {
                secrets.change(&mut change);
            }
            lines.push(written(&change, secrets));
        }
        lines.extend(self.actions.iter().map(describe_action));
        lines.extend(self.asks.then(|| "the scheduler is to decide".to_owned()));
        if let Some(secrets) = secrets {
            lines = lines.into_iter().map(|line| secrets.without_logins(line)).collect();
        }
        let sum = lines.iter().fold(Sum::NONE, |sum, line| sum.of(line.as_bytes()).of(b"\n"));
        if lines.len() > LINES_MAX {
            let more = lines.len() - LINES_MAX;
            lines.truncate(LINES_MAX);
            lines.push(format!("and {more} more"));
        }
        Words { lines, sum: sum.to_string() }
    }
}

fn decided(decision: &Decision, lines: &mut Vec<String>) {
    let Decision { now, plan, shares } = decision;
    let wake = plan.wake_at.map_or(String::new(), |at| format!(", again at {}", at.0));
    let trials = units::counted(plan.stats.trials, "trial");
    let steps = units::counted(plan.steps.len(), "step");
    lines.push(format!("plan of {}: {steps}, {trials}{wake}", now.0));
    lines.extend(plan.steps.iter().map(|step| format!("plan: {step:?}")));
    lines
        .extend(plan.stale.iter().map(|(id, since)| format!("plan: {id:?} stale since {since:?}")));
    lines.extend(plan.is_renumbered.then(|| "plan: classes have other numbers".to_owned()));
    lines.extend(reasons(plan));
    lines.extend(shares.iter().map(|(queue, share)| format!("share: {queue:?} {share:?}")));
}

/// One line for each reason, with the workloads that wait for it: the workloads of a class share
/// their reasons.
fn reasons(plan: &Plan) -> impl Iterator<Item = String> {
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut by_text: BTreeMap<String, usize> = BTreeMap::new();
    let mut by_place: BTreeMap<*const Pending, usize> = BTreeMap::new();
    for (id, waits) in &plan.pending {
        let reasons = &waits.reasons;
        let at = *by_place.entry(reasons.as_ptr()).or_insert_with(|| {
            let text = text_of(reasons);
            *by_text.entry(text.clone()).or_insert_with(|| {
                lines.push(("reason:".to_owned(), text));
                lines.len() - 1
            })
        });
        // Writing to a text does not fail.
        let _ = write!(lines[at].0, " {id:?}");
    }
    let told = lines.into_iter().map(|(ids, text)| format!("{ids}:{text}"));
    let renewed = plan.renewed.iter();
    told.chain(renewed.map(|(class, why)| format!("reason: class {}:{}", class.0, text_of(why))))
}

fn text_of(reasons: &[Pending]) -> String {
    reasons.iter().map(|why| format!(" {} {why};", why.code().code)).collect()
}

fn answered(answer: &Result<Subject, Error>) -> String {
    match answer {
        Ok(Subject::Department(id)) => format!("answer: department {id}"),
        Ok(Subject::Project(id)) => format!("answer: project {id}"),
        Ok(Subject::Workload(id) | Subject::Submitted(id, _)) => format!("answer: workload {id}"),
        Ok(Subject::Object(object)) => format!("answer: {} {}", object.kind, object.id),
        Ok(Subject::Nothing | Subject::Drain) => "answer: done".to_owned(),
        Ok(Subject::Outdated) => "answer: it has changed meanwhile".to_owned(),
        Err(error) => format!("answer: refused: {error}"),
    }
}

/// An event as text; any other row as its key and a check sum.
fn written(change: &Change, secrets: Option<&Secrets>) -> String {
    let key = match change {
        Change::Event(row) => {
            let code = row.code.as_deref().map_or(String::new(), |code| format!(" {code}"));
            let of = row.pod_name.as_deref().unwrap_or(&row.workload_name);
            let (seq, kind, message) = (row.seq, &row.kind, &row.message);
            return format!("event: {seq} at {} {kind}{code} {of}: {message}", row.at.0);
        }
        Change::Department(row) => format!("department {}", row.id),
        Change::Project(row) => format!("project {}", row.id),
        Change::Workload(row) => format!("workload {}", row.id),
        Change::WorkloadSpec(id, _) => format!("specification of workload {id}"),
        Change::WorkloadState(id, state) => format!("workload {id} {}", state.phase),
        Change::WorkloadPast(id, _) => format!("past of workload {id}"),
        Change::WorkloadArchived(id, ..) => format!("workload {id} archived"),
        Change::WorkloadRestored(id) => format!("workload {id} restored"),
        Change::Pod(row) => format!("pod {}.{}", row.id, row.generation),
        Change::Object(row) => format!("{} {}", row.kind, row.id),
        Change::Audit(row) => format!("audit {} {}", row.what, row.target),
        Change::Allocation(row) => format!("allocation {}", row.pod_id),
        Change::Clock(_) => "clock".to_owned(),
        _ => "other".to_owned(),
    };
    // The JSON of a row can contain addresses with logins.
    let json = serde_json::to_string(change).unwrap_or_else(|error| error.to_string());
    let json = match secrets {
        Some(secrets) => secrets.without_logins(json),
        None => json,
    };
    format!("row: {key} {}", Sum::NONE.of(json.as_bytes()))
}

/// A request to the engine, without the fields that only the engine reads.
fn describe_action(action: &Action) -> String {
    match action {
        Action::Start(start) => {
            let spec = &start.spec;
            let gpus: Vec<_> = spec.devices.iter().map(|d| (d.index, d.millis)).collect();
            format!("engine: start {} on {} {gpus:?}", spec.key, spec.node_name)
        }
        Action::LimitGpus(key, limits) => format!("engine: limit {key} to {limits:?}"),
        Action::Stop(key, grace_ms) => format!("engine: stop {key} in {grace_ms} ms"),
        Action::Evict { run, grace_ms, .. } => format!("engine: evict {run} in {grace_ms} ms"),
        Action::Remove(key) => format!("engine: remove {key}"),
        Action::Adopted(run, verb) => format!("engine: pod {}: {verb:?}", run.pod),
        Action::Forget(pod) => format!("engine: forget {pod}"),
        Action::RemoveVolume(name) => format!("engine: remove volume {name}"),
        Action::FindPorts(wanted) => {
            format!("engine: find {} ports for {}", wanted.count, wanted.workload)
        }
    }
}
