//! Number and size of objects, updated as they are created and deleted. Owns: the groups of
//! objects, and the check of the limits. Does not know about: the contents of an object.

use std::collections::BTreeMap;
use std::sync::Arc;

use command::NewObject;
use serde_json::Value;
use spec::{UserLimit, UserLimits};
use view::{Object, SECRETS, Scope};

use super::Documents;
use crate::Error;

/// A group of objects: scope and owner.
type Group = (Scope, String);

/// Number and size of the living objects.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    /// Number of each kind in each group.
    counts: BTreeMap<(Group, Arc<str>), u64>,
    /// Bytes of names and bodies of each group, as JSON.
    bytes: BTreeMap<Group, u64>,
}

impl Sizes {
    pub(super) fn add(&mut self, object: &Object) {
        let group = (object.scope, object.owner.clone());
        *self.bytes.entry(group.clone()).or_default() += bytes_of(&object.name, &object.body);
        *self.counts.entry((group, object.kind.clone())).or_default() += 1;
    }

    pub(super) fn take_out(&mut self, object: &Object) {
        let group = (object.scope, object.owner.clone());
        let bytes = bytes_of(&object.name, &object.body);
        take(&mut self.bytes, group.clone(), bytes);
        take(&mut self.counts, (group, object.kind.clone()), 1);
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

/// `true` for a group that one user can fill without permissions over others.
fn is_of_one((scope, owner): &Group) -> bool {
    !owner.is_empty() || matches!(scope, Scope::Project(_) | Scope::Department(_))
}

impl Documents {
    /// Checks that all of these fit the limits beside the existing objects. They are of one kind,
    /// scope and owner.
    pub(super) fn may_be_more(&self, new: &[&NewObject], limits: &UserLimits) -> Result<(), Error> {
        let Some(one) = new.first() else { return Ok(()) };
        let sizes = new.iter().map(|new| bytes_beside_secrets(&new.body));
        limits.check(UserLimit::ObjectBytes, sizes.max().unwrap_or_default())?;
        let more = new.len() as u64;
        let there = self.objects.shelf(one.kind).map_or(0, |shelf| shelf.len() as u64);
        limits.check(UserLimit::Objects, there + more)?;
        let group = (one.scope, one.owner.clone());
        if !is_of_one(&group) {
            return Ok(());
        }
        let bytes: u64 = new.iter().map(|new| bytes_of(&new.name, &new.body)).sum();
        let there = self.sizes.bytes.get(&group).copied().unwrap_or_default();
        limits.check(UserLimit::ObjectsOfOneBytes, there + bytes)?;
        // The oldest are deleted for a new one.
        if one.newest.is_some() {
            return Ok(());
        }
        let there = self.sizes.counts.get(&(group, one.kind.into())).copied().unwrap_or_default();
        Ok(limits.check(UserLimit::ObjectsOfOne, there + more)?)
    }

    /// Checks that an object can become another one. A smaller one is always allowed.
    pub(super) fn may_grow(
        &self,
        before: &Object,
        after: &Object,
        limits: &UserLimits,
    ) -> Result<(), Error> {
        let [was, is] = [before, after].map(|object| bytes_beside_secrets(&object.body));
        if is > was {
            limits.check(UserLimit::ObjectBytes, is)?;
        }
        let [was, is] = [before, after].map(|object| bytes_of(&object.name, &object.body));
        let group = (after.scope, after.owner.clone());
        if is <= was || !is_of_one(&group) {
            return Ok(());
        }
        let there = self.sizes.bytes.get(&group).copied().unwrap_or_default();
        Ok(limits.check(UserLimit::ObjectsOfOneBytes, there + (is - was))?)
    }
}
