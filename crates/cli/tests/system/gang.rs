//! Distributed pods, as real processes that meet at the address in their environment.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, environment, kill, wait_until};

/// Tests whose pods run the same program with the same name, and get the address to meet at.
const TEST: &str = "gang::a_master_and_workers_meet_begin_anew_together_and_outlive_the_server";
const GROUPS_TEST: &str = "gang::groups_meet_each_on_its_own_and_begin_again_alone";
/// Two groups of a leader and a worker.
const GROUPS: &str = "
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: s}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec:
        containers:
          - command: [PROGRAM, --exact, --nocapture, TEST]
            env: [{name: MEETING, value: FOLDER}]
            resources: {limits: {nvidia.com/gpu: 1}}
";

/// Program of each pod: all send their ranks to the first, which sends them the sum. The first
/// time, the last pod fails before that. After the exchange they stay until the file `go` exists.
fn member() {
    let told = |name: &str| std::env::var(name).expect(name);
    let number = |name: &str| told(name).parse::<usize>().expect(name);
    let (rank, size) = (number("RANK"), number("WORLD_SIZE"));
    let folder = told("MEETING");
    let failed = Path::new(&folder).join("failed");
    if rank + 1 == size && !failed.exists() {
        std::fs::write(failed, told("MASTER_PORT")).expect("a file");
        panic!("as it is told to the first time");
    }
    let place = (told("MASTER_ADDR"), told("MASTER_PORT").parse::<u16>().expect("a port"));
    let sum = if rank == 0 { lead(&place, size) } else { follow(&place, rank) };
    writeln!(std::io::stdout(), "rank {rank} of {size} knows {sum}").expect("written");
    assert!(wait_until(|| Path::new(&folder).join("go").exists()));
}

fn lead(place: &(String, u16), size: usize) -> usize {
    let door = TcpListener::bind((place.0.as_str(), place.1)).expect("the port is free");
    let guests: Vec<TcpStream> = (1..size).map(|_| door.accept().expect("a guest").0).collect();
    let said = |guest: &TcpStream| {
        let mut line = String::new();
        BufReader::new(guest).read_line(&mut line).expect("a line");
        line.trim().parse::<usize>().expect("a rank")
    };
    let sum = guests.iter().map(said).sum();
    guests.into_iter().for_each(|mut guest| writeln!(guest, "{sum}").expect("heard"));
    sum
}

fn follow(place: &(String, u16), rank: usize) -> usize {
    let mut way = None;
    let found = || {
        way = TcpStream::connect((place.0.as_str(), place.1)).ok();
        way.is_some()
    };
    assert!(wait_until(found), "nobody is at {place:?}");
    let mut way = way.expect("a connection");
    writeln!(way, "{rank}").expect("heard");
    let mut line = String::new();
    BufReader::new(way).read_line(&mut line).expect("a line");
    line.trim().parse().expect("a sum")
}

fn phase(sandbox: &Sandbox, id: &str) -> Value {
    let (_, text) = sandbox.ask("GET", &format!("/api/v1/workloads/{id}"), "").expect("an answer");
    serde_json::from_str::<Value>(&text).expect("JSON")["phase"].clone()
}

/// The processes of the pods that have exchanged their ranks.
fn members(sandbox: &Sandbox, test: &str) -> Vec<u32> {
    let all = sandbox.processes().into_iter();
    all.filter(|one| one.command.contains(test)).map(|one| one.pid).collect()
}

/// A copy of this program that the account of the run can read.
fn program(sandbox: &Sandbox) -> PathBuf {
    let program = sandbox.home().join("member");
    let this = std::env::current_exe().expect("this program");
    if std::fs::hard_link(&this, &program).is_err() {
        std::fs::copy(this, &program).expect("a copy");
    }
    program
}

