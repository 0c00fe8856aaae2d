//! The suite every engine passes: what each verb of [`Engine`] promises, as scenarios.
//!
//! Owns: the scenarios and their vocabulary. Does not know which engine it is; a
//! [`Fixture`] brings that. Scenarios end by themselves: nothing asserts on time, and what
//! hangs is bounded by [`in_time`] alone.
//!
//! An engine's integration test is one line:
//! `engine_conformance::conformance_suite!(MyFixture::new());` in a crate with tokio as a
//! dependency.

mod buckets;
mod git_server;
mod output;
mod places;
mod repositories;
mod s3_server;
mod sessions;
mod silent_clients;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use buckets::*;
pub use git_server::GitServer;
pub use output::*;
pub use places::*;
pub use repositories::*;
pub use s3_server::S3Server;
pub use sessions::*;
pub use silent_clients::Silence;

use async_trait::async_trait;
use tokio::sync::mpsc::{UnboundedReceiver, error::TryRecvError};
use uuid::Uuid;

use engine::{Container, Engine, Exit, LogRange, Observation, RunKey, RunNews, RunSpec, RunState};

/// A run of a new pod, without special requests.
#[must_use]
pub fn spec(image: &str) -> RunSpec {
    RunSpec {
        key: RunKey { pod: Uuid::new_v4(), generation: 1 },
        pod_name: "train-0-1".to_owned(),
        workload_name: "train".to_owned(),
        workload_id: Uuid::new_v4(),
        project_name: "team-a".to_owned(),
        submitted_by: "ann@example.org".to_owned(),
        submitter_id: "user/7".to_owned(),
        pod_index: 0,
        node_name: "node-1".to_owned(),
        simulated_driver: None,
        hard_limit: false,
        time_slicing: None,
        fractions: None,
        devices: Vec::new(),
        image: image.to_owned(),
        command: None,
        args: Vec::new(),
        env: BTreeMap::new(),
        secrets: Vec::new(),
        working_dir: None,
        grace_ms: 5000,
        cpu_millis: 100,
        memory_bytes: 1 << 20,
        gang: None,
        stdin: false,
        tty: false,
        container: Container::default(),
        registry: None,
        resized_from: None,
    }
}

/// An engine under test, and its differences that a suite has to know.
#[async_trait]
pub trait Fixture: Send {
    /// The engine as it is open now.
    fn engine(&self) -> Arc<dyn Engine>;

    /// Drops the engine as a crash of the server would, and opens it again over the remaining
    /// state.
    async fn reopen(&mut self);

    /// A specification of a new run, never seen by this engine, of this POSIX shell script.
    fn script(&self, text: &str) -> RunSpec;

    /// True if the process a run reported still exists.
    fn is_alive(&self, pid: u32) -> bool;

    /// Makes the run's supervisor vanish, as the out-of-memory killer would. False: this engine
    /// has nothing of the kind.
    fn kill_supervisor(&self, key: RunKey) -> bool;

    /// True if both streams of a run come out in the order in which it wrote, however fast it
    /// wrote.
    fn orders_streams(&self) -> bool {
        true
    }

    /// A shell command that listens on a port and echoes its input; `None` if the machine has none.
    fn echo(&self, _port: u16) -> Option<String> {
        None
    }
}

