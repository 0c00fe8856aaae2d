//! The ledger of GPUs, and what they cost.

use std::collections::BTreeSet;

use access::{Caller, Family, Item, Route, Where};
use api_types::{GpuPrices, GpuUsage, GpuUsageRow, Micros};
use auth::Action::{Read, Update};
use auth::Resource;
use axum::extract::{FromRef, FromRequestParts, State as FromState};
use axum::http::request::Parts;
use axum::{Extension, Json};
use http_kit::openapi::{Description, Input, get, put};
use http_kit::{
    ApiError, Attachment, Body, NoParameters, csv_line, date, parameters, unknown_word,
};
use serde::{Deserialize, Serialize};
use units::Instant;
use utoipa::openapi::schema::Type;
use view::Scope;

use super::TelemetryState;
use crate::usage::{UsageGrouping, rows};

const HOUR_MS: u64 = 3_600_000;
/// Time before now that a query without `from` covers, in milliseconds.
const SPAN_MS: u64 = 30 * 24 * HOUR_MS;
/// Most prices, and longest texts in them.
const PRICES_MAX: usize = 200;
const MODEL_BYTES_MAX: usize = 200;
const CURRENCY_BYTES_MAX: usize = 16;

/// The routes of the ledger.
pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    TelemetryState: FromRef<S>,
{
    let (all, file) = ("/elastane/v1/usage", "/elastane/v1/usage/csv");
    let prices = "/elastane/v1/usage/prices";
    let of = Resource::Consumption;
    let about = "What was held and used of GPUs, by project, user and model";
    let routes = [
        get(all, "get_usage", about, read).needs(Read, of, Where::Anywhere),
        get(file, "download_usage", "The same as a file", download).needs(
            Read,
            of,
            Where::Anywhere,
        ),
        get(prices, "get_gpu_prices", "What GPUs cost", read_prices).needs(
            Read,
            of,
            Where::Anywhere,
        ),
        put(prices, "set_gpu_prices", "Sets what GPUs cost; replaces all prices", set_prices)
            .needs(Update, Resource::Settings, Where::Tenant),
    ];
    routes.into_iter().map(|route| route.of("Elastane"))
}

/// Query of usage: its time, and the grouping of its rows.
struct UsageQuery {
    from: Option<Instant>,
    to: Option<Instant>,
    by: BTreeSet<UsageGrouping>,
}

impl Input for UsageQuery {
    fn describe(to: &mut Description) {
        let about =
            "Not before this day or time, down to the hour; 30 days before `to` unless told";
        to.parameter("from", Type::String, about);
        to.parameter(
            "to",
            Type::String,
            "Before this day or time, up to the hour; now unless told",
        );
        let words = UsageGrouping::ALL.into_iter().map(|(word, _)| word);
        to.words("by", words, false, "What rows tell apart; all three unless told");
    }
}

impl<S: Sync> FromRequestParts<S> for UsageQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut query = Self { from: None, to: None, by: BTreeSet::new() };
        for (name, value) in parameters(&parts.uri)? {
            let time = || {
                let why =
                    || format!("`{value}` is not a time; write 2026-01-31 or 2026-01-31T12:00:00Z");
                date(&value).map(Some).ok_or_else(|| ApiError::field(&name, why()))
            };
            match name.as_str() {
                "from" => query.from = time()?,
                "to" => query.to = time()?,
                "by" => {
                    for word in value.split(',').filter(|word| !word.is_empty()) {
                        let found =
                            UsageGrouping::ALL.into_iter().find(|(known, _)| *known == word);
                        let known = UsageGrouping::ALL.map(|(known, _)| known);
                        query.by.insert(
                            found
                                .ok_or_else(|| {
                                    ApiError::field(
                                        "by",
                                        unknown_word("value", word, &known).message(),
                                    )
                                })?
                                .1,
                        );
                    }
                }
                _ => return Err(unknown_word("parameter", &name, &["from", "to", "by"])),
            }
        }
        if query.by.is_empty() {
            query.by = UsageGrouping::ALL.into_iter().map(|(_, by)| by).collect();
        }
        Ok(query)
    }
}

