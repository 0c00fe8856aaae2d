//! Rules: which there are, which fields they can be for, and whether a specification keeps them.

use std::collections::BTreeMap;

use api_types::WorkloadSpec;
use serde::Deserialize;
use serde_json::Value;

use crate::edge::Fault;

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// In thousandths.
    Number,
    Bytes,
    Flag,
}

/// The fields that rules can be for: all that are acted on and are one value.
const FIELDS: [(&str, Kind); 16] = [
    ("image", Kind::Text),
    ("command", Kind::Text),
    ("args", Kind::Text),
    ("workingDir", Kind::Text),
    ("priorityClass", Kind::Text),
    ("preemptibility", Kind::Text),
    ("restartPolicy", Kind::Text),
    ("backoffLimit", Kind::Number),
    ("terminationGracePeriodSeconds", Kind::Number),
    ("elastic", Kind::Flag),
    ("compute.gpuDevicesRequest", Kind::Number),
    ("compute.gpuRequestType", Kind::Text),
    ("compute.gpuPortionRequest", Kind::Number),
    ("compute.gpuMemoryRequest", Kind::Bytes),
    ("compute.cpuCoreRequest", Kind::Number),
    ("compute.cpuMemoryRequest", Kind::Bytes),
];

/// What is allowed of one field.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    /// A value must be given.
    #[serde(default)]
    required: bool,
    /// Whether another value than the policy's default may be given.
    can_edit: Option<bool>,
    min: Option<Value>,
    max: Option<Value>,
    /// Steps from `min`, or from 0.
    step: Option<Value>,
    /// The values there are.
    options: Option<Vec<Choice>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    value: Value,
    #[serde(default, rename = "displayed")]
    _displayed: Option<String>,
}

/// The rules of a policy, by field.
pub(crate) struct Rules(BTreeMap<&'static str, (Kind, Rule)>);

impl Rules {
    /// From their published form; what is not acted on is refused by its name.
    pub(crate) fn read(wire: Option<&Value>) -> Result<Self, Fault> {
        let mut rules = BTreeMap::new();
        for (path, value) in leaves(wire)? {
            let field = format!("policy.rules.{path}");
            let Some((path, kind)) = FIELDS.into_iter().find(|(known, _)| *known == path) else {
                let known = FIELDS.map(|(known, _)| known).join(", ");
                let why = format!("there are no rules for this field; there are for {known}");
                return Err(Fault::field(&field, why));
            };
            let rule = Rule::deserialize(value).map_err(|why| Fault::field(&field, why))?;
            check_rule(kind, &rule).map_err(|why| Fault::field(&field, why))?;
            rules.insert(path, (kind, rule));
        }
        Ok(Self(rules))
    }

    /// Which of these defaults the rules do not allow, where `own` are those of the rules' policy.
    pub(crate) fn broken_by_defaults(
        &self,
        defaults: &WorkloadSpec,
        own: &WorkloadSpec,
    ) -> Vec<String> {
        let (defaults, own) = (wire(defaults), wire(own));
        let broken = |(path, (kind, rule)): (&&str, &(Kind, Rule))| {
            // What has no default is for the submission to say.
            let value = at(&defaults, path)?;
            let why = rule.broken_by(*kind, value, at(&own, path))?;
            Some(format!("policy.defaults.{path}: {why}"))
        };
        self.0.iter().filter_map(broken).collect()
    }

    /// What a specification does that the rules do not allow.
    pub(crate) fn broken_by(&self, judged: &Judged<'_>) -> Vec<String> {
        let (said, means) = (wire(judged.said), wire(judged.means));
        let left_alone = wire(judged.left_alone);
        let no_gpu = means.pointer("/compute/gpuRequestType").is_none();
        let broken = |(path, (kind, rule)): (&&str, &(Kind, Rule))| {
            let default = at(&left_alone, path);
            let why = match at(&means, path) {
                _ if rule.required && at(&said, path).is_none() => "is required".to_owned(),
                Some(value) => rule.broken_by(*kind, value, default)?,
                // Of what is not asked for nothing has to be right.
                None if no_gpu && path.starts_with("compute.gpu") => return None,
                None => rule.broken_by_silence(default)?,
            };
            Some(format!("spec.{path}: {why}"))
        };
        self.0.iter().filter_map(broken).collect()
    }
}

/// A specification that is judged.
pub(crate) struct Judged<'a> {
    /// With the defaults of policies.
    pub(crate) said: &'a WorkloadSpec,
    /// As it will be taken.
    pub(crate) means: &'a WorkloadSpec,
    /// As one would be taken that says nothing.
    pub(crate) left_alone: &'a WorkloadSpec,
}

