//! Workloads as manifests of Kubernetes.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::iam::{call, give, program};
use crate::policy::{set_for, tenant};
use crate::refusals::refused;
use crate::server::Server;

const PATH: &str = "/api/v2/workloads";

fn pod(more: &Value) -> Value {
    let mut container = json!({"name": "main", "image": "i", "command": ["sh", "-c"],
        "args": ["echo a b"], "env": [{"name": "A", "value": "1"}],
        "resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": "500m", "memory": "1Gi"}}});
    for (name, value) in more.as_object().unwrap() {
        container[name] = value.clone();
    }
    json!({"containers": [container], "restartPolicy": "Never"})
}

fn job() -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "labels": {"a": "b"}},
        "spec": {"backoffLimit": 2, "template": {"spec": pod(&json!({}))}}})
}

fn torch() -> Value {
    let of = |replicas: u32| json!({"replicas": replicas, "template": {"spec": pod(&json!({}))}});
    json!({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "t"},
        "spec": {"pytorchReplicaSpecs": {"Master": of(1), "Worker": of(2)}}})
}

fn groups() -> Value {
    let worker = json!({"containers": [{"image": "i", "command": ["work"], "args": ["hard"],
        "resources": {"limits": {"nvidia.com/gpu": 1}}}]});
    let leader = json!({"containers": [{"image": "l", "args": ["lead"]}]});
    json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
        "metadata": {"name": "s"}, "spec": {"replicas": 2, "leaderWorkerTemplate": {
            "size": 2, "leaderTemplate": {"spec": leader}, "workerTemplate": {"spec": worker}}}})
}

