//! Values as of now: of nodes, workloads, projects and departments.

use std::collections::BTreeMap;

use access::{Backend, Caller, Route, Where};
use api_types::{TelemetryGroup as WireGroup, TelemetryResponse, TelemetryValue};
use auth::Action::Read;
use auth::Resource;
use axum::extract::{FromRef, State as FromState};
use axum::{Extension, Json};
use control::{Sample, Subject, of};
use convert::{self, Context};
use http_kit::openapi::get;
use http_kit::{ApiError, unknown_word};
use records::ArchivedKey;
use spec::Share;
use units::{Instant, format_millis};
use view::{NodeView, Phase, QueueStatus, View, WorkloadView};

use super::TelemetryState;
use crate::metrics::{TelemetryFamily, TelemetryQuery};

/// The routes of values as of now.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    TelemetryState: FromRef<S>,
{
    let paths = [
        "/api/v1/nodes/telemetry",
        "/api/v1/workloads/telemetry",
        "/api/v1/org-unit/projects/telemetry",
        "/api/v1/org-unit/departments/telemetry",
    ];
    let about = "Values of nodes as of now";
    let of_nodes = get(paths[0], "get_node_telemetry", about, nodes).of("Nodes");
    let about = "Values of workloads as of now";
    let of_workloads = get(paths[1], "get_workloads_telemetry", about, workloads).of("Workloads");
    let about = "Values of projects as of now";
    let of_projects = get(paths[2], "get_projects_telemetry", about, projects).of("Projects");
    let about = "Values of departments as of now";
    let of_departments = get(paths[3], "get_departments_telemetry", about, departments);
    let routes = [
        of_nodes.needs(Read, Resource::Nodes, Where::Anywhere),
        of_workloads.needs(Read, Resource::Workloads, Where::Anywhere),
        of_projects.needs(Read, Resource::Project, Where::Anywhere),
        of_departments.of("Departments").needs(Read, Resource::Department, Where::Anywhere),
    ];
    routes.into_iter()
}

/// A group: its id, and its name if that differs.
type Group = (String, Option<String>);

/// An item to count: its value in thousandths, `None` if unknown, and its groups.
struct Item {
    value: Option<u64>,
    groups: Vec<Group>,
}

/// The sum of each group. A group with an unknown value has none.
fn answer<F: TelemetryFamily>(
    query: &TelemetryQuery<F>,
    items: impl Iterator<Item = Item>,
    keys: &[&str],
    now: Instant,
) -> Json<TelemetryResponse> {
    let mut sums: BTreeMap<Vec<Group>, Option<u64>> = BTreeMap::new();
    if keys.is_empty() {
        sums.insert(Vec::new(), Some(0));
    }
    for item in items {
        let sum = sums.entry(item.groups).or_insert(Some(0));
        *sum = sum.zip(item.value).map(|(sum, value)| sum.saturating_add(value));
    }
    let value = |(groups, sum): (Vec<Group>, Option<u64>)| {
        let groups = groups.into_iter().zip(keys).map(|((value, name), key)| WireGroup {
            key: (*key).to_owned(),
            value,
            name,
        });
        let groups = Some(groups.collect()).filter(|groups: &Vec<_>| !groups.is_empty());
        Some(TelemetryValue { value: format_millis(sum?), groups })
    };
    let values = sums.into_iter().filter_map(value).collect();
    Json(TelemetryResponse { kind: query.kind.0.to_owned(), timestamp: now.into(), values })
}

/// The group of what is in a node pool, by id and name: there is one cluster.
fn surroundings(key: &str, context: &Context, (id, name): (&str, &str)) -> Option<Group> {
    match key {
        "ClusterId" => Some((context.cluster_id.clone(), Some(context.cluster_name.clone()))),
        "Nodepool" => Some((name.to_owned(), None)),
        "NodepoolId" => Some((id.to_owned(), Some(name.to_owned()))),
        _ => None,
    }
}

