//! Rights that following an advice requires. Owns: the action and the resource of each requirement.

use access::{Caller, resource_of};
use auth::{Action, Resource};
use convert::Requirement;
use view::{Scope, WorkloadView};

/// `true` if a caller has a right that an advice requires.
pub(crate) fn may(caller: &Caller, requirement: Requirement<'_>) -> bool {
    let to = |workload: &WorkloadView, action: Action| {
        let resource = resource_of(workload.spec.kind);
        caller.must_to_workload(action, resource, workload).is_ok()
    };
    match requirement {
        Requirement::Resubmit(own) => to(own, Action::Create) && to(own, Action::Delete),
        Requirement::Update(own) => to(own, Action::Update),
        Requirement::Delete(other) => to(other, Action::Delete),
        Requirement::Project(id) => {
            caller.may(Action::Update, Resource::Project, Scope::Project(id))
        }
        Requirement::Department(id) => {
            caller.may(Action::Update, Resource::Department, Scope::Department(id))
        }
        Requirement::Nodes => caller.may(Action::Update, Resource::Nodes, Scope::Tenant),
    }
}
