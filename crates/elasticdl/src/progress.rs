//! Progress output of a master. Owns: the status requests, and one line for each change. Does not
//! know about: the destination of the lines.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use elastic::Progress;
use elastic_proto::v1::master_client::MasterClient;
use elastic_proto::v1::{JobPhase, StatusReply, StatusRequest};
use elastic_proto::{Credentials, Sign};
use elastic_ps::Pushes;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

/// Maximum number of lines of a stack trace that are shown.
const TRACE_LINES_MAX: usize = 30;
/// Text in place of the names of workers.
const NO_WORKER: &str = "no worker";
/// Interval of status requests.
const EVERY: Duration = Duration::from_secs(1);
/// Interval of status requests of a job that stops.
const SOON: Duration = Duration::from_millis(100);

/// Numbers of records and tasks of a job by outcome.
pub(crate) fn summary(progress: &Progress, applied: Option<u64>) -> String {
    let Progress { records, bad_records, tasks, handed_back, lost, failed } = progress;
    let applied = applied.map(|count| format!("; the model has the gradients of {count} records"));
    format!(
        "{records} records ({bad_records} unreadable) in {tasks} tasks; {handed_back} were handed \
         back, {lost} were lost with a worker, {failed} failed{}",
        applied.unwrap_or_default()
    )
}

/// Numbers of accepted and rejected gradients.
pub(crate) fn gradients(pushes: Pushes) -> String {
    let Pushes { accepted, rejected } = pushes;
    format!("gradients: {accepted} accepted, {rejected} rejected as too old")
}

/// Metrics of a version of the model; 0 is the initial model of an evaluation.
pub(crate) fn measured(version: u64, records: u64, metrics: &BTreeMap<String, f64>) -> String {
    let of = match version {
        0 => String::new(),
        version => format!("version {version}, "),
    };
    let values = metrics.iter().map(|(name, value)| format!("{} {value:.4}", units::shown(name)));
    let values = match metrics.is_empty() {
        true => "no metric".to_owned(),
        false => values.collect::<Vec<_>>().join(", "),
    };
    format!("Evaluation: {of}{records} records: {values}")
}

/// The last lines of a stack trace, each indented, so that none looks like a line of the master.
pub(crate) fn indented(trace: &str) -> String {
    let lines: Vec<_> = trace.trim_end().lines().collect();
    let last = &lines[lines.len().saturating_sub(TRACE_LINES_MAX)..];
    last.iter().map(|line| format!("\n  {line}")).collect()
}

/// Writes a line of the output of a master.
pub(crate) fn print_line(line: &str) {
    if let Err(error) = writeln!(std::io::stdout().lock(), "{line}") {
        tracing::warn!(%error, line, "the output of the master is closed");
    }
}

type Master = MasterClient<InterceptedService<Channel, Sign>>;

/// Client of a master; `None` if its address or its token is invalid, which the master itself
/// reports.
pub(crate) fn master(address: &str, token_file: &Path) -> Option<Master> {
    let credentials = Credentials::read(token_file).ok()?;
    let channel = credentials.endpoint(address)?.connect_lazy();
    Some(MasterClient::with_interceptor(channel, credentials.sign()))
}

/// Waits until a condition holds for a job, or its master does not answer. Returns true if it
/// holds.
pub(crate) async fn reaches(
    address: String,
    token_file: PathBuf,
    is: impl Fn(&StatusReply) -> bool,
) -> bool {
    let Some(mut master) = master(&address, &token_file) else { return false };
    while let Ok(answer) = master.status(StatusRequest {}).await {
        if is(&answer.into_inner()) {
            return true;
        }
        tokio::time::sleep(SOON).await;
    }
    false
}

/// Writes a line for each change, as long as the master answers.
pub(crate) async fn report(address: String, token_file: PathBuf) {
    let Some(mut master) = master(&address, &token_file) else { return };
    let (mut last, mut since) = (StatusReply::default(), Instant::now());
    loop {
        tokio::time::sleep(EVERY).await;
        // The master does not listen yet, or not any more.
        let Ok(answer) = master.status(StatusRequest {}).await else { continue };
        let status = answer.into_inner();
        let moved = status.records != last.records || names(&status) != names(&last);
        if moved && status.phase() == JobPhase::Running {
            print_line(&line(&status, &last, since.elapsed()));
        }
        if moved {
            (last, since) = (status, Instant::now());
        }
    }
}

/// The pods of the workers, by number and not by the order in which they joined.
fn names(status: &StatusReply) -> Vec<&str> {
    let mut names: Vec<&str> = status.workers.iter().map(|worker| worker.pod.as_str()).collect();
    names.sort_unstable_by_key(|name| (name.len(), *name));
    names
}

