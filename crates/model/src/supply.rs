//! GPUs by who can use them. Owns: which nodes work of each shape could take with nothing on them, and
//! how much of what each queue asks for can run on some of the nodes only.
//!
//! A cordoned node, a taint, another model, too little memory, no CPU beside its GPUs: such GPUs are
//! in the share of those only who can use them. Nodes of which the same work could take as much are a
//! group; where CPU or memory is enough for some of a node's GPUs, the rest of them is in another group.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::SmallVec;
use units::GPU_MILLIS;

use crate::{
    Cluster, ConstraintsId, Demand, GpuRequest, Node, NodeId, Placement, PodRequest, PoolId,
    QueueId, Workload, WorkloadId, fitting,
};

/// Most groups of nodes; of more the smallest are taken together.
pub const GROUPS_MAX: usize = 8;
/// Most kinds of reach at a time that groups are formed of; of more those that most is asked with, and the
/// others count as if their work could use all GPUs.
const REACHES_MAX: usize = 256;
/// Most shapes that are kept.
const SHAPES_MAX: usize = 1 << 14;

/// A set of groups, a bit for each.
pub type GroupSet = usize;

/// Work that is alike in where it can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    /// The smallest size that starts.
    least: PodRequest,
    /// GPU thousandths of a pod.
    each_millis: u64,
    constraints: ConstraintsId,
    pool: Option<PoolId>,
}

/// Where work of a shape can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// On every open node, all of its GPUs.
    Everywhere,
    /// As the row of this number says.
    Limited(usize),
}

/// Kind of an amount of a queue's GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// Asked for, by work with limited reach.
    Limited(usize),
    /// Held on a node to which its work could not go now.
    Held,
}

type Contribution = (QueueId, Use, Option<usize>, u64);

/// GPUs of an open node that are alike: mostly all of them, but for MIG instances.
#[derive(Debug, Clone)]
struct Bank {
    node: NodeId,
    /// Their numbers on the node.
    gpus: Vec<usize>,
    millis: u64,
}

/// The groups of nodes that a division is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// GPU thousandths of each.
    millis: Vec<u64>,
    /// The nodes of each.
    nodes: Vec<Vec<NodeId>>,
    /// The groups that work with limited reach could run on, by its row.
    reach: BTreeMap<usize, GroupSet>,
    /// GPU thousandths held where the work that holds them could not go now.
    held_millis: u64,
}

/// Rows of reach, by their places in the order of the groups' forming.
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

/// GPUs that the same work with limited reach can use.
#[derive(Debug, Default)]
struct Layer {
    takes: Takes,
    millis: u64,
    nodes: Vec<NodeId>,
}

/// Which GPUs can be used by whom.
#[derive(Debug, Clone, Default)]
pub struct Supply {
    /// Of open nodes, by the node.
    open: Vec<Bank>,
    /// Of nodes that are made alike, by their places in `open`.
    alike: Vec<Vec<usize>>,
    closed: BTreeSet<NodeId>,
    shapes: BTreeMap<Shape, Reach>,
    /// Of constraints, whether they allow every open node.
    allowed: BTreeMap<ConstraintsId, bool>,
    /// GPU thousandths of each bank that work of limited reach could use, by its row.
    usable: Vec<Arc<[u64]>>,
    rows: BTreeMap<Arc<[u64]>, usize>,
    /// Kinds of reach when everything was last looked at.
    reaches_renewed: usize,
    of: BTreeMap<WorkloadId, SmallVec<[Contribution; 1]>>,
    /// By project.
    amounts: BTreeMap<QueueId, BTreeMap<Use, u64>>,
    /// By bank, GPU thousandths held by work that could not go there now.
    held_on: BTreeMap<usize, u64>,
    groups: BTreeMap<PoolId, Groups>,
}

impl Groups {
    /// The sets of groups, but for the empty one.
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

    /// GPU thousandths of all groups, and of what is held outside them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.millis.iter().sum::<u64>() + self.held_millis
    }

    /// Of so much that a project asks for, of which this is known, what can run in a set only.
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
    /// Looks at every node and workload.
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

    /// Looks at these workloads again. Says whether some node is not for everybody, so that shares can
    /// be different though no queue asks for more or less.
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
            // Mostly of workloads that are gone.
            self.renew(cluster);
        } else if differs {
            self.form_groups(cluster);
        }
        differs
    }

    /// The groups of the nodes of a division; none where all work can use all of them.
    #[must_use]
    pub fn groups(&self, pool: PoolId) -> Option<&Groups> {
        self.groups.get(&pool)
    }

    /// GPU thousandths of what each project asks for in a division that can run nowhere but in a set of
    /// groups, by the set less one.
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

    /// Of what a workload asks for so much does not count: that with limited reach first.
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

    /// Counts what a workload asks for and holds, as far as not all nodes are for it.
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
        // An elastic pod starts with one GPU.
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

    /// `true` if work of this reach could go to a node.
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
        // Nodes that are made alike are looked at once, and one by one only where they differ.
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
            // No order is of what came first.
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

    /// The GPUs of nodes by the limited work that can use them. Where its CPU is enough for three GPUs of
    /// a node and that of other work for four, three are for both and one for the other.
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

/// Takes the smallest group together with the one that is most like it.
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

/// The GPUs of a node, those that are alike together.
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

/// GPU thousandths of a bank that work of a shape could use with nothing else on its node: none where not one
/// pod fits, or else those beside which CPU, memory and room for pods are left. That its GPUs cannot be
/// divided among such pods without a rest does not count.
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
