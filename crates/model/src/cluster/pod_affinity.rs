//! Pod affinity and anti-affinity. Owns: the number of pods that a term selects in each domain,
//! updated with every binding. Does not know about: how the scheduler uses it.

mod conflicting_pods;

use std::collections::BTreeMap;

use crate::cluster::eligibility::Eligibility;
use crate::cluster::sign::Sign;
use crate::{Cluster, Constraints, ConstraintsId, Node, NodeId, PodId, PodMismatch, PodTerm};
pub use conflicting_pods::ConflictingPods;

/// Number of pods in a domain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    /// Pods after all pending releases and starts.
    soon: u32,
    /// Pods that are there now, those being stopped included.
    present: u32,
}

/// State of the pods in which a place is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Soon,
    Now,
    /// The pod has the place already, and may start if conflicting pods are gone.
    Started,
}

impl Count {
    const fn pods(self, when: When) -> u32 {
        match when {
            When::Soon => self.soon,
            When::Now => self.soon + self.present,
            When::Started => self.present,
        }
    }
}

/// A term, and the counts of the pods that it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    term: PodTerm,
    /// Pods that it selects, by domain.
    matching: BTreeMap<String, Count>,
    /// Pods with this term as anti-affinity, by domain.
    avoiding: BTreeMap<String, Count>,
    /// All pods that it selects, in a domain or not.
    all: Count,
}

impl Term {
    fn has_matching(&self, node: &Node, when: When) -> bool {
        pods_in(&self.matching, node.topology_domain(&self.term.topology_key), when) > 0
    }

    fn has_avoiding(&self, node: &Node, when: When) -> bool {
        pods_in(&self.avoiding, node.topology_domain(&self.term.topology_key), when) > 0
    }
}

/// The terms of some constraints, and the terms that select pods with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rules {
    near: Vec<usize>,
    apart: Vec<usize>,
    preferred: Vec<(i64, usize)>,
    matches: Vec<usize>,
}

impl Rules {
    const fn is_empty(&self) -> bool {
        self.near.is_empty()
            && self.apart.is_empty()
            && self.preferred.is_empty()
            && self.matches.is_empty()
    }
}

/// All terms in use, with their counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct AffinityIndex {
    ids: BTreeMap<PodTerm, usize>,
    terms: Vec<Term>,
    /// Rules by id of the constraints.
    rules: Vec<Rules>,
    /// Number of changes of any count.
    revision: u64,
}

/// State in which a place is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Horizon {
    Soon,
    Present,
}

fn is_about(term: &PodTerm, constraints: &Constraints) -> bool {
    term.labels.iter().all(|(key, value)| constraints.labels.get(key) == Some(value))
}

fn pods_in(counts: &BTreeMap<String, Count>, domain: Option<&str>, when: When) -> u32 {
    domain.and_then(|domain| counts.get(domain)).map_or(0, |count| count.pods(when))
}

impl AffinityIndex {
    /// Adds new constraints. True if existing pods have to be recounted.
    pub(crate) fn learn(&mut self, eligibility: &Eligibility) -> bool {
        let (rules_before, terms_before) = (self.rules.len(), self.terms.len());
        for at in rules_before..eligibility.len() {
            let constraints = eligibility.constraints_at(at);
            let near = self.ids_of(&constraints.pod_affinity);
            let apart = self.ids_of(&constraints.pod_anti_affinity);
            let preferred = constraints.pod_preferences.iter();
            let preferred =
                preferred.map(|one| (one.weight, self.id_of(&one.term))).collect::<Vec<_>>();
            self.rules.push(Rules { near, apart, preferred, matches: Vec::new() });
        }
        for at in rules_before..self.rules.len() {
            self.rules[at].matches = self.about(eligibility.constraints_at(at), 0);
        }
        let mut again = false;
        if self.terms.len() > terms_before {
            for at in 0..rules_before {
                let more = self.about(eligibility.constraints_at(at), terms_before);
                again |= !more.is_empty();
                self.rules[at].matches.extend(more);
            }
        }
        again
    }

    /// Forgets all constraints, before others replace them.
    pub(crate) fn forget(&mut self) {
        *self = Self { revision: self.revision + 1, ..Self::default() };
    }

    /// The terms from `first` on that select pods with these constraints.
    fn about(&self, constraints: &Constraints, first: usize) -> Vec<usize> {
        if constraints.labels.is_empty() {
            return Vec::new();
        }
        let terms = first..self.terms.len();
        terms.filter(|&at| is_about(&self.terms[at].term, constraints)).collect()
    }