async fn usage(
    state: &TelemetryState,
    caller: &Caller,
    query: &UsageQuery,
) -> Result<GpuUsage, ApiError> {
    let now = state.now();
    let to = query.to.map_or(now, |to| Instant(to.0.div_ceil(HOUR_MS).saturating_mul(HOUR_MS)));
    let to = to.min(now);
    let from = query.from.unwrap_or(Instant(to.0.saturating_sub(SPAN_MS)));
    let from = Instant(from.0 - from.0 % HOUR_MS);
    if to <= from {
        let why = "must be in the past and before `to`; the ledger is about what was";
        return Err(ApiError::field("from", why));
    }
    let view = state.control.view();
    let mut ledger = state.control.ledger(from, to).await?;
    let everything = caller.may(Read, Resource::Consumption, Scope::Tenant);
    ledger.retain(|row| {
        everything || caller.may(Read, Resource::Consumption, Scope::Project(row.project_id))
    });
    let prices = prices(state)?.map(|item| item.body.0);
    let name = |id: u64| view.projects.get(&id).map(|project| project.unit.name.clone());
    let (rows, total) =
        rows(&ledger, &query.by, prices.as_ref().unwrap_or(&GpuPrices::default()), name);
    let by = query.by.iter().map(|by| by.word().to_owned()).collect();
    let currency = prices.map(|prices| prices.currency).filter(|currency| !currency.is_empty());
    Ok(GpuUsage { from: from.into(), to: to.into(), by, currency, rows, total })
}

async fn read(
    FromState(state): FromState<TelemetryState>,
    Extension(caller): Extension<Caller>,
    query: UsageQuery,
) -> Result<Json<GpuUsage>, ApiError> {
    Ok(Json(usage(&state, &caller, &query).await?))
}

async fn download(
    FromState(state): FromState<TelemetryState>,
    Extension(caller): Extension<Caller>,
    query: UsageQuery,
) -> Result<Attachment, ApiError> {
    let usage = usage(&state, &caller, &query).await?;
    Ok(Attachment { name: "usage.csv", media_type: "text/csv", text: csv(&usage) })
}

fn csv(usage: &GpuUsage) -> String {
    let mut text = String::from(
        "from,to,project_id,project,user,gpu_model,allocated_gpu_hours,measured_gpu_hours,\
         used_gpu_hours,idle_gpu_hours,measured_gpu_memory_gib_hours,\
         used_gpu_memory_gib_hours,cost,currency\n",
    );
    let line = |row: &GpuUsageRow| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let number = |number: Option<Micros>| number.map(|n| n.to_string()).unwrap_or_default();
        csv_line(&[
            usage.from.to_string(),
            usage.to.to_string(),
            text(&row.project_id),
            text(&row.project_name),
            text(&row.user),
            text(&row.gpu_model),
            row.allocated_gpu_hours.to_string(),
            row.measured_gpu_hours.to_string(),
            number(row.used_gpu_hours),
            number(row.idle_gpu_hours),
            number(row.measured_gpu_memory_gib_hours),
            number(row.used_gpu_memory_gib_hours),
            number(row.cost),
            if row.cost.is_some() { text(&usage.currency) } else { String::new() },
        ])
    };
    text.extend(usage.rows.iter().map(line));
    text
}

/// The prices, as they are kept: one object, if they were ever set.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
struct StoredPrices(GpuPrices);

impl Family for StoredPrices {
    const KIND: &'static str = "gpu-prices";
}

fn prices(state: &TelemetryState) -> Result<Option<Item<StoredPrices>>, ApiError> {
    Ok(state.all::<StoredPrices>()?.into_iter().next())
}

async fn read_prices(
    FromState(state): FromState<TelemetryState>,
    _: NoParameters,
) -> Result<Json<GpuPrices>, ApiError> {
    Ok(Json(prices(&state)?.map(|item| item.body.0).unwrap_or_default()))
}

async fn set_prices(
    FromState(state): FromState<TelemetryState>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<GpuPrices>,
) -> Result<Json<GpuPrices>, ApiError> {
    check(&request)?;
    Ok(Json(state.put(&caller, Scope::Tenant, "prices", StoredPrices(request)).await?.body.0))
}

fn check(prices: &GpuPrices) -> Result<(), ApiError> {
    let unnamed = prices.currency.trim().is_empty() && !prices.prices.is_empty();
    if unnamed || prices.currency.len() > CURRENCY_BYTES_MAX {
        return Err(ApiError::field(
            "currency",
            "must be a word of at most 16 bytes; write EUR or USD",
        ));
    }
    if prices.prices.len() > PRICES_MAX {
        return Err(ApiError::field(
            "prices",
            "are more than 200; leave out models you do not have",
        ));
    }
    let mut known = BTreeSet::new();
    for price in &prices.prices {
        let model = price.gpu_model.as_str();
        if model.trim().is_empty() || model.len() > MODEL_BYTES_MAX {
            let why = "is not a model; write it as the nodes do, see `elastane status`";
            return Err(ApiError::field("prices.gpuModel", why));
        }
        if !known.insert(model) {
            return Err(ApiError::field("prices.gpuModel", format!("`{model}` is there twice")));
        }
    }
    Ok(())
}
