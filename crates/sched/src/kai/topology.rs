//! Sets of nodes in which a part of a job is tried. Owns: the choice and order of domains. Does not
//! know about: the placement of tasks inside a domain. Source: scheduling reference §13.

use std::collections::{BTreeMap, BTreeSet};

use model::{Child, DomainId, Node, NodeId, PodId, Topology, TopologyConstraint, WorkloadId};
use units::{GPU_MILLIS, Kind, Ratio, Resources};

use super::amounts::amounts;
use super::jobs;
use crate::session::Session;

/// Nodes that a part of a job may use, and the preference for each.
#[derive(Debug, Clone, Default)]
pub(super) struct Site {
    pub(super) nodes: BTreeSet<NodeId>,
    pub(super) near: BTreeMap<NodeId, u64>,
}

/// A part of a job: the job itself, a group, or a pod set.
pub(super) type Part = Option<Child>;

/// The constraint of a part.
pub(super) fn constraint(
    s: &Session<'_>,
    id: WorkloadId,
    part: Part,
) -> Option<TopologyConstraint> {
    let spec = &s.cluster.workloads()[id].spec;
    match part {
        None => spec.topology_of(None),
        Some(Child::Group(at)) => spec.topology_of(Some(at)),
        Some(Child::Set(at)) => spec.pod_sets[at].topology,
    }
}

/// `true` if a task belongs to a part of its job.
pub(super) fn is_in(s: &Session<'_>, pod: PodId, part: Part) -> bool {
    let set = s.cluster.pods()[pod].set as usize;
    match part {
        None => true,
        Some(Child::Group(at)) => s.cluster.workload_of(pod).spec.is_in(set, Some(at)),
        Some(Child::Set(at)) => at == set,
    }
}

/// The sets of nodes to try for these tasks of a part, in order; empty if none has room.
pub(super) fn sites(
    s: &Session<'_>,
    id: WorkloadId,
    part: Part,
    tasks: &[PodId],
    offered: &Site,
) -> Vec<Site> {
    let Some(constraint) = constraint(s, id, part) else { return vec![offered.clone()] };
    let tree = Tree::new(s, constraint, tasks, offered);
    let start = tree.start();
    if !tree.has_room(start) {
        return Vec::new();
    }
    let levels = tree.levels(start);
    let pinned = pinned(s, id, part, constraint);
    let allowed = |domain: Option<DomainId>| {
        let at = |domain| tree.topology.domain(domain).path.as_slice();
        let own = domain.zip(constraint.required).and_then(|(d, level)| at(d).get(level).copied());
        pinned.is_empty() || own.is_some() && pinned.contains(&own)
    };
    let near = tree.near(&levels, offered);
    let coarsest = constraint.required.map_or(0, |level| level + 1);
    let first = depth(tree.topology, start);
    let mut sites = Vec::new();
    for (at, level) in levels.iter().enumerate().rev() {
        if first + at < coarsest {
            break;
        }
        let fits = level.iter().copied().filter(|&domain| allowed(domain) && tree.has_room(domain));
        sites.extend(fits.map(|domain| Site { nodes: tree.nodes(domain), near: near.clone() }));
    }
    sites
}

/// The required domains in which tasks of the part are already; empty if a task is on a node that
/// lost its label, as nothing can be in one domain with it.
fn pinned(
    s: &Session<'_>,
    id: WorkloadId,
    part: Part,
    constraint: TopologyConstraint,
) -> BTreeSet<Option<DomainId>> {
    let Some(level) = constraint.required else { return BTreeSet::new() };
    let topology = s.cluster.topology(constraint.topology);
    let pods = s.cluster.workloads()[id].pods.iter().filter(|&&pod| is_in(s, pod, part));
    let places = pods.filter_map(|&pod| s.cluster.pods()[pod].binding.effective());
    places.map(|place| topology.domains_of(place.node).get(level).copied()).collect()
}

/// Depth of a domain in the topology; 0 for the root.
fn depth(topology: &Topology, domain: Option<DomainId>) -> usize {
    domain.map_or(0, |domain| topology.domain(domain).path.len())
}

/// The domains of a topology with their room for the tasks. `None` is the root: all nodes that have
/// every label.
struct Tree<'a> {
    s: &'a Session<'a>,
    topology: &'a Topology,
    constraint: TopologyConstraint,
    offered: &'a BTreeSet<NodeId>,
    tasks: usize,
    asked: Resources,
    /// The largest of the tasks in every component, if all request the same kinds of resource.
    representative: Option<Resources>,
}

