//! Error messages and exit codes that users see, from the built binaries. Owns the faults that need
//! a real server or a real port.

use std::net::{Ipv4Addr, TcpListener};

use crate::sandbox::Sandbox;

/// Runs a line; its exit code and a part of its text must be these.
fn refused(sandbox: &Sandbox, line: &str, code: i32, part: &str) {
    let output = sandbox.shell(line);
    assert_eq!(output.code, Some(code), "{line}\n{}", output.text);
    assert!(output.text.contains(part), "{line}\n{}", output.text);
}

/// A machine may have a server of its own at the usual address; nothing listens at port 1.
const NOBODY: &str = "mkdir -p $ELASTANE_STATE_DIR; \
    echo '{\"url\":\"http://127.0.0.1:1\",\"pid\":1}' > $ELASTANE_STATE_DIR/server.json;";

#[test]
fn without_a_server_the_command_to_start_it_is_named() {
    let sandbox = Sandbox::new();
    for line in ["runai list -A", "elastane status", "elastane project list", "runai whoami"] {
        let line = format!("{NOBODY} {line}");
        refused(&sandbox, &line, 3, "is not running at http://");
        refused(&sandbox, &line, 3, "start it with `elastane up`");
    }
    refused(&sandbox, "elastane down", 0, "nothing was left running");
    for line in ["runai list", "runai describe job a", "runai submit a -i ubuntu"] {
        refused(&sandbox, &format!("{NOBODY} {line}"), 3, "start it with `elastane up`");
    }
}

#[test]
fn what_is_wrong_with_an_address_is_told_from_a_server_that_does_not_run() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    let encrypted = format!("https://127.0.0.1:{}", sandbox.port());
    for (url, code, part) in [
        ("foo", 2, "`foo` is not an address of a server: write http://HOST:PORT"),
        (&encrypted, 2, "what listens there speaks no TLS; write http://"),
        ("http://nosuch.invalid:80", 3, "http://nosuch.invalid:80 cannot be reached: "),
    ] {
        refused(&sandbox, &format!("RUNAI_CP_URL={url} runai list -A"), code, part);
    }
}

#[test]
fn a_port_in_use_is_answered_with_a_free_one() {
    let sandbox = Sandbox::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let line = format!("elastane up --gpus 1x1GiB --listen {address}");
    refused(&sandbox, &line, 1, "listens on");
    refused(&sandbox, &line, 1, "for example with `--listen 127.0.0.1:");
}

#[test]
fn a_server_that_cannot_start_says_which_value_is_wrong() {
    let sandbox = Sandbox::new();
    refused(&sandbox, "elastane up --gpus 4", 2, "--gpus: `4` is not a set of GPUs");
    refused(&sandbox, "elastane up --listen 0.0.0.0:0", 2, "--insecure-listen");
    refused(&sandbox, "echo 'listn = 1' > c; elastane up --config c", 2, "did you mean `listen`?");
    refused(&sandbox, "elastane config show --config c", 2, "c:1: unknown key `listn`");
    refused(&sandbox, "touch file; elastane up --state-dir file", 1, "state directory file");
}

#[test]
fn a_state_directory_has_one_server() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    refused(
        &sandbox,
        "elastane up --gpus 1x1GiB --listen 127.0.0.1:0",
        1,
        "is in use by the server",
    );
    refused(&sandbox, "elastane down", 0, "elastane is down");
    assert!(!sandbox.state_dir().join("server.json").exists());
}

