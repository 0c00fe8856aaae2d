//! A server and its machine, step by step: regressions found by random histories.

#![expect(clippy::unwrap_used, reason = "in a test, an error that is not expected is a panic")]

use std::collections::BTreeMap;

use model::{Effect, Taint};
use orchestrator::{Command, Input, NodeList, OrgChange, POOL_DEFAULT_ID, Subject, Wanted};
use sched::Policy;
use sim::machine::Machine;
use spec::{
    Audience, Container, Exit, GpuRequest, Metric, NodeGpu, NodeSpec, Place, PodSet, PodSpec,
    Probe, Restart, RunKey, Scaling, Serving, ShareChange, Target, WorkloadKind, WorkloadPast,
    WorkloadSpec,
};
use units::Instant;
use view::{Phase, WorkloadView};

fn node(name: &str, gpus: u32, gib: u64) -> NodeSpec {
    let gpu = |number| {
        let uuid = format!("GPU-{name}-{number}");
        NodeGpu::new(uuid, gib << 30)
    };
    NodeSpec {
        name: name.to_owned(),
        gpu_type: "simulated".to_owned(),
        simulated: true,
        gpus: (0..gpus).map(gpu).collect(),
        cpu_millis: 64_000,
        memory_bytes: 256 << 30,
        pods_max: None,
        labels: BTreeMap::new(),
        taints: Vec::new(),
    }
}

fn nodes(gpus: u32) -> NodeList {
    NodeList { nodes: vec![node("n1", gpus, 16)], origin: format!("{gpus} GPUs") }
}

fn add_node(machine: &mut Machine, spec: NodeSpec) {
    machine.command(Command::AddNode { by: "admin".to_owned(), spec, more: Vec::new() }).unwrap();
}

fn remove_node(machine: &mut Machine, node: &str) {
    let (by, node) = ("admin".to_owned(), node.to_owned());
    machine.command(Command::RemoveNode { by, node }).unwrap();
}

/// Ends a pod of a workload.
fn end(machine: &mut Machine, name: &str, pod: usize, exit: Exit) {
    let pod = &get(machine, name).pods[pod];
    let key = RunKey { pod: pod.id, generation: pod.generation };
    machine.engine.end(key, exit, machine.clock.wall());
}

/// A server on one node, with two projects of these quotas.
pub(super) fn server(gpus: u32, quotas: [u64; 2], policy: Policy) -> Machine {
    let mut machine = Machine::new(nodes(gpus), policy, None);
    machine.start().unwrap();
    for (name, quota) in ["team-a", "team-b"].into_iter().zip(quotas) {
        let share = ShareChange { gpu_quota_millis: Some(quota), ..ShareChange::default() };
        let shares = [(POOL_DEFAULT_ID.to_owned(), share)].into();
        let spec = OrgChange { name: Some(name.to_owned()), shares, ..OrgChange::default() };
        let command = Command::CreateProject { by: "admin".to_owned(), department_id: 1, spec };
        machine.command(command).unwrap();
    }
    rest(&mut machine);
    machine
}

pub(super) fn training(name: &str, gpu: GpuRequest) -> WorkloadSpec {
    let pod = PodSpec {
        image: "image".to_owned(),
        command: None,
        args: Vec::new(),
        env: BTreeMap::new(),
        secrets: Vec::new(),
        working_dir: None,
        place: Place::default(),
        gpu,
        cpu_millis: 100,
        memory_bytes: 1 << 20,
        restart: Restart::Never,
        grace_ms: 1000,
        stdin: false,
        tty: false,
        container: Container::default(),
    };
    WorkloadSpec {
        submitted_by: "alice".to_owned(),
        submitter_id: "user/1".to_owned(),
        source: "CLI".to_owned(),
        ..WorkloadSpec::new(name.to_owned(), WorkloadKind::Training, PodSet::one(pod))
    }
}

pub(super) fn submit(machine: &mut Machine, project_id: u64, spec: WorkloadSpec) {
    submit_all(machine, vec![(project_id, spec)]);
}