fn check_filters<F: TelemetryFamily>(
    state: &Backend,
    query: &TelemetryQuery<F>,
    view: &View,
) -> Result<(), ApiError> {
    state.check_cluster(query.filter("clusterId"))?;
    if view.pools.iter().any(|pool| asked_for(query, &pool.id, &pool.name)) {
        return Ok(());
    }
    let asked = query.filter("nodepoolId").or_else(|| query.filter("nodepoolName"));
    Err(ApiError::no_such("node pool", asked.unwrap_or_default()))
}

/// True if the query selects this node pool, or names none.
fn asked_for<F: TelemetryFamily>(query: &TelemetryQuery<F>, id: &str, name: &str) -> bool {
    query.filter("nodepoolId").is_none_or(|asked| asked == id)
        && query.filter("nodepoolName").is_none_or(|asked| asked == name)
}

/// Department that the query selects; `None` for all.
fn department_filter<F: TelemetryFamily>(
    query: &TelemetryQuery<F>,
) -> Result<Option<u64>, ApiError> {
    let number = |id: &str| id.parse().map_err(|_| ApiError::no_such("department", id));
    query.filter("departmentId").map(number).transpose()
}

struct OfNodes;

impl TelemetryFamily for OfNodes {
    type Kind = fn(&NodeView, &Sample) -> Option<u64>;
    const KINDS: &'static [(&'static str, Self::Kind)] = &[
        ("READY_GPU_NODES", |node, _| Some(one(node.capacity.gpu_millis > 0))),
        ("READY_GPUS", |node, _| Some(node.capacity.gpu_millis)),
        ("TOTAL_GPU_NODES", |node, _| Some(one(gpus(node) > 0))),
        ("TOTAL_GPUS", |node, _| Some(gpus(node))),
        ("IDLE_ALLOCATED_GPUS", idle_gpus),
        ("FREE_GPUS", |node, _| Some(free_gpus(node))),
        ("ALLOCATED_GPUS", |node, _| Some(node.used.gpu_millis)),
        ("TOTAL_CPU_CORES", |node, _| Some(node.capacity.cpu_millis)),
        ("USED_CPU_CORES", |node, sample| seen(sample, node, of::CPU)),
        ("ALLOCATED_CPU_CORES", |node, _| Some(node.used.cpu_millis)),
        ("TOTAL_GPU_MEMORY_BYTES", |node, _| Some(whole(node.gpu_memory_bytes.iter().sum()))),
        ("USED_GPU_MEMORY_BYTES", used_gpu_memory),
        ("TOTAL_CPU_MEMORY_BYTES", |node, _| Some(whole(node.capacity.memory_bytes))),
        ("USED_CPU_MEMORY_BYTES", |node, sample| seen(sample, node, of::MEMORY).map(whole)),
        ("ALLOCATED_CPU_MEMORY_BYTES", |node, _| Some(whole(node.used.memory_bytes))),
        ("FULLY_FREE_GPU_NODES", |node, _| Some(one(gpus(node) > 0 && node.used.gpu_millis == 0))),
    ];
    const GROUPS: &'static [&'static str] = &["ClusterId", "Nodepool", "Node"];
    const FILTERS: &'static [&'static str] = &["clusterId", "nodepoolName"];
}

const fn one(yes: bool) -> u64 {
    if yes { 1000 } else { 0 }
}

const fn whole(value: u64) -> u64 {
    value.saturating_mul(1000)
}

fn gpus(node: &NodeView) -> u64 {
    node.capacities().sum()
}

/// Free share of the GPUs of a node that are in service.
fn free_gpus(node: &NodeView) -> u64 {
    let each = (0..).zip(node.gpus().zip(node.capacities()));
    let in_service = each.filter(|(at, _)| !node.gpu_faults.contains_key(at));
    let free = in_service.map(|(_, (gpu, all))| match gpu.used_millis {
        // An instance is one pod's.
        1.. if gpu.instance.is_some() => 0,
        used => all.saturating_sub(used),
    });
    free.sum()
}

fn seen(sample: &Sample, node: &NodeView, name: &str) -> Option<u64> {
    sample.value(&Subject::Node(node.name.clone()), name)
}

