//! Against a program in the place of the driver's: a GPU of 80 GiB whose instances it knows by name.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use engine::{Bounds, Error};
use tempfile::TempDir;

use super::*;
use crate::fractions::Fractions;
use crate::policy::FractionPolicy;

const GIB: u64 = 1 << 30;
const GPU: &str = "GPU-a";

/// Grants a program what its instance has.
const CHECK: &str = r#"case $CUDA_VISIBLE_DEVICES in
  MIG-small*) total=20937965568;;
  MIG-half*) total=42412802048;;
  *) echo "there is no GPU" >&2; exit 1;;
esac
first=0
echo '[{"name":"G","total":'$total',"free":null,"allocations":['
echo '{"bytes":16777216,"answer":'$first'},{"bytes":'${4%B}',"answer":2}]}]'
"#;

fn instance(uuid: &str, profile: &str, mib: u64) -> MigInstance {
    MigInstance { uuid: uuid.to_owned(), profile: profile.to_owned(), memory_bytes: mib * MIB }
}

struct Machine {
    folder: TempDir,
    options: FractionOptions,
}

impl Machine {
    /// With a GPU that is divided into one half and two quarters, which have a little less.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let all = vec![
            instance("MIG-half", "3g.40gb", 40448),
            instance("MIG-small-1", "2g.20gb", 19968),
            instance("MIG-small-2", "2g.20gb", 19968),
        ];
        let instances = [(GPU.to_owned(), all)].into();
        let (policy, gpus) = (FractionPolicy::Mig, vec!["GPU-whole".to_owned()]);
        let options = FractionOptions { policy, gpus, instances, ..FractionOptions::default() };
        Self { folder, options }
    }

    fn program(&self, text: &str) -> PathBuf {
        crate::mps::tests::script(&self.folder, "check", text)
    }

    fn find(&self, text: &str) -> Result<Mig, String> {
        Mig::find(&self.program(text), Runs::Processes(None), &self.options)
    }

    fn open(&self, runs: Runs<'_>) -> Result<Fractions, Error> {
        let state = self.folder.path().join("state");
        fs::create_dir_all(&state).unwrap();
        fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
        Fractions::open(&state, &self.program(CHECK), runs, &self.options)
    }
}

/// A part of the GPU.
fn part(number: u32, millis: u64) -> RunSpec {
    let memory_bytes = 81559 * MIB;
    let uuid = GPU.to_owned();
    let memory = Bounds::of(memory_bytes * millis / 1000);
    let device = Device { index: 0, uuid, simulated: false, millis, memory_bytes, memory };
    let mut spec = engine_conformance::spec("ubuntu");
    spec.key = RunKey { pod: Default::default(), generation: number };
    RunSpec { devices: vec![device], ..spec }
}

/// So many bytes of it, which count as a part.
fn bytes(number: u32, bytes: u64) -> RunSpec {
    let mut spec = part(number, bytes.div_ceil(80 * GIB / 1000));
    spec.devices[0].memory = Bounds::of(bytes);
    spec
}

fn taken(mig: &Mig, spec: &RunSpec) -> Result<String, String> {
    Ok(mig.take(spec)?.expect("it has a GPU").uuid)
}

#[test]
fn a_run_gets_the_smallest_free_instance_that_holds_its_part() {
    let mig = Machine::new().find(CHECK).unwrap();
    assert_eq!(taken(&mig, &part(1, 250)).unwrap(), "MIG-small-1");
    assert_eq!(taken(&mig, &part(2, 100)).unwrap(), "MIG-small-2");
    assert_eq!(taken(&mig, &part(1, 250)).unwrap(), "MIG-small-1", "its start is repeated");
    assert_eq!(taken(&mig, &part(3, 100)).unwrap(), "MIG-half", "no smaller one is free");
    mig.free(part(1, 250).key);
    assert_eq!(taken(&mig, &part(4, 100)).unwrap(), "MIG-small-1");
}

#[test]
fn half_of_a_gpu_is_its_half_and_bytes_are_bytes() {
    let mig = Machine::new().find(CHECK).unwrap();
    let half = part(1, 500);
    assert!(half.devices[0].memory.request > 40448 * MIB, "an instance has a little less");
    assert_eq!(taken(&mig, &half).unwrap(), "MIG-half");
    mig.free(half.key);
    assert_eq!(taken(&mig, &bytes(1, 40448 * MIB)).unwrap(), "MIG-half");
    let why = taken(&mig, &bytes(2, 40449 * MIB)).unwrap_err();
    assert!(why.starts_with("no MIG instance of GPU-a holds "), "{why}");
    let why = taken(&mig, &part(2, 501)).unwrap_err();
    assert!(why.starts_with("no MIG instance of GPU-a holds 0.501 of it; it has 2g.20gb"), "{why}");
    let why = taken(&mig, &part(2, 1000)).unwrap_err();
    assert!(why.contains("holds 1 of it"), "{why}");
}

