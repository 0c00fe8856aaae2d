//! Visibility of changes for a caller. Owns: decisions equal to those of the lists, from the parts
//! of an object that are known after its deletion.

use api_types::ChangeKind;
use auth::Action::Read;
use auth::{Resource, Role};
use control::feed::{Key, Place};
use view::Scope;

use access::{Caller, Grant};

use crate::Context;
use crate::wire::{kind_of, resource_of};

/// A role, where it was given, and the department around that.
#[derive(Debug, Clone, Copy)]
struct ScopedGrant {
    scope: Scope,
    department: Option<u64>,
    role: &'static Role,
}

impl PartialEq for ScopedGrant {
    fn eq(&self, other: &Self) -> bool {
        (self.scope, self.role.id) == (other.scope, other.role.id)
    }
}

/// Visibility for a caller. Equal values show the same lasting objects.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Visibility {
    all: bool,
    given: Vec<ScopedGrant>,
}

/// True if a place lies in a scope. As `access::contains`, of which the view may have changed.
fn contains(outer: Scope, inner: Place) -> bool {
    match (outer, inner.scope) {
        (Scope::Department(id), Scope::Project(_)) => inner.department == Some(id),
        (Scope::Tenant, _) => true,
        (Scope::Cluster, inner) => !matches!(inner, Scope::Tenant | Scope::System),
        (outer, inner) => outer == inner && outer != Scope::System,
    }
}

impl Visibility {
    pub(super) fn of(caller: &Caller) -> Self {
        let department = |scope| match scope {
            Scope::Project(id) => caller.view.projects.get(&id).map(|found| found.department_id),
            _ => None,
        };
        let given = |grant: &Grant| ScopedGrant {
            scope: grant.scope,
            department: department(grant.scope),
            role: grant.role,
        };
        let all = caller.principal.is_built_in();
        Self { all, given: caller.grants.iter().map(given).collect() }
    }

    /// True if an object may be seen.
    pub(super) fn has(&self, context: &Context, key: &Key, place: Place) -> bool {
        if self.all {
            return true;
        }
        let both = kind_of(key, context).zip(resource_of(key, context));
        let Some((kind, resource)) = both else { return false };
        let mut given = self.given.iter().filter(|given| given.role.allows(Read, resource));
        given.any(|given| match kind {
            ChangeKind::Node | ChangeKind::Gpu | ChangeKind::NodePool | ChangeKind::User => true,
            // An asset is seen in its own scope, and in scopes where it can be used.
            ChangeKind::Asset | ChangeKind::Template => {
                let here = Place { scope: given.scope, department: given.department };
                contains(given.scope, place) || contains(place.scope, here)
            }
            _ => contains(given.scope, place),
        })
    }

    /// True if anything of a kind may be seen anywhere.
    pub(super) fn has_any(&self, context: &Context, kind: ChangeKind) -> bool {
        let allows = |resource| self.given.iter().any(|given| given.role.allows(Read, resource));
        // The server is no secret.
        self.all || kind == ChangeKind::Server || resources(context, kind).into_iter().any(allows)
    }
}

/// Resources that roles name for the objects of a kind.
pub(super) fn resources(context: &Context, kind: ChangeKind) -> Vec<Resource> {
    match kind {
        ChangeKind::Department => vec![Resource::Department],
        ChangeKind::Project => vec![Resource::Project],
        ChangeKind::NodePool => vec![Resource::NodePools],
        ChangeKind::Node | ChangeKind::Gpu => vec![Resource::Nodes],
        ChangeKind::Asset | ChangeKind::Template | ChangeKind::User => {
            let own = context.documents.iter().filter(|of| of.kind == kind);
            own.map(|of| of.resource).collect()
        }
        ChangeKind::Reason | ChangeKind::Event | ChangeKind::Workload | ChangeKind::Pod => {
            vec![Resource::Workloads]
        }
        ChangeKind::Server => Vec::new(),
    }
}
