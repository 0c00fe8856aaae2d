//! `elastane up --runtime kubernetes` on a real API server: pods that name the server are bound by
//! quota. No kubelet runs: the test plays it.

#![expect(clippy::unwrap_used, reason = "in a test, an error that is not expected is a panic")]

use kube_api::testing::{ADMIN, Budget, Cluster, Namespace, documents};
use kube_api::types::{Event, Node, Pod};
use kube_api::{Client, DeleteOptions, ObjectRef, Query, Reason};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::sandbox::{Sandbox, wait_until};

const NODES: usize = 20;

/// The API server, as a test sees it.
struct Kube {
    runtime: Runtime,
    client: Client,
}

impl Kube {
    fn namespace(&self, name: &str) {
        let manifest = json!({"metadata": {"name": name}});
        let made = self.client.create::<Namespace>("", &manifest);
        self.runtime.block_on(made).unwrap();
    }

    /// A node with a GPU and its number as a label. Without a controller manager its not-ready taint
    /// stays.
    fn node(&self, number: usize) {
        let amounts = json!({"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "1"});
        let status = json!({"capacity": amounts, "allocatable": amounts});
        let meta = json!({"name": format!("n{number}"), "labels": {"number": number.to_string()}});
        let manifest = json!({"metadata": meta, "status": status});
        self.runtime.block_on(self.client.create::<Node>("", &manifest)).unwrap();
    }

    fn pod(&self, namespace: &str, name: &str, more: &Value) {
        self.pod_with(namespace, &json!({"name": name}), more);
    }

    fn pod_with(&self, namespace: &str, meta: &Value, more: &Value) {
        let requests = json!({"cpu": "100m", "memory": "64Mi", "nvidia.com/gpu": "1"});
        let mut manifest = json!({
            "metadata": meta,
            "spec": {
                "schedulerName": "elastane",
                "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
                "containers": [{
                    "name": "main", "image": "example.com/train",
                    "resources": {"requests": requests, "limits": {"nvidia.com/gpu": "1"}},
                }],
            },
        });
        for (key, value) in more.as_object().unwrap() {
            manifest["spec"][key] = value.clone();
        }
        self.runtime.block_on(self.client.create::<Pod>(namespace, &manifest)).unwrap();
    }

    fn pods(&self, namespace: &str) -> Vec<Pod> {
        let query = Query { namespace: Some(namespace.to_owned()), ..Query::default() };
        self.runtime.block_on(self.client.list::<Pod>(&query)).unwrap().items
    }

    fn bound(&self, namespace: &str) -> usize {
        self.pods(namespace).iter().filter(|pod| !pod.spec.node_name.is_empty()).count()
    }

    fn nominates(&self, namespace: &str, node: &str) -> bool {
        self.pods(namespace).iter().any(|pod| pod.status.nominated_node_name == node)
    }

    /// Events of a namespace: the name of the pod, and reason and message.
    fn events(&self, namespace: &str) -> Vec<(String, String)> {
        let query = Query { namespace: Some(namespace.to_owned()), ..Query::default() };
        let events = self.runtime.block_on(self.client.list::<Event>(&query)).unwrap().items;
        let told = |event: Event| {
            (event.involved_object.name, format!("{}: {}", event.reason, event.message))
        };
        events.into_iter().map(told).collect()
    }

    /// Reason and message of the condition of a pod that waits.
    fn why(&self, namespace: &str, name: &str) -> Option<(String, String)> {
        let pods = self.pods(namespace);
        let pod = pods.iter().find(|pod| pod.metadata.name == name)?;
        let mut conditions = pod.status.conditions.iter();
        let found = conditions.find(|one| one.kind == "PodScheduled" && one.status == "False")?;
        Some((found.reason.clone(), found.message.clone()))
    }

    /// Does what kubelets do: bound pods run, and pods that are being deleted end.
    fn play_kubelets(&self, namespace: &str) {
        for pod in self.pods(namespace) {
            let reference = ObjectRef::of(&pod);
            if pod.metadata.deletion_timestamp.is_some() {
                let now = DeleteOptions { grace_period_seconds: Some(0), ..Default::default() };
                let _gone = self.runtime.block_on(self.client.delete::<Pod>(&reference, &now));
            } else if !pod.spec.node_name.is_empty() && pod.status.phase == "Pending" {
                let running = json!({"phase": "Running"});
                let done = self.client.patch_status::<Pod>(&reference, &running);
                self.runtime.block_on(done).unwrap();
            }
        }
    }
}

/// A cluster without nodes, and its client.
fn cluster() -> Option<(Cluster, Kube)> {
    let cluster = Cluster::own()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let client = {
        let _inside = runtime.enter();
        cluster.client()
    };
    Some((cluster, Kube { runtime, client }))
}

/// A cluster of nodes without kubelets, and a server for its pods with two projects.
fn begin() -> Option<(Cluster, Kube, Sandbox, String)> {
    begin_with("")
}

/// A cluster of nodes without kubelets, and a server with these flags for its pods with two
/// projects.
fn begin_with(flags: &str) -> Option<(Cluster, Kube, Sandbox, String)> {
    let (cluster, kube) = cluster()?;
    (1..=NODES).for_each(|number| kube.node(number));
    ["team-a", "team-b", "team-x"].into_iter().for_each(|name| kube.namespace(name));
    let mut sandbox = Sandbox::new();
    let file = cluster.kubeconfig();
    let server = format!(
        "elastane up --runtime kubernetes --kubeconfig {} --context {ADMIN} {flags}",
        file.display()
    );
    sandbox.start_server(&server);
    for name in ["team-a", "team-b"] {
        let made = sandbox.shell(&format!("elastane project create {name} --gpu-quota 10"));
        assert_eq!(made.code, Some(0), "{}", made.text);
    }
    Some((cluster, kube, sandbox, server))
}

/// The condition of a pod that waits and the answer of `explain` have the same sentences; the
/// condition has the code of the first reason alone.
fn assert_same_sentences(message: &str, explained: &str) {
    let (_, sentences) = explained.split_once(" waits: P102 ").expect(explained);
    let (first, other) = sentences.split_once(" P203 ").expect(explained);
    let rest = message.strip_prefix(&format!("P102: {first}; ")).expect(message);
    assert!(other.starts_with(rest), "{message}: {explained}");
}

#[test]
fn pods_of_two_projects_share_twenty_nodes_by_quota() {
    let Some((_cluster, kube, mut sandbox, server)) = begin() else { return };
    // A pod is bound to a node that its affinity selects; without such a node it waits with a reason.
    let above = |number: usize| {
        let condition = json!({"key": "number", "operator": "Gt", "values": [number.to_string()]});
        let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [condition]}]});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})
    };
    kube.pod("team-b", "last", &above(NODES - 1));
    kube.pod("team-b", "none", &above(NODES));
    assert!(wait_until(|| kube.bound("team-b") == 1), "{}", sandbox.server_text());
    let pods = kube.pods("team-b");
    let last = pods.iter().find(|pod| pod.metadata.name == "last").unwrap();
    assert_eq!(last.spec.node_name, format!("n{NODES}"));
    assert!(wait_until(|| kube.why("team-b", "none").is_some()), "{}", sandbox.server_text());
    let (reason, message) = kube.why("team-b", "none").unwrap();
    assert_eq!(reason, "Unschedulable", "{message}");
    assert!(message.starts_with("P107: "), "{message}");
    for pod in &pods {
        let now = DeleteOptions { grace_period_seconds: Some(0), ..Default::default() };
        kube.runtime.block_on(kube.client.delete::<Pod>(&ObjectRef::of(pod), &now)).unwrap();
    }

    // The first project borrows what the second does not use.
    (0..=NODES).for_each(|number| kube.pod("team-a", &format!("a{number:02}"), &json!({})));
    assert!(wait_until(|| kube.bound("team-a") == NODES), "{}", sandbox.server_text());
    kube.play_kubelets("team-a");
    let waits = || kube.pods("team-a").into_iter().find(|pod| pod.spec.node_name.is_empty());
    let name = waits().unwrap().metadata.name;
    assert!(wait_until(|| kube.why("team-a", &name).is_some()), "{}", sandbox.server_text());
    let (reason, message) = kube.why("team-a", &name).unwrap();
    assert_eq!(reason, "Unschedulable", "{message}");
    assert!(message.starts_with("P102: needs 1 GPU; no GPU of 20 nodes is free"), "{message}");
    let explained = explained(&sandbox, &format!("elastane explain pod team-a/{name}"));
    assert_same_sentences(&message, &explained);

    // A pod of the second project has a right to its quota.
    kube.pod("team-b", "b1", &json!({}));
    let marked = || {
        let pods = kube.pods("team-a");
        pods.into_iter().find(|pod| pod.metadata.deletion_timestamp.is_some())
    };
    assert!(wait_until(|| marked().is_some()), "{}", sandbox.server_text());
    assert_eq!(kube.bound("team-b"), 0, "its room is not free before the victim is gone");
    let node = marked().unwrap().spec.node_name;
    assert!(wait_until(|| kube.nominates("team-b", &node)), "{}", sandbox.server_text());
    kube.play_kubelets("team-a");
    assert!(wait_until(|| kube.bound("team-b") == 1), "{}", sandbox.server_text());
    let pods = kube.pods("team-a");
    assert_eq!(pods.len(), NODES, "one is evicted: {}", sandbox.server_text());

    held_by_name(&kube, &sandbox);
    a_wrong_name_is_answered_with_the_next_command(&sandbox);
    refused_with_the_owner(&sandbox);

    // A server that was killed finds the pods and binds none again.
    sandbox.kill_server();
    sandbox.start_server(&server);
    let is_running = |(_, status): &(String, String)| status == "Running";
    let runs = || sandbox.statuses("runai list -p team-a").iter().filter(|s| is_running(s)).count();
    assert!(wait_until(|| runs() == NODES - 1), "{}", sandbox.shell("runai list -p team-a").text);
    assert_eq!((kube.bound("team-a"), kube.bound("team-b")), (NODES - 1, 1));

    // The end of the server ends no pod.
    let ended = sandbox.shell("elastane down");
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert!(marked().is_none(), "{}", sandbox.server_text());
    assert_eq!((kube.bound("team-a"), kube.bound("team-b")), (NODES - 1, 1));
}

