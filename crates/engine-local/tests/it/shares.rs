//! Runs that have a part of a simulated GPU: what they see of it, what they are refused, and that
//! neither their own changes nor a crash of the server lifts that.
#![cfg(target_arch = "x86_64")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use engine::{
    Bounds, Device, Enforcement, ExecSpec, Exit, GpuOver, IsolationKind, LogRange, Mechanism,
    Observation, Output, PoolFractions, RunEvent, RunKey, RunNews, RunSpec, RunState, TimeSlicing,
};
use engine_conformance::Fixture as _;
use engine_fractions::{FractionOptions, FractionPolicy, MemoryOver};
use engine_local::Separation;

use crate::bench::{Bench, SUPERVISOR};
use crate::local::{end, run};

const MIB: u64 = 1 << 20;

fn share(bench: &Bench, script: &str, millis: u64) -> RunSpec {
    within(bench, script, millis, Bounds::of((16 << 30) * millis / 1000))
}

fn within(bench: &Bench, script: &str, millis: u64, memory: Bounds) -> RunSpec {
    let device = Device {
        index: 1,
        uuid: "GPU-sim-node-1-1".to_owned(),
        simulated: true,
        millis,
        memory_bytes: 16 << 30,
        memory,
    };
    RunSpec { devices: vec![device], simulated_driver: Some(true), ..bench.script(script) }
}

fn kept_apart() -> Bench {
    Bench::with(Path::new(SUPERVISOR), Some(Separation::default()))
}

/// A line for each size that is tried.
const TRY: &str = "gpu-check 9GiB 7800MiB 7892MiB";

#[tokio::test]
async fn half_a_gpu_shows_its_half_and_refuses_more() {
    for bench in [Bench::new(), kept_apart()] {
        let script = format!("nvidia-smi; {TRY}; echo goes on");
        let text = run(&bench, share(&bench, &script, 500)).await;
        assert!(text.contains("0MiB / 8192MiB") && text.contains("SIMULATED"), "{text}");
        let expected = "Elastane Simulated GPU, 8192 MiB, 7892 MiB of it free\n\
                        9216 MiB: refused: out of memory (CUDA error 2)\n\
                        7800 MiB: granted, and given back\n\
                        7892 MiB: granted, and given back\ngoes on\n";
        assert!(text.ends_with(expected), "{text}");
    }
}

#[tokio::test]
async fn a_whole_gpu_has_no_limit_and_what_does_not_ask_has_no_driver() {
    let bench = Bench::new();
    let text = run(&bench, share(&bench, "gpu-check 15GiB", 1000)).await;
    assert!(text.contains("16384 MiB") && text.contains("15360 MiB: granted"), "{text}");
    let unasked = RunSpec { simulated_driver: None, ..share(&bench, "gpu-check 2>&1; true", 500) };
    let text = run(&bench, unasked).await;
    assert!(text.contains("no simulated driver here"), "{text}");
}

#[tokio::test]
async fn a_run_has_the_driver_and_the_faults_that_it_chooses() {
    let bench = Bench::new();
    let chosen = |script: &str, millis, variable: &str, value: &str| {
        let spec = share(&bench, script, millis);
        let env = BTreeMap::from([(variable.to_owned(), value.to_owned())]);
        RunSpec { env, ..spec }
    };
    let script = "nvidia-smi --query-gpu=driver_version --format=csv,noheader; gpu-check 9GiB 1GiB";
    let spec = chosen(script, 500, "ELASTANE_SIMULATED_VERSION", "470");
    let text = run(&bench, spec).await;
    assert!(text.starts_with("470.42.01-simulated\n"), "{text}");
    assert!(text.contains("9216 MiB: refused") && text.contains("1024 MiB: granted"), "{text}");
    let faults = |script, millis, value| chosen(script, millis, "ELASTANE_SIMULATED_FAULTS", value);
    let text = run(&bench, faults("gpu-check 1GiB 1GiB", 1000, "memory-after=1")).await;
    assert!(text.contains("1024 MiB: granted, and given back\n1024 MiB: refused"), "{text}");
    let text = run(&bench, faults("nvidia-smi 2>&1; true", 1000, "lost")).await;
    assert!(text.contains("the simulated GPU is lost"), "{text}");
    let lost = faults("true", 500, "lost");
    let key = lost.key;
    bench.engine().start(lost).await.expect("accepted");
    let end = end(&*bench.engine(), key).await;
    assert!(matches!(&end, Exit::NotKept(why) if why.contains("has no GPU")), "{end:?}");
}