async fn submit(server: &Server, manifest: &Value) -> Value {
    let body = json!({"metadata": {"projectId": "1"}, "manifest": manifest});
    let (status, made) = server.post(PATH, body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    made
}

fn id(workload: &Value) -> String {
    workload["metadata"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_job_runs_and_shows_its_manifest() {
    let server = Server::with_teams().await;
    let made = submit(&server, &job()).await;
    let shown = server.phase(&id(&made), "Running").await;
    assert_eq!((&shown["type"], &shown["name"]), (&json!("Training"), &json!("j")));
    assert_eq!(shown["allocatedResources"]["gpu"], 1);
    assert_eq!(shown["command"], "sh -c");
    assert_eq!(shown["environmentVariables"], json!({"A": "1"}));
    assert_eq!(shown["podsRequestedResources"]["cpu"]["request"], json!(0.5));
    let read = server.get(&format!("{PATH}/{}", id(&made))).await;
    assert_eq!(read["syncInfo"]["status"], "Synced");
    let workload = &read["workload"];
    assert_eq!(workload["rawManifest"], job());
    assert_eq!(workload["workloadManifest"]["metadata"]["namespace"], "runai-team-a");
    let gvk = json!({"group": "batch", "version": "v1", "kind": "Job"});
    assert_eq!(
        (&workload["metadata"]["gvk"], &workload["desiredPhase"]),
        (&gvk, &json!("Running"))
    );
    let (status, gone) = server.raw("DELETE", &format!("{PATH}/{}", id(&made)), "").await;
    assert_eq!((status, &gone["rawManifest"]), (StatusCode::ACCEPTED, &job()));
}

#[tokio::test]
async fn pods_and_training_operators_become_what_they_say() {
    let server = Server::with_teams().await;
    let spec = pod(&json!({"resources": {}}));
    let one = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    let encoded = STANDARD.encode(one.to_string());
    let metadata = json!({"projectId": "1", "category": "Build"});
    let body = json!({"metadata": metadata, "manifestBase64Encoded": encoded});
    let (status, made) = server.post(PATH, body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let shown = server.phase(&id(&made), "Running").await;
    assert_eq!((&shown["type"], &shown["category"]), (&json!("Workspace"), &json!("Build")));

    let made = submit(&server, &torch()).await;
    let shown = server.phase(&id(&made), "Running").await;
    assert_eq!((&shown["type"], &shown["runningPods"]), (&json!("Distributed"), &json!(3)));
    assert_eq!(shown["distributedFramework"], "PyTorch");
    assert_eq!(made["metadata"]["gvk"]["kind"], "PyTorchJob");
}

#[tokio::test]
async fn a_leader_without_a_template_is_as_the_workers_also_where_a_policy_has_defaults() {
    let server = Server::with_teams().await;
    let policy = json!({"defaults": {"master": {"workingDir": "/m"}}});
    set_for(&server, "distributed", tenant(), policy).await;
    let mut set = groups();
    set["spec"]["leaderWorkerTemplate"].as_object_mut().unwrap().remove("leaderTemplate");
    let made = submit(&server, &set).await;
    let typed = server.get(&format!("/api/v1/workloads/distributed/{}", id(&made))).await;
    let master = &typed["masterSpec"];
    assert_eq!((&master["image"], &master["workingDir"]), (&json!("i"), &json!("/m")));
    assert_eq!((&master["command"], &master["args"]), (&json!("work"), &json!("hard")));
}

#[tokio::test]
async fn a_set_of_groups_runs_each_of_a_leader_and_workers() {
    let server = Server::with_teams().await;
    let made = submit(&server, &groups()).await;
    let (id, gvk) = (id(&made), &made["metadata"]["gvk"]);
    let of =
        json!({"group": "leaderworkerset.x-k8s.io", "version": "v1", "kind": "LeaderWorkerSet"});
    assert_eq!(*gvk, of);
    let shown = server.phase(&id, "Running").await;
    assert_eq!(
        (&shown["type"], &shown["distributedFramework"]),
        (&json!("Distributed"), &json!("LWS"))
    );
    assert_eq!(
        (&shown["runningPods"], &shown["allocatedResources"]["gpu"]),
        (&json!(4), &json!(2))
    );
    let pods = server.get(&format!("/api/v1/workloads/{id}/pods")).await;
    let pods = pods["pods"].as_array().unwrap();
    let told: Vec<_> = pods.iter().map(|pod| (&pod["name"], &pod["role"])).collect();
    let want = json!(["s-0", "s-0-1", "s-1", "s-1-1"]);
    assert_eq!(
        told.iter().map(|pod| pod.0).collect::<Vec<_>>(),
        want.as_array().unwrap().iter().collect::<Vec<_>>()
    );
    assert_eq!((told[0].1, told[1].1), (&json!("leader"), &json!("worker")));
    let typed = server.get(&format!("/api/v1/workloads/distributed/{id}")).await;
    assert_eq!(typed["podGroups"], json!({"number": 2, "recreate": true}));
    let (spec, master) = (&typed["spec"], &typed["masterSpec"]);
    assert_eq!((&spec["numWorkers"], &spec["restartPolicy"]), (&json!(1), &json!("Always")));
    assert_eq!((&master["image"], &master["args"]), (&json!("l"), &json!("lead")));
    assert_eq!(master.get("command"), None, "a template has nothing of the other");
    let mut suspended = groups();
    suspended["spec"]["suspend"] = json!(true);
    let body = json!({"manifest": suspended}).to_string();
    let (status, _) = server.raw("PUT", &format!("{PATH}/{id}"), &body).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    server.phase(&id, "Stopped").await;
    let body = json!({"manifest": groups()}).to_string();
    server.raw("PUT", &format!("{PATH}/{id}"), &body).await;
    server.phase(&id, "Running").await;

    // The typed form of such a workload can be submitted too.
    let spec = json!({"image": "i", "distributedFramework": "LWS", "numWorkers": 3});
    let mut body = server.job("again", &spec);
    body["podGroups"] = json!({"number": 2, "recreate": false});
    let (status, made) = server.post("/api/v1/workloads/distributed", body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    assert_eq!(made["podGroups"], json!({"number": 2, "recreate": false}));
    let shown = server.phase(made["workloadId"].as_str().unwrap(), "Running").await;
    assert_eq!(shown["runningPods"], 8);
}

#[tokio::test]
async fn what_groups_cannot_have_is_refused_by_name() {
    let server = Server::with_teams().await;
    let template = "/spec/leaderWorkerTemplate";
    let with = |at: &str, value: Value| {
        let mut manifest = groups();
        let (above, name) = at.rsplit_once('/').unwrap();
        manifest.pointer_mut(above).unwrap()[name] = value;
        manifest
    };
    for (at, value, why) in [
        ("/spec/replicas", json!(0), "manifest.spec.replicas: 0 is too few; use 1 or more"),
        ("/spec/replicas", json!(101), "manifest.spec.replicas: 101 is too many; 1 to 100 are"),
        ("/spec/startupPolicy", json!("LeaderReady"), "manifest.spec.startupPolicy: `LeaderReady`"),
        (
            "/spec/rolloutStrategy",
            json!({}),
            "manifest.spec.rolloutStrategy: is refused: what runs",
        ),
        ("/spec/networkConfig", json!({}), "manifest.spec.networkConfig: is refused: a pod finds"),
        ("/spec/hpa", json!({}), "manifest.spec.hpa: unknown field"),
        (
            "/metadata/annotations",
            json!({"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}),
            "manifest.metadata.annotations: `leaderworkerset.sigs.k8s.io/exclusive-topology` is",
        ),
        (
            &format!("{template}/size"),
            json!(1),
            "manifest.spec.leaderWorkerTemplate.size: is a leader and its workers: write 2",
        ),
        (
            &format!("{template}/subGroupPolicy"),
            json!({"subGroupSize": 2}),
            "manifest.spec.leaderWorkerTemplate.subGroupPolicy: is refused: a group has no",
        ),
        (
            &format!("{template}/restartPolicy"),
            json!("Always"),
            "manifest.spec.leaderWorkerTemplate.restartPolicy: `Always` is not known; Recreate",
        ),
        (
            &format!("{template}/workerTemplate/spec/restartPolicy"),
            json!("Never"),
            "manifest.spec.leaderWorkerTemplate.workerTemplate.spec.restartPolicy: is not Always",
        ),
    ] {
        let body = json!({"metadata": {"projectId": "1"}, "manifest": with(at, value)});
        refused(&server, ("POST", PATH, &body), 400, why).await;
    }
    let lws = json!({"image": "i", "distributedFramework": "LWS"});
    let torch = json!({"image": "i", "distributedFramework": "PyTorch"});
    let named = json!({"image": "i", "distributedFramework": "LWS", "podNames": "p-{}"});
    for (spec, field, value, why) in [
        (&torch, "podGroups", json!({"number": 2}), "podGroups: goes with the framework LWS only"),
        (&lws, "podGroups", json!({"number": 0}), "podGroups.number: 0 is too few"),
        (&lws, "masterSpecSameAsWorker", json!(false), "masterSpecSameAsWorker: a group needs a"),
        (&named, "podGroups", json!({"number": 2}), "spec.podNames: goes without groups"),
    ] {
        let mut body = server.job("d", spec);
        body[field] = value;
        refused(&server, ("POST", "/api/v1/workloads/distributed", &body), 400, why).await;
    }
}

#[tokio::test]
async fn a_put_suspends_resumes_and_changes_the_priority_and_nothing_else() {
    let server = Server::with_teams().await;
    let path = format!("{PATH}/{}", id(&submit(&server, &job()).await));
    let put = async |manifest: &Value| {
        let body = json!({"manifest": manifest, "metadata": {"category": "Train"}}).to_string();
        server.raw("PUT", &path, &body).await
    };
    let mut suspended = job();
    suspended["spec"]["suspend"] = json!(true);
    let (status, answer) = put(&suspended).await;
    assert_eq!((status, &answer["desiredPhase"]), (StatusCode::ACCEPTED, &json!("Stopped")));
    assert_eq!(server.get(&path).await["workload"]["rawManifest"], suspended);
    let (_, answer) = put(&job()).await;
    assert_eq!(answer["desiredPhase"], "Running");
    let mut other = job();
    other["spec"]["backoffLimit"] = json!(3);
    let body = json!({ "manifest": other });
    let why = "manifest.spec.backoffLimit: cannot be changed";
    refused(&server, ("PUT", &path, &body), 409, why).await;
    let body = json!({"metadata": {"category": "Build"}});
    refused(&server, ("PUT", &path, &body), 409, "metadata.category: cannot be changed").await;
    let body = json!({"metadata": {"priority": "urgent"}});
    refused(
        &server,
        ("PUT", &path, &body),
        400,
        "metadata.priority: there is no priority class `urgent`",
    )
    .await;
    let (status, answer) =
        server.raw("PUT", &path, r#"{"metadata": {"priority": "very-high"}}"#).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    assert_eq!(answer["metadata"]["priority"], "very-high");
    assert_eq!(answer["rawManifest"], job());
}

#[tokio::test]
async fn what_means_nothing_here_is_refused_by_name() {
    let server = Server::with_teams().await;
    let with = |at: &str, value: Value| {
        let mut manifest = job();
        *manifest.pointer_mut(at).unwrap() = value;
        manifest
    };
    let spec = "/spec/template/spec";
    let container = |value: Value| with(spec, pod(&value));
    for (manifest, why) in [
        (
            with("/kind", json!("CronJob")),
            "manifest.kind: `CronJob` of `batch/v1` is not known; Pod",
        ),
        (
            json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": "urgent"}, "value": 1000, "globalDefault": false
            }),
            "manifest.kind: a PriorityClass is not submitted: the classes are fixed, and are very-low",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}),
            "manifest.kind: `ConfigMap` of `v1` is not known; Pod",
        ),
        (with("/spec", json!({})), "manifest.spec: `template` is missing"),
        (with("/spec/backoffLimit", json!("x")), "manifest.spec.backoffLimit"),
        (
            with(spec, json!({"containers": []})),
            "manifest.spec.template.spec.containers: has 0; a pod",
        ),
        (
            with(spec, json!({"containers": [], "volume": []})),
            "manifest.spec.template.spec.volume: unknown field; did you mean `volumes`?",
        ),
        (
            container(json!({"resources": {"limits": {"cpu": "lots"}}})),
            "manifest.spec.template.spec.containers[0].resources.limits.cpu: `lots` is not",
        ),
        (
            container(json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]})),
            "manifest.spec.template.spec.containers[0].env[0].valueFrom.fieldRef: is refused: there",
        ),
        (
            container(json!({"volumeMounts": [{"name": "a", "mountPath": "/a"}]})),
            "manifest.spec.template.spec.containers[0].volumeMounts[0].name: no volume of the pod",
        ),
        (
            with("/metadata/labels", json!({"kai.scheduler/preemptibility": "never"})),
            "manifest.metadata.labels.kai.scheduler/preemptibility: `never` is not allowed; preem",
        ),
        (
            container(json!({"args": ["$(B)"], "env": [{"name": "B", "valueFrom":
                {"secretKeyRef": {"name": "s", "key": "k"}}}]})),
            "manifest.spec.template.spec.containers[0].args[0]: `$(B)` is the value of a credential",
        ),
        (json!({"apiVersion": "batch/v1"}), "manifest: `kind` is missing"),
        (json!([]), "manifest"),
    ] {
        let body = json!({"metadata": {"projectId": "1"}, "manifest": manifest});
        refused(&server, ("POST", PATH, &body), 400, why).await;
    }
}

#[tokio::test]
async fn a_request_without_one_manifest_and_a_project_is_refused() {
    let server = Server::with_teams().await;
    for (body, why) in [
        (json!({"metadata": {"projectId": "1"}}), "manifest: is required"),
        (json!({"metadata": {}, "manifest": job()}), "metadata.projectId: is required"),
        (
            json!({"metadata": {"projectId": "1"}, "manifestBase64Encoded": "YTog"}),
            "manifestBase64Encoded: is not JSON",
        ),
        (
            json!({"metadata": {"projectId": "1"}, "manifest": job(), "manifestBase64Encoded": "e30="}),
            "manifestBase64Encoded: goes without",
        ),
    ] {
        refused(&server, ("POST", PATH, &body), 400, why).await;
    }
    let plain = format!("{PATH}/{}", server.train("plain", 0).await);
    refused(&server, ("GET", &plain, &Value::Null), 404, "workload ").await;
}

/// Submits a manifest, and answers the specification it becomes and the note of its answer.
async fn becomes(server: &Server, kind: &str, manifest: &Value) -> (Value, Option<String>) {
    let body = json!({"metadata": {"projectId": "1"}, "manifest": manifest});
    let (status, made) = server.post(PATH, body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    let path = format!("/api/v1/workloads/{kind}/{}", id(&made));
    let warnings = made.get("warnings").and_then(|all| all.as_array().cloned()).unwrap_or_default();
    let texts: Vec<_> = warnings.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let note = texts.into_iter().find(|text| text.starts_with("no effect here"));
    (server.get(&path).await, note)
}

#[tokio::test]
async fn fields_of_kubernetes_say_what_flags_say() {
    let server = Server::with_teams().await;
    let mut job = job();
    let spec = &mut job["spec"];
    spec["activeDeadlineSeconds"] = json!(100);
    spec["ttlSecondsAfterFinished"] = json!(60);
    let template = &mut spec["template"]["spec"];
    template["affinity"] = json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}});
    template["nodeSelector"] = json!({"b": "c"});
    template["schedulingGates"] = json!([{"name": "g"}]);
    template["securityContext"] = json!({"runAsUser": 7, "supplementalGroups": [8, 9]});
    template["volumes"] = json!([{"name": "d", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}}]);
    let container = &mut template["containers"][0];
    container["imagePullPolicy"] = json!("Always");
    container["resources"] = json!({"limits": {"cpu": "2", "memory": "1Gi"}});
    container["volumeMounts"] = json!([{"name": "d", "mountPath": "/d"},
        {"name": "shm", "mountPath": "/dev/shm"}]);
    let (made, note) = becomes(&server, "trainings", &job).await;
    assert_eq!(note, None);
    let spec = &made["spec"];
    for (at, want) in [
        ("/timeLimitSeconds", json!(100)),
        ("/autoDeletionTimeAfterCompletionSeconds", json!(60)),
        (
            "/nodeAffinityRequired/nodeSelectorTerms/0/matchExpressions",
            json!([{"key": "a", "operator": "Exists"},
                {"key": "b", "operator": "In", "values": ["c"]}]),
        ),
        ("/schedulingGates", json!(["g"])),
        ("/security/runAsUid", json!(7)),
        ("/security/supplementalGroups", json!("8,9")),
        ("/storage/emptyDirVolume/0/path", json!("/d")),
        ("/compute/largeShmRequest", json!(true)),
        ("/imagePullPolicy", json!("Always")),
        ("/compute/cpuCoreLimit", json!(2)),
        ("/compute/cpuCoreRequest", json!(2)),
    ] {
        assert_eq!(spec.pointer(at), Some(&want), "{at} of {spec}");
    }
    assert_eq!(spec.pointer("/storage/emptyDirVolume/1"), None, "shared memory is no folder");
}

