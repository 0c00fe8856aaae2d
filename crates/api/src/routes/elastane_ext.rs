//! Our own routes beside the published ones.

use access::{Caller, find_workload, resource_of, while_caller};
use api_types::{
    AdvisedChange, ChangeFor, Health, Isolation, LimitsKept, Millis, Status, Stopped, Time, WhatIf,
    WouldHappen,
};
use auth::{Action, Resource};
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Path, State as FromState};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::{Extension, Json};
use engine::LogRange;
use futures_util::future::ready;
use futures_util::{StreamExt as _, stream};
use http_kit::openapi::{Description, Input};
use http_kit::{ApiError, Body as JsonBody, Html, JsonText, PlainText, parameters};
use sim::what_if::Asked;
use spec::WorkloadKind;
use units::Instant;
use utoipa::openapi::schema::Type;
use view::{Scope, WorkloadView};

use super::workload_kinds;
use crate::ApiState;
use crate::advice_rights::may;
use crate::node_order::in_natural_order;
use crate::prediction::foretold;
use crate::repair_advice::repairs;
use crate::what_if;

/// Which run an output is of, and how many bytes of it come before this answer: a client
/// that was cut off goes on with `pod` and `offset`.
const RUN: HeaderName = HeaderName::from_static("x-elastane-run");
const OFFSET: HeaderName = HeaderName::from_static("x-elastane-offset");
/// Most changes in a question of a caller that may not see all workloads: each takes a diagnosis.
const ADVISED_MAX: usize = 3;

pub(super) async fn health() -> Json<Health> {
    Json(Health { status: "ok".to_owned() })
}

/// The description of the interface, for programs.
pub(super) async fn openapi() -> Result<JsonText, ApiError> {
    Ok(JsonText(super::description()?.document.as_str().into()))
}

/// The description of the interface, for people.
pub(super) async fn docs() -> Result<Html, ApiError> {
    Ok(Html(super::description()?.page.as_str().into()))
}

pub(super) async fn status(FromState(state): FromState<ApiState>) -> Json<Status> {
    let (view, context) = (state.control.view(), state.context());
    let capabilities = state.control.capabilities();
    let fractions = &capabilities.fractions;
    let levels = view.nodes.iter().map(|node| fractions.of(node.simulated).level);
    let weakest = levels.min().unwrap_or(engine::Enforcement::None);
    let used = view.nodes.iter().map(|node| node.used.gpu_millis).sum();
    let engine::Isolation { kind, missing } = capabilities.isolation;
    let isolation = Isolation {
        kind: kind.name().to_owned(),
        meaning: kind.meaning().to_owned(),
        missing: Some(missing).filter(|missing| !missing.is_empty()),
    };
    let engine::LimitsKept { cpu, memory, why } = capabilities.keeps_limits;
    Json(Status {
        version: state.control.cluster().version.clone(),
        cluster_id: context.cluster_id.clone(),
        cluster_name: context.cluster_name.clone(),
        runtime: capabilities.runtime,
        fraction_enforcement: weakest.name().to_owned(),
        limits: LimitsKept { cpu, memory, why: Some(why).filter(|why| !why.is_empty()) },
        isolation,
        outage: state.control.outage().map(|outage| convert::outage(&outage)),
        leftovers: state.control.leftovers().into_iter().map(convert::leftover).collect(),
        simulated: view.nodes.iter().any(|node| node.simulated),
        now: context.now.into(),
        event_seq: view.event_seq,
        gpus: Millis(view.capacity.gpu_millis),
        gpus_allocated: Millis(used),
        nodes: in_natural_order(&view.nodes)
            .into_iter()
            .map(|node| convert::node_status(node, &context))
            .collect(),
        projects: view.projects.len() as u64,
        workloads: view.workloads.len() as u64 + view.archived_count(),
    })
}

/// The scheduler's view, as a scenario that `elastane simulate` reads. Changes nothing.
pub(super) async fn snapshot(FromState(state): FromState<ApiState>) -> Result<JsonText, ApiError> {
    let seen = state.control.scheduling_state().await?;
    let scenario = sim::snapshot(&seen.cluster, seen.now, &seen.policy);
    let text = scenario
        .to_json()
        .map_err(|error| orchestrator::Error::Internal { message: error.to_string() })?;
    Ok(JsonText(text.into()))
}

