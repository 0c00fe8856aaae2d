//! The usage ledger against exact arithmetic over the whole history, and against the definition.

use model::{
    Cluster, GpuRequest, NodeSpec, Placement, PodBinding, PodId, PodRequest, QueueId, QueueSpec,
    Share, UsageLedger, UsageWindow, WindowKind, WorkloadSpec,
};
use proptest::prelude::*;
use units::{Instant, Resources};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const GPUS: u32 = 8;

/// One node, two queues, and for each GPU a pod of each queue.
struct Fixture {
    cluster: Cluster,
    queues: Vec<QueueId>,
    pods: Vec<Vec<PodId>>,
    ledger: UsageLedger,
    now: Instant,
    /// Times at which holdings changed, and the number of GPUs of each queue from then on.
    log: Vec<(Instant, [u64; 2])>,
}

impl Fixture {
    fn new(window: UsageWindow, start: u64) -> Self {
        let mut cluster = Cluster::new();
        cluster.add_node(NodeSpec::new("n", vec![1 << 34; GPUS as usize], 8000, 1 << 40));
        let (mut queues, mut pods) = (Vec::new(), Vec::new());
        for seq in 0..2 {
            let share = Share::new(Resources::ZERO, Resources::UNLIMITED);
            let spec = QueueSpec { name: format!("q{seq}"), parent: None, share, seq };
            let queue = cluster.add_queue(spec).expect("a sound queue");
            let gpu = GpuRequest::Whole(1);
            let request = PodRequest { gpu, cpu_millis: 100, memory_bytes: 1 << 30 };
            let own = (0..u64::from(GPUS)).map(|at| {
                let spec = WorkloadSpec::new(format!("w{at}"), queue, at, request);
                let id = cluster.add_workload(spec).expect("a sound workload");
                cluster.workloads()[id].pods[0]
            });
            pods.push(own.collect());
            queues.push(queue);
        }
        let mut ledger = UsageLedger::new(window);
        let now = Instant(start);
        ledger.observe(&mut cluster, now);
        Self { cluster, queues, pods, ledger, now, log: vec![(now, [0, 0])] }
    }

    /// Lets time pass, then sets the GPUs of the queues.
    fn pass(&mut self, ms: u64, held: [u64; 2]) {
        self.now = self.now.plus_ms(ms);
        self.ledger.observe(&mut self.cluster, self.now);
        let mut gpu = 0;
        for (pods, count) in self.pods.iter().zip(held) {
            for (at, &pod) in pods.iter().enumerate() {
                let node = self.cluster.nodes().ids().next().expect("a node");
                let mut place = Placement { node, devices: Default::default() };
                if (at as u64) < count {
                    place.devices.push(model::DeviceShare { gpu, millis: 1000 });
                    gpu += 1;
                    self.cluster.set_binding(pod, PodBinding::at(place));
                } else {
                    self.cluster.set_binding(pod, PodBinding::default());
                }
            }
        }
        self.ledger.observe(&mut self.cluster, self.now);
        self.log.push((self.now, held));
    }

    fn ppm(&self, queue: usize) -> u64 {
        self.cluster.queues()[self.queues[queue]].usage.gpu_ppm
    }

    /// Holdings of a queue between two instants, in weighted GPU milliseconds.
    fn sum(&self, queue: usize, from: u64, to: u64, weight: impl Fn(u64, u64) -> f64) -> f64 {
        let ends = self.log.iter().skip(1).map(|(at, _)| at.0).chain([u64::MAX]);
        let spans = self.log.iter().zip(ends).map(|((at, held), end)| {
            let (a, b) = (at.0.max(from), end.min(to));
            if a < b { held[queue] as f64 * weight(a, b) } else { 0.0 }
        });
        spans.sum()
    }
}

fn sliding(length_ms: u64, half_life_ms: Option<u64>) -> UsageWindow {
    UsageWindow::new(length_ms, WindowKind::Sliding, half_life_ms).expect("a sound window")
}

