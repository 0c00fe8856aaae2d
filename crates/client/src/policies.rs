//! The endpoints of policies, one method each.

use api_types as wire;
use reqwest::Method;

use crate::routes::question;
use crate::{Client, Error, WorkloadKind};

const ALL: &str = "/api/v2/policy";

impl WorkloadKind {
    /// Path of the policies for this kind of workload.
    const fn policies(self) -> &'static str {
        match self {
            Self::Training => "/api/v2/policy/trainings",
            Self::Workspace => "/api/v2/policy/workspaces",
            Self::Distributed => "/api/v2/policy/distributed",
            Self::Inference => "/api/v2/policy/inferences",
        }
    }
}

impl Client {
    /// The policies that the caller may see.
    ///
    /// # Errors
    /// As every request.
    pub async fn policies(&self) -> Result<Vec<wire::PolicyListEntry>, Error> {
        self.get::<wire::Policies>(ALL).await.map(|answer| answer.policies)
    }

    /// Sets the policy of a scope, or only validates it.
    ///
    /// # Errors
    /// As every request; an invalid policy.
    pub async fn put_policy(
        &self,
        kind: WorkloadKind,
        request: &wire::PolicyRequest,
        only_check: bool,
    ) -> Result<wire::PolicyV2, Error> {
        let path = format!("{}?validateOnly={only_check}", kind.policies());
        self.send(Method::PUT, &path, request).await
    }

    /// Deletes the policy of a scope, which the query names.
    ///
    /// # Errors
    /// As every request; 404 when there is none.
    pub async fn delete_policy(
        &self,
        kind: WorkloadKind,
        scope: &[(&str, &str)],
    ) -> Result<(), Error> {
        self.act(Method::DELETE, &format!("{}{}", kind.policies(), question(scope))).await
    }
}
