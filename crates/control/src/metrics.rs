//! Counters and histograms of the dispatcher and of its calls. Owns: their names, labels and
//! buckets. Events of workloads are counted when they have been committed. Labels hold words of
//! fixed lists only, so the number of series is bounded. Does not know about: their readers.

use std::future::Future;
use std::time::Instant;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use orchestrator::Tally;
use spec::WorkloadKind;

/// Upper bounds of the time of a decision or a transaction, in seconds.
const SHORT_SECONDS: [f64; 11] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];
/// Upper bounds of the time of a call to the engine, in seconds.
const CALL_SECONDS: [f64; 10] = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0];
/// Upper bounds of waiting times, in seconds: one second to three days.
const WAIT_SECONDS: [f64; 12] =
    [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0];
/// Upper bounds of the number of events in a batch.
const BATCH_EVENTS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// A call to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Start,
    Stop,
    Remove,
    ForgetPod,
    RemoveVolume,
    LimitGpus,
    List,
    Measure,
    GpuHealth,
}

impl Verb {
    const ALL: [Self; 9] = [
        Self::Start,
        Self::Stop,
        Self::Remove,
        Self::ForgetPod,
        Self::RemoveVolume,
        Self::LimitGpus,
        Self::List,
        Self::Measure,
        Self::GpuHealth,
    ];

    const fn label(self) -> ByVerb {
        let verb = match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Remove => "remove",
            Self::ForgetPod => "forget_pod",
            Self::RemoveVolume => "remove_volume",
            Self::LimitGpus => "limit_gpus",
            Self::List => "list",
            Self::Measure => "measure",
            Self::GpuHealth => "gpu_health",
        };
        ByVerb { verb }
    }
}

/// Purpose of a database transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A decision: requests wait for it.
    Decision,
    /// Samples of allocation and use.
    Samples,
}

impl Purpose {
    const ALL: [Self; 2] = [Self::Decision, Self::Samples];