/// Result of a what-if. Changes nothing.
pub(super) async fn what_if(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    JsonBody(asked): JsonBody<WhatIf>,
) -> Result<Json<WouldHappen>, ApiError> {
    let WhatIf { trainings, workspaces, distributed, inferences, steps, changes } = asked;
    if !steps.is_empty() {
        // Steps may refer to anything.
        caller.must(Action::Read, Resource::Workloads, Scope::Tenant)?;
    }
    let mut then = Box::pin(asked_changes(&state, &caller, changes)).await?;
    let asked = [
        (WorkloadKind::Training, trainings),
        (WorkloadKind::Workspace, workspaces),
        (WorkloadKind::Distributed, distributed),
        (WorkloadKind::Inference, inferences),
    ];
    let asked =
        asked.into_iter().flat_map(|(kind, all)| all.into_iter().map(move |one| (kind, one)));
    for (kind, request) in asked {
        let asker = convert::Submitter::of(&caller, "what-if".to_owned());
        let strict = request.strict == Some(true);
        let (project_id, spec) =
            workload_kinds::asked_for(&state, &caller, kind, request, asker).await?;
        let spec = state.control.settled(project_id, spec, strict).await?;
        then.push(Asked::Submission(project_id, Box::new(spec)));
    }
    let (as_of, came) = foretold((&state, &caller), what_if::read_steps(&steps, then)?).await?;
    let may = |requirement: convert::Requirement<'_>| may(&caller, requirement);
    Ok(Json(what_if::shown(as_of, &came, &state.control.view(), &may)))
}

/// Changes that a question asks for, each for a workload that the caller may see. Without the right
/// to see all workloads a change must be one that the diagnosis of its workload advises: others may
/// refer to anything.
async fn asked_changes(
    state: &ApiState,
    caller: &Caller,
    changes: Vec<ChangeFor>,
) -> Result<Vec<Asked>, ApiError> {
    let sees_all = caller.may(Action::Read, Resource::Workloads, Scope::Tenant);
    let most = if sees_all { what_if::STEPS_MAX } else { ADVISED_MAX };
    if changes.len() > most {
        let why = format!("{} are too many; {most} at most", changes.len());
        return Err(ApiError::field("changes", why));
    }
    let mut read = Vec::new();
    for ChangeFor { workload_id, change } in changes {
        let workload = find_workload(&state.control, &workload_id).await?;
        caller.must_to_workload(Action::Read, resource_of(workload.spec.kind), &workload)?;
        if !sees_all && !is_advised(state, caller, &workload, &change).await? {
            let why = format!(
                "the change is no advice for `{}` any more; others need the permission to read all \
                 workloads",
                workload.spec.name
            );
            return Err(ApiError::new(StatusCode::FORBIDDEN, why));
        }
        read.push((change, workload));
    }
    what_if::read_changes(&read, &state.control.view())
}

/// True if the diagnosis of a workload advises this change.
async fn is_advised(
    state: &ApiState,
    caller: &Caller,
    workload: &WorkloadView,
    change: &AdvisedChange,
) -> Result<bool, ApiError> {
    let view = state.control.view();
    let advice = match state.diagnose(caller, workload.id).await? {
        Some((found, now)) => {
            let further = Box::pin(repairs((state, caller), false, &view, workload)).await;
            let may = |requirement: convert::Requirement<'_>| may(caller, requirement);
            convert::diagnosis(&found, &view, now, &may, further).advice
        }
        None => Vec::new(),
    };
    Ok(advice.iter().any(|one| one.change == *change))
}

/// The parameters of `logs`.
#[derive(Default)]
pub(super) struct OutputQuery {
    pod: Option<String>,
    previous: bool,
    range: LogRange,
}

impl Input for OutputQuery {
    fn describe(to: &mut Description) {
        let about = "Name of a pod, or a run as `x-elastane-run` names it; default: the first pod";
        to.parameter("pod", Type::String, about);
        to.parameter("follow", Type::Boolean, "Go on with what is still to come");
        let about = "Of the run before that one";
        to.parameter("previous", Type::Boolean, about);
        let about = "Only what was written in so many seconds until now";
        to.parameter("sinceSeconds", Type::Integer, about);
        let about = "Only what was written at this time or later, RFC 3339";
        to.parameter("sinceTime", Type::String, about);
        to.parameter("tail", Type::Integer, "Begin with this many of the last lines");
        let about = "Put the time before each line, and a space";
        to.parameter("timestamps", Type::Boolean, about);
        let about = "Begin behind this many bytes: `x-elastane-offset` and those read since";
        to.parameter("offset", Type::Integer, about);
    }
}

