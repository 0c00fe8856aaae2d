//! Requests to inferences. Owns: their counters, and the rates between two samples. Does not know
//! about: who counts.

use std::collections::BTreeMap;

use engine::RunKey;
use uuid::Uuid;

use super::sample::{Values, of};

/// Counts of requests since their counters began: each only grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests with a complete answer.
    pub answered: u64,
    /// Sum of their latencies, in milliseconds.
    pub latency_ms: u64,
    /// Requests that waited or were being answered, times milliseconds.
    pub busy_ms: u64,
}

/// Counts of all inferences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Time since counting began, in milliseconds.
    pub span_ms: u64,
    /// Requests of each inference, and its number of ready replicas.
    pub inferences: BTreeMap<Uuid, (Requests, u32)>,
    /// Requests that each run of a replica got.
    pub replicas: BTreeMap<RunKey, Requests>,
}

/// Rates of requests between two samples.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) inferences: BTreeMap<Uuid, Values>,
    pub(crate) replicas: BTreeMap<RunKey, Values>,
}

impl Traffic {
    /// Rates since an earlier count; empty if no time has passed. An object without an earlier
    /// count has begun since.
    pub(super) fn since(&self, before: &Self) -> Flow {
        let span_ms = self.span_ms.saturating_sub(before.span_ms);
        if span_ms == 0 {
            return Flow::default();
        }
        let inference = |(id, (now, ready)): (&Uuid, &(Requests, u32))| {
            let (before, _) = before.inferences.get(id).copied().unwrap_or_default();
            let mut values = now.since(before, span_ms);
            values.insert(of::REPLICAS.to_owned(), u64::from(*ready) * 1000);
            (*id, values)
        };
        let replica = |(key, now): (&RunKey, &Requests)| {
            let before = before.replicas.get(key).copied().unwrap_or_default();
            (*key, now.since(before, span_ms))
        };
        Flow {
            inferences: self.inferences.iter().map(inference).collect(),
            replicas: self.replicas.iter().map(replica).collect(),
        }
    }
}

impl Requests {
    fn since(self, before: Self, span_ms: u64) -> Values {
        let each_second = |now: u64, before: u64, scale: u64| {
            let grown = u128::from(now.saturating_sub(before)) * u128::from(scale) * 1000;
            u64::try_from(grown / u128::from(span_ms)).unwrap_or(u64::MAX)
        };
        let values = [
            (of::ANSWERED, each_second(self.answered, before.answered, 1_000_000)),
            (of::ANSWER_MS, each_second(self.latency_ms, before.latency_ms, 1_000_000)),
            // Milliseconds in each second are thousandths.
            (of::REQUESTS, each_second(self.busy_ms, before.busy_ms, 1)),
        ];
        values.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(span_ms: u64, answered: u64, latency_ms: u64, busy_ms: u64) -> Traffic {
        let requests = Requests { answered, latency_ms, busy_ms };
        let inferences = BTreeMap::from([(Uuid::nil(), (requests, 2))]);
        Traffic { span_ms, inferences, replicas: BTreeMap::new() }
    }

    #[test]
    fn counts_become_what_each_second_had() {
        let flow = counted(14_000, 25, 2600, 8000).since(&counted(4000, 5, 600, 3000));
        let values = &flow.inferences[&Uuid::nil()];
        for (name, want) in [
            (of::ANSWERED, 2_000_000),
            (of::ANSWER_MS, 200_000_000),
            (of::REQUESTS, 500),
            (of::REPLICAS, 2000),
        ] {
            assert_eq!(values[name], want, "{name}");
        }
    }

    #[test]
    fn what_nobody_counted_is_not_known_and_what_is_new_began_since() {
        let now = counted(2000, 4, 0, 0);
        assert!(now.since(&now).inferences.is_empty());
        let flow = now.since(&Traffic { span_ms: 1000, ..Traffic::default() });
        assert_eq!(flow.inferences[&Uuid::nil()][of::ANSWERED], 4_000_000);
    }
}
