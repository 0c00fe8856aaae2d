//! The parameters of series and of values as of now. Owns: what each may be, and the errors.

use std::marker::PhantomData;

use api_types::Time;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use http_kit::openapi::{Description, Input};
use http_kit::{Allowed, ApiError, parameters, unknown_word};
use units::Instant;

use super::formula::{Measured, Metric};

/// Values in a series when the request gives no number.
const SAMPLES_DEFAULT: u64 = 20;
/// Most values in a series.
const SAMPLES_MAX: u64 = 1000;

/// Query for series: types, time, and number of values.
pub(crate) struct MetricsQuery<F> {
    pub(crate) metrics: Vec<Metric>,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    pub(crate) samples: u64,
    pub(crate) group: Option<&'static str>,
    /// Name of the node pool it is cut to.
    pub(crate) pool: Option<String>,
    family: PhantomData<F>,
}

impl<F> MetricsQuery<F> {
    /// Milliseconds between two values.
    pub(crate) fn spacing_ms(&self) -> u64 {
        self.end.since_ms(self.start) / self.samples
    }
}

#[cfg(test)]
impl<F: Measured> MetricsQuery<F> {
    /// Every series of a time.
    pub(super) fn every(start: Instant, end: Instant, samples: u64) -> Self {
        let metrics = F::METRICS.to_vec();
        Self { metrics, start, end, samples, group: None, pool: None, family: PhantomData }
    }
}

impl<F: Measured> Input for MetricsQuery<F> {
    fn describe(to: &mut Description) {
        let types = F::METRICS.iter().map(|(name, _)| *name);
        to.words("metricType", types, true, "What was measured; several, separated by commas");
        to.time("start", "Not before this time");
        to.time("end", "Not after this time");
        let samples = Allowed::Number(1, SAMPLES_MAX);
        to.parameter_of(
            "numberOfSamples",
            samples.schema(),
            "Most values in a series; 20 unless told",
        );
        if F::BY_POOL {
            to.parameter_of("nodepoolName", Allowed::Text.schema(), "Only of this node pool");
        }
        if !F::GROUPS.is_empty() {
            to.parameter_of("groupBy", Allowed::Word(F::GROUPS).schema(), "A series for each");
        }
    }
}

impl<S: Sync, F: Measured> FromRequestParts<S> for MetricsQuery<F> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let (mut metrics, mut start, mut end) = (Vec::new(), None, None);
        let (mut samples, mut group, mut pool) = (SAMPLES_DEFAULT, None, None);
        for (name, value) in parameters(&parts.uri)? {
            let time = || {
                let at = value.parse::<Time>().map_err(|why| ApiError::field(&name, why))?;
                Ok::<_, ApiError>(Some(at.0))
            };
            match name.as_str() {
                "metricType" => metrics.extend(types::<F>(&value)?),
                "start" => start = time()?,
                "end" => end = time()?,
                "numberOfSamples" => {
                    Allowed::Number(1, SAMPLES_MAX).check(&name, &value)?;
                    // Checked.
                    samples = value.parse().unwrap_or(SAMPLES_DEFAULT);
                }
                "nodepoolName" if F::BY_POOL => pool = Some(value),
                "groupBy" if !F::GROUPS.is_empty() => {
                    group = Some(word("groupBy", &value, F::GROUPS)?);
                }
                _ => return Err(unknown_word("parameter", &name, &known::<F>())),
            }
        }
        let missing =
            |name, example: &str| ApiError::field(name, format!("is required, such as {example}"));
        let (start, end) = (
            start.ok_or_else(|| missing("start", "2026-01-31T12:00:00Z"))?,
            end.ok_or_else(|| missing("end", "2026-01-31T13:00:00Z"))?,
        );
        if end <= start {
            return Err(ApiError::field("end", "is not after start"));
        }
        if metrics.is_empty() {
            return Err(missing("metricType", F::METRICS[0].0));
        }
        Ok(Self { metrics, start, end, samples, group, pool, family: PhantomData })
    }
}

