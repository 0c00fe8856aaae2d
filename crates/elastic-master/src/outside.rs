//! What a master wants of the world around it. Owns: the words. Does not know about: who carries
//! it out; a scheduler, a program that starts processes, a person.

use std::collections::BTreeMap;
use std::io::Write as _;

use elastic_proto::v1::Evaluation;
use serde::Serialize;

/// What is to be done with the pods of the job. It is said once; after the death of the master
/// `Status` has what is still to be done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "want", rename_all = "snake_case")]
pub enum Want {
    /// These have handed back what they had: their places can be taken.
    Release {
        /// Names of pods.
        pods: Vec<String>,
    },
    /// These did not answer in time: stop them.
    Stop {
        /// Names of pods.
        pods: Vec<String>,
    },
    /// These are silent: stop them, and start others.
    Replace {
        /// Names of pods.
        pods: Vec<String>,
    },
    /// One cannot connect to another, and both answer: the younger hands back and leaves. Nothing is to
    /// be done, but people want to see it.
    Part {
        /// Name of the pod that cannot connect.
        pod: String,
        /// And of the one that it does not reach.
        unreached: String,
        /// The one of the two that leaves.
        leaves: String,
        /// For so long.
        for_ms: u64,
    },
    /// The code of this one failed: nothing is to be done, but people want to see why.
    Show {
        /// Name of the pod.
        pod: String,
        /// The trace.
        message: String,
    },
    /// A version of the model was measured: nothing is to be done, but people want to see it.
    Measured {
        /// The version; 0 for that of a job that only evaluates.
        version: u64,
        /// With so many records.
        records: u64,
        /// Each metric that is a mean.
        metrics: BTreeMap<String, f64>,
    },
    /// The job has ended.
    Ended {
        /// Why it failed; nothing if it has not.
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
    /// This is wanted.
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