fn history() -> impl Strategy<Value = Vec<(u64, [u64; 2])>> {
    let held = (0..5_u64, 0..4_u64).prop_map(|(a, b)| [a, b]);
    prop::collection::vec((0..40 * MINUTE, held), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn without_decay_it_is_the_exact_mean_over_the_steps(
        start in HOUR..3 * HOUR,
        history in history(),
        tumbles in any::<bool>(),
    ) {
        let kind = if tumbles {
            WindowKind::Tumbling { start: Instant(77_777) }
        } else {
            WindowKind::Sliding
        };
        let window = UsageWindow::new(4 * HOUR, kind, None).expect("a sound window");
        let mut f = Fixture::new(window, start);
        for (ms, held) in history {
            f.pass(ms, held);
        }
        let end = window.step_start(f.now).0;
        let opened = match kind {
            WindowKind::Sliding => end - 168 * window.step_ms().min(end / 168),
            WindowKind::Tumbling { start } => end - (end - start.0) % (4 * HOUR),
        };
        let from = opened.max(start);
        prop_assume!(end > from);
        for queue in 0..2 {
            let exact = f.sum(queue, from, end, |a, b| (b - a) as f64);
            let exact_ppm = exact / (f64::from(GPUS) * (end - from) as f64) * 1e6;
            // A step's mean is rounded down to a thousandth of a GPU, of both part and whole.
            let bound = 2.0 + 1e6 / (f64::from(GPUS) * 1000.0 / 2.0);
            let told = f.ppm(queue) as f64;
            prop_assert!((told - exact_ppm).abs() <= bound, "{told} for {exact_ppm}");
        }
    }

    #[test]
    fn with_decay_it_is_within_the_bound_of_the_integral(
        history in history(),
        half_life in 20 * MINUTE..10 * HOUR,
    ) {
        let window = sliding(48 * HOUR, Some(half_life));
        let mut f = Fixture::new(window, HOUR);
        for (ms, held) in history {
            f.pass(ms, held);
        }
        let end = window.step_start(f.now).0;
        let from = end.saturating_sub(window.step_ms() * window.steps() as u64).max(HOUR);
        prop_assume!(end > from);
        // The integral of the decay, in closed form.
        let decayed = |a: u64, b: u64| {
            let weight = |at: u64| 0.5_f64.powf((end - at) as f64 / half_life as f64);
            weight(b) - weight(a)
        };
        for queue in 0..2 {
            let exact = f.sum(queue, from, end, decayed) / (f64::from(GPUS) * decayed(from, end));
            let told = f.ppm(queue) as f64 / 1e6;
            let factor = 2_f64.powf(1.0 / 16.0);
            let rounding = 0.001;
            prop_assert!(told <= exact * factor + rounding, "{told} for {exact}");
            prop_assert!(told >= exact / factor - rounding, "{told} for {exact}");
        }
    }

    #[test]
    fn it_does_not_matter_how_often_it_is_observed(history in history(), looks in 1..20_u64) {
        let window = sliding(2 * HOUR, Some(HOUR));
        let (mut once, mut often) = (Fixture::new(window, HOUR), Fixture::new(window, HOUR));
        for (ms, held) in history {
            once.pass(ms, held);
            for look in 1..=looks {
                often.ledger.observe(&mut often.cluster, often.now.plus_ms(ms * look / looks));
            }
            often.pass(ms, held);
            prop_assert_eq!([once.ppm(0), once.ppm(1)], [often.ppm(0), often.ppm(1)]);
        }
    }
}

#[test]
fn what_is_held_counts_when_its_step_has_ended() {
    let mut f = Fixture::new(sliding(168 * MINUTE, None), HOUR);
    f.pass(0, [4, 2]);
    f.pass(MINUTE - 1, [4, 2]);
    assert_eq!(f.ppm(0), 0, "the step is under way");
    f.pass(1, [4, 2]);
    assert_eq!([f.ppm(0), f.ppm(1)], [500_000, 250_000]);
    f.pass(MINUTE, [0, 2]);
    f.pass(2 * MINUTE, [0, 2]);
    assert_eq!([f.ppm(0), f.ppm(1)], [250_000, 250_000], "half the time half the GPUs");
}

#[test]
fn it_forgets_what_has_left_the_window() {
    let mut f = Fixture::new(sliding(168 * MINUTE, None), HOUR);
    f.pass(0, [8, 0]);
    f.pass(84 * MINUTE, [0, 0]);
    f.pass(84 * MINUTE, [0, 0]);
    assert_eq!(f.ppm(0), 500_000);
    f.pass(42 * MINUTE, [0, 0]);
    assert_eq!(f.ppm(0), 250_000);
    f.pass(42 * MINUTE, [0, 0]);
    assert_eq!(f.ppm(0), 0);
}

#[test]
fn a_half_life_halves() {
    let mut f = Fixture::new(sliding(240 * HOUR, Some(HOUR)), HOUR);
    f.pass(0, [8, 0]);
    f.pass(20 * HOUR, [0, 0]);
    assert!(f.ppm(0) > 999_900);
    f.pass(HOUR, [0, 0]);
    assert!(f.ppm(0).abs_diff(500_000) < 100);
    f.pass(HOUR, [0, 0]);
    assert!(f.ppm(0).abs_diff(250_000) < 100);
}

#[test]
fn a_tumbling_window_begins_with_a_clean_sheet() {
    let kind = WindowKind::Tumbling { start: Instant(0) };
    let window = UsageWindow::new(24 * HOUR, kind, None).expect("a sound window");
    let mut f = Fixture::new(window, 12 * HOUR);
    f.pass(0, [8, 0]);
    f.pass(11 * HOUR, [8, 0]);
    assert_eq!(f.ppm(0), 1_000_000);
    f.pass(HOUR, [0, 4]);
    assert_eq!([f.ppm(0), f.ppm(1)], [0, 0]);
    f.pass(6 * HOUR, [0, 4]);
    assert_eq!([f.ppm(0), f.ppm(1)], [0, 500_000]);
}

#[test]
fn a_long_silence_costs_no_more_than_a_window() {
    let mut f = Fixture::new(sliding(168 * MINUTE, None), HOUR);
    f.pass(0, [6, 2]);
    f.pass(1 << 55, [0, 0]);
    assert_eq!([f.ppm(0), f.ppm(1)], [750_000, 250_000]);
}

#[test]
fn a_queue_in_the_place_of_another_has_no_past() {
    let mut f = Fixture::new(sliding(168 * MINUTE, None), HOUR);
    f.pass(0, [8, 0]);
    f.pass(2 * MINUTE, [0, 0]);
    assert_eq!(f.ppm(0), 1_000_000);
    let old = f.queues[0];
    for id in f.cluster.queues()[old].workloads.clone() {
        f.cluster.remove_workload(id).expect("nothing of it is left");
    }
    f.cluster.remove_queue(old).expect("it is empty");
    let share = Share::new(Resources::ZERO, Resources::UNLIMITED);
    let spec = QueueSpec { name: "new".into(), parent: None, share, seq: 9 };
    let new = f.cluster.add_queue(spec).expect("a sound queue");
    assert_eq!((new.raw(), new == old), (old.raw(), false), "the place is used again");
    f.ledger.observe(&mut f.cluster, f.now.plus_ms(2 * MINUTE));
    assert_eq!(f.cluster.queues()[new].usage, model::Usage::default());
}

#[test]
fn an_even_past_gives_the_figures_it_was_made_from() {
    let window = sliding(168 * HOUR, Some(24 * HOUR));
    let mut f = Fixture::new(window, 1000 * HOUR);
    let usage = model::Usage { gpu_ppm: 123_456, cpu_ppm: 1, memory_ppm: 999_999 };
    f.cluster.set_usage(f.queues[0], usage);
    f.ledger.assume_even_past(&f.cluster, f.now);
    let told = f.ledger.usage(f.queues[0]);
    // Counted in thousandths of a GPU, of which there are 8,000.
    assert!(told.gpu_ppm.abs_diff(usage.gpu_ppm) <= 125, "{told:?}");
    assert_eq!(told.memory_ppm, usage.memory_ppm);
    assert_eq!(f.ledger.usage(f.queues[1]), model::Usage::default());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_ledger_that_was_kept_goes_on_where_it_was(
        history in history(),
        later in history(),
        half_life in any::<bool>(),
    ) {
        let window = sliding(6 * HOUR, half_life.then_some(4 * HOUR));
        let mut f = Fixture::new(window, HOUR);
        let mut kept = Vec::new();
        for (ms, held) in history {
            f.now = f.now.plus_ms(ms);
            let ended = f.ledger.observe(&mut f.cluster, f.now);
            kept.extend(f.ledger.ended(ended).into_iter().rev());
            f.pass(0, held);
        }
        // It stops at the end of a step, as far as holdings are concerned.
        let end = window.next_step(f.now);
        let ended = f.ledger.observe(&mut f.cluster, end);
        kept.extend(f.ledger.ended(ended).into_iter().rev());
        f.now = end;
        let figures = [f.ppm(0), f.ppm(1)];
        let mut again = UsageLedger::new(window);
        kept.iter().for_each(|step| again.replay(&f.cluster, step));
        again.observe(&mut f.cluster, f.now);
        again.publish(&mut f.cluster);
        for (queue, before) in figures.into_iter().enumerate() {
            // Means are rounded once more.
            prop_assert!(f.ppm(queue).abs_diff(before) <= 300, "{} for {before}", f.ppm(queue));
        }
        let kept = std::mem::replace(&mut f.ledger, again);
        let mut other = Fixture { ledger: kept, ..Fixture::new(window, HOUR) };
        (other.now, other.cluster, other.queues) = (f.now, f.cluster.clone(), f.queues.clone());
        other.pods.clone_from(&f.pods);
        for (ms, held) in later {
            f.pass(ms, held);
            other.pass(ms, held);
            prop_assert!(f.ppm(0).abs_diff(other.ppm(0)) <= 300);
        }
    }
}
