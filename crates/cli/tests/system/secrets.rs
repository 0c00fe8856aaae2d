//! Secrets in the whole product: they reach their run, and are stored nowhere else.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, environment, every_process, wait_until};

const HUSH: &str = "hush-51e0c7";

/// Sends a request that must succeed.
pub(crate) fn ask(sandbox: &Sandbox, method: &str, path: &str, body: &Value) {
    let (code, text) = sandbox.ask(method, path, &body.to_string()).expect("an answer");
    assert!((200..300).contains(&code), "{method} {path}: {code} {text}");
}

/// Every file below a folder that contains this text.
pub(crate) fn holding(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if fs::read(&path)
            .unwrap_or_default()
            .windows(text.len())
            .any(|w| w == text.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

fn output(sandbox: &Sandbox, workload: &str) -> String {
    sandbox.shell(&format!("runai logs {workload} -p team-a")).text
}

/// Submits a training that prints its secrets and their sources.
fn submit(sandbox: &Sandbox, name: &str) {
    let script =
        "sh -c 'echo got $(echo $TOKEN | rev) $(rev $ELASTANE_SECRETS_DIR/creds/key); sleep 1000'";
    let body = json!({"name": name, "projectId": "1", "spec": {
        "command": script,
        "environmentVariables": [{"name": "TOKEN", "secret": {"name": "keys", "key": "key"}}],
        "storage": {"secretVolume": [{"secret": "keys", "mountPath": "/creds"}]},
    }});
    ask(sandbox, "POST", "/api/v1/workloads/trainings", &body);
}

/// Output of the training once it has both secrets.
fn got() -> String {
    let backwards: String = HUSH.chars().rev().collect();
    format!("got {backwards} {backwards}")
}

/// Checks that no command line has the secret, and no environment of a process other than the
/// run's.
fn no_program_of_ours_knows_it(sandbox: &Sandbox) {
    let lines: Vec<_> = every_process().into_iter().filter(|p| p.command.contains(HUSH)).collect();
    assert!(lines.is_empty(), "{lines:?}");
    let holders: Vec<_> = sandbox
        .processes()
        .into_iter()
        .filter(|p| environment(p.pid).is_some_and(|env| env.values().any(|v| v.contains(HUSH))))
        .map(|p| p.command)
        .collect();
    assert!(holders.iter().all(|line| !line.contains("elastane")), "{holders:?}");
    assert!(!holders.is_empty());
}

#[test]
fn a_secret_reaches_its_run_and_stays_nowhere_else() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 2x16GiB --log trace");
    sandbox.shell("elastane project create team-a --gpu-quota 2");
    let spec = json!({"keyValuePairs": [{"key": "key", "value": HUSH}]});
    let made = json!({"meta": {"name": "keys", "scope": "tenant"}, "spec": spec});
    ask(&sandbox, "POST", "/api/v1/asset/credentials/generic-secret", &made);
    // Secrets in refused requests must not be stored either.
    let wrong = json!({"grantType": "password", "username": "a@x.org", "password": HUSH});
    let wrong = wrong.to_string();
    assert_eq!(sandbox.ask("POST", "/api/v1/token", &wrong).expect("an answer").0, 401);
    let path = format!("/api/v1/workloads?search=x&token={HUSH}");
    assert_eq!(sandbox.get(&path).expect("an answer").0, 400);

    submit(&sandbox, "t");
    assert!(wait_until(|| output(&sandbox, "t").contains(&got())), "{}", output(&sandbox, "t"));
    no_program_of_ours_knows_it(&sandbox);
    let root = sandbox.state_dir().join("..");
    let kept = holding(&root, HUSH);
    assert!(kept.iter().all(|path| path.ends_with("secrets/creds/key")), "{kept:?}");
    assert_eq!(kept.len(), 1);

    // A restart with a new key, and another without the old one.
    let key = sandbox.state_dir().join("credentials-key");
    let before = fs::read_to_string(&key).expect("a key");
    sandbox.kill_server();
    let rotated = sandbox.shell("elastane keys rotate");
    assert_eq!(rotated.code, Some(0), "{}", rotated.text);
    sandbox.start_server("elastane up --gpus 2x16GiB --log trace");
    let number = |sandbox: &Sandbox| {
        let all = sandbox.get("/api/v1/asset/credentials").expect("an answer").1;
        let all: Value = serde_json::from_str(&all).expect("JSON");
        all["entries"][0]["spec"]["genericSecret"]["keyId"].as_u64()
    };
    let new = rotated.text.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    assert!(wait_until(|| number(&sandbox) == new), "{new:?}");
    let both = fs::read_to_string(&key).expect("keys");
    fs::write(&key, both.replace(&before, "")).expect("written");
    sandbox.kill_server();
    sandbox.start_server("elastane up --gpus 2x16GiB --log trace");
    submit(&sandbox, "u");
    assert!(wait_until(|| output(&sandbox, "u").contains(&got())));
    let saved = sandbox.shell("elastane backup state.jsonl");
    assert_eq!(saved.code, Some(0), "{}", saved.text);

    // The key is lost: the server reports that, and continues.
    sandbox.kill_server();
    fs::remove_file(&key).expect("removed");
    sandbox.start_server("elastane up --gpus 2x16GiB --log trace");
    assert!(wait_until(|| sandbox.server_text().contains("credential `keys` stays as it")));
    submit(&sandbox, "v");
    let why = || sandbox.shell("runai describe job v -p team-a").text;
    assert!(wait_until(|| why().contains("bring that file back")), "{}", why());

    sandbox.shell("runai delete t u v -p team-a");
    assert!(wait_until(|| holding(&root, HUSH).is_empty()), "{:?}", holding(&root, HUSH));
}

#[test]
fn a_credential_comes_from_a_file_and_is_used_replaced_and_deleted_by_its_name() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 2x16GiB");
    let run = |line: &str| sandbox.shell(line);
    let good = |line: &str| {
        let output = run(line);
        assert_eq!(output.code, Some(0), "{line}: {}", output.text);
        output.text
    };
    good("elastane project create team-a --gpu-quota 2; runai config project team-a");
    let set = "elastane credential set keys -p team-a --type password --from-literal user=ann";
    for pass in ["first", "second"] {
        good(&format!("echo {pass} | {set} --from-file password=-"));
        let script = "sh -c 'echo $PASS; sleep 1000'";
        good(&format!(
            "runai submit {pass} -i ubuntu -e PASS=SECRET:keys,password --command -- {script}"
        ));
        let told = format!("{pass}\n");
        assert!(wait_until(|| run(&format!("runai logs {pass}")).text == told));
    }
    assert!(good("runai credential list").contains("keys"));
    let literal = run(&format!("{set} --from-literal password=x"));
    assert!(literal.text.contains("seen by everyone; write --from-file password=FILE"));
    let gone = "elastane credential delete keys -p team-a";
    assert!(run(gone).text.contains("first"), "it says who uses it");
    good("runai delete first second; runai wait --for deleted first second");
    assert_eq!(good(gone), "credential keys of project team-a deleted\n");
    assert!(run(gone).text.contains("has no credential keys of its own"));
}