/// A field that is not supported, and a missing project, hold a pod.
fn held_by_name(kube: &Kube, sandbox: &Sandbox) {
    kube.pod("team-x", "x1", &json!({}));
    let nfs = json!([{"name": "data", "nfs": {"server": "nfs.example.com", "path": "/"}}]);
    kube.pod("team-b", "b2", &json!({"volumes": nfs}));
    assert!(wait_until(|| kube.why("team-x", "x1").is_some()), "{}", sandbox.server_text());
    let (reason, message) = kube.why("team-x", "x1").unwrap();
    assert_eq!(reason, "NoProject");
    assert!(message.starts_with("P310: no project has namespace team-x"), "{message}");
    let sentence = message.replacen("P310: ", "P310 ", 1);
    for program in ["elastane", "runai"] {
        let explained = explained(sandbox, &format!("{program} explain pod team-x/x1"));
        assert_eq!(explained, format!("team-x/x1 waits: {sentence}"));
    }
    assert!(wait_until(|| kube.why("team-b", "b2").is_some()), "{}", sandbox.server_text());
    let (reason, message) = kube.why("team-b", "b2").unwrap();
    assert_eq!(reason, "FieldNotSupported");
    assert!(message.starts_with("P311: spec.volumes[0].nfs is not supported"), "{message}");
}

