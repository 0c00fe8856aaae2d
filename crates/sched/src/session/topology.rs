//! Topology constraints. Owns: the domains that a workload, a group or a pod set may use, their
//! order, and the search through the tree of its groups. Does not know about: placing pods inside a
//! domain ([`Placer`]). Source: scheduling reference §13.
//!
//! A domain is tried when it has room for every pod set alone; placing them shows whether they fit
//! together. So no domain is refused wrongly, and GPU fractions count like any other room.

mod free;
mod together;

use std::collections::BTreeMap;

use model::{
    Child, Cluster, DomainId, NodeId, PodId, TopologyConstraint, TopologyId, Workload, WorkloadId,
    WorkloadSpec,
};
use smallvec::SmallVec;
use units::Resources;

use crate::place::PodRequirements;
use crate::session::Session;
pub(crate) use free::Free;
use model::spare;
use reasons::{NoDomain, Pending};

/// Nodes that lie in all of these domains; all nodes if there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scope(SmallVec<[(TopologyId, DomainId); 2]>);

impl Scope {
    /// `true` if it contains every node.
    pub(crate) fn is_everywhere(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, cluster: &Cluster, node: NodeId) -> bool {
        self.0.iter().all(|&(topology, domain)| cluster.topology(topology).contains(domain, node))
    }

    /// Its nodes. The last domain is the narrowest.
    pub(crate) fn nodes(&self, cluster: &Cluster) -> Vec<NodeId> {
        let Some(&(topology, domain)) = self.0.last() else {
            return cluster.nodes().ids().collect();
        };
        let mut nodes = cluster.topology(topology).nodes(domain);
        nodes.retain(|&node| self.contains(cluster, node));
        nodes
    }

    fn with(&self, topology: TopologyId, domain: DomainId) -> Self {
        let mut narrower = self.clone();
        narrower.0.push((topology, domain));
        narrower
    }

    /// `true` if it lies in one domain of this level already.
    fn is_within(&self, cluster: &Cluster, (topology, level): Level) -> bool {
        let depth = |domain| cluster.topology(topology).domain(domain).path.len();
        self.0.iter().any(|&(other, domain)| other == topology && depth(domain) > level)
    }
}

/// A level of a topology.
type Level = (TopologyId, usize);

