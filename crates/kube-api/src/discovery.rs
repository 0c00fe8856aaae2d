//! Discovery. Owns: which version the API server has, and which kinds it serves. Does not know
//! about: which ones are needed.

use serde::Deserialize;

use crate::client::{ApiRequest, Client};
use crate::error::{Call, Error, Rule, Verb};
use crate::path::Kind;
use crate::status::Reason;
use crate::types::or_default;

/// Version of an API server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Version {
    /// `1`.
    #[serde(deserialize_with = "or_default")]
    pub major: String,
    /// `36`, with a `+` on some distributions.
    #[serde(deserialize_with = "or_default")]
    pub minor: String,
    /// `v1.36.3`.
    #[serde(deserialize_with = "or_default")]
    pub git_version: String,
}

/// A kind that the API server serves, or a subresource of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ApiResource {
    /// Plural, with the subresource: `pods/status`.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Kind.
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
    /// `true` if its objects are in namespaces.
    #[serde(deserialize_with = "or_default")]
    pub namespaced: bool,
    /// Verbs that it has.
    #[serde(deserialize_with = "or_default")]
    pub verbs: Vec<String>,
}

#[derive(Deserialize)]
struct ApiResources {
    #[serde(default, deserialize_with = "or_default")]
    resources: Vec<ApiResource>,
}

impl Client {
    /// Version of the API server.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn version(&self) -> Result<Version, Error> {
        self.ask(&ApiRequest::reading(call("/version"), "/version".to_owned())).await
    }

    /// The kinds of a group and version; none if it is not served.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn resources(&self, group: &str, version: &str) -> Result<Vec<ApiResource>, Error> {
        let path = Kind { group, version, plural: "" }.root();
        match self.ask::<ApiResources>(&ApiRequest::reading(call(&path), path)).await {
            Ok(found) => Ok(found.resources),
            Err(error) if error.reason() == Some(&Reason::NotFound) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// A read of a path that belongs to no kind: a role names the path.
fn call(path: &str) -> Call {
    let (group, resource) = (String::new(), path.to_owned());
    Call { rule: Rule { verb: Verb::Get, group, resource, namespace: None }, name: None }
}
