//! Specifications that are made, and what is refused.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

const GPU: &str = "GPU-01010101-0101-0101-0101-010101010101";

/// A program that measures nothing.
const NONE: &str = "/bin/false";

fn made(folder: &Path, parts: &[&str]) -> Result<Specification, String> {
    let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
    cdi(folder, &parts, false, Path::new(NONE)).map_err(|error| error.to_string())
}

/// Checks the requirements of the published schema and its library.
fn assert_valid(all: &Value) {
    let keys = |of: &Value| -> BTreeSet<String> {
        of.as_object().expect("an object").keys().cloned().collect()
    };
    let of = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    assert_eq!(keys(all), of(&["cdiVersion", "kind", "devices"]));
    // Runtimes know no device of a version that is newer than theirs: this is that of Podman 4.3.
    assert!(["0.3.0", "0.4.0", "0.5.0"].iter().any(|known| all["cdiVersion"] == *known));
    let (vendor, class) = all["kind"].as_str().and_then(|k| k.split_once('/')).expect("a kind");
    assert!([vendor, class].iter().all(|name| is_device_name(name)), "{vendor} {class}");
    let devices = all["devices"].as_array().expect("devices");
    assert!(!devices.is_empty());
    let mut names = BTreeSet::new();
    for device in devices {
        assert_eq!(keys(device), of(&["name", "containerEdits"]));
        let name = device["name"].as_str().expect("a name");
        assert!(is_device_name(name) && names.insert(name), "{name}");
        let edits = &device["containerEdits"];
        assert!(keys(edits).is_subset(&of(&["env", "mounts"])) && !keys(edits).is_empty());
        for variable in edits["env"].as_array().into_iter().flatten() {
            assert!(variable.as_str().is_some_and(|text| text.find('=') > Some(0)), "{variable}");
        }
        for mount in edits["mounts"].as_array().expect("mounts") {
            assert_eq!(keys(mount), of(&["hostPath", "containerPath", "options"]));
            let host = Path::new(mount["hostPath"].as_str().expect("a path"));
            let container = Path::new(mount["containerPath"].as_str().expect("a path"));
            assert!(host.is_absolute() && container.is_absolute() && host.exists(), "{mount}");
            let options = mount["options"].as_array().expect("options");
            assert!(options.iter().all(Value::is_string), "{mount}");
        }
    }
}

fn parsed(specification: &Specification) -> Value {
    let all = serde_json::from_str(&specification.text).expect("JSON");
    assert_valid(&all);
    all
}

#[test]
fn a_part_is_mounts_of_libraries_and_pages() {
    let top = tempfile::tempdir().expect("a folder");
    let folder = top.path().canonicalize().expect("a path");
    let real = format!("half={GPU}:40GiB");
    let parts = [&*real, "a=simulated:16GiB:8GiB", "b.2=simulated:16GiB:4GiB"];
    let found = made(&folder.join("new"), &parts).expect("made");
    let all = parsed(&found);
    let at = |name: &str| folder.join("new").join(name).display().to_string();
    let mount = |host: &str, container: &str, rights: &str| {
        json!({
            "hostPath": at(host), "containerPath": container,
            "options": ["bind", rights, "nosuid", "nodev"],
        })
    };
    assert_eq!(
        all["devices"][0]["containerEdits"],
        json!({ "mounts": [
            mount("lib", "/run/elastane/gpu/lib", "ro"),
            mount("lib/ld.so.preload", "/etc/ld.so.preload", "ro"),
            mount("parts/half", "/run/elastane/fraction", "ro"),
            mount("parts/half/part-half", "/run/elastane/fraction/part-half", "ro"),
            mount("parts/half/claim", "/run/elastane/fraction/claim", "rw"),
        ] }),
    );
    let simulated = &all["devices"][1]["containerEdits"];
    assert_eq!(simulated["env"][1], "LD_LIBRARY_PATH=/run/elastane/gpu/lib/limited-simulated");
    assert!(simulated["mounts"].to_string().contains("/run/elastane/gpu/sockets"));
    let [driver] = &found.drivers[..] else { panic!("{:?}", found.drivers) };
    assert_eq!(
        (&*driver[0], &*driver[3], &*driver[4]),
        ("simulated-driver", "17179869184", "stay")
    );
    let socket = simulated["env"][0].as_str().and_then(|text| text.rsplit('/').next());
    assert!(driver[1].ends_with(socket.expect("a socket")), "{driver:?}");
    let mode = fs::metadata(at("parts")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "claims are open to their containers alone");
    let limits = Pages::at(&folder.join("new/parts/half")).limits().expect("limits");
    assert_eq!((limits[0].uuid, limits[0].bytes), ([1; 16], 40 << 30));
}

