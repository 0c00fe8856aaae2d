//! Workloads in containers, as a user sees them, while the server, the daemon, a container or all
//! of them are killed.
//!
//! One round for each by default; `make soak` makes it many, at random.

use std::time::{Duration, Instant};

use engine_docker::testing::{DockerServer, IMAGE, restart_containers};

use crate::crash::{Random, number_from};
use crate::sandbox::{Sandbox, free_port, wait_until};

/// Target of a SIGKILL.
#[derive(Debug, Clone, Copy)]
enum Blow {
    Server,
    Daemon,
    Container,
    /// The server and the daemon, with its containers.
    Machine,
}

const BLOWS: [Blow; 4] = [Blow::Server, Blow::Daemon, Blow::Container, Blow::Machine];

struct Story {
    sandbox: Sandbox,
    daemon: DockerServer,
    /// Longest time for which the reported workloads were not those that ran.
    untrue_max: Duration,
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

    fn await_containers(&self, count: usize) -> Vec<String> {
        let mut found = Vec::new();
        let seen = wait_until(|| {
            found = self.daemon.containers();
            found.len() == count
        });
        assert!(seen, "not {count}: {found:?}\n{}", self.sandbox.server_text());
        found
    }
}

impl Story {
    /// Submits two workloads and kills the target; they continue or restart, once each, and end.
    fn round(&mut self, round: u64, blow: Blow, random: &mut Random) {
        // The quickstart needs no registry.
        self.run(&format!("runai submit q{round} -i gcr.io/run-ai-demo/quickstart -g 1"));
        let script = "echo begun; while :; do sleep 0.1; done";
        let line = format!("runai submit t{round} -i {IMAGE} -g 0.5 --command -- sh -c '{script}'");
        self.run(&line);
        self.sandbox.await_text(&format!("runai logs q{round}"), "training on");
        self.sandbox.await_text(&format!("runai logs t{round}"), "begun");
        self.sandbox.await_text(&format!("runai describe job t{round}"), "[Started]");
        let before = self.await_containers(2);
        std::thread::sleep(Duration::from_millis(random.below(300)));
        let stay: &[String] = match blow {
            Blow::Server => {
                self.sandbox.kill_server();
                self.start_server();
                &before
            }
            Blow::Container => {
                let hit = usize::try_from(random.below(2)).expect("an index");
                self.daemon.kill_container(&before[hit]);
                std::slice::from_ref(&before[1 - hit])
            }
            // A restarting daemon ends its containers.
            Blow::Daemon => {
                self.daemon.kill();
                self.daemon.up();
                &[]
            }
            Blow::Machine => {
                self.sandbox.kill_server();
                self.daemon.kill();
                self.daemon.up();
                self.start_server();
                &[]
            }
        };
        self.await_truth((round, blow));
        self.await_those(&before, stay, (round, blow));
        self.sandbox.await_text("runai list jobs", &format!("q{round}"));
        self.run(&format!("runai delete q{round}; runai delete t{round}"));
        self.await_containers(0);
    }

    /// Runs some workloads and deletes them at once.
    fn leave(&self, name: &str) {
        let names: Vec<_> = (0..3).map(|number| format!("{name}{number}")).collect();
        for name in &names {
            let script = "echo begun; exec sleep 600";
            self.run(&format!("runai submit {name} -i {IMAGE} --command -- sh -c '{script}'"));
            self.sandbox.await_text(&format!("runai logs {name}"), "begun");
        }
        self.run(&format!("runai delete {}", names.join(" ")));
    }

    fn told_to_run(&self) -> usize {
        let told = self.sandbox.statuses("runai list jobs");
        told.iter().filter(|(_, status)| status == "Running").count()
    }

    /// Waits until the number of workloads reported as running is that of the running containers.
    fn await_truth(&mut self, what: (u64, Blow)) {
        let since = Instant::now();
        let truth = wait_until(|| self.told_to_run() == self.daemon.containers().len());
        assert!(truth, "{what:?}: {}\n{}", self.told_to_run(), self.sandbox.server_text());
        self.untrue_max = self.untrue_max.max(since.elapsed());
    }

