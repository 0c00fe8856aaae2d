//! Conversion of a creation, field by field.

use serde_json::json;
use spec::{GpuRequest, Restart};

use super::*;

fn asked(kind: WorkloadKind, spec: &serde_json::Value) -> Result<WorkloadSpec, ApiError> {
    let body = json!({"name": "a1", "projectId": "7", "clusterId": "c", "spec": spec});
    let request = http_kit::parse_json(body.to_string().as_bytes())?;
    let asker = Submitter { subject: "ann".into(), ..Submitter::anonymous("CLI") };
    command(kind, request, asker).map(|(project, spec)| {
        assert_eq!(project, 7);
        spec
    })
}

/// A training with these values and an image.
fn training(spec: &serde_json::Value) -> WorkloadSpec {
    let mut spec = spec.clone();
    spec["image"] = json!("i");
    asked(WorkloadKind::Training, &spec).unwrap()
}

#[test]
fn a_training_that_says_nothing_gets_the_defaults() {
    let spec = training(&json!({"image": "i"}));
    assert_eq!(spec.pods.pod.gpu, GpuRequest::Whole(0));
    assert_eq!((spec.pods.pod.cpu_millis, spec.pods.pod.memory_bytes), (100, 100_000_000));
    assert_eq!((spec.priority.value, spec.priority.class.as_str()), (50, "train"));
    assert!(spec.preemptible && !spec.elastic);
    assert_eq!(
        (spec.backoff_limit, spec.pods.pod.restart, spec.pods.pod.grace_ms),
        (6, Restart::Never, 30_000)
    );
    assert_eq!((spec.pods.pod.command, spec.pods.pod.args), (None, vec![]));
    assert_eq!((spec.submitted_by.as_str(), spec.source.as_str()), ("ann", "CLI"));
}

#[test]
fn a_workspace_holds_its_place() {
    let spec = asked(WorkloadKind::Workspace, &json!({"image": "i"})).unwrap();
    assert_eq!((spec.priority.value, spec.priority.class.as_str()), (100, "build"));
    assert!(!spec.preemptible);
    assert_eq!((spec.backoff_limit, spec.pods.pod.restart), (0, Restart::OnFailure));
}

#[test]
fn priority_and_preemptibility_are_independent() {
    let spec = training(&json!({"priorityClass": "very-high", "preemptibility": "preemptible"}));
    assert!(spec.priority.value == 150 && spec.preemptible);
    let spec = training(&json!({"preemptibility": "non-preemptible"}));
    assert!(spec.priority.value == 50 && !spec.preemptible);
    assert!(!training(&json!({"priorityClass": "interactive"})).preemptible);
    assert!(training(&json!({"priorityClass": "interactive-preemptible"})).preemptible);
}

#[test]
fn gpus_come_whole_as_portion_or_as_memory() {
    let gpu = |compute| training(&json!({"compute": compute})).pods.pod.gpu;
    assert_eq!(gpu(json!({"gpuDevicesRequest": 2})), GpuRequest::Whole(2));
    assert_eq!(gpu(json!({"gpuDevicesRequest": 2.0})), GpuRequest::Whole(2));
    assert_eq!(
        gpu(
            json!({"gpuDevicesRequest": 2, "gpuRequestType": "portion", "gpuPortionRequest": 0.333})
        ),
        GpuRequest::share(2, 333)
    );
    assert_eq!(
        gpu(json!({"gpuRequestType": "portion", "gpuPortionRequest": 1.0})),
        GpuRequest::share(1, 1000)
    );
    assert_eq!(
        gpu(json!({"gpuRequestType": "memory", "gpuMemoryRequest": "8G"})),
        GpuRequest::memory(1, 8_000_000_000)
    );
}

#[test]
fn gpus_are_told_as_they_were_asked_for() {
    for (compute, counted) in [
        (json!({"gpuDevicesRequest": 2}), "Whole(2)"),
        (
            json!({"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": 1}),
            "Whole(1)",
        ),
        (
            json!({"gpuDevicesRequest": 2, "gpuRequestType": "portion", "gpuPortionRequest": 0.25,
                "gpuPortionLimit": 0.75}),
            "Share { devices: 2, millis: 250 }",
        ),
        (
            json!({"gpuDevicesRequest": 1, "gpuRequestType": "memory", "gpuMemoryRequest": "4G",
                "gpuMemoryLimit": "8G"}),
            "Memory { devices: 1, bytes: 4000000000 }",
        ),
    ] {
        let spec = training(&json!({"compute": compute}));
        assert_eq!(format!("{:?}", spec.pods.pod.gpu.counted()), counted);
        let text = spec::document::write(&spec).unwrap();
        let stored: WorkloadSpec = spec::document::read(&text).unwrap();
        let told =
            serde_json::to_value(crate::workload_kinds::of_pod(&stored.pods.pod).compute).unwrap();
        for (field, asked) in compute.as_object().unwrap() {
            assert_eq!(told[field], *asked, "{field} of {told}");
        }
    }
}

