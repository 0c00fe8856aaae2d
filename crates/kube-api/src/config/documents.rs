//! The kubeconfig file. Owns: its fields. Does not know about: what they mean together.

use serde::Deserialize;

use crate::types::or_default;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct File {
    #[serde(deserialize_with = "or_default")]
    pub(super) current_context: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) contexts: Vec<NamedContext>,
    #[serde(deserialize_with = "or_default")]
    pub(super) clusters: Vec<NamedCluster>,
    #[serde(deserialize_with = "or_default")]
    pub(super) users: Vec<NamedUser>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct NamedContext {
    pub(super) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) context: Context,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct NamedCluster {
    pub(super) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) cluster: Cluster,
}

#[derive(Clone, Deserialize)]
pub(super) struct NamedUser {
    pub(super) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) user: User,
}

/// The user contains secrets, which are left out.
impl std::fmt::Debug for NamedUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NamedUser").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Context {
    #[serde(deserialize_with = "or_default")]
    pub(super) cluster: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) user: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) namespace: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Cluster {
    #[serde(deserialize_with = "or_default")]
    pub(super) server: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) tls_server_name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) insecure_skip_tls_verify: bool,
    #[serde(deserialize_with = "or_default")]
    pub(super) certificate_authority: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) certificate_authority_data: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) proxy_url: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct User {
    #[serde(deserialize_with = "or_default")]
    pub(super) client_certificate: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) client_certificate_data: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) client_key: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) client_key_data: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) token: String,
    #[serde(rename = "tokenFile", deserialize_with = "or_default")]
    pub(super) token_file: String,
    #[serde(rename = "as", deserialize_with = "or_default")]
    pub(super) impersonated: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) username: String,
    pub(super) auth_provider: Option<serde::de::IgnoredAny>,
    pub(super) exec: Option<Exec>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exec {
    pub(super) api_version: String,
    pub(super) command: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) args: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) env: Vec<Variable>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) install_hint: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) interactive_mode: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) provide_cluster_info: bool,
}

#[derive(Clone, Deserialize)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: String,
}
