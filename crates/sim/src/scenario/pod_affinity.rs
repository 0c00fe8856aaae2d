//! Which pods a workload's pods belong with, and which they keep away from, in the words of
//! Kubernetes. Owns: names of keys. Does not know about: where pods are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::is_default;

/// Pods with these labels, on nodes with the same value of a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodTerm {
    /// Labels that a pod must have, all of them.
    pub labels: BTreeMap<String, String>,
    /// The label of nodes; `hostname` is each node on its own.
    pub topology_key: String,
}

/// A term that is better kept than not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightedPodTerm {
    /// How much better, 1 to 100.
    pub weight: u32,
    /// Which pods.
    pub term: PodTerm,
}

/// Demands on the pods that are in the same place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodAffinity {
    /// Terms that must all hold.
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: Vec<PodTerm>,
    /// Terms that make a node better.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preferred: Vec<WeightedPodTerm>,
}

impl PodAffinity {
    /// True if nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.preferred.is_empty()
    }

    /// The model's terms, of affinity or of anti-affinity.
    ///
    /// # Errors
    /// A weight that is not allowed, a term about every pod.
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

    /// As written.
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
