//! Against a program in the place of NVIDIA's, which answers while a file is there.

use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::fractions::Fractions;
use crate::policy::FractionPolicy;

/// Answers as the control program does, with a daemon and without.
const CONTROL: &str = r#"read -r question
if [ -e "$CUDA_MPS_PIPE_DIRECTORY/control" ]; then
  case $question in get_default_active_thread_percentage) echo 100.0;; *) echo "$question?";; esac
else
  echo "Cannot find MPS control daemon process"
  exit 1
fi
"#;

/// A program that is refused what is beyond its limit, if it has one.
const CHECK: &str = r#"[ -n "$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT" ] && answer=2 || answer=0
echo '[{"name":"G","total":17179869184,"free":null,"allocations":['
echo '{"bytes":16777216,"answer":0},{"bytes":1074790400,"answer":'$answer'}]}]'
"#;

struct Machine {
    folder: TempDir,
    options: FractionOptions,
}

impl Machine {
    /// With a daemon that answers.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pipes = folder.path().join("pipes");
        fs::create_dir(&pipes).unwrap();
        fs::write(pipes.join("control"), "").unwrap();
        let mps = MpsPlace { pipes, control: script(&folder, "control", CONTROL) };
        let policy = FractionPolicy::Mps;
        Self { folder, options: FractionOptions { policy, mps, ..FractionOptions::default() } }
    }

    fn stop_daemon(&self) {
        fs::remove_file(self.options.mps.pipes.join("control")).unwrap();
    }

    fn find(&self, program: &str) -> Result<Mps, String> {
        let program = script(&self.folder, "check", program);
        Mps::find(&program, Runs::Processes(None), &self.options)
    }
}

/// Written by another process: a program that this one still writes to could not be started.
pub(crate) fn script(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    let mut write = Command::new("sh");
    write.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(&path);
    fraction_agent::answer(&mut write, &format!("#!/bin/sh\n{text}"), PATIENCE).unwrap();
    path
}

fn device(gpu: &str, millis: u64) -> Device {
    let memory_bytes = 16 << 30;
    let memory = engine::Bounds::of(memory_bytes * millis / 1000);
    let uuid = gpu.to_owned();
    Device { index: 3, uuid, simulated: false, millis, memory_bytes, memory }
}

fn run(devices: Vec<Device>, time_slicing: Option<TimeSlicing>) -> RunSpec {
    RunSpec { devices, time_slicing, ..engine_conformance::spec("ubuntu") }
}

#[test]
fn a_run_gets_the_variables_of_its_part() {
    let machine = Machine::new();
    let mps = machine.find(CHECK).unwrap();
    let spec = run(vec![device("GPU-a", 500), device("GPU-b", 250)], None);
    let granted = mps.of(&spec, TimeSlicing::None).unwrap().unwrap();
    assert_eq!(granted.bytes, 8 << 30);
    let all = granted.delivery.variables;
    assert_eq!(all[MEMORY], "0=8192M,1=4096M");
    assert_eq!(all[VISIBLE], "GPU-a,GPU-b");
    assert_eq!(Path::new(&all[PIPES]), machine.options.mps.pipes);
    assert_eq!(all.get(COMPUTE), None);
    let whole = run(vec![device("GPU-a", 1000)], None);
    let apart = mps.of(&whole, TimeSlicing::Strict).unwrap().unwrap().delivery.variables;
    assert_eq!(apart, [(PIPES.to_owned(), "/dev/null".to_owned())].into());
    assert!(mps.of(&run(Vec::new(), None), TimeSlicing::Strict).unwrap().is_none());
}

#[test]
fn a_part_that_a_node_pool_counts_only_stays_out_of_mps() {
    let machine = Machine::new();
    let state = machine.folder.path().join("state");
    fs::create_dir(&state).unwrap();
    let program = script(&machine.folder, "check", CHECK);
    let fractions =
        Fractions::open(&state, &program, Runs::Processes(None), &machine.options).unwrap();
    let half = run(vec![device("GPU-a", 500)], None);
    let bytes = |spec: &RunSpec| {
        let added = fractions.of(spec, &state).unwrap().unwrap();
        (added.fraction.mps_bytes, added.delivery.variables[PIPES] == NOWHERE)
    };
    assert_eq!(bytes(&half), (8 << 30, false));
    let fractions_of_pool = Some(engine::PoolFractions::Counted);
    assert_eq!(bytes(&RunSpec { fractions: fractions_of_pool, ..half }), (0, true));
}

#[test]
fn strict_shares_are_a_percentage_and_fair_ones_are_not_divided() {
    let machine = Machine::new();
    let mps = machine.find(CHECK).unwrap();
    let percent = |millis, of_pool, otherwise| {
        let spec = run(vec![device("GPU-a", millis)], of_pool);
        mps.of(&spec, otherwise).unwrap().unwrap().delivery.variables.get(COMPUTE).cloned()
    };
    let (strict, fair) = (TimeSlicing::Strict, TimeSlicing::Fair);
    assert_eq!(percent(335, None, strict).as_deref(), Some("33"));
    assert_eq!(percent(5, Some(strict), TimeSlicing::None).as_deref(), Some("1"), "0 is no share");
    assert_eq!(percent(500, Some(fair), strict), None);
    let gpus = vec!["GPU-a".to_owned()];
    let limit = mps.kept(&FractionOptions { time_slicing: fair, gpus, ..machine.options });
    assert_eq!((limit.level, limit.time_slicing), (Enforcement::Cooperative, TimeSlicing::None));
    assert!(limit.why.contains("no fair shares") && limit.why.contains("whole part"));
}

