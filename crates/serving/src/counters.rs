//! Measurements of requests. Owns: counters that only grow, read as the difference of two readings.
//! Time is an argument, in milliseconds since any start.

use control::Requests;
use units::Instant;

use crate::Sample;

/// Counters of the requests of an endpoint or of one replica.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Meter {
    in_flight: u64,
    changed_ms: u64,
    total: Sample,
}

impl Meter {
    /// Counts the arrival of a request.
    pub(crate) fn came(&mut self, now_ms: u64) {
        self.advance(now_ms);
        self.in_flight += 1;
        self.total.arrived += 1;
    }

    /// Counts the end of a request: a complete response after `answered_ms`, or `None`.
    pub(crate) fn left(&mut self, now_ms: u64, answered_ms: Option<u64>) {
        self.advance(now_ms);
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(latency_ms) = answered_ms {
            self.total.answered += 1;
            self.total.latency_ms += latency_ms;
        }
    }

    /// Totals up to now.
    pub(crate) fn total(&mut self, now_ms: u64) -> Sample {
        self.advance(now_ms);
        Sample { at: Instant(now_ms), span_ms: now_ms, ..self.total }
    }

    fn advance(&mut self, now_ms: u64) {
        let span_ms = now_ms.saturating_sub(self.changed_ms);
        self.total.busy_ms += self.in_flight.saturating_mul(span_ms);
        self.changed_ms = self.changed_ms.max(now_ms);
    }
}

impl From<Sample> for Requests {
    fn from(seen: Sample) -> Self {
        let Sample { answered, latency_ms, busy_ms, .. } = seen;
        Self { answered, latency_ms, busy_ms }
    }
}

impl Sample {
    /// Difference from an earlier reading.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            at: self.at,
            span_ms: self.span_ms.saturating_sub(before.span_ms),
            busy_ms: self.busy_ms.saturating_sub(before.busy_ms),
            arrived: self.arrived.saturating_sub(before.arrived),
            answered: self.answered.saturating_sub(before.answered),
            latency_ms: self.latency_ms.saturating_sub(before.latency_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_flight_is_an_integral() {
        let mut meter = Meter::default();
        let start = meter.total(1000);
        meter.came(1100);
        meter.came(1200);
        meter.left(1500, Some(400));
        let middle = meter.total(1600);
        meter.left(2000, None);
        let first = middle.since(start);
        assert_eq!((first.span_ms, first.busy_ms), (600, 100 + 2 * 300 + 100));
        assert_eq!((first.arrived, first.answered, first.latency_ms), (2, 1, 400));
        let rest = meter.total(3000).since(middle);
        assert_eq!((rest.busy_ms, rest.arrived, rest.answered), (400, 0, 0));
    }
}
