//! Rights, and refusals that are none of rights, on a real API server.

use kube_api::testing::{Cluster, Namespace, READER};
use kube_api::types::{Node, Pod};
use kube_api::{Client, DeleteOptions, Error, ObjectRef, Query, Reason, Rule, Verb};

use crate::kinds::{namespace, pod_manifest};

#[tokio::test]
async fn a_missing_right_is_named() {
    let Some(cluster) = Cluster::shared() else { return };
    let reader = Client::new(cluster.config(READER), 1);
    let refused = reader.list::<Node>(&Query::default()).await.unwrap_err();
    let text =
        r#"missing rule: apiGroups [""], resources ["nodes"], verbs ["list"], in a ClusterRole"#;
    assert!(refused.to_string().ends_with(text), "{refused}");

    let refused = reader.create::<Pod>("default", &pod_manifest("a")).await.unwrap_err();
    let resource = "pods".to_owned();
    let namespace = Some("default".to_owned());
    let rule = Rule { verb: Verb::Create, group: String::new(), resource, namespace };
    assert_eq!(refused.missing_rule(), Some(&rule), "{refused}");
    assert!(!reader.may(&rule, None).await.unwrap());
    assert!(cluster.client().may(&rule, None).await.unwrap());
}

#[tokio::test]
async fn an_admission_that_refuses_an_object_is_no_missing_right() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = cluster.client();
    namespace(&client, "ending").await;
    let ending = ObjectRef { name: "ending".to_owned(), ..ObjectRef::default() };
    client.delete::<Namespace>(&ending, &DeleteOptions::default()).await.unwrap();
    let refused = client.create::<Pod>("ending", &pod_manifest("a")).await.unwrap_err();
    assert_eq!((refused.missing_rule(), refused.reason()), (None, Some(&Reason::Forbidden)));
    let Error::Refused { refusal, .. } = &refused else { panic!("{refused}") };
    assert_eq!(refusal.causes[0].reason, "NamespaceTerminating");
}