    /// Waits until two containers run and are reported as running, among them those of `stay`.
    fn await_those(&self, before: &[String], stay: &[String], what: (u64, Blow)) {
        let mut found = Vec::new();
        let seen = wait_until(|| {
            found = self.daemon.containers();
            assert!(found.len() <= 2, "{what:?}: {found:?}");
            let kept = found.iter().filter(|one| before.contains(one));
            found.len() == 2 && kept.eq(stay) && self.told_to_run() == 2
        });
        let text = || self.sandbox.server_text();
        assert!(seen, "{what:?}: {before:?} became {found:?}\n{}", text());
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

#[test]
fn a_shell_that_is_not_in_the_image_is_named_once_and_no_other() {
    let Some(daemon) = DockerServer::shared() else { return };
    let mut sandbox = Sandbox::with_docker(&daemon);
    sandbox.start_server("elastane up");
    sandbox.shell("elastane project create team-a --gpu-quota 2; runai config project team-a");
    sandbox.shell(&format!("runai submit t -i {IMAGE} -g 1 --command -- sleep 600"));
    sandbox.await_status("runai list", "t", "Running");
    let entered = sandbox.shell("runai bash t");
    assert_eq!(entered.text.matches("/bin/bash").count(), 1, "{}", entered.text);
    assert!(!entered.text.contains("/bin/sh"), "{}", entered.text);
    assert_eq!(entered.code, Some(127));
    sandbox.shell("elastane down");
}

#[test]
fn an_image_that_cannot_be_pulled_now_is_shown_as_such_and_tried_again() {
    let Some(daemon) = DockerServer::shared() else { return };
    let mut sandbox = Sandbox::with_docker(&daemon);
    sandbox.start_server("elastane up");
    sandbox.shell("elastane project create team-a --gpu-quota 2; runai config project team-a");
    let away = format!("127.0.0.1:{}/away:1", free_port());
    sandbox.shell(&format!("runai submit t -i {away} -g 1"));
    sandbox.await_text("runai list", "ImagePullBackOff");
    sandbox.await_text("runai training list", "ImagePullBackOff");
    sandbox.await_text("runai explain t", &format!("image `{away}` cannot be pulled"));
    let explained = sandbox.shell("runai explain t | tr -s '\\n ' ' '").text;
    assert!(explained.contains("it holds 1 GPU until the image can be pulled"), "{explained}");
    assert!(!explained.contains("stimate"), "no start is estimated: {explained}");
    sandbox.await_text("runai describe job t", "IMAGEPULLBACKOFF");
    sandbox.await_text("runai describe job t", "pulled again in 10 s (failed once)");
    sandbox.kill_server();
    sandbox.start_server("elastane up");
    sandbox.await_text("runai list", "ImagePullBackOff");
    sandbox.shell("runai delete t");
    sandbox.await_text("runai list; echo end", "SERVICE URL(S)\nend");
    sandbox.shell("elastane down");
}

#[test]
fn a_daemon_that_does_not_answer_is_told_with_everything_that_is_shown() {
    let Some(daemon) = DockerServer::own() else { return };
    let mut sandbox = Sandbox::with_docker(&daemon.socket());
    sandbox.start_server("elastane up");
    sandbox.shell("elastane project create team-a --gpu-quota 2; runai config project team-a");
    sandbox.shell(&format!("runai submit t -i {IMAGE} -g 1 --command -- sleep 600"));
    sandbox.await_status("runai list", "t", "Running");
    assert!(!sandbox.shell("runai list").text.contains("Warning"));
    daemon.stop();
    sandbox.await_text("runai list 2>&1 >/dev/null", "does not answer");
    sandbox.await_text("runai describe job t", "States of workloads are those of 20");
    sandbox.await_text("elastane status", "what follows is as of 20");
    sandbox.await_text("runai list nodes", "NotReady");
    daemon.up();
    let back = wait_until(|| {
        !sandbox.shell("elastane status; runai list").text.contains("does not answer")
    });
    assert!(back, "{}", sandbox.server_text());
    sandbox.await_status("runai list", "t", "Running");
    sandbox.shell("elastane down");
}

#[test]
fn nothing_runs_twice_or_is_forgotten_in_a_crash_of_whatever_has_to_do_with_containers() {
    let Some(daemon) = DockerServer::own() else { return };
    let mut story = Story { sandbox: Sandbox::new(), daemon, untrue_max: Duration::ZERO };
    let mut random = Random(number_from("ELASTANE_SOAK_SEED", 1));
    story.start_server();
    assert!(story.sandbox.server_text().contains("containers (Docker"));
    story.run("elastane project create team-a --gpu-quota 2; runai config project team-a");
    let rounds = number_from("ELASTANE_SOAK_ROUNDS", BLOWS.len() as u64);
    for round in 0..rounds {
        // The first four rounds have each target once.
        let at = if round < 4 { round } else { random.below(4) };
        story.round(round, BLOWS[usize::try_from(at).expect("an index")], &mut random);
    }
    let untrue_ms = story.untrue_max.as_millis();
    println!(
        "{rounds} rounds with containers; the reported state was correct {untrue_ms} ms after a blow"
    );
    // Data of deleted workloads is removed: after a kill of the server, and after an orderly stop.
    story.leave("killed");
    story.sandbox.kill_server();
    story.start_server();
    let gone = wait_until(|| story.daemon.left().is_empty());
    assert!(gone, "{:?}\n{}", story.daemon.left(), story.sandbox.server_text());
    story.leave("last");
    story.run("elastane down");
    assert_eq!(story.daemon.left(), Vec::<String>::new());
    assert_eq!(story.daemon.networks(), Vec::<String>::new(), "its own went with it");
}

/// Flags of a workload with half of a simulated GPU; its image has only busybox.
const HALF: &str = "-g 0.5 --simulated-driver";

#[test]
fn a_container_keeps_to_its_part_of_a_gpu_while_the_server_is_away() {
    let Some(daemon) = DockerServer::shared() else { return };
    let mut sandbox = Sandbox::with_docker(&daemon);
    sandbox.start_server("elastane up --nodes 1x1x16GiB");
    sandbox.shell("elastane project create team-a --gpu-quota 1; runai config project team-a");
    let script = "while :; do /usr/local/bin/gpu-check 9GiB 7GiB; sleep 1; done";
    sandbox.shell(&format!("runai submit t -i {IMAGE} {HALF} --command -- sh -c '{script}'"));
    sandbox.await_text("runai logs t", "7168 MiB: granted");
    sandbox.kill_server();
    // Longer than the lifetime of a simulated GPU that no program holds.
    std::thread::sleep(Duration::from_secs(5));
    sandbox.start_server("elastane up --nodes 1x1x16GiB");
    let mut logs = String::new();
    let is_refused = wait_until(|| {
        logs = sandbox.shell("runai logs t").text;
        logs.matches("9216 MiB: refused: out of memory (CUDA error 2)").count() >= 3
    });
    assert!(is_refused && !logs.contains("9216 MiB: granted"), "{logs}");
    assert!(!logs.contains("error:"), "{logs}");
    let page = "echo x > /run/elastane/fraction/control; umount /run/elastane/fraction";
    let changed = sandbox.shell(&format!("runai exec t -- sh -c '{page}'"));
    assert!(changed.text.contains("Read-only file system"), "{}", changed.text);
    assert_ne!(changed.code, Some(0), "it is not permitted");
    sandbox.shell("elastane down");
}

#[test]
fn a_container_that_docker_restarts_keeps_to_its_part_of_a_gpu() {
    let Some(daemon) = DockerServer::shared() else { return };
    let mut sandbox = Sandbox::with_docker(&daemon);
    sandbox.start_server("elastane up --nodes 1x1x16GiB");
    sandbox.shell("elastane project create team-a --gpu-quota 1; runai config project team-a");
    // Another workload holds the simulated GPU meanwhile.
    let other = "--simulated-driver -g 0.25 --command -- sleep 600";
    sandbox.shell(&format!("runai submit other -i {IMAGE} {other}"));
    let marker = format!("begun-{}", sandbox.port());
    let script =
        format!("echo {marker}; while :; do /usr/local/bin/gpu-check 9GiB 7GiB; sleep 1; done");
    sandbox.shell(&format!("runai submit t -i {IMAGE} {HALF} --command -- sh -c '{script}'"));
    sandbox.await_text("runai logs t", "7168 MiB: granted");
    sandbox.await_status("runai list", "other", "Running");
    // A running server would treat the end of the container as the end of the run.
    sandbox.kill_server();
    assert_eq!(restart_containers(&daemon, &marker), 1);
    sandbox.start_server("elastane up --nodes 1x1x16GiB");
    let mut logs = String::new();
    let is_refused = wait_until(|| {
        logs = sandbox.shell("runai logs t").text;
        let since = logs.rsplit(&marker).next().unwrap_or_default();
        logs.matches(&marker).count() == 2 && since.contains("9216 MiB: refused: out of memory")
    });
    assert!(is_refused && !logs.contains("9216 MiB: granted"), "{logs}");
    sandbox.shell("elastane down");
}

#[test]
fn a_container_whose_limit_would_not_hold_does_not_start() {
    let Some(daemon) = DockerServer::shared() else { return };
    let mut sandbox = Sandbox::with_docker(&daemon);
    sandbox.start_server("elastane up --nodes 1x1x16GiB");
    sandbox.shell("elastane project create team-a --gpu-quota 1; runai config project team-a");
    let submit = |name: &str, more: &str| {
        let line = format!("runai submit {name} -i {IMAGE} {HALF} {more} --command -- sleep 600");
        sandbox.shell(&line);
    };
    submit("mounts", "--add-capability SYS_ADMIN");
    sandbox.await_text("runai describe job mounts", "could lift the limit");
    let library = sandbox.state_dir().join("fraction/container-lib/limited-simulated/libcuda.so.1");
    std::fs::write(&library, "broken").expect("a broken library");
    submit("broken", "");
    sandbox.await_text("runai describe job broken", "its part of the GPU would not be kept");
    sandbox.kill_server();
    sandbox.start_server("elastane up --nodes 1x1x16GiB");
    sandbox.shell(&format!("runai submit whole -i {IMAGE} {HALF} --command -- nope"));
    sandbox.await_text("runai describe job whole", "exec nope failed: No such file or directory");
    sandbox.shell("elastane down");
}
