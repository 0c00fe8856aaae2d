//! GPUs by the work that can use them. Owns: the nodes that could take work of each shape when
//! empty, and the part of each queue's request that can run on some of the nodes only.
//!
//! A cordoned node, a taint, another model, too little memory, no CPU beside its GPUs: such GPUs
//! count only in the shares of queues that can use them. Nodes of which the same work could take
//! equal parts form a group; where CPU or memory is enough for some of a node's GPUs only, the rest
//! is in another group.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::SmallVec;
use units::GPU_MILLIS;

use crate::{
    Cluster, ConstraintsId, Demand, GpuRequest, Node, NodeId, Placement, PodRequest, PoolId,
    QueueId, Workload, WorkloadId, fitting,
};

/// Maximum number of groups of nodes; beyond it the smallest are merged.
pub const GROUPS_MAX: usize = 8;
/// Maximum number of kinds of reach from which groups are formed; of more those with the largest
/// requests are used, and the others count as if their work could use all GPUs.
const REACHES_MAX: usize = 256;
/// Maximum number of cached shapes.
const SHAPES_MAX: usize = 1 << 14;

/// A set of groups, a bit for each.
pub type GroupSet = usize;

/// Properties of work that decide where it can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    /// The smallest size that starts.
    least: PodRequest,
    /// GPU thousandths of a pod.
    each_millis: u64,
    constraints: ConstraintsId,
    pool: Option<PoolId>,
}

/// Nodes on which work of a shape can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// All GPUs of every open node.
    Everywhere,
    /// The GPUs in this row of `usable`.
    Limited(usize),
}

/// Kind of an amount of a queue's GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// Requested by work with the limited reach of this row.
    Limited(usize),
    /// Held on a node to which the work could not go now.
    Held,
}

type Contribution = (QueueId, Use, Option<usize>, u64);

/// Equal GPUs of an open node: mostly all of them, except for MIG instances.
#[derive(Debug, Clone)]
struct Bank {
    node: NodeId,
    /// Their indices on the node.
    gpus: Vec<usize>,
    millis: u64,
}

/// The groups of nodes in a division.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// GPU thousandths of each group.
    millis: Vec<u64>,
    /// Nodes of each group.
    nodes: Vec<Vec<NodeId>>,
    /// The groups that work with limited reach could run on, by its row.
    reach: BTreeMap<usize, GroupSet>,
    /// GPU thousandths held on nodes to which the work that holds them could not go now.
    held_millis: u64,
}

/// A set of rows of reach, by their positions in the order in which the groups are formed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Takes([u64; REACHES_MAX / 64]);

impl Takes {
    const fn add(&mut self, row: usize) {
        self.0[row / 64] |= 1 << (row % 64);
    }

    const fn has(self, row: usize) -> bool {
        self.0[row / 64] & (1 << (row % 64)) != 0
    }

    fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    fn differs(self, other: Self) -> u32 {
        self.0.iter().zip(other.0).map(|(own, other)| (own ^ other).count_ones()).sum()
    }
}

/// GPUs that are usable by the same work with limited reach.
#[derive(Debug, Default)]
struct Layer {
    takes: Takes,
    millis: u64,
    nodes: Vec<NodeId>,
}

/// GPUs by the work that can use them.
#[derive(Debug, Clone, Default)]
pub struct Supply {
    /// GPUs of open nodes, in node order.
    open: Vec<Bank>,
    /// Indices into `open`, grouped by equal nodes.
    alike: Vec<Vec<usize>>,
    closed: BTreeSet<NodeId>,
    shapes: BTreeMap<Shape, Reach>,
    /// True for constraints that allow every open node.
    allowed: BTreeMap<ConstraintsId, bool>,
    /// GPU thousandths of each bank that work of limited reach could use, by row.
    usable: Vec<Arc<[u64]>>,
    rows: BTreeMap<Arc<[u64]>, usize>,
    /// Number of kinds of reach at the last full recomputation.
    reaches_renewed: usize,
    of: BTreeMap<WorkloadId, SmallVec<[Contribution; 1]>>,
    /// Amounts by project.
    amounts: BTreeMap<QueueId, BTreeMap<Use, u64>>,
    /// GPU thousandths held by work that could not go there now, by bank.
    held_on: BTreeMap<usize, u64>,
    groups: BTreeMap<PoolId, Groups>,
}

impl Groups {
    /// All sets of groups except for the empty one.
    pub fn sets(&self) -> impl Iterator<Item = GroupSet> + use<> {
        1..1 << self.millis.len()
    }

