//! Copies of Git repositories, by the flags of both dialects and by a data source, with a login
//! that is stored nowhere else, and while the server is killed.

use engine_conformance::GitServer;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, every_process, wait_until};
use crate::secrets::{ask, holding};

const HUSH: &str = "hush-70f3d2";
const WRONG: &str = "wrong-4be1a9";
const UP: &str = "elastane up --gpus 1x16GiB --log trace";
/// Command of a workload that reads its copy.
const READ: &str = "--command -- sh -c 'cat $ELASTANE_MOUNTS_DIR/code/hello; pwd; sleep 1000'";

fn sandbox() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.start_server(UP);
    sandbox.shell("elastane project create team-a --gpu-quota 1; runai config project team-a");
    for (name, password) in [("right", HUSH), ("wrong", WRONG)] {
        let spec = json!({"user": "me", "password": password});
        let made = json!({"meta": {"name": name, "scope": "tenant"}, "spec": spec});
        ask(&sandbox, "POST", "/api/v1/asset/credentials/password", &made);
    }
    sandbox
}

fn run(sandbox: &Sandbox, line: &str) {
    let output = sandbox.shell(line);
    assert_eq!(output.code, Some(0), "{line}: {}", output.text);
}

/// Checks that no password is on a command line of this machine or in a file of this sandbox.
fn nobody_knows_a_password(sandbox: &Sandbox) {
    for hush in [HUSH, WRONG] {
        let lines: Vec<_> =
            every_process().into_iter().filter(|it| it.command.contains(hush)).collect();
        assert!(lines.is_empty(), "{lines:?}");
        let kept = holding(&sandbox.state_dir().join(".."), hush);
        assert!(kept.is_empty(), "{kept:?}");
    }
}

/// A data source of this repository.
fn data_source(sandbox: &Sandbox, address: &str) {
    let all = sandbox.get("/api/v1/asset/credentials?name=right").expect("an answer").1;
    let all: Value = serde_json::from_str(&all).expect("JSON");
    let login = &all["entries"][0]["meta"]["id"];
    let spec = json!({"repository": address, "branch": "side", "path": "/code",
        "passwordAssetId": login});
    let made = json!({"meta": {"name": "side", "scope": "tenant"}, "spec": spec});
    ask(sandbox, "POST", "/api/v1/asset/datasource/git", &made);
}

#[test]
fn a_workload_reads_its_copy_and_the_login_stays_nowhere() {
    let sandbox = sandbox();
    let server = GitServer::with_login("me", HUSH);
    let http = server.http();
    data_source(&sandbox, &http);
    run(
        &sandbox,
        &format!("runai submit a --git-sync source={http},secret=right -i ubuntu {READ}"),
    );
    let v2 = format!("--git-sync name=n,repository={http},path=/code,rev=v1,secret=right");
    let v2 = format!("runai training submit b {v2} --working-dir /code -i ubuntu {READ}");
    run(&sandbox, &v2);
    let named = "runai training submit c --datasource type=git,name=side -i ubuntu";
    run(&sandbox, &format!("{named} {READ}"));
    sandbox.await_text("runai logs a", "new\n");
    sandbox.await_text("runai logs b", "old\n");
    sandbox.await_text("runai logs b", "/mounts/code\n");
    sandbox.await_text("runai logs c", "side\n");
    for (name, wanted, source) in [
        ("d", "check user and password of its credential", "secret=wrong"),
        ("e", "it wants a login", "branch=main"),
        ("f", "there is no such branch", "branch=none,secret=right"),
    ] {
        run(
            &sandbox,
            &format!("runai submit {name} -i ubuntu --git-sync source={http},{source} {READ}"),
        );
        sandbox.await_text(&format!("runai describe job {name}"), wanted);
        sandbox.await_text(&format!("runai describe job {name}"), "copying repository");
    }
    nobody_knows_a_password(&sandbox);
    let shown: String = ('a'..='f')
        .map(|name| sandbox.shell(&format!("runai describe job {name}; runai logs {name}")).text)
        .collect();
    assert!(!shown.contains(HUSH) && !shown.contains(WRONG), "{shown}");
}

#[test]
fn a_server_that_is_killed_while_it_copies_begins_anew() {
    let mut sandbox = sandbox();
    let server = GitServer::with_login("me", HUSH);
    server.silence().be(true);
    let source = format!("source={},secret=right", server.http());
    run(&sandbox, &format!("runai submit a -i ubuntu --git-sync {source} {READ}"));
    server.silence().await_visitor();
    nobody_knows_a_password(&sandbox);
    sandbox.kill_server();
    server.silence().await_leaving();
    server.silence().be(false);
    sandbox.start_server(UP);
    sandbox.await_text("runai logs a", "new\n");
    let copies = || sandbox.state_dir().join("runs").read_dir().expect("runs").count();
    assert!(wait_until(|| copies() == 1), "of the first attempt nothing is left");
}
