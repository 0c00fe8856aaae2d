//! Constraints of a pod on nodes, free resources aside. Owns: labels, selectors, affinity, taints
//! and tolerations, with the names and the meaning of Kubernetes.

use std::collections::BTreeMap;
use std::fmt;

use crate::{PodPreference, PodTerm, is_host};

/// Condition on the value of a label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// The value is one of these.
    In(Vec<String>),
    /// The value is none of these, or the label is missing.
    NotIn(Vec<String>),
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
    /// The value is a number above this.
    Gt(i64),
    /// The value is a number below this.
    Lt(i64),
}

/// A condition on one label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// Name of the label.
    pub key: String,
    /// Condition on its value.
    pub operator: Operator,
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, operator } = self;
        match operator {
            Operator::In(values) => write!(f, "{key} is {}", values.join(" or ")),
            Operator::NotIn(values) => write!(f, "{key} is not {}", values.join(" or ")),
            Operator::Exists => write!(f, "{key} is there"),
            Operator::DoesNotExist => write!(f, "{key} is not there"),
            Operator::Gt(than) => write!(f, "{key} is above {than}"),
            Operator::Lt(than) => write!(f, "{key} is below {than}"),
        }
    }
}

/// Requirements that must all hold.
pub type Term = Vec<Requirement>;

/// Effect of a taint on pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// They are not placed on the node.
    NoSchedule,
    /// They are placed elsewhere if possible.
    PreferNoSchedule,
    /// They are not placed on the node, and the caller that adds the taint stops running ones.
    NoExecute,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        })
    }
}

/// A taint: excludes pods that do not tolerate it from a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// Name.
    pub key: String,
    /// Value; may be empty.
    pub value: String,
    /// Effect.
    pub effect: Effect,
}

/// Key of the taint of a cordoned node of Kubernetes. Pods that tolerate it start there.
pub const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// Format of Kubernetes: `KEY=VALUE:EFFECT`, or `KEY:EFFECT` without a value.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, effect } = self;
        match value.as_str() {
            "" => write!(f, "{key}:{effect}"),
            value => write!(f, "{key}={value}:{effect}"),
        }
    }
}

/// A toleration: makes a pod ignore matching taints.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Toleration {
    /// Name of the taint; `None` tolerates every name.
    pub key: Option<String>,
    /// Its value; `None` tolerates every value.
    pub value: Option<String>,
    /// Its effect; `None` tolerates every effect.
    pub effect: Option<Effect>,
}

/// A preferred term.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Preference {
    /// Weight, 1–100.
    pub weight: u32,
    /// Requirements that should hold.
    pub term: Term,
}

/// All constraints of a pod on nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Constraints {
    /// Labels and their required values.
    pub selector: BTreeMap<String, String>,
    /// Required terms, of which one must hold; empty for every node.
    pub required: Vec<Term>,
    /// Preferred terms.
    pub preferred: Vec<Preference>,
    /// Tolerated taints.
    pub tolerations: Vec<Toleration>,
    /// Node pools, the best first; empty for every pool. All pods of a workload are in one.
    pub pools: Vec<String>,
    /// Labels of the pod itself, which the affinity terms of others select.
    pub labels: BTreeMap<String, String>,
    /// Terms of which each must select a pod in the domain.
    pub pod_affinity: Vec<PodTerm>,
    /// Terms of which none may select a pod in the domain, now or later.
    pub pod_anti_affinity: Vec<PodTerm>,
    /// Pods that make a node preferred or less preferred.
    pub pod_preferences: Vec<PodPreference>,
}

/// Id of a set of constraints that some workload has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ConstraintsId(pub(crate) u32);

impl ConstraintsId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Constraint that excludes a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mismatch {
    /// A label of the selector is missing or different, or the label of the domains of a required
    /// pod affinity is missing.
    Selector,
    /// No required term holds.
    Affinity,
    /// A taint is not tolerated.
    Taint,
    /// It is cordoned, by a taint that is not tolerated, and has no other such taint.
    Cordoned,
    /// It is in none of the node pools.
    Pool,
}