#[tokio::test]
async fn one_note_names_all_fields_without_effect() {
    let server = Server::with_teams().await;
    let mut job = job();
    job["metadata"]["namespace"] = json!("default");
    job["metadata"]["creationTimestamp"] = Value::Null;
    job["status"] = json!({});
    let template = &mut job["spec"]["template"];
    template["spec"]["serviceAccountName"] = json!("builder");
    template["spec"]["dnsPolicy"] = json!("ClusterFirst");
    template["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80}]);
    let (_, note) = becomes(&server, "trainings", &job).await;
    let want = "no effect here: metadata.namespace, \
                spec.template.spec.containers[0].ports, spec.template.spec.serviceAccountName";
    assert_eq!(note.as_deref(), Some(want));
    let body = json!({"metadata": {"projectId": "1"}, "manifest": {"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p"}, "spec": {"initContainers": [], "containers": [{"envFrom": []}]}}});
    let (_, refused) = server.post(PATH, body).await;
    let text = refused["message"].as_str().unwrap();
    for field in ["manifest.spec.initContainers: is", "manifest.spec.containers[0].envFrom: is"] {
        assert!(text.contains(field), "{text} lacks {field}");
    }
}

#[tokio::test]
async fn a_name_is_generated_and_labels_say_priority_and_preemptibility() {
    let server = Server::with_teams().await;
    let mut job = job();
    job["metadata"] = json!({"generateName": "sample-", "labels":
        {"priorityClassName": "very-high", "kai.scheduler/preemptibility": "non-preemptible"}});
    let names = [submit(&server, &job).await, submit(&server, &job).await].map(|made| {
        let metadata = &made["metadata"];
        assert_eq!(metadata["priority"], "very-high");
        assert_eq!(metadata["preemptibility"], "non-preemptible");
        metadata["name"].as_str().unwrap().to_owned()
    });
    assert_ne!(names[0], names[1]);
    for name in names {
        assert_eq!(name.strip_prefix("sample-").map(str::len), Some(5), "{name}");
    }
    // A value beside the manifest takes precedence.
    let metadata = json!({"projectId": "1", "name": "own", "priority": "low",
        "preemptibility": "preemptible"});
    let (_, made) = server.post(PATH, json!({"metadata": metadata, "manifest": job})).await;
    let metadata = &made["metadata"];
    assert_eq!((&metadata["name"], &metadata["priority"]), (&json!("own"), &json!("low")));
    assert_eq!(metadata["preemptibility"], "preemptible");
}

