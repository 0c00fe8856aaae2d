//! Scripts that report their checkpoints, across a killed server and an eviction. Owns: the results
//! that a shell script and a Python script see.

use crate::sandbox::{Sandbox, wait_until};

/// Saves every 0.2 seconds, and prints each accepted checkpoint.
const SAVES: &str = r#"step=0; while sleep 0.2; do step=$((step + 1)); file=$ELASTANE_CHECKPOINT_DIR/model
echo "weights $step" > $file.new; mv $file.new $file
elastane checkpoint $file --step $step --next-in 0.2 && echo "saved $step"; done"#;
/// A script that does so in Python, with the wheel's module only.
const IN_PYTHON: &str = r#"import os, time, warnings; from elastane import channel
path = os.path.join(os.environ["ELASTANE_CHECKPOINT_DIR"], "model")
print("before it exists:", channel.checkpoint(path), flush=True)
open(path, "w").write("weights")
print("then:", channel.checkpoint(path, step=1), channel.next_checkpoint(0.5), flush=True)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    print("again:", channel.checkpoint(path, step=2), told[0].message, flush=True)
"#;

/// Saves only when a checkpoint is wanted, and prints the first time that none is.
const SAVES_WHEN_WANTED: &str = r#"step=0; not=0; while sleep 0.2; do step=$((step + 1))
within=$(elastane checkpoint --wanted); code=$?; file=$ELASTANE_CHECKPOINT_DIR/model
case $code in 1) not=$((not + 1)); test $not = 1 && echo "not wanted: '$within'";; 0) echo "weights $step" > $file
echo "saves $step within $within s"; elastane checkpoint $file --step $step && sleep 20;; esac; done"#;

fn says(sandbox: &Sandbox, line: &str, part: &str) {
    let mut text = String::new();
    let said = wait_until(|| {
        text = sandbox.shell(line).text;
        text.contains(part)
    });
    assert!(said, "{line} lacks {part:?}\n{text}\n{}", sandbox.server_text());
}

/// Number of accepted checkpoints.
fn saved(sandbox: &Sandbox) -> usize {
    sandbox.shell("runai logs saves").text.matches("saved ").count()
}

#[test]
fn a_script_reports_checkpoints_and_is_stopped_after_one() {
    const UP: &str = "elastane up --nodes 1x1x16GiB";
    let mut sandbox = Sandbox::new();
    sandbox.start_server(UP);
    std::fs::write(sandbox.home().join("saves.sh"), SAVES).expect("written");
    let made = sandbox.shell(
        "elastane project create team-a --gpu-quota 0 && elastane project create team-b --gpu-quota 1 \
         && runai config project team-a \
         && runai submit saves -i x -g 1 --command -- sh -c \"$(cat saves.sh)\"",
    );
    assert_eq!(made.code, Some(0), "{}", made.text);
    says(&sandbox, "runai explain saves", "from its last checkpoint");
    // The channel continues with the next server.
    sandbox.kill_server();
    sandbox.start_server(UP);
    let before = saved(&sandbox);
    assert!(wait_until(|| saved(&sandbox) > before), "{}", sandbox.server_text());
    let taker = "runai submit taker -p team-b -i x -g 1 --command -- sleep 600";
    assert_eq!(sandbox.shell(taker).code, Some(0));
    says(&sandbox, "runai describe job saves", "[AwaitsCheckpoint]");
    says(&sandbox, "runai describe job saves", "[E101]");
    assert_eq!(sandbox.shell("runai wait taker -p team-b --for running").code, Some(0));
}

#[test]
fn a_script_of_a_shell_saves_when_that_is_wanted() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --nodes 1x1x16GiB");
    let outside = sandbox.shell("elastane checkpoint --wanted");
    assert_eq!(outside.code, Some(3), "{}", outside.text);
    assert!(outside.text.contains("ELASTANE_CHANNEL is not set"), "{}", outside.text);
    let lost = sandbox.shell("ELASTANE_CHANNEL=/nowhere/socket elastane checkpoint --wanted");
    assert_eq!(lost.code, Some(3), "{}", lost.text);
    assert!(lost.text.contains("the server does not answer"), "{}", lost.text);
    let mixed = sandbox.shell("elastane checkpoint model --wanted");
    assert_eq!(mixed.code, Some(2), "{}", mixed.text);

    std::fs::write(sandbox.home().join("saves.sh"), SAVES_WHEN_WANTED).expect("written");
    let made = sandbox.shell(
        "elastane project create team-a --gpu-quota 0 && elastane project create team-b --gpu-quota 1 \
         && runai config project team-a \
         && runai submit asks -i x -g 1 --command -- sh -c \"$(cat saves.sh)\"",
    );
    assert_eq!(made.code, Some(0), "{}", made.text);
    says(&sandbox, "runai logs asks", "not wanted: ''");
    let taker = "runai submit taker -p team-b -i x -g 1 --command -- sleep 600";
    assert_eq!(sandbox.shell(taker).code, Some(0));
    says(&sandbox, "runai logs asks --pod asks-0-1", " s\n");
    assert_eq!(sandbox.shell("runai wait taker -p team-b --for running").code, Some(0));
    let log = sandbox.shell("runai logs asks --pod asks-0-1").text;
    assert_eq!(log.matches("saves ").count(), 1, "{log}");
}

#[test]
fn wrong_reports_say_what_is_wrong_and_harm_nothing() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --nodes 1x0");
    let outside = sandbox.shell("elastane checkpoint /tmp");
    assert_eq!(outside.code, Some(1));
    assert!(outside.text.contains("ELASTANE_CHANNEL is not set"), "{}", outside.text);
    let script = "for what in none /etc/hostname . '--next-in 1e9'; do elastane checkpoint $what; done; \
                  : > empty; elastane checkpoint empty; echo x > model; \
                  elastane checkpoint model --step 9 && elastane checkpoint model; \
                  echo xy > model; elastane checkpoint model --step 8; echo ended";
    std::fs::write(sandbox.home().join("script.sh"), script).expect("written");
    let made = sandbox.shell(
        "elastane project create team-a && runai config project team-a \
         && runai submit wrong -i x --command -- sh -c \"$(cat script.sh)\" && runai wait wrong",
    );
    assert_eq!(made.code, Some(0), "{}", made.text);
    let text = sandbox.shell("runai logs wrong").text;
    for part in [
        "none: No such file or directory",
        "no file with content is in it",
        "invalid value '1e9' for '--next-in <SECONDS>': write a number of seconds from 0 to 86400",
        "the file is empty; it counts for nothing",
        "the file has not changed since it was reported before",
        "step 8 is before step 9, which was reported",
        "ended",
    ] {
        assert!(text.contains(part), "{part:?} lacks in\n{text}");
    }
}

#[test]
fn a_script_of_python_needs_nothing_but_the_module() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --nodes 1x0");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python/src/elastane/channel.py");
    let folder = sandbox.home().join("packages/elastane");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::copy(source, folder.join("channel.py")).expect("copied");
    std::fs::write(folder.join("__init__.py"), "").expect("written");
    std::fs::write(sandbox.home().join("packages/script.py"), IN_PYTHON).expect("written");
    let ran = sandbox.shell(
        "chmod -R a+rX packages && elastane project create team-a && runai config project team-a \
         && runai submit snake -i x -e PYTHONPATH=$PWD/packages --command \
         -- python3 -W ignore $PWD/packages/script.py && runai wait snake; runai logs snake",
    );
    for part in
        ["before it exists: False", "then: True True", "again: False the checkpoint does not"]
    {
        assert!(ran.text.contains(part), "{part:?} lacks in\n{}", ran.text);
    }
}
