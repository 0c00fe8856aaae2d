//! Rules for the value of one field, and the check of a value.

use api_types::number_from_millis;
use http_kit::{ApiError, read_part};
use serde::Deserialize;
use serde_json::Value;

use super::fields::{Field, FieldType, at};

/// Rule for a value.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Rule {
    /// A value must be given.
    #[serde(default)]
    pub(super) required: bool,
    /// True if another value than the policy's default may be given.
    can_edit: Option<bool>,
    /// No value but the policy's default may be given; the field itself is not to be used.
    #[serde(default)]
    blocked: bool,
    min: Option<Value>,
    max: Option<Value>,
    /// Steps from `min`, or from 0.
    step: Option<Value>,
    /// Allowed values; for a list, those of its elements.
    options: Option<Vec<Choice>>,
    /// Source of the default.
    default_from: Option<DefaultFrom>,
}

/// Bounds of a value, in thousandths or bytes.
struct Bounds {
    min: Option<u64>,
    max: Option<u64>,
    step: Option<u64>,
}

/// A default that is another value, times a factor.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultFrom {
    field: String,
    #[serde(default)]
    factor: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    value: Value,
    #[serde(default, rename = "displayed")]
    _displayed: Option<String>,
}

/// An amount in thousandths or bytes.
fn amount(holds: FieldType, value: &Value) -> Result<u64, String> {
    match (holds, value) {
        (FieldType::Limit, Value::Number(number)) if number.as_u64() == Some(0) => Ok(u64::MAX),
        (FieldType::Number | FieldType::Limit, Value::Number(number)) => {
            units::parse_cpu_millis(&number.to_string()).map_err(|why| why.to_string())
        }
        (FieldType::Bytes, Value::String(text)) => {
            units::parse_bytes(text).map_err(|why| why.to_string())
        }
        (FieldType::Number | FieldType::Limit, _) => Err(format!("`{value}` is not a number")),
        (FieldType::Bytes, _) => Err(format!("`{value}` is not a size such as \"8G\"")),
        _ => Err("goes with numbers and sizes only".to_owned()),
    }
}

/// An amount that is no limit, whatever the field holds: 0 is 0.
fn plain(holds: FieldType, value: &Value) -> Result<u64, String> {
    let holds = if matches!(holds, FieldType::Limit) { FieldType::Number } else { holds };
    amount(holds, value)
}

impl Rule {
    pub(super) fn read(holds: FieldType, at: &str, value: &Value) -> Result<Self, ApiError> {
        let rule: Self = read_part(at, value.clone())?;
        rule.check(holds).map_err(|why| ApiError::field(at, why))?;
        Ok(rule)
    }

    fn check(&self, holds: FieldType) -> Result<(), String> {
        let Bounds { min, max, step } = self.bounds(holds)?;
        if step == Some(0) {
            return Err("step: must be more than 0".to_owned());
        }
        if min.zip(max).is_some_and(|(min, max)| min > max) {
            return Err("min is more than max".to_owned());
        }
        if self.options.as_ref().is_some_and(Vec::is_empty) {
            return Err("options: is empty; leave it out instead".to_owned());
        }
        if self.blocked && self.required {
            return Err("blocked: goes without required; leave out one of them".to_owned());
        }
        match &self.default_from {
            Some(_) if self.can_edit == Some(false) => {
                Err("canEdit: goes without defaultFrom; leave out one of them".to_owned())
            }
            Some(DefaultFrom { factor: Some(factor), .. }) => {
                match amount(FieldType::Number, factor) {
                    Ok(1..) => Ok(()),
                    Ok(0) => Err("defaultFrom.factor: must be more than 0".to_owned()),
                    Err(why) => Err(format!("defaultFrom.factor: {why}")),
                }
            }
            _ => Ok(()),
        }
    }

    fn bounds(&self, holds: FieldType) -> Result<Bounds, String> {
        type Read = fn(FieldType, &Value) -> Result<u64, String>;
        let of = |name, value: &Option<Value>, read: Read| {
            let read = value.as_ref().map(|value| read(holds, value)).transpose();
            read.map_err(|why| format!("{name}: {why}"))
        };
        Ok(Bounds {
            min: of("min", &self.min, plain)?,
            // A maximum may be without limit.
            max: of("max", &self.max, amount)?,
            step: of("step", &self.step, plain)?,
        })
    }

    /// Refuses a default from a field that holds something else, or is not there.
    pub(super) fn check_source(
        &self,
        holds: FieldType,
        mut fields: impl Iterator<Item = &'static Field>,
    ) -> Result<(), String> {
        let Some(DefaultFrom { field, .. }) = &self.default_from else { return Ok(()) };
        let amounts = |other: FieldType| match holds {
            FieldType::Bytes => matches!(other, FieldType::Bytes),
            FieldType::Number | FieldType::Limit => {
                matches!(other, FieldType::Number | FieldType::Limit)
            }
            _ => false,
        };
        if fields.any(|(path, other)| path == field && amounts(*other)) {
            return Ok(());
        }
        let field = units::shown(field);
        Err(format!(
            "defaultFrom.field: `{field}` is not a field that holds amounts of the same kind"
        ))
    }

    /// The default, where it is from another field that a specification has.
    pub(super) fn default_in(&self, holds: FieldType, spec: &Value) -> Option<Value> {
        let DefaultFrom { field, factor } = self.default_from.as_ref()?;
        let factor =
            factor.as_ref().map_or(Ok(1000), |factor| amount(FieldType::Number, factor)).ok()?;
        let from = u128::from(plain(holds, at(spec, field)?).ok()?);
        let default = u64::try_from(from * u128::from(factor) / 1000).ok()?;
        Some(match holds {
            FieldType::Bytes => convert::quantity(default).into(),
            _ => Value::Number(number_from_millis(default)),
        })
    }

    /// Violation by a value; `None` if it is allowed.
    pub(super) fn broken_by(
        &self,
        holds: FieldType,
        value: &Value,
        default: Option<&Value>,
    ) -> Option<String> {
        let as_it_is = default.is_some_and(|default| same(holds, default, value));
        if self.blocked && !as_it_is {
            return Some(format!("{value} is not allowed: the field is blocked; leave it out"));
        }
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

    /// Violation by a missing value; `None` if it may be missing. `default` is the value in its
    /// place.
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

    fn out_of_range(&self, holds: FieldType, value: &Value) -> Option<String> {
        // Values that are no amounts are refused where they are read.
        let own = amount(holds, value).ok()?;
        let Bounds { min, max, step } = self.bounds(holds).ok()?;
        let said = |of: &Option<Value>| of.as_ref().map(Value::to_string).unwrap_or_default();
        if min.is_some_and(|min| own < min) {
            return Some(format!("{value} is not allowed; min is {}", said(&self.min)));
        }
        if max.is_some_and(|max| own > max) {
            return Some(format!("{value} is not allowed; max is {}", said(&self.max)));
        }
        let off = |step: u64| own < u64::MAX && !(own - min.unwrap_or(0)).is_multiple_of(step);
        step.is_some_and(off)
            .then(|| format!("{value} is not allowed; step is {}", said(&self.step)))
    }
}

fn shown(options: &[Choice]) -> String {
    let known: Vec<String> = options.iter().map(|choice| choice.value.to_string()).collect();
    known.join(", ")
}

fn same(holds: FieldType, a: &Value, b: &Value) -> bool {
    match (amount(holds, a), amount(holds, b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}