/// Submits workloads in one batch, before a decision about any of them.
pub(super) fn submit_all(machine: &mut Machine, specs: Vec<(u64, WorkloadSpec)>) {
    let input = |(project_id, spec)| {
        let wanted = Box::new(Wanted { spec, runs: Ok(()), strict: false });
        Input::Command(Box::new(Command::Submit { project_id, wanted }), Default::default())
    };
    let done = machine.take(specs.into_iter().map(input).collect(), None).unwrap().unwrap();
    assert!(done.iter().all(|one| matches!(one, Ok(Subject::Submitted(..)))), "{done:?}");
}

/// Continues everything until nothing is in progress.
pub(super) fn rest(machine: &mut Machine) {
    assert!((0..100).any(|_| !machine.go_on().unwrap()), "it does not come to rest");
}

fn get(machine: &Machine, name: &str) -> WorkloadView {
    let view = machine.view().unwrap();
    let mut all = view.revisions.values().chain(view.workloads.values());
    WorkloadView::clone(all.find(|w| w.spec.name == name).unwrap())
}

fn codes(machine: &Machine, name: &str) -> Vec<String> {
    let why = machine.view().unwrap().why(&get(machine, name));
    why.iter().map(|why| why.code.to_string()).collect()
}

#[test]
fn a_server_starts_what_fits_and_goes_on_after_a_crash() {
    let mut machine = server(1, [1000, 0], Policy::default());
    submit(&mut machine, 1, training("a", GpuRequest::Whole(1)));
    submit(&mut machine, 1, training("b", GpuRequest::Whole(1)));
    rest(&mut machine);
    assert_eq!(
        (get(&machine, "a").phase, get(&machine, "b").phase),
        (Phase::Running, Phase::Pending)
    );
    machine.crash();
    assert!(machine.view().is_none());
    machine.start().unwrap();
    rest(&mut machine);
    assert_eq!(
        (get(&machine, "a").phase, get(&machine, "b").phase),
        (Phase::Running, Phase::Pending)
    );
    assert_eq!((machine.engine.runs().len(), machine.misuse()), (1, None));
}

#[test]
fn dates_that_moved_with_the_clock_are_written() {
    let mut machine = server(1, [1000, 0], Policy::default());
    submit(&mut machine, 1, training("a", GpuRequest::Whole(1)));
    rest(&mut machine);
    let started = get(&machine, "a").pods[0].started_at.unwrap();
    machine.clock.set_by_ms(3_600_000);
    machine.take(Vec::new(), None).unwrap();
    let moved = Instant(started.0 + 3_600_000);
    assert_eq!(get(&machine, "a").pods[0].started_at, Some(moved));
    machine.crash();
    machine.start().unwrap();
    assert_eq!(get(&machine, "a").pods[0].started_at, Some(moved), "it ran no hour more");
}

#[test]
fn dates_of_what_has_ended_move_with_the_clock_once() {
    let mut machine = server(1, [1000, 0], Policy::default());
    submit(&mut machine, 1, training("a", GpuRequest::Whole(1)));
    rest(&mut machine);
    end(&mut machine, "a", 0, Exit::Code(0));
    rest(&mut machine);
    let completed = get(&machine, "a").completed_at.unwrap();
    machine.clock.set_by_ms(-4_000_000);
    for start in 1..3 {
        restart(&mut machine);
        let moved = Instant(completed.0 - 4_000_000);
        assert_eq!(get(&machine, "a").completed_at, Some(moved), "start {start}");
    }
}

#[test]
fn one_that_comes_back_into_memory_after_the_clock_was_set_back_moves_no_dates() {
    let mut machine = server(2, [2000, 0], Policy::default());
    machine.settings.ended_kept = 1;
    restart(&mut machine);
    for name in ["a", "b"] {
        submit(&mut machine, 1, training(name, GpuRequest::Whole(1)));
    }
    rest(&mut machine);
    let id = get(&machine, "a").id;
    for name in ["a", "b"] {
        end(&mut machine, name, 0, Exit::Code(0));
        rest(&mut machine);
        machine.clock.advance_ms(1000);
    }
    machine.clock.set_by_ms(-4_000_000);
    restart(&mut machine);
    submit(&mut machine, 1, training("c", GpuRequest::Whole(1)));
    rest(&mut machine);
    let started = get(&machine, "c").pods[0].started_at;
    let suspend = Command::Suspend { by: "alice".to_owned(), id };
    assert!(machine.command(suspend).is_err(), "it has ended");
    restart(&mut machine);
    assert_eq!(get(&machine, "c").pods[0].started_at, started);
}

