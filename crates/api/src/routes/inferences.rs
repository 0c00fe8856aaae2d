//! Inferences and their revisions.

use std::sync::Arc;

use access::{Caller, Route, Where, find_of_kind, resource_of};
use api_types::{
    CreationRequest, EventsPage, HistoryPage, InferenceUpdateRequest, Revision, RevisionPodsPage,
    RevisionsPage, TypedWorkload,
};
use auth::Action::{Create, Delete, Read, Update};
use axum::extract::{Path, State as FromState};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use convert::{self, PodRow};
use http_kit::openapi::{delete as del, get, patch, post};
use http_kit::{ApiError, Body, Deleted, ListQuery, Noticed, OrderedPage, Page, QueryParameters};
use records::EventFilter;
use sim::what_if::Asked;
use spec::{UsedObject, WorkloadKind, WorkloadSpec};
use uuid::Uuid;
use view::{Event, Phase, PodView, View, WorkloadView};

use super::workload_kinds::{create, delete, project_and_spec, read, source};
use crate::prediction::foretold;
use crate::{ApiState, what_if};
use assets::may_enter;

const KIND: WorkloadKind = WorkloadKind::Inference;

pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let of = resource_of(KIND);
    let all = "/api/v1/workloads/inferences";
    let one = "/api/v1/workloads/inferences/{workloadId}";
    let about_update =
        "Gives an inference new values: its next revision, which takes over when it is ready";
    let inferences = [
        post(all, "create_inference1", "Submits an inference", create)
            .needs(Create, of, Where::Anywhere)
            .naming("CreationRequest", "InferenceCreationRequest"),
        get(one, "get_inference", "An inference as it was asked for", read).needs(
            Read,
            of,
            Where::Workload,
        ),
        patch(one, "update_inference_spec", about_update, update).needs(
            Update,
            of,
            Where::Workload,
        ),
        del(one, "delete_inference", "Stops an inference for good", delete).needs(
            Delete,
            of,
            Where::Workload,
        ),
    ]
    .map(|route| route.of("Inferences").with(KIND).naming("Training1", "Inference1"));
    let (list, number) = (
        "/api/v1/workloads/inferences/{workloadId}/revisions",
        "/api/v1/workloads/inferences/{workloadId}/revisions/count",
    );
    let of_one = "/api/v1/workloads/inferences/revisions/{revisionId}";
    let revisions = [
        get(list, "get_inference_workload_revisions", "The revisions of an inference", revisions)
            .needs(Read, of, Where::Workload),
        get(number, "count_inference_workload_revisions", "How many revisions", count).needs(
            Read,
            of,
            Where::Workload,
        ),
        get(of_one, "get_revision", "A revision", revision).needs(Read, of, Where::Anywhere),
    ]
    .map(|route| route.of("Revisions"));
    let (told, changes, pods_of) = (
        "/api/v1/workloads/inferences/revisions/{revisionId}/events",
        "/api/v1/workloads/inferences/revisions/{revisionId}/history",
        "/api/v1/workloads/inferences/revisions/{revisionId}/pods",
    );
    let about = "Events and changes of phase of a revision";
    let happened = [
        get(told, "get_revision_events", "What happened to a revision", events).needs(
            Read,
            of,
            Where::Anywhere,
        ),
        get(changes, "get_revision_history", about, history).needs(Read, of, Where::Anywhere),
    ]
    .map(|route| route.of("Events"));
    let pods = get(pods_of, "get_revision_pods", "The pods of a revision", pods)
        .needs(Read, of, Where::Anywhere)
        .of("Pods");
    inferences.into_iter().chain(revisions).chain(happened).chain([pods])
}

