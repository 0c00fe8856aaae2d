//! The live stream of changed objects. Owns: its parameters.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::str::FromStr;
use std::sync::Arc;

use api_types::{ChangeFrame, ChangeKind, LiveEvent, ServerRow, SharedReason, WorkloadGridRow};
use auth::Resource;
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{FromRef, FromRequestParts, State as FromState};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use control::feed::Position;
use futures_util::{StreamExt as _, stream};
use utoipa::openapi::schema::Type;
use uuid::Uuid;

use access::{Caller, Route, until_revoked, workload_id};
use http_kit::openapi::{Description, Input, Output, get};
use http_kit::{Allowed, ApiError, parameters, unknown_word};

use crate::Context;
use crate::reader::{Reader, Shape, StartFrom, Subscription};

type ChangesState = Arc<Context>;

/// Value of `after` that starts at changes from now on.
const NOW: &str = "now";
const PARAMETERS: [&str; 5] = ["kinds", "project", "workload", "after", "shape"];

/// The routes of this crate, for a server that has its state.
pub fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    ChangesState: FromRef<S>,
{
    let about = "Objects as they change, each whole; resumable. Events from now on";
    // The route needs no role: each object is checked by itself.
    let route = get("/elastane/v1/changes", "stream_changes", about, stream_changes);
    let route = route.part::<ChangeFrame>().part::<WorkloadGridRow>();
    let route = route.part::<SharedReason>().part::<ServerRow>().part::<LiveEvent>();
    [route.own().of("Elastane")].into_iter()
}

/// Events without end.
struct EventStream(Body);

impl IntoResponse for EventStream {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")], self.0).into_response()
    }
}

impl Output for EventStream {
    fn describe(to: &mut Description) {
        to.answers_events();
    }
}

async fn stream_changes(
    FromState(state): FromState<ChangesState>,
    Extension(caller): Extension<Caller>,
    asked: ChangesQuery,
) -> Result<EventStream, ApiError> {
    let ChangesQuery { kinds, projects, workload, after, shape } = asked;
    if let Some(kind) = kinds.iter().find(|kind| !shape.has_kind(**kind)) {
        let why = format!("`{}` is part of rows only; add shape=row", kind.word());
        return Err(ApiError::field("kinds", why));
    }
    let projects = chosen(&state, &caller, &projects)?;
    let wanted = Subscription { shape, kinds, projects, workload, after };
    let shutdown = state.shutdown.clone();
    let revoked = until_revoked(state.authenticator.clone(), caller.clone());
    let reader = Reader::open(state, caller, wanted).await?;
    let events = stream::unfold(reader, |mut reader| async move {
        let text = reader.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), reader))
    });
    // The stream ends even while nothing changes.
    let stop = Box::pin(async move {
        tokio::select! {
            () = shutdown.wait() => {}
            () = revoked => {}
        }
    });
    Ok(EventStream(Body::from_stream(events.take_until(stop))))
}

/// The projects with these ids or names, if the caller may see them.
fn chosen(
    state: &ChangesState,
    caller: &Caller,
    asked: &BTreeSet<String>,
) -> Result<BTreeSet<u64>, ApiError> {
    if asked.is_empty() {
        return Ok(BTreeSet::new());
    }
    let view = state.control.view();
    let seen = caller.sight(Resource::Project, &view);
    let all = view.projects.values().map(|project| (project.unit.name.as_str(), project.unit.id));
    let by_name: BTreeMap<_, _> = all.collect();
    let find = |text: &String| {
        let by_id = text.parse().ok().filter(|id| view.projects.contains_key(id));
        let found = by_id.or_else(|| by_name.get(text.as_str()).copied());
        found.filter(|id| seen.has(*id)).ok_or_else(|| ApiError::no_such("project", text))
    };
    asked.iter().map(find).collect()
}

/// The parameters of a request.
struct ChangesQuery {
    kinds: Vec<ChangeKind>,
    projects: BTreeSet<String>,
    workload: Option<Uuid>,
    after: StartFrom,
    shape: Shape,
}

impl Input for ChangesQuery {
    fn describe(to: &mut Description) {
        let words = ChangeKind::ALL.into_iter().map(ChangeKind::word);
        to.words("kinds", words, false, "Only objects of these kinds");
        let about = "Only what is in this project, or these, separated by commas; ids or names";
        to.parameter("project", Type::String, about);
        to.parameter("workload", Type::String, "Only this workload and its pods; its id");
        let about = "The position that was read last, to go on from there, or `now`; without it \
                     everything there is comes first. The header Last-Event-ID says the same";
        to.parameter("after", Type::String, about);
        let about = "How much of a workload is sent: all, or a row of a grid";
        to.parameter_of("shape", Allowed::Word(&Shape::WORDS).schema(), about);
    }
}

impl<S: Sync> FromRequestParts<S> for ChangesQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let (kinds, projects, workload) = (Vec::new(), BTreeSet::new(), None);
        let (after, shape) = (StartFrom::Nothing, Shape::Whole);
        let mut asked = Self { kinds, projects, workload, after, shape };
        for (name, value) in parameters(&parts.uri)? {
            match name.as_str() {
                "kinds" => asked.kinds = value.split(',').map(kind).collect::<Result<_, _>>()?,
                "project" => asked.projects = value.split(',').map(str::to_owned).collect(),
                "workload" => asked.workload = Some(workload_id(&value)?),
                "after" => asked.after = value.parse()?,
                "shape" => asked.shape = self::shape(&value)?,
                _ => return Err(unknown_word("parameter", &name, &PARAMETERS)),
            }
        }
        // A browser that reconnects repeats the address and adds the header, which is newer.
        let last = parts.headers.get("last-event-id").map(|id| id.to_str().unwrap_or("?"));
        if let Some(last) = last.filter(|last| !last.is_empty()) {
            asked.after = last.parse()?;
        }
        Ok(asked)
    }
}

fn shape(word: &str) -> Result<Shape, ApiError> {
    let found = Shape::ALL.iter().find(|(known, _)| *known == word);
    found.map(|(_, shape)| *shape).ok_or_else(|| unknown_word("shape", word, &Shape::WORDS))
}

fn kind(word: &str) -> Result<ChangeKind, ApiError> {
    let words = ChangeKind::ALL.map(ChangeKind::word);
    let found = ChangeKind::ALL.into_iter().find(|kind| kind.word() == word);
    found.ok_or_else(|| {
        let (word, words) = (units::shown(word), words.join(", "));
        let why =
            format!("`{word}` is not a kind of object; write some of {words}, separated by commas");
        ApiError::field("kinds", why)
    })
}

impl FromStr for StartFrom {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<Self, ApiError> {
        if text == NOW {
            return Ok(Self::Now);
        }
        Position::parse(text).map(Self::Position).ok_or_else(|| {
            let text = units::shown(text);
            let why = format!(
                "`{text}` is not a position; use the id of the last event that was read, such as \
                 4f1d09c2-1734, or `{NOW}`, or leave it out to begin with everything there is"
            );
            ApiError::field("after", why)
        })
    }
}
