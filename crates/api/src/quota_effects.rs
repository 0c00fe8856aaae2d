//! Effects of a change on quotas. Owns: the sentences that say them, and that a change which leaves
//! a project a smaller quota than it holds needs `force`. Does not know about: how a change is
//! made.

use std::collections::BTreeMap;

use control::Handle;
use http_kit::{Allowed, takes};
use orchestrator::{Error, NodeChange, OrgChange};
use spec::Share;
use units::{Kind, Resources, counted, format_bytes, format_millis, gpus};
use view::{NodeView, OrgUnit, View};

takes! {
    /// `true` to make a change that leaves a project a smaller quota than it holds, or stops work.
    pub(crate) Forced: (
        "force",
        Allowed::Flag,
        "Makes the change although a project would have a smaller quota than it holds, or work \
         would stop"
    );
}

/// Most names in a sentence.
const NAMES_MAX: usize = 8;

/// A label of nodes.
type Label = (String, String);

/// A change of node pools, or of the nodes in them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PoolEdit<'a> {
    /// A new pool of the nodes with a label.
    Create { name: &'a str, label: &'a Label },
    /// Another label of the pool with this id.
    Relabel { id: &'a str, label: &'a Label },
    /// The pool with this id is deleted.
    Delete { id: &'a str },
    /// Labels of the node with this name after a change.
    LabelNode { name: &'a str, labels: &'a BTreeMap<String, String> },
}

/// A handle that makes a change only if it is forced, or has no losses at the moment when it is
/// made.
pub(crate) fn agreed(
    control: Handle,
    forced: bool,
    effects: impl Fn(&View) -> QuotaEffects + Send + Sync + 'static,
) -> Handle {
    if forced { control } else { control.checked(move |view| effects(view).check()) }
}

/// Labels of a node after a change of its settings.
pub(crate) fn labels_after(node: &NodeView, change: &NodeChange) -> BTreeMap<String, String> {
    let mut labels = match change.replaces_labels {
        true => node.spec.labels_with(&BTreeMap::new()),
        false => node.labels.clone(),
    };
    for (key, value) in &change.labels {
        // Without the given label, the node's original one applies.
        match value.as_ref().or_else(|| node.spec.labels.get(key)) {
            Some(value) => drop(labels.insert(key.clone(), value.clone())),
            None => drop(labels.remove(key)),
        }
    }
    labels
}

/// Effects of a change on quotas.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct QuotaEffects {
    /// All changes, a sentence each.
    lines: Vec<String>,
    /// Effects that leave a project a smaller quota than it holds.
    losses: Vec<String>,
}

impl QuotaEffects {
    /// Effects with these sentences.
    pub(crate) const fn new(lines: Vec<String>, losses: Vec<String>) -> Self {
        Self { lines, losses }
    }

    /// These effects and others.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.lines.extend(other.lines);
        self.losses.extend(other.losses);
        self
    }

    /// Refuses a change with losses.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.losses.is_empty() {
            return Ok(());
        }
        let losses = self.losses.join("; ");
        Err(Error::conflict(format!(
            "{losses}; with the parameter `force=true` the change is made"
        )))
    }

    /// As the wire shows them.
    pub(crate) fn shown(self) -> api_types::QuotaEffects {
        let needs_force = !self.losses.is_empty();
        api_types::QuotaEffects { lines: [self.lines, self.losses].concat(), needs_force }
    }
}

fn amount(kind: Kind, amount: u64) -> String {
    match (kind, amount) {
        (Kind::Gpu, millis) => gpus(millis),
        (Kind::Cpu, u64::MAX) => "unlimited cores".to_owned(),
        (Kind::Cpu, 1000) => "1 core".to_owned(),
        (Kind::Cpu, millis) => format!("{} cores", format_millis(millis)),
        (Kind::Memory, u64::MAX) => "unlimited memory".to_owned(),
        (Kind::Memory, bytes) => format!("{} of memory", format_bytes(bytes)),
    }
}

/// Name of the quotas of a kind of resource.
const fn quotas_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Gpu => "GPU quotas",
        Kind::Cpu => "CPU quotas",
        Kind::Memory => "memory quotas",
    }
}

fn quota(share: &Share, kind: Kind) -> u64 {
    match kind {
        Kind::Gpu => share.gpu_quota_millis,
        Kind::Cpu => share.cpu_quota_millis.unwrap_or(u64::MAX),
        Kind::Memory => share.memory_quota_bytes.unwrap_or(u64::MAX),
    }
}

/// The effects of other shares of a project or a department.
pub(crate) fn of_shares(unit: &OrgUnit, change: &OrgChange) -> QuotaEffects {
    let mut effects = QuotaEffects::default();
    for pool in &unit.pools {
        let before = if change.replaces_shares { pool.usual } else { pool.share };
        let given = change.shares.get(&*pool.id).copied().unwrap_or_default();
        let after = given.made_to(given.unset(before, pool.usual));
        for kind in Kind::ALL {
            let (now, then) = (quota(&pool.share, kind), quota(&after, kind));
            if then == now {
                continue;
            }
            let (name, pool_name) = (&unit.name, &pool.name);
            let (now, shown) = (amount(kind, now), amount(kind, then));
            effects.lines.push(format!(
                "quota of {name} in node pool {pool_name}: {shown} instead of {now}"
            ));
            let held = pool.status.allocated[kind];
            if then < held && then < quota(&pool.share, kind) {
                let held = amount(kind, held);
                effects.losses.push(format!(
                    "{name} holds {held} in node pool {pool_name} and would have a quota of {shown} \
                     there"
                ));
            }
        }
    }
    effects
}

