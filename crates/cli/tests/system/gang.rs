//! Pods that work together, as real processes that meet at the address in their environment.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, wait_until};

const PATIENCE: Duration = Duration::from_secs(120);

/// The one test here; its pods run the same program with the same name, and get the address to
/// meet at.
const TEST: &str = "gang::a_master_and_workers_meet_begin_anew_together_and_outlive_the_server";

/// What each pod runs: all send their ranks to the first, which tells them the sum. The first time
/// the last of them fails before that. When they have met they stay until the file `go` is there.
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
    assert!(wait_until(PATIENCE * 5, || Path::new(&folder).join("go").exists()));
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
    assert!(wait_until(PATIENCE, found), "nobody is at {place:?}");
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

/// The processes of the pods that have met.
fn members(sandbox: &Sandbox) -> Vec<u32> {
    let all = sandbox.processes().into_iter();
    all.filter(|one| one.command.contains(TEST)).map(|one| one.pid).collect()
}

#[test]
fn a_master_and_workers_meet_begin_anew_together_and_outlive_the_server() {
    if std::env::var_os("MEETING").is_some() {
        return member();
    }
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 4x1GiB");
    assert_eq!(sandbox.shell("elastane project create team-a --gpu-quota 4").code, Some(0));
    // Where the account of the run gets to.
    let folder = sandbox.home();
    let program = folder.join("member");
    let this = std::env::current_exe().expect("this program");
    if std::fs::hard_link(&this, &program).is_err() {
        std::fs::copy(this, &program).expect("a copy");
    }
    let made = sandbox.shell(&format!(
        "runai training pytorch submit d -p team-a -g 1 --workers 2 -e MEETING={} \
         -c -- {} --exact --nocapture {TEST}",
        folder.display(),
        program.display()
    ));
    assert!(made.text.contains("Creating PyTorch training d..."), "{}", made.text);
    let (_, text) = sandbox.get("/api/v1/workloads").expect("an answer");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let id = all["workloads"][0]["id"].as_str().expect("an id");
    let output = |pod: &str| sandbox.shell(&format!("runai logs d -p team-a --pod {pod}")).text;
    for (rank, pod) in ["d-master-0", "d-worker-0", "d-worker-1"].into_iter().enumerate() {
        let knows = || output(pod).contains(&format!("rank {rank} of 3 knows 3"));
        assert!(wait_until(PATIENCE, knows), "{}", output(pod));
    }
    let port = std::fs::read_to_string(folder.join("failed")).expect("the first port");
    let ports = |pid| crate::sandbox::environment(pid).map(|of| of["MASTER_PORT"].clone());
    let before = members(&sandbox);
    assert_eq!(before.len(), 3);
    assert!(before.iter().all(|pid| ports(*pid).is_some_and(|now| now != port)), "another port");
    sandbox.kill_server();
    sandbox.start_server("elastane up --gpus 4x1GiB");
    assert_eq!((phase(&sandbox, id), members(&sandbox)), (json!("Running"), before));
    std::fs::write(folder.join("go"), "").expect("a file");
    assert!(wait_until(PATIENCE, || phase(&sandbox, id) == "Completed"));
}