fn used_gpu_memory(node: &NodeView, sample: &Sample) -> Option<u64> {
    if gpus(node) == 0 { Some(0) } else { seen(sample, node, of::GPU_MEMORY).map(whole) }
}

/// The allocated GPUs that are idle, if utilization is known of each allocated one.
fn idle_gpus(node: &NodeView, sample: &Sample) -> Option<u64> {
    let held = (0..).zip(&node.gpu_used_millis).filter(|(_, millis)| **millis > 0);
    held.map(|(index, _)| Some(one(seen(sample, node, &of::gpu(of::BUSY, index))? == 0))).sum()
}

async fn nodes(
    FromState(state): FromState<TelemetryState>,
    query: TelemetryQuery<OfNodes>,
) -> Result<Json<TelemetryResponse>, ApiError> {
    let (view, sample, context) = (state.control.view(), state.control.sample(), state.context());
    check_filters(&state, &query, &view)?;
    let nodes = view.nodes.iter().filter(|node| asked_for(&query, "", &node.pool));
    let items = nodes.map(|node| {
        let group = |key: &&str| {
            let own = || (convert::node(node, &context).id, Some(node.name.clone()));
            surroundings(key, &context, ("", &node.pool)).unwrap_or_else(own)
        };
        let value = (query.kind.1)(node, &sample);
        Item { value, groups: query.groups.iter().map(group).collect() }
    });
    Ok(answer(&query, items, &query.groups, context.now))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkloadKind {
    Count,
    Gpus,
    Pending,
}

struct OfWorkloads;

impl TelemetryFamily for OfWorkloads {
    type Kind = WorkloadKind;
    const KINDS: &'static [(&'static str, Self::Kind)] = &[
        ("WORKLOADS_COUNT", WorkloadKind::Count),
        ("GPU_ALLOCATION", WorkloadKind::Gpus),
        ("PENDING_TIME_DISTRIBUTION", WorkloadKind::Pending),
    ];
    const GROUPS: &'static [&'static str] =
        &["ClusterId", "DepartmentId", "ProjectId", "Nodepool", "Phase", "Type", "Category"];
    const FILTERS: &'static [&'static str] =
        &["clusterId", "nodepoolName", "departmentId", "filterByPhases"];
}

/// How pending workloads are grouped: up to how many seconds they have waited.
const WAITS: [(u64, &str); 4] =
    [(60, "0-60"), (600, "60-600"), (3600, "600-3600"), (86_400, "3600-86400")];
const WAITS_LONGEST: &str = "86400-";
const WAIT: &str = "PendingTimeSeconds";

fn wait(workload: &WorkloadView, now: Instant) -> Group {
    let waited_s = (workload.waited_ms + now.since_ms(workload.phase_since)) / 1000;
    let found = WAITS.iter().find(|(until, _)| waited_s < *until);
    (found.map_or(WAITS_LONGEST, |(_, name)| name).to_owned(), None)
}

