//! The rule for the number of replicas, second by second in virtual time.

use proptest::prelude::*;
use serving::{Decision, ReplicaCounts, Sample, Scaler};
use spec::{Metric, Scaling, Target};
use units::Instant;

fn scaling(min: u32, max: u32, target: Option<(Metric, u32)>) -> Scaling {
    Scaling {
        replicas_min: min,
        replicas_max: max,
        replicas_initial: min.max(1),
        replicas_activation: min.max(1),
        target: target.map(|(metric, threshold)| Target {
            metric,
            threshold,
            percent_millis: 70_000,
        }),
        window_ms: 60_000,
        down_delay_ms: 0,
        zero_retention_ms: 0,
    }
}

/// A revision whose replicas are ready one second after they are wanted.
struct Revision {
    scaler: Scaler,
    now: Instant,
    wanted: u32,
    ready: u32,
    changes: Vec<(u64, u32)>,
    last: Decision,
}

impl Revision {
    fn new(scaling: Scaling, wanted: u32) -> Self {
        let now = Instant(1_000_000);
        let last = Decision { replicas: wanted, why: String::new() };
        let scaler = Scaler::new(scaling, now, wanted);
        Self { scaler, now, wanted, ready: wanted, changes: vec![], last }
    }

    fn second(&mut self, sample: Sample) {
        self.now = self.now.plus_ms(1000);
        let sample = Sample { at: self.now, span_ms: 1000, ..sample };
        let standing = ReplicaCounts { wanted: self.wanted, ready: self.ready };
        self.ready = self.wanted;
        self.last = self.scaler.step(sample, standing);
        if self.last.replicas != self.wanted {
            self.wanted = self.last.replicas;
            self.ready = self.ready.min(self.wanted);
            self.changes.push((self.now.since_ms(Instant(1_000_000)) / 1000, self.wanted));
        }
    }

    /// A load of `at_a_time` requests, for some seconds.
    fn busy(&mut self, seconds: u64, at_a_time: u64) -> &mut Self {
        let arrived = at_a_time;
        let sample = Sample {
            busy_ms: at_a_time * 1000,
            arrived,
            answered: arrived,
            latency_ms: arrived * 1000,
            ..Sample::default()
        };
        for _ in 0..seconds {
            self.second(sample);
        }
        self
    }

    fn quiet(&mut self, seconds: u64) -> &mut Self {
        self.busy(seconds, 0)
    }
}

#[test]
fn concurrency_is_divided_by_seven_tenths_of_the_threshold() {
    for (load, want) in [(1, 1), (7, 1), (8, 2), (14, 2), (15, 3), (70, 10), (700, 10)] {
        let mut revision = Revision::new(scaling(1, 10, Some((Metric::Concurrency, 10))), 1);
        revision.busy(30, load);
        assert_eq!(revision.wanted, want, "{load} requests at a time: {}", revision.last.why);
    }
}

#[test]
fn throughput_counts_what_comes_not_how_long_it_takes() {
    let mut revision = Revision::new(scaling(1, 10, Some((Metric::Throughput, 10))), 1);
    for _ in 0..30 {
        revision.second(Sample { busy_ms: 50, arrived: 21, answered: 21, ..Sample::default() });
    }
    assert_eq!(revision.wanted, 3);
    for _ in 0..30 {
        revision.second(Sample { busy_ms: 90_000, arrived: 21, ..Sample::default() });
    }
    assert_eq!(revision.wanted, 3, "slower answers are no more requests");
}

#[test]
fn up_at_once_down_when_a_whole_window_needed_less() {
    let mut revision = Revision::new(scaling(0, 5, Some((Metric::Concurrency, 1))), 0);
    revision.quiet(5);
    assert_eq!(revision.changes, []);
    revision.busy(1, 1);
    assert_eq!(revision.changes, [(6, 1)], "the first request brings a replica up");
    revision.busy(10, 2).quiet(61);
    let ups: Vec<_> = revision.changes.iter().map(|&(_, count)| count).collect();
    assert_eq!(ups, [1, 2, 3], "all are needed to the end of the window");
    revision.quiet(20);
    assert_eq!(revision.wanted, 0, "{:?}", revision.changes);
    assert!(revision.last.replicas == 0);
}

#[test]
fn the_text_says_the_numbers() {
    let mut revision = Revision::new(scaling(0, 5, Some((Metric::Concurrency, 1))), 1);
    revision.busy(6, 2);
    assert_eq!(revision.last.why, "2 requests at a time, 0.7 for each replica");
}

#[test]
fn delay_and_retention_keep_replicas_longer() {
    let rest = |delay_ms, retention_ms| {
        let mut scaling = scaling(0, 1, None);
        (scaling.down_delay_ms, scaling.zero_retention_ms) = (delay_ms, retention_ms);
        let mut revision = Revision::new(scaling, 1);
        revision.busy(1, 1).quiet(1000);
        assert_eq!(revision.changes.len(), 1, "{:?}", revision.changes);
        revision.changes[0].0
    };
    let plain = rest(0, 0);
    assert!((61..=70).contains(&plain), "{plain}");
    assert_eq!(rest(30_000, 0), plain + 30);
    assert_eq!(rest(0, 100_000), plain + 100);
    assert_eq!(rest(30_000, 100_000), plain + 100, "the longer of both");
}

