//! Node affinity of a workload, required and preferred, in the words of Kubernetes. Owns: names of
//! keys, and the number of values that each operator takes. Does not know about: nodes.

use serde::{Deserialize, Serialize};

use super::is_default;
use super::list::OneOrMany;

/// Requirements on the labels of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeAffinity {
    /// Terms of which one must hold; a term holds if all its requirements do.
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: Vec<Vec<Requirement>>,
    /// Terms that make a node preferred.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preferred: Vec<Preference>,
}

/// A weighted preference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preference {
    /// Weight, 1 to 100.
    pub weight: u32,
    /// Requirements, all of which should hold.
    pub term: Vec<Requirement>,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Name of the label.
    pub key: String,
    /// Comparison operator.
    pub operator: Operator,
    /// Values to compare with; none for `Exists` and `DoesNotExist`, one number for `Gt` and `Lt`.
    #[serde(default = "none", skip_serializing_if = "is_empty")]
    pub values: OneOrMany<String>,
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label has none of the values, or is missing.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is missing.
    DoesNotExist,
    /// The label is a number above the value.
    Gt,
    /// The label is a number below the value.
    Lt,
}

const fn none() -> OneOrMany<String> {
    OneOrMany::Many(Vec::new())
}

fn is_empty(values: &OneOrMany<String>) -> bool {
    values.as_slice().is_empty()
}

impl NodeAffinity {
    /// The terms of the model.
    ///
    /// # Errors
    /// A weight or a number of values that is not allowed.
    pub(crate) fn terms(&self) -> Result<(Vec<model::Term>, Vec<model::Preference>), String> {
        let required = self.required.iter().map(|term| model_term(term));
        let preferred = self.preferred.iter().map(|preference| {
            let weight = preference.weight;
            if !(1..=100).contains(&weight) {
                return Err(format!("a `weight` is {weight}; 1 to 100 are allowed"));
            }
            Ok(model::Preference { weight, term: model_term(&preference.term)? })
        });
        Ok((required.collect::<Result<_, _>>()?, preferred.collect::<Result<_, _>>()?))
    }

    /// The written form of constraints.
    pub(crate) fn of(constraints: &model::Constraints) -> Self {
        let preference = |preference: &model::Preference| Preference {
            weight: preference.weight,
            term: wire_term(&preference.term),
        };
        Self {
            required: constraints.required.iter().map(|term| wire_term(term)).collect(),
            preferred: constraints.preferred.iter().map(preference).collect(),
        }
    }
}

fn model_term(term: &[Requirement]) -> Result<model::Term, String> {
    if term.is_empty() {
        return Err("a term of the `affinity` is empty; write at least one requirement".into());
    }
    term.iter().map(requirement).collect()
}

fn requirement(wire: &Requirement) -> Result<model::Requirement, String> {
    use model::Operator as To;
    let values = wire.values.as_slice();
    let number = || match values {
        [one] => one.parse::<i64>().map_err(|_| wrong(wire, "one whole number")),
        _ => Err(wrong(wire, "one whole number")),
    };
    let operator = match (wire.operator, values) {
        (Operator::In | Operator::NotIn, []) => return Err(wrong(wire, "at least one value")),
        (Operator::In, values) => To::In(values.to_vec()),
        (Operator::NotIn, values) => To::NotIn(values.to_vec()),
        (Operator::Exists, []) => To::Exists,
        (Operator::DoesNotExist, []) => To::DoesNotExist,
        (Operator::Exists | Operator::DoesNotExist, _) => return Err(wrong(wire, "no values")),
        (Operator::Gt, _) => To::Gt(number()?),
        (Operator::Lt, _) => To::Lt(number()?),
    };
    Ok(model::Requirement { key: wire.key.clone(), operator })
}

fn wrong(wire: &Requirement, allowed: &str) -> String {
    let (operator, values) = (wire.operator, wire.values.as_slice().join(", "));
    format!("`affinity` on `{}`: {operator:?} takes {allowed}, not `{values}`", wire.key)
}

fn wire_term(term: &[model::Requirement]) -> Vec<Requirement> {
    let requirement = |from: &model::Requirement| {
        let (operator, values) = match &from.operator {
            model::Operator::In(values) => (Operator::In, values.clone()),
            model::Operator::NotIn(values) => (Operator::NotIn, values.clone()),
            model::Operator::Exists => (Operator::Exists, Vec::new()),
            model::Operator::DoesNotExist => (Operator::DoesNotExist, Vec::new()),
            model::Operator::Gt(bound) => (Operator::Gt, vec![bound.to_string()]),
            model::Operator::Lt(bound) => (Operator::Lt, vec![bound.to_string()]),
        };
        Requirement { key: from.key.clone(), operator, values: OneOrMany::Many(values) }
    };
    term.iter().map(requirement).collect()
}
