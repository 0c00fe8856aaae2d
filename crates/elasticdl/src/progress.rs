//! What a master writes about its job. Owns: asking for it, and one line for each change. Does not
//! know about: where the lines go.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use elastic_proto::Credentials;
use elastic_proto::v1::master_client::MasterClient;
use elastic_proto::v1::{JobPhase, StatusReply, StatusRequest};
use tonic::transport::Endpoint;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// Writes a line of the output of a master.
pub(crate) fn say(line: &str) {
    if let Err(error) = writeln!(std::io::stdout().lock(), "{line}") {
        tracing::warn!(%error, line, "the output of the master is closed");
    }
}

/// Writes a line for each change, as long as the master answers.
pub(crate) async fn report(address: String, token_file: PathBuf) {
    let endpoint = Endpoint::from_shared(format!("http://{address}"));
    let (Ok(endpoint), Ok(credentials)) = (endpoint, Credentials::read(&token_file)) else {
        return; // the master has said so
    };
    let mut master = MasterClient::with_interceptor(endpoint.connect_lazy(), credentials.sign());
    let (mut last, mut since) = (StatusReply::default(), Instant::now());
    loop {
        tokio::time::sleep(EVERY).await;
        // It does not listen yet, or not any more.
        let Ok(answer) = master.status(StatusRequest {}).await else { continue };
        let status = answer.into_inner();
        let moved = status.records != last.records || names(&status) != names(&last);
        if moved && status.phase() == JobPhase::Running {
            say(&line(&status, &last, since.elapsed()));
        }
        if moved {
            (last, since) = (status, Instant::now());
        }
    }
}

fn names(status: &StatusReply) -> Vec<&str> {
    status.workers.iter().map(|worker| worker.pod.as_str()).collect()
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
        names if names.is_empty() => "no worker".to_owned(),
        names => names.join(", "),
    };
    format!(
        "epoch {}: {}{total} records, checkpoint of version {}, {rate} records/s, {workers}",
        now.epoch, now.records, now.checkpoint_version
    )
}

#[cfg(test)]
mod tests {
    use elastic_proto::v1::WorkerStatus;

    use super::*;

    #[test]
    fn a_line_has_what_people_watch() {
        let worker = |pod: &str| WorkerStatus { pod: pod.to_owned(), ..WorkerStatus::default() };
        let before = StatusReply { records: 100, ..StatusReply::default() };
        let mut now = StatusReply {
            epoch: 1,
            records: 300,
            records_total: 1500,
            checkpoint_version: 15,
            workers: vec![worker("w-0"), worker("w-1")],
            ..StatusReply::default()
        };
        let second = Duration::from_secs(1);
        assert_eq!(
            line(&now, &before, second),
            "epoch 1: 300 of 1500 records, checkpoint of version 15, 200 records/s, w-0, w-1"
        );
        (now.records_total, now.workers) = (0, Vec::new());
        let text = line(&now, &before, second * 2);
        assert_eq!(
            text,
            "epoch 1: 300 records, checkpoint of version 15, 100 records/s, no worker"
        );
    }
}