async fn workloads(
    FromState(state): FromState<TelemetryState>,
    Extension(caller): Extension<Caller>,
    query: TelemetryQuery<OfWorkloads>,
) -> Result<Json<TelemetryResponse>, ApiError> {
    let (view, context) = (state.control.view(), state.context());
    check_filters(&state, &query, &view)?;
    let department = department_filter(&query)?;
    let phases = phases(query.filter("filterByPhases"))?;
    let by_wait = query.kind.1 == WorkloadKind::Pending;
    let mut keys = query.groups.clone();
    if by_wait {
        if keys.len() > 1 {
            let why = "is more than one; how long they have waited is a group of its own";
            return Err(ApiError::field("groupBy", why));
        }
        keys.push(WAIT);
    }
    let sight = caller.sight(Resource::Workloads, &view);
    let counted = view.workloads.values().filter(|workload| {
        sight.has(workload.project_id)
            && (query.filter("nodepoolName").is_none()
                || asked_for(&query, "", workload.pool.as_deref().unwrap_or_default()))
            && department.is_none_or(|id| workload.department_id == id)
            && phases
                .as_ref()
                .is_none_or(|phases| phases.contains(&convert::phase_name(workload.phase)))
            && (!by_wait || workload.phase == Phase::Pending)
    });
    let items = counted.map(|workload| {
        let group = |key: &&str| match *key {
            WAIT => wait(workload, context.now),
            key => {
                let pool = workload.pool.as_deref().unwrap_or_default();
                let of = || group_of(&Grouped::of(workload), key);
                surroundings(key, &context, ("", pool)).unwrap_or_else(of)
            }
        };
        let value = match query.kind.1 {
            WorkloadKind::Gpus => workload.allocated.gpu_millis,
            WorkloadKind::Count | WorkloadKind::Pending => 1000,
        };
        Item { value: Some(value), groups: keys.iter().map(group).collect() }
    });
    let archived = view.archived.iter().filter_map(|(key, count)| {
        let of = Grouped::of_archived(key, &view)?;
        let is_counted = sight.has(key.project_id)
            && !by_wait
            && (query.filter("nodepoolName").is_none() || asked_for(&query, "", ""))
            && department.is_none_or(|id| of.department.0 == id)
            && phases.as_ref().is_none_or(|phases| phases.contains(&convert::phase_name(of.phase)));
        let group = |key: &&str| {
            surroundings(key, &context, ("", "")).unwrap_or_else(|| group_of(&of, key))
        };
        let value = if query.kind.1 == WorkloadKind::Gpus { 0 } else { 1000 * count };
        let item = || Item { value: Some(value), groups: keys.iter().map(group).collect() };
        is_counted.then(item)
    });
    Ok(answer(&query, items.chain(archived), &keys, context.now))
}

/// Names that workloads are counted by.
struct Grouped<'a> {
    department: (u64, &'a str),
    project: (u64, &'a str),
    phase: Phase,
    kind: spec::WorkloadKind,
}

impl<'a> Grouped<'a> {
    fn of(workload: &'a WorkloadView) -> Self {
        Self {
            department: (workload.department_id, &workload.department_name),
            project: (workload.project_id, &workload.project_name),
            phase: workload.phase,
            kind: workload.spec.kind,
        }
    }

    fn of_archived(key: &ArchivedKey, view: &'a View) -> Option<Self> {
        let project = view.projects.get(&key.project_id)?;
        Some(Self {
            department: (project.department_id, &project.department_name),
            project: (key.project_id, &project.unit.name),
            phase: if key.failed { Phase::Failed } else { Phase::Completed },
            kind: key.kind,
        })
    }
}

fn group_of(of: &Grouped<'_>, key: &str) -> Group {
    let named = |id: u64, name: &str| (id.to_string(), Some(name.to_owned()));
    match key {
        "DepartmentId" => named(of.department.0, of.department.1),
        "ProjectId" => named(of.project.0, of.project.1),
        "Phase" => (convert::phase_name(of.phase).to_owned(), None),
        "Type" => (convert::kind_name(of.kind).to_owned(), None),
        _ => (convert::category(of.kind).to_owned(), None),
    }
}

/// The published phases; nothing is ever in some of them here.
const PHASES: [&str; 14] = [
    "Creating",
    "Initializing",
    "Resuming",
    "Pending",
    "Deleting",
    "Running",
    "Updating",
    "Stopped",
    "Stopping",
    "Degraded",
    "Failed",
    "Completed",
    "Terminating",
    "Unknown",
];

/// The phases to cut to; none = all.
fn phases(text: Option<&str>) -> Result<Option<Vec<&str>>, ApiError> {
    let known = |word| PHASES.contains(&word).then_some(word);
    let check = |word| known(word).ok_or_else(|| unknown_word("phase", word, &PHASES));
    text.map(|text| text.split(',').map(check).collect()).transpose()
}

/// A value of a project or department.
type OrgValue = fn(&QueueStatus, &Share) -> Option<u64>;

const ORG_KINDS: &[(&str, OrgValue)] = &[
    ("GPU_QUOTA", |_, share| Some(share.gpu_quota_millis)),
    ("CPU_QUOTA", |_, share| share.cpu_quota_millis),
    ("MEMORY_QUOTA", |_, share| share.memory_quota_bytes.map(whole)),
    ("GPU_ALLOCATION", |now, _| Some(now.allocated.gpu_millis)),
    ("CPU_ALLOCATION", |now, _| Some(now.allocated.cpu_millis)),
    ("MEMORY_ALLOCATION", |now, _| Some(whole(now.allocated.memory_bytes))),
    ("GPU_ALLOCATION_NON_PREEMPTIBLE", |now, _| Some(now.allocated_non_preemptible.gpu_millis)),
    ("CPU_ALLOCATION_NON_PREEMPTIBLE", |now, _| Some(now.allocated_non_preemptible.cpu_millis)),
    ("MEMORY_ALLOCATION_NON_PREEMPTIBLE", |now, _| {
        Some(whole(now.allocated_non_preemptible.memory_bytes))
    }),
];

struct OfProjects;

impl TelemetryFamily for OfProjects {
    type Kind = OrgValue;
    const KINDS: &'static [(&'static str, Self::Kind)] = ORG_KINDS;
    const GROUPS: &'static [&'static str] = &["ClusterId", "NodepoolId", "ParentId", "ProjectId"];
    const FILTERS: &'static [&'static str] = &["clusterId", "nodepoolId", "departmentId"];
}

