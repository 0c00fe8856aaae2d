//! Accepted fields are read back: every field of a submission, from the description of the
//! interface, is posted with a sample value and compared with the workload as it is shown.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::server::Server;

/// Fields that are not read back as they were posted, each with its reason.
///
/// `*` stands for any beginning or end of a path.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("*.exclude", "takes away an inherited item, which is not there then"),
    ("assets.*", "ids of objects that have to be made; in no sample here"),
    ("autoscaling.initializationTimeoutSeconds", "is shown in servingConfiguration"),
    ("autoscaling.scaleToZeroRetentionSeconds", "goes with minReplicas 0 only"),
    ("environmentVariables[].description", "a note, which is not kept"),
    ("environmentVariables[].podFieldRef", "is refused"),
    ("environmentVariables[].userCredential", "is refused"),
    ("exposedUrls[].authorizedGroups[]", "there are no groups"),
    ("exposedUrls[].url", "the server chooses it, and shows it among the connections"),
    ("imagePullSecrets[].name", "a login that the image does not need is not used"),
    ("imagePullSecrets[].userCredential", "is refused"),
    ("podNames", "of distributed workloads; in no sample here"),
    ("podPriority", "of distributed workloads; in no sample here"),
    ("ports[].name", "a port has a number; an exposed URL has a name"),
    ("ports[].toolName", "a port has a number; an exposed URL has a tool"),
    ("ports[].toolType", "a port has a number; an exposed URL has a tool"),
    ("probes.readiness.handler.httpGet.host", "is refused: the replica is looked at"),
    ("security.uidGidSource", "follows from the user and group"),
    ("servingPort.authorizedGroups[]", "there are no groups"),
    ("sshAuthMountPath", "its default is all that is accepted: no keys are needed"),
    ("storage.configMapVolume[].name", "policies go by it at the submission"),
    ("storage.dataVolume", "is refused"),
    ("storage.emptyDirVolume[].name", "policies go by it at the submission"),
    ("storage.git[].name", "policies go by it at the submission"),
    ("storage.hostPath[].name", "policies go by it at the submission"),
    ("storage.nfs[].name", "policies go by it at the submission"),
    ("storage.pvc[].claimInfo.*", "no limits here: a volume is a folder on the disk"),
    ("storage.pvc[].dataSharing", "no limit here: a volume is a folder on the disk"),
    ("storage.pvc[].ephemeral", "goes with a volume of its own; in no sample here"),
    ("storage.pvc[].existingPvc", "asks for a volume that is there, once"),
    ("storage.pvc[].name", "names a volume without a claim; policies go by it"),
    ("storage.s3[].name", "policies go by it at the submission"),
    ("storage.secretVolume[].name", "policies go by it at the submission"),
    ("tolerations[].seconds", "is refused"),
];

pub(crate) fn is_exception(pattern: &str, path: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => path.ends_with(end),
        (_, Some(start)) => path.starts_with(start),
        _ => path == pattern,
    }
}

/// A submission: its kind, and the fields of its specification beside the image.
pub(crate) fn samples() -> Vec<(&'static str, Value)> {
    let mut all: Vec<(&str, Value)> = of_a_training();
    all.extend(of_mounts());
    all.extend(of_other_kinds());
    all
}

fn of_a_training() -> Vec<(&'static str, Value)> {
    let of = |spec: Value| ("trainings", spec);
    vec![
        of(json!({"annotations": [{"name": "a", "value": "b"}],
            "labels": [{"name": "c", "value": "d"}]})),
        of(json!({"command": "sh -c", "args": "'sleep 1'", "commandLine": "runai submit a",
            "workingDir": "/w", "stdin": true, "tty": true, "createHomeDir": true,
            "imagePullPolicy": "Never", "image": "ubuntu"})),
        of(json!({"autoDeletionTimeAfterCompletionSeconds": 60, "backoffLimit": 3,
            "restartPolicy": "OnFailure", "terminationGracePeriodSeconds": 7,
            "timeLimitSeconds": 90, "terminateAfterPreemption": true,
            "schedulingGates": ["mine"], "preemptionDelaySeconds": 5})),
        of(json!({"category": "Train", "priorityClass": "high",
            "preemptibility": "non-preemptible", "elastic": true,
            "compute": {"gpuDevicesRequest": 1}})),
        of(json!({"parallelism": 1, "completions": 2})),
        of(json!({"nodePools": ["default"], "nodeType": "dgx",
            "podAffinity": {"key": "rack", "type": "Preferred"},
            "nodeAffinityRequired": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "a", "operator": "In", "values": ["b"]},
                {"key": "c", "operator": "Gt", "values": ["3"]}]}]},
            "tolerations": [
                {"name": "t", "operator": "Equal", "key": "k", "value": "v",
                    "effect": "NoExecute"},
                {"operator": "Exists", "key": "other"}]})),
        of(json!({"compute": {"gpuDevicesRequest": 1, "gpuRequestType": "portion",
            "gpuPortionRequest": 0.5, "gpuPortionLimit": 0.75, "cpuCoreRequest": 0.5,
            "cpuCoreLimit": 1, "cpuMemoryRequest": "100M", "cpuMemoryLimit": "200M",
            "largeShmRequest": true}})),
        of(json!({"compute": {"gpuDevicesRequest": 1, "gpuRequestType": "memory",
            "gpuMemoryRequest": "4G", "gpuMemoryLimit": "8G"}})),
        of(json!({"compute": {"extendedResources": [
            {"resource": "nvidia.com/mig-1g.10gb", "quantity": "1"}]}})),
        of(json!({"environmentVariables": [
            {"name": "A", "value": "1"},
            {"name": "B", "secret": {"name": "login", "key": "username"}},
            {"name": "C", "configMap": {"name": "files", "key": "a"}}]})),
        of(json!({"ports": [{"container": 8080, "external": 30080, "serviceType": "NodePort",
            "name": "web", "toolType": "jupyter-notebook", "toolName": "Notebook"}]})),
        of(json!({"exposedUrls": [{"container": 8081, "name": "ui", "toolType": "tensorboard",
            "toolName": "Board", "authorizationType": "authorizedUsers",
            "authorizedUsers": ["ann@example.org"]}],
            "relatedUrls": [{"name": "wiki", "type": "wandb", "url": "https://a.b/c"}]})),
        of(json!({"security": {"runAsUid": 1000, "runAsGid": 1001, "supplementalGroups": "1002",
            "uidGidSource": "custom", "runAsNonRoot": true, "readOnlyRootFilesystem": true,
            "allowPrivilegeEscalation": false, "capabilities": ["CHOWN"],
            "seccompProfileType": "RuntimeDefault"}})),
        of(json!({"security": {"hostIpc": true, "hostNetwork": true, "privileged": true}})),
        of(json!({"imagePullSecrets": [{"name": "registry"}]})),
    ]
}