#[test]
fn a_replica_that_is_still_starting_is_not_given_up() {
    let mut revision = Revision::new(scaling(0, 1, None), 0);
    revision.busy(1, 1);
    for _ in 0..1000 {
        revision.ready = 0;
        revision.second(Sample::default());
    }
    assert_eq!(revision.wanted, 1, "it was never ready, so it served nothing");
    revision.quiet(70);
    assert_eq!(revision.wanted, 0);
}

#[test]
fn latency_grows_in_proportion_and_shrinks_by_one() {
    let mut revision = Revision::new(scaling(1, 10, Some((Metric::Latency, 100))), 2);
    let at = |mean_ms: u64| Sample {
        busy_ms: 10 * mean_ms,
        arrived: 10,
        answered: 10,
        latency_ms: 10 * mean_ms,
        ..Sample::default()
    };
    for _ in 0..7 {
        revision.second(at(140));
    }
    assert_eq!(revision.wanted, 3, "{}: once for each look", revision.last.why);
    for _ in 0..50 {
        revision.second(at(90));
    }
    assert_eq!(revision.wanted, 3, "below the threshold, and two would not do");
    for _ in 0..70 {
        revision.second(at(20));
    }
    assert_eq!(revision.wanted, 2);
    assert_eq!(revision.changes.len(), 2, "{:?}", revision.changes);
}

#[test]
fn bounds_without_a_metric_are_none_and_one() {
    let mut revision = Revision::new(scaling(0, 1, None), 0);
    revision.busy(100, 500);
    assert_eq!(revision.changes, [(1, 1)]);
    let mut fixed = Revision::new(scaling(3, 3, None), 3);
    fixed.busy(100, 500).quiet(1000);
    assert_eq!(fixed.changes, []);
}

#[test]
fn other_bounds_hold_at_once_and_say_so() {
    let load = Some((Metric::Concurrency, 1));
    let mut revision = Revision::new(scaling(1, 5, load), 1);
    revision.busy(6, 2);
    revision.scaler.follow(&scaling(1, 2, load));
    revision.busy(1, 2);
    assert_eq!((revision.wanted, &*revision.last.why), (2, "maxReplicas is 2"));
    revision.scaler.follow(&scaling(4, 5, load));
    revision.quiet(1);
    assert_eq!((revision.wanted, &*revision.last.why), (4, "minReplicas is 4"));
    revision.scaler.follow(&scaling(0, 5, load));
    revision.quiet(30);
    assert_eq!(revision.wanted, 3, "the load before the change is not forgotten");
    revision.quiet(60);
    assert_eq!(revision.wanted, 0);
}

fn any_scaling() -> impl Strategy<Value = Scaling> {
    let metric =
        prop_oneof![Just(Metric::Concurrency), Just(Metric::Throughput), Just(Metric::Latency)];
    let times = (6_u64..120, 0_u64..60, 0_u64..60);
    (metric, 1_u32..50, 0_u32..4, 1_u32..8, times).prop_map(
        |(metric, threshold, min, more, times)| {
            let min = if metric == Metric::Latency { min.max(1) } else { min };
            let (window, delay, retention) = times;
            Scaling {
                window_ms: window * 1000,
                down_delay_ms: delay * 1000,
                zero_retention_ms: retention * 1000,
                ..scaling(min, min + more, Some((metric, threshold)))
            }
        },
    )
}

proptest! {
    /// For any load, the bounds are kept, and a removed replica was not needed for a window.
    #[test]
    fn bounds_are_kept(
        scaling in any_scaling(),
        loads in prop::collection::vec((0_u64..60, 1_u64..40), 1..12),
    ) {
        let (min, max) = (scaling.replicas_min, scaling.replicas_max);
        let window = scaling.window_ms / 1000;
        let mut revision = Revision::new(scaling, min.max(1));
        for (load, seconds) in loads {
            revision.busy(seconds, load);
            prop_assert!((min..=max).contains(&revision.wanted));
        }
        let mut last_up = 0;
        let mut before = min.max(1);
        for &(at, count) in &revision.changes {
            if count > before {
                last_up = at;
            } else {
                prop_assert!(at - last_up >= window, "{:?}", revision.changes);
            }
            before = count;
        }
    }

    /// A load that swings within the window settles on one number.
    #[test]
    fn what_swings_within_the_window_moves_nothing(
        high in 1_u64..60,
        low in 0_u64..60,
        on in 1_u64..20,
        off in 1_u64..20,
        threshold in 1_u32..20,
    ) {
        let scaling = scaling(0, 20, Some((Metric::Concurrency, threshold)));
        let mut revision = Revision::new(scaling, 1);
        for _ in 0..=120 / (on + off) {
            revision.busy(on, high).busy(off, low);
        }
        let settled = revision.changes.len();
        for _ in 0..20 {
            revision.busy(on, high).busy(off, low);
        }
        prop_assert_eq!(revision.changes.len(), settled, "{:?}", revision.changes);
    }

    /// A constant load is met, and with the minimum number of replicas.
    #[test]
    fn a_steady_load_is_met_exactly(load in 0_u64..100, threshold in 1_u32..20) {
        let scaling = scaling(0, 1000, Some((Metric::Concurrency, threshold)));
        let mut revision = Revision::new(scaling, 50);
        revision.busy(200, load);
        let need = (load * 1000).div_ceil(u64::from(threshold) * 700);
        prop_assert_eq!(u64::from(revision.wanted), need);
    }
}
