//! The last lines of the output of a failed run, for descriptions. Owns: the choice of the run, and
//! the number of lines shown.

use api_types::{Pod, Workload, WorkloadPhase};
use client::Client;

use super::rows;
use cli_kit::exit::Error;

/// Maximum number of lines; most often they show why a run failed.
const LINES_MAX: u64 = 10;

/// Maximum number of characters, as the last line may have no end.
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

    /// The last line with text, which most often is the error; `None` if there is none.
    pub(super) fn last_line(&self) -> Option<&str> {
        self.text.lines().rev().map(str::trim_end).find(|line| !line.is_empty())
    }

    /// The lines, each indented, so that none looks like a line of this program.
    pub(super) fn indented(&self) -> String {
        if self.text.is_empty() {
            return "  (it wrote nothing)\n".to_owned();
        }
        self.text.lines().map(|line| format!("  {line}\n")).collect()
    }
}

/// Adds the output of the failed run to the reason why a wait has failed.
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

/// True if a workload may have such output.
pub(super) fn is_due(workload: &Workload) -> bool {
    state_of_failed(workload).is_some()
}

/// The last lines of the failed run; `None` if the workload has not failed.
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

/// The pod whose end is that of the workload, if the workload failed or will be restarted.
fn failed_pod<'a>(workload: &Workload, pods: &'a [Pod]) -> Option<&'a Pod> {
    let state = state_of_failed(workload)?;
    let why = workload.additional_fields.last_exit.as_ref();
    let failed = || pods.iter().filter(|pod| pod.state == state && pod.generation > 0);
    failed().find(|pod| pod.last_exit.as_ref() == why).or_else(|| failed().next())
}

fn state_of_failed(workload: &Workload) -> Option<&'static str> {
    match workload.phase() {
        WorkloadPhase::Failed => Some("Failed"),
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
        let last = |text: &str| {
            let output = LastOutput { pod: "p".into(), text: text.to_owned() };
            output.last_line().map(str::to_owned)
        };
        assert_eq!(last("Traceback\nNAME: x\n \n\n").as_deref(), Some("NAME: x"));
        assert_eq!(last("\n"), None);
        assert_eq!(end_of("short ü"), "short ü");
        let long = format!("{}end", "ü".repeat(CHARS_MAX));
        assert_eq!((end_of(&long).chars().count(), end_of(&long).ends_with("end")), (4000, true));
    }
}
