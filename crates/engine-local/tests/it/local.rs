//! Properties of this engine alone: what a run sees, and that no crash in the middle of an
//! operation starts a run twice or loses it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::bench::{Bench, SUPERVISOR, supervisors};
use engine::{
    Device, Engine, ExecSpec, Exit, LogRange, RunKey, RunNews, RunSpec, RunState, Secret,
    SecretPlace,
};
use engine_conformance::Fixture;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The whole output, once the run has ended.
async fn output(engine: &dyn Engine, key: RunKey) -> String {
    let range = LogRange { follow: true, ..LogRange::default() };
    let mut chunks = engine.logs(key, range).await.expect("a known run");
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.recv().await {
        bytes.extend(chunk.expect("readable"));
    }
    String::from_utf8(bytes).expect("text")
}

pub(crate) async fn run(bench: &Bench, spec: RunSpec) -> String {
    let key = spec.key;
    let engine = bench.engine();
    engine.start(spec).await.expect("started");
    output(&*engine, key).await
}

async fn state(engine: &dyn Engine, key: RunKey) -> Option<RunState> {
    let list = engine.list().await.expect("a list");
    list.into_iter().find(|seen| seen.key == key).map(|seen| seen.state)
}

/// The end of a run, reported or listed.
pub(crate) async fn end(engine: &dyn Engine, key: RunKey) -> Exit {
    let mut seen = engine.observations();
    if let Some(RunState::Exited { exit, .. }) = state(engine, key).await {
        return exit;
    }
    loop {
        let next = seen.recv().await.expect("the engine lives");
        if let (true, RunNews::State(RunState::Exited { exit, .. })) = (next.key == key, next.news)
        {
            return exit;
        }
    }
}

/// Leaves a run as a server does that crashed after preparing it, before spawning.
async fn prepared_only(bench: &mut Bench, spec: &RunSpec) {
    let run = bench.run_dir(spec.key);
    bench.engine().start(spec.clone()).await.expect("started");
    output(&*bench.engine(), spec.key).await;
    bench.close();
    for entry in std::fs::read_dir(&run).expect("a run directory").flatten() {
        // The folder of its channel is prepared as well.
        if entry.file_name() != "spec.json" && !entry.path().is_dir() {
            std::fs::remove_file(entry.path()).expect("removed");
        }
    }
}

fn supervise(run_dir: &Path) -> Output {
    let mut command = Command::new(SUPERVISOR);
    command.arg("supervise").arg(run_dir).stdin(Stdio::null());
    command.output().expect("a supervisor")
}

#[tokio::test]
async fn nothing_of_the_servers_surroundings_leaks_in() {
    let bench = Bench::new();
    let spec = bench.script(
        "env | cut -d= -f1; echo; ls /proc/self/fd; echo; cat
         [ $(cut -d' ' -f6 /proc/$$/stat) = $$ ] && echo own session",
    );
    let text = run(&bench, spec).await;
    let (names, rest) = text.split_once("\n\n").expect("two parts");
    assert_eq!(rest, "0\n1\n2\n3\n\nown session\n", "3 is ls's own");
    // This test has many variables (cargo's, to begin with); a run has only a person's, the
    // platform's, and those that the shell sets itself.
    let known = |name: &str| {
        let person = ["PATH", "LANG", "LC_ALL", "TZ", "TERM", "USER", "LOGNAME", "SHELL"];
        let own = [
            "HOME",
            "PYTHONUSERBASE",
            "PWD",
            "OLDPWD",
            "SHLVL",
            "_",
            "jobUUID",
            "podUUID",
            "NODE_NAME",
        ];
        let subtrees =
            ["JOB_", "POD_", "RUNAI_", "GPU_", "CUDA_", "NVIDIA_VISIBLE_DEVICES", "ELASTANE_"];
        person.contains(&name)
            || own.contains(&name)
            || subtrees.iter().any(|family| name.starts_with(family))
    };
    let leaked: Vec<&str> = names.lines().filter(|name| !known(name)).collect();
    assert!(leaked.is_empty(), "{leaked:?}");
}

#[tokio::test]
async fn a_run_is_at_home_in_a_folder_of_its_own_and_gets_no_more_rights() {
    let bench = Bench::new();
    let text = "cd && pwd && touch left && ulimit -c && grep NoNewPrivs /proc/self/status";
    let spec = bench.script(text);
    let pod = spec.key.pod;
    let told = run(&bench, spec).await;
    let home = format!("pods/{pod}/home\n0\nNoNewPrivs:\t1\n");
    assert!(told.ends_with(&home), "{told}");
    let folder = std::path::PathBuf::from(told.lines().next().expect("a line"));
    assert!(folder.join("left").exists());
    bench.engine().forget_pod(pod).await.expect("forgotten");
    assert!(!folder.exists(), "it goes with the pod");
}

