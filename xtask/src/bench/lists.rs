//! Lists of many workloads and of the audit log. Owns: how many a second, and how long it takes to
//! create so many workloads one after the other.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use serde_json::json;

use super::load::ask_many;
use super::server::Server;
use super::{line, rate};

/// Default number of workloads in the lists.
pub(super) const WORKLOADS: usize = 10_000;
const CONNECTIONS: usize = 8;
const REQUESTS: usize = 1_000;
/// Pages that a person looks at, with the required number per second.
const PAGES: [(&str, &str, f64); 3] = [
    (
        "pages of 50, filtered, sorted",
        "/api/v1/workloads?filterBy=phase==Pending,name=@1&sortBy=name&sortOrder=desc&limit=50",
        3_000.0,
    ),
    (
        "pages of 500, filtered, sorted",
        "/api/v1/workloads?filterBy=phase==Pending,name=@1&sortBy=name&sortOrder=desc&limit=500",
        500.0,
    ),
    ("pages of the audit log", "/api/v1/audit/log?limit=50", 2_000.0),
];

/// Measures with the last of the numbers of workloads.
pub(super) fn run(elastane: &Path, sizes: &[usize]) -> Result<()> {
    let count = sizes.last().copied().unwrap_or(WORKLOADS);
    let mut server = Server::new(elastane, "4x16GiB")?;
    server.start()?;
    let project = server.create_project(4)?;
    let cluster = server.cluster_id()?;
    let since = Instant::now();
    let mut connection = server.connection()?;
    for index in 0..count {
        let compute =
            json!({ "gpuDevicesRequest": 1, "cpuCoreRequest": 0.001, "cpuMemoryRequest": "1M" });
        let spec = json!({ "image": "ubuntu", "command": "sleep infinity", "compute": compute });
        let body = json!({
            "name": format!("list-{index}"), "projectId": project, "clusterId": cluster,
            "spec": spec,
        });
        connection.expect("POST", "/api/v1/workloads/trainings", &body.to_string())?;
    }
    let seconds = since.elapsed().as_secs_f64();
    let goal = (count == WORKLOADS).then_some(15.0);
    line(&format!("{count} submissions, one after the other"), seconds, "s", goal)?;
    for (what, path, goal) in PAGES {
        let since = Instant::now();
        ask_many(&server, REQUESTS, CONNECTIONS, |connection, _| {
            connection.expect("GET", path, "").map(drop)
        })?;
        rate(&format!("{what}, of {count}"), REQUESTS, since.elapsed().as_secs_f64(), Some(goal))?;
    }
    Ok(())
}
