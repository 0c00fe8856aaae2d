//! Retention and resolution of measurements: samples for some hours, their means for longer. Owns:
//! making means, pruning, and finding the samples that answer a query. All steps can be repeated: a
//! mean that is recomputed after a crash is the same row.

use std::collections::BTreeMap;

use records::{Change, SampleFilter, SampleRow};
use store::Store;
use units::Instant;

use super::{Subject, Values, write};

/// The step of a single sample.
pub(super) const RAW: u64 = 0;

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 86_400_000;

/// Samples of one fineness.
struct Tier {
    step_ms: u64,
    kept_ms: u64,
}

/// From fine to coarse; each is made of the one before.
const TIERS: [Tier; 3] = [
    Tier { step_ms: RAW, kept_ms: 60 * MINUTE_MS },
    Tier { step_ms: MINUTE_MS, kept_ms: DAY_MS / 2 },
    Tier { step_ms: 15 * MINUTE_MS, kept_ms: 30 * DAY_MS },
];

/// Up to when each of the coarser tiers is made; not known after a restart.
#[derive(Default)]
pub(super) struct Tiers {
    made_until: [Option<Instant>; TIERS.len()],
}

impl Tiers {
    /// Makes the means of completed steps, and deletes samples beyond their retention, if
    /// `forgets`.
    pub(super) async fn roll_up(
        &mut self,
        store: &Store,
        now: Instant,
        forgets: bool,
    ) -> Result<(), store::Error> {
        let mut any = false;
        for at in 1..TIERS.len() {
            let (finer, own) = (&TIERS[at - 1], &TIERS[at]);
            let mut next = match self.made_until[at] {
                Some(until) => until,
                None => store
                    .samples_between(own.step_ms, Instant(0))
                    .await?
                    .map_or(Instant(0), |(_, last)| last.plus_ms(own.step_ms)),
            };
            // A time without samples adds nothing.
            while let Some((first, _)) = store.samples_between(finer.step_ms, next).await? {
                let start = Instant(first.0 - first.0 % own.step_ms);
                let end = start.plus_ms(own.step_ms);
                if end > now {
                    break;
                }
                let (from, until) = (start, end);
                let of_all = SampleFilter { subject: None, step_ms: finer.step_ms, from, until };
                let means = means(store.samples(&of_all).await?, own.step_ms, start);
                write(store, means.into_iter().map(Change::Sample).collect()).await?;
                (next, any) = (end, true);
                self.made_until[at] = Some(next);
            }
            self.made_until[at] = Some(next);
        }
        if any && forgets {
            // The coarser means of the deleted samples have been made by now.
            let old = TIERS.iter().map(|tier| Change::SamplesGone {
                step_ms: tier.step_ms,
                before: Instant(now.0.saturating_sub(tier.kept_ms)),
            });
            store.apply(&old.collect::<Vec<_>>()).await?;
        }
        Ok(())
    }
}

/// The mean of each value of each subject, over the samples that have it.
fn means(rows: Vec<SampleRow>, step_ms: u64, at: Instant) -> Vec<SampleRow> {
    let mut sums: BTreeMap<String, BTreeMap<String, (u128, u128)>> = BTreeMap::new();
    for row in rows {
        let sums = sums.entry(row.subject).or_default();
        for (name, value) in row.values {
            let (sum, count) = sums.entry(name).or_default();
            (*sum, *count) = (*sum + u128::from(value), *count + 1);
        }
    }
    let mean = |(name, (sum, count)): (String, (u128, u128))| {
        (name, u64::try_from(sum / count).unwrap_or(u64::MAX))
    };
    let row = |(subject, sums): (String, BTreeMap<_, _>)| {
        let values = sums.into_iter().map(mean).collect();
        SampleRow { subject, step_ms, at, values }
    };
    sums.into_iter().map(row).collect()
}

/// Samples of a subject from `from` until before `until`, the oldest first; no finer than one value
/// for each `spacing_ms` needs.
pub(crate) async fn read(
    store: &Store,
    subject: &Subject,
    (from, until): (Instant, Instant),
    spacing_ms: u64,
    now: Instant,
) -> Result<Vec<(Instant, Values)>, store::Error> {
    let wide = TIERS.iter().rposition(|tier| tier.step_ms <= spacing_ms).unwrap_or(0);
    let reaches = |tier: &Tier| now.since_ms(from) <= tier.kept_ms;
    let kept = TIERS.iter().position(reaches).unwrap_or(TIERS.len() - 1);
    let (mut found, mut from) = (Vec::new(), from);
    // A finer tier has recent samples that a coarse tier does not have yet.
    for tier in TIERS[..=wide.max(kept)].iter().rev() {
        let subject = Some(subject.to_string());
        let filter = SampleFilter { subject, step_ms: tier.step_ms, from, until };
        let rows = store.samples(&filter).await?;
        if let Some(last) = rows.last() {
            from = last.at.plus_ms(tier.step_ms.max(1));
        }
        found.extend(rows.into_iter().map(|row| (row.at, row.values)));
    }
    Ok(found)
}