#[test]
fn where_all_are_in_use_the_refusal_names_them() {
    let mig = Machine::new().find(CHECK).unwrap();
    taken(&mig, &part(1, 500)).unwrap();
    let why = taken(&mig, &part(2, 400)).unwrap_err();
    assert_eq!(
        why,
        "every MIG instance of GPU-a that holds 0.4 of it is in use; it has 2g.20gb of 19.5GiB \
         (MIG-small-1, free), 2g.20gb of 19.5GiB (MIG-small-2, free), 3g.40gb of 39.5GiB (MIG-half, \
         in use); submit it again when one is free, or ask for less"
    );
    mig.check(&part(2, 400)).expect("it could have one when the other ends");
}

#[test]
fn parts_of_several_gpus_and_gpus_without_instances_are_refused() {
    let mig = Machine::new().find(CHECK).unwrap();
    let mut two = part(1, 250);
    two.devices.push(two.devices[0].clone());
    let why = taken(&mig, &two).unwrap_err();
    assert!(why.contains("one MIG instance at a time") && why.contains("2 GPUs"), "{why}");
    let mut other = part(1, 250);
    other.devices[0].uuid = "GPU-b".to_owned();
    assert!(taken(&mig, &other).unwrap_err().contains("it has none"));
    assert!(mig.take(&RunSpec { devices: Vec::new(), ..two }).unwrap().is_none());
}

#[test]
fn an_instance_counts_only_if_a_program_got_no_more_than_it() {
    let machine = Machine::new();
    assert_eq!(machine.find(CHECK).unwrap().tried, Tried::Kept);
    for (program, expected) in [
        (&*CHECK.replace("\"answer\":2", "\"answer\":0"), "tried to exceed MIG-small-1 saw"),
        (&*CHECK.replace("20937965568", "20937965569"), "a program with MIG-small-1 alone saw"),
        (&*CHECK.replace("first=0", "first=999"), "tried to exceed MIG-small-1 saw"),
        ("exit 1", "MIG keeps no limit: 2g.20gb (MIG-small-1): "),
        ("echo '[]'", "a program with MIG-small-1 alone saw []"),
    ] {
        let why = machine.find(program).unwrap_err();
        assert!(why.contains(expected), "{program}: {why}");
    }
    let full = machine.find(&CHECK.replace("first=0", "first=2")).unwrap();
    assert_eq!(full.tried, Tried::NoRoom);
    assert!(full.kept(Runs::Containers).why.contains("could not try a limit"));
    let none = FractionOptions::default();
    let why = Mig::find(&machine.program(CHECK), Runs::Containers, &none).unwrap_err();
    assert!(why.contains("`nvidia-smi mig -i 0 -cgi PROFILES -C`"), "{why}");
}

#[test]
fn containers_keep_it_hard_and_processes_can_choose_another_instance() {
    let mig = Machine::new().find(CHECK).unwrap();
    let kept = mig.kept(Runs::Containers);
    assert_eq!((kept.level, kept.mechanism), (Enforcement::Hard, Mechanism::Mig));
    assert!(kept.why.contains("not tried on hardware"), "{}", kept.why);
    let kept = mig.kept(Runs::Processes(None));
    assert_eq!(kept.level, Enforcement::Cooperative);
    assert!(kept.why.contains("sets CUDA_VISIBLE_DEVICES itself"), "{}", kept.why);
}

#[test]
fn the_instance_of_a_run_is_its_own_until_it_ends_also_for_the_next_server() {
    let machine = Machine::new();
    let pages = machine.folder.path().join("pages");
    let added = |fractions: &Fractions, spec: &RunSpec| {
        fractions.of(spec, &pages).map(|added| added.expect("a part of a GPU"))
    };
    let first = machine.open(Runs::Processes(None)).unwrap();
    let one = added(&first, &part(1, 500)).unwrap();
    assert_eq!(one.delivery.variables["CUDA_VISIBLE_DEVICES"], "MIG-half");
    assert_eq!(one.delivery.variables["NVIDIA_VISIBLE_DEVICES"], "MIG-half");
    // What the instance has, which is a little less than the request.
    assert_eq!(one.delivery.variables["GPU_MEMORY_LIMIT"], (40448 * MIB).to_string());
    assert_eq!(one.delivery.variables["CUDA_DEVICE_MEMORY_LIMIT"], (40448 * MIB).to_string());
    let look = one.fraction.check().expect("a look before the command");
    assert_eq!(look[1], format!("--most={}B", 40448 * MIB));
    let kept = serde_json::to_vec(&one.fraction).unwrap();

    let next = machine.open(Runs::Processes(None)).unwrap();
    let fraction = serde_json::from_slice(&kept).unwrap();
    next.adopt(part(1, 500).key, &fraction, &pages).unwrap();
    next.check(&part(2, 500), &pages).expect("when the other ends");
    let refused = added(&next, &part(2, 500)).expect_err("it is in use");
    assert!(matches!(&refused, Error::NotKept(why) if why.contains("(MIG-half, in use)")));
    next.forget(part(1, 500).key);
    added(&next, &part(2, 500)).expect("it is free");
}

