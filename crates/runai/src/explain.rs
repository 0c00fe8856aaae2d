//! Reasons for the state of a workload, and advice for one that waits. Owns: layout.

use std::io::Write;

use api_types::{
    Advice, Diagnosis, Explanation, FractionLimit, JobTraining, Millis, Reason, StartEstimate,
    Time, Workload,
};
use client::Client;

use super::context::{Context, now_ms};
use super::describe::{self, training};
use super::last_output;
use cli_kit::exit::Error;
use cli_kit::local_time::exact;
use cli_kit::table::{age, ago, wrapped};
use dialects::intent::{KubernetesPodName, OutputOptions, Target};

/// Indent of a command in the lines of a diagnosis.
const COMMAND_INDENT: &str = "    ";

/// Code of the reason "failed and waits before the next try".
const BACKING_OFF: &str = "P302";

pub(super) async fn run(
    of: &Target,
    how: &OutputOptions,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let workload = context.existing(of).await?;
    explain(&workload, how, &context.client, out).await
}

/// Explains the state of a pod of Kubernetes: that of its workload, or the reason that keeps it out
/// of one.
///
/// # Errors
/// There is no such pod, or the server does not answer.
pub async fn pod(
    KubernetesPodName { namespace, name }: &KubernetesPodName,
    how: &OutputOptions,
    client: &Client,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let pod = client.kubernetes_pod(namespace, name).await?;
    if let Some(id) = &pod.workload_id {
        return explain(&client.workload(id).await?, how, client, out).await;
    }
    if !how.shown.is_text() {
        return how.data(&pod, &[format!("pod/{namespace}/{name}")], out);
    }
    let colon = if pod.held.is_some() { ":" } else { "" };
    writeln!(out, "{}", wrapped(&format!("{}{colon}", pod.summary)))?;
    if let Some(Reason { code, message, .. }) = pod.held {
        writeln!(out, "{}", wrapped(&format!("  {code} {message}")))?;
    }
    Ok(())
}

async fn explain(
    workload: &Workload,
    how: &OutputOptions,
    client: &Client,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let explanation = client.explain(&workload.id).await?;
    if !how.shown.is_text() {
        let name = format!("{}/{}", workload.kind.to_lowercase(), workload.name);
        return how.data(&explanation, &[name], out);
    }
    let submitted = workload.additional_fields.command_line.as_deref();
    for line in lines_with_submissions(&explanation, submitted, now_ms()) {
        // A command stays on one line, so that it can be pasted.
        let is_command = line.starts_with(COMMAND_INDENT);
        writeln!(out, "{}", if is_command { line } else { wrapped(&line) })?;
    }
    if let Some(training) = &explanation.training {
        writeln!(out, "{}", wrapped(&would_lose(training, now_ms())))?;
    } else if let Some(since) = explanation.unsaved_since {
        let saved = workload.additional_fields.checkpointed_at;
        writeln!(out, "{}", wrapped(&would_lose_work(since, saved, now_ms())))?;
    }
    if !last_output::is_due(workload) {
        return Ok(());
    }
    let pods = client.pods(&workload.id).await?;
    if let Some(output) = last_output::of(workload, &pods, client).await? {
        writeln!(out, "{}:", output.title())?;
        write!(out, "{}", output.indented())?;
    }
    Ok(())
}

/// Progress of a training, and the cost of a stop.
fn would_lose(training: &JobTraining, now_ms: u64) -> String {
    let how_far = training::sentence(training, now_ms);
    format!(
        "Training: {how_far}. A worker that is stopped hands its tasks back; if all is stopped, the \
         model is saved first. What does not answer within its grace is stopped without that, and the \
         work since the checkpoint is lost"
    )
}

/// Cost of a stop for a workload without elastic training.
fn would_lose_work(since: Time, saved: Option<Time>, now_ms: u64) -> String {
    let span = age(now_ms.saturating_sub(since.0.0));
    match saved {
        Some(saved) if saved.0 >= since.0 => format!(
            "If it were stopped for others now, it would go on from its last checkpoint, reported {span} \
             ago"
        ),
        Some(saved) => format!(
            "If it were stopped for others now, it would go on from its checkpoint, reported {} ago; it \
             has run {span} since its last start and reported none",
            age(now_ms.saturating_sub(saved.0.0))
        ),
        None => format!(
            "If it were stopped for others now, what it has not saved by itself would be lost: it has run \
             {span} and reported no checkpoint (`elastane checkpoint FILE` does)"
        ),
    }
}

/// The lines of an explanation, the most important first.
pub(super) fn lines(explanation: &Explanation, now_ms: u64) -> Vec<String> {
    lines_with_submissions(explanation, None, now_ms)
}

