//! Scopes that requests name. Owns: scopes on the wire and in the core, and the scopes around
//! another.

use std::sync::Arc;

use api_types::ScopeType;
use axum::http::StatusCode;
use control::Handle;
use http_kit::ApiError;
use spec::WorkloadKind;
use uuid::Uuid;
use view::{Scope, View, WorkloadView};

use crate::Backend;

/// A scope as most requests name it: its kind, and the id that the kind needs.
#[derive(Debug, Clone, Copy)]
pub struct NamedScope<'a> {
    /// Its kind.
    pub kind: ScopeType,
    /// Id of the cluster.
    pub cluster: Option<&'a str>,
    /// Id of the department.
    pub department: Option<&'a str>,
    /// Id of the project.
    pub project: Option<u64>,
}

impl Backend {
    /// Refuses another cluster than the one there is. Leaving it out means that one.
    pub fn check_cluster(&self, asked: Option<&str>) -> Result<(), ApiError> {
        let own = self.control.cluster().uuid.to_string();
        match asked {
            Some(asked) if asked != own => {
                let why = format!("no cluster `{asked}`; the only one is {own}");
                Err(ApiError::new(StatusCode::NOT_FOUND, why))
            }
            _ => Ok(()),
        }
    }

    /// Refuses an id in an address that is not that of the cluster.
    pub fn must_be_cluster(&self, id: &str) -> Result<(), ApiError> {
        let own = self.control.cluster().uuid.to_string() == id;
        if own { Ok(()) } else { Err(ApiError::no_such("cluster", id)) }
    }

    /// The scope that a request names; it must exist. `path` is where its fields are: `meta.`.
    pub fn scope(&self, path: &str, named: NamedScope<'_>) -> Result<Scope, ApiError> {
        self.check_cluster(named.cluster)?;
        let at = |field: &str, why: String| ApiError::field(&format!("{path}{field}"), why);
        let needs = |field, kind| at(field, format!("must be set with scope {kind}"));
        let department = named.department.map(|id| self.department(id)).transpose()?;
        let stray = |field, kind| at(field, format!("goes with scope {kind} only"));
        if named.project.is_some() && named.kind != ScopeType::Project {
            return Err(stray("projectId", "project"));
        }
        match named.kind {
            ScopeType::System => {
                let why =
                    "`system` is the program's own; use tenant, cluster, department or project";
                Err(at("scope", why.to_owned()))
            }
            ScopeType::Tenant | ScopeType::Cluster if department.is_some() => {
                Err(stray("departmentId", "department or project"))
            }
            ScopeType::Tenant => Ok(Scope::Tenant),
            ScopeType::Cluster => Ok(Scope::Cluster),
            ScopeType::Department => department.ok_or_else(|| needs("departmentId", "department")),
            ScopeType::Project => {
                self.project(named.project.ok_or_else(|| needs("projectId", "project"))?)
            }
        }
    }

    /// The scope that a request names by its kind and one id. `path` is where its fields are.
    pub fn scope_by_id(
        &self,
        path: &str,
        kind: ScopeType,
        id: Option<&str>,
    ) -> Result<Scope, ApiError> {
        let mut named = NamedScope { kind, cluster: None, department: None, project: None };
        let field = format!("{path}scopeId");
        let needed = || ApiError::field(&field, format!("must be set with scope {}", word(kind)));
        match kind {
            ScopeType::System | ScopeType::Tenant => {}
            ScopeType::Cluster => named.cluster = id,
            ScopeType::Department => named.department = Some(id.ok_or_else(needed)?),
            ScopeType::Project => {
                let id = id.ok_or_else(needed)?;
                named.project = Some(project_id(&field, id)?);
            }
        }
        self.scope(path, named)
    }

    /// The scope of a department, which must exist.
    pub fn department(&self, id: &str) -> Result<Scope, ApiError> {
        let view = self.control.view();
        let found = id.parse().ok().filter(|id| view.departments.contains_key(id));
        found.map(Scope::Department).ok_or_else(|| ApiError::no_such("department", id))
    }