#[test]
fn what_loses_its_place_during_a_decision_still_has_a_reason() {
    let mut machine = server(1, [1000, 0], Policy::default());
    submit(&mut machine, 1, training("a", GpuRequest::Whole(1)));
    let verdict = machine.verdict().unwrap();
    machine.take(vec![verdict], None).unwrap();
    assert_eq!(get(&machine, "a").phase, Phase::Initializing);
    // A decision that places it is in progress when its GPU fails.
    submit(&mut machine, 1, training("b", GpuRequest::Whole(1)));
    machine
        .command(Command::FailGpu { by: "admin".to_owned(), node: "n1".to_owned(), gpu: 0 })
        .unwrap();
    let verdict = machine.verdict().unwrap();
    machine.take(vec![verdict], None).unwrap();
    assert_eq!(codes(&machine, "a"), ["P308"]);
}

#[test]
fn what_waits_for_its_own_run_to_be_gone_says_so() {
    let mut machine = server(2, [2000, 0], Policy::default());
    submit(&mut machine, 1, training("a", GpuRequest::Whole(2)));
    rest(&mut machine);
    machine.crash();
    machine.nodes = nodes(1);
    machine.start().unwrap();
    assert_eq!(codes(&machine, "a"), ["P304"]);
    rest(&mut machine);
    assert_eq!(codes(&machine, "a"), ["P101", "P204"]);
}

#[test]
fn a_revision_that_was_given_up_asks_for_as_much_after_a_start() {
    let mut machine = server(1, [1000, 0], Policy::default());
    submit(&mut machine, 1, inference("a"));
    rest(&mut machine);
    let revision = *machine.view().unwrap().revisions.keys().next().unwrap();
    machine.command(Command::GiveUp { revision, why: "never ready".to_owned() }).unwrap();
    rest(&mut machine);
    let asked =
        |machine: &Machine| machine.view().unwrap().revisions[&revision].requested.gpu_millis;
    assert_eq!(asked(&machine), 1000);
    machine.crash();
    machine.start().unwrap();
    assert_eq!(asked(&machine), 1000);
}

#[test]
fn an_inference_that_is_deleted_is_what_its_revisions_are_that_are_left() {
    let mut machine = server(1, [1000, 0], Policy::default());
    submit(&mut machine, 1, inference("a"));
    rest(&mut machine);
    let (id, from, mut spec) = (get(&machine, "a").id, get(&machine, "a.1").id, inference("a"));
    spec.pods.pod.image = "other".to_owned();
    let (by, wanted) = ("alice".to_owned(), Box::new(Wanted { spec, runs: Ok(()), strict: false }));
    machine.command(Command::UpdateInference { by, id, from, wanted }).unwrap();
    machine.command(Command::Delete { by: "alice".to_owned(), id }).unwrap();
    let image = get(&machine, "a").spec.pods.pod.image.clone();
    machine.crash();
    machine.start().unwrap();
    assert_eq!(get(&machine, "a").spec.pods.pod.image, image);
}

/// An inference of one replica with one GPU.
fn inference(name: &str) -> WorkloadSpec {
    let scaling = Scaling {
        replicas_min: 1,
        replicas_max: 3,
        replicas_initial: 1,
        replicas_activation: 1,
        target: Some(Target { metric: Metric::Concurrency, threshold: 10, percent_millis: 70_000 }),
        window_ms: 60_000,
        down_delay_ms: 0,
        zero_retention_ms: 0,
    };
    let serving = Serving {
        container_port: 8000,
        scaling,
        concurrency_max: None,
        start_ms_max: 600_000,
        request_ms_max: 300_000,
        local_only: false,
        audience: Audience::Everyone,
        probe: Probe::default(),
        recreate: false,
    };
    let mut spec = training(name, GpuRequest::Whole(1));
    (spec.kind, spec.serving, spec.preemptible) = (WorkloadKind::Inference, Some(serving), false);
    spec.pods.pod.restart = Restart::Always;
    spec
}

