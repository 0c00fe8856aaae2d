//! Access rules as they are kept, and looked up by subject.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::{Family, Grant, Item};
use auth::{Principal, Role};
use serde::{Deserialize, Serialize};
use view::{Object, ObjectsById};

/// A role for a subject. Its scope is the object's, its subject the object's owner: it ends with
/// either.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AccessRule {
    pub(crate) role_id: u64,
    /// The subject as written in the rule.
    pub(crate) subject_id: String,
    /// True if it is a group of the login provider, which is no object and owns nothing.
    #[serde(default)]
    pub(crate) group: bool,
}

impl AccessRule {
    /// Subject that the rule in this object gives the role to: a principal, or [`group_key`].
    pub(crate) fn subject(&self, object: &Object) -> String {
        if self.group { group_key(&self.subject_id) } else { object.owner.clone() }
    }
}

/// A group as a subject; no principal is called so.
pub(crate) fn group_key(group: &str) -> String {
    format!("group/{group}")
}

impl Family for AccessRule {
    const KIND: &'static str = "access-rule";
    const NUMBERED: bool = true;
}

/// Grants of each subject.
#[derive(Debug, Default)]
pub(crate) struct RuleIndex {
    /// The rules it was made from.
    from: Option<Arc<ObjectsById>>,
    grants: BTreeMap<String, Arc<[Grant]>>,
}

impl RuleIndex {
    /// True if it was made from these rules.
    pub(crate) fn is_of(&self, rules: Option<&Arc<ObjectsById>>) -> bool {
        match (&self.from, rules) {
            (None, None) => true,
            (Some(own), Some(rules)) => Arc::ptr_eq(own, rules),
            _ => false,
        }
    }

    /// The index of these rules. A rule that cannot be read grants nothing.
    pub(crate) fn new(rules: Option<&Arc<ObjectsById>>) -> Self {
        let mut grants: BTreeMap<String, Vec<Grant>> = BTreeMap::new();
        for object in rules.into_iter().flat_map(|rules| rules.values()) {
            let Ok(rule) = Item::<AccessRule>::of(object) else { continue };
            if let Some(role) = Role::by_id(rule.body.role_id) {
                let grant = Grant { scope: object.scope, role };
                grants.entry(rule.body.subject(object)).or_default().push(grant);
            }
        }
        let grants = grants.into_iter().map(|(who, grants)| (who, grants.into())).collect();
        Self { from: rules.cloned(), grants }
    }

    /// Grants of a principal, its own and those of its groups.
    pub(crate) fn of(&self, principal: &Principal, groups: &[String]) -> Arc<[Grant]> {
        let of = |subject: &str| self.grants.get(subject).cloned();
        let own = of(&principal.to_string()).unwrap_or_default();
        let by_groups = groups.iter().filter_map(|group| of(&group_key(group)));
        by_groups.fold(own, |all, more| all.iter().chain(&*more).copied().collect())
    }
}
