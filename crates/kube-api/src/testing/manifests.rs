//! Manifests of any kind, as `kubectl` applies and deletes them, and accounts that they make.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Cluster, files};
use crate::client::{ApiRequest, Client};
use crate::error::{Error, Verb};
use crate::path::{Kind, Target};

/// Where an object is.
struct Place {
    group: String,
    version: String,
    plural: String,
    namespace: Option<String>,
    name: String,
}

impl Place {
    /// The place of an object; the API server tells the plural of its kind.
    async fn of(client: &Client, object: &Value) -> Self {
        let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
        let of = text(&object["apiVersion"]);
        let (group, version) = of.split_once('/').unwrap_or(("", &of));
        let kinds = client.resources(group, version).await.unwrap();
        let kind =
            kinds.into_iter().find(|one| object["kind"] == *one.kind && !one.name.contains('/'));
        let kind = kind.unwrap_or_else(|| panic!("no kind of {object}"));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: kind.name,
            namespace: kind.namespaced.then(|| text(&object["metadata"]["namespace"])),
            name: text(&object["metadata"]["name"]),
        }
    }

    fn kind(&self) -> Kind<'_> {
        Kind { group: &self.group, version: &self.version, plural: &self.plural }
    }

    fn all(&self) -> Target<'_> {
        Target { namespace: self.namespace.as_deref(), ..Target::default() }
    }

    fn one(&self) -> Target<'_> {
        Target { name: Some(&self.name), ..self.all() }
    }
}

/// The documents of a text.
///
/// # Panics
/// It is not YAML.
#[must_use]
pub fn documents(yaml: &str) -> Vec<Value> {
    yaml.split("\n---\n").map(|text| serde_saphyr::from_str(text).unwrap()).collect()
}

impl Cluster {
    /// Makes an object of any kind.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn apply(&self, object: &Value) -> Result<Value, Error> {
        let client = self.client();
        let place = Place::of(&client, object).await;
        let call = place.kind().call(Verb::Create, place.all());
        client.ask(&ApiRequest::writing(call, place.kind().path(place.all()), object)).await
    }

    /// Deletes an object of any kind.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn remove(&self, object: &Value) -> Result<Value, Error> {
        let client = self.client();
        let place = Place::of(&client, object).await;
        let call = place.kind().call(Verb::Delete, place.one());
        let options = json!({"gracePeriodSeconds": 0});
        client.ask(&ApiRequest::writing(call, place.kind().path(place.one()), &options)).await
    }

    /// A kubeconfig with a token of a service account.
    ///
    /// # Panics
    /// There is no such account.
    pub async fn kubeconfig_of(&self, namespace: &str, account: &str) -> PathBuf {
        let token = self.token_of(namespace, account).await;
        let authority = self.dir.join(files::AUTHORITY);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "own",
            "clusters": [{"name": "own", "cluster": {
                "server": self.config(files::ADMIN).server().to_string(),
                "certificate-authority": authority.display().to_string(),
            }}],
            "users": [{"name": "own", "user": {"token": token}}],
            "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
        });
        let path = self.dir.join(format!("{namespace}-{account}.kubeconfig"));
        fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// A token of a service account.
    pub(super) async fn token_of(&self, namespace: &str, account: &str) -> String {
        let kind = Kind { group: "", version: "v1", plural: "serviceaccounts" };
        let target =
            Target { namespace: Some(namespace), name: Some(account), subresource: Some("token") };
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"});
        let call = kind.call(Verb::Create, target);
        let path = kind.path(target);
        let made: Value =
            self.client().ask(&ApiRequest::writing(call, path, &request)).await.unwrap();
        made["status"]["token"].as_str().unwrap().to_owned()
    }
}
