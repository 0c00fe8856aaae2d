//! The cluster as the published view has it: nodes, queues and workloads. Owns: one pass over the
//! workloads of the view, whatever their number, and what its sums are called.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use control::{Clock, Handle, Sample, Subject, of};
use convert::phase_name;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;
use spec::WorkloadKind;
use units::{GPU_MILLIS, Instant, Resources};
use uuid::Uuid;
use view::{OrgUnit, Phase, PodState, PodView, PoolShare, View, WorkloadView};

use super::{Gauges, MetricScope, nodes, number, whole};

/// Collector of the view that the dispatcher has published.
pub(super) struct Cluster {
    pub(super) control: Handle,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) extent: MetricScope,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("control", &self.control).finish_non_exhaustive()
    }
}

impl Collector for Cluster {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Gauges(encoder);
        let (view, sample) = (self.control.view(), self.control.sample());
        let capabilities = self.control.capabilities();
        nodes::fractions(&view, &capabilities.fractions, &mut to)?;
        if self.extent == MetricScope::Nodes {
            return nodes::nodes(&view, &sample, &mut to);
        }
        let about = "Always 1; its labels say which server this is.";
        let (version, runtime) = (&*self.control.cluster().version, &capabilities.runtime);
        let labels = [("version", version), ("runtime", runtime)];
        to.family(("build_info", None), about, [(labels, 1.0)])?;
        let about = "Requests that wait for the dispatcher.";
        let waiting = self.control.requests_waiting() as u64;
        to.one(("dispatcher_requests_waiting", None), about, number(waiting))?;
        published(&view, &sample, self.clock.now(), &mut to)
    }
}

/// Writes the metrics of a view and of the last measurement.
pub(super) fn published(
    view: &View,
    sample: &Sample,
    now: Instant,
    to: &mut Gauges<'_>,
) -> fmt::Result {
    // The time is 0 before the first measurement.
    if sample.at != Instant(0) {
        let about = "When use was last measured, in seconds since 1970.";
        to.one(("measurement_timestamp", Some(Unit::Seconds)), about, whole(sample.at.0))?;
    }
    nodes::nodes(view, sample, to)?;
    queues(view, to)?;
    let sums = Sums::of(view, sample);
    sums.phases(to)?;
    sums.held(to)?;
    sums.waiting(now, to)
}

/// Shares of a department or a project in node pools. A pool in which it has nothing is left out.
fn parts(unit: &OrgUnit) -> impl Iterator<Item = &PoolShare> {
    let has = |part: &&PoolShare| {
        let (share, status) = (&part.share, &part.status);
        let any = [status.allocated, status.requested, status.fair_share];
        share.gpu_quota_millis > 0
            || share.gpu_limit_millis.is_some()
            || any.iter().any(|of| *of != Resources::ZERO)
    };
    unit.pools.iter().filter(move |part| unit.pools.len() == 1 || has(part))
}

/// A value of a share of a node pool in thousandths of GPUs, if it has one.
type Value = fn(&PoolShare) -> Option<u64>;

/// Values of shares, with what the name of each metric ends in.
const SHARES: [(&str, &str, Value); 6] = [
    ("gpus_quota", "GPUs it deserves", |part| Some(part.share.gpu_quota_millis)),
    ("gpus_limit", "Most GPUs it may hold; missing where it is unlimited", |part| {
        part.share.gpu_limit_millis
    }),
    ("gpus_fair_share", "GPUs it is entitled to now, over quota included", |part| {
        Some(part.status.fair_share.gpu_millis)
    }),
    ("gpus_requested", "GPUs its workloads ask for, running and waiting", |part| {
        Some(part.status.requested.gpu_millis)
    }),
    ("gpus_allocated", "GPUs its workloads hold", |part| Some(part.status.allocated.gpu_millis)),
    ("gpus_allocated_non_preemptible", "GPUs it holds that cannot be reclaimed", |part| {
        Some(part.status.allocated_non_preemptible.gpu_millis)
    }),
];

/// Projects and departments, by node pool.
fn queues(view: &View, to: &mut Gauges<'_>) -> fmt::Result {
    for (name, about, value) in SHARES {
        let projects = view.projects.values().flat_map(|project| {
            parts(&project.unit).filter_map(move |part| {
                let labels = [
                    ("project", &*project.unit.name),
                    ("department", &*project.department_name),
                    ("node_pool", &*part.name),
                ];
                Some((labels, whole(value(part)?)))
            })
        });
        let about_project = format!("Of a project in a node pool: {about}.");
        to.family((&format!("project_{name}"), None), &about_project, projects)?;
        let departments = view.departments.values().flat_map(|department| {
            parts(department).filter_map(move |part| {
                let labels = [("department", &*department.name), ("node_pool", &*part.name)];
                Some((labels, whole(value(part)?)))
            })
        });
        let about = format!("Of a department in a node pool: {about}.");
        to.family((&format!("department_{name}"), None), &about, departments)?;
    }
    Ok(())
}

