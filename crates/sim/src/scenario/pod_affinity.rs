//! Pod affinity and anti-affinity of a workload, in the words of Kubernetes. Owns: names of keys.
//! Does not know about: places of pods.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::is_default;

/// Pods with these labels, on nodes with an equal value of a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodTerm {
    /// Labels that a pod must have, all of them.
    pub labels: BTreeMap<String, String>,
    /// The label of nodes; with `hostname` each node is a domain.
    pub topology_key: String,
}

/// A weighted preference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightedPodTerm {
    /// Weight, 1 to 100.
    pub weight: u32,
    /// The term.
    pub term: PodTerm,
}

/// Requirements on other pods in a domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodAffinity {
    /// Terms that must all hold.
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: Vec<PodTerm>,
    /// Terms that make a node preferred.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preferred: Vec<WeightedPodTerm>,
}

impl PodAffinity {
    /// `true` if there are no terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.preferred.is_empty()
    }

    /// The terms of the model, for affinity or anti-affinity.
    ///
    /// # Errors
    /// A weight that is not allowed, or a term without labels.
    pub(crate) fn terms(
        &self,
        anti: bool,
    ) -> Result<(Vec<model::PodTerm>, Vec<model::PodPreference>), String> {
        let name = if anti { "pod_anti_affinity" } else { "pod_affinity" };
        let model_term = |term: &PodTerm| {
            if term.labels.is_empty() {
                return Err(format!("`{name}` has a term without `labels`; write at least one"));
            }
            if term.topology_key.is_empty() {
                let what = "`hostname` or a label of nodes";
                return Err(format!("`{name}` has an empty `topology_key`; write {what}"));
            }
            let PodTerm { labels, topology_key } = term.clone();
            Ok(model::PodTerm { labels, topology_key })
        };
        let preference = |one: &WeightedPodTerm| {
            if !(1..=100).contains(&one.weight) {
                let weight = one.weight;
                return Err(format!("`{name}`: a `weight` is {weight}; 1 to 100 are allowed"));
            }
            let weight = i64::from(one.weight);
            let weight = if anti { -weight } else { weight };
            Ok(model::PodPreference { weight, term: model_term(&one.term)? })
        };
        let required = self.required.iter().map(model_term).collect::<Result<_, _>>()?;
        Ok((required, self.preferred.iter().map(preference).collect::<Result<_, _>>()?))
    }

    /// The written form of the terms of the model.
    pub(crate) fn of(
        required: &[model::PodTerm],
        all: &[model::PodPreference],
        anti: bool,
    ) -> Self {
        let term = |term: &model::PodTerm| PodTerm {
            labels: term.labels.clone(),
            topology_key: term.topology_key.clone(),
        };
        let preferred = all.iter().filter(|one| (one.weight < 0) == anti);
        let preferred = preferred.map(|one| WeightedPodTerm {
            weight: u32::try_from(one.weight.unsigned_abs()).unwrap_or(u32::MAX),
            term: term(&one.term),
        });
        Self { required: required.iter().map(term).collect(), preferred: preferred.collect() }
    }
}