#[tokio::test]
async fn a_run_that_asks_for_it_may_get_the_rights_that_this_test_may() {
    let bench = Bench::new();
    let mut spec = bench.script("grep NoNewPrivs /proc/self/status");
    spec.container.security.privilege_escalation = Some(true);
    let told = run(&bench, spec).await;
    let own = std::fs::read_to_string("/proc/self/status").expect("a status");
    assert!(told.starts_with("NoNewPrivs:") && own.contains(&told), "{told}");
}

/// Every file below a folder that holds this text.
fn holding(folder: &Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if std::fs::read(&path)
            .is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
        {
            found.push(path);
        }
    }
    found
}

/// Output of a run so far, by lines.
fn printed(bench: &Bench, key: RunKey) -> Vec<String> {
    let text = std::fs::read_to_string(bench.run_dir(key).join("output.log"));
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

/// True if any process of this machine has this text in its command line.
fn on_a_command_line(text: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("a /proc").flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| line.windows(text.len()).any(|part| part == text.as_bytes()))
}

const HUSH: &str = "hush-7f3a";

fn with_secrets(spec: RunSpec) -> RunSpec {
    let value = || HUSH.to_owned();
    let file = |path: &str, mode| SecretPlace::File { path: path.into(), mode };
    let secrets = vec![
        Secret { to: SecretPlace::Variable("TOKEN".into()), value: value() },
        Secret { to: SecretPlace::Variable("CUDA_VISIBLE_DEVICES".into()), value: value() },
        Secret { to: file("/etc/creds/key", 0o400), value: value() },
        Secret { to: file("../../outside", 0o600), value: value() },
    ];
    RunSpec { secrets, ..spec }
}

#[tokio::test]
async fn secrets_are_with_the_run_and_nowhere_else_and_end_with_it() {
    let bench = Bench::new();
    let script = format!(
        "cd $ELASTANE_SECRETS_DIR; [ \"$TOKEN\" = {HUSH} ] && [ \"$(cat etc/creds/key)\" = {HUSH} ] \
         && echo \"have both [$CUDA_VISIBLE_DEVICES]\"; stat -c '%a %n' . etc/creds/key outside; sleep 60"
    );
    let spec = with_secrets(bench.script(&script.replace(HUSH, "$(echo hush)-7f3a")));
    let (key, dir) = (spec.key, bench.run_dir(spec.key));
    let engine = bench.engine();
    engine.start(spec).await.expect("started");
    while printed(&bench, key).len() < 4
        || !matches!(state(&*engine, key).await, Some(RunState::Running { .. }))
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let want = ["have both []", "700 .", "400 etc/creds/key", "600 outside"];
    assert_eq!(printed(&bench, key), want);
    assert!(!on_a_command_line(HUSH));
    let inside = holding(&dir, HUSH);
    assert!(inside.iter().all(|path| path.starts_with(dir.join("secrets"))), "{inside:?}");
    assert_eq!(inside.len(), 2);
    let words = ["sh", "-c", "[ \"$TOKEN\" = \"$(echo hush)-7f3a\" ]"].map(str::to_owned);
    let what = ExecSpec { command: words.into(), ..ExecSpec::default() };
    let mut session_client = engine.exec(key, what).await.expect("it runs");
    assert_eq!(
        session_client.output.recv().await,
        Some(engine::Output::End(Exit::Code(0))),
        "known to a command"
    );
    engine.stop(key, 0).await.expect("stopped");
    end(&*engine, key).await;
    assert_eq!(holding(&dir, HUSH), [""; 0].map(std::path::PathBuf::from));
}

#[tokio::test]
async fn secrets_end_with_a_run_that_lost_its_supervisor() {
    let bench = Bench::new();
    let engine = bench.engine();
    let spec = with_secrets(bench.script("echo up; sleep 60"));
    let (key, dir) = (spec.key, bench.run_dir(spec.key));
    engine.start(spec).await.expect("started");
    while printed(&bench, key).is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(holding(&dir, HUSH).len(), 2);
    assert!(bench.kill_supervisor(key));
    assert_eq!(end(&*engine, key).await, Exit::Lost);
    assert_eq!(holding(&dir, HUSH).len(), 0);
}

