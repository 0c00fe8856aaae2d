//! Requests of a master to its surroundings. Owns: the words. Does not know about: the receiver: a
//! scheduler, a program that starts processes, a person.

use std::collections::BTreeMap;
use std::io::Write as _;

use elastic_proto::v1::Evaluation;
use serde::Serialize;

/// A request or a notice about the pods of the job. Each is sent once; after the death of the
/// master `Status` has the requests that are still open.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "want", rename_all = "snake_case")]
pub enum Want {
    /// These pods have handed back their tasks: their places can be taken.
    Release {
        /// Names of pods.
        pods: Vec<String>,
    },
    /// These pods did not answer in time: stop them.
    Stop {
        /// Names of pods.
        pods: Vec<String>,
    },
    /// These pods are silent: stop them, and start others.
    Replace {
        /// Names of pods.
        pods: Vec<String>,
    },
    /// One pod cannot connect to another, and both answer: the younger hands back and leaves. A
    /// notice for people; no action is needed.
    Part {
        /// Name of the pod that cannot connect.
        pod: String,
        /// Name of the pod that it does not reach.
        unreached: String,
        /// The one of the two that leaves.
        leaves: String,
        /// Milliseconds for which the connection has failed.
        for_ms: u64,
    },
    /// The code of this pod failed. A notice for people; no action is needed.
    Show {
        /// Name of the pod.
        pod: String,
        /// The trace.
        message: String,
    },
    /// A version of the model was measured. A notice for people; no action is needed.
    Measured {
        /// The version; 0 for that of a job that only evaluates.
        version: u64,
        /// Records that it was measured with.
        records: u64,
        /// Metrics that are means, by name.
        metrics: BTreeMap<String, f64>,
    },
    /// The job has ended.
    Ended {
        /// Error of a failed job; `None` if it succeeded.
        failure: Option<String>,
    },
}

impl Want {
    pub(crate) fn measured(evaluation: &Evaluation) -> Self {
        let means = evaluation.metrics.iter().filter(|metric| metric.weight != 0.0);
        let metrics = means.map(|metric| (metric.name.clone(), metric.total / metric.weight));
        let (version, records) = (evaluation.model_version, evaluation.records);
        Self::Measured { version, records, metrics: metrics.collect() }
    }
}

/// Carries out what a master wants. Called by the thread that owns the job, so it must not block.
pub trait Outside: Send + 'static {
    /// Receives a request or a notice.
    fn want(&mut self, want: &Want);
}

/// Prints each want as a line of JSON.
#[derive(Debug, Clone, Copy, Default)]
pub struct Print;

impl Outside for Print {
    fn want(&mut self, want: &Want) {
        let mut out = std::io::stdout().lock();
        let line = serde_json::to_string(want).unwrap_or_else(|error| error.to_string());
        if let Err(error) = writeln!(out, "{line}") {
            tracing::warn!(%error, line, "nothing reads what the master wants");
        }
    }
}