/// Node pools after a change: their names and labels, in the order in which they take nodes.
struct PoolsAfter<'v> {
    pools: Vec<(&'v str, Option<&'v Label>)>,
    /// A node with other labels.
    labeled: Option<(&'v str, &'v BTreeMap<String, String>)>,
}

impl<'v> PoolsAfter<'v> {
    fn new(view: &'v View, edit: PoolEdit<'v>) -> Self {
        let kept = view.pools.iter().filter_map(|pool| {
            let label = pool.settings.label.as_ref();
            match edit {
                PoolEdit::Delete { id } if pool.id == id => None,
                PoolEdit::Relabel { id, label } if pool.id == id => {
                    Some((&*pool.name, Some(label)))
                }
                _ => Some((&*pool.name, label)),
            }
        });
        let mut all: Vec<_> = kept.collect();
        if let PoolEdit::Create { name, label } = edit {
            all.push((name, Some(label)));
        }
        let labeled = match edit {
            PoolEdit::LabelNode { name, labels } => Some((name, labels)),
            _ => None,
        };
        Self { pools: all, labeled }
    }

    fn of(&self, node: &NodeView) -> &'v str {
        let labeled = self.labeled.filter(|(name, _)| *name == node.name);
        let labels = labeled.map_or(&node.labels, |(_, labels)| labels);
        let takes = |(_, label): &&(&str, Option<&Label>)| {
            label.is_some_and(|(key, value)| labels.get(key) == Some(value))
        };
        self.pools.iter().find(takes).or_else(|| self.pools.first()).map_or("", |(name, _)| name)
    }
}

/// A node that goes from one pool to another.
struct Moved<'v> {
    node: &'v NodeView,
    from: &'v str,
    to: &'v str,
}

/// The effects of other node pools.
pub(crate) fn of_pools(view: &View, edit: PoolEdit<'_>) -> QuotaEffects {
    let stays = |id: &str| view.pools.iter().any(|p| p.id == id && p.settings.label.is_none());
    // Deleting the pool without a label is refused, so there is no effect to show.
    if matches!(edit, PoolEdit::Delete { id } if stays(id)) {
        return QuotaEffects::default();
    }
    let after = PoolsAfter::new(view, edit);
    let moved = view.nodes.iter().map(AsRef::as_ref).map(|node| {
        let (from, to) = (node.pool.as_str(), after.of(node));
        Moved { node, from, to }
    });
    let moved: Vec<_> = moved.filter(|moved| moved.from != moved.to).collect();
    let gone =
        view.pools.iter().find(|pool| matches!(edit, PoolEdit::Delete { id } if pool.id == id));
    let gone = gone.map(|pool| pool.name.as_str());
    let mut lines = of_nodes(&moved);
    for kind in Kind::ALL {
        lines.extend(gone.and_then(|pool| dropped(view, pool, kind)));
        let too_little = |(pool, _): &(&str, _)| too_little(view, pool, &moved, kind);
        lines.extend(after.pools.iter().filter_map(too_little));
    }
    let losses = losses(view, &moved, gone);
    QuotaEffects { lines, losses }
}

/// Which nodes go where.
fn of_nodes(moved: &[Moved<'_>]) -> Vec<String> {
    let mut by_way: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for Moved { node, from, to } in moved {
        by_way.entry((from, to)).or_default().push(&node.name);
    }
    let sentence = |((from, to), nodes): ((&str, &str), Vec<&str>)| {
        let count = counted(nodes.len(), "node");
        format!("{count} of node pool {from} would be in {to}: {}", some(nodes.into_iter()))
    };
    by_way.into_iter().map(sentence).collect()
}

fn some<T: ToString>(all: impl ExactSizeIterator<Item = T>) -> String {
    let others = all.len().saturating_sub(NAMES_MAX);
    let mut names: Vec<String> = all.take(NAMES_MAX).map(|one| one.to_string()).collect();
    if others > 0 {
        names.push(format!("{others} more"));
    }
    names.join(", ")
}

/// The quotas of projects in a node pool, where they have any and it is limited.
fn quotas_in<'v>(view: &'v View, pool: &str, kind: Kind) -> Vec<(&'v OrgUnit, u64)> {
    let projects = view.projects.values().map(|project| &project.unit);
    projects.filter_map(|unit| Some((unit, quota_in(unit, pool, kind)?))).collect()
}