impl Requirement {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt(bound) => number().is_some_and(|number| number > *bound),
            Operator::Lt(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl Toleration {
    fn tolerates(&self, taint: &Taint) -> bool {
        self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self.value.as_ref().is_none_or(|value| *value == taint.value)
            && self.effect.is_none_or(|effect| effect == taint.effect)
    }
}

/// Id of a node pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolId(pub(crate) u32);

impl PoolId {
    /// The pool of nodes without a pool label.
    pub const DEFAULT: Self = Self(0);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Label with the name of a node's pool.
pub const POOL_LABEL: &str = "node-pool";
/// Name of the pool of nodes without the label.
pub const POOL_DEFAULT: &str = "default";

/// The node pool of a node with these labels.
#[must_use]
pub fn pool_of(labels: &BTreeMap<String, String>) -> &str {
    labels.get(POOL_LABEL).map_or(POOL_DEFAULT, String::as_str)
}

fn all(term: &Term, labels: &BTreeMap<String, String>) -> bool {
    term.iter().all(|requirement| requirement.holds(labels))
}

impl Constraints {
    /// Checks a node with these labels and taints.
    ///
    /// # Errors
    /// The first constraint that excludes it.
    pub fn check(
        &self,
        labels: &BTreeMap<String, String>,
        taints: &[Taint],
    ) -> Result<(), Mismatch> {
        if !self.pools.is_empty() && !self.pools.iter().any(|pool| pool == pool_of(labels)) {
            return Err(Mismatch::Pool);
        }
        let is_missing = |key: &str| !is_host(key) && !labels.contains_key(key);
        // A node without the label of a topology is in no domain of it.
        if self.selector.iter().any(|(key, value)| labels.get(key) != Some(value))
            || self.pod_affinity.iter().any(|term| is_missing(&term.topology_key))
        {
            return Err(Mismatch::Selector);
        }
        if !self.required.is_empty() && !self.required.iter().any(|term| all(term, labels)) {
            return Err(Mismatch::Affinity);
        }
        let keeps_away = |taint: &&Taint| taint.effect != Effect::PreferNoSchedule;
        let mut hard = taints.iter().filter(keeps_away).filter(|taint| !self.tolerates(taint));
        match (hard.next(), hard.next()) {
            (None, _) => Ok(()),
            (Some(taint), None) if taint.key == CORDONED => Err(Mismatch::Cordoned),
            _ => Err(Mismatch::Taint),
        }
    }

    /// The label that a node with these labels and taints lacks, as key and value, if it meets all
    /// constraints with it.
    #[must_use]
    pub fn missing_label(
        &self,
        labels: &BTreeMap<String, String>,
        taints: &[Taint],
    ) -> Option<(String, String)> {
        let selected = self.selector.iter();
        let one_of = self.required.iter().flatten().filter_map(|of| match &of.operator {
            Operator::In(values) => Some((&of.key, values.first()?)),
            _ => None,
        });
        let lacking = selected.chain(one_of).filter(|(key, _)| !labels.contains_key(*key));
        let mut lacking = lacking.map(|(key, value)| (key.clone(), value.clone()));
        self.check(labels, taints).err()?;
        lacking.find(|(key, value)| {
            let mut labels = labels.clone();
            labels.insert(key.clone(), value.clone());
            self.check(&labels, taints).is_ok()
        })
    }

    /// Score of a node: the sum of weights of the preferences that hold, minus one for each soft
    /// taint that is not tolerated.
    #[must_use]
    pub fn preference(&self, labels: &BTreeMap<String, String>, taints: &[Taint]) -> i64 {
        let held = self.preferred.iter().filter(|preference| all(&preference.term, labels));
        let weight: i64 = held.map(|preference| i64::from(preference.weight)).sum();
        let soft = taints.iter().filter(|taint| taint.effect == Effect::PreferNoSchedule);
        let away = soft.filter(|taint| !self.tolerates(taint)).count();
        weight - i64::try_from(away).unwrap_or(i64::MAX)
    }

    /// True if a taint is tolerated.
    #[must_use]
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> BTreeMap<String, String> {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn holds(key: &str, operator: Operator, on: &str) -> bool {
        Requirement { key: key.into(), operator }.holds(&labels(on))
    }

    #[test]
    fn operators_mean_what_kubernetes_means() {
        assert!(holds("gpu", Operator::In(vec!["a100".into()]), "gpu=a100"));
        assert!(!holds("gpu", Operator::In(vec!["a100".into()]), ""));
        assert!(
            holds("gpu", Operator::NotIn(vec!["a100".into()]), ""),
            "a missing label is not in"
        );
        assert!(!holds("gpu", Operator::NotIn(vec!["a100".into()]), "gpu=a100"));
        assert!(holds("gpu", Operator::Exists, "gpu=") && !holds("gpu", Operator::Exists, "cpu=x"));
        assert!(holds("gen", Operator::Gt(7), "gen=8") && !holds("gen", Operator::Gt(8), "gen=8"));
        assert!(!holds("gen", Operator::Lt(9), "gen=old"), "not a number");
    }

    #[test]
    fn a_node_without_the_label_of_a_topology_is_in_no_domain_of_it() {
        let near = |key: &str| {
            let term = PodTerm { labels: BTreeMap::new(), topology_key: key.into() };
            Constraints { pod_affinity: vec![term], ..Constraints::default() }
        };
        assert_eq!(near("rack").check(&labels("zone=a"), &[]), Err(Mismatch::Selector));
        assert_eq!(near("rack").check(&labels("rack=1"), &[]), Ok(()));
        assert_eq!(near(crate::HOST_LABEL).check(&labels(""), &[]), Ok(()), "each node is one");
    }

    #[test]
    fn a_taint_keeps_away_pods_that_do_not_tolerate_it() {
        let taint =
            Taint { key: "dedicated".into(), value: "a".into(), effect: Effect::NoSchedule };
        let check = |tolerations: Vec<Toleration>| {
            let constraints = Constraints { tolerations, ..Constraints::default() };
            constraints.check(&BTreeMap::new(), std::slice::from_ref(&taint))
        };
        let named = |value: Option<&str>| Toleration {
            key: Some("dedicated".into()),
            value: value.map(Into::into),
            effect: None,
        };
        assert_eq!(check(vec![]), Err(Mismatch::Taint));
        assert_eq!(check(vec![named(Some("b"))]), Err(Mismatch::Taint));
        assert_eq!(check(vec![named(Some("a"))]), Ok(()));
        assert_eq!(check(vec![named(None)]), Ok(()));
    }
}
