//! Tests with a folder in the form of the kernel's control groups, and a program in the place of
//! one that has a GPU.

use engine::Device;
use tempfile::TempDir;

use super::*;
use crate::fractions::Fractions;
use crate::policy::{DeviceGroups, FractionPolicy};

const GPU: &str = "GPU-11111111-2222-3333-4444-555555555555";
const REGIONS: &str = "drm/0000:0a:00.0/stolen 67108864\ndrm/0000:0a:00.0/vram0 17179869184\n\
                       drm/0000:0b:00.0/vram0 17179869184\n";

/// Is granted what its group may have, where it is in one with a limit.
const CHECK: &str = r#"set -- "$(dirname "$0")"/groups/test-*
read -r pid <"$1"/cgroup.procs
read -r region bytes <"$1"/dmem.max
[ "$pid $region $bytes" = "0 drm/0000:0a:00.0/vram0 1073741824" ] && answer=2 || answer=0
echo '[{"name":"G","total":17179869184,"free":null,"allocations":['
echo '{"bytes":16777216,"answer":0},{"bytes":1074790400,"answer":'$answer'}]}]'
"#;

fn machine(program: &str) -> (TempDir, FractionOptions, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("groups")).unwrap();
    for (place, uuid) in [("0000:0A:00.0", GPU), ("0000:0b:00.0", "GPU-b")] {
        let driver = at("driver").join(place);
        fs::create_dir_all(&driver).unwrap();
        let text = format!("Model: \t\t G\nGPU UUID: \t {uuid}\nBus Type: \t PCIe\n");
        fs::write(driver.join("information"), text).unwrap();
    }
    let groups = DeviceGroups { folder: at("groups"), regions: REGIONS.to_owned() };
    let options = FractionOptions {
        policy: FractionPolicy::Dmem,
        gpus: vec![GPU.to_owned()],
        groups: Ok(groups),
        driver_gpus: at("driver"),
        ..FractionOptions::default()
    };
    let path = crate::mps::tests::script(&folder, "check", program);
    (folder, options, path)
}

fn found(program: &str, change: impl FnOnce(&mut FractionOptions)) -> Result<Dmem, String> {
    let (_folder, mut options, path) = machine(program);
    change(&mut options);
    Dmem::find(&path, Runs::Processes(None), &options)
}

#[test]
fn a_run_has_a_limit_for_the_region_of_its_gpu() {
    let dmem = found(CHECK, |options| options.gpus.push("GPU-b".to_owned())).unwrap();
    assert_eq!(dmem.tried, Tried::Kept);
    let memory = engine::Bounds { request: 8 << 30, limit: Some(12 << 30) };
    let (memory_bytes, uuid) = (16 << 30, GPU.to_owned());
    let half = Device { index: 0, uuid, simulated: false, millis: 500, memory_bytes, memory };
    let spec = |devices| RunSpec { devices, ..engine_conformance::spec("ubuntu") };
    let limits = dmem.of(&spec(vec![half.clone()])).unwrap();
    let at = |place: &str| format!("drm/0000:{place}:00.0/vram0");
    assert_eq!(limits, [(at("0a"), 8 << 30), (at("0b"), 0)].into(), "no more than its part");
    let other = Device { millis: 1000, uuid: "GPU-b".to_owned(), ..half };
    let limits = dmem.of(&spec(vec![other])).unwrap();
    assert_eq!(limits, [(at("0a"), 0), (at("0b"), UNLIMITED)].into());
    let new = Device { uuid: "GPU-c".to_owned(), ..half };
    assert!(dmem.of(&spec(vec![new.clone()])).unwrap_err().contains("GPU-c"));
    let whole = Device { millis: 1000, ..new };
    assert_eq!(dmem.of(&spec(vec![whole])).unwrap().values().collect::<Vec<_>>(), [&0, &0]);
}