fn of_mounts() -> Vec<(&'static str, Value)> {
    let of = |storage: Value| ("trainings", json!({"storage": storage}));
    vec![
        of(json!({"pvc": [{"name": "n", "claimName": "data", "path": "/a", "readOnly": true,
            
            "claimInfo": {"size": "1G", "storageClass": "local", "volumeMode": "Filesystem",
                "accessModes": {"readWriteMany": true, "readWriteOnce": true,
                    "readOnlyMany": true}}}]})),
        of(json!({"nfs": [{"name": "n", "server": "s", "path": "/x", "mountPath": "/b",
            "readOnly": true}]})),
        of(json!({"git": [{"name": "n", "repository": "https://a.b/c.git", "branch": "main",
            "revision": "abc", "path": "/c", "passwordSecret": "login",
            "secretKeyOfUser": "username", "secretKeyOfPassword": "password"}]})),
        of(json!({"s3": [{"name": "n", "bucket": "b", "path": "/d", "url": "https://s3.b",
            "accessKeySecret": "bucket", "secretKeyOfAccessKeyId": "AccessKeyId",
            "secretKeyOfSecretKey": "SecretKey"}]})),
        of(json!({"hostPath": [{"name": "n", "path": "/srv", "mountPath": "/e",
            "readOnly": true, "mountPropagation": "HostToContainer"}]})),
        of(json!({"configMapVolume": [{"name": "n", "configMap": "files", "mountPath": "/f",
            "subPath": "a", "defaultMode": "0440"}]})),
        of(json!({"emptyDirVolume": [{"name": "n", "path": "/g", "medium": "Memory",
            "sizeLimit": "10M"}]})),
        of(json!({"secretVolume": [{"name": "n", "secret": "login", "mountPath": "/h",
            "defaultMode": "0400"}]})),
    ]
}

fn of_other_kinds() -> Vec<(&'static str, Value)> {
    vec![
        (
            "distributed",
            json!({"distributedFramework": "PyTorch", "numWorkers": 3,
            "minReplicas": 1, "maxReplicas": 3, "cleanPodPolicy": "All",
            "sparePriorityClass": "low"}),
        ),
        (
            "distributed",
            json!({"distributedFramework": "MPI", "numWorkers": 2,
            "slotsPerWorker": 2, "mpiLauncherCreationPolicy": "WaitForWorkersReady",
            "sshAuthMountPath": concat!("/root", "/.ssh")}),
        ),
        (
            "inferences",
            json!({"servingPort": {"container": 8000, "protocol": "http",
            "authorizationType": "authorizedUsers", "authorizedUsers": ["ann@example.org"],
            "clusterLocalAccessOnly": true},
            "servingConfiguration": {"initializationTimeoutSeconds": 90,
                "requestTimeoutSeconds": 80},
            "probes": {"readiness": {"initialDelaySeconds": 1, "periodSeconds": 2,
                "timeoutSeconds": 3, "successThreshold": 4, "failureThreshold": 5,
                "handler": {"httpGet": {"path": "/ready", "port": 8000, "scheme": "HTTP"}}}},
            "autoscaling": {"minReplicas": 1, "maxReplicas": 4, "initialReplicas": 2,
                "activationReplicas": 2, "concurrencyHardLimit": 9,
                "scaleDownDelaySeconds": 30,
                "metric": "concurrency", "metricThreshold": 7,
                "metricThresholdPercentage": 70}}),
        ),
    ]
}