/// Key of a count of workloads: the project, and their kind.
type Owner = (u64, WorkloadKind);

/// The labels of an owner.
#[derive(Clone, Copy)]
struct Names<'a> {
    project: &'a str,
    department: &'a str,
    kind: &'static str,
}

impl<'a> Names<'a> {
    fn of(workload: &'a WorkloadView) -> Self {
        Self {
            project: &workload.project_name,
            department: &workload.department_name,
            kind: kind_name(workload.spec.kind),
        }
    }

    fn and(self, label: &'static str, value: &'a str) -> [(&'static str, &'a str); 4] {
        let Self { project, department, kind } = self;
        [("project", project), ("department", department), ("kind", kind), (label, value)]
    }
}

const fn kind_name(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::Training => "training",
        WorkloadKind::Workspace => "workspace",
        WorkloadKind::Distributed => "distributed",
        WorkloadKind::Inference => "inference",
    }
}

/// Last measurement of pods; `None` where a value is unknown.
#[derive(Default, Clone, Copy)]
struct Used {
    gpu_millis: Option<u64>,
    gpu_memory_bytes: Option<u64>,
    cpu_millis: Option<u64>,
    memory_bytes: Option<u64>,
}

/// Resources that workloads hold in a node pool, and their use.
struct Held<'a> {
    names: Names<'a>,
    allocated: Resources,
    /// The part of it that pods keep between two runs, in thousandths of GPUs.
    kept_gpu_millis: u64,
    gpu_memory_bytes: u64,
    used: Used,
}

/// Workloads that wait for the same reason.
struct Waiting<'a> {
    names: Names<'a>,
    count: u64,
    gpu_millis: u64,
    since: Instant,
}

/// The memory of GPUs that each workload holds: its share of each.
fn gpu_memory(view: &View) -> BTreeMap<Uuid, u64> {
    let mut all = BTreeMap::new();
    for gpu in view.nodes.iter().flat_map(|node| node.gpus()) {
        for pod in gpu.pods {
            // A replica is one of its inference.
            let revision = view.revisions.get(&pod.workload_id).and_then(|own| own.spec.revision);
            let of = revision.map_or(pod.workload_id, |revision| revision.of);
            let bytes = match gpu.instance {
                Some(_) => gpu.memory_bytes,
                None => gpu.memory_bytes / GPU_MILLIS * pod.millis.min(GPU_MILLIS),
            };
            *all.entry(of).or_insert(0) += bytes;
        }
    }
    all
}