#[test]
fn what_waited_behind_a_reservation_is_looked_at_again_once_that_is_fulfilled() {
    let policy = Policy { reserve_after_ms: 0, ..Policy::default() };
    let mut machine = server(2, [1500, 3500], policy);
    let share = |millis| GpuRequest::share(1, millis);
    let mut gang = training("gang", share(300));
    (gang.pods.pods, gang.pods.pods_min) = (3, 3);
    let mut first = training("first", share(500));
    (first.kind, first.priority.value, first.preemptible) = (WorkloadKind::Workspace, 100, false);
    let mut large = training("large", GpuRequest::Whole(1));
    large.priority.value = 60;
    gang.priority.value = 60;
    let all = [(2, first), (2, gang), (1, large), (1, training("behind", share(250)))];
    submit_all(&mut machine, all.into());
    rest(&mut machine);
    machine.clock.advance_ms(100);
    rest(&mut machine);
    let (cluster, policy) = machine.replica().unwrap();
    let left = sched::cycle(&mut cluster.clone(), machine.clock.now(), policy);
    assert_eq!(left.steps, [], "{:?}", machine.view().unwrap().nodes);
    let behind = get(&machine, "behind");
    assert_eq!(behind.phase, Phase::Running, "{:?}", behind.pending);
}

/// Starts a server with this node in place of all others.
fn start_with(machine: &mut Machine, node: NodeSpec) {
    machine.crash();
    machine.nodes = NodeList { nodes: vec![node], origin: String::new() };
    machine.start().unwrap();
    rest(machine);
}

#[test]
fn a_place_on_a_gpu_that_was_made_to_fail_is_left_after_a_start() {
    let mut machine = server(1, [1000, 0], Policy::default());
    let (by, node_name) = ("admin".to_owned(), "n1".to_owned());
    machine.command(Command::FailGpu { by, node: node_name, gpu: 0 }).unwrap();
    // A real GPU cannot be made to fail.
    start_with(&mut machine, NodeSpec { simulated: false, ..node("n1", 1, 16) });
    submit(&mut machine, 1, training("a", GpuRequest::Whole(1)));
    rest(&mut machine);
    assert_eq!(get(&machine, "a").phase, Phase::Running);
    start_with(&mut machine, node("n1", 1, 16));
    assert_eq!((get(&machine, "a").phase, machine.engine.alive().count()), (Phase::Pending, 0));
}

#[test]
fn a_place_on_a_node_that_is_not_tolerated_is_left_after_a_start() {
    let mut machine = server(1, [1000, 0], Policy::default());
    submit(&mut machine, 1, training("a", GpuRequest::Whole(1)));
    rest(&mut machine);
    let taint = Taint { key: "k".into(), value: String::new(), effect: Effect::NoExecute };
    start_with(&mut machine, NodeSpec { taints: vec![taint], ..node("n1", 1, 16) });
    assert_eq!((get(&machine, "a").phase, machine.engine.alive().count()), (Phase::Pending, 0));
}

#[test]
fn what_was_to_leave_a_node_that_is_then_removed_waits_for_its_run() {
    let mut machine = server(1, [1000, 0], Policy::default());
    submit(&mut machine, 1, training("a", GpuRequest::Whole(1)));
    rest(&mut machine);
    machine
        .command(Command::FailGpu { by: "admin".to_owned(), node: "n1".to_owned(), gpu: 0 })
        .unwrap();
    assert_eq!(codes(&machine, "a"), ["P308"]);
    remove_node(&mut machine, "n1");
    assert_eq!(codes(&machine, "a"), ["P304"]);
}

/// History of a workload in the scheduler's model.
fn past(machine: &Machine, name: &str) -> WorkloadPast {
    let (cluster, _) = machine.replica().unwrap();
    WorkloadPast::of(&cluster.workloads()[get(machine, name).model.unwrap()])
}

/// Kills the server, and starts it a minute later.
fn restart(machine: &mut Machine) {
    machine.crash();
    machine.clock.advance_ms(60_000);
    machine.start().unwrap();
}