/// The output of a command that succeeds, on one line.
fn explained(sandbox: &Sandbox, command: &str) -> String {
    let done = sandbox.shell(command);
    assert_eq!(done.code, Some(0), "{}", done.text);
    done.text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn a_wrong_name_is_answered_with_the_next_command(sandbox: &Sandbox) {
    let wrong = |name: &str| {
        let done = sandbox.shell(&format!("elastane explain pod {name}"));
        (done.code, done.text)
    };
    let (code, text) = wrong("team-x/x2");
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("no pod team-x/x2 names this scheduler"), "{text}");
    assert!(text.contains("did you mean `team-x/x1`?"), "{text}");
    let (code, text) = wrong("elsewhere/database");
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("`kubectl get pods -n elsewhere -o custom-columns=NAME"), "{text}");
    let (code, text) = wrong("x1");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("`x1` is not NAMESPACE/NAME of a pod, such as team-a/train1"), "{text}");
}

#[test]
fn settings_charge_other_namespaces_and_bound_what_is_written() {
    let flags = "--default-project team-b --scheduler-name elastane,kai-scheduler \
                 --bind-concurrency 1 --event-rate all --status-rate 0";
    let Some((_cluster, kube, sandbox, _)) = begin_with(flags) else { return };
    kube.pod("team-x", "x1", &json!({}));
    kube.pod("team-a", "a1", &json!({"schedulerName": "kai-scheduler"}));
    kube.pod("team-a", "a2", &json!({"nodeSelector": {"number": "none"}}));
    let bound = || kube.bound("team-x") + kube.bound("team-a") == 2;
    assert!(wait_until(bound), "{}", sandbox.server_text());
    let listed = sandbox.shell("runai list -p team-b").text;
    assert!(listed.contains("team-x.x1"), "{listed}");

    let node_of = |namespace: &str, name: &str| {
        let pods = kube.pods(namespace).into_iter();
        pods.filter(|pod| pod.metadata.name == name).map(|pod| pod.spec.node_name).next()
    };
    for (namespace, name) in [("team-x", "x1"), ("team-a", "a1")] {
        let node = node_of(namespace, name).unwrap();
        let told = || {
            let events = kube.events(namespace);
            let told = format!("Scheduled: assigned {namespace}/{name} to {node}");
            events.iter().any(|(of, event)| of == name && *event == told)
        };
        assert!(wait_until(told), "{:?}", kube.events(namespace));
    }
    // Its reason is not written to the cluster, and the server knows it.
    let explained = explained(&sandbox, "elastane explain pod team-a/a2");
    assert!(explained.starts_with("team-a.a2 waits: P107 "), "{explained}");
    assert_eq!(kube.why("team-a", "a2"), None);
}