fn line(now: &StatusReply, before: &StatusReply, in_time: Duration) -> String {
    let total = match now.records_total {
        0 => String::new(),
        total => format!(" of {total}"),
    };
    let visited = now.records.saturating_sub(before.records);
    let in_ms = u64::try_from(in_time.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = visited.saturating_mul(1000) / in_ms;
    let workers = match names(now) {
        names if names.is_empty() => NO_WORKER.to_owned(),
        names => names.join(", "),
    };
    let loss = loss(now).map(|loss| format!("Loss {loss:.4}, ")).unwrap_or_default();
    let old = match now.gradients_rejected {
        0 => String::new(),
        old => format!("{old} gradients too old, "),
    };
    let rows = match now.rows {
        0 => String::new(),
        rows => format!("{rows} embedding rows, "),
    };
    format!(
        "epoch {}: {}{total} records, checkpoint of version {}, {rate} records/s, {loss}{old}\
         {rows}{workers}",
        now.epoch, now.records, now.checkpoint_version
    )
}

/// Mean loss of the last steps of all workers; `None` before the first step.
fn loss(status: &StatusReply) -> Option<f64> {
    let reports = status.workers.iter().filter_map(|worker| worker.report);
    let losses: Vec<f64> =
        reports.filter(|of| of.steps > 0 && of.loss.is_finite()).map(|of| of.loss).collect();
    #[expect(clippy::cast_precision_loss, reason = "workers are few")]
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    (!losses.is_empty()).then_some(mean)
}

/// Values of a progress line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ProgressLine {
    /// Records per second.
    pub(crate) rate: u32,
    pub(crate) loss: Option<f64>,
    pub(crate) workers: u32,
}

impl ProgressLine {
    /// Parses a line written by [`line`]; `None` for any other.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (_, rest) =
            text.strip_prefix("epoch ")?.split_once(" records, checkpoint of version ")?;
        let mut parts = rest.split(", ").skip(1);
        let rate = parts.next()?.strip_suffix(" records/s")?.parse().ok()?;
        let mut parts = parts.peekable();
        let loss = parts.peek().and_then(|part| part.strip_prefix("Loss ")?.parse().ok());
        // A part with blanks is not the name of a pod.
        let names = parts.filter(|part| !part.contains(' '));
        Some(Self { rate, loss, workers: u32::try_from(names.count()).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use elastic_proto::v1::{WorkerReport, WorkerStatus};

    use super::*;

    #[test]
    fn a_summary_accounts_for_every_task() {
        let progress =
            Progress { records: 1500, tasks: 15, handed_back: 2, lost: 1, ..Progress::default() };
        let tasks = "1500 records (0 unreadable) in 15 tasks; 2 were handed back, 1 were lost with a \
                     worker, 0 failed";
        assert_eq!(summary(&progress, None), tasks);
        let applied = format!("{tasks}; the model has the gradients of 1510 records");
        assert_eq!(summary(&progress, Some(1510)), applied);
    }

    #[test]
    fn a_measurement_says_of_what() {
        let metrics = BTreeMap::from([("loss".to_owned(), 0.5), ("accuracy".to_owned(), 0.966_66)]);
        let text = measured(45, 297, &metrics);
        assert_eq!(text, "Evaluation: version 45, 297 records: accuracy 0.9667, loss 0.5000");
        // A metric's name is from a worker's code, and must not form a line of its own.
        let forged = BTreeMap::from([("a\nepoch 0".to_owned(), 1.0)]);
        assert_eq!(measured(0, 7, &forged), "Evaluation: 7 records: a\\nepoch 0 1.0000");
        assert_eq!(measured(0, 7, &BTreeMap::new()), "Evaluation: 7 records: no metric");
    }

    #[test]
    fn the_end_of_a_trace_is_shown_and_indented() {
        assert_eq!(
            indented("Traceback\n  File\nNameError: x\n"),
            "\n  Traceback\n    File\n  NameError: x"
        );
        let long: String = (0..99).map(|line| format!("{line}\n")).collect();
        let shown = indented(&long);
        assert!(shown.starts_with("\n  69\n") && shown.ends_with("\n  98"), "{shown}");
    }

    #[test]
    fn a_line_has_what_people_watch() {
        let worker = |pod: &str| WorkerStatus { pod: pod.to_owned(), ..WorkerStatus::default() };
        let before = StatusReply { records: 100, ..StatusReply::default() };
        let mut now = StatusReply {
            epoch: 1,
            records: 300,
            records_total: 1500,
            checkpoint_version: 15,
            workers: vec![worker("w-1"), worker("w-0")],
            ..StatusReply::default()
        };
        let second = Duration::from_secs(1);
        assert_eq!(
            line(&now, &before, second),
            "epoch 1: 300 of 1500 records, checkpoint of version 15, 200 records/s, w-0, w-1"
        );
        let read = ProgressLine::read(&line(&now, &before, second));
        assert_eq!(read, Some(ProgressLine { rate: 200, loss: None, workers: 2 }));
        let report = |loss| Some(WorkerReport { loss, steps: 1, ..WorkerReport::default() });
        (now.workers[0].report, now.workers[1].report) = (report(0.5), report(1.0));
        let text = line(&now, &before, second);
        assert!(text.ends_with(", 200 records/s, Loss 0.7500, w-0, w-1"), "{text}");
        assert_eq!(
            ProgressLine::read(&text),
            Some(ProgressLine { rate: 200, loss: Some(0.75), workers: 2 })
        );
        (now.gradients_rejected, now.rows) = (7, 900);
        let text = line(&now, &before, second);
        let end = ", Loss 0.7500, 7 gradients too old, 900 embedding rows, w-0, w-1";
        assert!(text.ends_with(end), "{text}");
        assert_eq!(
            ProgressLine::read(&text),
            Some(ProgressLine { rate: 200, loss: Some(0.75), workers: 2 })
        );
        (now.gradients_rejected, now.rows) = (0, 0);
        (now.records_total, now.workers) = (0, Vec::new());
        let text = line(&now, &before, second * 2);
        assert_eq!(
            text,
            "epoch 1: 300 records, checkpoint of version 15, 100 records/s, no worker"
        );
        assert_eq!(
            ProgressLine::read(&text),
            Some(ProgressLine { rate: 100, loss: None, workers: 0 })
        );
    }
}