#[test]
fn strings_are_split_as_a_shell_would() {
    let spec = training(&json!({"command": "sh -c", "args": "'echo \"a b\"; sleep 1' x"}));
    assert_eq!(spec.pods.pod.command.unwrap(), ["sh", "-c"]);
    assert_eq!(spec.pods.pod.args, ["echo \"a b\"; sleep 1", "x"]);
}

#[test]
fn variables_labels_and_annotations_are_kept() {
    let spec = training(&json!({
        "environmentVariables": [{"name": "A", "value": "1"}, {"name": "B"}],
        "labels": [{"name": "l", "value": "x"}, {"name": "gone", "exclude": true}],
        "annotations": [{"name": "n", "value": "y"}],
    }));
    assert_eq!(
        spec.pods.pod.env,
        BTreeMap::from([("A".into(), "1".into()), ("B".into(), String::new())])
    );
    assert_eq!(spec.labels, BTreeMap::from([("l".into(), "x".into())]));
    assert_eq!(spec.annotations, BTreeMap::from([("n".into(), "y".into())]));
}

fn refused(spec: &serde_json::Value, field: &str, why: &str) {
    let got = asked(WorkloadKind::Training, spec).unwrap_err().message();
    let want = format!("{field}: {why}");
    assert!(got.starts_with(&want), "{spec}\n got: {got}\nwant: {want}");
}

#[test]
fn senseless_gpus_are_refused_by_name() {
    let (devices, portion, memory, kind) =
        ("gpuDevicesRequest", "gpuPortionRequest", "gpuMemoryRequest", "gpuRequestType");
    let limit = "gpuPortionLimit";
    for (compute, field, why) in [
        (json!({devices: -1}), devices, "`-1` is negative"),
        (json!({devices: 1.5}), devices, "`1.5` is neither a fraction of one GPU nor a whole"),
        (json!({devices: 0.5}), devices, "`0.5` is not a whole number; for a share of a GPU use"),
        (json!({devices: 5_000_000_000_u64}), devices, "`5000000000` is too large"),
        (json!({kind: "portion"}), kind, "portion needs gpuPortionRequest"),
        (json!({kind: "memory"}), kind, "memory needs gpuMemoryRequest"),
        (json!({portion: 0.5, memory: "1G"}), portion, "goes with"),
        (json!({kind: "memory", memory: "0"}), memory, "`0` is too little; use 100M or more"),
        (json!({kind: "memory", memory: "lots"}), memory, "`lots` is not a size"),
        (json!({limit: 0.5}), limit, "goes with"),
        (json!({limit: 0.5, memory: "1G"}), limit, "goes with"),
        (json!({kind: "memory", memory: "1G", limit: 0.5}), limit, "goes with"),
        (
            json!({"gpuMemoryLimit": "1G"}),
            "gpuMemoryLimit",
            "goes with a part of a GPU only (gpuRequestType memory)",
        ),
        (
            json!({kind: "portion", portion: 0.5, limit: 0.25}),
            limit,
            "0.25 is less than the 0.5 that is asked for; raise it",
        ),
        (
            json!({kind: "memory", memory: "2G", "gpuMemoryLimit": "1G"}),
            "gpuMemoryLimit",
            "1G is less than the 2G that is asked for; raise it",
        ),
        (json!({kind: "portion", portion: 0.5, limit: 2}), limit, "`2` is not a share; use 0.001"),
        (json!({kind: "memory", memory: "1G", devices: 0}), devices, "a share of 0 GPUs is"),
        (json!({kind: "memory", memory: "1G", portion: 0.5}), portion, "goes with"),
    ] {
        refused(&json!({"compute": compute}), &format!("spec.compute.{field}"), why);
    }
    for (number, why) in [
        (0.0, "`0.0` is not a share; use 0.001 to 1"),
        (2.0, "`2.0` is not a share; use 0.001 to 1"),
        (1.5, "`1.5` is not a share; use 0.001 to 1"),
        (0.0005, "`0.0005` is too fine"),
        (-0.5, "`-0.5` is negative"),
    ] {
        let spec = json!({"compute": {kind: "portion", portion: number}});
        refused(&spec, "spec.compute.gpuPortionRequest", why);
    }
}

