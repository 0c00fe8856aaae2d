//! Results of a simulation, as tables or as JSON. Owns: layout.

use std::collections::BTreeMap;
use std::io::Write;

use sched::{Plan, Step};
use serde::Serialize;
use sim::{Frame, Outcome};
use units::format_millis;

use super::Simulate;
use cli_kit::exit::Error;
use cli_kit::table::{self, Table};

/// Maximum number of rows of a table; JSON has all.
const ROWS_MAX: usize = 200;

#[derive(Serialize)]
struct Failed<'a> {
    line: u64,
    column: u64,
    message: &'a str,
}

/// The JSON document of a simulation.
#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    expectations: usize,
    failures: Vec<Failed<'a>>,
    frames: &'a [Frame],
}

pub(super) fn json<T: Serialize>(value: &T, out: &mut dyn Write) -> Result<(), Error> {
    serde_json::to_writer_pretty(&mut *out, value)
        .map_err(|error| Error::Output(std::io::Error::from(error)))?;
    writeln!(out)?;
    Ok(())
}

pub(super) fn outcome(
    outcome: &Outcome,
    flags: &Simulate,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if flags.json {
        let failures = outcome.failures.iter().map(|failure| Failed {
            line: failure.line,
            column: failure.column,
            message: &failure.message,
        });
        let report = Report {
            version: sim::scenario::VERSION,
            expectations: outcome.expectations,
            failures: failures.collect(),
            frames: &outcome.frames,
        };
        return json(&report, out);
    }
    decisions(&outcome.frames, out)?;
    if let Some(last) = outcome.frames.last() {
        workloads(last, out)?;
        queues(last, out)?;
        diagnoses(last, out)?;
    }
    let held = outcome.expectations - outcome.failures.len().min(outcome.expectations);
    if outcome.expectations > 0 && outcome.failures.is_empty() {
        writeln!(out, "\n{} held", units::counted(held, "expectation"))?;
    }
    Ok(())
}

pub(super) fn decisions(frames: &[Frame], out: &mut dyn Write) -> Result<(), Error> {
    let mut table = Table::new(&["Step", "At", "Decision", "Workload", "Where"]);
    let all = frames.iter().flat_map(|frame| frame.decisions.iter().map(move |d| (frame, d)));
    let total = all.clone().count();
    for (frame, decision) in all.take(ROWS_MAX) {
        let place = match (&decision.from, &decision.to) {
            (Some(from), Some(to)) => format!("{from} → {to}"),
            (from, to) => from.iter().chain(to).map(ToString::to_string).collect(),
        };
        table.row([
            frame.step.to_string(),
            format!("{}ms", frame.at_ms),
            decision.kind.to_owned(),
            format!("{}/{}-{}", decision.project, decision.workload, decision.task),
            place,
        ]);
        if let (Some(code), Some(reason)) = (decision.code, &decision.reason) {
            table.note(&format!("{code} {reason}"));
        }
    }
    write!(out, "{}", table.ruled())?;
    more(total, out)
}

fn more(total: usize, out: &mut dyn Write) -> Result<(), Error> {
    if total > ROWS_MAX {
        writeln!(out, "… and {} more; --json has them all", total - ROWS_MAX)?;
    }
    Ok(())
}

/// One row per workload, with its pending reasons.
pub(super) fn workloads(frame: &Frame, out: &mut dyn Write) -> Result<(), Error> {
    /// Number of pods by state and place.
    type Counts<'a> = BTreeMap<(&'a str, String), u32>;
    let mut rows: BTreeMap<(&str, &str), Counts<'_>> = BTreeMap::new();
    for task in &frame.tasks {
        let at =
            task.place.as_ref().or(task.next.as_ref()).map(ToString::to_string).unwrap_or_default();
        let states = rows.entry((&task.project, &task.workload)).or_default();
        *states.entry((task.state.as_str(), at)).or_default() += 1;
    }
    let why = |project: &str, workload: &str| {
        let found = frame.pending.iter().find(|w| w.project == project && w.workload == workload);
        found.into_iter().flat_map(|waiting| &waiting.reasons)
    };
    let mut table = Table::new(&["Project", "Workload", "Pods", "State", "Where"]);
    let lines = rows.iter().flat_map(|(key, states)| states.iter().map(move |state| (key, state)));
    let total = lines.clone().count();
    for ((project, workload), ((state, at), pods)) in lines.take(ROWS_MAX) {
        let waits = matches!(*state, "pending" | "reserved");
        table.row([
            (*project).to_owned(),
            (*workload).to_owned(),
            pods.to_string(),
            (*state).to_owned(),
            at.clone(),
        ]);
        for reason in why(project, workload).filter(|_| waits) {
            table.note(&format!("{} {}", reason.code, reason.message));
        }
    }
    write!(out, "\n{}", table.ruled())?;
    more(total, out)
}

