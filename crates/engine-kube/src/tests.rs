//! Tests of the meaning of fields, and of the newest state through listings.

use std::time::{Duration, Instant};

use kube_api::Verb;
use kube_api::types::{Node, ObjectMeta, Pod};
use serde_json::{Value, json};
use spec::{AdoptedPhase, AdoptedPod, FeedChange, PlacementReport};

use crate::newest::Newest;
use crate::node::node_spec;
use crate::owners::KINDS;
use crate::pod::{adopted_pod, inherit};
use crate::rate::{Allowance, Rate};
use crate::requests::requests_of;
use crate::rights::{RIGHTS, Right};
use crate::status_change::{StatusChange, WORDS};

fn pod(spec: &Value) -> Pod {
    let uid = "11111111-1111-4111-8111-111111111111";
    let meta = json!({"name": "a", "namespace": "team-a", "uid": uid, "labels": {"project": "p"}});
    serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
}

fn adopted(spec: &Value) -> AdoptedPod {
    adopted_pod(&pod(spec), &["elastane".to_owned()])
}

fn asking(requests: &Value) -> Value {
    json!({"resources": {"requests": requests}})
}

#[test]
fn requests_are_those_that_the_kubelet_counts() {
    let container = |cpu: &str, memory: &str| asking(&json!({"cpu": cpu, "memory": memory}));
    let mut sidecar = container("100m", "1Gi");
    sidecar["restartPolicy"] = "Always".into();
    let spec = json!({
        "containers": [container("1", "1Gi"), container("500m", "1Gi")],
        "initContainers": [container("1900m", "1Mi"), sidecar, container("1", "8Gi")],
        "overhead": {"cpu": "10m"},
    });
    let sum = requests_of(&pod(&spec).spec);
    // The first init container runs alone; the last one runs beside the sidecar.
    assert_eq!((sum.cpu_millis, sum.memory_bytes, sum.gpus), (1910, 9 << 30, 0));
    let mut whole = spec;
    whole["resources"] = json!({"requests": {"cpu": "3"}});
    whole["containers"][0] = asking(&json!({"nvidia.com/gpu": "2"}));
    let sum = requests_of(&pod(&whole).spec);
    assert_eq!((sum.cpu_millis, sum.gpus), (3010, 2));
}

#[test]
fn node_affinity_and_selector_must_both_hold() {
    let condition =
        |operator: &str, values: Value| json!({"key": "n", "operator": operator, "values": values});
    let term = |conditions: Value| json!({"matchExpressions": conditions});
    let required = |terms: Value| json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    let with = |node_affinity: Value| {
        let affinity = json!({"nodeAffinity": node_affinity});
        adopted(&json!({"schedulerName": "elastane", "containers": [{}],
                        "nodeSelector": {"zone": "a"}, "affinity": affinity}))
    };
    let said = |pod: AdoptedPod| {
        assert_eq!(pod.hold, None);
        let terms = pod.place.affinity.into_iter();
        let terms = terms.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>());
        terms.map(|all| all.join(" and ")).collect::<Vec<_>>()
    };
    for (operator, values, text) in [
        ("In", json!(["1", "2"]), "n is 1 or 2"),
        ("NotIn", json!(["1"]), "n is not 1"),
        ("Exists", json!([]), "n is there"),
        ("DoesNotExist", json!(null), "n is not there"),
        ("Gt", json!(["3"]), "n is above 3"),
        ("Lt", json!(["3"]), "n is below 3"),
    ] {
        let terms = json!([term(json!([condition(operator, values)])), term(json!([]))]);
        assert_eq!(said(with(required(terms))), [format!("{text} and zone is a")]);
    }
    let field = json!({"key": "metadata.name", "operator": "In", "values": ["n1"]});
    let terms = json!([{"matchFields": [field]}]);
    assert_eq!(said(with(required(terms))), ["kubernetes.io/hostname is n1 and zone is a"]);
    let exists = term(json!([condition("Exists", json!([]))]));
    let preferred = json!({"preferredDuringSchedulingIgnoredDuringExecution":
                           [{"weight": 7, "preference": exists}, {"weight": 1, "preference": {}}]});
    let pod = with(preferred);
    assert_eq!(pod.place.preferred.iter().map(|one| one.weight).collect::<Vec<_>>(), [7]);
    assert_eq!(said(pod), ["zone is a"], "a preference requires nothing");

    let path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
                .nodeSelectorTerms";
    for (terms, at, why) in [
        (json!([]), "", "matches no node"),
        (json!([{}]), "", "matches no node"),
        (json!([term(json!([condition("Gt", json!(["x"]))]))]), "[0].matchExpressions[0]", "`x`"),
        (json!([term(json!([condition("In", json!([]))]))]), "[0].matchExpressions[0]", "no value"),
        (json!([term(json!([condition("Is", json!([]))]))]), "[0].matchExpressions[0]", "`Is`"),
        (
            json!([{"matchFields": [condition("In", json!(["a"]))]}]),
            "[0].matchFields[0]",
            "compares `n`; only metadata.name is a field",
        ),
    ] {
        let hold = with(required(terms)).hold.unwrap();
        assert_eq!(hold.field, format!("{path}{at}"));
        assert!(hold.why.contains(why), "{hold:?}");
    }
}

