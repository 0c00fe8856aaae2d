//! How places and secrets look in documents, where that differs from what they are.

use model::{Effect, Operator, Requirement, Toleration};
use serde::{Deserialize, Serialize};

use super::{Colocation, Place, SecretPlace, SecretTo, SecretUse};

/// Why a document is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Wrong {
    #[error("`{0}` of a label is not known")]
    Operator(String),
    #[error("a secret that goes nowhere")]
    Secret,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PlaceWire {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    affinity: Vec<Vec<RequirementWire>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tolerations: Vec<TolerationWire>,
    /// The label, and whether it must be the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    near: Option<(String, bool)>,
}

#[derive(Clone, Serialize, Deserialize)]
struct RequirementWire {
    key: String,
    operator: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
}

#[derive(Clone, Serialize, Deserialize)]
struct TolerationWire {
    key: Option<String>,
    value: Option<String>,
    effect: Option<EffectWire>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", remote = "Effect")]
enum EffectName {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct EffectWire(#[serde(with = "EffectName")] pub(crate) Effect);

impl From<Place> for PlaceWire {
    fn from(place: Place) -> Self {
        let term = |term: Vec<Requirement>| term.into_iter().map(RequirementWire::from).collect();
        let toleration = |Toleration { key, value, effect }| TolerationWire {
            key,
            value,
            effect: effect.map(EffectWire),
        };
        Self {
            affinity: place.affinity.into_iter().map(term).collect(),
            tolerations: place.tolerations.into_iter().map(toleration).collect(),
            near: place.colocation.map(|one| (one.key, one.required)),
        }
    }
}

impl TryFrom<PlaceWire> for Place {
    type Error = Wrong;
    fn try_from(wire: PlaceWire) -> Result<Self, Wrong> {
        let term =
            |term: Vec<RequirementWire>| term.into_iter().map(Requirement::try_from).collect();
        let toleration = |TolerationWire { key, value, effect }| Toleration {
            key,
            value,
            effect: effect.map(|effect| effect.0),
        };
        Ok(Self {
            affinity: wire.affinity.into_iter().map(term).collect::<Result<_, _>>()?,
            tolerations: wire.tolerations.into_iter().map(toleration).collect(),
            colocation: wire.near.map(|(key, required)| Colocation { key, required }),
        })
    }
}

impl From<Requirement> for RequirementWire {
    fn from(Requirement { key, operator }: Requirement) -> Self {
        let (operator, values) = match operator {
            Operator::In(values) => ("in", values),
            Operator::NotIn(values) => ("not-in", values),
            Operator::Exists => ("exists", Vec::new()),
            Operator::DoesNotExist => ("does-not-exist", Vec::new()),
            Operator::Gt(bound) => ("gt", vec![bound.to_string()]),
            Operator::Lt(bound) => ("lt", vec![bound.to_string()]),
        };
        Self { key, operator: operator.to_owned(), values }
    }
}

impl TryFrom<RequirementWire> for Requirement {
    type Error = Wrong;
    fn try_from(wire: RequirementWire) -> Result<Self, Wrong> {
        let RequirementWire { key, operator, values } = wire;
        let bound = || values.first().and_then(|text| text.parse().ok());
        let operator = match operator.as_str() {
            "gt" => bound().map(Operator::Gt),
            "lt" => bound().map(Operator::Lt),
            "in" => Some(Operator::In(values)),
            "not-in" => Some(Operator::NotIn(values)),
            "exists" => Some(Operator::Exists),
            "does-not-exist" => Some(Operator::DoesNotExist),
            _ => None,
        }
        .ok_or(Wrong::Operator(operator))?;
        Ok(Self { key, operator })
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SecretWire {
    object: String,
    named: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<String>,
    /// File, or folder for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    registry: Option<String>,
    /// Mount of the copy that it is the login of.
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<String>,
    /// Which values are the user and the password of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    login_keys: Option<(String, String)>,
}

impl From<SecretUse> for SecretWire {
    fn from(SecretUse { object, named, key, to }: SecretUse) -> Self {
        let mut wire = Self { object, named, key, ..Self::default() };
        match to {
            SecretTo::Run(SecretPlace::Variable(name)) => wire.variable = Some(name),
            SecretTo::Run(SecretPlace::File { path, mode }) => {
                (wire.path, wire.mode) = (Some(path.display().to_string()), Some(mode));
            }
            SecretTo::Registry(registry) => wire.registry = Some(registry),
            SecretTo::Copy { mount, user_key, password_key } => {
                wire.repository = Some(mount.display().to_string());
                wire.login_keys = Some((user_key, password_key));
            }
        }
        wire
    }
}

impl TryFrom<SecretWire> for SecretUse {
    type Error = Wrong;
    fn try_from(wire: SecretWire) -> Result<Self, Wrong> {
        let repository = wire.repository.zip(wire.login_keys);
        let to = match (wire.variable, wire.path, wire.registry, repository) {
            (Some(name), None, None, None) => SecretTo::Run(SecretPlace::Variable(name)),
            (None, Some(path), None, None) => {
                let mode = wire.mode.unwrap_or(0o600);
                SecretTo::Run(SecretPlace::File { path: path.into(), mode })
            }
            (None, None, Some(registry), None) => SecretTo::Registry(registry),
            (None, None, None, Some((mount, (user_key, password_key)))) => {
                SecretTo::Copy { mount: mount.into(), user_key, password_key }
            }
            _ => return Err(Wrong::Secret),
        };
        Ok(Self { object: wire.object, named: wire.named, key: wire.key, to })
    }
}