#[test]
fn without_a_daemon_nothing_starts_and_the_error_says_how_to_start_one() {
    let machine = Machine::new();
    let mps = machine.find(CHECK).unwrap();
    machine.stop_daemon();
    let shared = run(vec![device("GPU-a", 500)], None);
    for why in [mps.of(&shared, TimeSlicing::None).err(), machine.find(CHECK).err()] {
        let why = why.unwrap();
        assert!(why.contains("Cannot find MPS control daemon process"), "{why}");
        assert!(why.contains("`nvidia-cuda-mps-control -d`"), "{why}");
    }
    fs::remove_dir(&machine.options.mps.pipes).unwrap();
    let why = machine.find(CHECK).unwrap_err();
    assert!(why.contains("No such file") && why.contains("nvidia-cuda-mps-control -d"), "{why}");
}

#[test]
fn an_answer_that_is_no_percentage_is_no_daemon() {
    for (says, expected) in
        [("echo", "says ``"), ("echo 0.0", "says `0.0`"), ("exit 3", "control: ")]
    {
        let mut machine = Machine::new();
        machine.options.mps.control =
            script(&machine.folder, "control", &format!("read q; {says}"));
        let why = machine.find(CHECK).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
    let mut machine = Machine::new();
    machine.options.mps.control = "/no/such/program".into();
    let why = machine.find(CHECK).unwrap_err();
    assert!(why.contains("/no/such/program: No such file"), "{why}");
}

#[test]
fn a_limit_counts_only_if_a_program_was_refused_beyond_it() {
    let mut machine = Machine::new();
    machine.options.gpus = vec!["GPU-a".to_owned()];
    assert_eq!(machine.find(CHECK).unwrap().tried, Tried::Kept);
    for (program, expected) in [
        (&*CHECK.replace("answer=2", "answer=0"), "tried to exceed 1024 MiB saw [{"),
        (&*CHECK.replace("answer=0", "answer=999"), "without a limit saw [{"),
        ("echo there is no CUDA driver here >&2; exit 1", "no CUDA driver"),
        ("true", "MPS keeps no limit: GPU-a: "),
    ] {
        let why = machine.find(program).unwrap_err();
        assert!(why.contains(expected), "{program}: {why}");
    }
}

#[test]
fn on_gpus_without_room_a_limit_is_not_tried_and_the_status_says_so() {
    let mut machine = Machine::new();
    machine.options.gpus = vec!["GPU-a".to_owned(), "GPU-b".to_owned()];
    let mps = machine.find(&CHECK.replace("answer=0", "answer=2")).unwrap();
    assert_eq!(mps.tried, Tried::NoRoom);
    assert!(mps.kept(&machine.options).why.contains("no GPU had 1,025 MiB free"));
    assert!(!machine.find(CHECK).unwrap().kept(&machine.options).why.contains("1,025"));
}

#[test]
fn the_server_of_mps_is_known_by_its_daemon() {
    let proc = tempfile::tempdir().unwrap();
    for (pid, name, parent, owner) in [
        (10, "nvidia-cuda-mps", 1, 0),
        (11, "nvidia-cuda-mps", 10, 1000),
        (12, "python3", 10, 0),
        (20, "nvidia-cuda-mps", 1, 1234),
        (21, "nvidia-cuda-mps", 20, 1234),
    ] {
        let folder = proc.path().join(pid.to_string());
        fs::create_dir(&folder).unwrap();
        let text = format!("Name:\t{name}\nPPid:\t{parent}\nUid:\t{owner}\t{owner}\n");
        fs::write(folder.join("status"), text).unwrap();
    }
    let servers: Vec<u32> = (0..30).filter(|&pid| is_server(proc.path(), pid)).collect();
    assert_eq!(servers, [11], "a daemon of another account could have any server");
}

#[test]
fn less_than_a_mebibyte_is_no_limit_of_mps() {
    let machine = Machine::new();
    let mps = machine.find(CHECK).unwrap();
    let tiny = Device { memory: engine::Bounds::of(MIB - 1), ..device("GPU-a", 1) };
    let why = mps.of(&run(vec![tiny], None), TimeSlicing::None).err().unwrap();
    assert!(why.contains("1048575 bytes are less than one"), "{why}");
}

#[test]
fn a_folder_of_another_account_and_containers_are_refused() {
    let machine = Machine::new();
    if geteuid().is_root() {
        std::os::unix::fs::chown(&machine.options.mps.pipes, Some(12345), None).unwrap();
        let why = machine.find(CHECK).unwrap_err();
        assert!(why.contains("belongs to account 12345"), "{why}");
    }
    let why = Mps::find(Path::new("/"), Runs::Containers, &machine.options).unwrap_err();
    assert!(why.contains("--runtime process"), "{why}");
}
