//! The endpoints of config maps, one method each.

use std::collections::BTreeMap;

use api_types as wire;
use reqwest::Method;

use crate::routes::escape;
use crate::{Client, Error};

impl Client {
    /// The config maps of a project, without their texts.
    ///
    /// # Errors
    /// As every request.
    pub async fn config_maps(&self, project: &str) -> Result<Vec<wire::ConfigMapSummary>, Error> {
        let path = format!("/elastane/v1/projects/{project}/config-maps");
        self.get::<wire::ConfigMaps>(&path).await.map(|answer| answer.config_maps)
    }

    /// A config map of a project.
    ///
    /// # Errors
    /// As every request.
    pub async fn config_map(&self, project: &str, name: &str) -> Result<wire::ConfigMap, Error> {
        self.get(&config_map(project, name)).await
    }

    /// Creates a config map, or replaces its content.
    ///
    /// # Errors
    /// As every request.
    pub async fn put_config_map(
        &self,
        project: &str,
        name: &str,
        data: BTreeMap<String, String>,
    ) -> Result<wire::ConfigMap, Error> {
        let body = wire::ConfigMapBody { data };
        self.send(Method::PUT, &config_map(project, name), &body).await
    }

    /// Deletes a config map.
    ///
    /// # Errors
    /// As every request.
    pub async fn delete_config_map(&self, project: &str, name: &str) -> Result<(), Error> {
        self.act(Method::DELETE, &config_map(project, name)).await
    }
}

fn config_map(project: &str, name: &str) -> String {
    format!("/elastane/v1/projects/{project}/config-maps/{}", escape(name))
}