/// Places the pods of one set.
pub(crate) trait Placer {
    /// The requirements of a pod.
    fn ask(&self, s: &Session<'_>, pod: PodId) -> PodRequirements;

    /// Number of such pods that a node accepts: with the least effort, and at most.
    fn room(&self, s: &Session<'_>, ask: PodRequirements, node: NodeId) -> (u32, u32);

    /// `true` if the effort matters more than the distance of the pods.
    fn effort_first(&self) -> bool;

    /// Places all these pods on these nodes (`None`: on any). The caller rolls back after a
    /// failure.
    fn place(&mut self, s: &mut Session<'_>, pods: &[PodId], among: Option<&[NodeId]>) -> bool;

    /// `true` if the workload may have the places it got. It may not change them.
    fn concludes(&mut self, _: &mut Session<'_>) -> bool {
        true
    }

    /// An attempt begins; attempts may be nested.
    fn begin(&mut self) {}

    /// The last attempt ends. If it is not kept, the cluster has been rolled back.
    fn end(&mut self, _: &Session<'_>, _kept: bool) {}
}

/// Places pods of a workload, those of a set together, at every level in suitable domains.
///
/// # Errors
/// The pod set that found no room. Nothing is rolled back.
pub(crate) fn place(
    s: &mut Session<'_>,
    placer: &mut dyn Placer,
    id: WorkloadId,
    pods: &[PodId],
) -> Result<(), usize> {
    let set_of = |pod: &PodId| s.cluster.pods()[*pod].set;
    let parts: Vec<_> = pods.chunk_by(|l, r| set_of(l) == set_of(r)).collect();
    let parts: Parts<'_> =
        parts.into_iter().map(|pods| (set_of(&pods[0]) as usize, pods)).collect();
    let mut search = Search { id, placer, parts: parts.clone() };
    if s.cluster.workloads()[id].spec.has_topology() {
        search.part(s, None, &Scope::default(), None)
    } else {
        search.place(s, &parts, &Scope::default())
    }
}

/// Pods of a set.
type Part<'a> = (usize, &'a [PodId]);
type Parts<'a> = SmallVec<[Part<'a>; 1]>;

struct Search<'a> {
    id: WorkloadId,
    placer: &'a mut dyn Placer,
    /// The pods to place, by set.
    parts: Parts<'a>,
}

impl<'a> Search<'a> {
    /// Places a part of the workload (`None`: all of it) in the first suitable domain.
    fn part(
        &mut self,
        s: &mut Session<'_>,
        part: Option<Child>,
        scope: &Scope,
        preferred: Option<Level>,
    ) -> Result<(), usize> {
        let spec = &s.cluster.workloads()[self.id].spec;
        let Some(constraint) = constraint_of(spec, part) else {
            return self.inside(s, part, scope, preferred);
        };
        let level = constraint.preferred.map(|level| (constraint.topology, level)).or(preferred);
        let parts = self.parts_in(s.cluster, part);
        let Some(&(first, _)) = parts.first() else { return Ok(()) };
        let tally = DomainCapacity::new(s, &*self.placer, &parts, constraint.topology, scope);
        let bound = bound(s.cluster, self.id, part, constraint);
        let mut failed = tally.short_of().unwrap_or(first);
        for scope in tally.candidates(s.cluster, constraint, &bound, scope, &*self.placer) {
            if !s.may_try() {
                break;
            }
            let is_all = parts.len() == self.parts.len();
            let outcome = self.attempt(s, |search, s| {
                search.inside(s, part, &scope, level)?;
                let done = !is_all || search.placer.concludes(s);
                done.then_some(()).ok_or(first)
            });
            match outcome {
                Ok(()) => return Ok(()),
                Err(set) => failed = set,
            }
        }
        Err(failed)
    }