#[test]
fn what_is_asked_of_a_server_is_refused_in_the_same_words_everywhere() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 2x1GiB");
    refused(&sandbox, "runai list", 2, "runai config project PROJECT");
    refused(&sandbox, "elastane project create team-a --gpu-quota 2", 0, "team-a created");
    for (line, code, part) in [
        ("elastane project create team-a --gpu-quota 2", 1, "already exists"),
        ("elastane project create Bad", 1, "name `Bad` is not allowed"),
        ("elastane project delete nope", 4, "project nope was not found"),
        ("elastane project delete taem-a", 4, "was not found; did you mean `team-a`?"),
        ("runai config project nope", 4, "project nope was not found"),
        ("runai config project team-a", 0, "has been set as default project"),
        ("runai submit j", 2, "the image is missing; name one with -i, --image IMAGE"),
        ("runai submit J -i ubuntu", 1, "name `J` is not allowed"),
        ("runai submit j -i nobody/knows", 1, "image `nobody/knows`"),
        ("runai submit j -i ubuntu --command -- sleep 1000", 0, "submitted successfully"),
        ("runai submit j -i ubuntu", 1, "runai delete j -p team-a`"),
        ("runai submit k -i ubuntu -g 100000000000000000000", 2, "is too large"),
        ("runai describe job \"$(printf 'a\\nb')\"", 4, r"Job a\nb does not exist"),
        ("runai training submit j -i ubuntu", 1, "runai delete j"),
        (
            "elastane project delete team-a",
            1,
            "`runai delete --all -p team-a` deletes its workloads",
        ),
        ("runai submit no -i ubuntu --backoff-limit 0 --command -- /nonexistent", 0, "submitted"),
        ("runai logs -f no", 0, "no wrote nothing: could not be started: `/nonexistent`"),
        (
            "runai submit bad -i ubuntu --backoff-limit 0 --command -- sh -c 'echo hello; exit 3'",
            0,
            "submitted",
        ),
        ("runai wait bad; runai logs bad", 0, "hello"),
        ("test -z \"$(runai logs bad --tail 0 2>&1)\" && echo silent", 0, "silent"),
        ("test -z \"$(runai logs bad --since 0 2>&1)\" && echo silent", 0, "silent"),
        ("runai attach no", 1, "no is Failed, and no pod of it runs; `logs` shows what it wrote"),
        ("runai port-forward no --port 1:1", 1, "no is Failed, and no pod of it runs"),
        ("runai submit big -i ubuntu -g 64", 0, "submitted successfully"),
        ("until runai describe job big | grep P101; do sleep 0.05; done", 0, "P101"),
        ("runai bash big", 1, "a pod that is not running"),
        ("runai list | head -1", 0, "Showing jobs for project team-a"),
        ("RUNAI_TOKEN=wrong runai list", 5, "RUNAI_TOKEN is not accepted"),
        ("runai wait j --for running", 0, ""),
        ("runai exec j -- sh -c 'exit 7'", 7, ""),
        ("runai submit half -i ubuntu -g 0.5 --command -- sleep 1000", 0, "submitted"),
        ("runai wait half --for running", 0, ""),
        (
            "runai exec half -- gpu-check 1GiB",
            2,
            "error: none: no simulated driver here (--simulated-driver)",
        ),
        (
            "runai explain half | tr -s '\\n ' ' '",
            0,
            "Enforcement of its part of a GPU: none: no simulated driver here",
        ),
    ] {
        refused(&sandbox, line, code, part);
    }
    let elsewhere =
        format!("ELASTANE_STATE_DIR=/none RUNAI_CP_URL=http://127.0.0.1:{}", sandbox.port());
    let login = "error: you are not logged in: `runai login user -u NAME`";
    refused(&sandbox, &format!("{elsewhere} runai list -p team-a"), 5, login);
}

#[test]
fn a_name_that_is_not_there_gets_one_answer_from_every_command() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    refused(&sandbox, "elastane project create team-a && runai config project team-a", 0, "team-a");
    refused(&sandbox, "runai submit train1 -i ubuntu --command -- sleep 1000", 0, "submitted");
    let verbs = [
        "describe",
        "explain",
        "wait",
        "logs",
        "delete",
        "suspend",
        "resume",
        "bash",
        "attach",
        "open",
        "port-forward --port 1:1",
        "exec",
    ];
    for noun in ["", "training ", "workload "] {
        let what = if noun.is_empty() { "Job" } else { noun.trim() };
        let what = format!("{}{}", what[..1].to_uppercase(), &what[1..]);
        let said = format!(
            "error: {what} trian1 does not exist in project team-a; did you mean `train1`?"
        );
        for verb in verbs {
            let rest = if verb == "exec" { " -- true" } else { "" };
            refused(&sandbox, &format!("runai {noun}{verb} trian1{rest}"), 4, &said);
        }
    }
    for (line, said) in [
        ("inference update train1 --max-replicas 2", "there is a training of this name."),
        ("delete trian1 train1", "Job train1 deleted successfully."),
        ("list -p taem-a", "project taem-a was not found; did you mean `team-a`?"),
    ] {
        refused(&sandbox, &format!("runai {line}"), 4, said);
    }
}