    fn ids_of(&mut self, terms: &[PodTerm]) -> Vec<usize> {
        terms.iter().map(|term| self.id_of(term)).collect()
    }

    fn id_of(&mut self, term: &PodTerm) -> usize {
        if let Some(&id) = self.ids.get(term) {
            return id;
        }
        let (matching, avoiding) = (BTreeMap::new(), BTreeMap::new());
        let all = Count::default();
        self.terms.push(Term { term: term.clone(), matching, avoiding, all });
        self.ids.insert(term.clone(), self.terms.len() - 1);
        self.terms.len() - 1
    }

    /// True if no workload has an affinity term.
    pub(crate) const fn is_unused(&self) -> bool {
        self.terms.is_empty()
    }

    /// True if a domain of a term may have several nodes.
    fn is_wide(&self, term: usize) -> bool {
        !self.terms[term].term.is_on_one_node()
    }

    fn rules(&self, id: ConstraintsId) -> Option<&Rules> {
        if self.is_unused() {
            return None;
        }
        self.rules.get(id.index()).filter(|rules| !rules.is_empty())
    }

    /// Counts a pod with these constraints on a node, or removes it from the counts.
    pub(crate) fn count(&mut self, id: ConstraintsId, node: &Node, horizon: Horizon, sign: Sign) {
        let Some(rules) = self.rules.get(id.index()).filter(|rules| !rules.is_empty()) else {
            return;
        };
        self.revision += 1;
        let change = |count: &mut Count| match horizon {
            Horizon::Soon => sign.one(&mut count.soon),
            Horizon::Present => sign.one(&mut count.present),
        };
        let change_in = |counts: &mut BTreeMap<String, Count>, term: &PodTerm| {
            let Some(domain) = node.topology_domain(&term.topology_key) else { return };
            let count = counts.entry(domain.to_owned()).or_default();
            change(count);
            if *count == Count::default() {
                counts.remove(domain);
            }
        };
        for &at in &rules.matches {
            let Term { term, matching, .. } = &mut self.terms[at];
            change_in(matching, term);
        }
        for &at in &rules.apart {
            let Term { term, avoiding, .. } = &mut self.terms[at];
            change_in(avoiding, term);
        }
        for &at in &rules.matches {
            change(&mut self.terms[at].all);
        }
    }

    /// Resets every count.
    pub(crate) fn clear(&mut self) {
        self.revision += 1;
        for term in &mut self.terms {
            term.matching.clear();
            term.avoiding.clear();
            term.all = Count::default();
        }
    }

    /// True if the counts are equal.
    pub(crate) fn counts_as(&self, other: &Self) -> bool {
        (&self.terms, &self.rules) == (&other.terms, &other.rules)
    }

    fn check(&self, rules: &Rules, node: &Node, when: When) -> Result<(), PodMismatch> {
        if when != When::Started {
            for &at in &rules.near {
                let Term { term, matching, all, .. } = &self.terms[at];
                let here = node.topology_domain(&term.topology_key);
                // The first of the pods that belong together may go to any domain.
                let first = here.is_some() && all.soon == 0 && rules.matches.contains(&at);
                if !first && pods_in(matching, here, When::Soon) == 0 {
                    return Err(PodMismatch::Affinity);
                }
            }
        }
        if rules.apart.iter().any(|&at| self.terms[at].has_matching(node, when)) {
            return Err(PodMismatch::AntiAffinity);
        }
        if rules.matches.iter().any(|&at| self.terms[at].has_avoiding(node, when)) {
            return Err(PodMismatch::Repelled);
        }
        Ok(())
    }
}

/// Effect of placed pods on a pod without a place.
impl Cluster {
    /// True if pod affinity or anti-affinity concerns pods with these constraints.
    #[must_use]
    pub fn minds_pods(&self, constraints: ConstraintsId) -> bool {
        self.affinity.rules(constraints).is_some()
    }

    /// True if pods with these constraints have required pod affinity: fewer pods on a node may be
    /// worse for them.
    #[must_use]
    pub fn needs_others(&self, constraints: ConstraintsId) -> bool {
        self.affinity.rules(constraints).is_some_and(|rules| !rules.near.is_empty())
    }

