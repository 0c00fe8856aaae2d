//! The service account of a pod. Owns: where the kubelet puts it. Does not know about: renewing it.

use std::path::Path;

use super::{Config, Source, TokenSource, User, address, read};
use crate::error::ConfigError;

/// The volume with token, authority and namespace.
pub(super) const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";

pub(super) fn find(
    folder: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Config>, ConfigError> {
    let token = folder.join("token");
    let (Some(host), Some(port)) = (env(HOST), env(PORT)) else { return Ok(None) };
    if !token.exists() {
        return Ok(None);
    }
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let place = "the pod's environment";
    let namespace = read(&folder.join("namespace"))?;
    Ok(Some(Config {
        server: address(HOST, place, &format!("https://{host}:{port}"), &["https"])?,
        namespace: String::from_utf8_lossy(&namespace).trim().to_owned(),
        authority: Some(Source::File(folder.join("ca.crt"))),
        server_name: None,
        proxy: None,
        user: User { token: Some(TokenSource::File(token)), ..User::default() },
    }))
}
