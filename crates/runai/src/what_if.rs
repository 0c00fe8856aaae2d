//! A submission that is only predicted. Owns: layout. Nothing is submitted.

use std::io::Write;

use api_types::{CreationRequest, PodFate, WouldDo, WouldHappen};

use cli_kit::exit::Error;
use cli_kit::message::print_note;
use cli_kit::output::data;
use cli_kit::table::wrapped;
use dialects::intent::OutputFormat;

/// Maximum number of printed decisions about other workloads.
const DECISIONS_MAX: usize = 20;

/// Prints the body of the submission, once the server has validated it.
pub(super) fn dry_run(request: &CreationRequest, out: &mut dyn Write) -> Result<(), Error> {
    data(request, &OutputFormat::Yaml, &[], out)?;
    print_note("Checked and not submitted; --what-if says what would happen");
    Ok(())
}

/// Prints the predicted outcome.
pub(super) fn run(name: &str, would: &WouldHappen, out: &mut dyn Write) -> Result<(), Error> {
    for line in lines(name, would) {
        writeln!(out, "{}", wrapped(&line))?;
    }
    Ok(())
}

/// Predicted outcome of the submission, then of other workloads.
pub(super) fn lines(name: &str, would: &WouldHappen) -> Vec<String> {
    let mut lines = fates(name, &would.pods);
    for waiting in &would.waiting {
        let reasons = waiting.reasons.iter();
        lines.extend(reasons.map(|reason| format!("  {} {}", reason.code, reason.message)));
        lines.extend(waiting.lines.clone());
    }
    let own = |one: &WouldDo| {
        let is_it = |pod: &PodFate| {
            (&pod.project_name, &pod.workload_name) == (&one.project_name, &one.workload_name)
        };
        would.pods.iter().any(is_it)
    };
    let others: Vec<_> = would.decisions.iter().filter(|one| !own(one)).collect();
    lines.extend(others.iter().take(DECISIONS_MAX).map(|one| about_another(one)));
    if others.len() > DECISIONS_MAX {
        lines.push(format!("… and {} more changes to others", others.len() - DECISIONS_MAX));
    }
    if others.is_empty() {
        lines.push("Nothing else would change.".to_owned());
    }
    lines.push("Nothing was submitted.".to_owned());
    lines
}

/// Outcomes of the pods; pods with the same outcome share one line.
fn fates(name: &str, pods: &[PodFate]) -> Vec<String> {
    let alike = |a: &PodFate, b: &PodFate| (&a.fate, &a.place) == (&b.fate, &b.place);
    let told = |group: &[PodFate]| {
        let first = group.first()?;
        let who = match pods.len() {
            1 => name.to_owned(),
            all => format!("{} of the {all} pods of {name}", group.len()),
        };
        let place = first.place.as_deref().unwrap_or("a node");
        Some(match first.fate.as_str() {
            "start" => format!("{who} would start on {place}."),
            "reserve" => format!("{who} would start on {place} as soon as it is free."),
            _ => format!("{who} would wait:"),
        })
    };
    pods.chunk_by(alike).filter_map(told).collect()
}

fn about_another(one: &WouldDo) -> String {
    let who = format!("{}/{}", one.project_name, one.workload_name);
    let what = match one.kind.as_str() {
        "evict" => format!("{who} would be stopped"),
        "move" => format!("{who} would be moved"),
        "resize" => format!("{who} would get another number of GPUs"),
        "bind" => format!("{who} would start"),
        "reserve" => format!("{who} would get a place that is being freed"),
        "unreserve" => format!("{who} would lose the place that is kept for it"),
        other => format!("{who}: {other}"),
    };
    let place = match (&one.from, &one.to) {
        (Some(from), Some(to)) => format!(", {from} to {to}"),
        (Some(place), None) | (None, Some(place)) => format!(" on {place}"),
        (None, None) => String::new(),
    };
    let why = match (&one.code, &one.reason) {
        (Some(code), Some(reason)) => format!(": {code} {reason}"),
        _ => ".".to_owned(),
    };
    format!("{what}{place}{why}")
}
