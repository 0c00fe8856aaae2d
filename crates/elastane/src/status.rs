//! `elastane status`, `elastane snapshot` and `elastane token`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use api_types::{ChangeKind, NodeScheduling, OutageKind, Status};

use super::entries::{entry, isolation};
use cli_kit::change_wait::ChangeWait;
use cli_kit::exit::Error;
use cli_kit::output::{One, OutputOptions, show};
use cli_kit::table::Table;

/// Interval and number of checks whether a server has replaced a revoked token.
const REVOKED_LOOK: Duration = Duration::from_millis(100);
const REVOKED_LOOKS: u32 = 100;

pub(super) async fn run(state_dir: PathBuf, one: One) -> Result<(), Error> {
    let found = client::find(None, None, Some(&state_dir), None)?;
    let how = OutputOptions::from(one);
    let look = async |out: &mut dyn Write| {
        let status = found.client.status().await?;
        match how.shown.is_text() {
            true => text(&status, found.client.url(), &state_dir, out),
            false => how.data(&status, &[format!("server/{}", found.client.url())], out),
        }
    };
    let kinds = [ChangeKind::Node, ChangeKind::Workload, ChangeKind::Project];
    let pulse = ChangeWait::watch(&found.client, &kinds, None).with_unseen();
    show(&how, &mut std::io::stdout(), Some(pulse), look).await
}

fn text(status: &Status, url: &str, state_dir: &Path, out: &mut dyn Write) -> Result<(), Error> {
    let simulated = if status.simulated { "  *** SIMULATED ***" } else { "" };
    writeln!(out, "elastane {} is running at {}", status.version, url)?;
    writeln!(out, "  State      {}", state_dir.display())?;
    writeln!(out, "  Runtime    {}", status.runtime)?;
    if let Some(outage) = &status.outage {
        let api_types::Outage { kind, message, since } = outage;
        write!(out, "{}", entry("", &format!("*** {message}")))?;
        match kind {
            OutageKind::Silent => writeln!(out, "             *** what follows is as of {since}")?,
            OutageKind::DiskFull => writeln!(out, "             *** since {since}")?,
        }
    }
    // Servers of earlier versions do not send it.
    if !status.isolation.kind.is_empty() {
        let api_types::Isolation { kind, meaning, missing } = &status.isolation;
        write!(out, "{}", isolation(kind, meaning, missing.as_deref().unwrap_or_default()))?;
    }
    if let Some(why) = &status.limits.why {
        write!(out, "{}", entry("Limits", &format!("not all are kept: {why}")))?;
    }
    for left in &status.leftovers {
        let api_types::Leftover { folder, entries, message } = left;
        let what = format!("what workloads left in {folder} (entries: {entries})");
        write!(out, "{}", entry("Deleting", &what))?;
        if let Some(why) = message {
            write!(out, "{}", entry("", &format!("*** it cannot go on: {why}")))?;
        }
    }
    writeln!(out, "  GPUs       {} of {} in use{simulated}", status.gpus_allocated, status.gpus)?;
    let mut kinds: Vec<_> =
        status.nodes.iter().filter_map(|node| node.fractions.as_ref()).collect();
    kinds.dedup();
    for kept in kinds {
        let api_types::FractionLimit { enforcement, meaning, why, .. } = kept;
        write!(out, "{}", entry("Fractions", &format!("{enforcement}: {meaning}")))?;
        if let Some(why) = why {
            write!(out, "{}", entry("", why))?;
        }
        if !["", "none"].contains(&kept.time_slicing.as_str()) {
            let (mode, meaning) = (&kept.time_slicing, &kept.time_slicing_meaning);
            write!(out, "{}", entry("", &format!("compute time {mode}: {meaning}")))?;
        }
    }
    for node in &status.nodes {
        let name = &node.name;
        match node.scheduling {
            NodeScheduling::Enabled => {}
            NodeScheduling::Disabled => writeln!(out, "             {name} is cordoned")?,
            NodeScheduling::Draining => writeln!(out, "             {name} is being drained")?,
        }
        if let Some(instances) = api_types::MigInstance::summary(&node.mig_instances) {
            write!(out, "{}", entry("", &format!("{name} has MIG instances: {instances}")))?;
        }
        for fault in &node.gpu_faults {
            let api_types::GpuFault { gpu, code, message, .. } = fault;
            write!(out, "{}", entry("", &format!("GPU {gpu} of {name} is {message} ({code})")))?;
        }
    }
    writeln!(out, "  Projects   {}", status.projects)?;
    writeln!(out, "  Workloads  {}\n", status.workloads)?;
    write!(out, "{}", uses(status).ruled())?;
    Ok(())
}

