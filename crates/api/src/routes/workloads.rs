//! Workloads of every type, their pods, events and history.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use access::{Caller, Route, Where, find_workload, resource_of};
use api_types::{
    BATCH_ITEMS_MAX, BatchAction, BatchFailure, BatchResponse, CountResponse, EventsPage,
    HistoryPage, PodsPage, Workload, WorkloadBatch, WorkloadRowsPage, WorkloadsPage,
};
use auth::Action::{Delete, Read, Update};
use auth::Resource;
use axum::extract::{Path, Request, State as FromState};
use axum::{Extension, Json};
use convert::{self, PodRow};
use http_kit::openapi::{get, post};
use http_kit::{
    ApiError, Body, Format, ListQuery, OrderedPage, Page, QueryParameters, Written, read_body,
};
use records::EventFilter;
use units::Instant;
use uuid::Uuid;
use view::{Event, PendingReason, SharedMap, View, WorkloadView};

use crate::ApiState;
use crate::archived::Selected;
use crate::list_order::Ordered;

/// Largest body of a batch: as many ids as there may be, with room around them.
const BATCH_BYTES_MAX: usize = 64 << 10;

/// The routes of workloads of every type.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let of = Resource::Workloads;
    let all = "/api/v1/workloads";
    // A published quickstart lists by POST with an empty body (curl --data '').
    let by_post =
        post(all, "get_workloads_by_post", "The workloads; the body is empty", list_by_post).needs(
            Read,
            of,
            Where::Anywhere,
        );
    let one = "/api/v1/workloads/{workloadId}";
    let about_batch = "Deletes, suspends or resumes many workloads";
    let workloads = [
        get(all, "get_workloads", "The workloads", list).needs(Read, of, Where::Anywhere),
        by_post,
        get("/api/v1/workloads/count", "count_workloads", "How many workloads", count).needs(
            Read,
            of,
            Where::Anywhere,
        ),
        get(one, "get_workload", "A workload", read).needs(Read, of, Where::Workload),
        post("/api/v1/workloads/batch", "batch_workloads", about_batch, batch).needs(
            Read,
            of,
            Where::Anywhere,
        ),
    ]
    .map(|route| route.of("Workloads").rows::<WorkloadView, _>());
    let about = "The workloads as rows of a grid, and the reasons that they share";
    let rows = get("/elastane/v1/workloads", "list_workload_rows", about, list_rows);
    let rows = rows.needs(Read, of, Where::Anywhere).of("Elastane").rows::<WorkloadView, _>();
    let of_one = "/api/v1/workloads/{workloadId}/pods";
    let pods =
        [
            get("/api/v1/workloads/pods", "list_pods", "The pods of all workloads", all_pods)
                .needs(Read, of, Where::Anywhere),
            get("/api/v1/workloads/pods/count", "count_pods", "How many pods", count_pods).needs(
                Read,
                of,
                Where::Anywhere,
            ),
            get(of_one, "get_workload_pods", "The pods of a workload", pods).needs(
                Read,
                of,
                Where::Workload,
            ),
        ]
        .map(|route| route.of("Pods").rows::<PodRow, _>());
    let (told, changes) =
        ("/api/v1/workloads/{workloadId}/events", "/api/v1/workloads/{workloadId}/history");
    let events = [
        get(told, "get_workload_events", "What happened to a workload", events).needs(
            Read,
            of,
            Where::Workload,
        ),
        get(changes, "get_workload_history", "Events and changes of phase", history).needs(
            Read,
            of,
            Where::Workload,
        ),
    ]
    .map(|route| route.of("Events"));
    workloads.into_iter().chain([rows]).chain(pods).chain(events)
}

/// Workloads by id.
type Workloads = SharedMap<Uuid, Arc<WorkloadView>>;

/// The workloads of a list: the living, or the deleted ones.
async fn listed<'a>(
    state: &ApiState,
    view: &'a View,
    query: &ListQuery,
) -> Result<Cow<'a, Workloads>, ApiError> {
    match query.deleted {
        true => Ok(Cow::Owned(state.control.deleted(state.now()).await?)),
        false => Ok(Cow::Borrowed(&view.workloads)),
    }
}

/// Workloads that the caller may see, in no order.
fn seen<'a>(
    workloads: &'a Workloads,
    view: &View,
    caller: &Caller,
) -> impl Iterator<Item = &'a Arc<WorkloadView>> {
    let sight = caller.sight(Resource::Workloads, view);
    workloads.values().filter(move |workload| sight.has(workload.project_id))
}

