//! Writes of a scheduler. Owns: their messages to the API server. Does not know about: why one is
//! made, and the reaction to a refusal.

use std::collections::BTreeMap;

use http::HeaderValue;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::client::{ApiRequest, Client};
use crate::error::{Error, Verb};
use crate::path::{Kind, Target};
use crate::status::Reason;
use crate::types::{Metadata, ObjectMeta, OwnerReference, Pod, Resource};

const STRATEGIC_PATCH: HeaderValue =
    HeaderValue::from_static("application/strategic-merge-patch+json");

/// One object. A request about it is refused with a conflict when another has its name now.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Namespace, empty outside of namespaces.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
}

impl ObjectRef {
    /// The reference to an object.
    #[must_use]
    pub fn of<R: Resource>(object: &R) -> Self {
        let meta = object.meta();
        let (namespace, name) = (meta.namespace.clone(), meta.name.clone());
        Self { namespace, name, uid: meta.uid.clone() }
    }

    fn target<'a>(&'a self, subresource: Option<&'a str>) -> Target<'a> {
        let namespace = Some(self.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        Target { namespace, name: Some(&self.name), subresource }
    }
}

/// Grace and preconditions of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteOptions {
    /// Seconds between the request to end and the kill; `None`: those of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<u32>,
    /// Version that the object must have; `None` for any.
    #[serde(skip)]
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    fn wire(&self, uid: &str) -> Value {
        let mut conditions = Map::new();
        if !uid.is_empty() {
            conditions.insert("uid".to_owned(), uid.into());
        }
        if let Some(version) = &self.resource_version {
            conditions.insert("resourceVersion".to_owned(), version.as_str().into());
        }
        let mut wire = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        wire["preconditions"] = conditions.into();
        if let Some(seconds) = self.grace_period_seconds {
            wire["gracePeriodSeconds"] = seconds.into();
        }
        wire
    }
}

impl Client {
    /// An object by its name.
    ///
    /// # Errors
    /// There is none, or the API server does not answer.
    pub async fn get<R: Resource>(&self, namespace: &str, name: &str) -> Result<R, Error> {
        let object = ObjectRef {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..ObjectRef::default()
        };
        let (kind, target) = (Kind::of::<R>(), object.target(None));
        self.ask(&ApiRequest::reading(kind.call(Verb::Get, target), kind.path(target))).await
    }

    /// The metadata of the owner of an object in a namespace. `plural` is its kind in paths.
    ///
    /// # Errors
    /// There is none, or the API server does not answer.
    pub async fn owner(
        &self,
        namespace: &str,
        owner: &OwnerReference,
        plural: &str,
    ) -> Result<ObjectMeta, Error> {
        let (group, version) =
            owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
        let kind = Kind { group, version, plural };
        let target =
            Target { namespace: Some(namespace), name: Some(&owner.name), subresource: None };
        let asked = ApiRequest::reading(kind.call(Verb::Get, target), kind.path(target));
        self.ask::<Metadata>(&asked).await.map(|found| found.metadata)
    }

    /// Makes an object.
    ///
    /// # Errors
    /// The API server refuses it, or does not answer.
    pub async fn create<R: Resource>(&self, namespace: &str, object: &Value) -> Result<R, Error> {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let (kind, target) = (Kind::of::<R>(), Target { namespace, ..Target::default() });
        self.ask(&ApiRequest::writing(kind.call(Verb::Create, target), kind.path(target), object))
            .await
    }

    /// Binds a pod to a node. The API server gives the pod these labels and annotations in the same
    /// write.
    ///
    /// # Errors
    /// A conflict if the pod is bound, gated or another one; or the API server does not answer.
    pub async fn bind(
        &self,
        pod: &ObjectRef,
        node: &str,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let body = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": pod.name, "namespace": pod.namespace, "uid": pod.uid,
                "labels": labels, "annotations": annotations,
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        self.write::<Pod>(Verb::Create, pod, Some("binding"), &body).await
    }

    /// Evicts a pod with a grace, none for its own.
    ///
    /// # Errors
    /// A disruption budget does not allow it, or the API server does not answer.
    pub async fn evict(&self, pod: &ObjectRef, options: &DeleteOptions) -> Result<(), Error> {
        let body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": options.wire(&pod.uid),
        });
        self.write::<Pod>(Verb::Create, pod, Some("eviction"), &body).await
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// A conflict if it is another one now; or the API server does not answer.
    pub async fn delete<R: Resource>(
        &self,
        object: &ObjectRef,
        options: &DeleteOptions,
    ) -> Result<(), Error> {
        self.write::<R>(Verb::Delete, object, None, &options.wire(&object.uid)).await
    }

    /// Changes the status of an object: conditions of the patch replace those of their type.
    ///
    /// # Errors
    /// A conflict if it is another one now; or the API server does not answer.
    pub async fn patch_status<R: Resource>(
        &self,
        object: &ObjectRef,
        status: &Value,
    ) -> Result<(), Error> {
        let body = json!({"metadata": {"uid": object.uid}, "status": status});
        let (kind, target) = (Kind::of::<R>(), object.target(Some("status")));
        let mut asked =
            ApiRequest::writing(kind.call(Verb::Patch, target), kind.path(target), &body);
        if let Some((content, _)) = &mut asked.body {
            *content = STRATEGIC_PATCH;
        }
        self.ask_bytes(&asked).await.map(drop).map_err(of_another)
    }

    async fn write<R: Resource>(
        &self,
        verb: Verb,
        object: &ObjectRef,
        subresource: Option<&str>,
        body: &Value,
    ) -> Result<(), Error> {
        let (kind, target) = (Kind::of::<R>(), object.target(subresource));
        let asked = ApiRequest::writing(kind.call(verb, target), kind.path(target), body);
        self.ask_bytes(&asked).await.map(drop)
    }
}

/// A patch of another object of the name is refused as one that changes the uid.
fn of_another(error: Error) -> Error {
    match error {
        Error::Refused { call, mut refusal }
            if refusal.causes.iter().any(|cause| cause.field == "metadata.uid") =>
        {
            refusal.reason = Reason::Conflict;
            Error::Refused { call, refusal }
        }
        other => other,
    }
}