/// Sums over the workloads of a view.
#[derive(Default)]
struct Sums<'a> {
    by_phase: BTreeMap<(Owner, &'static str), (Names<'a>, u64)>,
    by_pool: BTreeMap<(Owner, &'a str), Held<'a>>,
    by_reason: BTreeMap<(Owner, &'a str), Waiting<'a>>,
}

/// The reason of what waits and has not been looked at yet.
const NO_REASON: &str = "none";

impl<'a> Sums<'a> {
    fn of(view: &'a View, sample: &Sample) -> Self {
        let mut sums = Self::default();
        let gpu_memory = gpu_memory(view);
        for workload in view.workloads.values() {
            sums.add(workload, view, sample, &gpu_memory);
        }
        for (key, count) in view.archived.iter() {
            let Some(project) = view.projects.get(&key.project_id) else { continue };
            let names = Names {
                project: &project.unit.name,
                department: &project.department_name,
                kind: kind_name(key.kind),
            };
            let phase = phase_name(if key.failed { Phase::Failed } else { Phase::Completed });
            let owner = (key.project_id, key.kind);
            sums.by_phase.entry((owner, phase)).or_insert((names, 0)).1 += count;
        }
        sums
    }

    fn add(
        &mut self,
        workload: &'a WorkloadView,
        view: &'a View,
        sample: &Sample,
        gpu_memory: &BTreeMap<Uuid, u64>,
    ) {
        let owner = (workload.project_id, workload.spec.kind);
        let names = Names::of(workload);
        let phase = phase_name(workload.phase);
        self.by_phase.entry((owner, phase)).or_insert((names, 0)).1 += 1;
        if let Some(pool) = workload.pool.as_deref() {
            let fresh = || Held {
                names,
                allocated: Resources::ZERO,
                kept_gpu_millis: 0,
                gpu_memory_bytes: 0,
                used: Used::default(),
            };
            let held = self.by_pool.entry((owner, pool)).or_insert_with(fresh);
            held.allocated += workload.allocated;
            let keeps =
                |pod: &&PodView| pod.restart_at.is_some() || pod.state == PodState::PlacesKept;
            let kept = workload.pods.iter().filter(keeps);
            held.kept_gpu_millis +=
                kept.flat_map(|pod| &pod.gpus).map(|(_, millis)| millis).sum::<u64>();
            held.gpu_memory_bytes += gpu_memory.get(&workload.id).copied().unwrap_or(0);
            held.used.add(workload, sample);
        }
        // Other reasons are those of workloads that hold their places, such as an image that cannot
        // be pulled.
        let mut each = view.pending.each(&workload.pending);
        let why = each.find(|(reason, _)| reason.code.starts_with('P'));
        if workload.phase == Phase::Pending || why.is_some() {
            let reason = why.map_or(NO_REASON, |(reason, _)| &reason.code);
            let since = match workload.phase {
                Phase::Pending => workload.phase_since,
                // The workload has some pods, and waits for others.
                _ => why.map_or(workload.phase_since, |(_, at)| at),
            };
            let fresh = || Waiting { names, count: 0, gpu_millis: 0, since };
            let waiting = self.by_reason.entry((owner, reason)).or_insert_with(fresh);
            let missing = workload.requested.gpu_millis;
            waiting.count += 1;
            waiting.gpu_millis += missing.saturating_sub(workload.allocated.gpu_millis);
            waiting.since = waiting.since.min(since);
        }
    }

    fn phases(&self, to: &mut Gauges<'_>) -> fmt::Result {
        let about = "Workloads that are not deleted.";
        let samples = self
            .by_phase
            .iter()
            .map(|((_, phase), (names, count))| (names.and("phase", phase), number(*count)));
        to.family(("workloads", None), about, samples)
    }

    fn held(&self, to: &mut Gauges<'_>) -> fmt::Result {
        type Value = fn(&Held<'_>) -> Option<f64>;
        let bytes = || Some(Unit::Bytes);
        let all: [(&str, Option<Unit>, &str, Value); 9] = [
            ("gpus_allocated", None, "GPUs that workloads hold, parts included.", |held| {
                Some(whole(held.allocated.gpu_millis))
            }),
            (
                "gpus_kept",
                None,
                "GPUs that pods keep until they are started again, or others of their gang are back.",
                |held| Some(whole(held.kept_gpu_millis)),
            ),
            (
                "gpus_used",
                None,
                "GPUs that workloads keep busy: how many would be, computing all the time.",
                |held| held.used.gpu_millis.map(whole),
            ),
            ("gpu_memory_allocated", bytes(), "Memory of GPUs that workloads hold.", |held| {
                Some(number(held.gpu_memory_bytes))
            }),
            ("gpu_memory_used", bytes(), "Memory of GPUs that workloads use.", |held| {
                held.used.gpu_memory_bytes.map(number)
            }),
            ("cpus_allocated", None, "Cores that workloads hold.", |held| {
                Some(whole(held.allocated.cpu_millis))
            }),
            ("cpus_used", None, "Cores that workloads keep busy.", |held| {
                held.used.cpu_millis.map(whole)
            }),
            ("memory_allocated", bytes(), "Main memory that workloads hold.", |held| {
                Some(number(held.allocated.memory_bytes))
            }),
            ("memory_used", bytes(), "Main memory that workloads use.", |held| {
                held.used.memory_bytes.map(number)
            }),
        ];
        for (name, unit, about, value) in all {
            let samples = self.by_pool.iter().filter_map(|((_, pool), held)| {
                Some((held.names.and("node_pool", pool), value(held)?))
            });
            to.family((&format!("workload_{name}"), unit), about, samples)?;
        }
        Ok(())
    }

    fn waiting(&self, now: Instant, to: &mut Gauges<'_>) -> fmt::Result {
        let each = || self.by_reason.iter().map(|((_, reason), own)| (own, *reason));
        let about = "Workloads that wait for places, by the code of the first reason.";
        let counts = each().map(|(own, why)| (own.names.and("reason", why), number(own.count)));
        to.family(("workloads_waiting", None), about, counts)?;
        let about = "GPUs that they wait for.";
        let gpus = each().map(|(own, why)| (own.names.and("reason", why), whole(own.gpu_millis)));
        to.family(("workloads_waiting_gpus", None), about, gpus)?;
        let about = "For how long the one that has waited longest has.";
        let longest =
            each().map(|(own, why)| (own.names.and("reason", why), whole(now.since_ms(own.since))));
        to.family(("workloads_waiting_longest", Some(Unit::Seconds)), about, longest)
    }
}

impl Used {
    /// Adds what was measured of the pods of a workload.
    fn add(&mut self, workload: &WorkloadView, sample: &Sample) {
        for pod in workload.pods.iter().filter(|pod| pod.state.holds_place()) {
            let Some(seen) = sample.values.get(&Subject::Pod(pod.id)) else { continue };
            // The utilisation of its GPUs is exported as a mean.
            let gpus = pod.gpus.len() as u64;
            let add = |sum: &mut Option<u64>, name: &str, times: u64| {
                if let Some(value) = seen.get(name) {
                    *sum = Some(sum.unwrap_or(0).saturating_add(value.saturating_mul(times)));
                }
            };
            add(&mut self.gpu_millis, of::BUSY, gpus);
            add(&mut self.gpu_memory_bytes, of::GPU_MEMORY, 1);
            add(&mut self.cpu_millis, of::CPU, 1);
            add(&mut self.memory_bytes, of::MEMORY, 1);
        }
    }
}
