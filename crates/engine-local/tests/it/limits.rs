//! Control groups of runs, on a kernel that has them: limits, their removal, and the end of
//! processes that no other means would find.

use std::path::{Path, PathBuf};

use crate::bench::Bench;
use engine::{
    ExecSpec, Exit, Limits, LimitsKept, Output, RunEvent, RunKey, RunNews, RunSpec, RunState,
};
use engine_conformance::Fixture;

/// A bench on a machine with limits. Others skip these tests and say so.
fn bench() -> Option<Bench> {
    let bench = Bench::new();
    let keeps = bench.engine().capabilities().keeps_limits;
    if keeps == LimitsKept::ALL {
        return Some(bench);
    }
    skip::missing(&format!("this machine keeps no limits: {}", keeps.why))
}

fn limited(bench: &Bench, text: &str, limits: Limits) -> RunSpec {
    let mut spec = bench.script(text);
    spec.container.limits = limits;
    spec
}

const MIB_32: Limits = Limits { cpu_millis_max: None, memory_bytes_max: Some(32 << 20) };
/// A shell whose memory grows.
const GROW: &str = "x=xxxxxxxx; while :; do x=$x$x; done";

async fn start(bench: &Bench, spec: RunSpec) -> RunKey {
    let key = spec.key;
    bench.engine().start(spec).await.expect("started");
    key
}

async fn end(bench: &Bench, key: RunKey) -> Exit {
    loop {
        let list = bench.engine().list().await.expect("a list");
        let state = list.into_iter().find(|seen| seen.key == key).expect("known").state;
        if let RunState::Exited { exit, .. } = state {
            return exit;
        }
        pause().await;
    }
}

async fn pause() {
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
}

/// The first line of a run that goes on.
async fn says(bench: &Bench, key: RunKey) -> String {
    loop {
        let text = std::fs::read_to_string(bench.run_dir(key).join("output.log"));
        let list = bench.engine().list().await.expect("a list");
        let runs = list
            .iter()
            .any(|seen| seen.key == key && matches!(seen.state, RunState::Running { .. }));
        if let (true, Some((line, _))) = (runs, text.unwrap_or_default().split_once('\n')) {
            return line.to_owned();
        }
        pause().await;
    }
}

/// The groups of a run, wherever they are.
fn groups(key: RunKey) -> Vec<PathBuf> {
    fn below(folder: &Path, name: &str, depth: u32, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            match entry.file_name() == name {
                true => found.push(entry.path()),
                false if depth > 0 => below(&entry.path(), name, depth - 1, found),
                false => {}
            }
        }
    }
    let mut found = Vec::new();
    below(Path::new("/sys/fs/cgroup"), &key.to_string(), 6, &mut found);
    found
}

/// Content of this file of the run's group, by its name under version 1 or 2.
fn kernel_has(key: RunKey, names: [&str; 2]) -> Vec<String> {
    let files = groups(key).into_iter().flat_map(|group| names.map(|name| group.join(name)));
    let texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
    texts.map(|text| text.trim().to_owned()).collect()
}

#[tokio::test]
async fn a_run_that_has_more_memory_than_it_may_ends_out_of_memory() {
    let Some(bench) = bench() else { return };
    let key = start(&bench, limited(&bench, GROW, MIB_32)).await;
    assert_eq!(end(&bench, key).await, Exit::OutOfMemory);
    let below = format!("sh -c '{GROW}'; exit $?");
    let key = start(&bench, limited(&bench, &below, MIB_32)).await;
    assert_eq!(end(&bench, key).await, Exit::OutOfMemory, "it ended as its command did");
    let key = start(&bench, limited(&bench, "kill -9 $$", MIB_32)).await;
    assert_eq!(end(&bench, key).await, Exit::Signal(9), "killed by somebody else");
}

