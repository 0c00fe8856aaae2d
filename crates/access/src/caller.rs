//! The caller of a request and its permissions: its roles in scopes, and how scopes are nested.
//! Does not know how it authenticated (`iam`).

use std::collections::BTreeSet;
use std::sync::Arc;

use auth::{Action, Claims, Principal, ROLES, Resource, Role};
use axum::http::StatusCode;
use http_kit::{ApiError, Origin};
use records::AuditDetail;
use spec::WorkloadKind;
use units::Instant;
use view::{Event, Object, OrgUnit, ProjectView, Scope, View, WorkloadView};

/// Route where a caller changes its own password.
pub const OWN_PASSWORD: &str = "/api/v1/me/password";
/// Route where the session of a browser begins, is read and ends.
pub const SESSION: &str = "/elastane/v1/session";
/// The routes that are open to a caller that has to change its password.
pub const BEFORE_OWN_PASSWORD: [&str; 2] = [OWN_PASSWORD, SESSION];

/// Caller of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Name of the caller, as it is recorded.
    pub subject: String,
    /// When this account was created; older objects belong to an earlier account of the name.
    pub since: Instant,
    /// Principal: an access key counts as its user.
    pub principal: Principal,
    /// True if the caller is a program, not a person.
    pub by_program: bool,
    /// The session the token belongs to.
    pub session: Option<String>,
    /// Groups of the user at the login provider; empty for a token that the provider did not
    /// authenticate.
    pub groups: Arc<[String]>,
    /// The roles it has, and where.
    pub grants: Arc<[Grant]>,
    /// View at the time of the request, with the department of each project.
    pub view: Arc<View>,
    /// True if nothing but changing the password is allowed.
    pub must_change_password: bool,
    /// Claims of its token; `None` before there is one.
    pub claims: Option<Arc<Claims>>,
    /// Origin of the request.
    pub origin: Origin,
}

impl Caller {
    /// A caller of whom no more is known.
    pub fn new(principal: Principal, subject: &str, origin: Origin) -> Self {
        Self {
            subject: subject.to_owned(),
            by_program: matches!(principal, Principal::Admin | Principal::ServiceAccount(_)),
            principal,
            since: Instant(0),
            session: None,
            groups: Arc::default(),
            grants: Arc::default(),
            view: Arc::default(),
            must_change_password: false,
            claims: None,
            origin,
        }
    }
}

/// Origin of a request, for the audit log.
pub fn audit_detail(origin: &Origin, by_program: bool, status: Option<StatusCode>) -> AuditDetail {
    AuditDetail {
        by_program,
        source_ip: origin.address.clone(),
        method: origin.method.clone(),
        path: origin.path.clone(),
        request_id: origin.request_id.clone(),
        target_id: String::new(),
        status: status.map(|status| status.as_u16()),
    }
}

/// True if a scope lies in another. The department of a project is that in the view.
pub(crate) fn contains(view: &View, outer: Scope, inner: Scope) -> bool {
    match (outer, inner) {
        (Scope::Tenant, _) => true,
        (Scope::Cluster, inner) => !matches!(inner, Scope::Tenant | Scope::System),
        (Scope::Department(department), Scope::Project(project)) => {
            view.projects.get(&project).is_some_and(|found| found.department_id == department)
        }
        (outer, inner) => outer == inner && outer != Scope::System,
    }
}

/// A role in a scope.
#[derive(Debug, Clone, Copy)]
pub struct Grant {
    /// Scope of the role.
    pub scope: Scope,
    /// The role.
    pub role: &'static Role,
}

/// The projects in which a caller may read a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VisibleProjects {
    /// All projects, and deleted ones.
    All,
    /// Projects with these ids.
    Of(BTreeSet<u64>),
}

impl VisibleProjects {
    /// True if a project is one of them.
    pub fn has(&self, project: u64) -> bool {
        match self {
            Self::All => true,
            Self::Of(projects) => projects.contains(&project),
        }
    }
}

impl Caller {
    /// Refuses a caller that has to change its password first.
    pub fn must_have_own_password(&self) -> Result<(), ApiError> {
        if !self.must_change_password {
            return Ok(());
        }
        let why = format!("the password was given out; change it first with POST {OWN_PASSWORD}");
        Err(ApiError::forbidden(why))
    }

    /// True if the caller may do this in a scope, to what is its own.
    pub fn may(&self, action: Action, resource: Resource, scope: Scope) -> bool {
        let allows = |grant: &Grant| {
            contains(&self.view, grant.scope, scope) && grant.role.allows(action, resource)
        };
        self.principal.is_built_in() || self.grants.iter().any(allows)
    }

    /// True if the caller may read an event of the log.
    pub fn sees_event(&self, event: &Event) -> bool {
        let scope = event.project_id.map_or(Scope::Tenant, Scope::Project);
        self.may(Action::Read, Resource::Workloads, scope)
    }