async fn projects(
    FromState(state): FromState<TelemetryState>,
    Extension(caller): Extension<Caller>,
    query: TelemetryQuery<OfProjects>,
) -> Result<Json<TelemetryResponse>, ApiError> {
    let (view, context) = (state.control.view(), state.context());
    check_filters(&state, &query, &view)?;
    let department = department_filter(&query)?;
    let counted = caller
        .projects(&view)
        .filter(|project| department.is_none_or(|id| project.department_id == id));
    let in_pools =
        counted.flat_map(|project| project.unit.pools.iter().map(move |pool| (project, pool)));
    let in_pools = in_pools.filter(|(_, pool)| asked_for(&query, &pool.id, &pool.name));
    let items = in_pools.map(|(project, pool)| {
        let group = |key: &&str| {
            surroundings(key, &context, (&pool.id, &pool.name)).unwrap_or_else(|| match *key {
                "ParentId" => {
                    (project.department_id.to_string(), Some(project.department_name.clone()))
                }
                _ => (project.unit.id.to_string(), Some(project.unit.name.clone())),
            })
        };
        let value = (query.kind.1)(&pool.status, &pool.share);
        Item { value, groups: query.groups.iter().map(group).collect() }
    });
    Ok(answer(&query, items, &query.groups, context.now))
}

struct OfDepartments;

impl TelemetryFamily for OfDepartments {
    type Kind = OrgValue;
    const KINDS: &'static [(&'static str, Self::Kind)] = ORG_KINDS;
    const GROUPS: &'static [&'static str] = &["ClusterId", "Nodepool", "DepartmentId"];
    const FILTERS: &'static [&'static str] = &["clusterId", "nodepoolName", "departmentId"];
}

async fn departments(
    FromState(state): FromState<TelemetryState>,
    Extension(caller): Extension<Caller>,
    query: TelemetryQuery<OfDepartments>,
) -> Result<Json<TelemetryResponse>, ApiError> {
    let (view, context) = (state.control.view(), state.context());
    check_filters(&state, &query, &view)?;
    let only = department_filter(&query)?;
    let counted =
        caller.departments(&view).filter(|department| only.is_none_or(|id| department.id == id));
    let in_pools =
        counted.flat_map(|department| department.pools.iter().map(move |pool| (department, pool)));
    let in_pools = in_pools.filter(|(_, pool)| asked_for(&query, &pool.id, &pool.name));
    let items = in_pools.map(|(department, pool)| {
        let own = || (department.id.to_string(), Some(department.name.clone()));
        let group =
            |key: &&str| surroundings(key, &context, (&pool.id, &pool.name)).unwrap_or_else(own);
        let value = (query.kind.1)(&pool.status, &pool.share);
        Item { value, groups: query.groups.iter().map(group).collect() }
    });
    Ok(answer(&query, items, &query.groups, context.now))
}
