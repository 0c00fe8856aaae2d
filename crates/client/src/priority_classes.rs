//! The endpoints of priority classes, one method each.

use api_types as wire;
use reqwest::Method;

use crate::routes::escape;
use crate::{Client, Error};

impl Client {
    /// Creates a priority class, or updates the value of a created one.
    ///
    /// # Errors
    /// As every request.
    pub async fn put_priority_class(
        &self,
        name: &str,
        value: u32,
    ) -> Result<wire::WorkloadPriority, Error> {
        let path = format!("/elastane/v1/priority-classes/{}", escape(name));
        self.send(Method::PUT, &path, &wire::PriorityClassBody { value }).await
    }

    /// All priority classes, built-in and created.
    ///
    /// # Errors
    /// As every request.
    pub async fn priority_classes(&self) -> Result<Vec<wire::WorkloadPriority>, Error> {
        let answer: wire::WorkloadPriorities = self.get("/api/v1/workload-priorities").await?;
        Ok(answer.priorities)
    }
}
