//! Rights. Owns: asking the API server for those of the caller. Does not know about: which ones are
//! needed.

use serde::Deserialize;
use serde_json::json;

use crate::client::{ApiRequest, Client};
use crate::error::{Error, Rule, Verb};
use crate::path::{REVIEWS, Target};
use crate::types::or_default;

#[derive(Deserialize)]
struct Review {
    #[serde(default, deserialize_with = "or_default")]
    status: Outcome,
}

#[derive(Default, Deserialize)]
struct Outcome {
    #[serde(default)]
    allowed: bool,
}

impl Client {
    /// `true` if a role allows it to the caller, for one object or (none) for all.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn may(&self, rule: &Rule, name: Option<&str>) -> Result<bool, Error> {
        let (resource, subresource) = rule.resource.split_once('/').unwrap_or((&rule.resource, ""));
        let body = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": rule.verb.name(),
                "group": rule.group,
                "resource": resource,
                "subresource": subresource,
                "namespace": rule.namespace.as_deref().unwrap_or_default(),
                "name": name.unwrap_or_default(),
            }},
        });
        let all = Target::default();
        let asked = ApiRequest::writing(REVIEWS.call(Verb::Create, all), REVIEWS.path(all), &body);
        let review: Review = self.ask(&asked).await?;
        Ok(review.status.allowed)
    }
}
