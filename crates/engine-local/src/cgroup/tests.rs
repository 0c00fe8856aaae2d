//! Values written into a group and read from it, over a tree of files as the kernel shows it.
//! `tests/limits.rs` shows that the kernel applies them.

use super::*;

const ALL: [Controller; 5] = [
    Controller::Cpu,
    Controller::Cpuacct,
    Controller::Memory,
    Controller::Pids,
    Controller::Freezer,
];
const LIMITS: Limits = Limits { cpu_millis_max: Some(1500), memory_bytes_max: Some(1 << 26) };

/// A group of version 2 in a folder, with these files.
fn unified(files: &[(&str, &str)]) -> (tempfile::TempDir, Group) {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(dir.path().join(name), text).expect("written");
    }
    let folders = ALL.map(|controller| (controller, dir.path().to_owned())).into();
    (dir, Group { version: Version::V2, folders })
}

#[test]
fn limits_are_written_as_version_2_reads_them() {
    let (dir, group) = unified(&[("memory.swap.max", "max")]);
    group.make(&LIMITS).expect("made");
    let text = |name: &str| fs::read_to_string(dir.path().join(name)).expect("written");
    assert_eq!(text("cpu.max"), "150000 100000");
    assert_eq!((text("memory.max"), text("memory.swap.max")), ("67108864".into(), "0".into()));
    assert_eq!(text("pids.max"), "16384");
}

#[test]
fn limits_are_written_as_version_1_reads_them_without_swap_where_it_is_not_counted() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    let folders = [(Controller::Cpu, at("cpu")), (Controller::Memory, at("memory"))];
    let group = Group { version: Version::V1, folders: folders.into() };
    group.make(&Limits { cpu_millis_max: Some(1), ..LIMITS }).expect("made");
    let text = |name: &str| fs::read_to_string(at(name)).expect("written");
    assert_eq!(text("cpu/cpu.cfs_quota_us"), "1000", "the least that the kernel takes");
    assert_eq!(text("memory/memory.limit_in_bytes"), "67108864");
    assert!(!at("memory/memory.memsw.limit_in_bytes").exists());
    group.make(&LIMITS).expect("made again, as by a second supervisor");
}

#[test]
fn what_is_not_limited_has_no_limit_but_that_of_tasks() {
    let (dir, group) = unified(&[]);
    group.make(&Limits::default()).expect("made");
    let names = fs::read_dir(dir.path()).expect("there").flatten().map(|entry| entry.file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["pids.max"]);
}

#[test]
fn version_2_tells_what_was_used_and_killed() {
    let (_dir, group) = unified(&[
        ("cpu.stat", "usage_usec 2500000\nuser_usec 1\n"),
        ("memory.current", "1000\n"),
        ("memory.stat", "anon 5\ninactive_file 300\n"),
        ("memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n"),
    ]);
    assert_eq!(group.usage(), Some(GroupUse { cpu_time_ms: 2500, memory_bytes: 700 }));
    assert_eq!(group.out_of_memory_kills(), 2);
    let (_dir, empty) = unified(&[]);
    assert_eq!((empty.usage(), empty.out_of_memory_kills()), (None, 0), "nothing is made up");
}

#[test]
fn version_2_kills_by_its_own_file() {
    let (dir, group) = unified(&[("cgroup.procs", "")]);
    group.kill();
    assert_eq!(fs::read_to_string(dir.path().join("cgroup.kill")).expect("written"), "1");
}

#[test]
fn one_blow_ends_all_that_is_in_a_group() {
    let key = engine::RunKey { pod: uuid::Uuid::new_v4(), generation: 1 };
    let place = Place::find();
    let Some(group) = place.group(key) else {
        return skip::skipped(&format!("no control groups here: {}", place.keeps().why));
    };
    group.make(&Limits::default()).expect("made");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "env -i setsid sleep 600 & setsid sleep 600 & exec sleep 600"]);
    let groups = group.entry_files().expect("made");
    let start = crate::sys::Start {
        mark: 1 << 62,
        tasks: crate::tasks::of_runs(),
        terminal: false,
        groups,
        enter: None,
    };
    crate::sys::in_own_session(&mut command, start);
    let mut main = command.spawn().expect("sh");
    while group.processes().len() < 3 {
        std::thread::sleep(FREEZE_PAUSE);
    }
    assert!(group.discard().is_ok() && place.runs().contains(&key), "it is in use");
    group.kill();
    assert!(!main.wait().expect("ours").success());
    while !group.processes().is_empty() {
        std::thread::sleep(FREEZE_PAUSE);
    }
    assert!(group.discard().is_ok() && !place.runs().contains(&key));
}

#[test]
fn groups_in_groups_of_any_depth_are_found_and_removed() {
    // Folders that look like groups, in memory: some disks take milliseconds for each that goes.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("made");
    let folder = dir.path().join("group");
    fs::create_dir(&folder).expect("made");
    let mut at = trees::open(CWD, &folder).expect("opened");
    for _ in 0..16_000 {
        rustix::fs::mkdirat(&at, c"g", rustix::fs::Mode::RWXU).expect("made");
        at = trees::open(&at, c"g").expect("opened");
    }
    let flags = OFlags::CREATE | OFlags::WRONLY;
    let list = rustix::fs::openat(&at, c"cgroup.procs", flags, rustix::fs::Mode::RWXU);
    io::Write::write_all(&mut File::from(list.expect("made")), b"7\n").expect("written");
    let group =
        Group { version: Version::V2, folders: [(Controller::Freezer, folder.clone())].into() };
    assert_eq!(group.processes(), [7].into());
    assert!(group.discard().is_ok() && folder.exists(), "it is in use");
    unlinkat(&at, c"cgroup.procs", AtFlags::empty()).expect("deleted");
    // An open folder keeps all around it in the kernel's memory, which makes each removal slower.
    drop(at);
    group.discard().expect("removed");
    assert!(!folder.exists());
}

#[test]
fn a_limit_of_a_gpu_that_the_kernel_does_not_show_is_an_error() {
    let (dir, mut group) = unified(&[]);
    let limits = BTreeMap::from([("drm/0000:0a:00.0/vram0".to_owned(), 1 << 30)]);
    let without = group.limit_devices(&limits).expect_err("no controller");
    assert!(without.to_string().contains("no controller dmem"), "{without}");
    group.folders.insert(Controller::Dmem, dir.path().to_owned());
    group.limit_devices(&limits).expect("limited");
    // A value written there is lost, as with a kernel that accepts a value and keeps another.
    fs::remove_file(dir.path().join("dmem.max")).expect("removed");
    std::os::unix::fs::symlink("/dev/null", dir.path().join("dmem.max")).expect("made");
    let lost = group.limit_devices(&limits).expect_err("not limited").to_string();
    assert!(lost.ends_with("does not limit drm/0000:0a:00.0/vram0 to 1073741824"), "{lost}");
}
