//! Series of the cluster, nodes, workloads, pods, projects and departments.

use std::collections::BTreeMap;

use access::{Caller, Route, Where, find_of_kind, find_workload};
use api_types::{
    GroupedMeasurementGroup, GroupedMeasurementResponse, GroupedMetricsResponse,
    MeasurementResponse, MetricsResponse,
};
use auth::Action::Read;
use auth::Resource;
use axum::extract::{FromRef, Path, State as FromState};
use axum::{Extension, Json};
use control::Subject;
use http_kit::ApiError;
use http_kit::openapi::get;
use spec::WorkloadKind;
use view::{PoolView, View};

use super::TelemetryState;
use crate::metrics::{
    MetricsQuery, OfCluster, OfInference, OfNode, OfNodePool, OfOrgUnit, OfPod, OfReplica,
    OfWorkload, Points, measurements, together,
};

/// The routes of series.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    TelemetryState: FromRef<S>,
{
    use Resource::{Cluster, Department, Inferences, NodePools, Nodes, Project, Workloads};
    let clusters = "/api/v1/clusters/{clusterUuid}/metrics";
    let pools = "/api/v1/clusters/{clusterUuid}/nodepools/{nodepoolName}/metrics";
    let nodes = "/api/v1/nodes/{nodeId}/metrics";
    let workloads = "/api/v1/workloads/{workloadId}/metrics";
    let pods = "/api/v1/workloads/{workloadId}/pods/{podId}/metrics";
    let inferences = "/api/v1/workloads/inferences/{workloadId}/metrics";
    let replicas = "/api/v1/workloads/inferences/{workloadId}/pods/{podId}/metrics";
    let projects = "/api/v1/org-unit/projects/{projectId}/metrics";
    let departments = "/api/v1/org-unit/departments/{departmentId}/metrics";
    let routes =
        [
            get(clusters, "get_cluster_metrics", "What a cluster held and used", cluster)
                .of("Clusters")
                .needs(Read, Cluster, Where::Anywhere),
            get(pools, "get_nodepool_metrics", "What a node pool held and used", node_pool)
                .of("NodePools")
                .needs(Read, NodePools, Where::Anywhere),
            get(nodes, "get_node_metrics", "What a node held and used", node).of("Nodes").needs(
                Read,
                Nodes,
                Where::Anywhere,
            ),
            get(workloads, "get_workload_metrics", "What a workload held and used", workload)
                .of("Workloads")
                .needs(Read, Workloads, Where::Workload),
            get(pods, "get_workload_pod_metrics", "What a pod held and used", pod)
                .of("Pods")
                .needs(Read, Workloads, Where::Workload),
            get(
                inferences,
                "get_inference_workload_metrics",
                "What requests to an inference came to",
                inference,
            )
            .of("Inferences")
            .needs(Read, Inferences, Where::Workload),
            get(
                replicas,
                "get_inference_workload_pod_metrics",
                "What requests to a replica came to",
                replica,
            )
            .of("Inferences")
            .needs(Read, Inferences, Where::Workload),
            get(projects, "get_project_metrics", "What a project deserved and held", project)
                .of("Projects")
                .needs(Read, Project, Where::Project),
            get(
                departments,
                "get_department_metrics",
                "What a department deserved and held",
                department,
            )
            .of("Departments")
            .needs(Read, Department, Where::Department),
        ];
    routes.into_iter()
}

/// Samples of a subject in the time of a query.
async fn points<F>(
    state: &TelemetryState,
    subject: &Subject,
    query: &MetricsQuery<F>,
) -> Result<Points, ApiError> {
    let span = (query.start, query.end.plus_ms(1));
    Ok(state.control.measured(subject, span, query.spacing_ms(), state.now()).await?)
}

async fn series<F>(
    state: &TelemetryState,
    subject: &Subject,
    query: &MetricsQuery<F>,
) -> Result<Json<MetricsResponse>, ApiError> {
    let points = points(state, subject, query).await?;
    Ok(Json(MetricsResponse { measurements: measurements(query, &points) }))
}

/// A group, by its name, and whose samples are its, together.
type Group = (String, Vec<Subject>);

