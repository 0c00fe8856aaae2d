//! Changes of the labels, taints and scheduling mode that administrators set on a node. Owns: the
//! allowed values.

use command::NodeChange;
use model::{HOST_LABEL, Taint};
use spec::NodeGiven;

use super::Node;
use crate::Error;
use crate::pools::check_label;

/// Maximum number of taints of a node.
const TAINTS_MAX: usize = 50;

/// Refuses values that no node may have.
pub(super) fn check(change: &NodeChange) -> Result<(), Error> {
    for (key, value) in &change.labels {
        check_label(key, value.as_deref().unwrap_or_default())?;
        if key == HOST_LABEL {
            let why = format!("label {key} is the name of the node, and is set by the server");
            return Err(Error::invalid("label", why));
        }
    }
    for Taint { key, value, .. } in &change.taints {
        let wrong = units::check_label(key, value).err();
        wrong.map_or(Ok(()), |why| Err(Error::invalid("taints", why)))?;
    }
    Ok(())
}

/// The settings of a node after a change.
pub(super) fn settings_after(change: NodeChange, node: &Node) -> Result<NodeGiven, Error> {
    let mut given = node.given.clone();
    if change.replaces_labels {
        given.labels.clear();
    }
    for (key, value) in change.labels {
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
    for (key, effect) in &change.removed_taints {
        let is =
            |taint: &Taint| taint.key == *key && effect.is_none_or(|effect| effect == taint.effect);
        if !given.taints.iter().any(is) {
            let there: Vec<_> = given.taints.iter().map(ToString::to_string).collect();
            let there = there.iter().map(String::as_str).collect();
            let effect = effect.map(|effect| format!(":{effect}"));
            let removed = format!("{key}{}", effect.unwrap_or_default());
            let why = not_given(node, "taint", &removed, there);
            return Err(Error::invalid("taints", why));
        }
        given.taints.retain(|taint| !is(taint));
    }
    for new in change.taints {
        let same = |taint: &Taint| (&taint.key, taint.effect) == (&new.key, new.effect);
        given.taints.retain(|taint| !same(taint));
        given.taints.push(new);
    }
    if given.taints.len() > TAINTS_MAX {
        let why = format!("a node has at most {TAINTS_MAX} taints; remove some first");
        return Err(Error::invalid("taints", why));
    }
    given.scheduling = change.scheduling.unwrap_or(given.scheduling);
    Ok(given)
}

fn not_given(node: &Node, what: &str, key: &str, there: Vec<&str>) -> String {
    let (name, key) = (&node.spec.name, units::shown(key));
    let there = command::admission::some_of(there.iter().copied());
    let given = if there.is_empty() { "none".to_owned() } else { there };
    format!(
        "{name} was not given a {what} `{key}`, so it cannot be taken back; it was given: {given}"
    )
}
