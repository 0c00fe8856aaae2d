//! From samples to published series. Owns: the mean of each interval of a query, and the sum over
//! pods. An interval without samples has no value.

use std::collections::{BTreeMap, BTreeSet};

use api_types::{MeasuredValue as Value, MeasurementResponse};
use control::{Values, of};
use units::{Instant, format_millis};

use super::formula::{Formula, Metric};
use super::query::MetricsQuery;

/// Samples with their times, the oldest first.
pub(crate) type Points = Vec<(Instant, Values)>;

/// The series of these types, one for each GPU where the type requires it.
pub(crate) fn measurements<F>(
    query: &MetricsQuery<F>,
    points: &Points,
) -> Vec<MeasurementResponse> {
    let series = |&(kind, formula): &Metric| {
        let whole = || vec![(None, means(query, points, formula, None))];
        let gpus: BTreeSet<u32> =
            points.iter().flat_map(|(_, values)| formula.gpus(values)).collect();
        let each = |gpu: &u32| (Some(*gpu), means(query, points, formula, Some(*gpu)));
        let all = if gpus.is_empty() { whole() } else { gpus.iter().map(each).collect() };
        all.into_iter().map(move |(gpu, values)| {
            let labels = gpu.map(|gpu| BTreeMap::from([("gpu".to_owned(), gpu.to_string())]));
            MeasurementResponse { kind: kind.to_owned(), labels, values }
        })
    };
    query.metrics.iter().flat_map(series).collect()
}

fn means<F>(
    query: &MetricsQuery<F>,
    points: &Points,
    formula: Formula,
    gpu: Option<u32>,
) -> Vec<Value> {
    let length_ms = u128::from(query.end.since_ms(query.start).max(1));
    let mut intervals: BTreeMap<u128, (u128, u128, Instant)> = BTreeMap::new();
    for (at, values) in points {
        let Some(value) = formula.of(values, gpu) else { continue };
        let offset = u128::from(at.since_ms(query.start)) * u128::from(query.samples);
        let interval = (offset / length_ms).min(u128::from(query.samples - 1));
        let weight = u128::from(formula.weight(values));
        let (sum, count, last) = intervals.entry(interval).or_default();
        (*sum, *count, *last) = (*sum + u128::from(value) * weight, *count + weight, *at);
    }
    let value = |(sum, count, last): (u128, u128, Instant)| Value {
        value: format_millis(u64::try_from(sum / count).unwrap_or(u64::MAX)),
        timestamp: last.into(),
    };
    intervals.into_values().map(value).collect()
}

/// Values of all pods of a workload: sums, and the mean of the use of their GPUs. A value that is
/// unknown for one pod is unknown for all.
pub(crate) fn together(pods: Vec<Points>) -> Points {
    let mut at_once: BTreeMap<Instant, Vec<Values>> = BTreeMap::new();
    for (at, values) in pods.into_iter().flatten() {
        at_once.entry(at).or_default().push(values);
    }
    let sum = |pods: Vec<Values>| {
        let names: BTreeSet<&String> = pods.iter().flat_map(|values| values.keys()).collect();
        let one = |name: &&String| {
            let known: Vec<u64> = pods.iter().filter_map(|v| v.get(*name).copied()).collect();
            let sum: u64 = known.iter().sum();
            match name.as_str() {
                of::BUSY => Some(((*name).clone(), sum / known.len().max(1) as u64)),
                _ => (known.len() == pods.len()).then(|| ((*name).clone(), sum)),
            }
        };
        names.iter().filter_map(one).collect()
    };
    at_once.into_iter().map(|(at, pods)| (at, sum(pods))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::formula::OfInference;
    use super::*;

    fn values(known: &[(&str, u64)]) -> Values {
        known.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn a_mean_for_each_counts_every_one_of_them() {
        let (start, end) = (Instant(0), Instant(100));
        let query = MetricsQuery::<OfInference>::every(start, end, 1);
        // One request that took 990 ms, then 99 that took 1 ms each.
        let point = |at, answered: u64, ms: u64| {
            let ms = ("answer_ms", ms * 1_000_000);
            (Instant(at), values(&[("answered", answered * 1_000_000), ms]))
        };
        let series =
            measurements(&query, &vec![point(1, 1, 990), point(2, 99, 99), point(3, 0, 0)]);
        let shown = |kind: &str| {
            let one = series.iter().find(|one| one.kind == kind).unwrap();
            one.values.iter().map(|value| value.value.clone()).collect::<Vec<_>>()
        };
        assert_eq!(shown("LATENCY"), ["10.89"]);
        assert_eq!(shown("THROUGHPUT"), ["33.333"]);
        assert_eq!(shown("REPLICAS"), [""; 0]);
    }

    #[test]
    fn pods_add_up_and_what_is_not_known_of_one_is_not_known_of_all() {
        let first = vec![
            (Instant(1), values(&[("cpu", 100), ("busy", 200), ("memory", 7)])),
            (Instant(2), values(&[("cpu", 300)])),
        ];
        let second = vec![(Instant(1), values(&[("cpu", 50), ("busy", 400)]))];
        let want = vec![
            (Instant(1), values(&[("busy", 300), ("cpu", 150)])),
            (Instant(2), values(&[("cpu", 300)])),
        ];
        assert_eq!(together(vec![first, second]), want);
    }
}