    /// Runs an attempt, and rolls back if it fails.
    fn attempt(
        &mut self,
        s: &mut Session<'_>,
        what: impl FnOnce(&mut Self, &mut Session<'_>) -> Result<(), usize>,
    ) -> Result<(), usize> {
        let start = s.cluster.checkpoint();
        self.placer.begin();
        let outcome = what(self, s);
        if outcome.is_err() {
            s.cluster.rollback(start);
        }
        self.placer.end(s, outcome.is_ok());
        outcome
    }

    /// Places a part of the workload in a fixed scope.
    fn inside(
        &mut self,
        s: &mut Session<'_>,
        part: Option<Child>,
        scope: &Scope,
        preferred: Option<Level>,
    ) -> Result<(), usize> {
        let group = match part {
            None => None,
            Some(Child::Group(group)) => Some(group),
            Some(Child::Set(set)) => {
                let own = self.parts.iter().find(|(other, _)| *other == set);
                let pods = own.map_or(&[][..], |(_, pods)| pods);
                return self.fill(s, pods, scope, preferred).then_some(()).ok_or(set);
            }
        };
        let spec = &s.cluster.workloads()[self.id].spec;
        let groups = spec.children(group).filter(|child| matches!(child, Child::Group(_)));
        // Sets are in the order of their task priorities.
        let own = self.parts.iter().filter(|(set, _)| spec.pod_sets[*set].group == group);
        let children: Vec<_> = groups.chain(own.map(|&(set, _)| Child::Set(set))).collect();
        children.into_iter().try_for_each(|child| self.part(s, Some(child), scope, preferred))
    }

    /// Places the pods of a set. If the scope is wider than their preferred level, as few domains
    /// of that level as possible are filled, the largest first and the last one with the domain
    /// that the rest fits in best.
    fn fill(
        &mut self,
        s: &mut Session<'_>,
        pods: &'a [PodId],
        scope: &Scope,
        preferred: Option<Level>,
    ) -> bool {
        if pods.is_empty() {
            return true;
        }
        let preferred = preferred.filter(|&level| !scope.is_within(s.cluster, level));
        let Some((topology, level)) = preferred else {
            return self.place(s, &[(0, pods)], scope).is_ok();
        };
        let tally = DomainCapacity::new(s, &*self.placer, &[(0, pods)], topology, scope);
        let mut portions = Vec::new();
        tally.portion(s.cluster, None, level, pods.len(), &mut portions);
        let (mut left, mut rest) = (Vec::new(), pods);
        for (domain, count) in portions {
            let (now, later) = rest.split_at(count.min(rest.len()));
            rest = later;
            let scope = scope.with(topology, domain);
            let placed = self.attempt(s, |search, s| search.place(s, &[(0, now)], &scope));
            if placed.is_err() {
                left.extend(now);
            }
        }
        left.extend(rest);
        left.is_empty() || self.place(s, &[(0, &left)], scope).is_ok()
    }

    /// The pods to place in a part of the workload, by set.
    fn parts_in(&self, cluster: &Cluster, part: Option<Child>) -> Parts<'a> {
        let spec = &cluster.workloads()[self.id].spec;
        self.parts.iter().copied().filter(|&(set, _)| holds(spec, part, set)).collect()
    }
}

/// The domains of pods of a part that are placed already: of the required level, which binds the
/// others to them, or of the preferred one.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    /// `None`: nothing is bound. Empty: a pod is outside of the topology.
    pub(crate) required: Option<Vec<DomainId>>,
    near: Vec<DomainId>,
}

pub(crate) fn bound(
    cluster: &Cluster,
    id: WorkloadId,
    part: Option<Child>,
    constraint: TopologyConstraint,
) -> Bound {
    let workload = &cluster.workloads()[id];
    if workload.placed == 0 {
        return Bound::default();
    }
    let pods = pods_in(workload, part);
    let nodes = pods.filter_map(|pod| cluster.pods()[pod].binding.effective());
    let topology = cluster.topology(constraint.topology);
    let mut bound = Bound::default();
    let mut any = false;
    let mut required = Vec::new();
    for place in nodes {
        any = true;
        let path = topology.domains_of(place.node);
        required.extend(constraint.required.and_then(|level| path.get(level)));
        bound.near.extend(path);
    }
    required.sort_unstable();
    required.dedup();
    bound.near.sort_unstable();
    bound.near.dedup();
    bound.required = (any && constraint.required.is_some()).then_some(required);
    bound
}

