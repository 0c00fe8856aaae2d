//! How many replicas. Owns: the one rule, as a function of what was measured and of time, which is
//! an argument. Does not know who measures, and what becomes of the answer.
//!
//! What is needed is looked at over a tenth of the window, so that a burst counts at once and a
//! single request does not. The answer is the most that was needed within the whole window (and
//! the delay): it goes up at once, and down only when nothing in all that time needed as many. So
//! a load that comes and goes faster than the window makes no replica come and go.

use std::collections::VecDeque;

use spec::{Metric, Scaling, Target};
use units::Instant;

/// Shortest time over which anything is measured.
const LOOK_MS_MIN: u64 = 1000;
/// Latency is met with fewer replicas only if it would stay below this part of the threshold, in
/// percent.
const LATENCY_EASE_PERCENT: u64 = 80;

/// What was measured in a span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// When it ended.
    pub at: Instant,
    /// How long it was.
    pub span_ms: u64,
    /// Requests that waited or were being answered, times milliseconds.
    pub busy_ms: u64,
    /// Requests that came.
    pub arrived: u64,
    /// Requests that were answered whole.
    pub answered: u64,
    /// How long those took, together.
    pub latency_ms: u64,
}

/// How the replicas stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaCounts {
    /// How many should run.
    pub wanted: u32,
    /// How many of them are ready.
    pub ready: u32,
}

/// How many replicas there should be, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// So many.
    pub replicas: u32,
    /// With the numbers.
    pub why: String,
}

/// Decides for one revision.
#[derive(Debug, Clone)]
pub struct Scaler {
    scaling: Scaling,
    samples: VecDeque<Sample>,
    /// What was needed, and when: the most first, later ones only if there was no more since.
    needs: VecDeque<(Instant, u32)>,
    /// When it was last asked anything, or had no replica that could have been.
    active_at: Instant,
    /// When it last grew.
    grown_at: Instant,
}

impl Scaler {
    /// For a revision that has so many replicas now. They are taken as needed at this moment, so
    /// nothing is given up before there is a window's worth of measurements.
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

    /// Takes a sample in and decides. Samples come in order of time.
    pub fn step(&mut self, sample: Sample, standing: ReplicaCounts) -> Decision {
        let now = sample.at;
        let look_ms = (self.scaling.window_ms / 10).max(LOOK_MS_MIN);
        self.samples.push_back(sample);
        while self.samples.front().is_some_and(|old| now.since_ms(old.at) >= look_ms) {
            self.samples.pop_front();
        }
        let seen = sum(&self.samples);
        let asked = seen.busy_ms > 0 || seen.arrived > 0;
        // A replica that never got ready has served nothing yet: its time begins later.
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
        if replicas > standing.wanted {
            self.grown_at = now;
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

    /// The most that was needed in the window, within the bounds.
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

    /// What was needed over the last look, and the numbers that say so.
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

    /// Latency says whether there are too few, not how many are missing: in proportion, at most
    /// twice as many, and not again before those are ready and were measured. One at a time goes.
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
            // Nothing is known of those that are still being answered.
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

/// What one replica is to take, in thousandths of requests; never nothing.
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

/// Thousandths with one digit behind the point.
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