#[tokio::test]
async fn variables_are_replaced_in_words_and_in_variables_after_them() {
    let server = Server::with_teams().await;
    let mut job = job();
    let container = &mut job["spec"]["template"]["spec"]["containers"][0];
    container["env"] = json!([{"name": "LATE", "value": "$(NAME)"}, {"name": "NAME", "value": "a b"},
        {"name": "FULL", "value": "/$(NAME)/x"}]);
    container["args"] = json!(["$(NAME)", "$$(NAME)", "$(MISSING)", "$(FULL)"]);
    let (made, _) = becomes(&server, "trainings", &job).await;
    let spec = &made["spec"];
    assert_eq!(spec["args"], "'a b' '$(NAME)' '$(MISSING)' '/a b/x'");
    let variables = spec["environmentVariables"].as_array().unwrap();
    let value = |name: &str| {
        let found = variables.iter().find(|variable| variable["name"] == name);
        found.unwrap()["value"].as_str().unwrap()
    };
    assert_eq!(["LATE", "FULL"].map(value), ["$(NAME)", "/a b/x"]);
}

#[tokio::test]
async fn an_operator_says_who_ends_the_job_and_what_holds_for_the_whole() {
    let server = Server::with_teams().await;
    let mut alone = torch();
    let replicas = &mut alone["spec"]["pytorchReplicaSpecs"];
    replicas.as_object_mut().unwrap().remove("Worker");
    replicas["Master"]["restartPolicy"] = json!("OnFailure");
    alone["spec"]["runPolicy"] = json!({"ttlSecondsAfterFinished": 5, "activeDeadlineSeconds": 6,
        "backoffLimit": 2, "schedulingPolicy": {"priorityClass": "high", "minAvailable": 3}});
    let (made, note) = becomes(&server, "distributed", &alone).await;
    let spec = &made["spec"];
    assert_eq!((&spec["numWorkers"], &made["masterSpec"]), (&json!(1), &Value::Null), "{made}");
    assert_eq!((&spec["backoffLimit"], &spec["restartPolicy"]), (&json!(2), &json!("OnFailure")));
    assert_eq!(spec["autoDeletionTimeAfterCompletionSeconds"], 5);
    assert_eq!((&spec["timeLimitSeconds"], &spec["priorityClass"]), (&json!(6), &json!("high")));
    let want = "no effect here: spec.runPolicy.schedulingPolicy.minAvailable";
    assert_eq!(note.as_deref(), Some(want));

    let mut never = torch();
    never["metadata"]["name"] = json!("never");
    never["spec"]["runPolicy"] = json!({"backoffLimit": 3});
    never["spec"]["elasticPolicy"] = json!({"minReplicas": 1, "maxReplicas": 4});
    for role in ["Master", "Worker"] {
        never["spec"]["pytorchReplicaSpecs"][role]["restartPolicy"] = json!("Never");
    }
    let (made, note) = becomes(&server, "distributed", &never).await;
    let spec = &made["spec"];
    assert_eq!((&spec["backoffLimit"], note), (&json!(0), None));
    assert_eq!((&spec["minReplicas"], &spec["maxReplicas"]), (&json!(1), &json!(4)));

    let mut some = torch();
    some["metadata"]["name"] = json!("some");
    some["spec"]["nprocPerNode"] = json!("2");
    for (role, policy) in [("Master", "Never"), ("Worker", "OnFailure")] {
        some["spec"]["pytorchReplicaSpecs"][role]["restartPolicy"] = json!(policy);
    }
    let (made, note) = becomes(&server, "distributed", &some).await;
    assert_eq!(made["spec"]["backoffLimit"], 0);
    let processes = json!({"name": "PET_NPROC_PER_NODE", "value": "2"});
    for part in ["spec", "masterSpec"] {
        let variables = made[part]["environmentVariables"].as_array().unwrap();
        assert!(variables.contains(&processes), "{part}: {variables:?}");
    }
    assert!(note.unwrap().contains("Worker.restartPolicy (another replica says Never"));
}