/// The pods are in the lists of the server, which refuses what only their owners can do.
fn refused_with_the_owner(sandbox: &Sandbox) {
    let list = sandbox.shell("runai list -p team-b");
    assert!(list.text.contains("team-b.b1"), "{}", list.text);
    let refused = sandbox.shell("runai delete team-b.b1 -p team-b");
    assert!(refused.text.contains("kubectl delete pod -n team-b b1"), "{}", refused.text);
    let refused = sandbox.shell("runai submit own -p team-b -i example.com/train -g 1");
    assert!(refused.text.contains("come with a later part"), "{}", refused.text);
    let refused = sandbox.shell("elastane node cordon n1");
    assert!(refused.text.contains("kubectl cordon"), "{}", refused.text);
}

#[test]
fn a_gang_is_bound_whole_and_a_budget_leaves_another_victim() {
    let Some((_cluster, kube, sandbox, _)) = begin() else { return };
    // The first project borrows two nodes, and a budget protects all of its pods but one.
    for number in 0..12 {
        let labels = json!({"guarded": if number == 5 { "no" } else { "yes" }});
        let meta = json!({"name": format!("a{number:02}"), "labels": labels});
        kube.pod_with("team-a", &meta, &json!({}));
    }
    let budget = json!({
        "metadata": {"name": "all-but-one"},
        "spec": {"minAvailable": "100%", "selector": {"matchLabels": {"guarded": "yes"}}},
    });
    kube.runtime.block_on(kube.client.create::<Budget>("team-a", &budget)).unwrap();
    assert!(wait_until(|| kube.bound("team-a") == 12), "{}", sandbox.server_text());
    kube.play_kubelets("team-a");

    let group = json!({"elastane.dev/min-members": "9", "elastane.dev/group": "train"});
    let member = |number: usize| {
        let meta = json!({"name": format!("t-{number}"), "annotations": group});
        kube.pod_with("team-b", &meta, &json!({}));
    };
    (0..8).for_each(member);
    let missing = || kube.why("team-b", "t-7").is_some_and(|(_, why)| why.contains("only 8 are"));
    assert!(wait_until(missing), "{}", sandbox.server_text());
    assert_eq!(kube.bound("team-b"), 0);
    member(8);
    let marked = || {
        let pods = kube.pods("team-a").into_iter();
        let marked = pods.filter(|pod| pod.metadata.deletion_timestamp.is_some());
        marked.map(|pod| pod.metadata.name).collect::<Vec<_>>()
    };
    assert!(wait_until(|| marked() == ["a05"]), "{}", sandbox.server_text());
    assert_eq!(kube.bound("team-b"), 0, "its room is not free before the victim is gone");
    kube.play_kubelets("team-a");
    assert!(wait_until(|| kube.bound("team-b") == 9), "{}", sandbox.server_text());
    let listed = sandbox.shell("runai list -p team-b").text;
    assert!(listed.contains("team-b.group.train"), "{listed}");
    assert_eq!(kube.pods("team-a").len(), 11);
}

