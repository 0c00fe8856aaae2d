//! Workload templates: stored specifications that a creation starts from.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::scoped_meta::with_scope;
use crate::{ScopeType, Unsupported, WorkloadSpec};

/// Type of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum WorkloadType {
    /// Interactive.
    Workspace,
    /// Training of one pod.
    Training,
    /// Training of many pods.
    Distributed,
    /// Serving.
    Inference,
}

/// Metadata of a new template (`TemplateCreationMetaFields`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateCreationMeta {
    /// Name, unique in its scope.
    pub name: String,
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The scope it belongs to; projects within can use it.
    pub scope_type: ScopeType,
    /// Id of the department or project; of the cluster or tenant it may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<String>,
}

/// A new template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateCreation {
    /// Name and scope.
    pub meta: TemplateCreationMeta,
    /// The values to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<WorkloadSpec>,
    /// As in a creation, for distributed workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master_spec_same_as_worker: Option<bool>,
    /// Master of a distributed workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<TemplateMasterSection>,
}

/// The master in a template of distributed workloads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TemplateMasterSection {
    /// Its values. Values that are left out are those of the workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<WorkloadSpec>,
    /// Not acted on yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub assets: Unsupported,
}

/// Change of the metadata of a template. The scope stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TemplateUpdateMeta {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A changed template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateUpdate {
    /// Name; what is left out stays.
    #[serde(default)]
    pub meta: TemplateUpdateMeta,
    /// The values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<WorkloadSpec>,
    /// As in a creation, for distributed workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master_spec_same_as_worker: Option<bool>,
    /// Master of a distributed workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<TemplateMasterSection>,
    /// `PATCH`: values that are taken away before that, such as `spec.image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields_to_clear: Option<Vec<String>>,
}

with_scope! {
    /// Metadata of a template.
    pub struct TemplateMetaFields {
        /// Free text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub description: Option<String>,
        /// Type of workload it is for.
        pub workload_type: WorkloadType,
        /// Kind of the scope it belongs to.
        pub scope_type: ScopeType,
        /// Id of that.
        pub scope_id: String,
    }
}

/// A template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadTemplate {
    /// Name and scope.
    pub meta: TemplateMetaFields,
    /// The values, in the form of a creation of its type.
    pub spec: Value,
    /// As in a creation, for distributed workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master_spec_same_as_worker: Option<bool>,
    /// Master of a distributed workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<TemplateMasterSection>,
}

/// A page of templates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TemplateList {
    /// The templates.
    pub entries: Vec<WorkloadTemplate>,
    /// Position of the page.
    pub pagination: Pagination,
}

/// Position of a page in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pagination {
    /// Number of templates that match.
    pub total: u64,
    /// Offset of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