async fn cluster(
    FromState(state): FromState<TelemetryState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    query: MetricsQuery<OfCluster>,
) -> Result<Json<GroupedMetricsResponse>, ApiError> {
    state.must_be_cluster(&id)?;
    let view = state.control.view();
    let pool = pool_of(&view, &query)?;
    let Some(key) = query.group else {
        let subject = pool.map_or(Subject::Cluster, |pool| Subject::Pool(pool.id.clone()));
        let points = points(&state, &subject, &query).await?;
        let measurements = measurements(&query, &points);
        let measurements = measurements.into_iter().map(|one| grouped(one, None)).collect();
        return Ok(Json(GroupedMetricsResponse { measurements }));
    };
    for (metric, _) in &query.metrics {
        let allowed = groups_of(metric);
        if !allowed.contains(&key) {
            let why = format!("{metric} cannot be grouped by {key}; by {}", allowed.join(", "));
            return Err(ApiError::field("groupBy", why));
        }
    }
    if key == "Category" && pool.is_some() {
        let why = "Category cannot be told by node pool; leave nodepoolName out";
        return Err(ApiError::field("groupBy", why));
    }
    let mut all = Vec::new();
    for (name, subjects) in groups(&view, &caller, key, pool) {
        let mut parts = Vec::new();
        for subject in &subjects {
            parts.push(points(&state, subject, &query).await?);
        }
        let of_group = measurements(&query, &together(parts)).into_iter();
        all.extend(of_group.map(|one| grouped(one, Some((key, &name)))));
    }
    Ok(Json(GroupedMetricsResponse { measurements: all }))
}

/// Names that a type can be grouped by.
fn groups_of(metric: &str) -> &'static [&'static str] {
    match metric {
        "ALLOCATED_GPU" => &["Category", "Nodepool", "Project", "Department"],
        "GPU_QUOTA" => &["Nodepool", "Project", "Department"],
        "WORKLOADS_COUNT" => &["Category", "Nodepool"],
        _ => &["Nodepool"],
    }
}

/// Node pool of a query; `None` if it is the only one, as that is the whole cluster.
fn pool_of<'a, F>(
    view: &'a View,
    query: &MetricsQuery<F>,
) -> Result<Option<&'a PoolView>, ApiError> {
    let Some(name) = &query.pool else { return Ok(None) };
    let found = view.pools.iter().find(|pool| pool.name == *name);
    let found = found.ok_or_else(|| ApiError::no_such("node pool", name))?;
    Ok(Some(&**found).filter(|_| view.pools.len() > 1))
}

fn project_in(id: u64, pool: Option<&PoolView>) -> Subject {
    pool.map_or(Subject::Project(id), |pool| Subject::ProjectIn(id, pool.id.clone()))
}

fn department_in(id: u64, pool: Option<&PoolView>) -> Subject {
    pool.map_or(Subject::Department(id), |pool| Subject::DepartmentIn(id, pool.id.clone()))
}

/// The groups that the caller may see.
fn groups(view: &View, caller: &Caller, key: &str, pool: Option<&PoolView>) -> Vec<Group> {
    match key {
        "Category" => {
            let mut all: BTreeMap<String, Vec<Subject>> = BTreeMap::new();
            for kind in WorkloadKind::ALL {
                let category = convert::category(kind).to_owned();
                all.entry(category).or_default().push(Subject::Kind(kind));
            }
            all.into_iter().collect()
        }
        "Project" => {
            let seen = caller.projects(view);
            seen.map(|one| (one.unit.name.clone(), vec![project_in(one.unit.id, pool)])).collect()
        }
        "Department" => {
            let seen = caller.departments(view);
            seen.map(|one| (one.name.clone(), vec![department_in(one.id, pool)])).collect()
        }
        _ => {
            let asked = view.pools.iter().filter(|one| pool.is_none_or(|pool| pool.id == one.id));
            asked.map(|one| (one.name.clone(), vec![Subject::Pool(one.id.clone())])).collect()
        }
    }
}

fn grouped(one: MeasurementResponse, group: Option<(&str, &str)>) -> GroupedMeasurementResponse {
    let MeasurementResponse { kind, labels, values } = one;
    let group = group.map(|(key, value)| {
        vec![GroupedMeasurementGroup { key: key.to_owned(), value: value.to_owned() }]
    });
    GroupedMeasurementResponse { kind, labels, values, groups: group }
}