    /// GPU thousandths of a set of groups.
    #[must_use]
    pub fn of(&self, set: GroupSet) -> u64 {
        let inside = self.millis.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
        inside.map(|(_, millis)| millis).sum()
    }

    /// The nodes of a set of groups.
    #[must_use]
    pub fn nodes_of(&self, set: GroupSet) -> BTreeSet<NodeId> {
        let inside = self.nodes.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
        inside.flat_map(|(_, nodes)| nodes).copied().collect()
    }

    /// GPU thousandths of all groups, and of holdings outside them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.millis.iter().sum::<u64>() + self.held_millis
    }

    /// Part of a project's request that can run only in a set of groups; `amounts` is the known
    /// part of the request `asked`.
    fn inside(&self, amounts: &[(Use, u64)], asked: u64, set: GroupSet) -> u64 {
        let is_all = set == (1 << self.millis.len()) - 1;
        let sum = |counts: &dyn Fn(Use) -> bool| -> u64 {
            amounts.iter().filter(|(of, _)| counts(*of)).map(|(_, millis)| millis).sum()
        };
        if is_all {
            return asked.saturating_sub(sum(&|of| of == Use::Held));
        }
        let within = |of: Use| match of {
            Use::Limited(row) => self.reach.get(&row).is_some_and(|at| *at != 0 && at & !set == 0),
            Use::Held => false,
        };
        sum(&within).min(asked)
    }
}

impl Supply {
    /// Considers every node and workload.
    pub fn renew(&mut self, cluster: &Cluster) {
        *self = Self::default();
        for (id, node) in cluster.nodes().iter().filter(|(_, node)| node.capacity.gpu_millis > 0) {
            match node.schedulable {
                true => self.open.extend(banks(id, node)),
                false => drop(self.closed.insert(id)),
            }
        }
        let mut alike = BTreeMap::<_, Vec<usize>>::new();
        for (at, bank) in self.open.iter().enumerate() {
            let node = &cluster.nodes()[bank.node];
            let key = (crate::empty_nodes::make(node), node.pool, bank.gpus.first());
            alike.entry(key).or_default().push(at);
        }
        self.alike = alike.into_values().collect();
        for id in cluster.workloads().ids() {
            self.look_at(cluster, id);
        }
        self.reaches_renewed = self.usable.len();
        self.form_groups(cluster);
    }

    /// Recomputes these workloads. True if amounts with limited reach changed, so that shares can
    /// change without a change of any queue's request.
    pub fn update(&mut self, cluster: &Cluster, changed: &BTreeSet<WorkloadId>) -> bool {
        let mut differs = false;
        for &id in changed {
            let before = self.of.get(&id).cloned();
            self.leave(id);
            if cluster.workloads().get(id).is_some() {
                self.look_at(cluster, id);
            }
            differs |= self.of.get(&id) != before.as_ref();
        }
        if self.usable.len() > (2 * REACHES_MAX).max(2 * self.reaches_renewed) {
            // Most rows are of removed workloads.
            self.renew(cluster);
        } else if differs {
            self.form_groups(cluster);
        }
        differs
    }

    /// The groups of a division; `None` where all work can use all nodes.
    #[must_use]
    pub fn groups(&self, pool: PoolId) -> Option<&Groups> {
        self.groups.get(&pool)
    }

    /// GPU thousandths of each project's request in a division that can run only in a set of
    /// groups, by the set minus one.
    #[must_use]
    pub fn inside(
        &self,
        cluster: &Cluster,
        demand: &Demand,
        groups: &Groups,
        pool: PoolId,
    ) -> BTreeMap<QueueId, Vec<u64>> {
        let mut left_out = BTreeMap::<(QueueId, Use), u64>::new();
        for (id, amounts) in demand.left_out() {
            for &(queue, amount) in amounts {
                self.leave_out(id, (queue, amount.gpu_millis), &mut left_out);
            }
        }
        let leaves = cluster.queues().iter().filter(|(_, row)| {
            row.children.is_empty() && (!cluster.is_divided() || row.pool == pool)
        });
        let inside = leaves.map(|(queue, _)| {
            let asked = demand.of(cluster, queue).gpu_millis;
            let amounts = self.amounts.get(&queue).into_iter().flatten();
            let counted: Vec<_> = amounts
                .map(|(of, millis)| {
                    let less = left_out.get(&(queue, *of)).copied().unwrap_or_default();
                    (*of, millis.saturating_sub(less))
                })
                .collect();
            let of_set = |set| groups.inside(&counted, asked, set);
            (queue, groups.sets().map(of_set).collect())
        });
        inside.collect()
    }

