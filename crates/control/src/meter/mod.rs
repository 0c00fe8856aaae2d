//! Measuring over time. Owns: when the engine measures, and turning its counters into rates. The
//! values at one moment are in `sample`, their retention in `tiers`. Does not know about:
//! decisions; nothing waits for it, and a failed write is measured again next time.

mod idle;
mod sample;
mod tiers;
mod traffic;
mod used;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;

use engine::{DiskSpace, Measured, RunKey};
use records::{Change, SampleRow};
use tokio::sync::watch;
use units::Instant;

pub use sample::{Sample, Subject, Values, of};
pub(crate) use tiers::read;
pub use traffic::{Requests, Traffic};

use crate::deleted;
use crate::gpu_watch::ANSWER_WAIT_MS;
use crate::metrics::{Purpose, Verb};
use crate::retention::Retention;
use crate::shared::ControlState;
use crate::time::MonotonicClock;
use idle::Idle;
use orchestrator::{IdleSince, MEASURE_EVERY_MS, Step};
use spec::UserLimit;
use tiers::Tiers;
use traffic::Flow;
use view::View;

/// Samples in a transaction, so that decisions do not wait for long.
const WRITTEN_AT_ONCE: usize = 500;
/// Time without deletions after the clock was set: time to correct it.
const FORGETS_AFTER_STEP_MS: u64 = 86_400_000;

/// Takes samples at a fixed interval.
pub(crate) struct Meter {
    shared: Arc<ControlState>,
    clock: Arc<MonotonicClock>,
    /// Total step of the wall clock up to the last sample, in milliseconds.
    stepped_ms: i64,
    /// Moment from which old samples are deleted.
    forgets_from: Instant,
    last: Last,
    idle: Idle,
    tiers: Tiers,
    retention: Retention,
    /// Hour of the last deletion.
    forgot_at: Instant,
}

/// Counters at the last sample.
#[derive(Default)]
struct Last {
    at: Instant,
    cpu_time_ms: BTreeMap<RunKey, u64>,
    /// Moment since which each GPU has not computed.
    idle_since: BTreeMap<String, Instant>,
    traffic: Arc<Traffic>,
}

impl Meter {
    /// Reports through `idle` the idle workloads that have a limit. The state has been built.
    pub(crate) fn new(
        shared: Arc<ControlState>,
        clock: Arc<MonotonicClock>,
        idle: watch::Sender<IdleSince>,
        retention: Retention,
    ) -> Self {
        let last = Last { at: clock.now(), ..Last::default() };
        let (idle, tiers) = (Idle::new(idle), Tiers::default());
        let stepped_ms = clock.stepped_ms();
        let kept_until = clock.now().plus_ms(FORGETS_AFTER_STEP_MS);
        Self {
            shared,
            clock,
            stepped_ms,
            forgets_from: if stepped_ms == 0 { Instant(0) } else { kept_until },
            last,
            idle,
            tiers,
            retention,
            forgot_at: Instant(0),
        }
    }

    /// Never ends by itself.
    pub(crate) async fn run(mut self) -> Infallible {
        loop {
            // Taken first: a step after it is followed before anything is dated by it.
            let now = self.clock.now();
            self.follow(now);
            if let Err(error) = self.measure(now).await {
                tracing::warn!(%error, "what was measured could not be written");
            }
            self.clock.sleep_until(now.plus_ms(MEASURE_EVERY_MS)).await;
        }
    }

    /// Adjusts durations from a moment as the dispatcher does, and makes it check the time if the
    /// clock was put forward. Nothing is deleted for a day then: a wrong clock could make recent
    /// rows look old, and they would be lost.
    fn follow(&mut self, now: Instant) {
        if self.clock.is_behind() {
            self.idle.wake();
        }
        let ms = self.clock.stepped_ms() - self.stepped_ms;
        if ms != 0 {
            self.stepped_ms += ms;
            self.forgets_from = now.plus_ms(FORGETS_AFTER_STEP_MS);
            let step = Step { before: self.last.at, ms };
            self.last.at = step.since(self.last.at);
            self.last.idle_since.values_mut().for_each(|at| *at = step.since(*at));
            self.idle.shift(step);
        }
    }