/// The lines of an explanation of a workload that was submitted with these words, if they are
/// known.
fn lines_with_submissions(
    explanation: &Explanation,
    submitted: Option<&str>,
    now_ms: u64,
) -> Vec<String> {
    let Explanation {
        project_name,
        summary,
        pending_reasons,
        last_eviction,
        diagnosis,
        fractions,
        ..
    } = explanation;
    let mut lines = Vec::new();
    // The summary names the failure, which a reason does not.
    let backs_off = matches!(&**pending_reasons, [one] if one.code == BACKING_OFF);
    // A workload with some places has a summary of its own beside the reasons of the others.
    let waits = explanation.phase().waits() && !pending_reasons.is_empty();
    if !waits || backs_off {
        lines.push(summary.clone());
        let others = explanation.further_reasons.iter().filter(|_| !backs_off);
        lines.extend(others.map(|reason| format!("  {} {}", reason.code, reason.message)));
    } else {
        lines.push(format!("{} waits:", explanation.workload_name));
        let reasons = pending_reasons.iter();
        lines.extend(reasons.map(|reason| format!("  {} {}", reason.code, reason.message)));
    }
    let holds = |allocated: Millis, quota, fair_share| {
        let gpus = units::gpus(allocated.0);
        format!("{gpus} (quota {quota}, fair share {fair_share})")
    };
    match &*explanation.project_pools {
        [] => {
            let Explanation { project_allocated, project_quota, project_fair_share, .. } =
                explanation;
            let of = holds(*project_allocated, project_quota, project_fair_share);
            lines.push(format!("Project {project_name} holds {of}"));
        }
        [pool] => {
            let of = holds(pool.allocated, &pool.quota, &pool.fair_share);
            let pool = &pool.node_pool;
            lines.push(format!("Project {project_name} holds in node pool {pool} {of}"));
        }
        pools => {
            lines.push(format!("Project {project_name} holds, by node pool:"));
            lines.extend(pools.iter().map(|pool| {
                let of = holds(pool.allocated, &pool.quota, &pool.fair_share);
                format!("  {}: {of}", pool.node_pool)
            }));
        }
    }
    lines.extend(fractions.iter().flat_map(of_fractions));
    if let Some(last) = last_eviction {
        let when = ago(now_ms.saturating_sub(last.at.0.0));
        lines.push(format!("Last time ({when}): {} {}", last.code, last.message));
    }
    let of_diagnosis = diagnosis.iter().flat_map(|diagnosis| {
        with_submissions(diagnosis, &explanation.workload_name, project_name, submitted)
    });
    lines.extend(of_diagnosis);
    lines.extend(explanation.start_estimate.iter().map(may_start));
    lines
}

/// Enforcement of its parts of GPUs, and its compute time there.
fn of_fractions(limit: &FractionLimit) -> Vec<String> {
    let FractionLimit { enforcement, meaning, why, time_slicing, time_slicing_meaning, .. } = limit;
    let why = why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    let mut lines =
        vec![format!("Enforcement of its part of a GPU: {enforcement}{why} ({meaning})")];
    if time_slicing != "none" {
        lines.push(format!("Compute time: {time_slicing} ({time_slicing_meaning})"));
        let share = describe::compute_share(limit);
        lines.extend(share.map(|share| format!("Its part of that: {share}")));
    }
    lines
}

/// The lines of a diagnosis, with the command to type below each advice that needs another
/// submission.
fn with_submissions(
    diagnosis: &Diagnosis,
    workload: &str,
    project: &str,
    submitted: Option<&str>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, line) in (0_u32..).zip(&diagnosis.lines) {
        lines.push(line.clone());
        let advice = diagnosis.advice.iter().find(|advice| advice.line == Some(at));
        let takes_another = |advice: &&Advice| advice.commands.is_empty() && advice.ask.is_none();
        let next = advice.filter(takes_another).and_then(|advice| {
            dialects::again(submitted?, project, &advice.kind, advice.to.as_deref())
        });
        let Some(next) = next else { continue };
        for command in [format!("runai delete {workload} -p {project}"), next] {
            lines.push(format!("{COMMAND_INDENT}{command}"));
        }
    }
    lines
}

fn may_start(estimate: &StartEstimate) -> String {
    let at = |time: Time| exact(time.0.0);
    let when = match (estimate.earliest, estimate.latest, &*estimate.unknown_ends) {
        (Some(from), Some(to), _) if from == to => format!("at {}", at(from)),
        (Some(from), Some(to), _) => format!("between {} and {}", at(from), at(to)),
        (Some(from), None, _) => {
            format!("at {} at the earliest, the latest is not known", at(from))
        }
        (None, _, []) => "never, as things are now".to_owned(),
        (None, Some(to), ends) => format!("by {}, sooner if others end: {}", at(to), open(ends)),
        (None, None, ends) => format!("not known: {}", open(ends)),
    };
    format!("Estimated start: {when} (assumed: {})", estimate.assumption)
}

fn open(names: &[String]) -> String {
    let have = if names.len() == 1 { "has" } else { "have" };
    format!("{} {have} no time limit", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_says_when_and_what_it_assumes() {
        let time = |seconds: u64| Some(Time(units::Instant(1_769_860_805_000 + seconds * 1000)));
        let said = |earliest, latest, ends: &[&str]| {
            let assumption = "nothing else is submitted".to_owned();
            let unknown_ends = ends.iter().map(ToString::to_string).collect();
            may_start(&StartEstimate { earliest, latest, unknown_ends, assumption })
        };
        let (from, to) = (exact(1_769_860_805_000), exact(1_769_860_865_000));
        for (earliest, latest, ends, when) in [
            (time(0), time(60), &[][..], format!("between {from} and {to}")),
            (time(0), time(0), &[], format!("at {from}")),
            (time(0), None, &[], format!("at {from} at the earliest, the latest is not known")),
            (None, None, &[], "never, as things are now".to_owned()),
            (
                None,
                time(60),
                &["a/x"],
                format!("by {to}, sooner if others end: a/x has no time limit"),
            ),
            (None, None, &["a/x"], "not known: a/x has no time limit".to_owned()),
            (None, None, &["a/x", "b/y"], "not known: a/x, b/y have no time limit".to_owned()),
        ] {
            let want = format!("Estimated start: {when} (assumed: nothing else is submitted)");
            assert_eq!(said(earliest, latest, ends), want);
        }
    }
}