/// Usage of each GPU.
fn uses(status: &Status) -> Table {
    let mut table = Table::new(&["Node", "GPU Type", "GPUs", "Use of each"]);
    for node in &status.nodes {
        let is_out = |at: usize| node.gpu_faults.iter().any(|fault| fault.gpu as usize == at);
        let used = node.gpu_used.iter().enumerate();
        let used = used.map(|(at, used)| match is_out(at) {
            true => "out".to_owned(),
            false => used.to_string(),
        });
        let uses: Vec<String> = used.collect();
        table.row([
            node.name.clone(),
            node.gpu_type.clone(),
            node.gpu_used.len().to_string(),
            uses.join(" "),
        ]);
    }
    table
}

pub(super) async fn snapshot(state_dir: PathBuf) -> Result<(), Error> {
    let found = client::find(None, None, Some(&state_dir), None)?;
    let text = found.client.snapshot().await?;
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

pub(super) fn token(state_dir: &Path, revoke: bool) -> Result<(), Error> {
    let path = state_dir.join(auth::TOKEN_FILE);
    let read = || {
        let text = std::fs::read_to_string(&path);
        text.map_err(|error| {
            Error::Failed(format!(
                "cannot read {}: {error}; `elastane up` writes it, for its own user",
                path.display()
            ))
        })
    };
    let mut token = read()?;
    if revoke {
        std::fs::remove_file(&path)?;
        token = await_token(&path, &read)?;
    }
    writeln!(std::io::stdout(), "{}", token.trim())?;
    Ok(())
}

/// Waits for a new token: a running server revokes the earlier ones as soon as the file is missing,
/// then writes a new one.
fn await_token(path: &Path, read: &dyn Fn() -> Result<String, Error>) -> Result<String, Error> {
    for _ in 0..REVOKED_LOOKS {
        std::thread::sleep(REVOKED_LOOK);
        if path.exists() {
            return read();
        }
    }
    let file = path.display();
    Err(Error::Failed(format!(
        "{file} was deleted, but no server has written a new one; tokens of a server that has \
         stopped are worth nothing: start one with `elastane up`"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(change: serde_json::Value) -> String {
        let mut status = serde_json::json!({
            "version": "1", "clusterId": "", "clusterName": "", "runtime": "process",
            "fractionEnforcement": "none", "simulated": false, "now": "2026-11-28T09:00:00Z",
            "eventSeq": 1, "gpus": 1, "gpusAllocated": 0, "nodes": [], "projects": 0, "workloads": 0,
        });
        let change = change.as_object().unwrap().clone();
        status.as_object_mut().unwrap().extend(change);
        let status: Status = serde_json::from_value(status).unwrap();
        let mut out = Vec::new();
        text(&status, "http://localhost", Path::new("/state"), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_failed_gpu_does_not_look_free() {
        let out = shown(serde_json::json!({"nodes": [{
            "name": "n", "gpuType": "simulated", "simulated": true, "gpuMemoryBytes": [1, 1],
            "gpuUsed": [0, 0.5], "cpuMillis": 1, "cpuUsedMillis": 0, "memoryBytes": 1,
            "memoryUsedBytes": 0, "gpuTroubles": [
                {"gpu": 0, "code": "E207", "name": "GpuLost", "message": "gone", "since": 0},
            ],
        }]}));
        assert!(out.ends_with("n     simulated  2     out 0.5\n"), "{out}");
    }

    #[test]
    fn what_is_still_being_deleted_is_said_with_the_reason_why_it_stays() {
        let out = shown(serde_json::json!({
            "leftovers": [
                {"folder": "/state/trash", "entries": 7},
                {"folder": "/memory/trash", "entries": 1, "message": "Permission denied"},
            ],
        }));
        let said: Vec<_> =
            out.lines().skip_while(|line| !line.contains("Deleting")).take(3).collect();
        let expected = [
            "  Deleting   what workloads left in /state/trash (entries: 7)",
            "  Deleting   what workloads left in /memory/trash (entries: 1)",
            "             *** it cannot go on: Permission denied",
        ];
        assert_eq!(said, expected);
    }
}
