//! Statuses of the first dialect as a user sees them, of jobs that run, crash and are stopped.

use crate::sandbox::{Sandbox, free_port, wait_until};

fn says(sandbox: &Sandbox, line: &str, code: i32, parts: &[&str]) {
    let output = sandbox.shell(line);
    assert_eq!(output.code, Some(code), "{line}\n{}", output.text);
    for part in parts {
        assert!(output.text.contains(part), "{line} lacks {part:?}\n{}", output.text);
    }
}

/// Waits until a read-only command prints all of these.
fn comes_to_say(sandbox: &Sandbox, line: &str, parts: &[&str]) {
    let mut last = String::new();
    let said = wait_until(|| {
        last = sandbox.shell(line).text;
        parts.iter().all(|part| last.contains(part))
    });
    assert!(said, "{line} never says {parts:?}\n{last}");
}

fn with_server() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 4x1GiB");
    says(&sandbox, "elastane project create team-a --gpu-quota 2", 0, &["created"]);
    says(&sandbox, "runai config project team-a", 0, &["team-a"]);
    sandbox
}

#[test]
fn pods_whose_turn_has_not_come_are_not_there_and_wait_for_nothing() {
    let sandbox = with_server();
    let many =
        "runai submit many -i x -g 1 --parallelism 3 --completions 12 --command -- sleep 600";
    says(&sandbox, many, 0, &["submitted"]);
    sandbox.await_status("runai list jobs", "many", "Running");
    comes_to_say(&sandbox, "runai list jobs", &["3 (3)", "3 (0)"]);
    let told = ["STATUS: RUNNING", "RUNNING PODS: 3", "PENDING PODS: 0", "COMPLETIONS: 12"];
    says(&sandbox, "runai describe job many", 0, &told);
    let pods = sandbox.shell("runai describe job many | grep -c 'many-[0-9].* TRAIN '").text;
    assert_eq!(pods.trim(), "3");
    says(&sandbox, "elastane project create team-b --gpu-quota 2", 0, &["created"]);
    let other = "runai submit other -p team-b -i x -g 2 --interactive --command -- sleep 600";
    says(&sandbox, other, 0, &["submitted"]);
    comes_to_say(&sandbox, "runai list jobs", &["2 (3)", "2 (1)"]);
}

#[test]
fn an_interactive_job_that_falls_over_again_and_again_is_told_so_with_its_reason() {
    let sandbox = with_server();
    let loops = "runai submit loops -i x --interactive --command -- sh -c 'echo try; exit 3'";
    says(&sandbox, loops, 0, &["submitted"]);
    comes_to_say(&sandbox, "runai list jobs", &["CrashLoopBackOff"]);
    comes_to_say(&sandbox, "runai list jobs --status crashloopbackoff", &["loops"]);
    let pending = sandbox.shell("runai list jobs --status pending").text;
    assert!(!pending.contains("loops"), "{pending}");
    comes_to_say(&sandbox, "runai describe job loops", &["STATUS: CRASHLOOPBACKOFF"]);
    comes_to_say(&sandbox, "runai workspace describe loops", &["Status:       CrashLoopBackOff"]);
    comes_to_say(&sandbox, "runai workspace list", &["CrashLoopBackOff"]);
    let why = ["loops has ended (exit code 3) and keeps its place on", "starts again"];
    comes_to_say(&sandbox, "runai explain loops", &why);
}

