//! The endpoints of assets, one method each.

use api_types as wire;
use reqwest::Method;
use serde_json::Value;

use crate::routes::question;
use crate::{Client, Error};

impl Client {
    /// The assets of this name that workloads of a project can use; `family` is `compute`,
    /// `environment`, `datasource`, or `credentials/` and a kind.
    ///
    /// # Errors
    /// As every request.
    pub async fn assets(
        &self,
        family: &str,
        name: &str,
        project_id: &str,
    ) -> Result<Vec<wire::Asset<Value>>, Error> {
        let query = question(&[("name", name), ("projectId", project_id)]);
        let path = format!("/api/v1/asset/{family}{query}");
        self.get::<wire::AssetList<Value>>(&path).await.map(|list| list.entries)
    }

    /// Names of the assets of a family that are visible to a project.
    ///
    /// # Errors
    /// As every request.
    pub async fn asset_names(&self, family: &str, project_id: &str) -> Result<Vec<String>, Error> {
        let query = question(&[("projectId", project_id)]);
        let path = format!("/api/v1/asset/{family}{query}");
        let all = self.get::<wire::AssetList<Value>>(&path).await?.entries;
        Ok(all.into_iter().map(|one| one.meta.name).collect())
    }

    /// Creates an asset; `path` is that of its kind.
    ///
    /// # Errors
    /// As every request; 409 if the name is in use.
    pub async fn create_asset(&self, path: &str, asset: &Value) -> Result<Value, Error> {
        self.send(Method::POST, path, asset).await
    }

    /// Replaces the content of the asset at a path by that of the request.
    ///
    /// # Errors
    /// As every request.
    pub async fn replace_asset(&self, path: &str, asset: &Value) -> Result<Value, Error> {
        self.send(Method::PUT, path, asset).await
    }

    /// Deletes the asset at a path.
    ///
    /// # Errors
    /// As every request; 409 while something that has not ended uses it.
    pub async fn delete_asset(&self, path: &str) -> Result<(), Error> {
        self.act(Method::DELETE, path).await
    }
}
