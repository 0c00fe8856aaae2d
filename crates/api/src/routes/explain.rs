//! Why a workload is where it is. Owns: which parts of the answer are asked for, since some are
//! known at once and others take as long as a decision. Does not know how they are found out.

use access::{Caller, find_workload};
use api_types::Explanation;
use auth::{Action, Resource};
use axum::extract::{FromRequestParts, Path, State as FromState};
use axum::http::request::Parts as Head;
use axum::{Extension, Json};
use convert::Requirement;
use http_kit::openapi::{Description, Input};
use http_kit::{ApiError, parameters, unknown_word};
use records::EventFilter;
use view::Scope;

use crate::advice_rights::may;
use crate::repair_advice::repairs;
use crate::{ApiState, forecast};

/// Most events an explanation tells.
const EVENTS_MAX: u32 = 50;

/// A part of an explanation that takes time. Every answer has the other parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExplanationPart {
    Diagnosis,
    Estimate,
}

const PARTS: [(&str, Option<ExplanationPart>); 3] = [
    ("known", None),
    ("diagnosis", Some(ExplanationPart::Diagnosis)),
    ("estimate", Some(ExplanationPart::Estimate)),
];

/// Which parts are asked for.
pub(super) struct Parts(Vec<ExplanationPart>);

impl Input for Parts {
    fn describe(to: &mut Description) {
        let words = PARTS.map(|(word, _)| word).into_iter();
        let about = "Only these parts beside what is known at once; all without it";
        to.words("parts", words, false, about);
    }
}

impl<S: Sync> FromRequestParts<S> for Parts {
    type Rejection = ApiError;

    async fn from_request_parts(head: &mut Head, _: &S) -> Result<Self, ApiError> {
        let mut asked = PARTS.into_iter().filter_map(|(_, part)| part).collect();
        for (name, value) in parameters(&head.uri)? {
            if name != "parts" {
                return Err(unknown_word("parameter", &name, &["parts"]));
            }
            let parts = value.split(',').map(part).collect::<Result<Vec<_>, _>>()?;
            asked = parts.into_iter().flatten().collect();
        }
        Ok(Self(asked))
    }
}

fn part(word: &str) -> Result<Option<ExplanationPart>, ApiError> {
    let found = PARTS.iter().find(|(known, _)| *known == word).map(|(_, part)| *part);
    found.ok_or_else(|| unknown_word("part", word, &PARTS.map(|(word, _)| word)))
}

pub(super) async fn explain(
    FromState(state): FromState<ApiState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Parts(parts): Parts,
) -> Result<Json<Explanation>, ApiError> {
    let workload = find_workload(&state.control, &id).await?;
    let view = state.control.view();
    let filter = EventFilter {
        workload: Some(workload.id),
        limit: Some(EVENTS_MAX),
        newest_first: true,
        ..EventFilter::default()
    };
    let mut events = state.control.events(filter).await?;
    events.reverse();
    let events = events.iter().map(convert::live_event).collect();
    let project = view.projects.get(&workload.project_id).map(AsRef::as_ref);
    let found = match workload.waits_for_a_place() && parts.contains(&ExplanationPart::Diagnosis) {
        true => state.diagnose(&caller, workload.id).await?,
        false => None,
    };
    let may = |requirement: Requirement<'_>| may(&caller, requirement);
    let further = match &found {
        Some(_) => {
            let may = caller.may(Action::Update, Resource::Nodes, Scope::Tenant);
            repairs((&state, &caller), may, &view, &workload).await
        }
        None => Vec::new(),
    };
    let diagnosis = found.map(|(found, now)| convert::diagnosis(&found, &view, now, &may, further));
    let estimate = match parts.contains(&ExplanationPart::Estimate) {
        true => forecast::start_estimate((&state, &caller), &workload).await?,
        false => None,
    };
    let (now, why) = (state.now(), view.why(&workload));
    let one = (&*workload, &*why);
    let mut answer = convert::explanation(one, project, events, diagnosis, estimate, now);
    answer.fractions = convert::fractions_kept(&workload, &view, &state.context());
    answer.training = state.training.job(workload.id);
    Ok(Json(answer))
}