#[test]
fn a_training_that_fails_again_and_again_is_shown_so_with_its_restarts_and_last_output() {
    let sandbox = with_server();
    let submit = |name: &str, limit: u32| {
        let script = "echo trying; echo no such file: data.csv >&2; exit 3";
        let flags = format!("-i x -g 1 --backoff-limit {limit} --command -- sh -c '{script}'");
        says(&sandbox, &format!("runai submit {name} {flags}"), 0, &["submitted"]);
    };
    // One that runs for the whole test, and one that ends.
    submit("again", 100);
    comes_to_say(&sandbox, "runai list jobs", &["CrashLoopBackOff"]);
    comes_to_say(&sandbox, "runai workload list", &["CrashLoopBackOff"]);
    let told = ["STATUS: CRASHLOOPBACKOFF", "Last output of again-0-", ":\n  trying\n"];
    comes_to_say(&sandbox, "runai describe job again", &told);
    let told = ["has failed (exit code 3) and is started again in", "  no such file: data.csv"];
    comes_to_say(&sandbox, "runai explain again", &told);
    submit("loops", 2);
    let failed = ["Status:       Failed", "Restarts:     2", "  no such file: data.csv"];
    comes_to_say(&sandbox, "runai training describe loops", &failed);
    for describe in ["runai training describe loops", "runai describe job loops"] {
        says(&sandbox, describe, 0, &["Reasons", "E212", "failed after 2 retries: exit code 3"]);
    }
    says(&sandbox, "runai explain loops", 0, &["loops has failed after 2 retries: exit code 3"]);
    says(&sandbox, "runai list jobs --status failed -o wide --no-headers", 0, &["loops", "  2\n"]);
    for line in ["runai describe job", "runai explain job", "runai delete job"] {
        says(&sandbox, line, 2, &["the name is missing; write it after `job`"]);
    }
    for line in ["runai submit j", "runai training submit j"] {
        says(&sandbox, line, 2, &["error: the image is missing; name one with -i, --image IMAGE"]);
    }
    says(&sandbox, "runai login", 1, &["error: this server has no login provider; log in with"]);
    let events = sandbox.shell("runai describe job loops").text;
    let last = events.lines().rfind(|line| line.contains('[')).expect("events");
    assert!(last.contains("[Failed] failed for good: exit code 3"), "{events}");
}

#[test]
fn who_has_run_for_as_long_as_its_project_allows_is_timed_out_until_it_runs_again() {
    let sandbox = with_server();
    let (_, projects) = sandbox.get("/api/v1/org-unit/projects").expect("an answer");
    let projects: serde_json::Value = serde_json::from_str(&projects).expect("json");
    let project = &projects["projects"][0];
    let rules = r#"{"resources": [], "schedulingRules": {"interactiveJobTimeLimitSeconds": 2},
        "nodeTypes": {"training": ["a", "b"], "workspace": []}}"#;
    let path = format!("/api/v1/org-unit/projects/{}", project["id"].as_str().expect("an id"));
    let (code, answer) = sandbox.ask("PUT", &path, rules).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    says(&sandbox, "runai list projects", 0, &["2s         -             a;b"]);
    let job = "runai submit shell -i x --interactive --command -- sleep 600";
    says(&sandbox, job, 0, &["submitted"]);
    sandbox.await_status("runai list jobs", "shell", "TimedOut");
    says(&sandbox, "runai describe job shell", 0, &["STATUS: TIMEDOUT", "E203"]);
    let (code, answer) =
        sandbox.ask("PUT", &path, &rules.replace(": 2}", ": 6000}")).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    says(&sandbox, "runai resume shell", 0, &[]);
    sandbox.await_status("runai list jobs", "shell", "Running");
    says(&sandbox, "runai suspend shell", 0, &[]);
    sandbox.await_status("runai list jobs", "shell", "Suspended");
}

#[test]
fn a_port_of_the_machine_is_one_job_s() {
    let sandbox = with_server();
    let port = free_port();
    let rest = format!("-i x --port {port} -s nodeport --command -- sleep 600");
    says(&sandbox, &format!("runai submit j1 {rest}"), 0, &["submitted"]);
    let why = format!("port {port} is j1's");
    says(&sandbox, &format!("runai submit j2 {rest}"), 1, &[&why]);
    says(&sandbox, "runai delete j1", 0, &["deleted"]);
    says(&sandbox, "runai wait j1 --for deleted", 0, &[]);
    says(&sandbox, &format!("runai submit j2 {rest}"), 0, &["submitted"]);
}

#[test]
fn a_replica_that_listens_elsewhere_says_which_port_was_tried() {
    let sandbox = with_server();
    let serve = "runai inference submit svc -i ubuntu --serving-port 8000 --command -- sleep 600";
    says(&sandbox, serve, 0, &["svc"]);
    let told = ["E210", "does not answer at 127.0.0.1:", "$(PORT)", "port 8000"];
    comes_to_say(&sandbox, "runai inference describe svc", &told);
    comes_to_say(&sandbox, "runai explain svc", &["E210"]);
    // A probe of the port in the message finds the listener.
    let port = "runai explain svc | grep -o '127.0.0.1:[0-9]*' | head -1 | cut -d: -f2";
    let port = sandbox.shell(port).text;
    let listen = format!(
        "runai inference exec svc -- sh -c 'exec python3 -m http.server --bind 127.0.0.1 {}'",
        port.trim()
    );
    let mut server = sandbox.begin(&listen);
    let ready = wait_until(|| !sandbox.shell("runai explain svc").text.contains("E210"));
    crate::sandbox::end(&mut server);
    assert!(ready, "{}", sandbox.shell("runai explain svc").text);
}