#[test]
fn other_senseless_values_are_refused_by_name() {
    for (spec, field, why) in [
        (json!({"compute": {"cpuCoreRequest": -1}}), "spec.compute.cpuCoreRequest", "`-1` is neg"),
        (
            json!({"compute": {"cpuMemoryRequest": "1X"}}),
            "spec.compute.cpuMemoryRequest",
            "`1X` is",
        ),
        (
            json!({"priorityClass": "urgent"}),
            "spec.priorityClass",
            "there is no priority class `urgent`",
        ),
        (json!({"image": ""}), "spec.image", "is empty; leave it out instead"),
        (json!({}), "spec.image", "must be set; only with a command it may be left out"),
        (json!({"command": "echo 'x"}), "spec.command", "`echo 'x` has a quote that is not"),
        (json!({"args": "  "}), "spec.args", "is blank; leave it out instead"),
        (json!({"labels": [{"name": ""}]}), "spec.labels", "name `` is not 1 to 63 characters"),
        (json!({"backoffLimit": -1}), "spec.backoffLimit", "a whole number from 0"),
    ] {
        refused(&spec, field, why);
    }
    let path = json!([{"name": "A", "podFieldRef": {"path": "p"}}]);
    let later = asked(WorkloadKind::Training, &json!({"environmentVariables": path}));
    let why = "spec.environmentVariables[0].podFieldRef: not supported yet; leave it out";
    assert_eq!(later.unwrap_err().message(), why);
    let replica = asked(WorkloadKind::Inference, &json!({"stdin": true})).unwrap_err();
    assert_eq!(replica.message(), "spec.stdin: goes with workloads that end only; leave it out");
}

#[test]
fn places_and_mig_instances_are_told_as_they_were_asked_for() {
    let asked_for = json!({
        "nodeAffinityRequired": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "rack", "operator": "In", "values": ["a", "b"]},
            {"key": "gen", "operator": "Gt", "values": ["7"]},
            {"key": "old", "operator": "DoesNotExist"},
        ]}]},
        "tolerations": [
            {"operator": "Equal", "key": "dedicated", "value": "x", "effect": "NoSchedule"},
            {"operator": "Exists"},
        ],
        "podAffinity": {"type": "Preferred", "key": "rack"},
        "compute": {"extendedResources": [{"resource": "nvidia.com/mig-1g.10gb", "quantity": "2"}]},
    });
    let spec = training(&asked_for);
    assert_eq!(spec.pods.pod.gpu.devices(), 2);
    assert_eq!(spec.pods.pod.place.affinity[0].len(), 3);
    assert!(spec.pods.pod.place.colocation.as_ref().is_some_and(|near| !near.required));
    let told = serde_json::to_value(super::super::workload_kinds::of_pod(&spec.pods.pod)).unwrap();
    for field in ["nodeAffinityRequired", "tolerations", "podAffinity"] {
        assert_eq!(told[field], asked_for[field], "{field}");
    }
    let resources = &told["compute"]["extendedResources"];
    assert_eq!(*resources, asked_for["compute"]["extendedResources"]);
}

#[test]
fn places_that_make_no_sense_are_refused_by_name() {
    let expression = |of: serde_json::Value| json!({"nodeAffinityRequired": {"nodeSelectorTerms": [{"matchExpressions": [of]}]}});
    let at = "spec.nodeAffinityRequired.nodeSelectorTerms[0]";
    let values = format!("{at}.matchExpressions[0].values");
    let mig = |of: &str, quantity: &str| json!({"compute": {"extendedResources": [{"resource": of, "quantity": quantity}]}});
    let resources = "spec.compute.extendedResources";
    for (spec, field, why) in [
        (expression(json!({"key": "a", "operator": "In"})), &*values, "must name a value"),
        (
            expression(json!({"key": "a", "operator": "Gt", "values": ["x"]})),
            &values,
            "must be one",
        ),
        (
            json!({"nodeAffinityRequired": {"nodeSelectorTerms": [{}]}}),
            at,
            "has no matchExpressions",
        ),
        (json!({"tolerations": [{"operator": "Equal"}]}), "spec.tolerations[0].key", "must be set"),
        (json!({"podAffinity": {"type": "Required"}}), "spec.podAffinity.key", "must be a label"),
        (mig("example.com/fpga", "1"), &format!("{resources}[0].resource"), "no node has"),
        (mig("nvidia.com/mig-9g.1gb", "1"), &format!("{resources}[0].resource"), "`9g.1gb` is not"),
        (
            mig("nvidia.com/mig-1g.5gb", "0.5"),
            &format!("{resources}[0].quantity"),
            "must be a whole",
        ),
        (
            json!({"compute": {"gpuDevicesRequest": 1,
                "extendedResources": [{"resource": "nvidia.com/mig-1g.5gb", "quantity": "1"}]}}),
            resources,
            "MIG instances go without other GPUs",
        ),
    ] {
        refused(&spec, field, why);
    }
}