    async fn measure(&mut self, now: Instant) -> Result<(), store::Error> {
        let metrics = &self.shared.metrics;
        let measuring = metrics.engine(Verb::Measure, self.shared.engine.measure());
        let measured = self.clock.within(ANSWER_WAIT_MS, measuring).await;
        let measured = match measured {
            Some(Ok(measured)) => measured,
            Some(Err(error)) => {
                tracing::warn!(%error, "what is used could not be measured");
                None
            }
            None => {
                metrics.engine_failed(Verb::Measure);
                tracing::warn!(
                    "what is used is not known: the engine or the driver does not answer"
                );
                None
            }
        };
        let view = self.shared.view.load_full();
        let since = self.last.at;
        let traffic = self.shared.traffic.load_full();
        let rates = self.last.rates(measured.as_ref(), traffic, &view, now);
        let sample = Sample::take(&view, measured.as_ref(), &rates, now);
        self.idle.update(&view, &sample);
        let rows = sample.values.iter().map(|(subject, values)| SampleRow {
            subject: subject.to_string(),
            step_ms: tiers::RAW,
            at: now,
            values: values.clone(),
        });
        let used = used::used(&view, &sample, since, now);
        let rows = rows.map(Change::Sample).chain(used.into_iter().map(Change::GpuUse));
        let kept = self.keep(rows.collect(), now).await;
        // Published last: a reader of the sample finds it among the stored ones.
        self.shared.sample.store(Arc::new(sample));
        kept
    }

    async fn keep(&mut self, mut rows: Vec<Change>, now: Instant) -> Result<(), store::Error> {
        // The room that is left within the database is for stopping and deleting.
        if !has_room(self.shared.store.folder(), DiskSpace::of) {
            rows.retain(|row| !matches!(row, Change::Sample(_)));
        }
        for some in rows.chunks(WRITTEN_AT_ONCE) {
            self.shared.write(Purpose::Samples, some, now).await?;
        }
        let forgets = now >= self.forgets_from;
        let deleted_max = self.shared.user_limits.get(UserLimit::DeletedWorkloads);
        if forgets && deleted::are_too_many(&self.shared.store, deleted_max).await? {
            deleted::forget(&self.shared.store, deleted_max, now).await?;
        }
        if forgets && used::hour(now) != self.forgot_at {
            let before = Instant(now.0.saturating_sub(used::KEPT_MS));
            let gone = [Change::AllocationsGone(before), Change::GpuUseGone(before)];
            self.shared.store.apply(&gone).await?;
            deleted::forget(&self.shared.store, deleted_max, now).await?;
            self.forgot_at = used::hour(now);
        }
        if forgets {
            self.retention.forget_some(&self.shared.store, now).await?;
        }
        self.tiers.roll_up(&self.shared.store, now, forgets).await
    }
}

/// True if the disk of the database has room beside what is kept for the server. A database server
/// watches its own disk, and of a disk that cannot be looked at the next write shows the state.
fn has_room(folder: Option<&Path>, space: impl Fn(&Path) -> io::Result<DiskSpace>) -> bool {
    !folder.is_some_and(|folder| space(folder).is_ok_and(|space| space.is_below(4)))
}

/// Rates between two samples, from counters.
pub(crate) struct Rates {
    /// CPU use of each run, in thousandths of a core.
    pub(crate) cpu_millis: BTreeMap<RunKey, u64>,
    /// Time for which each GPU has not computed, in milliseconds.
    pub(crate) idle_ms: BTreeMap<String, u64>,
    /// Requests to inferences.
    pub(crate) flow: Flow,
}