/// Declares one test for each scenario, or for each about those who come to a run (`sessions of`)
/// or about copies of repositories and buckets (`copies of`). The expression makes a fresh fixture.
#[macro_export]
macro_rules! conformance_suite {
    (sessions of $fixture:expr) => {
        $crate::conformance_suite!(@each $fixture;
            runs_commands_where_the_run_is, hands_commands_what_is_typed,
            gives_commands_a_terminal, says_which_program_is_not_there,
            ends_commands_with_their_run,
            keeps_the_terminal_of_a_run, hands_the_main_process_what_is_typed,
            shows_a_run_without_an_input, connects_to_ports_of_the_run_only
        );
    };
    (background of $fixture:expr) => {
        $crate::conformance_suite!(@each $fixture;
            ends_a_command_whose_caller_goes_away, keeps_what_runs_in_the_background
        );
    };
    (copies of $fixture:expr) => {
        $crate::conformance_suite!(@each $fixture;
            copies_what_is_asked_for, copies_with_a_login_that_stays_nowhere,
            says_why_there_is_no_copy, ends_a_copy_that_is_not_wanted,
            copies_anew_after_a_crash, copies_all_of_a_bucket,
            copies_a_bucket_with_a_key_that_stays_nowhere, says_why_there_is_no_copy_of_a_bucket,
            ends_a_copy_of_a_bucket_with_whoever_wanted_it
        );
    };
    ($fixture:expr) => {
        $crate::conformance_suite!(@each $fixture;
            ends_well, ends_with_a_code, ends_by_a_signal, cannot_run, stops_gracefully,
            stops_by_force, stops_sooner_when_asked_again, leaves_no_process_behind,
            ends_what_the_main_process_left, starts_once, knows_its_runs_after_a_crash,
            says_what_a_run_holds,
            learns_what_happened_while_it_was_away, starts_once_across_a_crash,
            stops_after_a_crash, loses_a_run_whose_supervisor_vanished, tells_the_last_lines,
            tells_when_lines_were_written, keeps_the_output_of_earlier_runs,
            follows_the_output_to_its_end, removes_ended_runs_only, forgives_unknown_runs,
            knows_what_pods_keep_after_a_crash,
            refuses_what_it_cannot_run, measures_what_runs_use
        );
    };
    (@each $fixture:expr; $($name:ident),+) => {
        $(
            #[tokio::test]
            async fn $name() {
                let mut fixture = $fixture;
                $crate::in_time($crate::$name(&mut fixture)).await;
            }
        )+
    };
}

/// Time limit of a scenario: many times that of the slowest one on a busy machine.
const HANGS_AFTER: Duration = Duration::from_secs(240);

/// The result of something that is waited for: one test that hangs does not hold up all others.
///
/// # Panics
/// It hangs.
pub async fn in_time<T>(waited_for: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANGS_AFTER, waited_for).await.expect("it does not hang")
}

/// An engine with its observations, in the words of the scenarios.
struct Stage {
    engine: Arc<dyn Engine>,
    seen: UnboundedReceiver<Observation>,
}

impl Stage {
    fn new(fixture: &dyn Fixture) -> Self {
        let engine = fixture.engine();
        let mut earlier = engine.observations();
        let seen = engine.observations();
        assert!(earlier.try_recv().is_err_and(|why| why == TryRecvError::Disconnected));
        Self { engine, seen }
    }

    async fn start(&self, spec: RunSpec) -> RunKey {
        let key = spec.key;
        self.engine.start(spec).await.expect("a run that can be prepared starts");
        key
    }

    /// The next news of this run that satisfy the condition.
    async fn wait<T>(&mut self, key: RunKey, wanted: impl Fn(RunNews) -> Option<T>) -> T {
        loop {
            let seen = self.seen.recv().await.expect("the stream lives as long as the engine");
            if seen.key == key
                && let Some(found) = wanted(seen.news)
            {
                return found;
            }
        }
    }

    /// Waits until it runs; returns the process id where there is one.
    async fn running(&mut self, key: RunKey) -> Option<u32> {
        self.wait(key, |state| match state {
            RunNews::State(RunState::Running { pid, .. }) => Some(pid),
            RunNews::State(RunState::Exited { exit, .. }) => {
                panic!("{key} was to run, but ended: {exit:?}")
            }
            _ => None,
        })
        .await
    }

    async fn exit(&mut self, key: RunKey) -> Exit {
        let ended = |state| match state {
            RunNews::State(RunState::Exited { exit, .. }) => Some(exit),
            _ => None,
        };
        self.wait(key, ended).await
    }

    /// State of this run in the engine's list.
    async fn listed(&self, key: RunKey) -> Vec<RunState> {
        let list = self.engine.list().await.expect("a list");
        list.into_iter().filter(|run| run.key == key).map(|run| run.state).collect()
    }

    async fn stop(&self, key: RunKey, grace_ms: u64) {
        self.engine.stop(key, grace_ms).await.expect("a stop");
    }

