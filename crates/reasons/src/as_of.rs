//! Texts that change as time passes. Owns: the text of a reason at an instant, and the time of its
//! next change. Does not know about: the readers of a text.

use std::fmt;

use units::Instant;

use crate::Pending;

/// A minute in milliseconds.
const MINUTE_MS: u64 = 60_000;

/// A reason at an instant, in one sentence.
#[derive(Debug, Clone, Copy)]
pub struct PendingAsOf<'a> {
    reason: &'a Pending,
    now: Instant,
}

impl Pending {
    /// The reason with its text at an instant.
    #[must_use]
    pub const fn as_of(&self, now: Instant) -> PendingAsOf<'_> {
        PendingAsOf { reason: self, now }
    }

    /// Time after `now` of the next change of the text, if only time passes; `None` if it never
    /// changes.
    #[must_use]
    pub fn changes_at(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::InPools { first, .. } => first.changes_at(now),
            Self::BehindReservation { since, starts_at, .. } => {
                let waited = since.plus_ms((minutes(now.since_ms(*since)) + 1) * MINUTE_MS);
                let starts = starts_at.map(|at| {
                    let left = minutes_left(at, now).saturating_sub(1);
                    Instant(at.0.saturating_sub(left * MINUTE_MS))
                });
                starts.filter(|&at| at > now).into_iter().chain([waited]).min()
            }
            _ => None,
        }
    }
}

impl fmt::Display for PendingAsOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, now } = *self;
        match reason {
            Pending::InPools { first, others } => {
                write!(f, "{}; likewise in {others} more node pools", first.as_of(now))
            }
            Pending::BehindReservation { since, starts_at, .. } => {
                let waited = minutes(now.since_ms(*since));
                write!(f, "{reason} and has waited {waited} min")?;
                match starts_at {
                    Some(at) => write!(f, "; it starts within {} min", minutes_left(*at, now)),
                    None => write!(f, "; when it starts is not known"),
                }
            }
            _ => reason.fmt(f),
        }
    }
}

/// Whole minutes of a duration, rounded down, so that the text does not change all the time.
const fn minutes(ms: u64) -> u64 {
    ms / MINUTE_MS
}

/// Minutes until an instant, rounded up.
const fn minutes_left(at: Instant, now: Instant) -> u64 {
    at.since_ms(now).div_ceil(MINUTE_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::workload;

    #[test]
    fn the_text_is_another_when_it_says_so_and_not_before() {
        let reason = Pending::BehindReservation {
            holder: workload("first"),
            since: Instant(1_000),
            gpu_millis: 2000,
            starts_at: Some(Instant(630_500)),
        };
        let text = |at: Instant| reason.as_of(at).to_string();
        let mut now = Instant(5_000);
        for _ in 0..30 {
            let next = reason.changes_at(now).expect("it goes on waiting");
            assert_eq!(text(now), text(Instant(next.0 - 1)), "{now:?} {next:?}");
            assert_ne!(text(now), text(next), "{now:?} {next:?}");
            now = next;
        }
        let in_pools = Pending::InPools { first: Box::new(reason.clone()), others: 2 };
        assert_eq!(in_pools.changes_at(now), reason.changes_at(now));
        assert!(
            in_pools
                .as_of(now)
                .to_string()
                .ends_with("within 0 min; likewise in 2 more node pools")
        );
        assert_eq!(Pending::SearchCutShort { trials: 1 }.changes_at(now), None);
    }
}