#[test]
fn a_server_that_relies_on_what_is_hard_uses_mig_for_containers_whose_gpus_are_all_divided() {
    let mut machine = Machine::new();
    machine.options.policy = FractionPolicy::HardOnly;
    let mechanism = |machine: &Machine, runs| machine.open(runs).unwrap().limit(false).mechanism;
    let whole = std::mem::take(&mut machine.options.gpus);
    assert_eq!(mechanism(&machine, Runs::Containers), Mechanism::Mig);
    assert_ne!(mechanism(&machine, Runs::Processes(None)), Mechanism::Mig, "it is not hard");
    machine.options.gpus = whole;
    let limit = machine.open(Runs::Containers).unwrap().limit(false);
    assert_ne!(limit.mechanism, Mechanism::Mig, "others would be of no use");
    assert!(limit.why.contains("(`--fractions mig`)"), "{}", limit.why);
}

#[test]
fn a_run_of_which_nothing_is_known_has_all_that_no_other_has_until_it_ends() {
    let mig = Machine::new().find(CHECK).unwrap();
    let [unknown, known, next] = [part(1, 500), part(2, 250), part(3, 100)];
    mig.adopt_unknown(unknown.key, |gpu| gpu == "GPU-b");
    let has = taken(&mig, &known).unwrap();
    mig.adopt_unknown(unknown.key, |gpu| gpu == GPU);
    let why = taken(&mig, &next).unwrap_err();
    assert!(why.starts_with("every MIG instance of GPU-a that holds 0.1 of it is in use"), "{why}");
    mig.free(known.key);
    assert_eq!(taken(&mig, &next).unwrap(), has, "it was not the other's");
    mig.free(unknown.key);
    assert_eq!(taken(&mig, &part(4, 500)).unwrap(), "MIG-half");
}

#[test]
fn where_no_library_can_be_written_instances_are_given_and_kept_as_anywhere() {
    let machine = Machine::new();
    let state = machine.folder.path().join("file");
    fs::write(&state, "").unwrap();
    let program = machine.program(CHECK);
    let fractions = Fractions::open(&state, &program, Runs::Containers, &machine.options).unwrap();
    let mut spec = part(1, 250);
    let added = fractions.of(&spec, &state).unwrap().expect("a part of a GPU");
    assert_eq!(added.fraction.program, program);
    assert!(added.fraction.look_ms_max > 0);
    spec.container.security.privileged = true;
    let refused = fractions.check(&spec, &state).unwrap_err().to_string();
    assert!(refused.contains("the MIG instances of others"), "{refused}");
}

#[test]
fn a_privileged_container_and_one_that_needs_hard_limits_as_a_process_are_refused() {
    let machine = Machine::new();
    let containers = machine.open(Runs::Containers).unwrap();
    let pages = machine.folder.path();
    let mut hard = RunSpec { hard_limit: true, ..part(1, 500) };
    containers.check(&hard, pages).expect("containers are");
    let refused = machine.open(Runs::Processes(None)).unwrap().of(&hard, pages);
    assert!(matches!(refused, Err(Error::NotKept(why)) if why.contains("elastane/gpu-limit=hard")
        && why.ends_with("`--runtime docker` keeps MIG instances so")));
    hard.container.security.privileged = true;
    for refused in [containers.of(&hard, pages).map(drop), containers.check(&hard, pages)] {
        assert!(matches!(refused, Err(Error::NotHere { field: "security", .. })), "{refused:?}");
    }
    // Without a GPU it reaches all devices of the machine as well, and so with one that is simulated.
    let mut simulated = RunSpec { hard_limit: false, ..hard.clone() };
    simulated.devices[0].simulated = true;
    hard.devices.clear();
    for spec in [&mut hard, &mut simulated] {
        for refused in [containers.of(spec, pages).map(drop), containers.check(spec, pages)] {
            assert!(
                matches!(refused, Err(Error::NotHere { field: "security", .. })),
                "{refused:?}"
            );
        }
        spec.container.security.privileged = false;
        containers.check(spec, pages).expect("it reaches what it was given");
        assert!(containers.of(spec, pages).expect("as well").is_none());
    }
}

#[test]
fn a_part_that_a_node_pool_counts_only_has_an_instance_as_well() {
    let machine = Machine::new();
    let fractions = machine.open(Runs::Containers).unwrap();
    let counted = Some(engine::PoolFractions::Counted);
    let spec = RunSpec { fractions: counted, ..part(1, 250) };
    let added = fractions.of(&spec, machine.folder.path()).unwrap().expect("of a divided GPU");
    assert_eq!(added.fraction.instance.expect("one").uuid, "MIG-small-1");
}