#[test]
fn a_field_that_is_not_supported_holds_a_pod_by_its_name() {
    let gpu = asking(&json!({"nvidia.com/gpu": "1"}));
    let fine = json!({
        "schedulerName": "elastane", "containers": [gpu], "nodeSelector": {"zone": "a"},
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "c"}}],
    });
    assert_eq!(adopted(&fine).hold, None);
    assert_eq!(adopted(&fine).project, Some(("project".to_owned(), "p".to_owned())));
    let ask = |name: &str, amount: &str| json!([asking(&json!({name: amount}))]);
    let held = [
        ("volumes", json!([{"name": "v", "nfs": {}}]), "spec.volumes[0].nfs"),
        ("affinity", json!({"podAffinity": {}}), "spec.affinity.podAffinity"),
        ("topologySpreadConstraints", json!([{}]), "spec.topologySpreadConstraints"),
        ("resourceClaims", json!([{"name": "g"}]), "spec.resourceClaims"),
        ("containers", json!([{"ports": [{"hostPort": 80}]}]), "spec.containers[0].ports.hostPort"),
        (
            "containers",
            ask("amd.com/gpu", "1"),
            "spec.containers[0].resources.requests[amd.com/gpu]",
        ),
        ("containers", ask("cpu", "x"), "spec.containers[0].resources.requests[cpu]"),
        ("initContainers", ask("cpu", "x"), "spec.initContainers[0].resources.requests[cpu]"),
        ("preemptionPolicy", json!("Never"), "spec.preemptionPolicy: Never"),
        ("containers", ask("cpu", "9223372036854775807"), "spec: the request of cpu"),
    ];
    for (field, value, path) in held {
        let mut spec = fine.clone();
        spec[field] = value;
        assert_eq!(adopted(&spec).hold.map(|hold| hold.field).as_deref(), Some(path));
        spec["schedulerName"] = "default-scheduler".into();
        assert_eq!(adopted(&spec).hold, None, "it is placed by another");
    }
}

#[test]
fn a_word_that_is_neither_true_nor_false_holds_a_pod() {
    for (word, preemptible, held) in
        [("true", Some(true), false), ("false", Some(false), false), ("yes", None, true)]
    {
        let mut pod = pod(&json!({"schedulerName": "elastane"}));
        pod.metadata.labels.insert("elastane.dev/preemptible".to_owned(), word.to_owned());
        let adopted = adopted_pod(&pod, &["elastane".to_owned()]);
        assert_eq!((adopted.preemptible, adopted.hold.is_some()), (preemptible, held), "{word}");
    }
}

#[test]
fn a_pod_that_replaces_one_of_its_name_comes_after_the_end_of_that() {
    let ours = ["elastane".to_owned()];
    let mut newest = Newest::default();
    let first = pod(&json!({"schedulerName": "elastane"}));
    newest.take_pod(&first, &ours);
    newest.take_changes();
    let mut second = first.clone();
    second.metadata.uid = "00000000-0000-4000-8000-000000000000".to_owned();
    newest.pod_deleted(&first);
    newest.take_pod(&second, &ours);
    let changes = newest.take_changes();
    assert!(matches!(changes[..], [FeedChange::PodGone(_), FeedChange::Pod(_)]), "{changes:?}");
}

#[test]
fn a_node_has_counted_gpus_and_the_taint_of_a_cordon() {
    let labels = json!({"nvidia.com/gpu.memory": "81920", "nvidia.com/gpu.product": "H100"});
    let allocatable =
        json!({"cpu": "7910m", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"});
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": "n1", "labels": labels},
        "spec": {"unschedulable": true},
        "status": {"allocatable": allocatable},
    }))
    .unwrap();
    let node = node_spec(&node);
    assert_eq!((node.cpu_millis, node.memory_bytes, node.pods_max), (7910, 32 << 30, Some(110)));
    assert_eq!((node.gpu_type.as_str(), node.gpus.len()), ("H100", 2));
    assert_eq!(node.gpus[1].uuid, "counted:n1/1");
    assert_eq!(node.gpus[1].memory_bytes, 80 << 30);
    assert_eq!(node.taints.len(), 1);
}