async fn update(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(request): Body<InferenceUpdateRequest>,
) -> Result<Noticed<TypedWorkload>, ApiError> {
    let view = find_of_kind(&state.control, KIND, &id).await?;
    let from = *view.revisions.last().ok_or_else(|| ApiError::no_such("inference", &id))?;
    let recreate = request.recreate == Some(true);
    let base = base(&view, request.from_revision, &state.control.view())?;
    let mut spec = changed(&state, (&view, &base), request.spec, &caller, &headers).await?;
    let settled = settled_apart(&state, view.project_id, &spec).await;
    let kept = view.spec.serving.as_ref().is_some_and(|serving| serving.recreate);
    // Replicas stay if nothing but the autoscaling changes, and one of them may serve.
    let stays = |settled: &WorkloadSpec| {
        let mut settled = settled.clone();
        agree_to(&mut settled, kept);
        let most = settled.serving.as_ref().map_or(0, |serving| serving.scaling.replicas_max);
        // A revision of an earlier version has room for its former maximum only.
        let has_room = view.spec.pods.pods >= most;
        has_room && view.phase != Phase::Failed && view.spec.rescaled(&settled).is_some()
    };
    let changes = recreate || !settled.as_ref().is_some_and(stays);
    agree_to(&mut spec, if changes { recreate } else { kept });
    let notice = match settled.filter(|_| changes) {
        Some(settled) => {
            Box::pin(replacement((&state, &caller), &view, from, settled, recreate)).await?
        }
        None => None,
    };
    let control = state.asked_by(&caller);
    let made = control.update_inference(&caller.subject, view.id, from, spec).await?;
    Ok(Noticed { body: convert::typed(&made, &state.context()), notice })
}

/// The specification that an update changes: that of the revision with this number, else the
/// newest.
fn base(
    head: &WorkloadView,
    number: Option<u32>,
    known: &View,
) -> Result<Arc<WorkloadSpec>, ApiError> {
    let Some(number) = number else { return Ok(head.spec.clone()) };
    let of = |one: &WorkloadView| one.spec.revision.map_or(0, |revision| revision.number);
    let revisions = || head.revisions.iter().filter_map(|id| known.revisions.get(id));
    let found = revisions().find(|one| of(one) == number);
    found.map(|one| one.spec.clone()).ok_or_else(|| {
        let numbers: Vec<_> = revisions().map(|one| of(one).to_string()).collect();
        let why = format!("there is no revision {number}; known are {}", numbers.join(", "));
        ApiError::field("fromRevision", why)
    })
}

/// Sets whether an interruption is agreed to.
fn agree_to(spec: &mut WorkloadSpec, recreate: bool) {
    spec.serving.iter_mut().for_each(|serving| serving.recreate = recreate);
}

/// Specification as the server would accept it for another workload; `None` if it would not, for a
/// reason such as the number of workloads, which does not apply to a revision.
async fn settled_apart(
    state: &ApiState,
    project_id: u64,
    spec: &WorkloadSpec,
) -> Option<WorkloadSpec> {
    let name = format!("revision-{}", Uuid::new_v4().simple());
    let spec = WorkloadSpec { name, ..spec.clone() };
    let settled = state.control.settled(project_id, spec, false).await;
    settled.inspect_err(|error| tracing::debug!("room is not foretold: {error}")).ok()
}