#[tokio::test]
async fn failure_17_runs_share_a_gpu_and_its_memory_is_measured_by_run() {
    let bench = kept_apart();
    let holds = "gpu-check --hold 4GiB & sleep 100";
    let (half, third) = (share(&bench, holds, 500), share(&bench, holds, 300));
    let keys = [half.key, third.key];
    for spec in [half, third] {
        bench.engine().start(spec).await.expect("started");
    }
    let used = |measured: &engine::Measured, key: RunKey| {
        let run = measured.runs.iter().find(|run| run.key == key)?;
        run.gpus.first().and_then(|gpu| gpu.memory_bytes)
    };
    let measured = async || bench.engine().measure().await.expect("measured").expect("can");
    let both = |measured: &engine::Measured| keys.map(|key| used(measured, key));
    while both(&measured().await).iter().any(|used| used.unwrap_or(0) < 4096 * MIB) {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    // The GPU may have been looked at before the last of them had it all.
    let measured = measured().await;
    let own = 4396 * MIB;
    assert_eq!(both(&measured), [Some(own); 2]);
    assert_eq!(measured.gpus.first().and_then(|gpu| gpu.memory_bytes), Some(2 * own));
    for key in keys {
        bench.engine().stop(key, 0).await.expect("stopped");
        end(&*bench.engine(), key).await;
        bench.engine().remove(key).await.expect("removed");
    }
}

#[tokio::test]
async fn compute_time_of_simulated_gpus_is_measured_by_run_once_it_runs_kernels() {
    let bench = kept_apart();
    let computes = share(&bench, "gpu-check --kernels=5 & sleep 100", 500);
    let waits = share(&bench, "gpu-check --hold 1GiB & sleep 100", 300);
    let keys = [computes.key, waits.key];
    for spec in [computes, waits] {
        bench.engine().start(spec).await.expect("started");
    }
    engine_conformance::in_time(async {
        loop {
            let measured = bench.engine().measure().await.expect("measured").expect("can");
            let own = keys.map(|key| {
                let run = measured.runs.iter().find(|run| run.key == key);
                run.and_then(|run| run.gpus.first().cloned())
            });
            if let [Some(computes), Some(waits)] = own
                && computes.busy_millis > Some(0)
                && waits.memory_bytes > Some(1024 * MIB)
            {
                assert_eq!(waits.busy_millis, None, "it may do without kernels");
                let whole = measured.gpus.first().and_then(|gpu| gpu.busy_millis);
                assert!(whole >= computes.busy_millis, "{whole:?} {computes:?}");
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
    for key in keys {
        bench.engine().stop(key, 0).await.expect("stopped");
        end(&*bench.engine(), key).await;
    }
}

#[tokio::test]
async fn a_crash_of_the_server_lifts_no_limit_and_takes_no_gpu_away() {
    let mut bench = kept_apart();
    let script = format!("gpu-check --hold 4GiB & read line; {TRY}");
    let spec = RunSpec { stdin: true, ..share(&bench, &script, 500) };
    let key = spec.key;
    bench.engine().start(spec).await.expect("started");
    let holds = async |bench: &Bench| loop {
        let measured = bench.engine().measure().await.expect("measured").expect("can");
        let own = measured.runs.iter().find(|run| run.key == key).and_then(|run| run.gpus.first());
        if own.and_then(|gpu| gpu.memory_bytes) == Some(4396 * MIB) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    holds(&bench).await;
    bench.close();
    // Longer than a driver stays that nothing uses.
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    bench.reopen().await;
    holds(&bench).await;
    bench.engine().stop(key, 0).await.expect("stopped");
}

/// Which of two sizes a program in a run is granted.
async fn granted(bench: &Bench, key: RunKey, sizes: [&str; 2]) -> Vec<bool> {
    let command = ["gpu-check"].iter().chain(&sizes).map(ToString::to_string).collect();
    let what = ExecSpec { command, ..ExecSpec::default() };
    let mut session = bench.engine().exec(key, what).await.expect("it runs");
    let mut text = Vec::new();
    while let Output::Stdout(bytes) | Output::Stderr(bytes) =
        session.output.recv().await.expect("an end comes last")
    {
        text.extend(bytes);
    }
    let text = String::from_utf8(text).expect("text");
    text.lines().skip(1).map(|line| line.contains("granted")).collect()
}

#[tokio::test]
async fn a_run_may_have_more_while_it_is_free_and_its_most_changes_while_it_runs() {
    let bench = kept_apart();
    let burst = Bounds { request: 4 << 30, limit: Some(8 << 30) };
    let spec = within(&bench, "sleep 100", 250, burst);
    let (key, gpu) = (spec.key, spec.devices[0].uuid.clone());
    let mut seen = bench.engine().observations();
    bench.engine().start(spec).await.expect("started");
    while !matches!(seen.recv().await.expect("news").news, RunNews::State(RunState::Running { .. }))
    {
    }
    let again = async || granted(&bench, key, ["6GiB", "11GiB"]).await;
    let most = |bytes| BTreeMap::from([(gpu.clone(), bytes)]);
    assert_eq!(again().await, [true, false]);
    bench.engine().limit_gpus(key, most(12 << 30)).await.expect("raised");
    assert_eq!(again().await, [true, true]);

    // A neighbour's guarantee is not free, however little of it is in use.
    let neighbour = share(&bench, "sleep 100", 500);
    let other = neighbour.key;
    bench.engine().start(neighbour).await.expect("started");
    assert_eq!(again().await, [true, false]);
    bench.engine().stop(other, 0).await.expect("stopped");
    end(&*bench.engine(), other).await;
    assert_eq!(again().await, [true, true]);
    bench.engine().limit_gpus(key, most(4 << 30)).await.expect("lowered");
    assert_eq!(again().await, [false, false]);
    let unknown = RunKey { generation: 99, ..key };
    bench.engine().limit_gpus(unknown, most(1)).await.expect("no error");
    bench.engine().stop(key, 0).await.expect("stopped");
}

fn over_in(news: RunNews) -> Option<GpuOver> {
    match news {
        RunNews::Event(RunEvent::GpuOver(over)) => Some(over),
        _ => None,
    }
}

#[tokio::test]
async fn a_limit_below_what_is_held_takes_nothing_gives_no_more_and_is_told_once() {
    let bench = kept_apart();
    let script = "gpu-check --hold 5GiB & read line; gpu-check 1MiB; sleep 100";
    let burst = Bounds { request: 2 << 30, limit: Some(8 << 30) };
    let spec = RunSpec { stdin: true, ..within(&bench, script, 125, burst) };
    let (key, gpu) = (spec.key, spec.devices[0].uuid.clone());
    let mut seen = bench.engine().observations();
    bench.engine().start(spec).await.expect("started");
    let held = async || {
        let measured = bench.engine().measure().await.expect("measured").expect("can");
        let own = measured.runs.iter().find(|run| run.key == key);
        own.and_then(|run| run.gpus.first()).and_then(|gpu| gpu.memory_bytes)
    };
    while held().await != Some(5420 * MIB) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let most = BTreeMap::from([(gpu.clone(), 3 << 30)]);
    bench.engine().limit_gpus(key, most).await.expect("lowered");
    for _ in 0..3 {
        assert_eq!(held().await, Some(5420 * MIB));
    }
    let mut over = Vec::new();
    while over.is_empty() {
        let told = engine_conformance::in_time(seen.recv()).await.expect("news");
        over.extend(over_in(told.news));
    }
    while let Ok(told) = seen.try_recv() {
        over.extend(over_in(told.news));
    }
    let expected = GpuOver { gpu, held_bytes: 5420 * MIB, limit_bytes: 3 << 30, ended: None };
    assert_eq!(over, [expected], "once");
    bench.engine().stop(key, 0).await.expect("stopped");
}

#[tokio::test]
async fn a_cleared_environment_shows_no_more_where_libraries_are_mounted() {
    let bench = kept_apart();
    let fractions = bench.engine().capabilities().fractions.simulated;
    assert_eq!(fractions.level, Enforcement::Cooperative, "{fractions:?}");
    let script = "L=$LD_LIBRARY_PATH S=$ELASTANE_SIMULATED_DRIVER; \
                  env -i LD_LIBRARY_PATH=$L ELASTANE_SIMULATED_DRIVER=$S $(command -v gpu-check) 9GiB";
    let text = run(&bench, share(&bench, script, 500)).await;
    let accounts = bench.engine().capabilities().isolation.kind == IsolationKind::Accounts;
    assert_eq!(accounts, fractions.mechanism == Mechanism::MountedLibraries, "{fractions:?}");
    if accounts {
        assert!(text.contains("8192 MiB") && text.contains("refused: out of memory"), "{text}");
    } else {
        assert!(fractions.why.contains("cleared environment"), "{fractions:?}");
    }
}

/// A static program that waits for a signal.
fn static_program(folder: &Path) -> PathBuf {
    // One segment of all of the file, and behind it: pause(), again and again.
    let mut elf = vec![0; 64 + 56];
    let mut put = |at: usize, bytes: &[u8]| elf[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &[2, 0, 62, 0, 1]);
    put(24, &0x0040_0078_u64.to_le_bytes());
    put(32, &[64]);
    put(52, &[64, 0, 56, 0, 1]);
    put(64, &[1, 0, 0, 0, 5]);
    put(80, &0x0040_0000_u64.to_le_bytes());
    put(88, &0x0040_0000_u64.to_le_bytes());
    put(96, &[0x81]);
    put(104, &[0x81]);
    put(113, &[0x10]);
    elf.extend([0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7]);
    let path = folder.join("static");
    // By another process: one that this forks meanwhile would still have it open for writing.
    let mut write = std::process::Command::new("sh");
    write.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(&path);
    let mut child = write.stdin(std::process::Stdio::piped()).spawn().expect("a shell");
    child.stdin.take().expect("input").write_all(&elf).expect("written");
    assert!(child.wait().expect("ended").success());
    path
}

#[tokio::test]
async fn a_static_program_is_not_limited_by_variables_and_one_event_says_so() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().expect("a folder");
    let program = static_program(folder.path()).display().to_string();
    let only = |bench: &Bench, program: &str, millis| RunSpec {
        command: Some(vec![program.to_owned()]),
        args: Vec::new(),
        ..share(bench, "", millis)
    };
    let spec = only(&bench, &program, 500);
    let (key, others) = (spec.key, [only(&bench, &program, 1000), only(&bench, "sh", 500)]);
    let mut seen = bench.engine().observations();
    for spec in others.into_iter().chain([spec]) {
        bench.engine().start(spec).await.expect("started");
    }
    let is_event = |news: &RunNews| matches!(news, RunNews::Event(RunEvent::GpuUnlimited(_)));
    let told = loop {
        let told = engine_conformance::in_time(seen.recv()).await.expect("news");
        if is_event(&told.news) {
            break told;
        }
    };
    let why =
        "its program is static, so the library that keeps parts of GPUs is not in it".to_owned();
    assert_eq!(told, Observation::new(key, RunEvent::GpuUnlimited(why)));
    for _ in ["this server", "the next"] {
        tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
        while let Ok(told) = seen.try_recv() {
            assert!(!is_event(&told.news), "{told:?}");
        }
        bench.reopen().await;
        seen = bench.engine().observations();
    }
    bench.engine().stop(key, 0).await.expect("stopped");
    end(&*bench.engine(), key).await;
    bench.reopen_with(FractionPolicy::HardOnly).await;
    let refused =
        bench.engine().start(only(&bench, &program, 500)).await.expect_err("it is not kept");
    assert!(refused.to_string().contains("cannot work around"), "{refused}");
}

#[tokio::test]
async fn failure_21_without_its_libraries_a_run_does_not_start() {
    let bench = Bench::new();
    let lost = bench.state_dir().join("fraction/lib/limited-simulated/libcuda.so.1");
    let whole = std::fs::read(&lost).expect("there");
    for broken in [None, Some(&whole[..1000]), Some(&whole[..0])] {
        std::fs::remove_file(&lost).expect("removed");
        if let Some(part) = broken {
            std::fs::write(&lost, part).expect("written");
        }
        let spec = share(&bench, "echo started", 500);
        let key = spec.key;
        bench.engine().start(spec).await.expect("prepared");
        match end(&*bench.engine(), key).await {
            Exit::NotKept(why) => assert!(why.contains("see `elastane status`"), "{why}"),
            other => panic!("{other:?}"),
        }
        std::fs::write(&lost, &whole).expect("written");
    }
}

#[tokio::test]
async fn a_driver_that_does_not_answer_keeps_no_run_starting() {
    let mut bench = Bench::new();
    bench.reopen_for(FractionOptions { look_ms_max: 1000, ..FractionOptions::default() }).await;
    let driver = bench.state_dir().join("fraction/lib/limited-simulated/libcuda.so.1");
    std::fs::remove_file(&driver).expect("removed");
    // Opening it waits for a writer, which never comes.
    let made = std::process::Command::new("mkfifo").arg(&driver).status().expect("started");
    assert!(made.success());
    let spec = share(&bench, "echo started", 500);
    let key = spec.key;
    bench.engine().start(spec).await.expect("prepared");
    // The look says so after its second, or the supervisor, which gives it five more.
    let ended = end(&*bench.engine(), key).await;
    let Exit::NotStarted(why) = &ended else { panic!("{ended:?}") };
    let within = [1000, 6000].map(|ms| format!("the driver does not answer within {ms} ms"));
    assert!(within.contains(why), "{why}");
}

/// Maximum number of measurements that depend on when processes have a processor.
const ATTEMPTS: u32 = 5;

/// How many kernels a run has launched, as far as it has printed.
async fn kernels(bench: &Bench, key: RunKey) -> u64 {
    let mut chunks = bench.engine().logs(key, LogRange::default()).await.expect("a known run");
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.recv().await {
        bytes.extend(chunk.expect("readable"));
    }
    let text = String::from_utf8(bytes).expect("text");
    let last = text.lines().filter_map(|line| line.strip_suffix(" kernels")).next_back();
    last.map_or(0, |count| count.parse().expect("a number"))
}

/// Share of the first of two runs in the work of both, in percent, measured over a number of
/// milliseconds. `each`: thousandths of the GPU, and the length of a kernel in milliseconds.
async fn work_of_first(
    bench: &Bench,
    time_slicing: Option<TimeSlicing>,
    each: [(u64, u64); 2],
    both_ms: u64,
) -> u64 {
    let mut keys = Vec::new();
    for (millis, ms) in each {
        let spec = share(bench, &format!("gpu-check --kernels={ms}"), millis);
        let spec = RunSpec { time_slicing, ..spec };
        keys.push(spec.key);
        bench.engine().start(spec).await.expect("started");
    }
    let work = async || {
        let mut work = Vec::new();
        for (key, (_, ms)) in keys.iter().zip(each) {
            work.push(kernels(bench, *key).await * ms);
        }
        work
    };
    let mut begin = work().await;
    let part = loop {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let now = work().await;
        if begin.contains(&0) {
            begin = now; // not both have begun
            continue;
        }
        let [first, second] = [now[0] - begin[0], now[1] - begin[1]];
        if first + second >= both_ms {
            break first * 100 / (first + second);
        }
    };
    for key in keys {
        bench.engine().stop(key, 0).await.expect("stopped");
        end(&*bench.engine(), key).await;
    }
    part
}

#[tokio::test]
async fn runs_with_equal_parts_get_equal_work_done_whatever_they_launch() {
    let mut bench = kept_apart();
    // The driver alone gives each a kernel in turn: a quarter to the one with the short ones.
    for (time_slicing, of_pool, parts, expected) in [
        (TimeSlicing::Fair, Some(TimeSlicing::None), [500, 500], 10..=35),
        (TimeSlicing::Fair, None, [500, 500], 40..=60),
        (TimeSlicing::None, Some(TimeSlicing::Strict), [500, 500], 40..=60),
        (TimeSlicing::Fair, None, [750, 250], 65..=85),
    ] {
        let options = FractionOptions { time_slicing, ..FractionOptions::default() };
        bench.reopen_for(options).await;
        let shown = bench.engine().capabilities().fractions.simulated.time_slicing;
        assert_eq!(shown, time_slicing);
        let each = [(parts[0], 2), (parts[1], 6)];
        // Where one of them gets no processor for a while it misses turns: then it is measured
        // again.
        let mut part = 0;
        for _ in 0..ATTEMPTS {
            part = work_of_first(&bench, of_pool, each, 3000).await;
            if expected.contains(&part) {
                break;
            }
        }
        assert!(expected.contains(&part), "{time_slicing:?} {of_pool:?} {parts:?}: {part} %");
    }
}

#[tokio::test]
async fn memory_that_was_not_granted_is_told_and_its_process_ended_where_policy_says_so() {
    let mut bench = Bench::new();
    for over in [MemoryOver::Report, MemoryOver::End] {
        bench.reopen_for(FractionOptions { over, ..FractionOptions::default() }).await;
        let driver = bench.state_dir().join("fraction/lib/simulated");
        let script = format!(
            "gpu-check --hold 1GiB & first=$!; LD_PRELOAD= LD_LIBRARY_PATH={} gpu-check --hold 9GiB; \
             kill $first && echo the first goes on",
            driver.display()
        );
        let spec = share(&bench, &script, 500);
        let key = spec.key;
        let mut seen = bench.engine().observations();
        bench.engine().start(spec).await.expect("started");
        let mut told = Vec::new();
        for _ in 0..2 {
            // The engine notices by itself.
            let news = async {
                loop {
                    let news = seen.recv().await.expect("an engine");
                    if let RunNews::Event(RunEvent::GpuOver(over)) = news.news {
                        break over;
                    }
                }
            };
            let patience = std::time::Duration::from_secs(60);
            told.push(tokio::time::timeout(patience, news).await.expect("it is noticed"));
            if over == MemoryOver::Report {
                break;
            }
        }
        assert_eq!((told[0].limit_bytes, told[0].ended), (8192 * MIB, None));
        if over == MemoryOver::End {
            assert!(told[1].ended.is_some(), "{told:?}");
            assert_eq!(end(&*bench.engine(), key).await, Exit::Code(0));
        } else {
            for _ in 0..5 {
                bench.engine().measure().await.expect("measured");
            }
            while let Ok(news) = seen.try_recv() {
                assert!(!matches!(news.news, RunNews::Event(RunEvent::GpuOver(_))), "{news:?}");
            }
            bench.engine().stop(key, 0).await.expect("stopped");
            end(&*bench.engine(), key).await;
        }
    }
}

#[tokio::test]
async fn a_policy_counts_only_or_starts_no_part_that_can_be_worked_around() {
    let mut bench = kept_apart();
    bench.reopen_with(FractionPolicy::Counted).await;
    let text = run(&bench, share(&bench, "gpu-check 9GiB", 500)).await;
    assert!(text.contains("16384 MiB") && text.contains("9216 MiB: granted"), "{text}");
    bench.reopen_with(FractionPolicy::HardOnly).await;
    let refused = bench.engine().start(share(&bench, "true", 500)).await.expect_err("a part");
    assert!(refused.to_string().contains("--fractions hard"), "{refused}");
    assert_eq!(run(&bench, share(&bench, "echo whole", 1000)).await, "whole\n");
    bench.reopen_with(FractionPolicy::Best).await;
    let asks = |millis| RunSpec { hard_limit: true, ..share(&bench, "echo goes on", millis) };
    let refused = bench.engine().start(asks(500)).await.expect_err("a part");
    assert!(refused.to_string().contains("elastane/gpu-limit=hard"), "{refused}");
    assert_eq!(run(&bench, asks(1000)).await, "goes on\n");

    // A node pool says something else than the server.
    let of_pool = |fractions, hard_limit| {
        let fractions = Some(fractions);
        RunSpec { fractions, hard_limit, ..share(&bench, "gpu-check 9GiB", 500) }
    };
    let text = run(&bench, of_pool(PoolFractions::Counted, false)).await;
    assert!(text.contains("16384 MiB") && text.contains("9216 MiB: granted"), "{text}");
    for (spec, who) in [
        (of_pool(PoolFractions::HardOnly, false), "the node pool gives out"),
        (of_pool(PoolFractions::Counted, true), "elastane/gpu-limit=hard"),
    ] {
        let refused = bench.engine().start(spec).await.expect_err("a part");
        assert!(refused.to_string().contains(who), "{refused}");
    }
}
