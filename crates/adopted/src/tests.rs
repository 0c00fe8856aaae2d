//! Tests of the table, the project of a pod, and its workload.

use spec::{AdoptedGang, AdoptedPhase, AdoptedPod, GpuRequest, NodeGpu, NodeSpec, Place};
use units::Instant;
use uuid::Uuid;

use crate::{Charged, Held, Table, differs, gang_of, project_of, slot_name, workload_of};

fn pod(namespace: &str, name: &str) -> AdoptedPod {
    AdoptedPod {
        uid: Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        created_at: Instant(1),
        owner: None,
        is_ours: true,
        project: None,
        gpus: 1,
        cpu_millis: 1000,
        memory_bytes: 1 << 30,
        place: Place::default(),
        priority_class: String::new(),
        preemptible: None,
        gang: None,
        gates: Vec::new(),
        hold: None,
        node: None,
        protected: None,
        phase: AdoptedPhase::Pending,
        started_at: None,
        deleting: false,
        grace_ms: 30_000,
    }
}

fn node(gpus: usize) -> NodeSpec {
    NodeSpec {
        name: "n1".to_owned(),
        gpu_type: "nvidia".to_owned(),
        simulated: false,
        gpus: (0..gpus).map(|at| NodeGpu::new(slot_name("n1", at), 80 << 30)).collect(),
        cpu_millis: 8000,
        memory_bytes: 8 << 30,
        pods_max: Some(10),
        labels: Default::default(),
        taints: Vec::new(),
    }
}