fn known<F: Measured>() -> Vec<&'static str> {
    let mut known = vec!["metricType", "start", "end", "numberOfSamples"];
    known.extend(F::BY_POOL.then_some("nodepoolName"));
    known.extend((!F::GROUPS.is_empty()).then_some("groupBy"));
    known
}

fn types<F: Measured>(value: &str) -> Result<Vec<Metric>, ApiError> {
    let one = |word: &str| {
        let found = F::METRICS.iter().find(|(name, _)| *name == word).copied();
        let known = || F::METRICS.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        found.ok_or_else(|| unknown_word("metricType", word, &known()))
    };
    value.split(',').filter(|word| !word.is_empty()).map(one).collect()
}

/// One of these words, in any capitalisation.
fn word(name: &str, value: &str, known: &[&'static str]) -> Result<&'static str, ApiError> {
    let found = known.iter().find(|word| word.eq_ignore_ascii_case(value)).copied();
    found.ok_or_else(|| unknown_word(name, value, known))
}

/// Current values of a family.
pub(crate) trait TelemetryFamily: Send + 'static {
    /// Kind of value, which has a published name.
    type Kind: Copy + Send + 'static;
    /// All kinds by name.
    const KINDS: &'static [(&'static str, Self::Kind)];
    /// Names that the values can be grouped by.
    const GROUPS: &'static [&'static str];
    /// Names of the parameters that filter the values.
    const FILTERS: &'static [&'static str];
}

/// Query for current values: kind, groups, and filters.
pub(crate) struct TelemetryQuery<F: TelemetryFamily> {
    pub(crate) kind: (&'static str, F::Kind),
    pub(crate) groups: Vec<&'static str>,
    filters: Vec<(String, String)>,
}

impl<F: TelemetryFamily> TelemetryQuery<F> {
    /// Value of a filter; `None` if it was not given.
    pub(crate) fn filter(&self, name: &str) -> Option<&str> {
        self.filters.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// Most names to group by: the published response has room for two.
const GROUPS_MAX: usize = 2;

impl<F: TelemetryFamily> Input for TelemetryQuery<F> {
    fn describe(to: &mut Description) {
        let kinds = F::KINDS.iter().map(|(name, _)| *name);
        to.word("telemetryType", kinds, "What is asked for");
        to.words("groupBy", F::GROUPS.iter().copied(), false, "A value for each; at most two");
        for name in F::FILTERS {
            to.parameter_of(name, Allowed::Text.schema(), "Only of this");
        }
    }
}

impl<S: Sync, F: TelemetryFamily> FromRequestParts<S> for TelemetryQuery<F> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let (mut kind, mut groups, mut filters) = (None, Vec::new(), Vec::new());
        let names: Vec<&str> = F::KINDS.iter().map(|(name, _)| *name).collect();
        for (name, value) in parameters(&parts.uri)? {
            match name.as_str() {
                "telemetryType" => {
                    let found = F::KINDS.iter().find(|(known, _)| *known == value).copied();
                    kind = Some(found.ok_or_else(|| unknown_word(&name, &value, &names))?);
                }
                "groupBy" => {
                    for one in value.split(',').filter(|one| !one.is_empty()) {
                        groups.push(word(&name, one, F::GROUPS)?);
                    }
                }
                known if F::FILTERS.contains(&known) => filters.push((name, value)),
                _ => {
                    let known = ["telemetryType", "groupBy"].iter().chain(F::FILTERS);
                    let known: Vec<&str> = known.copied().collect();
                    return Err(unknown_word("parameter", &name, &known));
                }
            }
        }
        groups.dedup();
        if groups.len() > GROUPS_MAX {
            return Err(ApiError::field("groupBy", "is more than two; use fewer"));
        }
        let missing =
            || ApiError::field("telemetryType", format!("is required: {}", names.join(", ")));
        Ok(Self { kind: kind.ok_or_else(missing)?, groups, filters })
    }
}