/// Workloads that the caller may see, in order of creation.
fn in_order<'a>(
    workloads: &'a Workloads,
    view: &View,
    caller: &Caller,
) -> Vec<&'a Arc<WorkloadView>> {
    let mut all: Vec<_> = seen(workloads, view, caller).collect();
    all.sort_unstable_by_key(|workload| workload.seq);
    all
}

/// Workloads of a page, and the offset of the next page.
type PageOf = (Vec<Arc<WorkloadView>>, Option<u64>);

/// The page of a query among the workloads that the caller may see.
async fn page_of(
    state: &ApiState,
    caller: &Caller,
    (view, query, now): (&Arc<View>, &mut ListQuery, Instant),
) -> Result<PageOf, ApiError> {
    let is_of_cluster = is_of_cluster(state, query)?;
    let query = &*query;
    if !is_of_cluster {
        let none = std::iter::empty::<&Arc<WorkloadView>>();
        return Ok(cloned(query.page_of(none, now, |workload| workload.seq)?));
    }
    let workloads = listed(state, view, query).await?;
    let ordered = state.orders.of(view, query, now).filter(|_| !query.deleted);
    let archived = Selected::of(&state.control, (view, caller, now), query, own_field).await?;
    match (archived, &ordered) {
        (Some(archived), _) => {
            let here = in_memory(view, caller, query, now, ordered.as_ref())?;
            archived.page(&state.control, view, here, (query, now)).await
        }
        (None, Some(ordered)) => {
            let sight = caller.sight(Resource::Workloads, view);
            let all = ordered.iter().filter(|workload| sight.has(workload.project_id));
            Ok(cloned(query.page_in_order(all, now)?))
        }
        (None, None) => {
            let all = seen(&workloads, view, caller);
            Ok(cloned(query.page_of(all, now, |workload| workload.seq)?))
        }
    }
}

/// True if the conditions of a query on the cluster hold: there is one.
fn is_of_cluster(state: &ApiState, query: &mut ListQuery) -> Result<bool, ApiError> {
    query.settle::<WorkloadView, _>("clusterId", &state.context().cluster_id)
}

/// The workloads as rows of a grid, as the stream of changes sends them.
async fn list_rows(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    mut query: ListQuery,
) -> Result<Json<WorkloadRowsPage>, ApiError> {
    let view = state.control.view();
    let (page, next) = page_of(&state, &caller, (&view, &mut query, state.now())).await?;
    let named = page.iter().flat_map(|workload| workload.pending.iter());
    let named: BTreeSet<_> = named.filter_map(PendingReason::class).collect();
    Ok(Json(WorkloadRowsPage {
        workloads: page.iter().map(|workload| convert::grid_row(workload)).collect(),
        reasons: named
            .into_iter()
            .filter_map(|class| Some(convert::shared_reason(class.0, view.pending.reasons(class)?)))
            .collect(),
        next,
    }))
}

async fn list(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    mut query: ListQuery,
) -> Result<Written<WorkloadsPage>, ApiError> {
    let (view, context) = (state.control.view(), state.context());
    let (page, next) = page_of(&state, &caller, (&view, &mut query, context.now)).await?;
    // How far trainings are changes without them, so their rows are not kept.
    let training = |one: &WorkloadView| {
        state.training.job(one.id).map(|_| convert::in_list(shown(&state, one, &view, &context)))
    };
    Ok(Written::new(state.rows.page(&page, next, (&view, &context), &training)?))
}

/// A page of its own.
fn cloned((page, next): (Vec<&Arc<WorkloadView>>, Option<u64>)) -> PageOf {
    (page.into_iter().cloned().collect(), next)
}

/// The workloads in memory that a query selects, up to the end of its page, in order.
fn in_memory(
    view: &View,
    caller: &Caller,
    query: &ListQuery,
    now: Instant,
    ordered: Option<&Ordered>,
) -> Result<Vec<Arc<WorkloadView>>, ApiError> {
    let sight = caller.sight(Resource::Workloads, view);
    let found = match ordered {
        Some(ordered) => {
            let all = ordered.iter().filter(|workload| sight.has(workload.project_id));
            // They are in order already, and stay so.
            query.up_to_page(all, now, |_| ())?
        }
        None => {
            let all = seen(&view.workloads, view, caller);
            query.up_to_page(all, now, |workload: &Arc<WorkloadView>| workload.seq)?
        }
    };
    Ok(found.into_iter().cloned().collect())
}

async fn list_by_post(
    state: FromState<ApiState>,
    caller: Extension<Caller>,
    query: ListQuery,
    request: Request,
) -> Result<Written<WorkloadsPage>, ApiError> {
    let (body, _) = read_body(request, &[Format::Json]).await?;
    if body.iter().any(|byte| !byte.is_ascii_whitespace()) {
        let why = "workloads are created under /api/v1/workloads/trainings or …/workspaces";
        return Err(ApiError::new(axum::http::StatusCode::METHOD_NOT_ALLOWED, why));
    }
    Box::pin(list(state, caller, query)).await
}