/// How the next revision replaces the serving one, if there is no room for both.
///
/// # Errors
/// Its only replica would have to stop first, and the caller has not agreed to that; or there is no
/// room for the next one even then.
async fn replacement(
    by: (&ApiState, &Caller),
    view: &WorkloadView,
    from: Uuid,
    next: WorkloadSpec,
    recreate: bool,
) -> Result<Option<String>, ApiError> {
    let known = by.0.control.view();
    let revisions = view.revisions.iter().filter_map(|id| known.revisions.get(id));
    let is_placed = |pod: &&PodView| pod.wanted && pod.state.is_starting_or_running();
    let serving = revisions.flat_map(|revision| &revision.pods).filter(is_placed).count();
    if serving == 0 {
        return Ok(None);
    }
    let beside = what_if::read_steps(
        &[],
        vec![Asked::Submission(view.project_id, Box::new(one_replica(next.clone())))],
    )?;
    let Some(why) = lacks_room(by, beside).await? else { return Ok(None) };
    let (name, project) = (&view.spec.name, &view.project_name);
    let next = WorkloadSpec { name: name.clone(), ..one_replica(next) };
    let instead = Asked::Replacement(view.id, from, Box::new(next));
    if let Some(why) = lacks_room(by, vec![instead]).await? {
        let stopped = match serving {
            1 => "the present one has stopped".to_owned(),
            _ => format!("one of its {serving} replicas has stopped"),
        };
        let message = format!(
            "nothing was changed: there is no room for a replica of the next revision of {name} even when \
             {stopped} ({why}); ask for less, or make room first"
        );
        return Err(ApiError::new(StatusCode::CONFLICT, message));
    }
    if serving > 1 {
        return Ok(Some(format!(
            "there is no room beside the {serving} replicas of {name} ({why}), so they are replaced \
             one at a time"
        )));
    }
    if recreate {
        return Ok(Some(format!(
            "{name} does not serve from the end of its only replica until the next one is ready; if \
             that is not ready in time, the revision before serves again"
        )));
    }
    let message = format!(
        "{name} has one replica, and there is no room for its successor beside it ({why}); `runai \
         inference update {name} -p {project} --recreate …` (`\"recreate\": true`) stops it first, and \
         it comes back if the next one is not ready in time"
    );
    Err(ApiError::new(StatusCode::CONFLICT, message))
}

/// A specification of an inference with one replica.
fn one_replica(mut next: WorkloadSpec) -> WorkloadSpec {
    if let Some(serving) = &mut next.serving {
        let one = |count: &mut u32| *count = 1;
        let of = &mut serving.scaling;
        let counts = [&mut of.replicas_initial, &mut of.replicas_activation];
        counts.into_iter().chain([&mut of.replicas_min, &mut of.replicas_max]).for_each(one);
    }
    next
}

/// Reason why a requested replica would wait; `None` if it would start.
async fn lacks_room(
    by: (&ApiState, &Caller),
    asked: Vec<Asked>,
) -> Result<Option<String>, ApiError> {
    let (_, came) = foretold(by, asked).await?;
    let mut reasons = came.waiting.iter().flat_map(|one| &one.reasons);
    let reason = reasons.next().map(|reason| format!("{} {}", reason.code, reason.message));
    let waits = |task: &sim::Task| task.place.is_none() && task.next.is_none();
    Ok(reason.filter(|_| came.tasks.iter().any(waits)))
}