impl FromRequestParts<ApiState> for OutputQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        output_query(&parts.uri, state.now())
    }
}

fn output_query(uri: &Uri, now: Instant) -> Result<OutputQuery, ApiError> {
    let mut query = OutputQuery::default();
    let range = &mut query.range;
    for (name, value) in parameters(uri)? {
        let count = |of: &str| {
            let why = || format!("`{value}` is not a count of {of}; 0 or more");
            value.parse::<u64>().map_err(|_| ApiError::field(&name, why()))
        };
        let switch = || match value.as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(ApiError::field(
                &name,
                format!("`{value}` is not allowed; write true or false"),
            )),
        };
        match name.as_str() {
            "sinceSeconds" | "sinceTime" if range.since.is_some() => {
                return Err(ApiError::bad("say only one of sinceSeconds and sinceTime"));
            }
            "sinceSeconds" => {
                let ms = count("seconds")?.saturating_mul(1000);
                range.since = Some(Instant(now.0.saturating_sub(ms)));
            }
            "sinceTime" => {
                let time: Result<Time, String> = value.parse();
                range.since = Some(time.map_err(|why| ApiError::field("sinceTime", why))?.0);
            }
            "follow" => range.follow = switch()?,
            "timestamps" => range.timestamps = switch()?,
            "tail" => range.tail_lines = Some(count("lines")?),
            "offset" => range.from_byte = Some(count("bytes")?),
            "previous" => query.previous = switch()?,
            "pod" => query.pod = Some(value),
            _ => {
                let why = format!(
                    "unknown parameter `{name}`; allowed are follow, offset, pod, previous, \
                     sinceSeconds, sinceTime, tail, timestamps"
                );
                return Err(ApiError::bad(why));
            }
        }
    }
    Ok(query)
}

pub(super) async fn logs(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    query: OutputQuery,
) -> Result<(HeaderMap, PlainText), ApiError> {
    let workload = find_workload(&state.control, &id).await?;
    let pod = match query.previous {
        true => {
            Some(state.control.run_before(workload.id, query.pod.as_deref()).await?.to_string())
        }
        false => query.pod,
    };
    let log = state.control.logs(workload.id, pod, query.range).await?;
    let run = log.run.to_string();
    let chunks = log.chunks.map(|chunk| chunk.map(Bytes::from));
    let stop = async move {
        let shutdown = state.shutdown.clone();
        let resource = resource_of(workload.spec.kind);
        let may = |now: &Caller| now.must_to_workload(Action::Read, resource, &workload).is_ok();
        tokio::select! {
            () = shutdown.wait() => {}
            () = while_caller(&*state.iam, &caller, may) => {}
        }
        // Not an end: a reader has to ask again, and then gets the reason.
        Err(std::io::Error::other("the output was cut off"))
    };
    let ends = chunks.map(Some).chain(stream::iter([None]));
    let either = stream::select(ends, stream::once(stop).map(Some));
    let body = either.take_while(|next| ready(next.is_some())).filter_map(ready);
    let mut headers = HeaderMap::new();
    headers.insert(RUN, HeaderValue::from_str(&run).map_err(ApiError::internal)?);
    if let Some(before) = log.bytes_before {
        headers.insert(OFFSET, HeaderValue::from(before));
    }
    Ok((headers, PlainText(Body::from_stream(body))))
}

/// Stops every workload, then the server. It goes on when the caller does not wait.
pub(super) async fn down(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Stopped>, ApiError> {
    let stopping = tokio::spawn(async move {
        state.asked_by(&caller).stop_everything(&caller.subject).await?;
        state.shutdown.trigger();
        Ok::<(), orchestrator::Error>(())
    });
    let internal = |cause: tokio::task::JoinError| orchestrator::Error::Internal {
        message: format!("stopping did not come to its end: {cause}"),
    };
    stopping.await.map_err(internal)??;
    Ok(Json(Stopped { stopped: true }))
}