#[test]
fn made_again_a_part_changes_its_memory_and_keeps_its_claims() {
    let top = tempfile::tempdir().expect("a folder");
    made(top.path(), &["a=simulated:16GiB:8GiB"]).expect("made");
    let claims = top.path().join("parts/a/claim");
    let mut marked = fs::read(&claims).expect("there");
    *marked.last_mut().expect("a byte") = 7;
    fs::write(&claims, &marked).expect("written");
    parsed(&made(top.path(), &["a=simulated:16GiB:4GiB"]).expect("made again"));
    assert!(fs::read(&claims).expect("there") == marked);
    let limits = Pages::at(&top.path().join("parts/a")).limits().expect("limits");
    assert_eq!(limits[0].bytes, 4 << 30);
    fs::remove_file(&claims).expect("removed");
    made(top.path(), &["a=simulated:16GiB:4GiB"]).expect("made where the last one was interrupted");
    assert!(fs::read(&claims).expect("there") != marked);
    fs::write(&claims, &marked).expect("written");
    let part = ["a=simulated:16GiB:4GiB".to_owned()];
    cdi(top.path(), &part, true, Path::new(NONE)).expect("reset");
    assert!(fs::read(&claims).expect("there") != marked, "what containers held that have ended");
    let why = made(top.path(), &[&format!("a={GPU}:1GiB")]).expect_err("another GPU");
    assert!(why.contains("`a` is one of other GPUs"), "{why}");
}

#[test]
fn what_cannot_be_is_refused_with_what_is_wrong() {
    let top = tempfile::tempdir().expect("a folder");
    let real = |name: &str, memory: &str| format!("{name}={GPU}:{memory}");
    for (parts, expected) in [
        (vec![], "needs a part"),
        (vec!["half".to_owned()], "NAME=GPU:MEMORY"),
        (vec!["half=8GiB".to_owned()], "NAME=GPU:MEMORY"),
        (vec!["half=0:8GiB".to_owned()], "nvidia-smi -L"),
        (vec![real("half", "0")], "above 0"),
        (vec![real("half", "much")], "much"),
        (vec![real("half/../x", "1GiB")], "letters"),
        (vec![real("", "1GiB")], "letters"),
        (vec![real("a", "1GiB"), real("a", "2GiB")], "two parts are called `a`"),
        (vec!["a=simulated:1GiB:2GiB".to_owned()], "more than the GPU has"),
        (
            vec!["a=simulated:8GiB:5GiB".to_owned(), "b=simulated:8GiB:4GiB".to_owned()],
            "together 9GiB, more than its 8GiB (a, b)",
        ),
        (vec![real("a", "1GiB") + "," + &real("", "2GiB")[1..]], "names a GPU twice"),
        (vec![real("a", "1GiB") + ",simulated:1GiB:1GiB"], "not both"),
        (vec![real("a", "1GiB") + ","], "NAME=GPU:MEMORY"),
    ] {
        let words: Vec<&str> = parts.iter().map(String::as_str).collect();
        let why = made(&top.path().join("none"), &words).expect_err("refused");
        assert!(why.contains(expected), "{why}");
    }
    assert!(!top.path().join("none/parts/a").exists(), "no part was made");
    let file = top.path().join("file");
    fs::write(&file, "").expect("written");
    let why = made(&file, &[&real("a", "1GiB")]).expect_err("no folder");
    assert!(why.contains("make "), "{why}");
}

#[test]
fn parts_that_other_commands_made_in_the_folder_are_added_up() {
    let top = tempfile::tempdir().expect("a folder");
    made(top.path(), &["a=simulated:16GiB:10GiB"]).expect("made");
    let why = made(top.path(), &["b=simulated:16GiB:8GiB"]).expect_err("too much");
    assert!(why.contains("together 18GiB, more than its 16GiB (a, b)"), "{why}");
    made(top.path(), &["a=simulated:16GiB:8GiB"]).expect("less than before");
    made(top.path(), &["b=simulated:16GiB:8GiB"]).expect("all of it");
    // The memory of a real GPU is the driver's to say.
    let real = CdiDevice::parse(&format!("c={GPU}:50GiB")).expect("a part");
    let fits =
        |whole| check_room(std::slice::from_ref(&real), &top.path().join("parts"), |_| whole);
    fits(None).expect("it is not known");
    fits(Some(50 << 30)).expect("it fits");
    assert!(fits(Some((50 << 30) - 1)).is_err());
}

