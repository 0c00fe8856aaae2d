//! Kinds that only tests read, and objects that they make. Owns: their manifests. Does not know
//! about: what is tried with them.

pub(crate) use kube_api::testing::Budget;
use kube_api::testing::Namespace;
use kube_api::types::{Node, Pod};
use kube_api::{Client, ObjectRef};
use serde_json::{Value, json};

/// A namespace of a test's own.
pub(crate) async fn namespace(client: &Client, name: &str) {
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    client.create::<Namespace>("", &object).await.expect("it is made");
}

/// A node with labels.
pub(crate) async fn node(client: &Client, name: &str, labels: &Value) -> Node {
    let metadata = json!({"name": name, "labels": labels});
    let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata});
    client.create("", &object).await.expect("it is made")
}

/// A pod that no scheduler of Kubernetes handles.
pub(crate) fn pod_manifest(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "schedulerName": "elastane",
            "containers": [{
                "name": "main",
                "image": "none",
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }],
        },
    })
}

/// Creates such a pod.
pub(crate) async fn pod(client: &Client, namespace: &str, name: &str) -> ObjectRef {
    let pod: Pod = client.create(namespace, &pod_manifest(name)).await.expect("it is made");
    ObjectRef::of(&pod)
}