    /// The scope of a project, which must exist.
    pub fn project(&self, id: u64) -> Result<Scope, ApiError> {
        if self.control.view().projects.contains_key(&id) {
            return Ok(Scope::Project(id));
        }
        Err(ApiError::no_such("project", &id.to_string()))
    }
}

/// A scope and those around it, the nearest first.
pub fn around(scope: Scope, view: &View) -> Vec<Scope> {
    let mut all = vec![scope];
    while let Some(outer) = match all.last() {
        Some(Scope::Project(id)) => Some(match view.projects.get(id) {
            Some(project) => Scope::Department(project.department_id),
            None => Scope::Cluster,
        }),
        Some(Scope::Department(_)) => Some(Scope::Cluster),
        Some(Scope::Cluster) => Some(Scope::Tenant),
        Some(Scope::Tenant) => Some(Scope::System),
        _ => None,
    } {
        all.push(outer);
    }
    all
}

/// The cluster, department or project that a scope is.
#[derive(Debug, Default)]
pub struct Ids {
    /// Id of the cluster.
    pub cluster: Option<String>,
    /// Id of the department.
    pub department: Option<String>,
    /// Id of the project.
    pub project: Option<u64>,
}

impl Ids {
    /// Ids of a scope.
    pub fn of(scope: Scope, state: &Backend) -> Self {
        let mut ids = Self::default();
        match scope {
            Scope::System | Scope::Tenant => {}
            Scope::Cluster => ids.cluster = Some(state.control.cluster().uuid.to_string()),
            Scope::Department(id) => ids.department = Some(id.to_string()),
            Scope::Project(id) => ids.project = Some(id),
        }
        ids
    }
}

/// Kind of a scope on the wire.
pub const fn kind_of(scope: Scope) -> ScopeType {
    match scope {
        Scope::System => ScopeType::System,
        Scope::Tenant => ScopeType::Tenant,
        Scope::Cluster => ScopeType::Cluster,
        Scope::Department(_) => ScopeType::Department,
        Scope::Project(_) => ScopeType::Project,
    }
}

/// The word for a kind of scope.
pub const fn word(kind: ScopeType) -> &'static str {
    match kind {
        ScopeType::System => "system",
        ScopeType::Tenant => "tenant",
        ScopeType::Cluster => "cluster",
        ScopeType::Department => "department",
        ScopeType::Project => "project",
    }
}

/// The kind of scope with this word.
pub fn named(field: &str, text: &str) -> Result<ScopeType, ApiError> {
    use ScopeType::{Cluster, Department, Project, System, Tenant};
    let all = [System, Tenant, Cluster, Department, Project];
    all.into_iter().find(|kind| word(*kind) == text).ok_or_else(|| {
        let why = format!(
            "`{text}` is not a valid scope; write system, tenant, cluster, department or project"
        );
        ApiError::field(field, why)
    })
}

/// A project id from the wire.
pub fn project_id(field: &str, text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| {
        let why = format!(
            "`{text}` is not a project id; use the id, a string of digits, that \
             GET /api/v1/org-unit/projects shows"
        );
        ApiError::field(field, why)
    })
}

/// A workload id from the wire.
pub fn workload_id(text: &str) -> Result<Uuid, ApiError> {
    text.parse().map_err(|_| ApiError::no_such("workload", text))
}

/// The living workload with this id, in memory or archived.
pub async fn find_workload(control: &Handle, id: &str) -> Result<Arc<WorkloadView>, ApiError> {
    let id = workload_id(id)?;
    let found = control.find_workload(id).await?;
    found.ok_or_else(|| ApiError::no_such("workload", &id.to_string()))
}

/// The workload with this id, if it is of this kind.
pub async fn find_of_kind(
    control: &Handle,
    kind: WorkloadKind,
    id: &str,
) -> Result<Arc<WorkloadView>, ApiError> {
    let name = match kind {
        WorkloadKind::Training => "training",
        WorkloadKind::Workspace => "workspace",
        WorkloadKind::Distributed => "distributed workload",
        WorkloadKind::Inference => "inference",
    };
    let parsed = id.parse().map_err(|_| ApiError::no_such(name, id))?;
    let found = control.find_workload(parsed).await?;
    found.filter(|found| found.spec.kind == kind).ok_or_else(|| ApiError::no_such(name, id))
}