#[test]
fn what_happened_to_a_workload_is_known_after_a_start() {
    let mut machine = server(2, [0, 2000], Policy::default());
    let elastic = true;
    submit(&mut machine, 1, WorkloadSpec { elastic, ..training("a", GpuRequest::Whole(2)) });
    rest(&mut machine);
    let started = past(&machine, "a").last_start;
    for (other, gpus) in [("b", 1), ("c", 0)] {
        machine.clock.advance_ms(60_000);
        submit(&mut machine, 2, training(other, GpuRequest::Whole(1)));
        rest(&mut machine);
        assert_eq!(get(&machine, "a").pods[0].gpus.len(), gpus, "{other} takes one");
        let known = past(&machine, "a");
        restart(&mut machine);
        assert_eq!(past(&machine, "a"), known, "{other} took one");
        rest(&mut machine);
    }
    let known = past(&machine, "a");
    assert!(known.last_resize > started && known.last_eviction > known.last_resize, "{known:?}");
    assert_eq!(known.restarts, 2, "a resize and an eviction");
    let why = codes(&machine, "a").join(" ");
    restart(&mut machine);
    rest(&mut machine);
    assert_eq!((past(&machine, "a"), codes(&machine, "a").join(" ")), (known, why));
}

#[test]
fn what_lost_its_place_is_known_to_have_started_and_be_stale_after_a_start() {
    let mut machine = server(1, [2000, 0], Policy::default());
    add_node(&mut machine, node("n2", 1, 16));
    let mut gang = training("gang", GpuRequest::Whole(1));
    (gang.pods.pods, gang.pods.pods_min) = (2, 2);
    submit(&mut machine, 1, gang);
    rest(&mut machine);
    machine.engine.faults.stubborn = true;
    remove_node(&mut machine, "n2");
    for _ in 0..10 {
        machine.go_on().unwrap();
    }
    let known = past(&machine, "gang");
    assert!(known.last_start.is_some() && known.stale_since.is_some(), "{known:?}");
    restart(&mut machine);
    assert_eq!(past(&machine, "gang"), known);
}

#[test]
fn what_is_protected_for_a_while_is_so_for_no_longer_after_a_start() {
    let mut machine = server(1, [0, 1000], Policy::default());
    let share = ShareChange { reclaim_min_runtime_ms: Some(300_000), ..ShareChange::default() };
    let shares = [(POOL_DEFAULT_ID.to_owned(), share)].into();
    let spec = OrgChange { shares, ..OrgChange::default() };
    machine
        .command(Command::UpdateProject { by: "admin".to_owned(), id: 1, change: spec })
        .unwrap();
    submit(&mut machine, 1, training("a", GpuRequest::Whole(1)));
    rest(&mut machine);
    submit(&mut machine, 2, training("b", GpuRequest::Whole(1)));
    for passed in [60_000, 120_000, 180_000, 240_000] {
        restart(&mut machine);
        rest(&mut machine);
        assert_eq!(get(&machine, "a").phase, Phase::Running, "{passed} ms have passed");
    }
    restart(&mut machine);
    rest(&mut machine);
    assert_eq!(get(&machine, "b").phase, Phase::Running);
}

#[test]
fn a_gated_workload_has_a_reason_at_once_and_after_a_start() {
    let mut machine = server(1, [1000, 0], Policy::default());
    let gates = vec!["review".to_owned()];
    submit(&mut machine, 1, WorkloadSpec { gates, ..training("a", GpuRequest::Whole(1)) });
    assert_eq!(codes(&machine, "a"), ["P308"]);
    rest(&mut machine);
    assert_eq!(codes(&machine, "a"), ["P305"]);
    machine.crash();
    machine.start().unwrap();
    assert_eq!(codes(&machine, "a"), ["P308"]);
}

#[test]
fn a_time_limit_of_its_own_outlives_the_server() {
    let mut machine = server(1, [1000, 0], Policy::default());
    let time_limit_ms = Some(60_000);
    submit(&mut machine, 1, WorkloadSpec { time_limit_ms, ..training("a", GpuRequest::Whole(1)) });
    rest(&mut machine);
    machine.crash();
    machine.start().unwrap();
    rest(&mut machine);
    for _ in 0..3 {
        machine.clock.advance_ms(60_000);
        machine.take(Vec::new(), None).unwrap();
        rest(&mut machine);
    }
    assert_eq!(get(&machine, "a").phase, Phase::Stopped);
}

#[test]
fn a_lost_pod_of_a_gang_is_started_again_though_others_have_ended_well() {
    let mut machine = server(4, [4000, 0], Policy::default());
    let mut gang = training("gang", GpuRequest::Whole(1));
    (gang.pods.pods, gang.pods.pods_min) = (4, 4);
    submit(&mut machine, 1, gang);
    rest(&mut machine);
    end(&mut machine, "gang", 0, Exit::Code(0));
    end(&mut machine, "gang", 1, Exit::Code(0));
    end(&mut machine, "gang", 2, Exit::Lost);
    for _ in 0..3 {
        rest(&mut machine);
        machine.clock.advance_ms(60_000);
    }
    assert_eq!(get(&machine, "gang").phase, Phase::Running, "{:?}", codes(&machine, "gang"));
    assert_eq!(machine.engine.alive().count(), 2);
}

