//! Rules for the items of lists: whether a submission may add some, which defaults it must leave as
//! they are, and what the fields of each may hold.

use std::collections::BTreeMap;

use http_kit::{ApiError, read_part};
use serde::Deserialize;
use serde_json::Value;

use super::fields::{Field, Items};
use super::rule::Rule;

/// Rules for the items of a list.
#[derive(Debug)]
pub(super) struct ItemRules {
    instances: Instances,
    attributes: Vec<(&'static Field, Rule)>,
}

/// Published form of item rules.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    #[serde(default)]
    instances: Option<Instances>,
    #[serde(default)]
    attributes: Option<BTreeMap<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Instances {
    /// True if items beside the defaults are allowed.
    can_add: Option<bool>,
    /// Keys of the defaults that must stay as they are.
    #[serde(default)]
    locked: Option<Vec<String>>,
}

impl ItemRules {
    pub(super) fn read(items: &'static Items, at: &str, value: &Value) -> Result<Self, ApiError> {
        let wire: Wire = read_part(at, value.clone())?;
        let attribute = |(name, value): (String, Value)| {
            let at = format!("{at}.attributes.{name}");
            let field = items.attribute(&at, &name)?;
            Ok((field, Rule::read(field.1, &at, &value)?))
        };
        let attributes = wire.attributes.unwrap_or_default().into_iter();
        let attributes = attributes.filter(|(_, rule)| !rule.is_null()).map(attribute);
        Ok(Self {
            instances: wire.instances.unwrap_or_default(),
            attributes: attributes.collect::<Result<_, ApiError>>()?,
        })
    }

    /// Violations by these items, each with its place in the list.
    pub(super) fn broken_by(&self, of: &Items, items: &[Value], defaults: &[Value]) -> Vec<String> {
        let no_list = Vec::new();
        let locked = self.instances.locked.as_ref().unwrap_or(&no_list);
        let mut broken = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let key = of.key(item);
            let default = defaults.iter().find(|default| of.key(default) == key);
            if defaults.iter().any(|default| of.same(item, default)) {
                // The item comes from a default.
            } else if locked.iter().any(|one| *one == key) {
                broken.push(format!(": `{key}` is locked; leave it out"));
            } else if item["exclude"] == Value::Bool(true) {
                // Takes away what may be taken away.
                continue;
            } else if self.instances.can_add == Some(false) && default.is_none() {
                broken.push(format!(": `{key}` cannot be added; {}", there_are(of, defaults)));
            }
            for ((name, holds), rule) in &self.attributes {
                let default = default.and_then(|default| default.get(name));
                let why = match item.get(name) {
                    Some(value) => rule.broken_by(*holds, value, default),
                    None => rule.broken_by_silence(default),
                };
                broken.extend(why.map(|why| format!("[{at}].{name}: {why}")));
            }
        }
        let gone = |key: &&String| {
            let mut own = defaults.iter().filter(|default| of.key(default) == key.as_str());
            own.any(|default| !items.iter().any(|item| of.same(item, default)))
        };
        let named = |key: &str| items.iter().any(|item| of.key(item) == key);
        let gone = locked.iter().filter(gone).filter(|key| !named(key));
        broken.extend(gone.map(|key| format!(": `{key}` is locked and must stay")));
        broken
    }
}

fn there_are(of: &Items, defaults: &[Value]) -> String {
    let keys: Vec<String> = defaults.iter().map(|item| format!("`{}`", of.key(item))).collect();
    match keys.as_slice() {
        [] => "leave it out".to_owned(),
        keys => format!("there are {}", keys.join(", ")),
    }
}