#[tokio::test]
async fn secrets_that_cannot_be_deleted_keep_no_run_from_ending() {
    let bench = Bench::new();
    let engine = bench.engine();
    // A folder in the place of a file cannot be deleted as one.
    let script = "mkdir $ELASTANE_SECRETS_DIR/../secrets.json";
    let spec = with_secrets(bench.script(script));
    let key = spec.key;
    engine.start(spec).await.expect("started");
    let dir = bench.run_dir(key);
    assert_eq!(end(&*engine, key).await, Exit::Code(0));
    while !supervisors(&dir).is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_descriptor_an_ancestor_forgot_does_not_reach_the_run() {
    let mut bench = Bench::new();
    let spec = bench.script("ls /proc/self/fd");
    prepared_only(&mut bench, &spec).await;
    let script = r#"exec 7</dev/null; exec "$0" supervise "$1""#;
    let status = Command::new("sh")
        .args(["-c", script, SUPERVISOR])
        .arg(bench.run_dir(spec.key))
        .stdout(Stdio::null())
        .status();
    assert!(status.expect("a shell").success());
    bench.reopen().await;
    assert_eq!(output(&*bench.engine(), spec.key).await, "0\n1\n2\n3\n");
}

#[tokio::test]
async fn a_start_cut_short_is_finished_by_the_next_server() {
    let mut bench = Bench::new();
    let spec = bench.script("echo once");
    prepared_only(&mut bench, &spec).await;
    bench.reopen().await;
    let engine = bench.engine();
    engine.start(spec.clone()).await.expect("starting again is right");
    assert_eq!(end(&*engine, spec.key).await, Exit::Code(0));
    assert_eq!(output(&*engine, spec.key).await, "once\n");
}

#[tokio::test]
async fn a_directory_without_a_specification_was_never_a_run() {
    let mut bench = Bench::new();
    let spec = bench.script("echo once");
    bench.close();
    std::fs::create_dir(bench.run_dir(spec.key)).expect("created");
    bench.reopen().await;
    assert_eq!(state(&*bench.engine(), spec.key).await, None);
    assert_eq!(run(&bench, spec).await, "once\n");
}

#[tokio::test]
async fn of_several_supervisors_one_runs_the_command() {
    let mut bench = Bench::new();
    let spec = bench.script("echo once; sleep 0.1");
    prepared_only(&mut bench, &spec).await;
    let run_dir = bench.run_dir(spec.key);
    let said: Vec<Output> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..6).map(|_| scope.spawn(|| supervise(&run_dir))).collect();
        all.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    assert!(said.iter().all(|one| one.status.success()));
    assert_eq!(said.iter().filter(|one| !one.stdout.is_empty()).count(), 1);
    bench.reopen().await;
    assert_eq!(output(&*bench.engine(), spec.key).await, "once\n");
}

#[tokio::test]
async fn a_supervisor_that_comes_after_the_stop_or_the_removal_runs_nothing() {
    let mut bench = Bench::new();
    let spec = bench.script("echo once");
    prepared_only(&mut bench, &spec).await;
    let run_dir = bench.run_dir(spec.key);
    // As `stop` leaves an unclaimed run.
    let stopped = r#"{"phase":"exited","exit":{"signal":15},"at_ms":1}"#;
    std::fs::write(run_dir.join("state.json"), stopped).expect("written");
    assert!(supervise(&run_dir).stdout.is_empty());
    bench.reopen().await;
    let engine = bench.engine();
    assert_eq!(end(&*engine, spec.key).await, Exit::Signal(15));
    assert_eq!(output(&*engine, spec.key).await, "", "nothing ran");
    engine.remove(spec.key).await.expect("removed");
    supervise(&run_dir);
    assert!(!run_dir.exists(), "a late supervisor brings nothing back");
}

#[tokio::test]
async fn a_stop_right_after_the_start_ends_the_run_or_keeps_it_from_starting() {
    let bench = Bench::new();
    let engine = bench.engine();
    let mut ends = engine.observations();
    for _ in 0..20 {
        let spec = bench.script("exec sleep 600");
        let key = spec.key;
        engine.start(spec).await.expect("started");
        engine.stop(key, 600_000).await.expect("stopped");
        let exit = loop {
            let seen = ends.recv().await.expect("the engine lives");
            if let (true, RunNews::State(RunState::Exited { exit, .. })) =
                (seen.key == key, seen.news)
            {
                break exit;
            }
        };
        assert_eq!(exit, Exit::Signal(15));
    }
}

