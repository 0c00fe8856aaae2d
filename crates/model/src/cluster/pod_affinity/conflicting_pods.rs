//! Pods that conflict by anti-affinity. Owns: the conflicting pods for some constraints; those that
//! may be on another node are cached until a pod that affinity terms concern changes.

use std::collections::BTreeMap;

use super::Rules;
use crate::{Cluster, ConstraintsId, NodeId, PodId};

/// Pods that conflict with pods of some constraints.
#[derive(Debug, Clone, Default)]
pub struct ConflictingPods {
    /// Constraints and affinity revision of the cache.
    of: Option<(ConstraintsId, u64)>,
    /// Conflicts of terms whose domains have several nodes, by term.
    wide: BTreeMap<usize, ByDomain>,
}

type ByDomain = BTreeMap<String, Vec<PodId>>;

impl ConflictingPods {
    /// Pods that conflict with a pod on a node, in order.
    #[must_use]
    pub fn on(
        &mut self,
        cluster: &Cluster,
        constraints: ConstraintsId,
        node: NodeId,
    ) -> Vec<PodId> {
        let Some(rules) = cluster.affinity.rules(constraints) else { return Vec::new() };
        let of = Some((constraints, cluster.affinity.revision));
        if self.of != of {
            *self = Self { of, wide: cluster.wide_conflicts(rules) };
        }
        let row = &cluster.nodes[node];
        let is_here = |pod: &PodId| {
            let place = cluster.pods[*pod].binding.effective();
            place.is_some_and(|place| place.node == node)
        };
        let conflicts_here =
            |pod: &PodId| cluster.conflicts(rules, *pod).any(|at| !cluster.affinity.is_wide(at));
        let here = row.pods.iter().copied().filter(is_here).filter(conflicts_here);
        let near = self.wide.iter().filter_map(|(&at, domains)| {
            domains.get(row.topology_domain(&cluster.affinity.terms[at].term.topology_key)?)
        });
        let mut pods: Vec<PodId> = here.chain(near.flatten().copied()).collect();
        pods.sort_unstable();
        pods.dedup();
        pods
    }
}

impl Cluster {
    /// The terms by which a pod and a pod with these rules exclude each other.
    fn conflicts<'a>(&'a self, rules: &'a Rules, pod: PodId) -> impl Iterator<Item = usize> + 'a {
        let theirs = self.affinity.rules(self.set_of(pod).constraints);
        theirs.into_iter().flat_map(|theirs| {
            let avoided = rules.apart.iter().filter(|at| theirs.matches.contains(at));
            let avoiding = rules.matches.iter().filter(|at| theirs.apart.contains(at));
            avoided.chain(avoiding).copied()
        })
    }

    fn wide_conflicts(&self, rules: &Rules) -> BTreeMap<usize, ByDomain> {
        let mut found = BTreeMap::<usize, ByDomain>::new();
        let is_wide = |at: &usize| self.affinity.is_wide(*at);
        let terms = &self.affinity.terms;
        let avoided = rules.apart.iter().any(|at| is_wide(at) && !terms[*at].matching.is_empty());
        let avoiding =
            rules.matches.iter().any(|at| is_wide(at) && !terms[*at].avoiding.is_empty());
        if !avoided && !avoiding {
            return found;
        }
        for (id, pod) in self.pods.iter() {
            let Some(place) = pod.binding.effective() else { continue };
            for at in self.conflicts(rules, id).filter(is_wide) {
                let node = &self.nodes[place.node];
                let Some(domain) = node.topology_domain(&terms[at].term.topology_key) else {
                    continue;
                };
                let domains = found.entry(at).or_default();
                // Mostly the domain is known already, and its name need not be copied.
                if let Some(pods) = domains.get_mut(domain) {
                    pods.push(id);
                } else {
                    domains.insert(domain.to_owned(), vec![id]);
                }
            }
        }
        found
    }
}