    /// True if the caller may have anything of the machine: it is its own to protect.
    pub fn administers(&self) -> bool {
        self.may(Action::Update, Resource::SecuritySettings, Scope::Tenant)
    }

    /// True if the caller may do this anywhere.
    pub fn may_somewhere(&self, action: Action, resource: Resource) -> bool {
        self.principal.is_built_in()
            || self.grants.iter().any(|grant| grant.role.allows(action, resource))
    }

    /// True if the caller made the object that this subject made at this time. An object older than
    /// the caller was made by an earlier account of the same name.
    pub fn made(&self, maker: &str, at: Instant) -> bool {
        maker == self.subject && at >= self.since
    }

    /// True if the caller may do this in a scope, to what was made by this subject at this moment.
    fn may_to(
        &self,
        action: Action,
        resource: Resource,
        scope: Scope,
        (maker, made_at): (&str, Instant),
    ) -> bool {
        let own = self.made(maker, made_at) || matches!(action, Action::Create | Action::Read);
        let allows = |grant: &Grant| {
            contains(&self.view, grant.scope, scope)
                && grant.role.allows(action, resource)
                && (own || !grant.role.own_only)
        };
        self.principal.is_built_in() || self.grants.iter().any(allows)
    }

    /// Refuses what the caller may not do.
    pub fn must(&self, action: Action, resource: Resource, scope: Scope) -> Result<(), ApiError> {
        if self.may(action, resource, scope) {
            return Ok(());
        }
        Err(self.refused(action, resource, &format!(" in {}", self.named(scope))))
    }

    /// Refuses an action on a workload that the caller may not perform. A workload that it may not
    /// read is unknown to it.
    pub fn must_to_workload(
        &self,
        action: Action,
        resource: Resource,
        workload: &WorkloadView,
    ) -> Result<(), ApiError> {
        let scope = Scope::Project(workload.project_id);
        let made = (workload.spec.submitted_by.as_str(), workload.created_at);
        if self.may_to(action, resource, scope, made) {
            return Ok(());
        }
        if !self.may(Action::Read, resource, scope) {
            return Err(ApiError::no_such("workload", &workload.id.to_string()));
        }
        Err(self.refused_to(action, resource, scope))
    }

    /// Refuses an action on an object that the caller may not perform. An object that it may not
    /// see is unknown to it.
    pub fn must_to_object(
        &self,
        action: Action,
        resource: Resource,
        object: &Object,
    ) -> Result<(), ApiError> {
        let made = (object.created_by.as_str(), object.created_at);
        if self.may_to(action, resource, object.scope, made) {
            return Ok(());
        }
        self.must_see(resource, object)?;
        Err(self.refused_to(action, resource, object.scope))
    }

    /// True if the caller may see an object: where it is, or where it can be used.
    pub fn sees(&self, resource: Resource, object: &Object) -> bool {
        self.sees_in(resource, object.scope)
    }

    fn sees_in(&self, resource: Resource, here: Scope) -> bool {
        let shows = |grant: &Grant| {
            let given = grant.scope;
            grant.role.allows(Action::Read, resource)
                && (contains(&self.view, given, here) || contains(&self.view, here, given))
        };
        self.principal.is_built_in() || self.grants.iter().any(shows)
    }

    /// Refuses to show an object that the caller may not see, in the words for an unknown one.
    pub fn must_see(&self, resource: Resource, object: &Object) -> Result<(), ApiError> {
        if self.sees(resource, object) {
            return Ok(());
        }
        Err(ApiError::no_such(&object.kind, &object.id))
    }

    /// Refuses to show what is in a scope where the caller may see nothing of the kind.
    pub fn must_see_in(&self, resource: Resource, scope: Scope) -> Result<(), ApiError> {
        if self.sees_in(resource, scope) {
            return Ok(());
        }
        let place = format!(" in {}", self.named(scope));
        Err(self.refused(Action::Read, resource, &place))
    }

    /// The refusal of an action on a resource; `place` follows the resource and begins with a
    /// space, if not empty.
    pub fn refused(&self, action: Action, resource: Resource, place: &str) -> ApiError {
        self.lacks(action, resource, place, |_| true)
    }

    /// The refusal of an action on what somebody made in a scope.
    fn refused_to(&self, action: Action, resource: Resource, scope: Scope) -> ApiError {
        let place = self.named(scope);
        if self.may(action, resource, scope) {
            let whose = format!(" of others in {place}");
            return self.lacks(action, resource, &whose, |role| !role.own_only);
        }
        self.lacks(action, resource, &format!(" in {place}"), |_| true)
    }