#[tokio::test]
async fn an_mpi_job_of_the_second_version_tries_again_whatever_its_pods_say() {
    let server = Server::with_teams().await;
    let of = |replicas: u32| {
        json!({"replicas": replicas, "restartPolicy": "Never",
            "template": {"spec": pod(&json!({}))}})
    };
    for (version, tries) in [("v1", 0), ("v2beta1", 4)] {
        let job = json!({"apiVersion": format!("kubeflow.org/{version}"), "kind": "MPIJob",
            "metadata": {"name": format!("mpi-{version}")}, "spec": {
                "launcherCreationPolicy": "WaitForWorkersReady", "slotsPerWorker": 2,
                "mpiImplementation": "OpenMPI", "runPolicy": {"backoffLimit": 4},
                "mpiReplicaSpecs": {"Launcher": of(1), "Worker": of(2)}}});
        let (made, note) = becomes(&server, "distributed", &job).await;
        assert_eq!((&made["spec"]["backoffLimit"], note), (&json!(tries), None), "{version}");
        assert_eq!(made["spec"]["mpiLauncherCreationPolicy"], "WaitForWorkersReady");
    }
}

#[tokio::test]
async fn a_deployment_is_pods_that_restart_always() {
    let server = Server::with_teams().await;
    let spec = json!({"containers": [{"image": "i"}]});
    let labels = json!({"app": "a"});
    for (kind, name) in [("Deployment", "d"), ("StatefulSet", "s")] {
        let all = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"replicas": 3, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec}}});
        let (made, note) = becomes(&server, "trainings", &all).await;
        let spec = &made["spec"];
        assert_eq!((&spec["parallelism"], &spec["restartPolicy"]), (&json!(3), &json!("Always")));
        assert_eq!(note.as_deref(), Some("no effect here: spec.selector"));
    }
}

#[tokio::test]
async fn a_manifest_gives_nobody_more_rights() {
    let server = Server::with_teams().await;
    let (other, _, in_b) = program(&server, "in-b").await;
    give(&server, &other, 6, ("project", "2")).await;
    let body = json!({"metadata": {"projectId": "1"}, "manifest": job()});
    let (status, _) = call(&server, &in_b, ("POST", PATH), &body).await;
    assert_eq!(status, 403);
    let path = format!("{PATH}/{}", id(&submit(&server, &job()).await));
    for method in ["GET", "PUT", "DELETE"] {
        let (status, _) = call(&server, &in_b, (method, &path), &json!({})).await;
        assert_eq!(status, 404, "{method}");
    }
}
