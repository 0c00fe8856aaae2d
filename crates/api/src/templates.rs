//! Workload templates. Owns: how they are kept, checked and shown.

use api_types::{
    AssetIds, OpenSpec, TENANT_ID, TemplateMetaFields, WorkloadSpec, WorkloadTemplate, WorkloadType,
};
use control::Scope;
use control::view::{View, WorkloadKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use units::Instant;
use utoipa::ToSchema;

use crate::State;
use crate::assets;
use crate::convert;
use crate::edge::{Fault, Row, Scalar, Type};
use crate::objects::{Family, Item};
use crate::scopes;

/// A template as it is kept. Its values are kept as they were given, in the published form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Template {
    pub(crate) description: Option<String>,
    pub(crate) workload_type: WorkloadType,
    pub(crate) spec: Value,
    /// The assets that its values name, `<kind>/<id>`.
    #[serde(default)]
    pub(crate) names: Vec<String>,
}

impl Family for Template {
    const KIND: &'static str = "template";
}

/// Values that a template can have.
pub(crate) trait TemplateSpec:
    Serialize + DeserializeOwned + ToSchema + Default + Clone + Send + Sync + 'static
{
    /// Refuses what can never be right.
    fn check(&self) -> Result<(), Fault>;
    /// These values, and where there is none that of `below`.
    fn over(self, below: Self) -> Self;
    /// The assets it names.
    fn assets(&self) -> AssetIds;
}

impl TemplateSpec for WorkloadSpec {
    fn check(&self) -> Result<(), Fault> {
        convert::check_spec(self)
    }

    fn over(self, below: Self) -> Self {
        self.over(below)
    }

    fn assets(&self) -> AssetIds {
        self.assets.clone().unwrap_or_default()
    }
}

impl TemplateSpec for OpenSpec {
    fn check(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn over(self, mut below: Self) -> Self {
        below.0.extend(self.0);
        below
    }

    /// Its values are kept as they are; what is under this name says nothing if it is something else.
    fn assets(&self) -> AssetIds {
        let named = self.0.get("assets").map(AssetIds::deserialize);
        named.and_then(Result::ok).unwrap_or_default()
    }
}

/// The type of workloads of a kind.
pub(crate) const fn type_of(kind: WorkloadKind) -> WorkloadType {
    match kind {
        WorkloadKind::Training => WorkloadType::Training,
        WorkloadKind::Workspace => WorkloadType::Workspace,
        WorkloadKind::Distributed => WorkloadType::Distributed,
        WorkloadKind::Inference => WorkloadType::Inference,
    }
}

/// The values of a template.
pub(crate) fn spec_of<S: TemplateSpec>(body: &Template) -> Result<S, control::Error> {
    S::deserialize(&body.spec).map_err(|error| control::Error::Internal {
        message: format!("a template cannot be read: {error}"),
    })
}

impl Template {
    /// Takes these values, whose assets must be there for a template in this scope.
    pub(crate) fn set<S: TemplateSpec>(
        &mut self,
        view: &View,
        scope: Scope,
        spec: &S,
    ) -> Result<(), control::Error> {
        self.names = assets::keys(view, scope, &spec.assets())?;
        // Its own type has read it from JSON.
        self.spec = serde_json::to_value(spec).unwrap_or_default();
        Ok(())
    }
}

/// A template as it is shown.
pub(crate) fn shown(state: &State, item: &Item<Template>) -> WorkloadTemplate {
    let (object, body) = (&item.object, &item.body);
    let (mut cluster_id, mut department_id, mut project_id) = (None, None, None);
    let scope_id = match object.scope {
        Scope::System | Scope::Tenant => TENANT_ID.to_string(),
        Scope::Cluster => cluster_id.insert(state.control.cluster().uuid.to_string()).clone(),
        Scope::Department(id) => department_id.insert(id.to_string()).clone(),
        Scope::Project(id) => project_id.insert(id).to_string(),
    };
    let meta = TemplateMetaFields {
        id: object.id.clone(),
        name: object.name.clone(),
        description: body.description.clone(),
        workload_type: body.workload_type,
        scope_type: scopes::kind_of(object.scope),
        scope_id,
        cluster_id,
        department_id,
        project_id,
        created_by: object.created_by.clone(),
        created_at: object.created_at.into(),
        updated_by: object.updated_by.clone(),
        updated_at: object.updated_at.into(),
    };
    WorkloadTemplate { meta, spec: body.spec.clone() }
}

impl Row for Item<Template> {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("name", Type::Text),
        ("description", Type::Text),
        ("workloadType", Type::Text),
        ("scopeType", Type::Text),
        ("projectId", Type::Text),
        ("departmentId", Type::Text),
        ("createdBy", Type::Text),
        ("createdAt", Type::Time),
        ("updatedBy", Type::Text),
        ("updatedAt", Type::Time),
    ];
    const SEARCHED: &'static [&'static str] = &["name", "description"];

    fn field(&self, name: &str, _: Instant) -> Scalar<'_> {
        let object = &self.object;
        let optional = |text: Option<String>| text.map_or(Scalar::Absent, Scalar::text);
        match (name, object.scope) {
            ("name", _) => Scalar::text(&object.name),
            ("description", _) => optional(self.body.description.clone()),
            ("workloadType", _) => Scalar::text(format!("{:?}", self.body.workload_type)),
            ("scopeType", scope) => Scalar::text(scopes::word(scopes::kind_of(scope))),
            ("projectId", Scope::Project(id)) | ("departmentId", Scope::Department(id)) => {
                Scalar::text(id.to_string())
            }
            ("createdBy", _) => Scalar::text(&object.created_by),
            ("createdAt", _) => Scalar::time(object.created_at),
            ("updatedBy", _) => Scalar::text(&object.updated_by),
            ("updatedAt", _) => Scalar::time(object.updated_at),
            _ => Scalar::Absent,
        }
    }
}
