//! `simulate --from SNAPSHOT --submit …`: predicted outcome of submissions. Owns: the conversion of
//! a submission to a workload of a scenario, which is the server's own unless it is given in the
//! form of a scenario, and the answer. Accesses no files.

use std::io::Write;
use std::path::Path;

use sim::scenario::{At, Scenario, Step, Submit, Workload};

use super::{Simulate, show};
use cli_kit::exit::Error;
use cli_kit::table;

pub(super) fn run(flags: &Simulate, file: &Path, out: &mut dyn Write) -> Result<(), Error> {
    ask(flags, super::read(file, flags)?, file, out)
}

/// Submits to the state of a scenario from this file.
pub(crate) fn ask(
    flags: &Simulate,
    mut scenario: Scenario,
    file: &Path,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut asked = Vec::new();
    for (number, words) in flags.submit.iter().enumerate() {
        let submit = submitted(&scenario, words, number)?;
        asked.extend(submit.names());
        let submit = Some(At::from(submit));
        scenario.steps.push(At::from(Step { submit, ..Step::default() }));
    }
    let outcome = super::simulate(&scenario, file, flags)?;
    if flags.json {
        show::outcome(&outcome, flags, out)?;
        return super::finish(&outcome, file);
    }
    if let Some(last) = outcome.frames.last() {
        for (project, name) in &asked {
            for line in show::fate(last, project, name) {
                writeln!(out, "{}", table::wrapped(&line))?;
            }
        }
    }
    let decided = outcome.frames.iter().any(|frame| !frame.decisions.is_empty());
    if decided {
        writeln!(out)?;
        show::decisions(&outcome.frames, out)?;
    } else {
        writeln!(out, "Nothing else changes.")?;
    }
    super::finish(&outcome, file)
}

/// The submission, in one of two forms: the words of a command line, or a workload of a scenario
/// file, whose keys are followed by colons.
fn submitted(scenario: &Scenario, words: &str, number: usize) -> Result<Submit, Error> {
    let first = words.split_whitespace().next().unwrap_or_default();
    if first == "-" || first.starts_with(['{', '[']) || first.ends_with(':') {
        return Submit::read(words).map_err(|error| super::in_file(Path::new("--submit"), &error));
    }
    Ok(Submit(vec![At::from(workload(scenario, words, number)?)]))
}

/// The workload of a submission's words.
fn workload(scenario: &Scenario, words: &str, number: usize) -> Result<Workload, Error> {
    let said = dialects::submission(words)?;
    let projects: Vec<_> = leaves(scenario);
    let project = match (&said.project, projects.as_slice()) {
        (Some(project), _) => project.clone(),
        (None, [only]) => (*only).to_owned(),
        (None, _) => {
            return Err(Error::Usage(format!(
                "--submit: say in which project with -p; known are {}",
                projects.join(", ")
            )));
        }
    };
    let name = said.name.clone().unwrap_or_else(|| format!("what-if-{number}"));
    let (workload_type, request) = said.request(&name)?;
    let spec = api::workload_asked_for(workload_type, request).map_err(Error::Usage)?;
    Ok(api::as_in_a_scenario(&spec, &project))
}

/// Queues without child queues.
fn leaves(scenario: &Scenario) -> Vec<&str> {
    let above = |name: &str| scenario.queues.iter().any(|q| q.parent.as_deref() == Some(name));
    scenario.queues.iter().map(|queue| queue.name.as_str()).filter(|name| !above(name)).collect()
}