/// A workload with two pod sets of which one is enough, and only the second fits on nodes of one
/// GPU.
fn either(name: &str) -> WorkloadSpec {
    let mut spec = training(name, GpuRequest::Whole(2));
    spec.pods.role = "large".to_owned();
    let pod = PodSpec { gpu: GpuRequest::Whole(1), ..spec.pods.pod.clone() };
    spec.more = vec![PodSet { role: "small".to_owned(), ..PodSet::one(pod) }];
    spec.children_min = Some(1);
    spec
}

#[test]
fn a_workload_that_can_do_without_a_part_is_degraded_without_it() {
    let mut machine = server(1, [4000, 0], Policy::default());
    submit(&mut machine, 1, either("a"));
    rest(&mut machine);
    assert_eq!(get(&machine, "a").phase, Phase::Degraded);
}

#[test]
fn a_part_that_was_held_back_is_considered_again_though_another_part_waited_all_the_time() {
    let mut machine = server(1, [4000, 0], Policy::default());
    submit(&mut machine, 1, training("first", GpuRequest::Whole(1)));
    rest(&mut machine);
    add_node(&mut machine, node("n2", 1, 16));
    submit(&mut machine, 1, either("a"));
    rest(&mut machine);
    // The node's run must terminate first, while a place becomes free elsewhere.
    machine.engine.faults.stubborn = true;
    remove_node(&mut machine, "n2");
    end(&mut machine, "first", 0, Exit::Code(0));
    for _ in 0..10 {
        machine.go_on().unwrap();
    }
    assert_eq!(get(&machine, "a").phase, Phase::Pending);
    machine.engine.faults.stubborn = false;
    rest(&mut machine);
    assert_eq!(get(&machine, "a").phase, Phase::Degraded);
}

#[test]
fn what_is_resumed_while_its_run_on_a_lost_node_is_stopped_says_so() {
    let mut machine = server(1, [1000, 0], Policy::default());
    submit(&mut machine, 1, training("a", GpuRequest::Whole(1)));
    rest(&mut machine);
    let id = get(&machine, "a").id;
    machine.command(Command::Suspend { by: "alice".to_owned(), id }).unwrap();
    remove_node(&mut machine, "n1");
    machine.command(Command::Resume { by: "alice".to_owned(), id }).unwrap();
    assert_eq!(codes(&machine, "a"), ["P304"]);
}

#[test]
fn memory_of_gpus_is_valued_by_the_gpus_that_there_are() {
    let mut machine = server(1, [1000, 0], Policy::default());
    let memory = GpuRequest::memory(1, 4 << 30);
    submit(&mut machine, 1, WorkloadSpec { gates: vec!["g".into()], ..training("a", memory) });
    let asked = |machine: &Machine| get(machine, "a").requested.gpu_millis;
    let mut seen = vec![asked(&machine)];
    remove_node(&mut machine, "n1");
    seen.push(asked(&machine));
    add_node(&mut machine, node("n2", 1, 40));
    seen.push(asked(&machine));
    assert_eq!(seen, [250, 1000, 100]);
    machine.crash();
    machine.start().unwrap();
    assert_eq!(asked(&machine), 100);
}

#[test]
fn a_pod_that_ends_well_as_its_workload_fails_leaves_nothing_behind() {
    let mut machine = server(2, [2000, 0], Policy::default());
    let mut pair = training("pair", GpuRequest::Whole(1));
    (pair.pods.pods, pair.backoff_limit) = (2, 0);
    submit(&mut machine, 1, pair);
    rest(&mut machine);
    machine.clock.advance_ms(1000);
    end(&mut machine, "pair", 0, Exit::Code(1));
    end(&mut machine, "pair", 1, Exit::Code(0));
    machine.clock.advance_ms(1000);
    rest(&mut machine);
    assert_eq!(get(&machine, "pair").phase, Phase::Failed);
    let (cluster, _) = machine.replica().unwrap();
    assert_eq!(cluster.workloads().iter().count(), 0, "the scheduler still knows it");
}