async fn count(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    mut query: ListQuery,
) -> Result<Json<CountResponse>, ApiError> {
    if !is_of_cluster(&state, &mut query)? {
        return query.count(std::iter::empty::<&WorkloadView>(), state.now());
    }
    let view = state.control.view();
    let (workloads, now) = (listed(&state, &view, &query).await?, state.now());
    let all = seen(&workloads, &view, &caller).map(AsRef::as_ref);
    let here = query.count(all, now)?.0.count;
    let of = (&*view, &caller, now);
    let archived = match Selected::of(&state.control, of, &query, own_field).await? {
        Some(archived) => archived.count(&state.control, &view, (&query, now)).await?,
        None => 0,
    };
    Ok(Json(CountResponse { count: here + archived }))
}

async fn read(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<Workload>, ApiError> {
    let found = find_workload(&state.control, &id).await?;
    Ok(Json(shown(&state, &found, &state.control.view(), &state.context())))
}

/// A workload as the wire shows it, with how far it is as a training.
fn shown(
    state: &ApiState,
    found: &WorkloadView,
    view: &View,
    context: &convert::Context,
) -> Workload {
    let mut workload = convert::workload(found, view, context);
    workload.additional_fields.training = state.training.job(found.id);
    workload
}

/// Refuses a batch that is too long or names a workload twice. The cost of each id (a command, an
/// answer) is many times its few bytes in the body.
fn check_batch(ids: &[String]) -> Result<(), ApiError> {
    if ids.len() > BATCH_ITEMS_MAX {
        let count = ids.len();
        let why = format!("has {count} ids; at most {BATCH_ITEMS_MAX} are allowed in a request");
        return Err(ApiError::field("ids", why));
    }
    let mut seen = BTreeSet::new();
    for (at, id) in ids.iter().enumerate() {
        // One id has several spellings.
        let same = Uuid::parse_str(id).map_or_else(|_| id.clone(), |id| id.to_string());
        if !seen.insert(same) {
            let why = format!("`{}` is there twice; name each workload once", units::shown(id));
            return Err(ApiError::field(&format!("ids[{at}]"), why));
        }
    }
    Ok(())
}

async fn batch(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Body(batch): Body<WorkloadBatch, BATCH_BYTES_MAX>,
) -> Result<Json<BatchResponse>, ApiError> {
    check_batch(&batch.ids)?;
    let id = Uuid::new_v4().to_string();
    let mut response = BatchResponse { id, succeeded: Vec::new(), failed: Vec::new() };
    // Concurrently, so that one transaction and one decision may do for many.
    let acts = batch.ids.iter().map(|id| act(&state, &caller, batch.action, id));
    let outcomes = futures_util::future::join_all(acts).await;
    for (id, outcome) in batch.ids.into_iter().zip(outcomes) {
        match outcome {
            Ok(()) => response.succeeded.push(id),
            Err(error) => {
                let (code, message) = (error.status.as_u16(), error.message());
                response.failed.push(BatchFailure { id, code, message });
            }
        }
    }
    Ok(Json(response))
}

async fn act(
    state: &ApiState,
    caller: &Caller,
    what: BatchAction,
    id: &str,
) -> Result<(), ApiError> {
    let workload = find_workload(&state.control, id).await?;
    let action = if what == BatchAction::Delete { Delete } else { Update };
    caller.must_to_workload(action, resource_of(workload.spec.kind), &workload)?;
    let (control, by, id) = (state.asked_by(caller), &caller.subject, workload.id);
    match what {
        BatchAction::Delete => control.delete_workload(by, id).await?,
        BatchAction::Suspend => control.suspend(by, id).await?,
        BatchAction::Resume => control.resume(by, id).await?,
    };
    Ok(())
}

fn pods_page(
    rows: &[PodRow],
    view: &View,
    query: &ListQuery,
    state: &ApiState,
) -> Result<Json<PodsPage>, ApiError> {
    let context = state.context();
    let (page, next) = query.page(query.matching(rows.iter(), context.now)?);
    let one = |row: &PodRow| {
        let mut pod = convert::pod(row, view, &context);
        pod.training = state.training.pod(row.workload.id, &pod.name);
        pod
    };
    Ok(Json(PodsPage { pods: page.into_iter().map(one).collect(), next }))
}

/// A field of a workload has its own name.
const fn own_field(field: &str) -> Option<&str> {
    Some(field)
}

/// Field of a workload that a field of a pod comes from; `None` for the pod's own fields.
fn field_of_workload(field: &str) -> Option<&str> {
    match field {
        "workloadId" => Some("id"),
        "workloadName" => Some("name"),
        "projectId" | "projectName" => Some(field),
        _ => None,
    }
}

/// Passes on the pods of archived workloads that the caller may see and a query may select, some at
/// a time.
async fn each_archived_pod(
    state: &ApiState,
    view: &View,
    caller: &Caller,
    query: &ListQuery,
    mut take: impl FnMut(Vec<PodRow>) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    let of = (view, caller, state.now());
    let Some(archived) = Selected::of(&state.control, of, query, field_of_workload).await? else {
        return Ok(());
    };
    let pods = |chunk: Vec<Arc<WorkloadView>>| take(chunk.iter().flat_map(PodRow::of).collect());
    archived.each(&state.control, view, pods).await
}

/// The pods in memory that the caller may see.
async fn every_pod(
    state: &ApiState,
    view: &View,
    caller: &Caller,
    query: &ListQuery,
) -> Result<Vec<PodRow>, ApiError> {
    let workloads = listed(state, view, query).await?;
    Ok(in_order(&workloads, view, caller).into_iter().flat_map(PodRow::of).collect())
}

async fn all_pods(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<PodsPage>, ApiError> {
    let view = state.control.view();
    let mut rows = every_pod(&state, &view, &caller, &query).await?;
    let now = state.now();
    each_archived_pod(&state, &view, &caller, &query, |pods| {
        rows.extend(pods);
        let kept = query.up_to_page(rows.iter(), now, |row| row.place())?;
        rows = kept.into_iter().cloned().collect();
        Ok(())
    })
    .await?;
    pods_page(&rows, &view, &query, &state)
}

async fn count_pods(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Result<Json<CountResponse>, ApiError> {
    let view = state.control.view();
    let (rows, now) = (every_pod(&state, &view, &caller, &query).await?, state.now());
    let mut count = query.count(rows.iter(), now)?.0.count;
    each_archived_pod(&state, &view, &caller, &query, |pods| {
        count += query.count(pods.iter(), now)?.0.count;
        Ok(())
    })
    .await?;
    Ok(Json(CountResponse { count }))
}

async fn pods(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
    query: ListQuery,
) -> Result<Json<PodsPage>, ApiError> {
    let view = state.control.view();
    let workload = match (query.deleted, find_workload(&state.control, &id).await) {
        (false, living) => Some(living?),
        // A living workload has lost no pod: each of its pods is one for all its runs.
        (true, Ok(_)) => None,
        (true, Err(unknown)) => {
            let id = access::workload_id(&id)?;
            Some(state.control.deleted_one(id, state.now()).await?.ok_or(unknown)?)
        }
    };
    let rows: Vec<PodRow> = workload.iter().flat_map(PodRow::of).collect();
    pods_page(&rows, &view, &query, &state)
}

/// The page of a workload's events, read from the log; a deleted workload's are there as well.
async fn log_page(
    state: &ApiState,
    id: &str,
    query: &ListQuery,
) -> Result<(Vec<Event>, Option<u64>), ApiError> {
    let workload = access::workload_id(id)?;
    let (offset, length, newest_first) = query.window();
    let filter = EventFilter {
        workload: Some(workload),
        skip: offset,
        // One more than the page, to know whether there is a next one.
        limit: Some(u32::try_from(length.saturating_add(1)).unwrap_or(u32::MAX)),
        newest_first,
        ..EventFilter::default()
    };
    let events = state.control.events(filter).await?;
    if events.is_empty() {
        let any =
            EventFilter { workload: Some(workload), limit: Some(1), ..EventFilter::default() };
        if offset == 0 || state.control.events(any).await?.is_empty() {
            find_workload(&state.control, id).await?;
        }
    }
    Ok(query.page_at_once(events))
}

async fn events(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
    query: QueryParameters<OrderedPage>,
) -> Result<Json<EventsPage>, ApiError> {
    let (events, next) = log_page(&state, &id, &query.list()?).await?;
    let context = state.context();
    let one = |event| convert::kubernetes_event(event, &context);
    Ok(Json(EventsPage { events: events.iter().map(one).collect(), next }))
}

async fn history(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
    query: QueryParameters<Page>,
) -> Result<Json<HistoryPage>, ApiError> {
    let (events, next) = log_page(&state, &id, &query.list()?).await?;
    let context = state.context();
    let one = |event| convert::history(event, &context);
    Ok(Json(HistoryPage { records: events.iter().map(one).collect(), next }))
}
