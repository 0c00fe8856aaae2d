//! List of the flags, as data: those of the first form, of the later commands, and of images. Does
//! not know about: parsing, and the use of the values.

mod job;
mod seed;
mod zoo;

pub use job::{COMMON, EVALUATE, PREDICT, TRAIN};
pub use seed::SEED;
pub use zoo::{BUILD, CLEAN, INIT};

use std::sync::LazyLock;

use crate::flag::{Flag, Takes};

/// Image pull policies.
const PULL_POLICIES: &[&str] = &["Never", "IfNotPresent", "Always"];
/// Python log levels.
const LOG_LEVELS: &[&str] = &["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

const LOG_LEVEL: &str = "Least level of what the code of the model logs with Python's logging";
/// Reason why the priority of the master and the servers cannot be set.
const POD_PRIORITY: &str = "a job has one priority, that of --worker_pod_priority, and its master \
                            and parameter servers are never stopped without it";

/// A flag that was not published: the number of unreadable records after which a job fails.
const BAD_RECORDS_MAX: Flag = Flag::new(
    "bad_records_max",
    Takes::Count,
    "The job fails at more unreadable records than this",
)
.or("0");

/// A flag that was not published: the treatment of stale gradients.
const GRADIENTS: Flag = Flag::new(
    "gradients",
    Takes::OneOf(&["wait", "reject"]),
    "wait: workers compute no gradient that would be too old; reject, as published: they compute \
     those again; the default, unless --sync_version_tolerance is given, is wait",
);

/// A flag that was not published: the maximum staleness of gradients in asynchronous updates.
const STALENESS_MAX: Flag = Flag::new(
    "staleness_max",
    Takes::Count,
    "With --use_async: how old a gradient may be, in versions; 0: no bound. --gradients says whether \
     workers wait or compute again",
)
.or("0");

/// A flag that was not published.
const TLS: Flag =
    Flag::new("tls", Takes::OnOff, "The parts of the job encrypt what they send each other")
        .or("false");

/// Flags of `train` on `evaluate`, where tutorials have some of them.
pub static OF_TRAINING_FOR_EVALUATE: LazyLock<Vec<Flag>> = LazyLock::new(|| without(EVALUATE));
/// Flags of `train` on `predict`.
pub static OF_TRAINING_FOR_PREDICT: LazyLock<Vec<Flag>> = LazyLock::new(|| without(PREDICT));

/// The flags of `train` that are not among these, with a note that they have no effect.
fn without(own: &'static [Flag]) -> Vec<Flag> {
    let others = TRAIN.iter().filter(|flag| find(&[own], flag.name).is_none());
    others.map(|flag| flag.elsewhere("nothing is trained")).collect()
}

/// The flag of this name among those of some tables.
#[must_use]
pub fn find(tables: &[&'static [Flag]], name: &str) -> Option<&'static Flag> {
    tables.iter().flat_map(|table| table.iter()).find(|flag| flag.name == name)
}
