//! Endpoints about pods of Kubernetes.

use api_types as wire;

use crate::routes::escape;
use crate::{Client, Error};

impl Client {
    /// A pod of Kubernetes that the server has to place.
    ///
    /// # Errors
    /// As every request; 404 if it does not exist, or names another scheduler.
    pub async fn kubernetes_pod(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<wire::KubernetesPod, Error> {
        let (namespace, name) = (escape(namespace), escape(name));
        self.get(&format!("/elastane/v1/kubernetes/pods/{namespace}/{name}")).await
    }
}