#[tokio::test]
async fn an_end_the_disk_refuses_is_told_and_recorded_later() {
    let mut bench = Bench::new();
    let spec = bench.script("while [ ! -e go ]; do sleep 0.02; done; exit 9");
    let key = spec.key;
    let engine = bench.engine();
    let mut seen = engine.observations();
    engine.start(spec).await.expect("started");
    while !matches!(state(&*engine, key).await, Some(RunState::Running { .. })) {
        seen.recv().await.expect("the engine lives");
    }
    // A folder in place of the file: writing fails, even for root.
    let room = bench.run_dir(key).join("state.exited.room");
    std::fs::remove_file(&room).expect("reserved at the start");
    std::fs::create_dir(&room).expect("created");
    let work = work(&bench, key);
    std::fs::write(work.join("go"), "").expect("written");
    while !matches!(state(&*engine, key).await, Some(RunState::Exited { .. })) {
        seen.recv().await.expect("the engine lives");
    }
    drop((engine, seen));
    bench.close();
    std::fs::remove_dir(&room).expect("removed");
    bench.reopen().await;
    assert_eq!(end(&*bench.engine(), key).await, Exit::Code(9));
}

#[tokio::test]
async fn a_start_without_a_supervisor_program_leaves_nothing() {
    let bench = Bench::with_supervisor(Path::new("/no/such/program"));
    let spec = bench.script("echo never");
    let error = bench.engine().start(spec.clone()).await.expect_err("no program");
    assert_eq!(error.to_string(), "failed to start the supervisor");
    assert!(!bench.run_dir(spec.key).exists());
    assert_eq!(state(&*bench.engine(), spec.key).await, None);
}

#[tokio::test]
async fn a_missing_working_directory_is_named() {
    let bench = Bench::new();
    let mut spec = bench.script("echo never");
    spec.working_dir = Some("/no/such/place".into());
    let key = spec.key;
    bench.engine().start(spec).await.expect("prepared");
    match end(&*bench.engine(), key).await {
        Exit::CannotRun(fault) => assert!(fault.contains("/no/such/place"), "{fault}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_pod_finds_its_checkpoint_again_until_it_is_forgotten() {
    let bench = Bench::new();
    let first = bench.script("echo 41 >$ELASTANE_CHECKPOINT_DIR/step; echo mine >here");
    let mut second = bench.script("cat $ELASTANE_CHECKPOINT_DIR/step here");
    second.key = RunKey { pod: first.key.pod, generation: 2 };
    let mut third = bench.script("ls $ELASTANE_CHECKPOINT_DIR . | grep -c step");
    third.key = RunKey { pod: first.key.pod, generation: 3 };
    run(&bench, first.clone()).await;
    bench.engine().remove(first.key).await.expect("removed");
    assert_eq!(run(&bench, second).await, "41\nmine\n");
    bench.engine().forget_pod(first.key.pod).await.expect("forgotten");
    assert_eq!(run(&bench, third).await, "0\n");
}

#[tokio::test]
async fn half_a_simulated_gpu_shows_its_half() {
    let bench = Bench::new();
    let mut spec = bench.script("nvidia-smi; nvidia-smi -L; echo $CUDA_VISIBLE_DEVICES");
    spec.devices = vec![Device {
        index: 1,
        uuid: "GPU-sim-node-1-1".into(),
        simulated: true,
        millis: 500,
        memory_bytes: 16 << 30,
        memory: engine::Bounds::of(8 << 30),
    }];
    let text = run(&bench, spec).await;
    assert!(text.contains("SIMULATED") && text.contains("/ 8192MiB"), "{text}");
    assert!(text.ends_with("(UUID: GPU-sim-node-1-1)\n1\n"), "{text}");
}

#[tokio::test]
async fn an_image_without_a_command_ends_well_as_its_container_would() {
    let bench = Bench::new();
    let mut spec = bench.script("");
    (spec.command, spec.image) = (None, "ubuntu:24.04".into());
    let key = spec.key;
    bench.engine().start(spec).await.expect("started");
    assert_eq!(end(&*bench.engine(), key).await, Exit::Code(0));
}

#[tokio::test]
async fn secrets_in_the_environment_are_readable_by_their_owner_only() {
    let bench = Bench::new();
    let spec = bench.script("exit 0");
    let run_dir = bench.run_dir(spec.key);
    run(&bench, spec).await;
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&run_dir), 0o700);
    for file in ["spec.json", "output.log", "state.json"] {
        assert_eq!(mode(&run_dir.join(file)), 0o600, "{file}");
    }
}