/// Requirements of different kinds of pods, the number of each to place, and a set of that kind.
fn kinds(
    s: &Session<'_>,
    placer: &dyn Placer,
    parts: &[Part<'_>],
) -> (Vec<PodRequirements>, Vec<(u32, usize)>) {
    let (mut asks, mut wanted) = (Vec::<PodRequirements>::new(), Vec::<(u32, usize)>::new());
    for &(set, pods) in parts {
        let (ask, count) = (placer.ask(s, pods[0]), u32::try_from(pods.len()));
        let count = count.unwrap_or(u32::MAX);
        match asks.iter().position(|&other| other == ask) {
            Some(at) => wanted[at].0 += count,
            None => {
                asks.push(ask);
                wanted.push((count, set));
            }
        }
    }
    (asks, wanted)
}

/// Sum of two rooms: with the least effort, and at most.
const fn plus(here: (u32, u32), there: (u32, u32)) -> (u32, u32) {
    (here.0.saturating_add(there.0), here.1.saturating_add(there.1))
}

/// Number of pods of each kind that each domain has room for, other kinds aside.
pub(crate) struct DomainCapacity {
    topology: TopologyId,
    /// For each kind, for each domain: with the least effort, and at most.
    room: Vec<Vec<(u32, u32)>>,
    /// Number of pods to place of each kind, and a set of that kind.
    wanted: Vec<(u32, usize)>,
    /// Free GPU thousandths in each domain.
    free: Vec<u64>,
    /// As `room`, for the whole scope, nodes outside of the topology included.
    in_all: Vec<(u32, u32)>,
}

impl DomainCapacity {
    pub(crate) fn new(
        s: &Session<'_>,
        placer: &dyn Placer,
        parts: &[Part<'_>],
        id: TopologyId,
        scope: &Scope,
    ) -> Self {
        let cluster = &*s.cluster;
        let topology = cluster.topology(id);
        let (asks, wanted) = kinds(s, placer, parts);
        let mut room = vec![vec![(0_u32, 0_u32); topology.domain_count()]; asks.len()];
        let mut free = vec![0_u64; topology.domain_count()];
        let mut in_all = vec![(0_u32, 0_u32); asks.len()];
        for node in scope.nodes(cluster) {
            let path = topology.domains_of(node);
            let Resources { gpu_millis, cpu_millis, .. } = cluster.nodes()[node].free(false);
            let gpu = asks.iter().any(|ask| ask.request.gpu.devices() > 0);
            let millis = if gpu { gpu_millis } else { cpu_millis };
            path.iter().for_each(|domain| free[domain.index()] += millis);
            for (at, ask) in asks.iter().enumerate() {
                let here = placer.room(s, *ask, node);
                in_all[at] = plus(in_all[at], here);
                for domain in path {
                    let room = &mut room[at][domain.index()];
                    *room = plus(*room, here);
                }
            }
        }
        Self { topology: id, room, wanted, free, in_all }
    }

    /// Maximum number of pods to place that a domain has room for.
    pub(crate) fn fitting(&self, domain: DomainId) -> u32 {
        let sets = self.room.iter().zip(&self.wanted);
        sets.map(|(room, (wanted, _))| room[domain.index()].1.min(*wanted)).sum()
    }

    fn fits(&self, domain: DomainId) -> bool {
        let mut kinds = self.room.iter().zip(&self.wanted);
        kinds.all(|(room, (wanted, _))| room[domain.index()].1 >= *wanted)
    }

    /// Number of pods that cannot be placed with the least effort, in a domain or in all.
    fn missing(&self, domain: Option<DomainId>) -> u32 {
        let room = |at: usize| domain.map_or(self.in_all[at], |d| self.room[at][d.index()]).0;
        (0..).zip(&self.wanted).map(|(at, (wanted, _))| wanted.saturating_sub(room(at))).sum()
    }

    /// A set that no domain has room for.
    fn short_of(&self) -> Option<usize> {
        let mut kinds = self.room.iter().zip(&self.wanted);
        let short = kinds.find(|(room, (wanted, _))| room.iter().all(|room| room.1 < *wanted));
        short.map(|(_, &(_, set))| set)
    }

    /// The scopes to try, in order: the finest level first, from the preferred one up to the
    /// required one or to everything; on a level, room free at once first, then the fullest domain.
    /// Where room has to be made, the least effort comes before the level.
    fn candidates(
        &self,
        cluster: &Cluster,
        constraint: TopologyConstraint,
        bound: &Bound,
        scope: &Scope,
        placer: &dyn Placer,
    ) -> Vec<Scope> {
        let order = |missing: u32, coarse: usize, apart: bool| {
            if placer.effort_first() {
                (missing, coarse, apart, false)
            } else {
                (0, coarse, apart, missing > 0)
            }
        };
        let coarsest = constraint.required.unwrap_or(0);
        let finest = constraint.preferred.unwrap_or(coarsest).max(coarsest);
        let wanted = |level| constraint.required.is_some() || constraint.preferred >= Some(level);
        let mut found = Vec::new();
        let mut fullest = Vec::new();
        self.in_order(cluster, None, &mut fullest);
        let topology = cluster.topology(self.topology);
        for (rank, domain) in fullest.into_iter().enumerate() {
            let path = &topology.domain(domain).path;
            let level = path.len() - 1;
            let held = |level: usize| {
                bound.required.as_ref().is_none_or(|bound| bound.contains(&path[level]))
            };
            if level < coarsest || level > finest || !wanted(level) || !held(coarsest) {
                continue;
            }
            let apart = !bound.near.contains(&domain);
            let order = order(self.missing(Some(domain)), finest - level, apart);
            found.push((order, rank, Some(domain)));
        }
        if constraint.required.is_none() {
            found.push((order(self.missing(None), finest + 1, false), usize::MAX, None));
        }
        found.sort_unstable();
        let scope = |domain: Option<_>| {
            domain.map_or_else(|| scope.clone(), |domain| scope.with(self.topology, domain))
        };
        found.into_iter().map(|(.., domain)| scope(domain)).collect()
    }

    /// Every domain with room for all, the fullest first at each level, then by name.
    fn in_order(&self, cluster: &Cluster, of: Option<DomainId>, found: &mut Vec<DomainId>) {
        for (_, domain) in self.children(cluster, of, |domain| self.fits(domain)) {
            found.push(domain);
            self.in_order(cluster, Some(domain), found);
        }
    }

    /// The domains of the next level that satisfy a condition, the fullest first.
    fn children(
        &self,
        cluster: &Cluster,
        of: Option<DomainId>,
        wanted: impl Fn(DomainId) -> bool,
    ) -> BTreeMap<(u64, usize), DomainId> {
        let children = cluster.topology(self.topology).children(of).values();
        let wanted = children.copied().enumerate().filter(|&(_, domain)| wanted(domain));
        wanted.map(|(at, domain)| ((self.free[domain.index()], at), domain)).collect()
    }

    /// Divides pods of the one set among domains of a level, few and large ones first.
    fn portion(
        &self,
        cluster: &Cluster,
        of: Option<DomainId>,
        level: usize,
        pods: usize,
        portions: &mut Vec<(DomainId, usize)>,
    ) {
        let room = |domain: DomainId| self.room[0][domain.index()];
        let mut open = self.children(cluster, of, |domain| room(domain).1 > 0);
        let mut left = pods;
        while left > 0 && !open.is_empty() {
            // Room that is free at once, as long as there is any.
            let least = |domain| match room(domain) {
                (0, most) => most as usize,
                (least, _) => least as usize,
            };
            let fitting = open.iter().find(|&(_, &domain)| least(domain) >= left);
            let largest = || open.iter().rev().max_by_key(|&(_, &domain)| least(domain));
            let Some((&key, &domain)) = fitting.or_else(largest) else { return };
            open.remove(&key);
            let count = left.min(least(domain));
            left -= count;
            if cluster.topology(self.topology).domain(domain).path.len() > level {
                portions.push((domain, count));
            } else {
                self.portion(cluster, Some(domain), level, count, portions);
            }
        }
    }
}

/// Reasons why the next pods of a workload find no domain: one for each part that must be in one
/// domain and for which none has room.
pub(crate) fn no_domain(s: &Session<'_>, id: WorkloadId) -> Vec<Pending> {
    let spec = &s.cluster.workloads()[id].spec;
    if !spec.has_topology() {
        return Vec::new();
    }
    let groups = (0..spec.groups.len()).map(|group| Some(Child::Group(group)));
    let sets = (0..spec.pod_sets.len()).map(|set| Some(Child::Set(set)));
    let pods = s.next_pods(id);
    let parts = std::iter::once(None).chain(groups).chain(sets);
    parts.filter_map(|part| no_domain_for(s, id, &pods, part)).collect()
}

fn no_domain_for(
    s: &Session<'_>,
    id: WorkloadId,
    pods: &[PodId],
    part: Option<Child>,
) -> Option<Pending> {
    let spec = &s.cluster.workloads()[id].spec;
    let constraint = constraint_of(spec, part)?;
    let level = constraint.required?;
    let set_of = |pod: &PodId| s.cluster.pods()[*pod].set as usize;
    let parts: Vec<_> = pods
        .chunk_by(|l, r| set_of(l) == set_of(r))
        .map(|pods| (set_of(&pods[0]), pods))
        .filter(|&(set, _)| holds(spec, part, set))
        .collect();
    if parts.is_empty() {
        return None;
    }
    let free = Free { gpus: None, respected: None };
    let tally = DomainCapacity::new(s, &free, &parts, constraint.topology, &Scope::default());
    let bound = bound(s.cluster, id, part, constraint).required;
    let topology = s.cluster.topology(constraint.topology);
    let open = |domain: &DomainId| bound.as_ref().is_none_or(|bound| bound.contains(domain));
    let domains: Vec<_> = topology.domains_at(level).into_iter().filter(open).collect();
    if domains.iter().any(|&domain| tally.fits(domain)) {
        return None;
    }
    let best = domains.iter().rev().max_by_key(|&&domain| tally.fitting(domain)).copied();
    Some(Pending::NoTopologyDomain(NoDomain {
        topology: topology.name.clone(),
        level: topology.levels[level].clone(),
        part: match part {
            None => String::new(),
            Some(Child::Group(group)) => spec.groups[group].name.clone(),
            Some(Child::Set(set)) => spec.pod_sets[set].name.clone(),
        },
        domains: domains.len(),
        best: best.map_or_else(String::new, |best| topology.domain(best).name.clone()),
        room: best.map_or(0, |best| tally.fitting(best)),
        pods: tally.wanted.iter().map(|(wanted, _)| wanted).sum(),
        bound: bound.is_some(),
    }))
}

/// `true` if the places of the other pods allow a node to a pod.
pub(crate) fn may_go(cluster: &Cluster, pod: PodId, node: NodeId) -> bool {
    let workload = cluster.workload_of(pod);
    let spec = &workload.spec;
    if !spec.has_topology() {
        return true;
    }
    let set = cluster.pods()[pod].set as usize;
    let first = spec.pod_sets[set].group;
    let above = std::iter::successors(first, |&group| spec.groups[group].parent);
    let parts = above.map(|group| Some(Child::Group(group))).chain([None, Some(Child::Set(set))]);
    let mut required = parts.filter_map(|part| {
        let constraint = constraint_of(spec, part)?;
        Some((part, cluster.topology(constraint.topology), constraint.required?))
    });
    required.all(|(part, topology, level)| {
        let domain = |node| topology.domains_of(node).get(level);
        let others = pods_in(workload, part).filter(|&other| other != pod);
        let mut places = others.filter_map(|other| cluster.pods()[other].binding.effective());
        domain(node).is_some() && places.all(|place| domain(place.node) == domain(node))
    })
}

fn constraint_of(spec: &WorkloadSpec, part: Option<Child>) -> Option<TopologyConstraint> {
    match part {
        None => spec.topology,
        Some(Child::Group(group)) => spec.groups[group].topology,
        Some(Child::Set(set)) => spec.pod_sets[set].topology,
    }
}

/// `true` if a set is in a part of a workload (`None`: in all of it).
fn holds(spec: &WorkloadSpec, part: Option<Child>, set: usize) -> bool {
    part.is_none_or(|part| spare::holds(spec, part, set))
}

fn pods_in(workload: &Workload, part: Option<Child>) -> impl Iterator<Item = PodId> {
    let sets = (0..workload.pod_sets.len()).filter(move |&set| holds(&workload.spec, part, set));
    sets.flat_map(|set| workload.pods_of(set)).copied()
}