impl Last {
    fn rates(
        &mut self,
        measured: Option<&Measured>,
        traffic: Arc<Traffic>,
        view: &View,
        now: Instant,
    ) -> Rates {
        let runs = measured.map(|measured| measured.runs.as_slice()).unwrap_or_default();
        let pods = view.workloads.values().flat_map(|workload| &workload.pods);
        let started: BTreeMap<_, _> =
            pods.filter_map(|pod| Some((pod.id, pod.started_at?))).collect();
        let rate = |run: &engine::RunUse| {
            // The rate of a new run counts from its start.
            let (since, used_ms) = match self.cpu_time_ms.get(&run.key) {
                Some(before) => (self.at, run.cpu_time_ms.saturating_sub(*before)),
                None => (*started.get(&run.key.pod).filter(|at| **at >= self.at)?, run.cpu_time_ms),
            };
            Some((run.key, used_ms.saturating_mul(1000).checked_div(now.since_ms(since))?))
        };
        let cpu_millis = runs.iter().filter_map(rate).collect();
        let gpus = measured.map(|measured| measured.gpus.as_slice()).unwrap_or_default();
        let idle = gpus.iter().filter(|gpu| gpu.busy_millis == Some(0)).map(|gpu| {
            let since = self.idle_since.get(&gpu.uuid).copied().unwrap_or(now);
            (gpu.uuid.clone(), since)
        });
        self.idle_since = idle.collect();
        let busy = gpus.iter().filter(|gpu| gpu.busy_millis > Some(0));
        let idle = self.idle_since.iter().map(|(uuid, at)| (uuid.clone(), now.since_ms(*at)));
        let idle_ms = idle.chain(busy.map(|gpu| (gpu.uuid.clone(), 0))).collect();
        self.cpu_time_ms = runs.iter().map(|run| (run.key, run.cpu_time_ms)).collect();
        self.at = now;
        let flow = traffic.since(&self.traffic);
        self.traffic = traffic;
        Rates { cpu_millis, idle_ms, flow }
    }
}

async fn write(store: &store::Store, changes: Vec<Change>) -> Result<(), store::Error> {
    for some in changes.chunks(WRITTEN_AT_ONCE) {
        store.apply(some).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use engine::{DiskRoom, GpuUse, RunUse};

    use super::*;

    #[test]
    fn samples_are_written_unless_the_disk_of_the_database_is_full() {
        let room = |bytes| DiskRoom { bytes, files: bytes };
        let of = |free: u64| {
            move |folder: &Path| {
                assert_eq!(folder, Path::new("/state"), "no other disk counts");
                Ok(DiskSpace { free: room(free), kept: room(400) })
            }
        };
        let state = Some(Path::new("/state"));
        assert!(has_room(state, of(400)));
        assert!(!has_room(state, of(399)));
        assert!(has_room(None, of(0)), "a database server has its own");
        assert!(has_room(state, |_| Err(io::ErrorKind::PermissionDenied.into())));
    }

    #[test]
    fn counters_become_rates_and_a_counter_that_went_back_is_no_use() {
        let key = RunKey { pod: uuid::Uuid::from_u128(7), generation: 1 };
        let seen = |cpu_time_ms, busy| Measured {
            runs: vec![RunUse { key, cpu_time_ms, memory_bytes: 1, gpus: Vec::new() }],
            gpus: vec![GpuUse { uuid: "g".into(), busy_millis: busy, memory_bytes: None }],
        };
        let mut last = Last { at: Instant(1000), ..Last::default() };
        let mut rates = |measured: &Measured, at| {
            let rates = last.rates(Some(measured), Arc::default(), &View::default(), Instant(at));
            (rates.cpu_millis.get(&key).copied(), rates.idle_ms.get("g").copied())
        };
        assert_eq!(rates(&seen(5000, Some(0)), 2000), (None, Some(0)), "nothing to compare with");
        assert_eq!(rates(&seen(6500, Some(0)), 3000), (Some(1500), Some(1000)));
        assert_eq!(rates(&seen(6500, Some(10)), 4000), (Some(0), Some(0)), "it computed");
        assert_eq!(rates(&seen(10, Some(0)), 5000), (Some(0), Some(0)), "idle from now on");
        assert_eq!(rates(&seen(20, None), 5000), (None, None), "no time has passed");
    }
}