#[tokio::test]
async fn a_killed_process_is_told_while_the_main_one_goes_on() {
    let Some(bench) = bench() else { return };
    let mut seen = bench.engine().observations();
    let text = format!("sh -c '{GROW}' & wait; echo on; sleep 600");
    let key = start(&bench, limited(&bench, &text, MIB_32)).await;
    says(&bench, key).await;
    for _ in 0..2 {
        bench.engine().measure().await.expect("measured");
    }
    bench.engine().stop(key, 0).await.expect("stopped");
    end(&bench, key).await;
    let mut struck = Vec::new();
    while let Ok(next) = seen.try_recv() {
        struck.extend(match next.news {
            RunNews::Event(RunEvent::Struck(kills)) => Some(kills),
            _ => None,
        });
    }
    assert_eq!(struck, [1], "once");
}

#[tokio::test]
async fn limits_are_the_kernels_before_the_command_begins() {
    let Some(bench) = bench() else { return };
    let limits = Limits { cpu_millis_max: Some(500), memory_bytes_max: Some(64 << 20) };
    let key = start(&bench, limited(&bench, "echo $$; sleep 600", limits)).await;
    let main = says(&bench, key).await;
    let quota = kernel_has(key, ["cpu.cfs_quota_us", "cpu.max"]);
    assert!(quota == ["50000"] || quota == ["50000 100000"], "{quota:?}");
    assert_eq!(kernel_has(key, ["memory.limit_in_bytes", "memory.max"]), ["67108864"]);
    assert_eq!(kernel_has(key, ["pids.max", ""]), ["16384"]);
    for processes in kernel_has(key, ["cgroup.procs", ""]) {
        assert!(processes.lines().any(|pid| pid == main), "{processes} without {main}");
    }
    bench.engine().stop(key, 0).await.expect("stopped");
}

#[tokio::test]
async fn who_comes_to_a_run_comes_into_its_group() {
    let Some(bench) = bench() else { return };
    let script = "tr '\\n' ' ' </proc/self/cgroup; echo; sleep 600";
    let key = start(&bench, limited(&bench, script, MIB_32)).await;
    let own = says(&bench, key).await;
    assert!(own.contains(&key.to_string()), "{own}");
    let command = ["sh".to_owned(), "-c".to_owned(), "tr '\\n' ' ' </proc/self/cgroup".to_owned()];
    let what = ExecSpec { command: command.to_vec(), ..ExecSpec::default() };
    let mut session = bench.engine().exec(key, what).await.expect("let in");
    let mut seen = Vec::new();
    while let Some(Output::Stdout(bytes)) = session.output.recv().await {
        seen.extend(bytes);
    }
    assert_eq!(String::from_utf8(seen).expect("text").trim(), own.trim());
    bench.engine().stop(key, 0).await.expect("stopped");
}

#[tokio::test]
async fn a_group_ends_with_its_run_also_when_nobody_was_there_to_remove_it() {
    let Some(mut bench) = bench() else { return };
    let ends = start(&bench, bench.script("exit 0")).await;
    let fails =
        start(&bench, RunSpec { command: Some(vec!["/no/such".into()]), ..bench.script("") }).await;
    // As a container daemon does when it is started in a run.
    let within = "for h in /sys/fs/cgroup /sys/fs/cgroup/*; do for g in $h/elastane/$ELASTANE_RUN; do
                  [ -d $g ] && mkdir $g/inner && echo $$ >$g/inner/cgroup.procs; done; done 2>/dev/null
                  echo here; sleep 600";
    let lost = start(&bench, bench.script(within)).await;
    end(&bench, ends).await;
    end(&bench, fails).await;
    says(&bench, lost).await;
    assert!(groups(ends).is_empty() && groups(fails).is_empty());
    assert!(!groups(lost).is_empty());
    bench.close();
    bench.kill_supervisor(lost);
    bench.reopen().await;
    assert_eq!((end(&bench, lost).await, groups(lost).len()), (Exit::Lost, 0));
}

#[tokio::test]
async fn a_process_that_took_off_every_mark_is_ended_with_a_lost_run() {
    let Some(bench) = bench() else { return };
    let script = "env -i setsid prlimit --locks=5 sh -c 'echo $$; exec sleep 4344 >/dev/null 2>&1' & sleep 600";
    let key = start(&bench, bench.script(script)).await;
    let hidden = says(&bench, key).await.parse().expect("an id");
    bench.kill_supervisor(key);
    assert_eq!(end(&bench, key).await, Exit::Lost);
    assert!(!bench.is_alive(hidden));
}