    /// Adds `millis` of a workload's request to the amounts left out, its work with limited reach
    /// first.
    fn leave_out(
        &self,
        id: WorkloadId,
        (queue, mut millis): (QueueId, u64),
        left_out: &mut BTreeMap<(QueueId, Use), u64>,
    ) {
        for &(of, what, _, amount) in self.of.get(&id).into_iter().flatten() {
            if of == queue && matches!(what, Use::Limited(_)) {
                let less = amount.min(millis);
                *left_out.entry((queue, what)).or_default() += less;
                millis -= less;
            }
        }
    }

    fn leave(&mut self, id: WorkloadId) {
        for (queue, what, bank, millis) in self.of.remove(&id).into_iter().flatten() {
            let amounts = self.amounts.entry(queue).or_default();
            let amount = amounts.entry(what).or_default();
            *amount = amount.saturating_sub(millis);
            if *amount == 0 {
                amounts.remove(&what);
            }
            if amounts.is_empty() {
                self.amounts.remove(&queue);
            }
            if let Some(bank) = bank {
                let held = self.held_on.entry(bank).or_default();
                *held = held.saturating_sub(millis);
            }
        }
    }

    /// Counts the requests and holdings of a workload, as far as it cannot use all nodes.
    fn look_at(&mut self, cluster: &Cluster, id: WorkloadId) {
        let workload = &cluster.workloads()[id];
        let project = workload.spec.queue;
        let pools: SmallVec<[Option<PoolId>; 1]> = match cluster.pool_of(id) {
            _ if !cluster.is_divided() => SmallVec::from_slice(&[None]),
            Some(pool) => SmallVec::from_slice(&[Some(pool)]),
            None if cluster.choices(id).is_empty() => SmallVec::from_slice(&[None]),
            None => cluster.choices(id).iter().copied().map(Some).collect(),
        };
        let mut all: SmallVec<[Contribution; 1]> = SmallVec::new();
        for pool in pools {
            let queue = pool.map_or(project, |pool| cluster.queue_in(project, pool));
            for set in 0..workload.pod_sets.len() {
                self.count(cluster, (workload, set), (queue, pool), &mut all);
            }
        }
        if all.is_empty() {
            return;
        }
        for &(queue, what, bank, millis) in &all {
            *self.amounts.entry(queue).or_default().entry(what).or_default() += millis;
            if let Some(bank) = bank {
                *self.held_on.entry(bank).or_default() += millis;
            }
        }
        self.of.insert(id, all);
    }

    fn count(
        &mut self,
        cluster: &Cluster,
        (workload, set): (&Workload, usize),
        (queue, pool): (QueueId, Option<PoolId>),
        all: &mut SmallVec<[Contribution; 1]>,
    ) {
        let row = &workload.pod_sets[set];
        let each_millis = row.demand.gpu_millis;
        if each_millis == 0 {
            return;
        }
        let request = workload.spec.pod_sets[set].request;
        // An elastic pod can start with one GPU.
        let least = match request.gpu {
            GpuRequest::Whole(2..) if workload.spec.elastic => GpuRequest::Whole(1),
            other => other,
        };
        let least = PodRequest { gpu: least, ..request };
        let reach =
            self.reach(cluster, Shape { least, each_millis, constraints: row.constraints, pool });
        if reach == Reach::Everywhere && self.closed.is_empty() {
            return;
        }
        let mut limited = 0;
        for pod in workload.pods_of(set).iter().map(|&pod| &cluster.pods()[pod]) {
            if !pod.asks() {
                continue;
            }
            match pod.binding.effective().filter(|place| !self.takes(place.node, reach)) {
                Some(place) => {
                    let on = self.bank_of(place);
                    all.push((queue, Use::Held, on, place.gpu_millis().min(each_millis)));
                }
                None => limited += each_millis,
            }
        }
        if let Reach::Limited(row) = reach
            && limited > 0
        {
            all.push((queue, Use::Limited(row), None, limited));
        }
    }

    /// True if work of this reach could go to a node.
    fn takes(&self, node: NodeId, reach: Reach) -> bool {
        let mut banks = self.banks_of(node);
        match reach {
            _ if banks.is_empty() => !self.closed.contains(&node),
            Reach::Everywhere => true,
            Reach::Limited(row) => banks.any(|at| self.usable[row][at] > 0),
        }
    }

