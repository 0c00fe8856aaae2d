//! Workload templates. Owns: how they are kept, checked and shown.

use access::{Backend, Family, Ids, Item, scopes};
use api_types::{
    CreationRequest, TENANT_ID, TemplateMasterSection, TemplateMetaFields, WorkloadSpec,
    WorkloadTemplate, WorkloadType, asks_for_something,
};
use convert::{self, wire};
use http_kit::{ApiError, Row, Scalar, Type, read_part, take_part};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use spec::WorkloadKind;
use units::Instant;
use view::{Scope, View};

use crate as assets;

/// A template as it is kept. Its values are kept as they were given, in the published form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Template {
    pub(crate) description: Option<String>,
    pub(crate) workload_type: WorkloadType,
    pub(crate) spec: Value,
    #[serde(default)]
    pub(crate) master_spec_same_as_worker: Option<bool>,
    #[serde(default)]
    pub(crate) master: Option<Value>,
    /// The assets that its values name, `<kind>/<id>`.
    #[serde(default)]
    pub(crate) names: Vec<String>,
}

impl Family for Template {
    const KIND: &'static str = convert::TEMPLATE;
}

/// The values of a template.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values {
    pub(crate) spec: WorkloadSpec,
    pub(crate) master_spec_same_as_worker: Option<bool>,
    pub(crate) master: Option<WorkloadSpec>,
}

impl Values {
    /// Reads a template from its published form.
    pub(crate) fn new(
        spec: Option<WorkloadSpec>,
        master_spec_same_as_worker: Option<bool>,
        master: Option<TemplateMasterSection>,
    ) -> Result<Self, ApiError> {
        let master = master.unwrap_or_default();
        if asks_for_something(&master.assets) {
            return Err(ApiError::not_yet("master.assets"));
        }
        Ok(Self { spec: spec.unwrap_or_default(), master_spec_same_as_worker, master: master.spec })
    }

    /// Refuses what can never be right.
    pub(crate) fn check(&self, kind: WorkloadKind) -> Result<(), ApiError> {
        let of_the_master = |error: ApiError| error.moved("masterSpec", "master.spec");
        let mut request = CreationRequest {
            spec: Some(self.spec.clone()),
            master_spec_same_as_worker: self.master_spec_same_as_worker,
            master_spec: self.master.clone(),
            ..CreationRequest::default()
        };
        convert::check_kind(kind, &request).map_err(of_the_master)?;
        convert::check_spec(&self.spec)?;
        let Some(master) = &self.master else { return Ok(()) };
        if self.master_spec_same_as_worker == Some(true) {
            let why = "goes without masterSpecSameAsWorker; leave out one of them";
            return Err(ApiError::field("master.spec", why));
        }
        let checked = convert::check_spec(master).map_err(convert::of_the_master);
        checked.and_then(|()| convert::fill_master(&mut request)).map_err(of_the_master)
    }

    /// These values, with those of `below` where one is missing.
    pub(crate) fn over(self, below: Self) -> Self {
        let master = match (self.master, below.master) {
            (own, _) if self.master_spec_same_as_worker == Some(true) => own,
            (Some(own), Some(below)) => Some(own.over(below)),
            (own, below) => own.or(below),
        };
        // A specification of the master implies that it differs from the workers.
        let below_same = below.master_spec_same_as_worker.filter(|_| master.is_none());
        Self {
            spec: self.spec.over(below.spec),
            master_spec_same_as_worker: self.master_spec_same_as_worker.or(below_same),
            master,
        }
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

impl Template {
    /// A template without values.
    pub(crate) fn new(description: Option<String>, workload_type: WorkloadType) -> Self {
        let (spec, names) = (Value::Null, Vec::new());
        let (master, master_spec_same_as_worker) = (None, None);
        Self { description, workload_type, spec, master_spec_same_as_worker, master, names }
    }

    /// Values of the template.
    pub(crate) fn values(&self) -> Result<Values, ApiError> {
        Ok(Values {
            spec: read_part("spec", self.spec.clone())?,
            master_spec_same_as_worker: self.master_spec_same_as_worker,
            master: self.master.clone().map(|spec| read_part("master.spec", spec)).transpose()?,
        })
    }

    /// Takes these values, whose assets must be there for a template in this scope.
    pub(crate) fn set(
        &mut self,
        view: &View,
        scope: Scope,
        values: &Values,
    ) -> Result<(), orchestrator::Error> {
        let assets = values.spec.assets.clone().unwrap_or_default();
        self.names = assets::keys(view, scope, &assets)?;
        self.spec = wire(&values.spec);
        self.master = values.master.as_ref().map(wire);
        self.master_spec_same_as_worker = values.master_spec_same_as_worker;
        Ok(())
    }

    /// Takes values away, such as `spec.image`.
    pub(crate) fn clear(&mut self, fields: &[String]) -> Result<(), ApiError> {
        let mut all = json!({
            "spec": self.spec,
            "master": {"spec": self.master},
            "masterSpecSameAsWorker": self.master_spec_same_as_worker,
        });
        for (at, path) in fields.iter().enumerate() {
            if take_part(&mut all, path).is_none_or(|value| value.is_null()) {
                let why = format!(
                    "`{}` is not set; give a path such as `spec.image`",
                    units::shown(path)
                );
                return Err(ApiError::field(&format!("fieldsToClear[{at}]"), why));
            }
        }
        let left = |value: Option<Value>| value.filter(|value| !value.is_null());
        self.master = left(take_part(&mut all, "master.spec"));
        self.master_spec_same_as_worker =
            left(take_part(&mut all, "masterSpecSameAsWorker")).and_then(|same| same.as_bool());
        self.spec = take_part(&mut all, "spec").unwrap_or_else(|| json!({}));
        Ok(())
    }
}

/// A template as it is shown.
pub(crate) fn shown(state: &Backend, item: &Item<Template>) -> WorkloadTemplate {
    let (object, body) = (&item.object, &item.body);
    let ids = Ids::of(object.scope, state);
    let project = ids.project.map(|id| id.to_string());
    let scope_id = ids.cluster.clone().or(ids.department.clone()).or(project);
    let meta = TemplateMetaFields {
        id: object.id.clone(),
        name: object.name.clone(),
        description: body.description.clone(),
        workload_type: body.workload_type,
        scope_type: scopes::kind_of(object.scope),
        scope_id: scope_id.unwrap_or_else(|| TENANT_ID.to_string()),
        cluster_id: ids.cluster,
        department_id: ids.department,
        project_id: ids.project,
        created_by: object.created_by.clone(),
        created_at: object.created_at.into(),
        updated_by: object.updated_by.clone(),
        updated_at: object.updated_at.into(),
    };
    // A part of one that cannot be read any more is left out here, and refused where it is used.
    let spec = body.master.clone().and_then(|spec| serde_json::from_value(spec).ok());
    WorkloadTemplate {
        meta,
        spec: body.spec.clone(),
        master_spec_same_as_worker: body.master_spec_same_as_worker,
        master: spec.map(|spec| TemplateMasterSection { spec: Some(spec), assets: None }),
    }
}

impl Row<crate::Listed> for Item<Template> {
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
