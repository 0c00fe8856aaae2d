//! Number of replicas. Owns: the one rule, as a function of measurements and of time, which is an
//! argument. Does not know about: the measuring, and the use of the result.
//!
//! The need is computed over a tenth of the window, so that a burst counts at once and a single
//! request does not. The result is the maximum need within the whole window (and the delay): it
//! rises at once, and falls only when the need was lower for all that time. So a load that
//! oscillates faster than the window does not change the number of replicas.

use std::collections::VecDeque;

use spec::{Metric, Scaling, Target};
use units::Instant;

/// Minimum time over which the need is computed, in milliseconds.
const LOOK_MS_MIN: u64 = 1000;
/// Number of replicas is reduced for latency only if it would stay below this part of the
/// threshold, in percent.
const LATENCY_EASE_PERCENT: u64 = 80;

/// Measurements of a time span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// End of the span.
    pub at: Instant,
    /// Length of the span, in milliseconds.
    pub span_ms: u64,
    /// Integral of requests that waited or were being answered, times milliseconds.
    pub busy_ms: u64,
    /// Number of requests that arrived.
    pub arrived: u64,
    /// Number of requests with a complete response.
    pub answered: u64,
    /// Sum of the latencies of these, in milliseconds.
    pub latency_ms: u64,
}

/// Numbers of replicas of a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaCounts {
    /// Number that should run.
    pub wanted: u32,
    /// Number of these that are ready.
    pub ready: u32,
}

/// Number of replicas that should run, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Number of replicas.
    pub replicas: u32,
    /// Reason, with the measured numbers.
    pub why: String,
}

/// Scaling of one revision.
#[derive(Debug, Clone)]
pub struct Scaler {
    scaling: Scaling,
    samples: VecDeque<Sample>,
    /// Past needs with their times: the maximum first, later ones only if no greater one followed.
    needs: VecDeque<(Instant, u32)>,
    /// Time of the last request, or of the last moment without a ready replica.
    active_at: Instant,
    /// Time of the last increase.
    grown_at: Instant,
}

impl Scaler {
    /// For a revision that has `wanted` replicas now. They count as needed at this moment, so none
    /// is removed before there are measurements of a window.
    #[must_use]
    pub fn new(scaling: Scaling, now: Instant, wanted: u32) -> Self {
        Self {
            scaling,
            samples: VecDeque::new(),
            needs: VecDeque::from([(now, wanted)]),
            active_at: now,
            grown_at: now,
        }
    }

    /// Applies these settings from now on; what was measured stays.
    pub fn follow(&mut self, scaling: &Scaling) {
        if self.scaling != *scaling {
            self.scaling = scaling.clone();
        }
    }

    /// Adds a sample and decides. Samples are in order of time.
    pub fn step(&mut self, sample: Sample, standing: ReplicaCounts) -> Decision {
        let now = sample.at;
        let look_ms = (self.scaling.window_ms / 10).max(LOOK_MS_MIN);
        self.samples.push_back(sample);
        while self.samples.front().is_some_and(|old| now.since_ms(old.at) >= look_ms) {
            self.samples.pop_front();
        }
        let seen = sum(&self.samples);
        let asked = seen.busy_ms > 0 || seen.arrived > 0;
        // A replica that was never ready has served nothing yet: its idle time begins later.
        let starting = standing.wanted > 0 && standing.ready == 0;
        if asked || starting {
            self.active_at = now;
        }
        let (mut need, mut why) = self.need(seen, standing, now, look_ms);
        if asked && standing.wanted == 0 {
            need = need.max(self.scaling.replicas_activation).max(1);
            why = format!("{} came while there was no replica", requests(seen.arrived.max(1)));
        } else if asked || starting {
            need = need.max(1);
        }
        let need = need.min(self.scaling.replicas_max);
        let replicas = self.held(need, standing.wanted, now);
        let bounds = (self.scaling.replicas_min, self.scaling.replicas_max);
        if replicas > standing.wanted {
            self.grown_at = now;
            if replicas == bounds.0 && need < replicas {
                why = format!("minReplicas is {replicas}");
            }
        } else if replicas < standing.wanted && standing.wanted > bounds.1 {
            why = format!("maxReplicas is {}", bounds.1);
        } else if replicas < standing.wanted {
            why = match replicas {
                0 => format!("no request for {} s", now.since_ms(self.active_at) / 1000),
                _ => format!("{why}; no more was needed for {} s", self.hold_ms() / 1000),
            };
        }
        Decision { replicas, why }
    }