#[test]
fn what_is_missing_is_named() {
    let why = found(CHECK, |options| options.groups = Err("no dmem".to_owned())).unwrap_err();
    assert!(why.contains("(no dmem); that takes Linux 6.14"), "{why}");
    let why = found(CHECK, |options| options.driver_gpus = "/no/such".into()).unwrap_err();
    assert!(why.starts_with("/no/such has no place of GPU-1"), "{why}");
    let other = |options: &mut FractionOptions| {
        let groups = options.groups.as_mut().unwrap();
        groups.regions = "drm/0000:0c:00.0/vram0 5\n".to_owned();
    };
    let why = found(CHECK, other).unwrap_err();
    assert!(why.contains("at 0000:0a:00.0; the kernel has: drm/0000:0c:00.0/vram0 5"), "{why}");
    let gone = |options: &mut FractionOptions| {
        options.groups.as_mut().unwrap().folder = "/no/such/group".into();
    };
    let why = found(CHECK, gone).unwrap_err();
    assert!(why.contains("/no/such/group/test-"), "{why}");
    let (_folder, options, path) = machine(CHECK);
    let why = Dmem::find(&path, Runs::Containers, &options).unwrap_err();
    assert!(why.contains("--runtime process"), "{why}");
}

#[test]
fn a_limit_counts_only_if_a_program_was_refused_beyond_it() {
    let granted = CHECK.replace("answer=2", "answer=0");
    for (program, expected) in [
        (&*granted, "tried to exceed 1024 MiB saw [{"),
        ("echo there is no CUDA driver here >&2; exit 1", "no CUDA driver"),
    ] {
        let why = found(program, |_| {}).unwrap_err();
        assert!(why.contains("keeps no limit") && why.contains(expected), "{why}");
    }
}

#[test]
fn where_only_what_is_hard_counts_groups_are_used_once_a_limit_was_kept() {
    let enter = |_: &mut Command, _| Ok(());
    let apart = || Runs::Processes(Some(((1, 1), &enter as _)));
    let opened = |program: &str, runs| {
        let (folder, options, path) = machine(program);
        let options = FractionOptions { policy: FractionPolicy::HardOnly, ..options };
        let state = folder.path().join("state");
        fs::create_dir(&state).unwrap();
        Fractions::open(&state, &path, runs, &options).unwrap().limit(false)
    };
    let kept = opened(CHECK, apart());
    assert_eq!((kept.level, kept.mechanism), (Enforcement::Hard, Mechanism::ControlGroup));
    let granted = CHECK.replace("answer=2", "answer=0");
    let full =
        CHECK.replace("{\"bytes\":1074790400,\"answer\":'$answer'}", "{\"bytes\":1,\"answer\":2}");
    for (program, runs, why) in [
        (&*granted, apart(), "tried to exceed 1024 MiB"),
        (&*full, apart(), "no GPU had room"),
        (CHECK, Runs::Processes(None), "accounts of their own"),
        (CHECK, Runs::Containers, "(`--fractions mig`)"),
    ] {
        let limit = opened(program, runs);
        assert_ne!(limit.level, Enforcement::Hard);
        assert!(limit.why.contains(why), "{}", limit.why);
    }
}

#[test]
fn only_accounts_of_their_own_make_it_hard() {
    let (_folder, options, path) = machine(CHECK);
    let dmem = Dmem::find(&path, Runs::Processes(None), &options).unwrap();
    let enter = |_: &mut Command, _| Ok(());
    let apart = dmem.kept(Runs::Processes(Some(((1, 1), &enter as _))), &options);
    assert_eq!((apart.level, apart.mechanism), (Enforcement::Hard, Mechanism::ControlGroup));
    assert!(apart.why.contains("not tried on hardware"), "{}", apart.why);
    assert_eq!(apart.time_slicing(Some(TimeSlicing::Strict)), TimeSlicing::None);
    let together = dmem.kept(Runs::Processes(None), &options);
    assert_eq!(together.level, Enforcement::Cooperative);
    assert!(together.why.contains("can leave the group"), "{}", together.why);
    let without = FractionOptions { gpus: Vec::new(), ..options };
    assert_eq!(dmem.kept(Runs::Processes(None), &without).level, Enforcement::None);
}
