//! Workloads in containers, as a person sees them, while the server and the daemon are killed.
//!
//! Two rounds by default; `make soak` makes it many.

use std::time::Duration;

use engine_docker::testing::{DockerServer, IMAGE};

use crate::sandbox::{Sandbox, wait_until};

/// Long, because a loaded machine is no fault.
const PATIENCE: Duration = Duration::from_secs(120);
/// A round takes some seconds.
const ROUNDS_MAX: u32 = 40;

struct Story {
    sandbox: Sandbox,
    daemon: DockerServer,
}

impl Story {
    fn start_server(&mut self) {
        let host = self.daemon.host();
        self.sandbox.start_server(&format!("env DOCKER_HOST={host} elastane up --runtime docker"));
    }

    fn run(&self, line: &str) -> String {
        let output = self.sandbox.shell(line);
        assert_eq!(output.code, Some(0), "{line}: {}", output.text);
        output.text
    }

    fn await_text(&self, line: &str, wanted: &str) {
        let mut text = String::new();
        let seen = wait_until(PATIENCE, || {
            text = self.sandbox.shell(line).text;
            text.contains(wanted)
        });
        assert!(seen, "{line} lacks {wanted:?}:\n{text}\n{}", self.sandbox.server_text());
    }

    fn await_containers(&self, count: usize) -> Vec<String> {
        let mut found = Vec::new();
        let seen = wait_until(PATIENCE, || {
            found = self.daemon.containers();
            found.len() == count
        });
        assert!(seen, "not {count}: {found:?}\n{}", self.sandbox.server_text());
        found
    }
}

#[test]
fn a_state_directory_stays_with_the_runtime_it_had() {
    let Some(daemon) = DockerServer::shared() else { return };
    let auto =
        format!("env -u ELASTANE_RUNTIME DOCKER_HOST=unix://{} elastane up", daemon.display());
    let mut sandbox = Sandbox::new();
    for first in ["elastane up", &auto] {
        sandbox.start_server(first);
        assert!(sandbox.server_text().contains("processes"), "{}", sandbox.server_text());
        sandbox.kill_server();
    }
}

/// Even ones kill the server, odd ones the daemon.
fn rounds() -> u32 {
    let asked = std::env::var("ELASTANE_SOAK_ROUNDS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(2).min(ROUNDS_MAX)
}

#[test]
fn nothing_runs_twice_or_is_forgotten_in_a_crash_of_the_server_or_the_daemon() {
    let Some(daemon) = DockerServer::own() else { return };
    let mut story = Story { sandbox: Sandbox::new(), daemon };
    story.start_server();
    assert!(story.sandbox.server_text().contains("containers (Docker"));
    story.run("elastane project create team-a --gpu-quota 2; runai config project team-a");
    for round in 0..rounds() {
        // The quickstart needs no registry.
        story.run(&format!("runai submit q{round} -i gcr.io/run-ai-demo/quickstart -g 1"));
        let script = "echo begun; while :; do sleep 0.1; done";
        let line = format!("runai submit t{round} -i {IMAGE} -g 0.5 --command -- sh -c '{script}'");
        story.run(&line);
        story.await_text(&format!("runai logs q{round}"), "training on");
        story.await_text(&format!("runai logs t{round}"), "begun");
        story.await_text(&format!("runai describe job t{round}"), "[Started]");
        let before = story.await_containers(2);
        if round % 2 == 0 {
            story.sandbox.kill_server();
            story.start_server();
            story.await_text("runai list jobs", "Running");
            assert_eq!(story.daemon.containers(), before, "the same go on");
        } else {
            story.daemon.kill();
            story.daemon.up();
            // A daemon that starts ends them; both begin anew, once each.
            story.await_text(&format!("runai describe job t{round}"), "lost");
            story.await_text(&format!("runai logs t{round}"), "begun");
            let after = story.await_containers(2);
            assert!(after.iter().all(|container| !before.contains(container)));
        }
        story.run(&format!("runai delete q{round}; runai delete t{round}"));
        story.await_containers(0);
    }
    story.run("runai submit last -i gcr.io/run-ai-demo/quickstart -g 1");
    story.await_containers(1);
    story.run("elastane down");
    assert_eq!(story.daemon.containers(), Vec::<String>::new());
    assert_eq!(story.daemon.networks(), Vec::<String>::new(), "its own went with it");
}