    /// Checks pod affinity of these constraints on a node against the pods after all pending
    /// changes, and with `now` also against pods that are still there.
    ///
    /// # Errors
    /// The first mismatch.
    pub fn check_pods(
        &self,
        constraints: ConstraintsId,
        node: NodeId,
        now: bool,
    ) -> Result<(), PodMismatch> {
        let when = if now { When::Now } else { When::Soon };
        self.affinity
            .rules(constraints)
            .map_or(Ok(()), |rules| self.affinity.check(rules, &self.nodes[node], when))
    }

    /// True if a pod that has a place on a node may start there: no conflicting pod is left.
    #[must_use]
    pub fn may_start(&self, pod: PodId, node: NodeId) -> bool {
        let rules = self.affinity.rules(self.set_of(pod).constraints);
        rules.is_none_or(|rules| {
            self.affinity.check(rules, &self.nodes[node], When::Started).is_ok()
        })
    }

    /// The affinity terms whose domain the next pod with these constraints chooses for itself and
    /// the pods that it belongs with.
    fn founding(&self, constraints: ConstraintsId) -> impl Iterator<Item = &PodTerm> {
        self.affinity.rules(constraints).into_iter().flat_map(|rules| {
            let near = rules.near.iter().filter(|at| rules.matches.contains(at));
            near.map(|&at| &self.affinity.terms[at])
                .filter(|term| term.all.soon == 0)
                .map(|term| &term.term)
        })
    }

    /// True if the next pod with these constraints chooses a domain for the pods that it belongs
    /// with.
    #[must_use]
    pub fn founds(&self, constraints: ConstraintsId) -> bool {
        self.founding(constraints).next().is_some()
    }

    /// The nodes of each domain that this pod can choose.
    #[must_use]
    pub fn domains(&self, constraints: ConstraintsId) -> Vec<Vec<NodeId>> {
        let mut domains = BTreeMap::<Vec<&str>, Vec<NodeId>>::new();
        for (id, node) in self.nodes.iter() {
            let domain = self
                .founding(constraints)
                .map(|term| node.topology_domain(&term.topology_key))
                .collect();
            if let Some(domain) = domain {
                domains.entry(domain).or_default().push(id);
            }
        }
        domains.into_values().collect()
    }

    /// True if both constraints have the same required pod affinity, and are selected by the same
    /// terms.
    #[must_use]
    pub fn minds_same_pods(&self, left: ConstraintsId, right: ConstraintsId) -> bool {
        let of = |id| self.affinity.rules(id).map(|rules| (&rules.near, &rules.matches));
        left == right || of(left) == of(right)
    }

    /// True if no two pods with these constraints may be in one domain.
    #[must_use]
    pub fn keep_apart(&self, constraints: ConstraintsId) -> bool {
        let rules = self.affinity.rules(constraints);
        rules.is_some_and(|rules| rules.apart.iter().any(|at| rules.matches.contains(at)))
    }

    /// Score of a node by the pod preferences of these constraints; negative is worse.
    #[must_use]
    pub fn pod_preference(&self, constraints: ConstraintsId, node: NodeId) -> i64 {
        let Some(rules) = self.affinity.rules(constraints) else { return 0 };
        let node = &self.nodes[node];
        let counts = |at: usize| {
            let Term { term, matching, .. } = &self.affinity.terms[at];
            pods_in(matching, node.topology_domain(&term.topology_key), When::Soon) > 0
        };
        rules.preferred.iter().filter(|(_, at)| counts(*at)).map(|(weight, _)| weight).sum()
    }

    /// Two revisions, of which one changes with any change that affects whether, and how well, a
    /// node suits pods with these constraints.
    #[must_use]
    pub fn revision_for(&self, constraints: ConstraintsId, node: NodeId) -> (u64, u64) {
        let pods = if self.minds_pods(constraints) { self.affinity.revision } else { 0 };
        (self.revision(node), pods)
    }

    /// Adds new constraints to the affinity index.
    pub(crate) fn learn_affinity(&mut self) {
        if self.affinity.learn(&self.eligibility) {
            self.recount_affinity();
        }
    }

    /// Counts all pods again.
    pub(crate) fn recount_affinity(&mut self) {
        self.affinity.clear();
        for (_, pod) in self.pods.iter() {
            let set = &self.workloads[pod.workload].pod_sets[pod.set as usize];
            let binding = &pod.binding;
            for (place, horizon) in
                [(binding.current.as_ref(), Horizon::Present), (binding.effective(), Horizon::Soon)]
            {
                if let Some(place) = place {
                    let node = &self.nodes[place.node];
                    self.affinity.count(set.constraints, node, horizon, Sign::Plus);
                }
            }
        }
    }
}