    fn banks_of(&self, node: NodeId) -> std::ops::Range<usize> {
        let first = self.open.partition_point(|bank| bank.node < node);
        let count = self.open[first..].iter().take_while(|bank| bank.node == node).count();
        first..first + count
    }

    /// The bank of the first device of a place.
    fn bank_of(&self, place: &Placement) -> Option<usize> {
        let gpu = place.devices.first()?.gpu as usize;
        self.banks_of(place.node).find(|&at| self.open[at].gpus.contains(&gpu))
    }

    fn reach(&mut self, cluster: &Cluster, shape: Shape) -> Reach {
        if let Some(&known) = self.shapes.get(&shape) {
            return known;
        }
        let reach = self.find_reach(cluster, shape);
        if self.shapes.len() >= SHAPES_MAX {
            self.shapes.clear();
        }
        self.shapes.insert(shape, reach);
        reach
    }

    fn find_reach(&mut self, cluster: &Cluster, shape: Shape) -> Reach {
        let open = &self.open;
        let allows = |bank: &Bank| cluster.allows(shape.constraints, bank.node);
        let is_allowed =
            *self.allowed.entry(shape.constraints).or_insert_with(|| open.iter().all(allows));
        // Equal nodes are examined once, and one by one only where constraints differ.
        let each = |alike: &Vec<usize>| {
            alike.first().map_or(0, |&first| usable_of(cluster, &open[first], shape))
        };
        let each: Vec<u64> = self.alike.iter().map(each).collect();
        let of_alike = self
            .alike
            .iter()
            .zip(&each)
            .flat_map(|(all, each)| all.iter().map(move |&at| (at, *each)));
        let is_all = |alike: &Vec<usize>, each: u64| {
            alike.first().is_none_or(|&first| each >= open[first].millis)
        };
        if is_allowed && self.alike.iter().zip(&each).all(|(alike, &each)| is_all(alike, each)) {
            return Reach::Everywhere;
        }
        let ours = |node: NodeId| shape.pool.is_none_or(|pool| cluster.nodes()[node].pool == pool);
        let mut usable = vec![0; open.len()];
        let mut is_limited = false;
        for (at, each) in of_alike.filter(|&(at, _)| ours(open[at].node)) {
            usable[at] = if is_allowed || allows(&open[at]) { each } else { 0 };
            is_limited |= usable[at] < open[at].millis;
        }
        if !is_limited {
            return Reach::Everywhere;
        }
        let (usable, next): (Arc<[u64]>, _) = (usable.into(), self.usable.len());
        let row = *self.rows.entry(usable.clone()).or_insert(next);
        if row == next {
            self.usable.push(usable);
        }
        Reach::Limited(row)
    }

    /// Groups the open nodes of each division by the work that can use their GPUs.
    fn form_groups(&mut self, cluster: &Cluster) {
        self.groups.clear();
        for pool in cluster.divisions() {
            let here = |queue: QueueId| {
                !cluster.is_divided()
                    || cluster.queues().get(queue).is_some_and(|row| row.pool == pool)
            };
            let amounts = self.amounts.iter().filter(|(queue, _)| here(**queue));
            let mut used = BTreeMap::<Use, u64>::new();
            for (&what, millis) in amounts.flat_map(|(_, amounts)| amounts) {
                *used.entry(what).or_default() += millis;
            }
            let is_ours = |id: &NodeId| !cluster.is_divided() || cluster.nodes()[*id].pool == pool;
            if used.is_empty() && !self.closed.iter().any(is_ours) {
                continue;
            }
            let rows = used.keys().filter_map(|of| match of {
                Use::Limited(row) => Some(*row),
                Use::Held => None,
            });
            // The order must not depend on which row was added first.
            let mut rows: Vec<usize> = rows.collect();
            let most_asked = |row: usize| (Reverse(used[&Use::Limited(row)]), &self.usable[row]);
            rows.sort_by(|&l, &r| most_asked(l).cmp(&most_asked(r)));
            rows.truncate(REACHES_MAX);
            rows.sort_by(|&l, &r| self.usable[l].cmp(&self.usable[r]));
            let banks = (0..self.open.len()).filter(|&at| is_ours(&self.open[at].node));
            let mut groups = self.layers(banks, &rows);
            while groups.len() > GROUPS_MAX {
                merge_smallest(&mut groups);
            }
            let reach = |row: usize| {
                let takes = groups.iter().enumerate().filter(|(_, one)| one.takes.has(row));
                takes.map(|(at, _)| 1 << at).sum()
            };
            self.groups.insert(
                pool,
                Groups {
                    reach: rows.iter().enumerate().map(|(at, &row)| (row, reach(at))).collect(),
                    millis: groups.iter().map(|one| one.millis).collect(),
                    nodes: groups.into_iter().map(|one| one.nodes).collect(),
                    held_millis: used.get(&Use::Held).copied().unwrap_or_default(),
                },
            );
        }
    }