/// Starts a run that says an id on its first line; returns it.
pub(crate) async fn started(bench: &Bench, spec: RunSpec) -> u32 {
    let log = bench.run_dir(spec.key).join("output.log");
    bench.engine().start(spec).await.expect("started");
    loop {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        if let Some((line, _)) = text.split_once('\n') {
            return line.parse().expect("an id");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_left_its_session_and_cleared_its_environment_is_ended_with_a_lost_run() {
    let mut bench = Bench::new();
    // `exec` keeps the id that the shell prints.
    let script = "env -i setsid sh -c 'echo $$; exec sleep 4343 >/dev/null 2>&1' & sleep 1000";
    let (one, other) = (bench.script(script), bench.script(script));
    let (first, second) = (one.key, other.key);
    let (one, other) = (started(&bench, one).await, started(&bench, other).await);
    bench.kill_supervisor(first);
    assert_eq!(end(&*bench.engine(), first).await, Exit::Lost);
    assert!(!bench.is_alive(one), "while the server looks");
    bench.close();
    bench.kill_supervisor(second);
    bench.reopen().await;
    assert_eq!(end(&*bench.engine(), second).await, Exit::Lost);
    assert!(!bench.is_alive(other), "while it does not");
}

#[tokio::test]
async fn a_run_directory_that_cannot_be_read_holds_up_nobody_else() {
    let mut bench = Bench::new();
    let (bad, good) = (bench.script("exec sleep 600"), bench.script("echo fine"));
    let (bad_key, good_key) = (bad.key, good.key);
    prepared_only(&mut bench, &good).await;
    let run_dir = bench.run_dir(bad_key);
    std::fs::create_dir(&run_dir).expect("created");
    std::fs::create_dir(run_dir.join("state.json")).expect("created");
    bench.reopen().await;
    let engine = bench.engine();
    assert_eq!(state(&*engine, bad_key).await, Some(RunState::Starting), "it may have processes");
    assert_eq!(output(&*engine, good_key).await, "fine\n");
    // Repaired by hand.
    std::fs::remove_dir_all(&run_dir).expect("removed");
    assert_eq!(end(&*engine, bad_key).await, Exit::Lost);
}

#[tokio::test]
async fn a_machine_that_cannot_start_anything_now_does_not_fail_the_run() {
    // Folders in place of files stand for a full disk: writing fails, even for root.
    for file in ["state.running.room", "output.log"] {
        let mut bench = Bench::new();
        let spec = bench.script("echo never");
        prepared_only(&mut bench, &spec).await;
        std::fs::create_dir(bench.run_dir(spec.key).join(file)).expect("created");
        bench.reopen().await;
        assert_eq!(end(&*bench.engine(), spec.key).await, Exit::Lost, "{file}");
        bench.close();
        let told = std::fs::read_to_string(bench.run_dir(spec.key).join("supervisor.log"));
        assert!(told.expect("complaints").contains("Is a directory"), "{file}");
    }
}

#[tokio::test]
async fn a_run_has_the_umask_it_was_given_not_the_servers() {
    let bench = Bench::new();
    let spec = bench.script("umask");
    assert_eq!(run(&bench, spec).await, "0027\n", "as the bench opens its engine");
}

/// Polls until the process is gone; a test that never gets there says so.
async fn gone(bench: &Bench, pid: u32) -> bool {
    for _ in 0..12_000 {
        if !bench.is_alive(pid) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn the_command_dies_with_its_supervisor_though_no_server_looks() {
    let mut bench = Bench::new();
    let spec = bench.script("echo $$; exec sleep 600");
    let key = spec.key;
    let main = started(&bench, spec).await;
    bench.close();
    bench.kill_supervisor(key);
    assert!(gone(&bench, main).await, "it has no supervisor, and lives");
    bench.reopen().await;
    assert_eq!(end(&*bench.engine(), key).await, Exit::Lost);
}

#[tokio::test]
async fn a_supervisor_leaves_a_run_alone_that_another_one_holds() {
    let mut bench = Bench::new();
    let spec = bench.script("echo never");
    prepared_only(&mut bench, &spec).await;
    let run_dir = bench.run_dir(spec.key);
    // Held as by a supervisor that is about to claim the run.
    let lock = std::fs::File::create(run_dir.join("lock")).expect("created");
    fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).expect("nobody else's");
    let said = supervise(&run_dir);
    assert!(said.status.success() && said.stdout.is_empty(), "{said:?}");
    assert!(!run_dir.join("state.json").exists(), "it claimed the run");
    drop(lock);
    assert!(!supervise(&run_dir).stdout.is_empty(), "free, it is supervised");
}

/// Freezes the run's supervisor again and again, until it is gone.
fn keep_frozen(bench: &Bench, key: RunKey) -> std::thread::JoinHandle<()> {
    let found = supervisors(&bench.run_dir(key));
    let pid = *found.first().expect("a supervisor");
    let handle = pidfd_open(pid, PidfdFlags::empty()).expect("alive");
    let line = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
    std::thread::spawn(move || {
        // One that has ended has no command line, also before it is reaped.
        while std::fs::read(&line).is_ok_and(|line| !line.is_empty()) {
            let _ended = pidfd_send_signal(&handle, Signal::STOP);
            std::thread::sleep(Duration::from_micros(50));
        }
    })
}

/// The end of a run whose supervisor is frozen, and whether anything of it is left.
async fn ends_though_frozen(bench: &Bench, key: RunKey, main: u32) -> Exit {
    let exit = end(&*bench.engine(), key).await;
    assert!(!bench.is_alive(main), "its command is left");
    // After reporting the end it still has to exit; a test that never gets there says so.
    for _ in 0..12_000 {
        if supervisors(&bench.run_dir(key)).is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(supervisors(&bench.run_dir(key)), [], "its supervisor is left");
    bench.engine().remove(key).await.expect("nothing holds it");
    exit
}

#[tokio::test]
async fn a_frozen_supervisor_is_woken_by_the_stop_so_that_its_run_ends_well() {
    let bench = Bench::new();
    let spec = bench.script("trap 'kill $!; exit 7' TERM; echo $$; sleep 600 & wait");
    let key = spec.key;
    let main = started(&bench, spec).await;
    bench.signal_supervisor(key, Signal::STOP);
    bench.engine().stop(key, 600_000).await.expect("stopped");
    assert_eq!(ends_though_frozen(&bench, key, main).await, Exit::Code(7));
}

/// The folder a run works in.
fn work(bench: &Bench, key: RunKey) -> std::path::PathBuf {
    let state = bench.run_dir(key).join("../..");
    state.join("pods").join(key.pod.to_string()).join("work")
}

/// Starts a run that ignores SIGTERM, stops it, and freezes its supervisor in its grace period.
async fn frozen_in_its_grace(bench: &Bench, grace_ms: u64) -> (RunKey, u32) {
    let script = "trap 'touch asked' TERM; echo $$; while :; do sleep 0.05; done";
    let spec = bench.script(script);
    let key = spec.key;
    let main = started(bench, spec).await;
    let work = work(bench, key);
    bench.engine().stop(key, grace_ms).await.expect("stopped");
    while !work.join("asked").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bench.signal_supervisor(key, Signal::STOP);
    (key, main)
}

#[tokio::test]
async fn a_supervisor_that_freezes_in_the_grace_holds_up_no_stop() {
    let bench = Bench::new();
    let (key, main) = frozen_in_its_grace(&bench, 2000).await;
    assert_eq!(ends_though_frozen(&bench, key, main).await, Exit::Signal(9));
}

#[tokio::test]
async fn a_supervisor_that_stays_frozen_holds_up_no_stop() {
    let bench = Bench::new();
    let (key, main) = frozen_in_its_grace(&bench, 2000).await;
    let freezer = keep_frozen(&bench, key);
    let exit = ends_though_frozen(&bench, key, main).await;
    assert!(matches!(exit, Exit::Lost | Exit::Signal(9)), "{exit:?}");
    freezer.join().expect("no panic");
}

#[tokio::test]
async fn a_frozen_supervisor_holds_up_no_stop_by_a_later_server() {
    let mut bench = Bench::new();
    let (key, main) = frozen_in_its_grace(&bench, 600_000).await;
    bench.close();
    bench.reopen().await;
    assert!(bench.is_alive(main), "the first stop had time");
    let freezer = keep_frozen(&bench, key);
    bench.engine().stop(key, 1).await.expect("stopped");
    let exit = ends_though_frozen(&bench, key, main).await;
    assert!(matches!(exit, Exit::Lost | Exit::Signal(9)), "{exit:?}");
    freezer.join().expect("no panic");
}
