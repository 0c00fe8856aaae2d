//! GPU use for the ledger, beside GPU allocation. Owns: that only measured time counts, and that no
//! time is used that was not allocated. Memory in use may exceed the grant.

use std::collections::BTreeMap;

use records::GpuUseRow;
use units::Instant;

use super::sample::{Sample, Subject, by_name, of};
use orchestrator::MEASURE_EVERY_MS;
use view::View;

/// How long the ledger is kept: 400 days, a year and a month.
pub(super) const KEPT_MS: u64 = 400 * 86_400_000;

const HOUR_MS: u64 = 3_600_000;

/// The hour that a moment is in.
pub(super) const fn hour(at: Instant) -> Instant {
    Instant(at.0 - at.0 % HOUR_MS)
}

/// Measured and used GPU time and memory between the last sample and this one, by hour, project,
/// owner and model. A time without samples, because the server was down, is not measured.
pub(super) fn used(view: &View, sample: &Sample, since: Instant, now: Instant) -> Vec<GpuUseRow> {
    if now.since_ms(since) > 2 * MEASURE_EVERY_MS {
        return Vec::new();
    }
    let mut sums: BTreeMap<(Instant, u64, &str, &str), [u64; 4]> = BTreeMap::new();
    let nodes = by_name(view);
    for workload in view.workloads.values() {
        for pod in &workload.pods {
            let node = pod.node_name.as_deref().and_then(|name| nodes.get(name));
            let (Some(node), Some(placed_at)) = (node, pod.placed_at) else { continue };
            for &(index, held_millis) in &pod.gpus {
                let value = |name| sample.value(&Subject::Pod(pod.id), &of::gpu(name, index));
                let time =
                    value(of::BUSY).map_or([0, 0], |busy| [held_millis, busy.min(held_millis)]);
                let memory = value(of::GPU_MEMORY_TOTAL).zip(value(of::GPU_MEMORY));
                let [granted, in_use] =
                    memory.map_or([0, 0], |(held, used)| [held >> 20, used >> 20]);
                let rates = [time[0], time[1], granted, in_use];
                if rates == [0; 4] {
                    continue;
                }
                for (hour, ms) in hours(since.max(placed_at), now) {
                    let owner = workload.spec.submitted_by.as_str();
                    let key = (hour, workload.project_id, owner, node.gpu_type.as_str());
                    for (sum, rate) in sums.entry(key).or_default().iter_mut().zip(rates) {
                        *sum += rate * ms;
                    }
                }
            }
        }
    }
    let row = |((hour, project_id, owner, model), sums): (_, _)| {
        let (owner, gpu_model): (&str, &str) = (owner, model);
        let (owner, gpu_model) = (owner.to_owned(), gpu_model.to_owned());
        let [measured, used, memory_measured, memory_used] = sums;
        GpuUseRow {
            hour,
            project_id,
            owner,
            gpu_model,
            measured,
            used,
            memory_measured,
            memory_used,
        }
    };
    sums.into_iter().map(row).collect()
}

/// A time, cut at full hours.
fn hours(from: Instant, until: Instant) -> Vec<(Instant, u64)> {
    let (mut parts, mut from) = (Vec::new(), from);
    while from < until {
        let end = hour(from).plus_ms(HOUR_MS).min(until);
        parts.push((hour(from), end.since_ms(from)));
        from = end;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_cut_at_full_hours() {
        let cut = |from, until| {
            let parts = hours(Instant(from), Instant(until)).into_iter();
            parts.map(|(hour, ms)| (hour.0, ms)).collect::<Vec<_>>()
        };
        assert_eq!(cut(HOUR_MS - 5, HOUR_MS + 7), [(0, 5), (HOUR_MS, 7)]);
        assert_eq!(cut(10, 20), [(0, 10)]);
        assert_eq!(cut(20, 20), []);
    }
}