/// The project that is charged for a pod, of these projects with their further namespaces.
fn charged(
    projects: &[(&'static str, &[&str])],
    namespace: &str,
    label: Option<&str>,
) -> Result<&'static str, Held> {
    charged_or(projects, namespace, label, None)
}

/// The project that is charged for a pod if `default` is the one for namespaces of no project.
fn charged_or(
    projects: &[(&'static str, &[&str])],
    namespace: &str,
    label: Option<&str>,
    default: Option<&str>,
) -> Result<&'static str, Held> {
    let more: Vec<Vec<String>> = projects
        .iter()
        .map(|(_, more)| more.iter().map(|one| (*one).to_owned()).collect())
        .collect();
    let all = (0..).zip(projects).zip(&more);
    let all = all.map(|((id, (name, _)), namespaces)| Charged { id, name, namespaces });
    let project = label.map(|label| ("runai/queue".to_owned(), label.to_owned()));
    let found = project_of(&AdoptedPod { project, ..pod(namespace, "x") }, all, default);
    found.map(|id| projects[usize::try_from(id).unwrap()].0)
}

#[test]
fn a_project_has_two_namespaces_and_a_label_counts_only_there() {
    let find = |namespace: &str, label: Option<&str>| {
        charged(&[("team-a", &[]), ("team-b", &[])], namespace, label)
    };
    assert_eq!(find("team-a", None), Ok("team-a"));
    assert_eq!(find("runai-team-b", None), Ok("team-b"));
    assert_eq!(find("runai-team-a", Some("team-a")), Ok("team-a"));
    let why = find("team-a", Some("team-b")).unwrap_err().message;
    assert!(why.contains("does not count in namespace team-a"), "{why}");
    let why = find("team-a", Some("missing")).unwrap_err();
    assert_eq!(why.code.code, "P310");
    assert!(why.message.contains("which does not exist"), "{}", why.message);
    let why = find("default", None).unwrap_err().message;
    assert!(why.contains("`elastane project create default`"), "{why}");
}

#[test]
fn a_pod_in_a_namespace_of_no_project_is_charged_to_the_default_project() {
    let projects: [(_, &[&str]); 2] = [("a", &[]), ("rest", &[])];
    let find = |namespace: &str, label: Option<&str>, default| {
        charged_or(&projects, namespace, label, Some(default))
    };
    assert_eq!(find("other", None, "rest"), Ok("rest"));
    assert_eq!(find("a", None, "rest"), Ok("a"), "the namespace of a project");
    let why = find("other", Some("a"), "rest").unwrap_err().message;
    assert!(why.contains("does not count in namespace other"), "a label is not passed over: {why}");
    let why = find("other", None, "gone").unwrap_err();
    assert_eq!(why.code.code, "P310");
    assert!(why.message.contains("`elastane project create gone`"), "{}", why.message);
}

#[test]
fn further_namespaces_are_charged_to_their_project_and_a_label_chooses_between_two() {
    let find = |namespace: &str, label: Option<&str>| {
        charged(&[("a", &["lab", "shared"]), ("b", &["shared"])], namespace, label)
    };
    assert_eq!(find("lab", None), Ok("a"));
    assert_eq!(find("shared", Some("b")), Ok("b"));
    assert_eq!(find("shared", Some("a")), Ok("a"));
    let why = find("shared", None).unwrap_err().message;
    assert!(why.contains("is one of project a and of project b"), "{why}");
    let why = find("lab", Some("b")).unwrap_err().message;
    assert!(why.contains("whose namespaces are b, runai-b, shared"), "{why}");
}

#[test]
fn a_namespace_of_two_projects_is_charged_to_none() {
    let find = |label: Option<&str>| charged(&[("x", &[]), ("runai-x", &[])], "runai-x", label);
    let why = find(None).unwrap_err().message;
    assert!(why.contains("is one of project x and of project runai-x"), "{why}");
    assert_eq!(find(Some("x")), Ok("x"));
}

#[test]
fn what_is_held_without_a_charge_is_not_left_for_others() {
    let mut table = Table::default();
    table.open();
    table.take_node(node(4));
    let bound = AdoptedPod { node: Some("n1".to_owned()), ..pod("others", "db") };
    table.take(bound.clone());
    let left = table.net("n1").unwrap();
    assert_eq!((left.cpu_millis, left.memory_bytes, left.pods_max), (7000, 7 << 30, Some(10)));
    assert_eq!((left.gpus.len(), table.unusable("n1")), (4, 1));
    assert_eq!(table.uncharged_on("n1"), [bound.uid]);
    table.charge(bound.uid, bound.uid, 1);
    assert_eq!((table.net("n1").unwrap().cpu_millis, table.unusable("n1")), (8000, 0));
    // A device plugin that restarts reports no GPU: the numbers of the others stay.
    table.take_node(node(0));
    let left = table.net("n1").unwrap();
    assert_eq!((left.gpus.len(), table.unusable("n1")), (4, 4));
    assert_eq!(left.gpus, node(4).gpus, "with the memory that they had");
    table.release(bound.uid, 1);
    let over = AdoptedPod { phase: AdoptedPhase::Failed, ..bound.clone() };
    table.take(over);
    assert_eq!(table.net("n1").unwrap().cpu_millis, 8000);
    table.remove(bound.uid);
    assert!(table.knows(bound.uid), "until the batch ends");
    table.end_batch(std::iter::empty());
    assert!(!table.knows(bound.uid));
}

#[test]
fn a_workload_that_was_deleted_while_its_pod_exists_is_loose_once() {
    let mut table = Table::default();
    table.open();
    let one = pod("team-a", "a");
    table.take(one.clone());
    assert_eq!(table.uncharged(), [one.uid]);
    table.charge(one.uid, one.uid, 1);
    assert!(table.uncharged().is_empty());
    table.end_batch([&one.uid].into_iter());
    assert_eq!((table.take_loose(), table.take_loose()), (true, false));
    assert_eq!(table.uncharged(), [one.uid]);
}

#[test]
fn a_pod_is_a_workload_that_ends_with_it() {
    let spec = workload_of(&AdoptedPod { priority_class: "build".into(), ..pod("team-a", "x.y") });
    assert_eq!((spec.name.as_str(), spec.priority.value), ("team-a.x.y", 100));
    assert!(!spec.preemptible && spec.delete_when_preempted);
    assert_eq!(spec.pods.pod.gpu, GpuRequest::Whole(1));
    let spec = workload_of(&AdoptedPod { priority_class: "other".into(), ..pod("team-a", "x") });
    assert_eq!((spec.priority.class.as_str(), spec.preemptible), ("train", true));
    let now = AdoptedPod { node: Some("n1".into()), deleting: true, ..pod("team-a", "x") };
    assert!(!differs(&pod("team-a", "x"), &now));
    assert!(differs(&pod("team-a", "x"), &AdoptedPod { gpus: 2, ..now }));
}

#[test]
fn a_gang_has_a_set_for_each_kind_of_pod_and_waits_for_those_that_are_missing() {
    let gang = |at: u32, gpus| {
        let gang = AdoptedGang { id: Uuid::nil(), name: "job.train".into(), pods_min: 4 };
        let mut place = Place::default();
        place.labels.insert("batch.kubernetes.io/job-completion-index".into(), at.to_string());
        AdoptedPod { gang: Some(gang), gpus, place, ..pod("team-a", &format!("train-{at}")) }
    };
    let pods = [gang(0, 0), gang(1, 2), gang(2, 2), gang(3, 0)];
    let all: Vec<_> = pods.iter().collect();
    let (spec, numbers) = gang_of(&all, 4).unwrap();
    let sets = |spec: &spec::WorkloadSpec| -> Vec<_> {
        spec.sets().map(|set| (set.pods, set.pods_min, set.pod.gpu)).collect()
    };
    let whole = |gpus| GpuRequest::Whole(gpus);
    assert_eq!(spec.name, "team-a.job.train");
    assert_eq!(sets(&spec), [(2, 2, whole(0)), (2, 2, whole(2))]);
    assert_eq!(numbers, [0, 2, 3, 1]);
    let (spec, numbers) = gang_of(&all[..2], 4).unwrap();
    assert_eq!(sets(&spec), [(3, 3, whole(0)), (1, 1, whole(2))]);
    assert_eq!(numbers, [0, 3]);
    assert_eq!(gang_of(&[], 4), None);
}

#[test]
fn rows_of_a_gang_are_not_written_and_its_pods_keep_their_order() {
    let mut table = Table::default();
    table.open();
    let (one, two, gang) = (pod("team-a", "a"), pod("team-a", "b"), Uuid::from_u128(7));
    for pod in [&one, &two] {
        table.take(pod.clone());
        table.charge(pod.uid, gang, 5);
    }
    let row = records::Change::WorkloadRestored(gang);
    assert!(table.is_row_of_one(&row));
    assert_eq!(table.pods_of(gang).len(), 2);
    table.release(one.uid, 1);
    table.remove(two.uid);
    assert!(table.is_row_of_one(&row), "until the batch ends");
    table.end_batch(std::iter::empty());
    assert!(!table.is_row_of_one(&row));
    assert_eq!((table.seq(one.uid), table.seq(two.uid)), (Some(5), None));
}