#[test]
fn only_the_newest_state_is_kept_and_a_listing_ends_what_it_lacks() {
    let ours = ["elastane".to_owned()];
    let mut newest = Newest::default();
    newest.begin_pods();
    newest.take_pod(&pod(&json!({"schedulerName": "other"})), &ours);
    newest.end_pods();
    newest.begin_nodes();
    newest.end_nodes();
    assert!(newest.is_synced());
    assert_eq!(newest.all().pods, [], "a pod of others that is not bound holds nothing");

    let mut changing = pod(&json!({"schedulerName": "elastane"}));
    for phase in ["Pending", "Running", "Succeeded"] {
        changing.status.phase = phase.to_owned();
        newest.take_pod(&changing, &ours);
    }
    let changes = newest.take_changes();
    let [FeedChange::Pod(last)] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!(last.phase, AdoptedPhase::Succeeded);
    newest.take_pod(&changing, &ours);
    assert_eq!(newest.take_changes(), [], "it has not changed");

    newest.begin_pods();
    assert_eq!(newest.take_changes(), [], "a listing that has not ended ends nothing");
    newest.end_pods();
    assert_eq!(newest.take_changes(), [FeedChange::PodGone(last.uid)]);
}

#[test]
fn each_code_of_a_waiting_workload_has_a_word() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/codes");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    // P4 are the results of searches for a place, which explain a reason.
    let mut codes: Vec<_> = files
        .filter_map(|name| Some(name.to_str()?.strip_suffix(".md")?.to_owned()))
        .filter(|code| code.starts_with('P') && !code.starts_with("P4"))
        .collect();
    codes.sort();
    assert_eq!(codes, WORDS.map(|(code, _)| code));
}

/// A pod of a Job with these annotations.
fn annotated(annotations: &Value, owned: bool) -> AdoptedPod {
    let mut pod = pod(&json!({"schedulerName": "elastane"}));
    pod.metadata.annotations = serde_json::from_value(annotations.clone()).unwrap();
    let owner = json!({"kind": "Job", "name": "train", "uid": "j-1", "controller": true});
    let owners = if owned { json!([owner]) } else { json!([]) };
    pod.metadata.owner_references = serde_json::from_value(owners).unwrap();
    adopted_pod(&pod, &["elastane".to_owned()])
}

#[test]
fn pods_of_one_owner_or_one_group_start_together() {
    let gang = |of: Value, owned| annotated(&of, owned).gang.unwrap();
    let of_job = gang(json!({"elastane.dev/min-members": "4"}), true);
    assert_eq!((of_job.name.as_str(), of_job.pods_min), ("job.train", 4));
    assert_eq!(of_job.id, gang(json!({"kai.scheduler/batch-min-member": "4"}), true).id);
    let group = json!({"elastane.dev/min-members": "2", "elastane.dev/group": "g"});
    let of_group = gang(group.clone(), false);
    assert_eq!((of_group.name.as_str(), of_group.id), ("group.g", gang(group, true).id));
    assert_eq!(annotated(&json!({"elastane.dev/min-members": "1"}), true).gang, None);
    for (text, owned, why) in [
        ("four", true, "is `four`; write a number from 1 to 10000"),
        ("0", true, "is `0`; write a number from 1 to 10000"),
        ("10001", true, "is `10001`; write a number from 1 to 10000"),
        ("2", false, "is 2, and the pod has no controller: name its group in elastane.dev/group"),
    ] {
        let hold = annotated(&json!({"elastane.dev/min-members": text}), owned).hold.unwrap();
        assert_eq!(
            (hold.field.as_str(), hold.why.as_str()),
            ("metadata: elastane.dev/min-members", why)
        );
    }
    let hold = annotated(&json!({"elastane.dev/priority": "urgent"}), true).hold.unwrap();
    assert!(hold.why.starts_with("`urgent` is not a priority class; allowed are"), "{}", hold.why);
}

