//! Command lines as other clients and older versions spell them, and with common mistakes.

use super::lines::{meaning, submit};
use crate::intent::{Framework, Intent, Noun, Page, Runs, Wait};
use crate::understood;

fn line_read(line: &str) -> crate::ParsedCommand {
    understood(shell_words::split(line).unwrap().iter().map(Into::into).collect()).unwrap()
}

fn refused(line: &str, said: &str) {
    let text = meaning(line).expect_err(line);
    assert!(text.contains(said), "{line}\n{text}");
}

#[test]
fn a_switch_says_yes_or_no() {
    let of = |tail: &str| submit(&format!("runai training submit j -i x {tail}"));
    assert_eq!(of("--elastic=true -g 2").kind, of("--elastic -g 2").kind);
    assert_eq!(of("--elastic=false").kind, crate::intent::Kind::Training(Runs::default()));
    for (tail, preemptible) in [
        ("", None),
        ("--preemptible", Some(true)),
        ("--preemptible=true", Some(true)),
        ("--preemptible=false", Some(false)),
    ] {
        assert_eq!(of(tail).spec.preemptible, preemptible, "{tail}");
    }
    for head in ["submit", "training submit", "pytorch submit", "submit-mpi"] {
        let of = |tail: &str| submit(&format!("runai {head} j -i x {tail}")).spec;
        assert_eq!(of("--large-shm").around.shared_memory_large, Some(true), "{head}");
        assert_eq!(of("--large-shm=false").around.shared_memory_large, Some(false), "{head}");
        assert_eq!(of("").around.shared_memory_large, None, "left to a template: {head}");
        for (tail, value) in [("", "true"), ("=false", "false")] {
            let labels = of(&format!("--simulated-driver{tail}")).labels;
            let label = ("elastane/simulated-driver".to_owned(), value.to_owned());
            assert_eq!(labels, [label], "{head}");
        }
        assert_eq!(of("--host-network=false").around.security.host_network, Some(false));
        assert!(of("--stdin=true --tty=true").stdio.tty, "{head}");
        assert!(!of("--tty=false").stdio.tty, "{head}");
        assert_eq!(of("-- --tty=false").args, ["--tty=false"], "{head}");
    }
    // A switch that is off conflicts with nothing.
    assert!(meaning("runai submit j -i x --interactive=false --elastic").is_ok());
    assert!(meaning("runai list jobs --all-projects=true --quiet=true").is_ok());
    let Ok(Intent::Exec { command, .. }) = meaning("runai exec a1 train --tty=true") else {
        panic!("another program's flag")
    };
    assert_eq!(command, ["train", "--tty=true"]);
}

#[test]
fn flags_that_all_commands_take_stand_anywhere() {
    for (line, debug, quiet) in [
        ("runai list", false, false),
        ("runai -d list", true, false),
        ("runai list --verbose", true, false),
        ("runai --loglevel debug submit a -i x", true, false),
        ("runai --config-path /c submit a -i x --command 'sleep 5'", false, false),
        ("runai workload list -q", false, true),
        ("runai list --loglevel error", false, true),
        ("runai top node -d", false, false),
        ("runai top node --debug", true, false),
    ] {
        let global = line_read(line).global;
        assert_eq!((global.tells_requests(), global.is_quiet()), (debug, quiet), "{line}");
    }
    let details = |line| matches!(meaning(line), Ok(Intent::TopNodes { details: true, .. }));
    assert!(details("runai top node -d") && !details("runai top node --debug"));
}

#[test]
fn what_is_spelt_otherwise_today_says_so() {
    for (line, always, in_v1) in [
        ("get a1", Some("'runai describe job'"), Some("'runai describe job'")),
        ("template get a1", Some("'runai describe template'"), Some("'runai describe template'")),
        ("template list", None, Some("'runai list templates'")),
        ("project list", None, Some("'runai list projects'")),
        ("project set a", None, Some("'runai config project'")),
        ("cluster list", None, Some("'runai list clusters'")),
        ("cluster set a", None, Some("'runai config cluster'")),
        ("describe job a1", None, None),
        ("environment get a1", None, None),
    ] {
        let older = line_read(&format!("runai {line}")).deprecated;
        for (v1, now) in [(false, always), (true, in_v1)] {
            let said = older.and_then(|older| older.line(v1));
            assert_eq!(said.is_some(), now.is_some(), "{line}: {said:?}");
            assert!(said.unwrap_or_default().contains(now.unwrap_or_default()), "{line}");
        }
    }
    let oldest =
        line_read("runai distributed submit a -i x -f jax").deprecated.unwrap().line(false);
    let said = "Command \"submit\" is deprecated, Please use: 'runai training jax submit' instead";
    assert_eq!(oldest.as_deref(), Some(said));
    assert_eq!(meaning("runai get a1"), meaning("runai describe job a1"));
    let Ok(Intent::ListWorkloads(list)) = meaning("runai distributed list") else { panic!() };
    assert_eq!(list.noun, Noun::Distributed);
}

