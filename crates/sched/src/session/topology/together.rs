//! Pod affinity that binds pods to one domain, which the first of them chooses. Owns: the domains
//! to try, and their order. Does not know about: levels of topologies.

use model::{ConstraintsId, NodeId, PodId};

use super::{Part, Placer, Scope, Search, kinds, plus};
use crate::session::Session;

impl Search<'_> {
    /// Places parts in a scope. Where the first pod binds others to its domain, one domain after
    /// the other is tried, until all have room.
    pub(super) fn place(
        &mut self,
        s: &mut Session<'_>,
        parts: &[Part<'_>],
        scope: &Scope,
    ) -> Result<(), usize> {
        let Some(&(set, pods)) = parts.first() else { return Ok(()) };
        let (first, constraints) = (pods[0], s.constraints_of(pods[0]));
        let is_alone = parts.len() == 1 && pods.len() == 1;
        if is_alone || !s.cluster.founds(constraints) {
            return self.place_among(s, parts.split_at(1), scope, None);
        }
        let alike = |(_, pods): &&Part<'_>| {
            s.cluster.minds_same_pods(constraints, s.constraints_of(pods[0]))
        };
        let parts = parts.split_at(parts.iter().take_while(alike).count());
        let within = |search: &mut Self, s: &mut Session<'_>, nodes: Option<&[NodeId]>| {
            search.place_among(s, parts, scope, nodes)?;
            search.concludes(s).then_some(()).ok_or(set)
        };
        let mut tried = None;
        let mut outcome = self.attempt(s, |search, s| {
            let outcome = within(search, s, None);
            tried = s.cluster.pods()[first].binding.effective().map(|place| place.node);
            outcome
        });
        let Some(tried) = tried.filter(|_| outcome.is_err()) else { return outcome };
        for nodes in domains(s, &*self.placer, constraints, parts.0, scope) {
            if nodes.contains(&tried) {
                continue;
            }
            if outcome.is_ok() || !s.may_try() {
                break;
            }
            outcome = self.attempt(s, |search, s| within(search, s, Some(&nodes)));
        }
        outcome
    }

    /// Places parts on these nodes, or wherever the scope allows, and then the others.
    fn place_among(
        &mut self,
        s: &mut Session<'_>,
        (parts, others): (&[Part<'_>], &[Part<'_>]),
        scope: &Scope,
        nodes: Option<&[NodeId]>,
    ) -> Result<(), usize> {
        let own = nodes.is_none() && !scope.is_everywhere();
        let own = own.then(|| scope.nodes(s.cluster));
        for &(set, pods) in parts {
            self.placer.place(s, pods, nodes.or(own.as_deref())).then_some(()).ok_or(set)?;
        }
        self.place(s, others, scope)
    }

    /// `true` if the workload has only some of its places, or if the rule allows all of them.
    fn concludes(&mut self, s: &mut Session<'_>) -> bool {
        let has_place = |pod: &PodId| s.cluster.pods()[*pod].binding.effective().is_some();
        let all = self.parts.iter().all(|(_, pods)| pods.iter().all(has_place));
        !all || self.placer.concludes(s)
    }
}

/// The domains in a scope that have room for each kind of these pods: room free at once first, or
/// the least effort where room has to be made, then the fullest.
fn domains(
    s: &Session<'_>,
    placer: &dyn Placer,
    constraints: ConstraintsId,
    parts: &[Part<'_>],
    scope: &Scope,
) -> Vec<Vec<NodeId>> {
    let (asks, wanted) = kinds(s, placer, parts);
    let mut found = Vec::new();
    for mut nodes in s.cluster.domains(constraints) {
        nodes.retain(|&node| scope.contains(s.cluster, node));
        let room = |&ask| {
            let rooms = nodes.iter().map(|&node| placer.room(s, ask, node));
            rooms.fold((0, 0), plus)
        };
        let missing = |((least, most), &(wanted, _)): ((u32, u32), &(u32, usize))| {
            (most >= wanted).then(|| wanted.saturating_sub(least))
        };
        let Some(missing) = asks.iter().map(room).zip(&wanted).map(missing).sum::<Option<u32>>()
        else {
            continue;
        };
        let effort = if placer.effort_first() { missing } else { missing.min(1) };
        let free = nodes.iter().map(|&node| s.cluster.nodes()[node].free(false).gpu_millis);
        found.push((effort, free.sum::<u64>(), nodes));
    }
    found.sort_unstable();
    found.into_iter().map(|(.., nodes)| nodes).collect()
}