fn wire(spec: &WorkloadSpec) -> Value {
    serde_json::to_value(spec).unwrap_or_default()
}

/// The rules with the path of their field.
fn leaves(wire: Option<&Value>) -> Result<Vec<(String, &Value)>, Fault> {
    let fields = |value: &'_ Value, path: &str| match value {
        Value::Null => Ok(None),
        Value::Object(_) => Ok(Some(())),
        _ => Err(Fault::field(&format!("policy.rules{path}"), "must be an object")),
    };
    let mut all = Vec::new();
    let Some(wire) = wire else { return Ok(all) };
    fields(wire, "")?;
    for (name, value) in wire.as_object().into_iter().flatten() {
        if name == "compute" {
            fields(value, ".compute")?;
            let inner = value.as_object().into_iter().flatten();
            all.extend(inner.map(|(inner, value)| (format!("compute.{inner}"), value)));
        } else {
            all.push((name.clone(), value));
        }
    }
    all.retain(|(_, value)| !value.is_null());
    Ok(all)
}

fn at<'a>(spec: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(spec, |value, name| value.get(name))
}

/// An amount in thousandths or bytes.
fn amount(kind: Kind, value: &Value) -> Result<u64, String> {
    match (kind, value) {
        (Kind::Number, Value::Number(number)) => {
            units::parse_cpu_millis(&number.to_string()).map_err(|why| why.to_string())
        }
        (Kind::Bytes, Value::String(text)) => {
            units::parse_bytes(text).map_err(|why| why.to_string())
        }
        (Kind::Number, _) => Err(format!("`{value}` is not a number")),
        (Kind::Bytes, _) => Err(format!("`{value}` is not a size such as \"8G\"")),
        (Kind::Text | Kind::Flag, _) => Err("goes with numbers and sizes only".to_owned()),
    }
}

fn check_rule(kind: Kind, rule: &Rule) -> Result<(), String> {
    let limits = [("min", &rule.min), ("max", &rule.max), ("step", &rule.step)];
    for (name, value) in limits {
        if let Some(value) = value {
            let amount = amount(kind, value).map_err(|why| format!("{name}: {why}"))?;
            if name == "step" && amount == 0 {
                return Err("step: must be more than 0".to_owned());
            }
        }
    }
    let limit = |value: &Option<Value>| value.as_ref().and_then(|v| amount(kind, v).ok());
    if let (Some(min), Some(max)) = (limit(&rule.min), limit(&rule.max))
        && min > max
    {
        return Err("min is more than max".to_owned());
    }
    if rule.options.as_ref().is_some_and(Vec::is_empty) {
        return Err("options: is empty; leave it out instead".to_owned());
    }
    Ok(())
}

impl Rule {
    /// Why a value is not allowed.
    fn broken_by(&self, kind: Kind, value: &Value, default: Option<&Value>) -> Option<String> {
        let as_it_is = default.is_some_and(|default| same(kind, default, value));
        if self.can_edit == Some(false) && !as_it_is {
            let allowed = default
                .map_or("and has no default; leave it out".to_owned(), |default| {
                    format!("only {default} is allowed")
                });
            return Some(format!("{value} is not allowed: it cannot be edited, {allowed}"));
        }
        if let Some(options) = &self.options
            && !options.iter().any(|choice| same(kind, &choice.value, value))
        {
            return Some(format!("{value} is not allowed; options are {}", shown(options)));
        }
        self.out_of_range(kind, value)
    }

    /// Why it is not allowed to leave it out, where nothing stands in for it.
    fn broken_by_silence(&self, default: Option<&Value>) -> Option<String> {
        match (self.can_edit, default, &self.options) {
            (Some(false), Some(default), _) => {
                Some(format!("it cannot be edited, only {default} is allowed"))
            }
            (_, _, Some(options)) => Some(format!("is not given; options are {}", shown(options))),
            _ => None,
        }
    }

    fn out_of_range(&self, kind: Kind, value: &Value) -> Option<String> {
        // Values that are no amounts are refused where they are read.
        let own = amount(kind, value).ok()?;
        let limit = |of: &Option<Value>| of.as_ref().and_then(|of| amount(kind, of).ok());
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

fn same(kind: Kind, a: &Value, b: &Value) -> bool {
    match (amount(kind, a), amount(kind, b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}
