//! A change of the labels, taints and scheduling mode that administrators set on a node. Owns: the
//! allowed values.

use std::collections::BTreeMap;

use model::{Effect, HOST_LABEL, Taint};
use serde::{Deserialize, Serialize};
use spec::{NodeGiven, Scheduling};

use super::Node;
use crate::Error;
use crate::pools::check_label;

/// Maximum number of taints of a node.
const TAINTS_MAX: usize = 50;

/// Changes of the settings of a node. A field without a value stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeChange {
    /// Labels to set; a label without a value is removed.
    pub labels: BTreeMap<String, Option<String>>,
    /// True if all earlier set labels are removed.
    pub replaces_labels: bool,
    /// Taints to set. One replaces another of the same key and effect.
    #[serde(with = "spec::taints")]
    pub taints: Vec<Taint>,
    /// Keys of taints to remove, with an effect or with all.
    #[serde(with = "spec::taint_keys")]
    pub removed_taints: Vec<(String, Option<Effect>)>,
    /// Scheduling mode: open, cordoned or draining.
    pub scheduling: Option<Scheduling>,
}

impl NodeChange {
    /// Name of the change in the audit log.
    pub(crate) const fn verb(&self) -> &'static str {
        match self.scheduling {
            Some(Scheduling::Enabled) => "node.uncordon",
            Some(Scheduling::Disabled) => "node.cordon",
            Some(Scheduling::Draining) => "node.drain",
            None if !self.taints.is_empty() || !self.removed_taints.is_empty() => "node.taint",
            None => "node.label",
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        for (key, value) in &self.labels {
            check_label(key, value.as_deref().unwrap_or_default())?;
            if key == HOST_LABEL {
                let why = format!("label {key} is the name of the node, and is set by the server");
                return Err(Error::invalid("label", why));
            }
        }
        for Taint { key, value, .. } in &self.taints {
            let wrong = units::check_label(key, value).err();
            wrong.map_or(Ok(()), |why| Err(Error::invalid("taints", why)))?;
        }
        Ok(())
    }

    /// Applies this change to the settings of a node.
    pub(super) fn made_to(self, node: &Node) -> Result<NodeGiven, Error> {
        let mut given = node.given.clone();
        if self.replaces_labels {
            given.labels.clear();
        }
        for (key, value) in self.labels {
            match value {
                Some(value) => drop(given.labels.insert(key, value)),
                None if given.labels.remove(&key).is_some() => {}
                None => {
                    let there = given.labels.keys().map(String::as_str);
                    let why = not_given(node, "label", &key, there.collect());
                    return Err(Error::invalid("label", why));
                }
            }
        }
        for (key, effect) in &self.removed_taints {
            let is = |taint: &Taint| {
                taint.key == *key && effect.is_none_or(|effect| effect == taint.effect)
            };
            if !given.taints.iter().any(is) {
                let there: Vec<_> = given.taints.iter().map(ToString::to_string).collect();
                let there = there.iter().map(String::as_str).collect();
                let why = not_given(node, "taint", key, there);
                return Err(Error::invalid("taints", why));
            }
            given.taints.retain(|taint| !is(taint));
        }
        for new in self.taints {
            let same = |taint: &Taint| (&taint.key, taint.effect) == (&new.key, new.effect);
            given.taints.retain(|taint| !same(taint));
            given.taints.push(new);
        }
        if given.taints.len() > TAINTS_MAX {
            let why = format!("a node has at most {TAINTS_MAX} taints; remove some first");
            return Err(Error::invalid("taints", why));
        }
        given.scheduling = self.scheduling.unwrap_or(given.scheduling);
        Ok(given)
    }
}

fn not_given(node: &Node, what: &str, key: &str, there: Vec<&str>) -> String {
    let (name, key) = (&node.spec.name, units::shown(key));
    let there = crate::admission::some_of(there.iter().copied());
    let given = if there.is_empty() { "none".to_owned() } else { there };
    format!(
        "{name} was not given a {what} `{key}`, so it cannot be taken back; it was given: {given}"
    )
}
