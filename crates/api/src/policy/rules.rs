//! Rules: which there are, and whether a specification keeps them. Which fields they can be for is in
//! `fields`, what they say of the items of lists in `items`.

use api_types::WorkloadSpec;
use serde::Deserialize;
use serde_json::Value;

use super::fields::{Field, Holds, Who};
use super::items::ItemRules;
use crate::edge::{Fault, nearest, read_part};

/// What is allowed of a value.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Rule {
    /// A value must be given.
    #[serde(default)]
    required: bool,
    /// Whether another value than the policy's default may be given.
    can_edit: Option<bool>,
    min: Option<Value>,
    max: Option<Value>,
    /// Steps from `min`, or from 0.
    step: Option<Value>,
    /// The values there are; of a list, those its elements may have.
    options: Option<Vec<Choice>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    value: Value,
    #[serde(default, rename = "displayed")]
    _displayed: Option<String>,
}

/// What is allowed of a field.
enum Allowed {
    Value(Rule),
    Items(ItemRules),
}

/// The rules of a part of a policy, by field.
pub(super) struct Rules(Vec<(&'static Field, Allowed)>);

impl Rules {
    /// From their published form; `at` is where they are. What is not acted on is refused by its name.
    pub(super) fn read(who: Who, at: &str, wire: &Value) -> Result<Self, Fault> {
        let mut all = Vec::new();
        leaves(&|| who.fields(), at, "", wire, &mut all)?;
        let rule = |(path, value): (String, &Value)| {
            let at = format!("{at}.{path}");
            let field = who.fields().find(|(known, _)| *known == path);
            let field = field.ok_or_else(|| no_such_rules(who, &at, &path))?;
            let allowed = match field.1 {
                Holds::Items(items) => Allowed::Items(ItemRules::read(items, &at, value)?),
                holds => Allowed::Value(Rule::read(holds, &at, value)?),
            };
            Ok((field, allowed))
        };
        Ok(Self(all.into_iter().map(rule).collect::<Result<_, Fault>>()?))
    }

    /// What a specification does that the rules do not allow.
    pub(super) fn broken_by(&self, judged: &Judged) -> Vec<String> {
        let no_gpu = judged.means.pointer("/compute/gpuRequestType").is_none();
        let broken = |((path, holds), allowed): &(&'static Field, Allowed)| {
            let (said, means) = (at(&judged.said, path), at(&judged.means, path));
            let default = at(&judged.left_alone, path);
            if said.is_none() && judged.not_all {
                return Vec::new();
            }
            let why = match (allowed, holds) {
                (Allowed::Items(rules), Holds::Items(items)) => {
                    let broken = rules.broken_by(items, list(means), list(default));
                    return broken.into_iter().map(|why| format!("{path}{why}")).collect();
                }
                (Allowed::Value(rule), holds) => match means {
                    _ if rule.required && said.is_none() => Some("is required".to_owned()),
                    Some(value) => rule.broken_by(*holds, value, default),
                    // Of what is not asked for nothing has to be right.
                    None if no_gpu && path.starts_with("compute.gpu") => None,
                    None => rule.broken_by_silence(default),
                },
                (Allowed::Items(_), _) => None,
            };
            why.into_iter().map(|why| format!("{path}: {why}")).collect()
        };
        self.0.iter().flat_map(broken).collect()
    }
}

/// A specification that is judged.
pub(super) struct Judged {
    /// With the defaults of policies.
    pub(super) said: Value,
    /// As it will be taken.
    pub(super) means: Value,
    /// As one would be taken that says nothing.
    pub(super) left_alone: Value,
    /// Whether it is for somebody else to say what it leaves out.
    pub(super) not_all: bool,
}

/// A specification as it would be sent.
pub(super) fn wire(spec: &WorkloadSpec) -> Value {
    serde_json::to_value(spec).unwrap_or_default()
}

fn no_such_rules(who: Who, field: &str, path: &str) -> Fault {
    let known: Vec<&str> = who.fields().map(|(known, _)| *known).collect();
    let hint = match nearest(path, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are for {}", known.join(", ")),
    };
    Fault::field(field, format!("there are no rules for this field; {hint}"))
}

/// The rules with the path of their field.
fn leaves<'a, F: Iterator<Item = &'static Field>>(
    fields: &impl Fn() -> F,
    at: &str,
    path: &str,
    value: &'a Value,
    all: &mut Vec<(String, &'a Value)>,
) -> Result<(), Fault> {
    let object = match value {
        Value::Null => return Ok(()),
        Value::Object(object) => object,
        _ => return Err(Fault::field(&dotted(at, path), "must be an object")),
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

pub(super) fn at<'a>(spec: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(spec, |value, name| value.get(name))
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// An amount in thousandths or bytes.
fn amount(holds: Holds, value: &Value) -> Result<u64, String> {
    match (holds, value) {
        (Holds::Limit, Value::Number(number)) if number.as_u64() == Some(0) => Ok(u64::MAX),
        (Holds::Number | Holds::Limit, Value::Number(number)) => {
            units::parse_cpu_millis(&number.to_string()).map_err(|why| why.to_string())
        }
        (Holds::Bytes, Value::String(text)) => {
            units::parse_bytes(text).map_err(|why| why.to_string())
        }
        (Holds::Number | Holds::Limit, _) => Err(format!("`{value}` is not a number")),
        (Holds::Bytes, _) => Err(format!("`{value}` is not a size such as \"8G\"")),
        _ => Err("goes with numbers and sizes only".to_owned()),
    }
}

impl Rule {
    pub(super) fn read(holds: Holds, at: &str, value: &Value) -> Result<Self, Fault> {
        let rule: Self = read_part(at, value.clone())?;
        rule.check(holds).map_err(|why| Fault::field(at, why))?;
        Ok(rule)
    }

    fn check(&self, holds: Holds) -> Result<(), String> {
        let limits = [("min", &self.min), ("max", &self.max), ("step", &self.step)];
        for (name, value) in limits {
            if let Some(value) = value {
                let amount = amount(holds, value).map_err(|why| format!("{name}: {why}"))?;
                if name == "step" && amount == 0 {
                    return Err("step: must be more than 0".to_owned());
                }
            }
        }
        let limit = |value: &Option<Value>| value.as_ref().and_then(|v| amount(holds, v).ok());
        if let (Some(min), Some(max)) = (limit(&self.min), limit(&self.max))
            && min > max
        {
            return Err("min is more than max".to_owned());
        }
        if self.options.as_ref().is_some_and(Vec::is_empty) {
            return Err("options: is empty; leave it out instead".to_owned());
        }
        Ok(())
    }

    /// Why a value is not allowed.
    pub(super) fn broken_by(
        &self,
        holds: Holds,
        value: &Value,
        default: Option<&Value>,
    ) -> Option<String> {
        let as_it_is = default.is_some_and(|default| same(holds, default, value));
        if self.can_edit == Some(false) && !as_it_is {
            let allowed = default
                .map_or("and has no default; leave it out".to_owned(), |default| {
                    format!("only {default} is allowed")
                });
            return Some(format!("{value} is not allowed: it cannot be edited, {allowed}"));
        }
        if let Some(options) = &self.options {
            let each = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            let known = |value: &&Value| !options.iter().any(|one| same(holds, &one.value, value));
            if let Some(other) = each.iter().find(known) {
                return Some(format!("{other} is not allowed; options are {}", shown(options)));
            }
        }
        self.out_of_range(holds, value)
    }

    /// Why it is not allowed to leave it out, where nothing stands in for it.
    pub(super) fn broken_by_silence(&self, default: Option<&Value>) -> Option<String> {
        match (self.can_edit, default, &self.options) {
            _ if self.required => Some("is required".to_owned()),
            (Some(false), Some(default), _) => {
                Some(format!("it cannot be edited, only {default} is allowed"))
            }
            (_, _, Some(options)) => Some(format!("is not given; options are {}", shown(options))),
            _ => None,
        }
    }

    fn out_of_range(&self, holds: Holds, value: &Value) -> Option<String> {
        // Values that are no amounts are refused where they are read.
        let own = amount(holds, value).ok()?;
        let limit = |of: &Option<Value>| of.as_ref().and_then(|of| amount(holds, of).ok());
        let (min, max, step) = (limit(&self.min), limit(&self.max), limit(&self.step));
        let said = |of: &Option<Value>| of.as_ref().map(Value::to_string).unwrap_or_default();
        if min.is_some_and(|min| own < min) {
            return Some(format!("{value} is not allowed; min is {}", said(&self.min)));
        }
        if max.is_some_and(|max| own > max) {
            return Some(format!("{value} is not allowed; max is {}", said(&self.max)));
        }
        let off = |step: u64| !(own - min.unwrap_or(0)).is_multiple_of(step);
        step.is_some_and(off)
            .then(|| format!("{value} is not allowed; step is {}", said(&self.step)))
    }
}

fn shown(options: &[Choice]) -> String {
    let known: Vec<String> = options.iter().map(|choice| choice.value.to_string()).collect();
    known.join(", ")
}

fn same(holds: Holds, a: &Value, b: &Value) -> bool {
    match (amount(holds, a), amount(holds, b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}
