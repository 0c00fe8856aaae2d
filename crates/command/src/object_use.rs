//! Use of the limits for objects. Owns: number and bytes of the objects that belong together or are
//! of one user, and if there may be more. Does not know about: the contents of an object.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use spec::{OverLimit, UserLimit, UserLimits};
use view::{Object, SECRETS, Scope};

use crate::NewObject;

/// Objects that share limits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Share {
    /// Objects of a project, a department, or an owner.
    Group(Scope, String),
    /// Objects of a project or a department that a user created.
    UserInGroup(Scope, String),
    /// Objects of all projects and departments that a user created.
    User(String),
    /// Objects that a user created anywhere, beside those with an owner.
    UserAnywhere(String),
}

impl Share {
    /// Limit of the number of one kind.
    const fn number_limit(&self) -> Option<UserLimit> {
        match self {
            Self::Group(..) => Some(UserLimit::ObjectsOfOne),
            Self::UserInGroup(..) => Some(UserLimit::UserObjectsOfOne),
            Self::User(_) => Some(UserLimit::UserObjects),
            Self::UserAnywhere(_) => None,
        }
    }

    /// Limit of the bytes of all kinds.
    const fn bytes_limit(&self) -> Option<UserLimit> {
        match self {
            Self::Group(..) => Some(UserLimit::ObjectsOfOneBytes),
            Self::UserInGroup(..) => Some(UserLimit::UserObjectsOfOneBytes),
            Self::User(_) => None,
            Self::UserAnywhere(_) => Some(UserLimit::UserObjectsBytes),
        }
    }

    /// The shares of an object.
    fn of(scope: Scope, owner: &str, creator: &str) -> Vec<Self> {
        let group = Self::Group(scope, owner.to_owned());
        match scope {
            _ if !owner.is_empty() => vec![group],
            Scope::Project(_) | Scope::Department(_) => vec![
                group,
                Self::UserInGroup(scope, creator.to_owned()),
                Self::User(creator.to_owned()),
                Self::UserAnywhere(creator.to_owned()),
            ],
            Scope::System | Scope::Tenant | Scope::Cluster => {
                vec![Self::UserAnywhere(creator.to_owned())]
            }
        }
    }
}

/// Number and size of the living objects.
#[derive(Debug, Default)]
pub struct ObjectTable {
    /// Number of each kind in each share.
    counts: BTreeMap<(Share, Arc<str>), u64>,
    /// Bytes of names and bodies of each share, as JSON.
    bytes: BTreeMap<Share, u64>,
}

impl ObjectTable {
    /// Adds an object.
    pub fn add(&mut self, object: &Object) {
        for share in Share::of(object.scope, &object.owner, &object.created_by) {
            *self.bytes.entry(share.clone()).or_default() += bytes_of(&object.name, &object.body);
            *self.counts.entry((share, object.kind.clone())).or_default() += 1;
        }
    }

    /// Takes out an object.
    pub fn free(&mut self, object: &Object) {
        for share in Share::of(object.scope, &object.owner, &object.created_by) {
            take(&mut self.bytes, share.clone(), bytes_of(&object.name, &object.body));
            take(&mut self.counts, (share, object.kind.clone()), 1);
        }
    }

    /// Checks that a user may create all of these. They are of one kind, scope and owner, and there
    /// are `there` objects of the kind.
    ///
    /// # Errors
    /// It would be more than a limit.
    pub fn check_new(
        &self,
        limits: &UserLimits,
        (user, there): (&str, u64),
        new: &[NewObject],
    ) -> Result<(), OverLimit> {
        let Some(one) = new.first() else { return Ok(()) };
        let sizes = new.iter().map(|new| bytes_beside_secrets(&new.body));
        limits.check(UserLimit::ObjectBytes, sizes.max().unwrap_or_default())?;
        let more = new.len() as u64;
        limits.check(UserLimit::Objects, there + more)?;
        let bytes: u64 = new.iter().map(|new| bytes_of(&new.name, &new.body)).sum();
        for share in Share::of(one.scope, &one.owner, user) {
            self.check_bytes(limits, &share, bytes)?;
            // The oldest are deleted for a new one.
            if let (Some(limit), None) = (share.number_limit(), one.newest) {
                let there = self.counts.get(&(share, one.kind.into())).copied();
                limits.check(limit, there.unwrap_or_default() + more)?;
            }
        }
        Ok(())
    }

    /// Checks that an object can become another one. A smaller one is always allowed.
    ///
    /// # Errors
    /// It would be more than a limit.
    pub fn check_change(
        &self,
        limits: &UserLimits,
        before: &Object,
        after: &Object,
    ) -> Result<(), OverLimit> {
        let [was, is] = [before, after].map(|object| bytes_beside_secrets(&object.body));
        if is > was {
            limits.check(UserLimit::ObjectBytes, is)?;
        }
        let [was, is] = [before, after].map(|object| bytes_of(&object.name, &object.body));
        if is > was {
            for share in Share::of(after.scope, &after.owner, &after.created_by) {
                self.check_bytes(limits, &share, is - was)?;
            }
        }
        Ok(())
    }