    /// The output: all, or as the range says.
    async fn output(&self, key: RunKey, range: LogRange) -> String {
        let mut chunks = self.engine.logs(key, range).await.expect("a known run has output");
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.recv().await {
            bytes.extend(chunk.expect("readable output"));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Follows the output until this text is part of it: the run has come so far.
    async fn wait_for_output(&self, key: RunKey, text: &str) {
        let range = LogRange { follow: true, ..ALL };
        let mut chunks = self.engine.logs(key, range).await.expect("a known run has output");
        let mut all = String::new();
        while !all.contains(text) {
            let chunk = chunks.recv().await.expect("the run says it before it ends");
            all.push_str(&String::from_utf8_lossy(&chunk.expect("readable output")));
        }
    }
}

/// The whole output.
const ALL: LogRange =
    LogRange { tail_lines: None, from_byte: None, since: None, timestamps: false, follow: false };
/// Long enough that reaching it means a hang.
const LONG_MS: u64 = 600_000;
/// SIGTERM and SIGKILL, as every Unix numbers them.
const TERM: i32 = 15;
const KILL: i32 = 9;

/// Exit code 0 is reported after the run was seen running, and stays in the list.
pub async fn ends_well(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let key = stage.start(fixture.script("echo hello; exit 0")).await;
    stage.running(key).await;
    assert_eq!(stage.exit(key).await, Exit::Code(0));
    assert!(matches!(stage.listed(key).await[..], [RunState::Exited { exit: Exit::Code(0), .. }]));
    assert_eq!(stage.output(key, ALL).await, "hello\n");
}

/// The exit code is the main process's.
pub async fn ends_with_a_code(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let key = stage.start(fixture.script("exit 42")).await;
    assert_eq!(stage.exit(key).await, Exit::Code(42));
}

/// Death by a signal differs from an exit code.
pub async fn ends_by_a_signal(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let key = stage.start(fixture.script("kill -KILL $$")).await;
    assert_eq!(stage.exit(key).await, Exit::Signal(KILL));
}

/// A program that does not exist: the end says so and names it.
pub async fn cannot_run(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let mut spec = fixture.script("");
    spec.command = Some(vec!["no-such-program-here".to_owned()]);
    spec.args.clear();
    let key = stage.start(spec).await;
    match stage.exit(key).await {
        Exit::CannotRun(fault) => assert!(fault.contains("no-such-program-here"), "{fault}"),
        other => panic!("not told that it cannot run: {other:?}"),
    }
}

/// SIGTERM reaches the run, which may take its time and choose its exit code.
pub async fn stops_gracefully(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    let key = stage.start(fixture.script(script)).await;
    stage.wait_for_output(key, "ready").await;
    stage.stop(key, LONG_MS).await;
    assert_eq!(stage.exit(key).await, Exit::Code(7));
    assert!(stage.output(key, ALL).await.ends_with("bye\n"));
}

/// A run that ignores SIGTERM is killed when its grace is over.
pub async fn stops_by_force(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let key = stage.start(fixture.script(script)).await;
    stage.wait_for_output(key, "ready").await;
    stage.stop(key, 1).await;
    assert_eq!(stage.exit(key).await, Exit::Signal(KILL));
}

/// A second stop with less grace counts; one with more does not take back the first.
pub async fn stops_sooner_when_asked_again(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let key = stage.start(fixture.script(script)).await;
    stage.wait_for_output(key, "ready").await;
    stage.stop(key, LONG_MS).await;
    stage.stop(key, 1).await;
    stage.stop(key, LONG_MS).await;
    assert_eq!(stage.exit(key).await, Exit::Signal(KILL));
}

/// A grandchild that left the session, ignores SIGTERM and was orphaned is gone, too, when the
/// end is reported.
pub async fn leaves_no_process_behind(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let script = "trap 'exit 0' TERM
        (setsid sh -c 'trap \"\" TERM; echo pid $$; while :; do sleep 0.05; done' &) &
        wait; while :; do sleep 0.05; done";
    let key = stage.start(fixture.script(script)).await;
    stage.wait_for_output(key, "\n").await;
    let orphan = pid_in(&stage.output(key, ALL).await);
    assert!(fixture.is_alive(orphan));
    stage.stop(key, 50).await;
    stage.exit(key).await;
    assert!(!fixture.is_alive(orphan), "the orphan outlived its run");
}

/// Processes that the main process leaves running end with it.
pub async fn ends_what_the_main_process_left(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let script = "sh -c 'echo pid $$; : >said; exec sleep 600' & \
                  until [ -e said ]; do sleep 0.02; done; exit 3";
    let key = stage.start(fixture.script(script)).await;
    assert_eq!(stage.exit(key).await, Exit::Code(3));
    let left = pid_in(&stage.output(key, ALL).await);
    assert!(!fixture.is_alive(left), "a child outlived its run");
}

fn pid_in(output: &str) -> u32 {
    let line = output.lines().find_map(|line| line.strip_prefix("pid "));
    line.and_then(|pid| pid.parse().ok()).expect("the script printed a process id")
}

/// Two starts at once and one after the end are one run.
pub async fn starts_once(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let spec = fixture.script("echo once; sleep 0.1");
    let (first, second) =
        tokio::join!(stage.engine.start(spec.clone()), stage.engine.start(spec.clone()));
    first.and(second).expect("both are told it is on its way");
    let key = spec.key;
    assert_eq!(stage.exit(key).await, Exit::Code(0));
    stage.start(spec).await;
    assert_eq!(stage.output(key, ALL).await, "once\n");
}

/// After a crash the list has the same process, and its end is reported.
pub async fn knows_its_runs_after_a_crash(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let script = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let key = stage.start(fixture.script(script)).await;
    let pid = stage.running(key).await;
    stage.wait_for_output(key, "ready").await;
    let before = stage.listed(key).await;
    drop(stage);
    fixture.reopen().await;
    let mut stage = Stage::new(fixture);
    assert_eq!(stage.listed(key).await, before, "the same run, process and start");
    assert!(pid.is_none_or(|pid| fixture.is_alive(pid)), "the crash stopped nothing");
    stage.stop(key, LONG_MS).await;
    assert_eq!(stage.exit(key).await, Exit::Code(5));
}

/// A run that ended while the server was down is in the list, with its exit status.
pub async fn learns_what_happened_while_it_was_away(fixture: &mut dyn Fixture) {
    let stage = Stage::new(fixture);
    let key = stage.start(fixture.script("sleep 0.2; exit 6")).await;
    drop(stage);
    fixture.reopen().await;
    let mut stage = Stage::new(fixture);
    let exit = match &stage.listed(key).await[..] {
        [RunState::Exited { exit, .. }] => exit.clone(),
        // Not away for long enough: then the end is reported.
        _ => stage.exit(key).await,
    };
    assert_eq!(exit, Exit::Code(6));
}

/// A server that does not know whether its predecessor's start succeeded starts again, and there
/// is one run.
pub async fn starts_once_across_a_crash(fixture: &mut dyn Fixture) {
    let stage = Stage::new(fixture);
    let spec = fixture.script("echo once; sleep 0.2");
    let key = stage.start(spec.clone()).await;
    drop(stage);
    fixture.reopen().await;
    let mut stage = Stage::new(fixture);
    stage.start(spec).await;
    let already = stage.listed(key).await;
    if !matches!(already[..], [RunState::Exited { .. }]) {
        assert_eq!(stage.exit(key).await, Exit::Code(0));
    }
    assert_eq!(stage.output(key, ALL).await, "once\n");
}

/// A run that an earlier server started can be stopped, by force where needed.
pub async fn stops_after_a_crash(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let key = stage.start(fixture.script(script)).await;
    let pid = stage.running(key).await;
    stage.wait_for_output(key, "ready").await;
    drop(stage);
    fixture.reopen().await;
    let mut stage = Stage::new(fixture);
    stage.stop(key, 1).await;
    assert_eq!(stage.exit(key).await, Exit::Signal(KILL));
    assert!(pid.is_none_or(|pid| !fixture.is_alive(pid)));
}

/// Without its supervisor a run has no known end, and no process either: while the server looks,
/// and while it does not.
pub async fn loses_a_run_whose_supervisor_vanished(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let script = "sh -c 'echo pid $$; exec sleep 600' & wait";
    let (one, other) = (fixture.script(script), fixture.script(script));
    let (one, other) = (stage.start(one).await, stage.start(other).await);
    stage.wait_for_output(one, "\n").await;
    stage.wait_for_output(other, "\n").await;
    if !fixture.kill_supervisor(one) {
        return;
    }
    assert_eq!(stage.exit(one).await, Exit::Lost);
    let pid = pid_in(&stage.output(one, ALL).await);
    assert!(!fixture.is_alive(pid), "a process of a lost run lives on");
    let pid = pid_in(&stage.output(other, ALL).await);
    drop(stage);
    fixture.kill_supervisor(other);
    fixture.reopen().await;
    let mut stage = Stage::new(fixture);
    match &stage.listed(other).await[..] {
        [RunState::Exited { exit: Exit::Lost, .. }] => {}
        _ => assert_eq!(stage.exit(other).await, Exit::Lost),
    }
    assert!(!fixture.is_alive(pid), "a process of a lost run lives on");
}

/// A living run is not removed; an ended one is forgotten, also by the next server.
pub async fn removes_ended_runs_only(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let key = stage.start(fixture.script("exec sleep 600")).await;
    stage.running(key).await;
    let refused = stage.engine.remove(key).await;
    assert!(matches!(refused, Err(engine::Error::StillRunning(_))), "{refused:?}");
    stage.stop(key, LONG_MS).await;
    assert_eq!(stage.exit(key).await, Exit::Signal(TERM));
    for _ in 0..2 {
        stage.engine.remove(key).await.expect("removing twice is as good as once");
    }
    assert!(stage.listed(key).await.is_empty());
    let logs = stage.engine.logs(key, ALL).await;
    assert!(matches!(logs, Err(engine::Error::NoSuchRun(_))));
    drop(stage);
    fixture.reopen().await;
    assert!(Stage::new(fixture).listed(key).await.is_empty());
}

/// Stopping or removing an unknown run is no error; reading it is.
pub async fn forgives_unknown_runs(fixture: &mut dyn Fixture) {
    let stage = Stage::new(fixture);
    let spec = fixture.script("exit 0");
    let key = spec.key;
    stage.stop(key, 1).await;
    stage.engine.remove(key).await.expect("an unknown run is removed");
    stage.engine.forget_pod(key.pod).await.expect("an unknown pod is forgotten");
    assert!(matches!(stage.engine.logs(key, ALL).await, Err(engine::Error::NoSuchRun(_))));
    assert!(stage.listed(key).await.is_empty());
}

/// An engine keeps data of a pod that ran until it is forgotten, and lists the pod after a crash
/// right before that.
pub async fn knows_what_pods_keep_after_a_crash(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let (goes, stays) = (fixture.script("exit 0").key, fixture.script("exit 0").key);
    for key in [goes, stays] {
        let key = stage.start(RunSpec { key, ..fixture.script("exit 0") }).await;
        assert_eq!(stage.exit(key).await, Exit::Code(0));
        stage.engine.remove(key).await.expect("removed");
    }
    let kept = async |stage: &Stage| {
        let kept = stage.engine.kept_pods().await.expect("a list");
        [goes, stays].map(|key| kept.iter().filter(|pod| **pod == key.pod).count())
    };
    drop(stage);
    fixture.reopen().await;
    let stage = Stage::new(fixture);
    assert_eq!(kept(&stage).await, [1, 1]);
    stage.engine.forget_pod(goes.pod).await.expect("forgotten");
    assert_eq!(kept(&stage).await, [0, 1]);
    drop(stage);
    fixture.reopen().await;
    let stage = Stage::new(fixture);
    assert_eq!(kept(&stage).await, [0, 1]);
    stage.engine.forget_pod(stays.pod).await.expect("forgotten");
}

/// An engine measures the processes of runs, including ended ones; a run that has ended uses
/// nothing. An engine that cannot measure returns `None`.
pub async fn measures_what_runs_use(fixture: &mut dyn Fixture) {
    let mut stage = Stage::new(fixture);
    let mut say = async |text| {
        let key = stage.start(fixture.script(text)).await;
        stage.running(key).await;
        stage.wait_for_output(key, "done").await;
        key
    };
    let idle = say("echo done; sleep 300").await;
    // A child computes and ends; the rest waits.
    let key =
        say("(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done); echo done; sleep 300").await;
    let Some(measured) = stage.engine.measure().await.expect("measured") else { return };
    let of = |key| measured.runs.iter().find(|run| run.key == key).expect("it runs");
    assert!(of(key).cpu_time_ms > of(idle).cpu_time_ms, "{measured:?}");
    assert!(of(key).memory_bytes > 0 && of(idle).memory_bytes > 0, "{measured:?}");
    stage.stop(key, 0).await;
    stage.exit(key).await;
    let measured = stage.engine.measure().await.expect("measured").unwrap_or_default();
    let left: Vec<_> = measured.runs.iter().map(|run| run.key).collect();
    assert!(left.contains(&idle) && !left.contains(&key), "{left:?}");
    stage.stop(idle, 0).await;
}

/// An engine refuses a specification that can never run before it starts anything, and leaves
/// nothing.
pub async fn refuses_what_it_cannot_run(fixture: &mut dyn Fixture) {
    let stage = Stage::new(fixture);
    let mut spec = fixture.script("exit 0");
    stage.engine.check(&spec).expect("a script can run");
    spec.command = Some(vec![String::new()]);
    spec.args.clear();
    let key = spec.key;
    assert!(matches!(stage.engine.check(&spec), Err(engine::Error::Invalid(_))));
    assert!(matches!(stage.engine.start(spec).await, Err(engine::Error::Invalid(_))));
    assert!(stage.listed(key).await.is_empty());
}
