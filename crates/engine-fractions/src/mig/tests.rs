//! Against a program in the place of the driver's: a GPU of 80 GiB whose instances it knows by
//! name.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use engine::{Bounds, Device, Error, RunKey};
use tempfile::TempDir;

use super::*;
use crate::fractions::Fractions;
use crate::policy::FractionPolicy;

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

/// A run on an instance, charged for `millis` thousandths of the GPU.
fn on(uuid: &str, millis: u64) -> RunSpec {
    let memory_bytes = 40448 * MIB;
    let (uuid, memory) = (uuid.to_owned(), Bounds::of(memory_bytes));
    let device = Device { index: 0, uuid, simulated: false, millis, memory_bytes, memory };
    let mut spec = engine_conformance::spec("ubuntu");
    spec.key = RunKey { pod: Default::default(), generation: 1 };
    RunSpec { devices: vec![device], ..spec }
}

#[test]
fn a_run_has_the_instance_that_it_was_placed_on_and_no_several() {
    let mig = Machine::new().find(CHECK).unwrap();
    let half = Instance { uuid: "MIG-half".to_owned(), bytes: 40448 * MIB };
    assert_eq!(mig.of(&on("MIG-half", 100)), Ok(Some(half)));
    let why = mig.of(&on(GPU, 500)).unwrap_err();
    assert_eq!(why, "GPU-a is no MIG instance of this machine; restart the server");
    let mut two = on("MIG-small-1", 250);
    two.devices.push(on("MIG-small-2", 250).devices.remove(0));
    let why = mig.of(&two).unwrap_err();
    assert!(why.contains("one MIG instance at a time") && why.contains("2 GPUs"), "{why}");
    assert_eq!(mig.of(&RunSpec { devices: Vec::new(), ..two }), Ok(None));
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
fn a_run_sees_its_instance_and_as_much_memory_as_that_has() {
    let machine = Machine::new();
    let fractions = machine.open(Runs::Processes(None)).unwrap();
    let pages = machine.folder.path().join("pages");
    let added = fractions.of(&on("MIG-half", 500), &pages).unwrap().expect("a part of a GPU");
    assert_eq!(added.delivery.variables["CUDA_VISIBLE_DEVICES"], "MIG-half");
    assert_eq!(added.delivery.variables["NVIDIA_VISIBLE_DEVICES"], "MIG-half");
    assert_eq!(added.delivery.variables["GPU_MEMORY_LIMIT"], (40448 * MIB).to_string());
    assert_eq!(added.delivery.variables["CUDA_DEVICE_MEMORY_LIMIT"], (40448 * MIB).to_string());
    let look = added.fraction.check().expect("a look before the command");
    assert_eq!(look[1], format!("--most={}B", 40448 * MIB));
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
fn where_no_library_can_be_written_instances_are_given_and_kept_as_anywhere() {
    let machine = Machine::new();
    let state = machine.folder.path().join("file");
    fs::write(&state, "").unwrap();
    let program = machine.program(CHECK);
    let fractions = Fractions::open(&state, &program, Runs::Containers, &machine.options).unwrap();
    let mut spec = on("MIG-small-1", 250);
    let added = fractions.of(&spec, &state).unwrap().expect("a part of a GPU");
    assert_eq!(added.fraction.program, program);
    assert!(added.fraction.look_ms_max > 0);
    spec.container.security.privileged = true;
    let refused = fractions.of(&spec, &state).unwrap_err().to_string();
    assert!(refused.contains("the MIG instances of others"), "{refused}");
}

#[test]
fn a_privileged_container_and_one_that_needs_hard_limits_as_a_process_are_refused() {
    let machine = Machine::new();
    let containers = machine.open(Runs::Containers).unwrap();
    let pages = machine.folder.path();
    let mut hard = RunSpec { hard_limit: true, ..on("MIG-half", 500) };
    containers.of(&hard, pages).expect("containers are");
    let refused = machine.open(Runs::Processes(None)).unwrap().of(&hard, pages);
    assert!(matches!(refused, Err(Error::NotKept(why)) if why.contains("elastane/gpu-limit=hard")
        && why.ends_with("`--runtime docker` keeps MIG instances so")));
    hard.container.security.privileged = true;
    let refused = containers.of(&hard, pages);
    assert!(matches!(refused, Err(Error::NotHere { field: "security", .. })), "{refused:?}");
    // Without a GPU it reaches all devices of the machine as well, and so with one that is
    // simulated.
    let mut simulated = RunSpec { hard_limit: false, ..hard.clone() };
    simulated.devices[0].simulated = true;
    hard.devices.clear();
    for spec in [&mut hard, &mut simulated] {
        let refused = containers.of(spec, pages);
        assert!(matches!(refused, Err(Error::NotHere { field: "security", .. })), "{refused:?}");
        spec.container.security.privileged = false;
        assert!(containers.of(spec, pages).expect("it reaches what it was given").is_none());
    }
}

#[test]
fn a_part_that_a_node_pool_counts_only_has_an_instance_as_well() {
    let machine = Machine::new();
    let fractions = machine.open(Runs::Containers).unwrap();
    let counted = Some(engine::PoolFractions::Counted);
    let spec = RunSpec { fractions: counted, ..on("MIG-small-1", 250) };
    let added = fractions.of(&spec, machine.folder.path()).unwrap().expect("of a divided GPU");
    assert_eq!(added.fraction.instance.expect("one").uuid, "MIG-small-1");
}