#[test]
fn a_replica_that_is_scaled_away_while_its_run_is_stopped_waits_for_nothing() {
    let mut machine = server(1, [1000, 0], Policy::default());
    submit(&mut machine, 1, inference("a"));
    rest(&mut machine);
    remove_node(&mut machine, "n1");
    assert_eq!(codes(&machine, "a.1"), ["P304"]);
    let revision = get(&machine, "a.1").id;
    let (wanted, why) = ([].into(), "no requests".to_owned());
    machine.command(Command::Scale { revision, wanted, why }).unwrap();
    assert_eq!(codes(&machine, "a.1"), [""; 0]);
}

#[test]
fn what_was_decided_before_the_clock_was_put_forward_does_not_count() {
    let mut machine = server(1, [1000, 0], Policy::default());
    let gates = vec!["review".to_owned()];
    submit(&mut machine, 1, WorkloadSpec { gates, ..training("a", GpuRequest::Whole(1)) });
    rest(&mut machine);
    submit(&mut machine, 1, training("b", GpuRequest::Whole(1)));
    let verdict = machine.verdict().unwrap();
    machine.clock.set_by_ms(4_000_000);
    machine.take(vec![verdict], None).unwrap();
    rest(&mut machine);
    assert_eq!(codes(&machine, "a"), ["P305"]);
}

#[test]
fn a_clock_that_was_wrong_before_the_machine_started_guarantees_no_more_time() {
    let policy = Policy { reclaim_min_runtime_ms: 4000, ..Policy::default() };
    let mut machine = server(1, [1000, 0], policy);
    submit(&mut machine, 2, training("b", GpuRequest::Whole(1)));
    // It has a place, and was not started.
    let verdict = machine.verdict().unwrap();
    machine.take(vec![verdict], None).unwrap();
    machine.crash();
    machine.clock.reboot();
    machine.clock.set_by_ms(-4_000_000);
    machine.start().unwrap();
    submit(&mut machine, 1, training("a", GpuRequest::Whole(1)));
    rest(&mut machine);
    machine.clock.advance_ms(5000);
    rest(&mut machine);
    assert_eq!(get(&machine, "a").phase, Phase::Running, "{:?}", codes(&machine, "a"));
}

#[test]
fn a_failed_workload_whose_last_pod_loses_its_place_at_a_start_leaves_nothing_behind() {
    let mut machine = server(2, [2000, 0], Policy::default());
    let mut pair = training("pair", GpuRequest::Whole(1));
    (pair.pods.pods, pair.backoff_limit) = (2, 0);
    submit(&mut machine, 1, pair);
    rest(&mut machine);
    end(&mut machine, "pair", 0, Exit::Code(1));
    let seen: Vec<_> = std::iter::from_fn(|| machine.news()).collect();
    machine.take(seen, None).unwrap();
    machine.crash();
    machine.nodes = nodes(1);
    machine.start().unwrap();
    rest(&mut machine);
    let (cluster, _) = machine.replica().unwrap();
    assert_eq!(cluster.workloads().iter().count(), 0, "the scheduler still knows it");
}

#[test]
fn one_that_comes_into_a_class_as_the_last_of_it_leaves_has_the_reasons_of_the_class() {
    let mut machine = server(1, [1000, 0], Policy::default());
    submit(&mut machine, 1, training("holds", GpuRequest::Whole(1)));
    submit(&mut machine, 1, training("a", GpuRequest::Whole(1)));
    rest(&mut machine);
    // The deleted workload does not end yet, so `a` has its reserved place when `b` arrives.
    machine.engine.faults.stubborn = true;
    let delete = Command::Delete { by: "admin".to_owned(), id: get(&machine, "holds").id };
    let wanted = Wanted { spec: training("b", GpuRequest::Whole(1)), runs: Ok(()), strict: false };
    let submission = Command::Submit { project_id: 1, wanted: Box::new(wanted) };
    let both = [delete, submission].map(|one| Input::Command(Box::new(one), Default::default()));
    machine.take(both.into(), None).unwrap();
    rest(&mut machine);
    assert_eq!(codes(&machine, "a"), ["P301"]);
    assert_eq!(codes(&machine, "b"), ["P102", "P203"]);
}