    const fn hold_ms(&self) -> u64 {
        self.scaling.window_ms + self.scaling.down_delay_ms
    }

    /// Maximum need in the window, within the bounds.
    fn held(&mut self, need: u32, wanted: u32, now: Instant) -> u32 {
        while self.needs.back().is_some_and(|&(_, before)| before <= need) {
            self.needs.pop_back();
        }
        self.needs.push_back((now, need));
        let hold_ms = self.hold_ms();
        while self.needs.front().is_some_and(|&(at, _)| now.since_ms(at) > hold_ms) {
            self.needs.pop_front();
        }
        let most = self.needs.front().map_or(need, |&(_, most)| most);
        let scaling = &self.scaling;
        let rest_ms = scaling.window_ms + scaling.down_delay_ms.max(scaling.zero_retention_ms);
        let last = wanted > 0 && now.since_ms(self.active_at) <= rest_ms;
        most.max(last.into()).clamp(scaling.replicas_min, scaling.replicas_max)
    }

    /// Need over the last `look_ms`, and the numbers as its reason.
    fn need(
        &self,
        seen: Sample,
        standing: ReplicaCounts,
        now: Instant,
        look_ms: u64,
    ) -> (u32, String) {
        let asked = u32::from(seen.busy_ms > 0 || seen.arrived > 0);
        let Some(target) = self.scaling.target else {
            return (asked, requests(seen.arrived));
        };
        let span_ms = seen.span_ms.max(1);
        // Thousandths of requests, at a time or per second.
        let (load_millis, unit) = match target.metric {
            Metric::Concurrency => (seen.busy_ms.saturating_mul(1000) / span_ms, "at a time"),
            Metric::Throughput => (seen.arrived.saturating_mul(1_000_000) / span_ms, "per second"),
            Metric::Latency => return self.need_for_latency(target, seen, standing, now, look_ms),
        };
        let each_millis = per_replica_millis(target);
        let need = u32::try_from(load_millis.div_ceil(each_millis)).unwrap_or(u32::MAX);
        let why = format!(
            "{} requests {unit}, {} for each replica",
            in_units(load_millis),
            in_units(each_millis)
        );
        (need, why)
    }

    /// Need by latency, which shows that there are too few replicas, but not how many are missing:
    /// in proportion, at most twice as many, and not again before those are ready and were
    /// measured. The number falls by one at a time.
    fn need_for_latency(
        &self,
        target: Target,
        seen: Sample,
        standing: ReplicaCounts,
        now: Instant,
        look_ms: u64,
    ) -> (u32, String) {
        let (wanted, most) = (standing.wanted, u64::from(target.threshold));
        if seen.answered == 0 {
            // The latency of requests without a response is not known.
            let need = if seen.busy_ms > 0 { wanted } else { 0 };
            return (need, "no request was answered".to_owned());
        }
        let mean_ms = seen.latency_ms / seen.answered;
        let many = u64::from(wanted);
        let settled = standing.ready >= wanted && now.since_ms(self.grown_at) >= look_ms;
        let fewer_would_do = wanted > 1
            && mean_ms.saturating_mul(many) * 100 < LATENCY_EASE_PERCENT * most * (many - 1);
        let need = if mean_ms > most && settled {
            let in_proportion = mean_ms.saturating_mul(many).div_ceil(most).min(2 * many);
            u32::try_from(in_proportion).unwrap_or(u32::MAX)
        } else if fewer_would_do {
            wanted - 1
        } else {
            wanted
        };
        (need, format!("{mean_ms} ms to answer in the mean, {most} ms are allowed"))
    }
}

/// Target load of one replica, in thousandths of requests; at least 1.
fn per_replica_millis(target: Target) -> u64 {
    (u64::from(target.threshold) * u64::from(target.percent_millis) / 100).max(1)
}

fn sum(samples: &VecDeque<Sample>) -> Sample {
    samples.iter().fold(Sample::default(), |all, one| Sample {
        at: one.at,
        span_ms: all.span_ms + one.span_ms,
        busy_ms: all.busy_ms + one.busy_ms,
        arrived: all.arrived + one.arrived,
        answered: all.answered + one.answered,
        latency_ms: all.latency_ms + one.latency_ms,
    })
}

/// Formats thousandths with one decimal.
fn in_units(millis: u64) -> String {
    let tenths = (millis + 50) / 100;
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

fn requests(count: u64) -> String {
    match count {
        1 => "1 request".to_owned(),
        many => format!("{many} requests"),
    }
}