    const fn label(self) -> ByPurpose {
        match self {
            Self::Decision => ByPurpose { purpose: "decision" },
            Self::Samples => ByPurpose { purpose: "samples" },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByVerb {
    verb: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPurpose {
    purpose: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    kind: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCause {
    cause: &'static str,
    kind: &'static str,
}

/// Counters and histograms. Clones share them.
#[derive(Debug, Clone)]
pub struct Metrics {
    submitted: Family<ByKind, Counter>,
    ended: Family<ByResult, Counter>,
    waited: Family<ByKind, Histogram>,
    evicted: Family<ByCause, Counter>,
    decision: Histogram,
    batch: Histogram,
    engine: Family<ByVerb, Histogram>,
    engine_errors: Family<ByVerb, Counter>,
    transaction: Family<ByPurpose, Histogram>,
    transaction_errors: Family<ByPurpose, Counter>,
}

impl Default for Metrics {
    /// Series whose labels are known begin with 0, so that the first increase is seen as one.
    fn default() -> Self {
        let metrics = Self {
            submitted: Family::default(),
            ended: Family::default(),
            waited: Family::new_with_constructor(|| Histogram::new(WAIT_SECONDS)),
            evicted: Family::default(),
            decision: Histogram::new(SHORT_SECONDS),
            batch: Histogram::new(BATCH_EVENTS),
            engine: Family::new_with_constructor(|| Histogram::new(CALL_SECONDS)),
            engine_errors: Family::default(),
            transaction: Family::new_with_constructor(|| Histogram::new(SHORT_SECONDS)),
            transaction_errors: Family::default(),
        };
        for kind in WorkloadKind::ALL.map(WorkloadKind::name) {
            drop(metrics.submitted.get_or_create(&ByKind { kind }));
            drop(metrics.waited.get_or_create(&ByKind { kind }));
            for result in [COMPLETED, FAILED] {
                drop(metrics.ended.get_or_create(&ByResult { kind, result }));
            }
        }
        for verb in Verb::ALL {
            drop(metrics.engine_errors.get_or_create(&verb.label()));
        }
        for purpose in Purpose::ALL {
            drop(metrics.transaction_errors.get_or_create(&purpose.label()));
        }
        metrics
    }
}

const COMPLETED: &str = "completed";
const FAILED: &str = "failed";

impl Metrics {
    /// Gives a registry all of them. Their names begin with its prefix.
    pub fn register(&self, to: &mut Registry) {
        let about = "Workloads that were accepted";
        to.register("workloads_submitted", about, self.submitted.clone());
        let about = "Workloads that ended by themselves, by how they ended";
        to.register("workloads_ended", about, self.ended.clone());
        let about = "Time from the submission of a workload, or its resumption before it ever ran, \
                     until it ran for the first time";
        let waited = self.waited.clone();
        to.register_with_unit("workload_wait_duration", about, Unit::Seconds, waited);
        let about = "Times a workload was stopped, moved or resized against its will, by the code \
                     of the cause";
        to.register("evictions", about, self.evicted.clone());
        let about = "Time the scheduler took for a decision";
        to.register_with_unit("decision_duration", about, Unit::Seconds, self.decision.clone());
        let about = "Requests, observations and timers that were decided about together";
        to.register("batch_events", about, self.batch.clone());
        let about = "Time that calls to the engine took";
        let engine = self.engine.clone();
        to.register_with_unit("engine_call_duration", about, Unit::Seconds, engine);
        let about = "Calls that the engine refused, that failed, or that were not answered in time";
        to.register("engine_errors", about, self.engine_errors.clone());
        let about = "Time that transactions of the database took";
        let transaction = self.transaction.clone();
        to.register_with_unit("store_transaction_duration", about, Unit::Seconds, transaction);
        let about = "Transactions of the database that failed";
        to.register("store_transaction_errors", about, self.transaction_errors.clone());
    }

    /// Counts what happened in a batch that is committed.
    pub(crate) fn count(&self, tally: Tally) {
        for kind in tally.submitted.into_iter().map(WorkloadKind::name) {
            self.submitted.get_or_create(&ByKind { kind }).inc();
        }
        for (kind, waited_ms) in tally.started {
            let kind = kind.name();
            self.waited.get_or_create(&ByKind { kind }).observe(seconds(waited_ms));
        }
        for (kind, failed) in tally.ended {
            let (kind, result) = (kind.name(), if failed { FAILED } else { COMPLETED });
            self.ended.get_or_create(&ByResult { kind, result }).inc();
        }
        for (_, kind, cause) in tally.evicted {
            self.evicted.get_or_create(&ByCause { cause, kind: kind.name() }).inc();
        }
    }

    /// Records a batch by its number of events.
    pub(crate) fn batch(&self, events: usize) {
        self.batch.observe(f64::from(u32::try_from(events).unwrap_or(u32::MAX)));
    }

    /// Records a decision by its duration.
    pub(crate) fn decided(&self, took: std::time::Duration) {
        self.decision.observe(took.as_secs_f64());
    }

    /// Waits for a call to the engine. That a run which is to be removed has not quite ended is no
    /// error.
    pub(crate) async fn engine<T>(
        &self,
        verb: Verb,
        call: impl Future<Output = Result<T, engine::Error>>,
    ) -> Result<T, engine::Error> {
        let began = Instant::now();
        let result = call.await;
        self.engine.get_or_create(&verb.label()).observe(began.elapsed().as_secs_f64());
        if !matches!(result, Ok(_) | Err(engine::Error::StillRunning(_))) {
            self.engine_failed(verb);
        }
        result
    }

    /// A call to the engine failed, or was not answered in time.
    pub(crate) fn engine_failed(&self, verb: Verb) {
        self.engine_errors.get_or_create(&verb.label()).inc();
    }

    /// Writes all changes in one transaction.
    pub(crate) async fn apply(
        &self,
        purpose: Purpose,
        store: &store::Store,
        changes: &[records::Change],
    ) -> Result<(), store::Error> {
        let began = Instant::now();
        let written = store.apply(changes).await;
        let took = began.elapsed().as_secs_f64();
        self.transaction.get_or_create(&purpose.label()).observe(took);
        if written.is_err() {
            self.transaction_errors.get_or_create(&purpose.label()).inc();
        }
        written
    }
}

/// Milliseconds in seconds.
fn seconds(ms: u64) -> f64 {
    std::time::Duration::from_millis(ms).as_secs_f64()
}