#[test]
fn every_verb_says_which_type_is_meant() {
    for verb in [
        "delete a",
        "suspend a",
        "resume a",
        "logs a",
        "exec a -- ls",
        "bash a",
        "attach a",
        "port-forward a --port 80",
        "wait a",
        "open a",
        "explain a",
        "describe a",
    ] {
        let (word, tail) = verb.split_once(' ').unwrap();
        let typed = meaning(&format!("runai workload {word} --type workspace {tail}"));
        assert_eq!(typed, meaning(&format!("runai workspace {verb}")), "{verb}");
        let framed = meaning(&format!("runai training {word} --framework tf {tail}"));
        assert_eq!(framed, meaning(&format!("runai tf {verb}")), "{verb}");
        refused(&format!("runai workspace {word} --type training {tail}"), "no workspace is a");
    }
    let Ok(Intent::Wait(Wait { noun, .. })) = meaning("runai workload wait a --framework mpi")
    else {
        panic!()
    };
    assert_eq!(noun, Noun::Framework(Framework::Mpi));
}

#[test]
fn lists_of_what_is_in_no_project_have_pages_too() {
    let some = Page { offset: 2, limit: Some(3), has_more_pages: true };
    for noun in ["project", "cluster", "node"] {
        let page = |tail: &str| match meaning(&format!("runai {noun} list {tail}")) {
            Ok(
                Intent::ListProjects(_, page, _)
                | Intent::ListClusters(_, page, _)
                | Intent::ListNodes(_, _, page, _),
            ) => page,
            other => panic!("{noun}: {other:?}"),
        };
        assert_eq!(page("--limit 3 --offset 2"), some);
        let all = Page { has_more_pages: true, ..Page::default() };
        assert_eq!(page("--no-pagination"), all);
    }
    for how in ["one", "--name one", "--id one"] {
        assert_eq!(
            meaning(&format!("runai cluster set {how}")),
            Ok(Intent::SetCluster("one".into()))
        );
    }
    assert!(
        meaning("runai cluster set").is_err() && meaning("runai cluster set a --id b").is_err()
    );
}

#[test]
fn phases_are_named_and_checked() {
    let Ok(Intent::ListWorkloads(list)) = meaning("runai workload list --status running,Pending")
    else {
        panic!()
    };
    assert_eq!(list.only.phases, ["running", "Pending"]);
    let Ok(Intent::ListWorkloads(list)) = meaning("runai workload list --status crashloopbackoff")
    else {
        panic!()
    };
    assert_eq!(list.only.phases, ["Pending", "Initializing"]);
    assert_eq!(list.only.statuses, ["crashloopbackoff"]);
    refused("runai workload list --status foo", "possible values: Pending, Initializing, Running");
    let old = "runai list jobs --status suspended,Terminating,Running";
    let Ok(Intent::ListWorkloads(list)) = meaning(old) else { panic!() };
    assert_eq!(list.only.phases, ["Stopped", "Stopping", "Deleting", "Running"]);
    assert_eq!(list.only.statuses, ["suspended", "Terminating", "Running"]);
    refused("runai list --status foo", "possible values: Pending, Initializing, Running");
    refused("runai list nodes --status Running", "only `list jobs` takes them");
}

#[test]
fn durations_are_sums_of_units() {
    let waits = |text: &str| match meaning(&format!("runai wait a --timeout {text}")) {
        Ok(Intent::Wait(wait)) => wait.timeout_s,
        _ => None,
    };
    for (text, seconds) in [
        ("90", 90),
        ("90s", 90),
        ("2m", 120),
        ("1h30m", 5400),
        ("1d", 86_400),
        ("1d2h3m4s", 93_784),
    ] {
        assert_eq!(waits(text), Some(seconds), "{text}");
    }
    for wrong in ["-1s", "1h30", "h", "1.5h", "1w", "''", "99999999999999999d"] {
        refused(&format!("runai wait a --timeout {wrong}"), "write whole seconds, minutes");
    }
}

#[test]
fn numbers_below_0_are_told_as_what_they_are() {
    for (line, flag) in [
        ("runai pytorch submit a -i x --workers -1", "--workers"),
        ("runai pytorch submit a -i x --min-replicas -1", "--min-replicas"),
        ("runai submit a -i x --completions -1", "--completions"),
        ("runai inference submit a -i x --serving-port -1", "--serving-port"),
        ("runai training submit a -i x --cpu-memory-request -1G", "--cpu-memory-request"),
        ("runai workload list --limit -1", "--limit"),
        ("runai project list --offset -1", "--offset"),
        ("runai logs a --tail=-3", "--tail"),
        ("runai logs a --tail -3", "--tail"),
    ] {
        let text = meaning(line).expect_err(line);
        assert!(text.contains("invalid value '-") && text.contains(flag), "{line}\n{text}");
    }
    assert!(meaning("runai logs a --tail -1").is_ok());
}

#[test]
fn a_command_without_dashes_is_told_where_it_belongs() {
    for line in [
        "runai training submit q1 -i ubuntu -c sleep 5",
        "runai workspace submit q1 -i ubuntu --command sleep infinity",
        "runai submit q1 -i ubuntu --command sleep 5",
    ] {
        refused(line, "as in `--command -- sleep 5`");
    }
    let said = meaning("runai training submit q1 -i ubuntu --gpuu 1 -c").unwrap_err();
    assert!(!said.contains("sleep 5"), "{said}");
}