impl<'a> Tree<'a> {
    fn new(
        s: &'a Session<'a>,
        constraint: TopologyConstraint,
        tasks: &[PodId],
        offered: &'a Site,
    ) -> Self {
        let each: Vec<_> = tasks.iter().map(|&pod| amounts(jobs::request(s, pod))).collect();
        let kinds = |amounts: &Resources| Kind::ALL.map(|kind| amounts[kind] > 0);
        let alike = each.windows(2).all(|pair| kinds(&pair[0]) == kinds(&pair[1]));
        let largest = each.iter().fold(Resources::ZERO, |sum, &part| sum.max(part));
        Self {
            s,
            topology: s.cluster.topology(constraint.topology),
            constraint,
            offered: &offered.nodes,
            tasks: tasks.len(),
            asked: each.into_iter().sum(),
            representative: alike.then_some(largest),
        }
    }

    fn nodes(&self, domain: Option<DomainId>) -> BTreeSet<NodeId> {
        match domain {
            Some(domain) => {
                let nodes = self.topology.nodes(domain).into_iter();
                nodes.filter(|node| self.offered.contains(node)).collect()
            }
            None => {
                let labelled = |node: &NodeId| !self.topology.domains_of(*node).is_empty();
                self.offered.iter().copied().filter(labelled).collect()
            }
        }
    }

    fn children(&self, domain: Option<DomainId>) -> Vec<Option<DomainId>> {
        let all = self.topology.children(domain).values().map(|&child| Some(child));
        all.filter(|&child| !self.nodes(child).is_empty()).collect()
    }

    /// Depth of the finest level considered, from the root.
    fn finest(&self) -> usize {
        self.constraint.preferred.or(self.constraint.required).map_or(0, |level| level + 1)
    }

    /// The smallest domain with all nodes, not below the finest level.
    fn start(&self) -> Option<DomainId> {
        let mut start = None;
        while depth(self.topology, start) < self.finest()
            && let [only] = self.children(start).as_slice()
        {
            start = *only;
        }
        start
    }

    /// The domains below `start`, level by level; the fullest that have room first.
    fn levels(&self, start: Option<DomainId>) -> Vec<Vec<Option<DomainId>>> {
        let mut levels = vec![vec![start]];
        for _ in depth(self.topology, start)..self.finest() {
            let above = levels.last().into_iter().flatten();
            let below = above.flat_map(|&domain| {
                let mut children = self.children(domain);
                children.sort_by(|&left, &right| {
                    let name = |domain: Option<DomainId>| {
                        domain.map(|domain| self.topology.domain(domain).name.as_str())
                    };
                    let fuller = self.fullness(right).cmp(&self.fullness(left));
                    fuller.then_with(|| name(left).cmp(&name(right)))
                });
                children
            });
            let below = below.collect();
            levels.push(below);
        }
        levels
    }

    /// Free and releasing resources of a node; of GPUs only whole ones and MIG instances.
    fn free(node: &Node) -> Resources {
        let instances = node.gpus.iter().filter(|gpu| gpu.mig.is_some());
        let instances_millis: u64 = instances.map(|gpu| gpu.free_millis(false)).sum();
        let gpu_millis = u64::from(node.whole_free(false)) * GPU_MILLIS + instances_millis;
        Resources { gpu_millis, ..node.free(false) }
    }

    fn free_in(&self, domain: Option<DomainId>) -> Resources {
        let nodes = self.nodes(domain);
        nodes.into_iter().map(|node| Self::free(&self.s.cluster.nodes()[node])).sum()
    }

    /// The largest ratio of request to free resources over the kinds of resource.
    fn fullness(&self, domain: Option<DomainId>) -> Ratio {
        let free = self.free_in(domain);
        let ratio = |kind| Ratio::new(self.asked[kind], free[kind]);
        Kind::ALL.into_iter().map(ratio).max().unwrap_or(Ratio::ZERO)
    }

    fn has_room(&self, domain: Option<DomainId>) -> bool {
        let Some(each) = self.representative else {
            return self.asked.fits_in(self.free_in(domain));
        };
        let room = |node: NodeId| {
            let free = Self::free(&self.s.cluster.nodes()[node]);
            let of = |kind| free[kind].checked_div(each[kind]);
            Kind::ALL.into_iter().filter_map(of).min().unwrap_or(u64::MAX)
        };
        let room = self.nodes(domain).into_iter().map(room).fold(0, u64::saturating_add);
        room >= self.tasks as u64
    }

    /// Preference for nodes if a level is preferred: its emptier domains are preferred, so that
    /// they are filled first where a set of nodes spans several.
    fn near(&self, levels: &[Vec<Option<DomainId>>], offered: &Site) -> BTreeMap<NodeId, u64> {
        let mut near = offered.near.clone();
        if self.constraint.preferred.is_none() {
            return near;
        }
        let Some(finest) = levels.last() else { return near };
        for (at, &domain) in finest.iter().enumerate() {
            let score = 10 * (at as u64 + 1) / finest.len() as u64;
            for node in self.nodes(domain) {
                *near.entry(node).or_default() += score;
            }
        }
        near
    }
}
