//! The last lines of what a failed run wrote, for those who ask how a workload is. Owns: which run
//! that is, and how much of it is shown.

use api_types::{Pod, Workload};
use client::Client;

use super::rows;
use cli_kit::exit::Error;

/// Lines of output that say why a run failed, most often.
const LINES_MAX: u64 = 10;

/// A last line without an end may be long.
const CHARS_MAX: usize = 4000;

/// The last lines of a failed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LastOutput {
    pub(super) pod: String,
    pub(super) text: String,
}

impl LastOutput {
    pub(super) fn title(&self) -> String {
        format!("Last output of {}", self.pod)
    }

    /// The lines, each indented, so that none is taken for one of ours.
    pub(super) fn indented(&self) -> String {
        if self.text.is_empty() {
            return "  (it wrote nothing)\n".to_owned();
        }
        self.text.lines().map(|line| format!("  {line}\n")).collect()
    }
}

/// Adds what the run wrote that failed to why a wait has failed.
pub(super) async fn with_why(why: Error, workload: &Workload, client: &Client) -> Error {
    let Error::Failed(why) = why else { return why };
    if !is_due(workload) {
        return Error::Failed(why);
    }
    let output = async { of(workload, &client.pods(&workload.id).await?, client).await };
    Error::Failed(match output.await {
        Ok(Some(output)) => {
            format!("{why}\n{}:\n{}", output.title(), output.indented().trim_end())
        }
        Ok(None) => why,
        Err(error) => format!("{why}; what it wrote cannot be had: {error}"),
    })
}

/// True if there may be any.
pub(super) fn is_due(workload: &Workload) -> bool {
    state_of_failed(workload).is_some()
}

/// The last lines of the run that failed; none of a workload that has not failed.
pub(super) async fn of(
    workload: &Workload,
    pods: &[Pod],
    client: &Client,
) -> Result<Option<LastOutput>, Error> {
    let Some(pod) = failed_pod(workload, pods) else { return Ok(None) };
    let which = client::Logs { tail_lines: Some(LINES_MAX), ..client::Logs::default() };
    let mut stream = match client.logs(&workload.id, Some(&pod.name), &which).await {
        Ok(stream) => stream,
        // It never ran, its output is deleted already, or the caller may not read it.
        Err(client::Error::Api { code: 403 | 404 | 409, .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.next().await? {
        bytes.extend(chunk);
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(LastOutput { pod: pod.name.clone(), text: end_of(&text).to_owned() }))
}

/// The pod whose end is that of the workload, where the workload failed or is to be started again.
fn failed_pod<'a>(workload: &Workload, pods: &'a [Pod]) -> Option<&'a Pod> {
    let state = state_of_failed(workload)?;
    let why = workload.additional_fields.last_exit.as_ref();
    let failed = || pods.iter().filter(|pod| pod.state == state && pod.generation > 0);
    failed().find(|pod| pod.last_exit.as_ref() == why).or_else(|| failed().next())
}

fn state_of_failed(workload: &Workload) -> Option<&'static str> {
    match workload.phase.as_str() {
        "Failed" => Some("Failed"),
        _ => rows::crash_loops(workload).then_some("CrashLoopBackOff"),
    }
}

/// The last characters of a text.
fn end_of(text: &str) -> &str {
    let from = text.char_indices().rev().nth(CHARS_MAX - 1).map_or(0, |(at, _)| at);
    text.get(from..).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_others_are_indented_and_the_end_counts() {
        let output = |text: &str| LastOutput { pod: "p".into(), text: text.to_owned() }.indented();
        assert_eq!(output("Traceback\nNAME: x\n"), "  Traceback\n  NAME: x\n");
        assert_eq!(output(""), "  (it wrote nothing)\n");
        assert_eq!(end_of("short ü"), "short ü");
        let long = format!("{}end", "ü".repeat(CHARS_MAX));
        assert_eq!((end_of(&long).chars().count(), end_of(&long).ends_with("end")), (4000, true));
    }
}