    fn check_bytes(&self, limits: &UserLimits, share: &Share, more: u64) -> Result<(), OverLimit> {
        let there = self.bytes.get(share).copied().unwrap_or_default();
        share.bytes_limit().map_or(Ok(()), |limit| limits.check(limit, there + more))
    }
}

/// Subtracts from a number, and removes it when it is zero.
fn take<K: Ord>(all: &mut BTreeMap<K, u64>, key: K, less: u64) {
    if let Some(there) = all.get_mut(&key) {
        *there = there.saturating_sub(less);
        if *there == 0 {
            all.remove(&key);
        }
    }
}

/// Bytes of a name and a body, as JSON.
fn bytes_of(name: &str, body: &Value) -> u64 {
    (name.len() + body.to_string().len()) as u64
}

/// Bytes of a body without its secrets.
fn bytes_beside_secrets(body: &Value) -> u64 {
    bytes_of("", body) - body.get(SECRETS).map_or(0, |secrets| bytes_of("", secrets))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use units::Instant;

    use super::*;
    use crate::NewId;

    fn new(scope: Scope, owner: &str) -> NewObject {
        NewObject {
            kind: "environment",
            id: NewId::Any,
            scope,
            owner: owner.to_owned(),
            name: "one".to_owned(),
            body: json!({"a": "b"}),
            newest: None,
        }
    }

    fn object(new: &NewObject, creator: &str) -> Object {
        Object {
            seq: 1,
            kind: new.kind.into(),
            id: "1".to_owned(),
            scope: new.scope,
            owner: new.owner.clone(),
            name: new.name.clone(),
            body: new.body.clone(),
            created_at: Instant(1),
            created_by: creator.to_owned(),
            updated_at: Instant(1),
            updated_by: creator.to_owned(),
        }
    }

    #[test]
    fn a_user_with_all_that_one_may_have_leaves_the_rest_of_a_project_to_others() {
        let (here, there) = (Scope::Project(1), Scope::Project(2));
        let mut limits = UserLimits::default();
        limits.set(UserLimit::ObjectsOfOne, 3);
        limits.set(UserLimit::UserObjectsOfOne, 2);
        limits.set(UserLimit::UserObjects, 4);
        let mut table = ObjectTable::default();
        let over = |table: &ObjectTable, scope, owner, user| {
            let refused = table.check_new(&limits, (user, 0), &[new(scope, owner)]);
            refused.err().map(|over| over.limit)
        };
        for scope in [here, here, there, there] {
            assert_eq!(over(&table, scope, "", "ann"), None);
            table.add(&object(&new(scope, ""), "ann"));
        }
        assert_eq!(over(&table, here, "", "ann"), Some(UserLimit::UserObjectsOfOne));
        assert_eq!(over(&table, Scope::Project(3), "", "ann"), Some(UserLimit::UserObjects));
        assert_eq!(over(&table, Scope::Tenant, "", "ann"), None, "bytes alone count there");
        assert_eq!(over(&table, Scope::Tenant, "user/1", "ann"), None, "her own keys");
        assert_eq!(over(&table, here, "", "bob"), None);
        table.add(&object(&new(here, ""), "bob"));
        assert_eq!(over(&table, here, "", "bob"), Some(UserLimit::ObjectsOfOne));
        table.free(&object(&new(here, ""), "ann"));
        assert_eq!(over(&table, here, "", "ann"), None);
    }

    #[test]
    fn bytes_of_a_user_count_everywhere_and_only_growth_is_refused() {
        let ann = |scope| object(&new(scope, ""), "ann");
        let size = bytes_of("one", &ann(Scope::Tenant).body);
        let mut limits = UserLimits::default();
        limits.set(UserLimit::UserObjectsBytes, 2 * size);
        let mut table = ObjectTable::default();
        table.add(&ann(Scope::Project(1)));
        table.add(&ann(Scope::Tenant));
        let before = ann(Scope::Project(1));
        let larger = Object { body: json!({"a": "bc"}), ..before.clone() };
        let smaller = Object { body: json!({"a": ""}), ..before.clone() };
        let changed =
            |after| table.check_change(&limits, &before, after).map_err(|over| over.limit);
        assert_eq!(changed(&larger), Err(UserLimit::UserObjectsBytes));
        assert_eq!(changed(&smaller), Ok(()));
        for scope in [Scope::Project(3), Scope::Tenant, Scope::Cluster] {
            let refused = table.check_new(&limits, ("ann", 0), &[new(scope, "")]);
            assert_eq!(refused.map_err(|over| over.limit), Err(UserLimit::UserObjectsBytes));
        }
        let of_bob = table.check_new(&limits, ("bob", 0), &[new(Scope::Tenant, "")]);
        assert_eq!(of_bob, Ok(()));
    }
}
