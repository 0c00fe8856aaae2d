//! The rules of a policy by field, and the check of a specification. The possible fields are in
//! `fields`, the rules for a value in `rule`, and those for the items of a list in `items`.

use http_kit::{ApiError, nearest};
use serde_json::Value;

use super::fields::{Field, FieldType, Items, PolicyTarget, at};
use super::items::ItemRules;
use super::rule::Rule;

/// Rules for a field.
enum Allowed {
    /// No rule: there is no such field here.
    All,
    Value(FieldType, Rule),
    Items(&'static Items, ItemRules),
}

/// The rules of a part of a policy, by the path of their field.
pub(super) struct Rules(Vec<(&'static str, Allowed)>);

impl Rules {
    /// Reads rules from their published form; `at` is their path. Fields that have no effect are
    /// refused by name.
    pub(super) fn read(who: PolicyTarget, at: &str, wire: &Value) -> Result<Self, ApiError> {
        let mut all = Vec::new();
        leaves(&|| who.fields(), at, "", wire, &mut all)?;
        let rule = |(path, value): (String, &Value)| {
            let at = format!("{at}.{path}");
            let field = who.fields().find(|(known, _)| *known == path);
            let (path, holds) = *field.ok_or_else(|| no_such_rules(who, &at, &path))?;
            if let FieldType::Items(items) = holds {
                return Ok((path, Allowed::Items(items, ItemRules::read(items, &at, value)?)));
            }
            if matches!(holds, FieldType::Absent) {
                return match value {
                    Value::Object(_) => Ok((path, Allowed::All)),
                    _ => Err(ApiError::field(&at, "must be an object")),
                };
            }
            let rule = Rule::read(holds, &at, value)?;
            rule.check_source(holds, who.fields()).map_err(|why| ApiError::field(&at, why))?;
            Ok((path, Allowed::Value(holds, rule)))
        };
        Ok(Self(all.into_iter().map(rule).collect::<Result<_, ApiError>>()?))
    }

    /// Violations of the rules by a specification.
    pub(super) fn broken_by(&self, judged: &CheckedSpec) -> Vec<String> {
        let no_gpu = judged.means.pointer("/compute/gpuRequestType").is_none();
        let broken = |(path, allowed): &(&'static str, Allowed)| {
            let (said, means) = (at(&judged.said, path), at(&judged.means, path));
            let default = at(&judged.left_alone, path);
            if said.is_none() && judged.not_all {
                return Vec::new();
            }
            let why = match (allowed, means) {
                (Allowed::All, _) => None,
                (Allowed::Items(items, rules), _) => {
                    let broken = rules.broken_by(items, list(means), list(default));
                    return broken.into_iter().map(|why| format!("{path}{why}")).collect();
                }
                (Allowed::Value(_, rule), _) if rule.required && said.is_none() => {
                    Some("is required".to_owned())
                }
                (Allowed::Value(holds, rule), Some(value)) => {
                    rule.broken_by(*holds, value, default)
                }
                // The GPU fields need no value if the workload requests no GPU.
                (_, None) if no_gpu && path.starts_with("compute.gpu") => None,
                (Allowed::Value(_, rule), None) => rule.broken_by_silence(default),
            };
            why.into_iter().map(|why| format!("{path}: {why}")).collect()
        };
        self.0.iter().flat_map(broken).collect()
    }

    /// Defaults that are from other values of a specification, where it has none.
    pub(super) fn defaults_in(&self, spec: &Value) -> Vec<(&'static str, Value)> {
        let missing = |path: &str| at(spec, path).is_none();
        let default = |(path, allowed): &(&'static str, Allowed)| match allowed {
            Allowed::Value(holds, rule) if missing(path) => {
                Some((*path, rule.default_in(*holds, spec)?))
            }
            _ => None,
        };
        self.0.iter().filter_map(default).collect()
    }
}

/// A specification that is judged.
pub(super) struct CheckedSpec {
    /// The specification with the defaults of policies.
    pub(super) said: Value,
    /// The specification as it will be taken.
    pub(super) means: Value,
    /// Specification of an empty submission, as it would be taken.
    pub(super) left_alone: Value,
    /// True if another document supplies the missing fields.
    pub(super) not_all: bool,
}

fn no_such_rules(who: PolicyTarget, field: &str, path: &str) -> ApiError {
    let known: Vec<&str> = who.fields().map(|(known, _)| *known).collect();
    let hint = match nearest(path, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are for {}", known.join(", ")),
    };
    ApiError::field(field, format!("there are no rules for this field; {hint}"))
}

/// The rules with the path of their field.
fn leaves<'a, F: Iterator<Item = &'static Field>>(
    fields: &impl Fn() -> F,
    at: &str,
    path: &str,
    value: &'a Value,
    all: &mut Vec<(String, &'a Value)>,
) -> Result<(), ApiError> {
    let object = match value {
        Value::Null => return Ok(()),
        Value::Object(object) => object,
        _ => return Err(ApiError::field(&dotted(at, path), "must be an object")),
    };
    for (name, value) in object {
        let path = dotted(path, name);
        let inside = fields().any(|(known, _)| {
            known.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('.'))
        });
        match value {
            _ if inside => leaves(fields, at, &path, value, all)?,
            Value::Null => {}
            _ => all.push((path, value)),
        }
    }
    Ok(())
}

/// A field inside another one.
pub(super) fn dotted(outer: &str, inner: &str) -> String {
    let dot = if outer.is_empty() || inner.is_empty() { "" } else { "." };
    format!("{outer}{dot}{inner}")
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