    fn lacks(
        &self,
        action: Action,
        resource: Resource,
        place: &str,
        is_enough: fn(&Role) -> bool,
    ) -> ApiError {
        let allows = |role: &&Role| role.allows(action, resource) && is_enough(role);
        let why = format!(
            "{} may not {} {}{place}; ask an administrator for a role that allows it",
            self.subject,
            action.word(),
            resource.shown().to_lowercase()
        );
        let missing = api_types::MissingPermission {
            action: action.word().to_owned(),
            resource_type: resource.word().to_owned(),
            roles: ROLES.iter().filter(allows).map(|role| role.name.to_owned()).collect(),
        };
        ApiError { missing_permission: Some(Box::new(missing)), ..ApiError::forbidden(why) }
    }

    /// A scope in words, by its name if the caller may see it.
    fn named(&self, scope: Scope) -> String {
        let (resource, name) = match scope {
            Scope::Project(id) => {
                (Resource::Project, self.view.projects.get(&id).map(|one| &one.unit.name))
            }
            Scope::Department(id) => {
                (Resource::Department, self.view.departments.get(&id).map(|one| &one.name))
            }
            Scope::System | Scope::Tenant | Scope::Cluster => return in_words(scope),
        };
        match name.filter(|_| self.sees_in(resource, scope)) {
            Some(name) => format!("{} {name}", resource.shown().to_lowercase()),
            None => in_words(scope),
        }
    }

    /// The projects in which the caller may read this.
    pub fn sight(&self, resource: Resource, view: &View) -> VisibleProjects {
        // The cluster is everything there is, also what was in projects that are gone.
        if self.may(Action::Read, resource, Scope::Cluster) {
            return VisibleProjects::All;
        }
        let seen = |id: &&u64| self.may(Action::Read, resource, Scope::Project(**id));
        VisibleProjects::Of(view.projects.keys().filter(seen).copied().collect())
    }

    /// The departments that the caller may see.
    pub fn departments<'a>(&self, view: &'a View) -> impl Iterator<Item = &'a OrgUnit> {
        let seen = |id| self.may(Action::Read, Resource::Department, Scope::Department(id));
        view.departments.values().map(AsRef::as_ref).filter(move |department| seen(department.id))
    }

    /// The projects that the caller may see.
    pub fn projects<'a>(&self, view: &'a View) -> impl Iterator<Item = &'a ProjectView> + use<'a> {
        let sight = self.sight(Resource::Project, view);
        view.projects.values().map(AsRef::as_ref).filter(move |project| sight.has(project.unit.id))
    }

    /// True if the caller may grant a role in a scope: only permissions it has itself.
    pub fn may_give(&self, role: &Role, scope: Scope) -> bool {
        let covers =
            |grant: &Grant| contains(&self.view, grant.scope, scope) && grant.role.covers(role);
        self.principal.is_built_in() || self.grants.iter().any(covers)
    }
}

/// The resource that workloads of a kind are.
pub const fn resource_of(kind: WorkloadKind) -> Resource {
    match kind {
        // There is no published resource for distributed workloads alone.
        WorkloadKind::Training | WorkloadKind::Distributed => Resource::Trainings,
        WorkloadKind::Workspace => Resource::Workspaces,
        WorkloadKind::Inference => Resource::Inferences,
    }
}

/// A scope in words.
pub fn in_words(scope: Scope) -> String {
    match scope {
        Scope::System | Scope::Tenant => "the whole installation".to_owned(),
        Scope::Cluster => "the cluster".to_owned(),
        Scope::Department(id) => format!("department {id}"),
        Scope::Project(id) => format!("project {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_department(project: u64, department_id: u64) -> (u64, Arc<ProjectView>) {
        let view = ProjectView { department_id, ..ProjectView::default() };
        (project, Arc::new(view))
    }

    #[test]
    fn scopes_lie_in_each_other_and_never_the_other_way_round() {
        use Scope::{Cluster, Department, Project, System, Tenant};
        let projects = [in_department(1, 1), in_department(2, 2)].into_iter().collect();
        let view = View { projects, ..View::default() };
        let contains = |outer, inner| contains(&view, outer, inner);
        let nested = [Tenant, Cluster, Department(1), Project(1)];
        for (outer_at, outer) in nested.into_iter().enumerate() {
            for (inner_at, inner) in nested.into_iter().enumerate() {
                assert_eq!(contains(outer, inner), outer_at <= inner_at, "{outer} {inner}");
            }
        }
        assert!(!contains(Project(1), Project(2)) && !contains(Department(2), Project(1)));
        assert!(contains(Department(2), Project(2)) && !contains(Department(1), Project(2)));
        assert!(!contains(Department(1), Project(3)), "its department is unknown");
        assert!(!contains(System, Tenant) && !contains(System, System));
        assert!(!contains(Cluster, System));
    }
}