/// The id of a workload.
fn id_of(sandbox: &Sandbox, name: &str) -> String {
    let (_, text) = sandbox.get("/api/v1/workloads").expect("an answer");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let all = all["workloads"].as_array().expect("a list");
    let found = all.iter().find(|one| one["name"] == name).expect("it is there");
    found["id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_master_and_workers_meet_begin_anew_together_and_outlive_the_server() {
    if std::env::var_os("MEETING").is_some() {
        return member();
    }
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 4x1GiB");
    assert_eq!(sandbox.shell("elastane project create team-a --gpu-quota 4").code, Some(0));
    let (folder, program) = (sandbox.home(), program(&sandbox));
    let made = sandbox.shell(&format!(
        "runai training pytorch submit d -p team-a -g 1 --workers 2 -e MEETING={} \
         -c -- {} --exact --nocapture {TEST}",
        folder.display(),
        program.display()
    ));
    assert!(made.text.contains("Creating PyTorch training d..."), "{}", made.text);
    let id = &id_of(&sandbox, "d");
    let output = |pod: &str| sandbox.shell(&format!("runai logs d -p team-a --pod {pod}")).text;
    for (rank, pod) in ["d-master-0", "d-worker-0", "d-worker-1"].into_iter().enumerate() {
        let knows = || output(pod).contains(&format!("rank {rank} of 3 knows 3"));
        assert!(wait_until(knows), "{}", output(pod));
    }
    let port = std::fs::read_to_string(folder.join("failed")).expect("the first port");
    let ports = |pid| crate::sandbox::environment(pid).map(|of| of["MASTER_PORT"].clone());
    let before = members(&sandbox, TEST);
    assert_eq!(before.len(), 3);
    assert!(before.iter().all(|pid| ports(*pid).is_some_and(|now| now != port)), "another port");
    sandbox.kill_server();
    sandbox.start_server("elastane up --gpus 4x1GiB");
    assert_eq!((phase(&sandbox, id), members(&sandbox, TEST)), (json!("Running"), before));
    std::fs::write(folder.join("go"), "").expect("a file");
    assert!(wait_until(|| phase(&sandbox, id) == "Completed"));
}

/// Program of each pod of a group: the worker sends its index to the leader, which sends it the
/// sum.
fn group_member() {
    let told = |name: &str| std::env::var(name).expect(name);
    let number = |name: &str| told(name).parse::<usize>().expect(name);
    let (index, size) = (number("LWS_WORKER_INDEX"), number("LWS_GROUP_SIZE"));
    let port = told("LWS_LEADER_PORT").parse::<u16>().expect("a port");
    let place = (told("LWS_LEADER_ADDRESS"), port);
    let sum = if index == 0 { lead(&place, size) } else { follow(&place, index) };
    writeln!(std::io::stdout(), "{index} of {size} knows {sum}").expect("written");
    assert!(wait_until(|| Path::new(&told("MEETING")).join("go").exists()));
}

/// The processes of all groups except the first, which keeps running.
fn beside(sandbox: &Sandbox, first: &[u32]) -> Vec<u32> {
    let mut all = members(sandbox, GROUPS_TEST);
    assert!(first.iter().all(|pid| all.contains(pid)), "the first group goes on");
    all.retain(|pid| !first.contains(pid));
    all
}

/// Waits until a pod has the sum of its group.
fn met(sandbox: &Sandbox, pod: &str, index: usize) {
    let output = || sandbox.shell(&format!("runai logs s --pod {pod}")).text;
    let knows = || output().contains(&format!("{index} of 2 knows 1"));
    assert!(wait_until(knows), "{pod}: {}\n{}", output(), sandbox.server_text());
}

#[test]
fn groups_meet_each_on_its_own_and_begin_again_alone() {
    if std::env::var_os("MEETING").is_some() {
        return group_member();
    }
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 4x1GiB");
    let (folder, program) = (sandbox.home(), program(&sandbox));
    let manifest = GROUPS.replace("PROGRAM", &program.display().to_string());
    let manifest = manifest.replace("FOLDER", &folder.display().to_string());
    std::fs::write(folder.join("s.yaml"), manifest.replace("TEST", GROUPS_TEST)).expect("a file");
    let made = sandbox.shell(
        "elastane project create team-a --gpu-quota 4 && runai config project team-a \
         && runai training submit busy -i x -g 1 --command -- sleep 1000",
    );
    assert_eq!(made.code, Some(0), "{}", made.text);
    let busy = &id_of(&sandbox, "busy");
    assert!(wait_until(|| phase(&sandbox, busy) == "Running"));
    let made = sandbox.shell("runai workload submit -f s.yaml");
    assert!(made.text.contains("Creating workload s..."), "{}", made.text);
    let id = &id_of(&sandbox, "s");
    // Three GPUs have room for one group.
    met(&sandbox, "s-0", 0);
    met(&sandbox, "s-0-1", 1);
    let first = members(&sandbox, GROUPS_TEST);
    assert_eq!((phase(&sandbox, id), first.len()), (json!("Degraded"), 2));
    assert_eq!(sandbox.shell("runai delete busy").code, Some(0));
    met(&sandbox, "s-1", 0);
    met(&sandbox, "s-1-1", 1);
    let before = beside(&sandbox, &first);
    sandbox.kill_server();
    sandbox.start_server("elastane up --gpus 4x1GiB");
    assert_eq!((phase(&sandbox, id), beside(&sandbox, &first)), (json!("Running"), before.clone()));
    let is_worker = |pid: &u32| environment(*pid).is_some_and(|of| of["LWS_WORKER_INDEX"] == "1");
    kill(before.iter().copied().find(is_worker).expect("a worker of the second group"));
    let again = || {
        let now = beside(&sandbox, &first);
        now.len() == 2 && now.iter().all(|pid| !before.contains(pid))
    };
    assert!(wait_until(again), "{}", sandbox.shell("runai describe job s").text);
    met(&sandbox, "s-1-1", 1);
    let shown = sandbox.shell("runai describe job s").text;
    assert!(["s-0", "s-0-1", "s-1", "s-1-1"].iter().all(|pod| shown.contains(pod)), "{shown}");
    assert_eq!(sandbox.shell("runai delete s").code, Some(0));
    assert!(wait_until(|| members(&sandbox, GROUPS_TEST).is_empty()));
}
