//! Number of requests per command: a command about one job of many must not fetch all of them.
//! Owns: a proxy in front of the server that records requests. Does not know about: answers.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::sandbox::Sandbox;

/// Records the first line of every request and forwards everything.
struct Listener {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Listener {
    fn before(server_port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let notes = asked.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server_port)).expect("it");
                let back = (server.try_clone().expect("it"), client.try_clone().expect("it"));
                std::thread::spawn(move || pass_on(back.0, back.1, |_| {}));
                let notes = notes.clone();
                std::thread::spawn(move || {
                    pass_on(client, server, |text| {
                        let lines = text.lines().filter(|line| line.ends_with(" HTTP/1.1"));
                        notes.lock().expect("notes").extend(lines.map(str::to_owned));
                    });
                });
            }
        });
        Self { url, asked }
    }

    /// Requests since the last call.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().expect("notes"))
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, note: impl Fn(&str)) {
    let mut buffer = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        note(&String::from_utf8_lossy(&buffer[..count]));
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // The other side may have closed first.
    let _ = to.shutdown(Shutdown::Write);
}

#[test]
fn one_job_is_found_without_fetching_all_of_them() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    let listener = Listener::before(sandbox.port());
    let run = |line: &str| {
        let output = sandbox.shell(&format!("RUNAI_CP_URL={} {line}", listener.url));
        // The last line names a job that does not exist.
        let code = if line.ends_with("two") { 4 } else { 0 };
        assert_eq!(output.code, Some(code), "{line}\n{}", output.text);
        (output.text, listener.asked())
    };
    run("sh -c 'elastane project create team-a --gpu-quota 1 && runai config project team-a'");
    for line in [
        "runai submit one -i ubuntu --command -- sleep 1000",
        "runai describe job one",
        "runai logs one",
        "runai suspend one",
        "runai resume one",
        "runai delete one two",
    ] {
        let (_, asked) = run(line);
        let whole = |asked: &&String| {
            asked.contains("/workloads?")
                && asked.contains("limit=500")
                && !asked.contains("name==")
        };
        assert!(asked.iter().any(|asked| asked.contains("/workloads")), "{line}: {asked:?}");
        assert_eq!(asked.iter().find(whole), None, "{line}");
    }
}

#[test]
fn a_change_of_everything_ends_with_its_sum() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    let lines = "elastane project create team-a --gpu-quota 1
        runai config project team-a
        for n in 1 2 3; do runai submit j$n -i ubuntu --command -- sleep 1000; done";
    sandbox.shell(lines);
    let suspended = sandbox.shell("runai suspend -A");
    assert!(suspended.text.ends_with("Job j3 suspended successfully.\n3 jobs suspended.\n"));
    let deleted = sandbox.shell("runai delete -A; runai delete -A; runai list");
    let text = deleted.text;
    for j in ["j1", "j2", "j3"] {
        assert!(text.contains(&format!("Job {j} deleted successfully.\n")), "{text}");
    }
    assert!(text.contains("\n3 jobs deleted.\nThere is nothing to delete in project"), "{text}");
}