#[test]
fn a_high_priority_is_said_to_make_a_training_non_preemptible() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    refused(&sandbox, "elastane project create team-a && runai config project team-a", 0, "team-a");
    let submit = |name: &str, rest: &str| {
        let line = format!("runai training submit {name} -i ubuntu {rest} -- sleep 1000");
        let output = sandbox.shell(&line);
        assert_eq!(output.code, Some(0), "{}", output.text);
        output.text.contains("Warning: with priority high this training is not preemptible")
    };
    assert!(submit("a", "--priority high"));
    assert!(!submit("b", "--priority high --preemptibility preemptible"));
    assert!(!submit("c", "--priority low"));
}

#[test]
fn runs_that_a_server_left_behind_are_stopped_without_it() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    let lines = "elastane project create team-a --gpu-quota 1\n\
                 runai submit left -i ubuntu -p team-a --command -- sleep 1000\n\
                 runai wait left -p team-a --for running";
    refused(&sandbox, lines, 0, "submitted successfully");
    sandbox.kill_server();
    let sleeps = |sandbox: &Sandbox| {
        sandbox.processes().iter().filter(|process| process.command == "sleep 1000").count()
    };
    assert_eq!(sleeps(&sandbox), 1);
    refused(&sandbox, "elastane down", 0, "stopped 1 left running");
    assert_eq!(sleeps(&sandbox), 0);
}

#[test]
fn a_damaged_settings_file_is_named_and_kept() {
    let sandbox = Sandbox::new();
    refused(&sandbox, "mkdir .runai; echo '{' > .runai/config.json; runai list", 1, "config.json");
    let kept = sandbox.shell("cat .runai/config.json");
    assert_eq!(kept.text, "{\n");
    let other = "RUNAI_CLI_CONFIG_PATH=. RUNAI_CLI_CONFIG_FILE=mine.json runai whoami";
    refused(&sandbox, &format!("{NOBODY} {other}"), 3, "is not running");
}

#[test]
fn a_state_directory_others_may_write_to_is_refused() {
    let sandbox = Sandbox::new();
    let open = "mkdir -p $ELASTANE_STATE_DIR/runs; chmod 770 $ELASTANE_STATE_DIR;";
    for line in ["elastane up --gpus 1x1GiB --listen 127.0.0.1:0", "elastane down"] {
        let line = format!("{NOBODY} {open} {line}");
        refused(&sandbox, &line, 1, "is writable by other users (mode 770)");
        refused(&sandbox, &line, 1, "`chmod go-w /");
    }
}

#[test]
fn what_a_server_writes_is_its_users_alone_and_workloads_keep_the_usual_mode() {
    let mut sandbox = Sandbox::new();
    // The directory may exist already, and be readable by others.
    refused(&sandbox, "mkdir -m 755 $ELASTANE_STATE_DIR", 0, "");
    sandbox.start_server(r#"sh -c 'umask 022; exec "$@"' sh elastane up --gpus 1x1GiB"#);
    let found = "find $ELASTANE_STATE_DIR -mindepth 1 -maxdepth 1 -type f -perm /077";
    let output = sandbox.shell(found);
    assert_eq!((output.code, output.text.as_str()), (Some(0), ""));
    refused(&sandbox, "test -s $ELASTANE_STATE_DIR/server.json", 0, "");
    refused(&sandbox, "elastane project create team-a --gpu-quota 1", 0, "created");
    refused(&sandbox, "runai config project team-a", 0, "");
    refused(&sandbox, "runai submit j -i ubuntu --command -- sh -c 'umask; sleep 1000'", 0, "");
    refused(&sandbox, "until runai logs j | grep 00; do sleep 0.05; done", 0, "0022");
    refused(&sandbox, "elastane down", 0, "elastane is down");
}