/// Specification of an inference with some values changed.
async fn changed(
    state: &ApiState,
    (view, base): (&WorkloadView, &WorkloadSpec),
    change: api_types::WorkloadSpec,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<WorkloadSpec, ApiError> {
    if change.assets.is_some() {
        let why = "cannot be changed; give the values, or submit another inference";
        return Err(ApiError::field("spec.assets", why));
    }
    let now = api_types::WorkloadSpec { assets: None, ..convert::asked_for(base) };
    let now = convert::probing_the_port_of(&change, now);
    let request = CreationRequest {
        name: view.spec.name.clone(),
        project_id: view.project_id.to_string(),
        spec: Some(change.over(now)),
        ..CreationRequest::default()
    };
    // No caller gets folders of the machine through the workload of another.
    let keeps = may_enter(state, caller, view).is_ok();
    let has = if keeps { base.pods.pod.container.mounts.clone() } else { Vec::new() };
    let asker = convert::Submitter { has, ..convert::Submitter::of(caller, source(headers)) };
    let (_, spec) = project_and_spec(state, KIND, request, asker).await?;
    // Credentials are named again; values already taken keep their source.
    let named = &base.pods.pod.secrets;
    let is_kept = |object: &&UsedObject| !named.iter().any(|secret| secret.object == object.key);
    let mut uses: Vec<UsedObject> = base.uses.iter().filter(is_kept).cloned().collect();
    for one in spec.uses {
        if uses.iter().all(|had| had.key != one.key) {
            uses.push(one);
        }
    }
    Ok(WorkloadSpec { uses, source: base.source.clone(), ..spec })
}

/// The revisions of an inference that are listed. Former revisions are still known, so a list of
/// the deleted is empty.
async fn of_inference(
    state: &ApiState,
    id: &str,
    deleted: bool,
) -> Result<Vec<Arc<WorkloadView>>, ApiError> {
    let head = find_of_kind(&state.control, KIND, id).await?;
    if deleted {
        return Ok(Vec::new());
    }
    let view = state.control.view();
    Ok(head.revisions.iter().filter_map(|id| view.revisions.get(id)).cloned().collect())
}

async fn revisions(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
    query: QueryParameters<Deleted>,
) -> Result<Json<RevisionsPage>, ApiError> {
    let (view, context) = (state.control.view(), state.context());
    let all = of_inference(&state, &id, query.list()?.deleted).await?;
    let revisions = all.iter().map(|one| convert::revision(one, &view, &context)).collect();
    Ok(Json(RevisionsPage { revisions }))
}

async fn count(
    FromState(state): FromState<ApiState>,
    Path(id): Path<String>,
    query: QueryParameters<Deleted>,
) -> Result<Json<api_types::CountResponse>, ApiError> {
    let count = of_inference(&state, &id, query.list()?.deleted).await?.len() as u64;
    Ok(Json(api_types::CountResponse { count }))
}

/// The revision with this id, if the caller may see its inference.
fn known(state: &ApiState, caller: &Caller, id: &str) -> Result<Arc<WorkloadView>, ApiError> {
    let missing = || ApiError::no_such("revision", id);
    let parsed = id.parse().map_err(|_| missing())?;
    let found = state.control.view().revisions.get(&parsed).cloned().ok_or_else(missing)?;
    caller.must_to_workload(Read, resource_of(KIND), &found).map_err(|_| missing())?;
    Ok(found)
}

async fn revision(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Revision>, ApiError> {
    let found = known(&state, &caller, &id)?;
    Ok(Json(convert::revision(&found, &state.control.view(), &state.context())))
}

async fn pods(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    query: QueryParameters<Deleted>,
) -> Result<Json<RevisionPodsPage>, ApiError> {
    let deleted = query.list()?.deleted;
    let found = known(&state, &caller, &id)?;
    let (view, context) = (state.control.view(), state.context());
    // A replica that went may come again, so none counts as deleted.
    let shown = |row: &PodRow| row.is_shown() && !deleted;
    let rows = PodRow::of(&found).filter(shown);
    let pods = rows.map(|row| convert::pod(&row, &view, &context)).collect();
    Ok(Json(RevisionPodsPage { pods }))
}

/// Events of a revision, from the log of its inference.
async fn log_page(
    state: &ApiState,
    revision: &WorkloadView,
    query: &ListQuery,
) -> Result<(Vec<Event>, Option<u64>), ApiError> {
    let (skip, length, newest_first) = query.window();
    let filter = EventFilter {
        workload: revision.spec.revision.map(|revision| revision.of),
        workload_name: Some(revision.spec.name.clone()),
        skip,
        // One more than the page, to know whether there is a next one.
        limit: Some(u32::try_from(length.saturating_add(1)).unwrap_or(u32::MAX)),
        newest_first,
        ..EventFilter::default()
    };
    Ok(query.page_at_once(state.control.events(filter).await?))
}

async fn events(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    query: QueryParameters<OrderedPage>,
) -> Result<Json<EventsPage>, ApiError> {
    let revision = known(&state, &caller, &id)?;
    let (events, next) = log_page(&state, &revision, &query.list()?).await?;
    let context = state.context();
    let one = |event| convert::kubernetes_event(event, &context);
    Ok(Json(EventsPage { events: events.iter().map(one).collect(), next }))
}

async fn history(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    query: QueryParameters<Page>,
) -> Result<Json<HistoryPage>, ApiError> {
    let revision = known(&state, &caller, &id)?;
    let (events, next) = log_page(&state, &revision, &query.list()?).await?;
    let context = state.context();
    let one = |event| convert::history(event, &context);
    Ok(Json(HistoryPage { records: events.iter().map(one).collect(), next }))
}
