//! The parts of manifests that mean something here, as Kubernetes writes them.

use std::collections::BTreeMap;

use api_types::{CleanPodPolicy, RestartPolicy, Toleration};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) api_version: String,
    pub(super) kind: String,
    #[serde(default)]
    pub(super) metadata: Meta,
    pub(super) spec: Value,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Meta {
    pub(super) name: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Job {
    pub(super) parallelism: Option<u32>,
    pub(super) completions: Option<u32>,
    pub(super) backoff_limit: Option<u32>,
    #[expect(dead_code, reason = "looked at in every manifest alike")]
    suspend: Option<bool>,
    pub(super) template: Template,
}

/// A training operator, beside its replicas.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Operator {
    pub(super) run_policy: Option<RunPolicy>,
    pub(super) slots_per_worker: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RunPolicy {
    pub(super) clean_pod_policy: Option<CleanPodPolicy>,
    pub(super) backoff_limit: Option<u32>,
    suspend: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Replicas {
    pub(super) replicas: Option<u32>,
    pub(super) restart_policy: Option<RestartPolicy>,
    pub(super) template: Template,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Template {
    pub(super) metadata: Option<Meta>,
    pub(super) spec: Pod,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Pod {
    pub(super) containers: Vec<Container>,
    pub(super) restart_policy: Option<RestartPolicy>,
    pub(super) termination_grace_period_seconds: Option<u64>,
    pub(super) priority_class_name: Option<String>,
    pub(super) scheduler_name: Option<String>,
    #[serde(default)]
    pub(super) node_selector: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) tolerations: Vec<Toleration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Container {
    #[expect(dead_code, reason = "there is one, and nothing calls it by name")]
    name: Option<String>,
    pub(super) image: Option<String>,
    #[serde(default)]
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) args: Vec<String>,
    pub(super) working_dir: Option<String>,
    pub(super) stdin: Option<bool>,
    pub(super) tty: Option<bool>,
    #[serde(default)]
    pub(super) env: Vec<Variable>,
    #[serde(default)]
    pub(super) resources: Resources,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) value: Option<String>,
    pub(super) value_from: Option<ValueFrom>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ValueFrom {
    pub(super) secret_key_ref: SecretKey,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretKey {
    pub(super) name: String,
    pub(super) key: String,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Resources {
    pub(super) limits: BTreeMap<String, Amount>,
    pub(super) requests: BTreeMap<String, Amount>,
}

/// A number, or one with a unit.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Amount {
    Number(serde_json::Number),
    Text(String),
}

impl Amount {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}