/// Prints the diagnoses of waiting workloads.
fn diagnoses(frame: &Frame, out: &mut dyn Write) -> Result<(), Error> {
    let diagnosed = frame.pending.iter().filter_map(|w| Some((w, w.diagnosis.as_ref()?)));
    for (waiting, diagnosis) in diagnosed {
        let name = format!("{}/{}", waiting.project, waiting.workload);
        let alike = frame.pending.iter().filter(|w| w.like.as_ref() == Some(&name)).count();
        let alike = if alike == 0 { String::new() } else { format!(", and {alike} alike") };
        writeln!(out, "\n{name} waits{alike}")?;
        for line in &diagnosis.lines {
            writeln!(out, "{}", table::wrapped(line))?;
        }
    }
    Ok(())
}

fn queues(frame: &Frame, out: &mut dyn Write) -> Result<(), Error> {
    let amount = |millis: Option<u64>| millis.map_or_else(|| "-".to_owned(), format_millis);
    let mut table = Table::new(&[
        "Queue",
        "Above",
        "GPU Quota",
        "GPU Limit",
        "Fair Share",
        "Holds",
        "Asks For",
    ]);
    for queue in frame.queues.iter().take(ROWS_MAX) {
        table.row([
            queue.title(),
            queue.parent.clone().unwrap_or_default(),
            amount(queue.quota.gpu_millis),
            amount(queue.limit.gpu_millis),
            amount(queue.fair_share.gpu_millis),
            amount(queue.allocated.gpu_millis),
            amount(queue.requested.gpu_millis),
        ]);
    }
    write!(out, "\n{}", table.ruled())?;
    more(frame.queues.len(), out)
}

/// Size of a generated state, and cost of its decision.
#[derive(Serialize)]
pub(super) struct Size<'a> {
    pub(super) state: &'a str,
    pub(super) nodes: u32,
    pub(super) workloads: usize,
    pub(super) pods: usize,
    pub(super) waiting: usize,
    pub(super) still_waiting: usize,
    pub(super) decision_ms: f64,
}

/// Prints the summary of a plan.
pub(super) fn plan(
    plan: &Plan,
    as_json: bool,
    out: &mut dyn Write,
    size: &Size<'_>,
) -> Result<(), Error> {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for step in &plan.steps {
        let kind = match step {
            Step::Bind { .. } => "bind",
            Step::Reserve { .. } => "reserve",
            Step::Unreserve { .. } => "unreserve",
            Step::Evict { .. } => "evict",
            Step::Move { .. } => "move",
            Step::Resize { .. } => "resize",
        };
        *kinds.entry(kind).or_default() += 1;
    }
    let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in plan.pending.values().flat_map(|reasons| reasons.iter()) {
        *codes.entry(reason.code().code).or_default() += 1;
    }
    if as_json {
        #[derive(Serialize)]
        struct Summary<'a> {
            size: &'a Size<'a>,
            steps: BTreeMap<&'a str, usize>,
            pending: BTreeMap<&'a str, usize>,
            trials: u64,
            exhausted: bool,
        }
        let Plan { stats, .. } = plan;
        let (trials, exhausted) = (stats.trials, stats.exhausted);
        return json(&Summary { size, steps: kinds, pending: codes, trials, exhausted }, out);
    }
    let list = |counts: &BTreeMap<&str, usize>| {
        let each: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        if each.is_empty() { "none".to_owned() } else { each.join(", ") }
    };
    let Size { state, nodes, workloads, pods, waiting, still_waiting, decision_ms } = size;
    writeln!(out, "state      {state}: {nodes} nodes, {workloads} workloads, {pods} pods")?;
    writeln!(out, "waiting    {waiting} workloads before the decision, {still_waiting} after")?;
    writeln!(out, "decided    {}", list(&kinds))?;
    writeln!(out, "reasons    {}", list(&codes))?;
    writeln!(
        out,
        "trials     {}{}",
        plan.stats.trials,
        if plan.stats.exhausted { " (bound reached)" } else { "" }
    )?;
    writeln!(out, "time       {decision_ms:.2} ms")?;
    Ok(())
}

/// A table for people.
pub(super) fn table(header: &[&str]) -> Table {
    table::Table::new(header)
}

/// Outcome of a workload, in sentences.
pub(super) fn fate(frame: &Frame, project: &str, name: &str) -> Vec<String> {
    let tasks = frame.tasks.iter().filter(|task| task.project == project && task.workload == name);
    let mut lines = Vec::new();
    for task in tasks {
        let who = format!("{project}/{name}-{}", task.task);
        lines.push(match (&task.place, &task.next) {
            (Some(at), _) => format!("{who} would start on {at}"),
            (None, Some(at)) => format!("{who} would get {at} as soon as it is free"),
            (None, None) => format!("{who} would wait"),
        });
    }
    let waits = frame.pending.iter().filter(|w| w.project == project && w.workload == name);
    for waiting in waits {
        for reason in &waiting.reasons {
            lines.push(format!("  {} {}", reason.code, reason.message));
        }
        lines.extend(waiting.like.as_ref().map(|other| format!("It waits as {other} does.")));
        lines.extend(waiting.diagnosis.iter().flat_map(|diagnosis| diagnosis.lines.clone()));
    }
    lines
}