#[test]
fn pods_of_a_job_start_together_as_its_annotation_says() {
    let Some((cluster, kube, sandbox, _)) = begin() else { return };
    let container = json!({"name": "main", "image": "example.com/train"});
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": "train", "namespace": "team-a",
            "annotations": {"kai.scheduler/batch-min-member": "2"},
        },
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    });
    let made = kube.runtime.block_on(cluster.apply(&job)).unwrap();
    let owner = json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": true,
        "uid": made["metadata"]["uid"],
    });
    let member = |name: &str| {
        kube.pod_with("team-a", &json!({"name": name, "ownerReferences": [owner]}), &json!({}));
    };
    member("train-a");
    let missing = || kube.why("team-a", "train-a").is_some_and(|(_, why)| why.contains("P106"));
    assert!(wait_until(missing), "{}", sandbox.server_text());
    member("train-b");
    assert!(wait_until(|| kube.bound("team-a") == 2), "{}", sandbox.server_text());
    let listed = sandbox.shell("runai list -p team-a").text;
    assert!(listed.contains("team-a.job.train"), "{listed}");
}

#[test]
fn the_printed_manifests_give_the_server_what_it_needs_and_leave_nothing() {
    let Some((cluster, kube)) = cluster() else { return };
    kube.node(1);
    kube.namespace("team-a");
    let mut sandbox = Sandbox::new();
    let objects =
        documents(&sandbox.shell("elastane kubernetes manifests --priority-classes").text);
    for object in &objects {
        kube.runtime.block_on(cluster.apply(object)).unwrap();
    }
    // Its pod is admitted in a namespace that takes restricted pods only.
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let meta = json!({"name": "try", "namespace": "elastane"});
    let spec = &deployment["spec"]["template"]["spec"];
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec});
    kube.runtime.block_on(cluster.apply(&pod)).unwrap();
    kube.runtime.block_on(cluster.remove(&pod)).unwrap();

    // By itself it makes nothing that others may have.
    let kinds = |line: &str| -> Vec<String> {
        let objects = documents(&sandbox.shell(line).text);
        objects.iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect()
    };
    let elsewhere = kinds("elastane kubernetes manifests --namespace team-a");
    let shared = ["Namespace", "PriorityClass"].map(str::to_owned);
    assert!(elsewhere.iter().all(|kind| !shared.contains(kind)), "{elsewhere:?}");

    let own = kube.runtime.block_on(cluster.kubeconfig_of("elastane", "elastane"));
    let checked =
        sandbox.shell(&format!("elastane kubernetes check --kubeconfig {}", own.display()));
    assert_eq!(checked.code, Some(0), "{}", checked.text);
    assert!(checked.text.contains("Permissions  13 of 13"), "{}", checked.text);
    assert!(
        checked.text.contains("1 node, 1 with 1 GPU in all; 1 of them without"),
        "{}",
        checked.text
    );
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "other", "namespace": "default"},
    });
    kube.runtime.block_on(cluster.apply(&account)).unwrap();
    let other = kube.runtime.block_on(cluster.kubeconfig_of("default", "other"));
    let checked =
        sandbox.shell(&format!("elastane kubernetes check --kubeconfig {}", other.display()));
    assert_eq!(checked.code, Some(1), "{}", checked.text);
    let missing = "missing: apiGroups [\"\"], resources [\"pods/binding\"], verbs [\"create\"]";
    assert!(checked.text.contains(missing), "{}", checked.text);

    sandbox
        .start_server(&format!("elastane up --runtime kubernetes --kubeconfig {}", own.display()));
    sandbox.shell("elastane project create team-a --gpu-quota 1");
    kube.pod("team-a", "a1", &json!({}));
    assert!(wait_until(|| kube.bound("team-a") == 1), "{}", sandbox.server_text());
    kube.pod("team-a", "a2", &json!({}));
    assert!(wait_until(|| kube.why("team-a", "a2").is_some()), "{}", sandbox.server_text());
    sandbox.shell("elastane down");

    for object in objects.iter().rev() {
        kube.runtime.block_on(cluster.remove(object)).unwrap();
    }
    // Without controllers these two keep the finalizers that controllers take away.
    let ends = |object: &&Value| {
        !["Namespace", "PersistentVolumeClaim"].map(Value::from).contains(&object["kind"])
    };
    for object in objects.iter().filter(ends) {
        let gone = kube.runtime.block_on(cluster.remove(object)).unwrap_err();
        assert_eq!(gone.reason(), Some(&Reason::NotFound), "{object}");
    }
}
