//! Whose things are. Owns: scopes on the wire and in the core, and which scopes lie around another.

use api_types::ScopeType;
use control::Scope;
use control::view::View;
use http_kit::Fault;

use crate::State;
use crate::convert;

/// A scope as most requests name it: its kind, and the id that goes with the kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedScope<'a> {
    pub(crate) kind: ScopeType,
    pub(crate) cluster: Option<&'a str>,
    pub(crate) department: Option<&'a str>,
    pub(crate) project: Option<u64>,
}

impl State {
    /// The scope that a request names; it must exist. `path` is where its fields are: `meta.`.
    pub(crate) fn scope(&self, path: &str, named: NamedScope<'_>) -> Result<Scope, Fault> {
        convert::check_cluster(named.cluster, &self.context())?;
        let at = |field: &str, why: String| Fault::field(&format!("{path}{field}"), why);
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
    pub(crate) fn scope_by_id(
        &self,
        path: &str,
        kind: ScopeType,
        id: Option<&str>,
    ) -> Result<Scope, Fault> {
        let mut named = NamedScope { kind, cluster: None, department: None, project: None };
        let field = format!("{path}scopeId");
        let needed = || Fault::field(&field, format!("must be set with scope {}", word(kind)));
        match kind {
            ScopeType::System | ScopeType::Tenant => {}
            ScopeType::Cluster => named.cluster = id,
            ScopeType::Department => named.department = Some(id.ok_or_else(needed)?),
            ScopeType::Project => {
                let id = id.ok_or_else(needed)?;
                named.project = Some(convert::project_id(&field, id)?);
            }
        }
        self.scope(path, named)
    }

    /// The scope of a department, which must exist.
    pub(crate) fn department(&self, id: &str) -> Result<Scope, Fault> {
        let view = self.control.view();
        let found = id.parse().ok().filter(|id| view.departments.contains_key(id));
        found.map(Scope::Department).ok_or_else(|| Fault::no_such("department", id))
    }

    /// The scope of a project, which must exist.
    pub(crate) fn project(&self, id: u64) -> Result<Scope, Fault> {
        if self.control.view().projects.contains_key(&id) {
            return Ok(Scope::Project(id));
        }
        Err(Fault::no_such("project", &id.to_string()))
    }
}

/// A scope and those around it, the nearest first.
pub(crate) fn around(scope: Scope, view: &View) -> Vec<Scope> {
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
pub(crate) struct Ids {
    pub(crate) cluster: Option<String>,
    pub(crate) department: Option<String>,
    pub(crate) project: Option<u64>,
}

impl Ids {
    pub(crate) fn of(scope: Scope, state: &State) -> Self {
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

/// What a scope is on the wire.
pub(crate) const fn kind_of(scope: Scope) -> ScopeType {
    match scope {
        Scope::System => ScopeType::System,
        Scope::Tenant => ScopeType::Tenant,
        Scope::Cluster => ScopeType::Cluster,
        Scope::Department(_) => ScopeType::Department,
        Scope::Project(_) => ScopeType::Project,
    }
}

/// The word for a kind of scope.
pub(crate) const fn word(kind: ScopeType) -> &'static str {
    match kind {
        ScopeType::System => "system",
        ScopeType::Tenant => "tenant",
        ScopeType::Cluster => "cluster",
        ScopeType::Department => "department",
        ScopeType::Project => "project",
    }
}

/// The kind of scope with this word.
pub(crate) fn named(field: &str, text: &str) -> Result<ScopeType, Fault> {
    use ScopeType::{Cluster, Department, Project, System, Tenant};
    let all = [System, Tenant, Cluster, Department, Project];
    all.into_iter().find(|kind| word(*kind) == text).ok_or_else(|| {
        let why = format!("`{text}` is no scope; system, tenant, cluster, department or project");
        Fault::field(field, why)
    })
}