async fn node_pool(
    FromState(state): FromState<TelemetryState>,
    Path((cluster, pool)): Path<(String, String)>,
    query: MetricsQuery<OfNodePool>,
) -> Result<Json<MetricsResponse>, ApiError> {
    state.must_be_cluster(&cluster)?;
    let view = state.control.view();
    let found = view.pools.iter().find(|one| one.name == pool);
    let found = found.ok_or_else(|| ApiError::no_such("node pool", &pool))?;
    series(&state, &Subject::Pool(found.id.clone()), &query).await
}

async fn node(
    FromState(state): FromState<TelemetryState>,
    Path(id): Path<String>,
    query: MetricsQuery<OfNode>,
) -> Result<Json<MetricsResponse>, ApiError> {
    let (view, context) = (state.control.view(), state.context());
    let found = view.nodes.iter().find(|node| convert::node(node, &context).id == id);
    let node = found.ok_or_else(|| ApiError::no_such("node", &id))?;
    series(&state, &Subject::Node(node.name.clone()), &query).await
}

async fn workload(
    FromState(state): FromState<TelemetryState>,
    Path(id): Path<String>,
    query: MetricsQuery<OfWorkload>,
) -> Result<Json<MetricsResponse>, ApiError> {
    let workload = find_workload(&state.control, &id).await?;
    let mut pods = Vec::new();
    for pod in &workload.pods {
        pods.push(points(&state, &Subject::Pod(pod.id), &query).await?);
    }
    Ok(Json(MetricsResponse { measurements: measurements(&query, &together(pods)) }))
}

async fn pod(
    FromState(state): FromState<TelemetryState>,
    Path((workload, id)): Path<(String, String)>,
    query: MetricsQuery<OfPod>,
) -> Result<Json<MetricsResponse>, ApiError> {
    let workload = find_workload(&state.control, &workload).await?;
    let found = workload.pods.iter().find(|pod| pod.id.to_string() == id);
    let pod = found.ok_or_else(|| ApiError::no_such("pod", &id))?;
    series(&state, &Subject::Pod(pod.id), &query).await
}

async fn inference(
    FromState(state): FromState<TelemetryState>,
    Path(id): Path<String>,
    query: MetricsQuery<OfInference>,
) -> Result<Json<MetricsResponse>, ApiError> {
    let found = find_of_kind(&state.control, WorkloadKind::Inference, &id).await?;
    series(&state, &Subject::Inference(found.id), &query).await
}

/// A replica may be of any revision, and have gone.
async fn replica(
    FromState(state): FromState<TelemetryState>,
    Path((inference, id)): Path<(String, String)>,
    query: MetricsQuery<OfReplica>,
) -> Result<Json<MetricsResponse>, ApiError> {
    let view = state.control.view();
    let found = find_of_kind(&state.control, WorkloadKind::Inference, &inference).await?;
    let revisions = found.revisions.iter().filter_map(|id| view.revisions.get(id));
    let found = revisions.flat_map(|own| &own.pods).find(|pod| pod.id.to_string() == id);
    let pod = found.ok_or_else(|| ApiError::no_such("pod", &id))?;
    series(&state, &Subject::Pod(pod.id), &query).await
}

async fn project(
    FromState(state): FromState<TelemetryState>,
    Path(id): Path<String>,
    query: MetricsQuery<OfOrgUnit>,
) -> Result<Json<MetricsResponse>, ApiError> {
    let view = state.control.view();
    let found = id.parse().ok().filter(|id| view.projects.contains_key(id));
    let project = found.ok_or_else(|| ApiError::no_such("project", &id))?;
    series(&state, &project_in(project, pool_of(&view, &query)?), &query).await
}

async fn department(
    FromState(state): FromState<TelemetryState>,
    Path(id): Path<String>,
    query: MetricsQuery<OfOrgUnit>,
) -> Result<Json<MetricsResponse>, ApiError> {
    let view = state.control.view();
    let found = id.parse().ok().filter(|id| view.departments.contains_key(id));
    let department = found.ok_or_else(|| ApiError::no_such("department", &id))?;
    series(&state, &department_in(department, pool_of(&view, &query)?), &query).await
}
