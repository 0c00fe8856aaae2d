//! Concurrent creations during faults: the server is killed, its database restarted, the disk full.
//! Owns: that acknowledged workloads exist, once, and that errors name the fault.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::{Door, Sandbox, every_process, wait_until};

const SERVER: &str = "elastane up --nodes 2x4x16GiB";
const CLIENTS: usize = 16;
/// Minimum number of workloads that each client creates.
const EACH: usize = 25;

/// The answers to one client.
#[derive(Default)]
struct Told {
    acknowledged: BTreeSet<String>,
    /// Texts of refusals that are not the client's fault.
    errors: Vec<String>,
}

/// A project to create in; its id and the cluster's.
fn project(door: &Door) -> (String, String) {
    let (_, status) = door.ask("GET", "/elastane/v1/status", "").expect("a status");
    let cluster = text(&status, "clusterId");
    let resources = json!([{"gpu": {"deserved": 8}}]);
    let body = json!({"name": "team-a", "clusterId": cluster, "resources": resources});
    let (code, made) =
        door.ask("POST", "/api/v1/org-unit/projects", &body.to_string()).expect("an answer");
    assert_eq!(code, 201, "{made}");
    (text(&made, "id"), cluster)
}

fn text(body: &str, key: &str) -> String {
    let body: Value = serde_json::from_str(body).expect("JSON");
    body[key].as_str().expect("a text").to_owned()
}

fn creation(name: &str, (project, cluster): &(String, String)) -> String {
    let compute =
        json!({"gpuDevicesRequest": 1, "cpuCoreRequest": 0.001, "cpuMemoryRequest": "1M"});
    let spec = json!({"image": "ubuntu", "command": "sleep 1000", "compute": compute});
    json!({"name": name, "projectId": project, "clusterId": cluster, "spec": spec}).to_string()
}

/// Creates workloads one after the other, with retries until each exists; at least `EACH`, and more
/// until `is_over`.
fn create(
    door: &Door,
    client: usize,
    place: &(String, String),
    is_over: impl Fn() -> bool,
) -> Told {
    let mut told = Told::default();
    for number in 0.. {
        if number >= EACH && is_over() {
            break;
        }
        let name = format!("w{client}-{number}");
        let body = creation(&name, place);
        let mut in_doubt = false;
        let there = wait_until(|| {
            match door.ask("POST", "/api/v1/workloads/trainings", &body) {
                Some((202, _)) => true,
                // It was created when an earlier answer was lost; without one no other client
                // created it.
                Some((409, why)) => {
                    assert!(in_doubt, "{name} was never created, and exists: {why}");
                    true
                }
                Some((503, why)) => {
                    in_doubt = true;
                    told.errors.push(why);
                    false
                }
                Some((code, why)) => panic!("{name}: {code} {why}"),
                None => {
                    in_doubt = true;
                    false
                }
            }
        });
        assert!(there, "{name} cannot be created: {:?}", told.errors.last());
        told.acknowledged.insert(name);
    }
    told
}

/// Creates from all clients at once until `disturb` has returned.
fn under_load(door: &Door, disturb: impl FnOnce() + Send) -> Vec<String> {
    let place = &project(door);
    let told: Vec<Told> = std::thread::scope(|scope| {
        let disturbing = Arc::new(scope.spawn(disturb));
        let client = |client| {
            let disturbing = Arc::clone(&disturbing);
            scope.spawn(move || create(door, client, place, || disturbing.is_finished()))
        };
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        clients.into_iter().map(|client| client.join().expect("a client")).collect()
    });
    let acknowledged: BTreeSet<String> =
        told.iter().flat_map(|told| told.acknowledged.clone()).collect();
    assert_eq!(listed(door), acknowledged.into_iter().collect::<Vec<_>>());
    told.into_iter().flat_map(|told| told.errors).collect()
}

/// Maximum number of rows of a list.
const PAGE: usize = 500;

/// Every name, once for each time that it is listed, in order.
fn listed(door: &Door) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let path = format!("/api/v1/workloads?limit={PAGE}&offset={}", names.len());
        let (code, list) = door.ask("GET", &path, "").expect("a list");
        assert_eq!(code, 200, "{list}");
        let list: Value = serde_json::from_str(&list).expect("JSON");
        let rows = list["workloads"].as_array().expect("workloads");
        names.extend(rows.iter().map(|row| row["name"].as_str().unwrap_or("?").to_owned()));
        if rows.len() < PAGE {
            break;
        }
    }
    names.sort();
    names
}

#[test]
fn a_server_killed_under_load_loses_and_doubles_nothing() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server(SERVER);
    let door = sandbox.door(&sandbox.state_dir());
    under_load(&door, || {
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(100));
            sandbox.kill_server();
            sandbox.start_server(SERVER);
        }
    });
}

#[test]
fn a_database_restarted_under_load_loses_and_doubles_nothing() {
    let Some(postgres) = store::testing::PgServer::own() else { return };
    let mut sandbox = Sandbox::new();
    sandbox.start_server(&format!("{SERVER} --database '{}'", postgres.text("postgres")));
    under_load(&sandbox.door(&sandbox.state_dir()), || {
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(100));
            postgres.down();
            postgres.up();
        }
    });
}

/// A state directory on a small disk of its own; visible from outside through the server.
const SMALL_DISK: &str = "unshare --user --map-root-user --mount sh -c \
    'mkdir -p \"$ELASTANE_STATE_DIR\" && mount -t tmpfs -o size=12m,mode=700 small \"$ELASTANE_STATE_DIR\" && \
    exec elastane up --nodes 2x4x16GiB \"$@\"' up";

#[test]
fn a_full_disk_refuses_with_its_reason_and_loses_nothing() {
    let mut sandbox = Sandbox::new();
    let may = sandbox.shell("unshare --user --map-root-user --mount mount -t tmpfs none /mnt");
    if may.code != Some(0) {
        return skip::skipped("no mount namespace for a small disk");
    }
    sandbox.start_server(SMALL_DISK);
    let state_dir = inside(&sandbox);
    let ballast = state_dir.join("ballast");
    let errors = under_load(&sandbox.door(&state_dir), || {
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(100));
            fill(&ballast);
            std::thread::sleep(Duration::from_millis(1_500));
            fs::remove_file(&ballast).expect("the ballast goes");
        }
    });
    assert!(!errors.is_empty(), "the disk was never full");
    let named = |error: &&String| error.contains("full") || error.contains("space");
    assert!(errors.iter().any(|error| named(&error)), "{:?}", errors.first());
}

/// The state directory as the server sees it.
fn inside(sandbox: &Sandbox) -> PathBuf {
    let port = format!("127.0.0.1:{}", sandbox.port());
    let server = every_process().into_iter().find(|process| {
        process.command.starts_with("elastane up") && process.command.contains(&port)
    });
    let pid = server.expect("the server runs").pid;
    let dir = sandbox.state_dir();
    Path::new(&format!("/proc/{pid}/root")).join(dir.strip_prefix("/").expect("absolute"))
}

/// Writes until there is no space.
fn fill(path: &Path) {
    let mut file = fs::File::create(path).expect("a file");
    let block = vec![0_u8; 64 << 10];
    while file.write_all(&block).is_ok() {}
    while file.write_all(&[0]).is_ok() {}
}