/// Every scalar of a schema, by its path; items of a list are `[]`.
pub(crate) fn leaves(document: &Value, schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    if let Some(place) = schema["$ref"].as_str() {
        let place = document.pointer(place.trim_start_matches('#')).unwrap();
        return leaves(document, place, at, found);
    }
    let choice = ["oneOf", "anyOf"].into_iter().find_map(|word| schema[word].as_array());
    if let Some(choice) = choice {
        let real = choice.iter().find(|one| one["type"] != "null").unwrap();
        return leaves(document, real, at, found);
    }
    if let Some(fields) = schema["properties"].as_object() {
        for (name, field) in fields {
            let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
            leaves(document, field, &path, found);
        }
    } else if schema["items"].is_object() {
        leaves(document, &schema["items"], &format!("{at}[]"), found);
    } else {
        found.insert(at.to_owned());
    }
}

/// Outcome of each scalar of a sample: `None` where it is read back.
pub(crate) fn compare(
    at: &str,
    sent: &Value,
    shown: &Value,
    found: &mut BTreeMap<String, Option<String>>,
) {
    match sent {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                compare(&path, value, &shown[name], found);
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                compare(&format!("{at}[]"), item, &shown[number], found);
            }
        }
        _ => {
            let differs = (sent != shown).then(|| format!("{sent} is shown as {shown}"));
            let known = found.entry(at.to_owned()).or_default();
            *known = known.take().or(differs);
        }
    }
}

pub(crate) async fn prepared() -> Server {
    let server = Server::with_teams().await;
    let types = json!({"resources": [], "nodeTypes": {"training": ["dgx", "other"]}}).to_string();
    let (status, said) = server.raw("PUT", "/api/v1/org-unit/projects/1", &types).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    for (kind, name, spec) in [
        ("password", "login", json!({"user": "u", "password": "p"})),
        ("access-key", "bucket", json!({"accessKeyId": "k", "secretAccessKey": "s"})),
        ("docker-registry", "registry", json!({"url": "u", "user": "a", "password": "p"})),
    ] {
        let meta = json!({"name": name, "scope": "tenant"});
        crate::assets::keep(&server, &format!("credentials/{kind}"), &meta, &spec).await;
    }
    let files = json!({"data": {"a": "text"}}).to_string();
    let path = "/elastane/v1/projects/1/config-maps/files";
    let (status, said) = server.raw("PUT", path, &files).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    server
}

/// Outcome of every field that is posted.
async fn posted(server: &Server) -> BTreeMap<String, Option<String>> {
    let mut found = BTreeMap::new();
    for (number, (kind, sent)) in samples().into_iter().enumerate() {
        let mut spec = json!({"image": "i"});
        for (name, value) in sent.as_object().unwrap() {
            spec[name] = value.clone();
        }
        let path = format!("/api/v1/workloads/{kind}");
        let (status, made) = server.post(&path, server.job(&format!("w{number}"), &spec)).await;
        if status != StatusCode::ACCEPTED {
            found.insert(format!("{kind} {sent}"), Some(made["message"].to_string()));
            continue;
        }
        let one = format!("{path}/{}", made["workloadId"].as_str().unwrap());
        compare("", &sent, &server.get(&one).await["spec"], &mut found);
        server.raw("DELETE", &one, "").await;
    }
    found
}

#[tokio::test]
async fn every_field_that_is_accepted_is_read_back() {
    let server = prepared().await;
    let document = server.get("/elastane/v1/openapi.json").await;
    let schema = json!({"$ref": "#/components/schemas/WorkloadSpec"});
    let mut not_posted = BTreeSet::new();
    leaves(&document, &schema, "", &mut not_posted);
    assert!(not_posted.len() > 150, "{}", not_posted.len());
    check(not_posted, posted(&server).await, EXCEPTIONS);
}

/// Compares the outcome of each posted field, and the fields that no sample has, with the exceptions.
pub(crate) fn check(
    mut not_posted: BTreeSet<String>,
    found: BTreeMap<String, Option<String>>,
    exceptions: &[(&str, &str)],
) {
    not_posted.retain(|path| !found.contains_key(path));
    let differ = found.into_iter().filter_map(|(path, differs)| Some((path, differs?)));
    let not_posted = not_posted.into_iter().map(|path| (path, "is in no sample".to_owned()));
    let all: BTreeMap<String, String> = differ.chain(not_posted).collect();
    let is_known = |path: &str| exceptions.iter().any(|(pattern, _)| is_exception(pattern, path));
    let new: BTreeMap<_, _> = all.iter().filter(|(path, _)| !is_known(path)).collect();
    assert!(new.is_empty(), "not read back: {new:#?}");
    let stale = |(pattern, _): &&(&str, _)| !all.keys().any(|path| is_exception(pattern, path));
    let stale: Vec<_> = exceptions.iter().filter(stale).collect();
    assert!(stale.is_empty(), "read back, so no exceptions: {stale:?}");
}