    /// The GPUs of nodes by the limited work that can use them. If the CPU of a node is enough for
    /// three GPUs of one kind of work and for four of another, three are for both and one for the
    /// other.
    fn layers(&self, banks: impl Iterator<Item = usize>, rows: &[usize]) -> Vec<Layer> {
        let mut groups = BTreeMap::<Takes, Layer>::new();
        for at in banks {
            let Bank { node, millis: all, .. } = self.open[at];
            let held = self.held_on.get(&at).copied().unwrap_or_default();
            let mut levels: Vec<u64> = rows.iter().map(|&row| self.usable[row][at]).collect();
            levels.push(all);
            levels.sort_unstable();
            levels.dedup();
            let mut below = held;
            for level in levels {
                if level > below {
                    let mut takes = Takes::default();
                    let can = |(_, row): &(usize, &usize)| self.usable[**row][at] >= level;
                    rows.iter().enumerate().filter(can).for_each(|(row, _)| takes.add(row));
                    let group = groups.entry(takes).or_default();
                    group.takes = takes;
                    group.millis += level - below;
                    group.nodes.push(node);
                    below = level;
                }
            }
        }
        groups.into_values().collect()
    }
}

/// Merges the smallest group with the most similar one.
fn merge_smallest(groups: &mut Vec<Layer>) {
    let Some(smallest) = (0..groups.len()).min_by_key(|&at| groups[at].millis) else { return };
    let Layer { takes, millis, nodes } = groups.swap_remove(smallest);
    let differs = |at: &usize| takes.differs(groups[*at].takes);
    let Some(at) = (0..groups.len()).min_by_key(differs) else { return };
    let group = &mut groups[at];
    group.takes = group.takes.or(takes);
    group.millis += millis;
    group.nodes.extend(nodes);
}

/// The GPUs of a node, grouped by equal ones.
fn banks(id: NodeId, node: &Node) -> Vec<Bank> {
    let mut alike = BTreeMap::<_, Vec<usize>>::new();
    for (at, gpu) in node.gpus.iter().enumerate().filter(|(_, gpu)| gpu.in_service) {
        alike.entry((gpu.memory_bytes, gpu.profile(), gpu.part)).or_default().push(at);
    }
    let bank = |gpus: Vec<usize>| {
        let millis = gpus.iter().map(|&at| node.gpus[at].capacity_millis()).sum();
        Bank { node: id, gpus, millis }
    };
    alike.into_values().map(bank).collect()
}

/// GPU thousandths of a bank that work of a shape could use on an empty node: zero if not even one
/// pod fits, or else those for which CPU, memory and the number of pods are enough. A remainder of
/// GPUs that such pods cannot use is not subtracted.
fn usable_of(cluster: &Cluster, bank: &Bank, shape: Shape) -> u64 {
    let node = &cluster.nodes()[bank.node];
    let gpus = node.gpus.iter().map(|gpu| (gpu, gpu.capacity_millis()));
    if fitting(shape.least, node.capacity, 1, gpus) == 0 {
        return 0;
    }
    let per = |there: u64, each: u64| there.checked_div(each).unwrap_or(u64::MAX);
    let PodRequest { cpu_millis, memory_bytes, .. } = shape.least;
    let pods = u64::from(node.pods_max)
        .min(per(node.capacity.cpu_millis, cpu_millis))
        .min(per(node.capacity.memory_bytes, memory_bytes));
    let millis = pods.saturating_mul(shape.each_millis);
    let whole = millis.div_ceil(GPU_MILLIS).saturating_mul(GPU_MILLIS);
    let is_for =
        |&at: &usize| shape.least.gpu.parts().any(|part| part.needs_of(&node.gpus[at]).is_some());
    if bank.gpus.iter().any(is_for) { whole.min(bank.millis) } else { 0 }
}