#[test]
fn a_pod_has_the_settings_of_its_owners_that_it_has_not_itself() {
    let meta = |of: Value| serde_json::from_value::<ObjectMeta>(of).unwrap();
    let queue = json!({"kai.scheduler/queue": "team-a"});
    let sizes = json!({"elastane.dev/min-members": "4", "elastane.dev/priority": "build"});
    let job = meta(json!({"labels": queue, "annotations": sizes}));
    let above = meta(json!({"annotations": {
        "elastane.dev/priority": "train", "elastane.dev/preemptible": "true",
    }}));
    let mut one = pod(&json!({"schedulerName": "elastane"}));
    one.metadata.labels.clear();
    let own = json!({"kai.scheduler/batch-min-member": "2", "elastane.dev/group": "g"});
    one.metadata.annotations = serde_json::from_value(own).unwrap();
    inherit(&mut one.metadata, &job);
    inherit(&mut one.metadata, &above);
    let adopted = adopted_pod(&one, &["elastane".to_owned()]);
    assert_eq!(adopted.hold, None);
    assert_eq!(adopted.gang.map(|gang| gang.pods_min), Some(2), "its own");
    assert_eq!((adopted.priority_class.as_str(), adopted.preemptible), ("build", Some(true)));
    assert_eq!(adopted.project, Some(("kai.scheduler/queue".to_owned(), "team-a".to_owned())));
}

#[test]
fn each_kind_of_owner_may_be_read() {
    for (group, kind, plural) in KINDS {
        let is_of = |right: &&Right| right.group == group && right.resources.contains(&plural);
        let right = RIGHTS.iter().find(is_of);
        assert!(right.is_some_and(|right| right.verbs.contains(&Verb::Get)), "{kind}");
    }
}

#[test]
fn a_refused_eviction_is_reported_until_the_pod_may_be_asked_again() {
    let ours = ["elastane".to_owned()];
    let bound = pod(&json!({"schedulerName": "elastane", "nodeName": "n1"}));
    let mut newest = Newest::default();
    newest.take_pod(&bound, &ours);
    let uid = newest.all().pods[0].uid;
    let first = newest.protect(uid, "a budget".to_owned());
    newest.take_pod(&bound, &ours);
    let [FeedChange::Pod(pod)] = &*newest.take_changes() else { panic!("one change") };
    assert_eq!(pod.protected.as_deref(), Some("a budget"));
    let second = newest.protect(uid, "a budget".to_owned());
    assert_eq!(newest.take_changes().len(), 1);
    newest.unprotect(uid, first);
    assert_eq!(newest.take_changes(), [], "it was refused again since");
    newest.unprotect(uid, second);
    assert_eq!(newest.take_changes().len(), 1);
}

#[test]
fn changes_of_a_status_are_one_write_of_what_differs() {
    let report = |code: &str, message: &str| {
        let (code, message) = (code.to_owned(), message.to_owned());
        StatusChange { reason: Some(PlacementReport { code, message }), node: None }
    };
    let on = |node: &str| StatusChange { node: Some(node.to_owned()), reason: None };
    let change = report("P102", "3 GPUs").then(on("n1")).then(report("P301", "freed"));
    assert_eq!(change, StatusChange { node: Some("n1".to_owned()), ..report("P301", "freed") });
    assert_eq!(change.beyond(&on("n1")), report("P301", "freed"));
    assert_eq!(report("P102", "2 GPUs").beyond(&report("P102", "3 GPUs")).patch(), None);
    assert_eq!(on("").beyond(&StatusChange::default()).patch(), None, "there was none");
    let ends = on("").beyond(&on("n1")).patch();
    assert_eq!(ends, Some(json!({"nominatedNodeName": null})));
}

#[test]
fn a_rate_allows_its_number_of_writes_a_second() {
    assert_eq!("20".parse(), Ok(Rate::PerSecond(20)));
    assert_eq!("all".parse(), Ok(Rate::All));
    for text in ["", "-1", "1001", "some"] {
        assert!(text.parse::<Rate>().unwrap_err().contains("from 0 to 1000, or all"), "{text}");
    }
    let now = Instant::now();
    let taken = |rate| {
        let mut allowance = Allowance::new(rate);
        let writes = (0..30).map(|at| now + Duration::from_millis(100 * at));
        writes.filter(|at| allowance.takes(*at)).count()
    };
    assert_eq!(taken(Rate::PerSecond(2)), 6, "in three seconds");
    assert_eq!((taken(Rate::PerSecond(0)), taken(Rate::All)), (0, 30));
}

#[test]
fn the_guide_has_each_permission() {
    let guide = include_str!("../../../docs/guides/kubernetes.md");
    for right in &RIGHTS {
        let quoted = |names: Vec<&str>| {
            names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        let verbs = quoted(right.verbs.iter().map(|verb| verb.name()).collect());
        let row = format!("| {} | {verbs} |", quoted(right.resources.to_vec()));
        assert!(guide.contains(&row), "{row}");
    }
}
