//! Forms of places and secrets in documents, where they differ from the types.

use std::collections::BTreeMap;

use model::{Effect, Operator, PodPreference, PodTerm, Preference, Requirement, Term, Toleration};
use serde::{Deserialize, Serialize};

use super::{Colocation, Place, SecretPlace, SecretTo, SecretUse};

/// Error of an invalid document.
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
    /// Weight and requirements of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    preferred: Vec<(u32, Vec<RequirementWire>)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tolerations: Vec<TolerationWire>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    toleration_names: Vec<Option<String>>,
    /// Key of the label, and `true` if it is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    near: Option<(String, bool)>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pod_affinity: Vec<PodTermWire>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pod_anti_affinity: Vec<PodTermWire>,
    /// Weight and term of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pod_preferences: Vec<(i64, PodTermWire)>,
}

#[derive(Clone, Serialize, Deserialize)]
struct PodTermWire {
    labels: BTreeMap<String, String>,
    topology_key: String,
}

impl From<PodTerm> for PodTermWire {
    fn from(PodTerm { labels, topology_key }: PodTerm) -> Self {
        Self { labels, topology_key }
    }
}

impl From<PodTermWire> for PodTerm {
    fn from(PodTermWire { labels, topology_key }: PodTermWire) -> Self {
        Self { labels, topology_key }
    }
}

fn pod_terms<A, B: From<A>>(terms: Vec<A>) -> Vec<B> {
    terms.into_iter().map(B::from).collect()
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
        let term = |term: Term| term.into_iter().map(RequirementWire::from).collect();
        let toleration = |Toleration { key, value, effect }| TolerationWire {
            key,
            value,
            effect: effect.map(EffectWire),
        };
        let preferred = place.preferred.into_iter().map(|one| (one.weight, term(one.term)));
        let preferences = place.pod_preferences.into_iter();
        Self {
            preferred: preferred.collect(),
            affinity: place.affinity.into_iter().map(term).collect(),
            tolerations: place.tolerations.into_iter().map(toleration).collect(),
            toleration_names: place.toleration_names,
            near: place.colocation.map(|one| (one.key, one.required)),
            labels: place.labels,
            pod_affinity: pod_terms(place.pod_affinity),
            pod_anti_affinity: pod_terms(place.pod_anti_affinity),
            pod_preferences: preferences.map(|one| (one.weight, one.term.into())).collect(),
        }
    }
}

impl TryFrom<PlaceWire> for Place {
    type Error = Wrong;
    fn try_from(wire: PlaceWire) -> Result<Self, Wrong> {
        let term = |term: Vec<RequirementWire>| -> Result<Term, Wrong> {
            term.into_iter().map(Requirement::try_from).collect()
        };
        let toleration = |TolerationWire { key, value, effect }| Toleration {
            key,
            value,
            effect: effect.map(|effect| effect.0),
        };
        let preferred = wire.preferred.into_iter();
        let preferred = preferred.map(|(weight, one)| Ok(Preference { weight, term: term(one)? }));
        let preference =
            |(weight, one): (i64, PodTermWire)| PodPreference { weight, term: one.into() };
        Ok(Self {
            preferred: preferred.collect::<Result<_, Wrong>>()?,
            affinity: wire.affinity.into_iter().map(term).collect::<Result<_, _>>()?,
            tolerations: wire.tolerations.into_iter().map(toleration).collect(),
            toleration_names: wire.toleration_names,
            colocation: wire.near.map(|(key, required)| Colocation { key, required }),
            labels: wire.labels,
            pod_affinity: pod_terms(wire.pod_affinity),
            pod_anti_affinity: pod_terms(wire.pod_anti_affinity),
            pod_preferences: wire.pod_preferences.into_iter().map(preference).collect(),
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
    /// File, or folder for all values.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    registry: Option<String>,
    /// Mount of the copy that it is the login for.
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<String>,
    /// Keys of its values that are the user and the password.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_as_it_was_written_and_nothing_is_written_of_anywhere() {
        let exists = |key: &str| Requirement { key: key.to_owned(), operator: Operator::Exists };
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        let term = PodTerm { labels: labels.clone(), topology_key: "zone".to_owned() };
        let place = Place {
            affinity: vec![vec![exists("zone"), exists("rack")]],
            preferred: vec![Preference { weight: 7, term: vec![exists("fast")] }],
            tolerations: vec![Toleration { key: None, value: None, effect: None }],
            toleration_names: vec![Some("any".to_owned())],
            colocation: Some(Colocation { key: "rack".to_owned(), required: true }),
            labels,
            pod_affinity: vec![term.clone()],
            pod_anti_affinity: vec![term.clone(), term.clone()],
            pod_preferences: vec![PodPreference { weight: -9, term }],
        };
        let text = serde_json::to_string(&place).expect("JSON");
        assert_eq!(serde_json::from_str::<Place>(&text).expect(&text), place);
        assert_eq!(serde_json::to_string(&Place::default()).expect("JSON"), "{}");
        assert_eq!(serde_json::from_str::<Place>("{}").expect("a place"), Place::default());
    }
}