/// The quotas of departments in a node pool that are not the sum of their projects'.
fn own_quotas_in<'v>(view: &'v View, pool: &str, kind: Kind) -> Vec<(&'v OrgUnit, u64)> {
    let is_own = |unit: &OrgUnit| {
        let mut pools = unit.pools.iter().filter(|share| *share.name == *pool);
        pools.any(|of| quota(&of.share, kind) != quota(&of.usual, kind))
    };
    let departments = view.departments.values().map(|unit| &**unit).filter(|unit| is_own(unit));
    departments.filter_map(|unit| Some((unit, quota_in(unit, pool, kind)?))).collect()
}

fn quota_in(unit: &OrgUnit, pool: &str, kind: Kind) -> Option<u64> {
    let share = unit.pools.iter().find(|share| *share.name == *pool)?;
    Some(quota(&share.share, kind)).filter(|quota| (1..u64::MAX).contains(quota))
}

fn named(quotas: &[(&OrgUnit, u64)], kind: Kind) -> String {
    let name = |(of, quota): &(&OrgUnit, u64)| match kind {
        Kind::Gpu => format!("{} {}", of.name, format_millis(*quota)),
        Kind::Cpu | Kind::Memory => format!("{} {}", of.name, amount(kind, *quota)),
    };
    some(quotas.iter().map(name))
}

/// The quotas that are deleted with a pool.
fn dropped(view: &View, pool: &str, kind: Kind) -> Option<String> {
    let (projects, departments) = (quotas_in(view, pool, kind), own_quotas_in(view, pool, kind));
    let of_projects = (!projects.is_empty()).then(|| named(&projects, kind));
    let of_departments =
        (!departments.is_empty()).then(|| format!("departments {}", named(&departments, kind)));
    let names: Vec<_> = of_projects.into_iter().chain(of_departments).collect();
    (!names.is_empty()).then(|| {
        let (of, names) = (quotas_of(kind), names.join("; "));
        format!("the {of} in node pool {pool} would be deleted with it: {names}")
    })
}

/// A pool that would have less than quotas come to.
fn too_little(view: &View, pool: &str, moved: &[Moved<'_>], kind: Kind) -> Option<String> {
    let sum = |which: &dyn Fn(&Moved<'_>) -> bool| -> u64 {
        moved.iter().filter(|one| which(one)).map(|one| one.node.capacity[kind]).sum()
    };
    let (leave, come) = (sum(&|one| one.from == pool), sum(&|one| one.to == pool));
    let there = view.pools.iter().find(|one| one.name == pool)?.capacity[kind];
    let then = there.saturating_add(come).saturating_sub(leave);
    let quotas = quotas_in(view, pool, kind);
    let wanted = quotas.iter().fold(0_u64, |sum, (_, quota)| sum.saturating_add(*quota));
    (then < there && then < wanted).then(|| {
        let fewer = if kind == Kind::Memory { "less" } else { "fewer" };
        format!(
            "node pool {pool} would have {}, {fewer} than the quotas there: {}",
            amount(kind, then),
            named(&quotas, kind)
        )
    })
}

/// Amounts that leave a node pool and that come to it.
#[derive(Debug, Clone, Copy, Default)]
struct HeldChange {
    leave: Resources,
    come: Resources,
}

/// Amounts that projects hold on nodes that go to another pool, by project and pool.
fn changes<'v>(view: &View, moved: &[Moved<'v>]) -> BTreeMap<(u64, &'v str), HeldChange> {
    let on_moved: BTreeMap<&str, &Moved<'_>> =
        moved.iter().map(|one| (one.node.name.as_str(), one)).collect();
    let mut changes: BTreeMap<(u64, &str), HeldChange> = BTreeMap::new();
    for workload in view.workloads.values() {
        for pod in &workload.pods {
            let node = pod.node_name.as_deref().and_then(|node| on_moved.get(node));
            let Some(Moved { from, to, .. }) = node else { continue };
            let set = &workload.spec.set_of(pod.index as usize).0.pod;
            let held = Resources {
                gpu_millis: pod.gpus.iter().map(|(_, millis)| millis).sum(),
                cpu_millis: set.cpu_millis,
                memory_bytes: set.memory_bytes,
            };
            let project = workload.project_id;
            let leave = &mut changes.entry((project, from)).or_default().leave;
            *leave += held;
            let come = &mut changes.entry((project, to)).or_default().come;
            *come += held;
        }
    }
    changes
}

/// Projects that would hold more in a pool than their quota there, because of the change.
fn losses(view: &View, moved: &[Moved<'_>], gone: Option<&str>) -> Vec<String> {
    let mut losses = Vec::new();
    for ((id, pool), change) in changes(view, moved) {
        let Some(project) = view.projects.get(&id).filter(|_| Some(pool) != gone) else { continue };
        let there = project.unit.pools.iter().find(|share| *share.name == *pool);
        let new = Share::USUAL;
        for kind in Kind::ALL {
            let (held, quota) = there.map_or((0, quota(&new, kind)), |share| {
                (share.status.allocated[kind], quota(&share.share, kind))
            });
            let then = held.saturating_add(change.come[kind]).saturating_sub(change.leave[kind]);
            if then > quota && then > held {
                losses.push(format!(
                    "{} would hold {} in node pool {pool} and have a quota of {} there",
                    project.unit.name,
                    amount(kind, then),
                    amount(kind, quota)
                ));
            }
        }
    }
    losses
}