#[test]
fn a_part_can_be_of_several_gpus() {
    let top = tempfile::tempdir().expect("a folder");
    let other = GPU.replace("01", "02");
    let both = format!("both={GPU}:40GiB,{other}:20GiB");
    let all = parsed(&made(top.path(), &[&both]).expect("made"));
    assert_eq!(all["devices"].as_array().map(Vec::len), Some(1));
    let limits = || {
        let limits = Pages::at(&top.path().join("parts/both")).limits().expect("limits");
        limits.iter().map(|limit| (limit.uuid, limit.bytes >> 30)).collect::<Vec<_>>()
    };
    assert_eq!(limits(), [([1; 16], 40), ([2; 16], 20)]);
    made(top.path(), &[&both.replace("20GiB", "10GiB")]).expect("changed");
    assert_eq!(limits(), [([1; 16], 40), ([2; 16], 10)]);
    let why = made(top.path(), &[&format!("both={GPU}:40GiB")]).expect_err("one less");
    assert!(why.contains("one of other GPUs"), "{why}");
    let parts = ["two=simulated:16GiB:8GiB,simulated:8GiB:4GiB"];
    let found = made(&top.path().join("more"), &parts).expect("made");
    assert_eq!(found.drivers.len(), 2);
    let all = parsed(&found);
    let sockets = all["devices"][0]["containerEdits"]["env"][0].as_str().expect("sockets");
    assert_eq!(
        sockets.matches(".sock").count().max(sockets.matches(':').count() + 1),
        2,
        "{sockets}"
    );
}

#[test]
fn a_part_of_a_gpu_in_mig_mode_is_refused_however_its_uuid_is_written() {
    let uuid = "GPU-abcdef01-0101-0101-0101-010101010101";
    let part = CdiDevice::parse("c=GPU-ABCDEF01-0101-0101-0101-010101010101:1GiB").expect("a part");
    let mut gpu = gpu::Gpu {
        index: 3,
        uuid: uuid.to_owned(),
        product: "G".to_owned(),
        memory_bytes: 80 << 30,
        simulated: false,
        instances: None,
        fault: None,
    };
    refuse_divided(std::slice::from_ref(&part), std::slice::from_ref(&gpu)).expect("whole");
    gpu.instances = Some(Vec::new());
    let why = refuse_divided(&[part], &[gpu]).expect_err("in MIG mode").to_string();
    assert!(why.contains(uuid) && why.contains("`nvidia-smi -i 3 -mig 0`"), "{why}");
}

/// Starts a container in a mount namespace with a specification, whose place is the same for all of
/// the machine, and with a store of its own.
const PODMAN: &str = r#"
set -e
mount --make-rprivate /
mount -t tmpfs none /run
mkdir /run/cdi
cp "$1/specification" /run/cdi/elastane.json
mkdir -p "$1/top/usr" "$1/top/proc" "$1/top/dev" "$1/top/run" "$1/top/etc"
for name in bin lib lib64; do ln -sfn "usr/$name" "$1/top/$name"; done
folder=$1
shift
if runc --version >/dev/null 2>&1; then set -- --runtime runc "$@"; fi
exec podman --root "$folder/store" --runroot "$folder/state" --storage-driver vfs \
    --cgroup-manager cgroupfs "$@"
"#;

/// Output of a container, or Podman's error.
fn podman(folder: &Path, options: &[&str], script: &str) -> Result<String, String> {
    let mut command = std::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", PODMAN, "sh"]).arg(folder);
    command.args(["run", "--rm", "--network", "none", "--volume", "/usr:/usr:ro"]);
    command.args(["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]).args(options);
    command.arg("--rootfs").arg(folder.join("top")).args(["/bin/sh", "-c", script]);
    let output = command.output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[test]
fn podman_gives_a_container_its_part() {
    let top = tempfile::tempdir().expect("a folder");
    let folder = top.path().canonicalize().expect("a path");
    let made = made(&folder.join("parts"), &["2=simulated:16GiB:8GiB"]).expect("made");
    fs::write(folder.join("specification"), made.text).expect("written");
    if let Err(why) = podman(&folder, &[], "true") {
        return skip::skipped(&format!("Podman starts no container here: {why}"));
    }
    let script = "cd /run/elastane/fraction; echo *; echo $LD_LIBRARY_PATH; \
                  { echo x >control; } 2>&1 || ls $LD_LIBRARY_PATH";
    let printed = podman(&folder, &["--device", "elastane/gpu=2"], script).expect("it starts");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "claim control part-2");
    assert_eq!(lines[1], "/run/elastane/gpu/lib/limited-simulated");
    assert!(printed.contains("Read-only file system"), "{printed}");
    assert!(printed.ends_with("libcuda.so.1\nlibnvidia-ml.so.1"), "{printed}");
    let unknown = podman(&folder, &["--device", "elastane/gpu=3"], "true");
    assert!(unknown.is_err_and(|why| why.contains("elastane/gpu=3")));
}
