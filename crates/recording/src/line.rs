//! The format: lines of JSON, each with a check sum of all lines of its segment up to it. Owns: the
//! content of a line, and the detection of damaged lines.

use orchestrator::{HandedOver, Input, Moment, NodeList, Settings, Settled};
use records::Snapshot;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::Instant;
use view::GpuFaults;

/// The version of the format that this release writes, and the only one that it reads.
pub(crate) const VERSION: u32 = 1;
/// This release.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// Text before the check sum, between the check sum and the line, and after the line.
const OPEN: &str = "{\"check\":\"";
const MIDDLE: &str = "\",\"line\":";
const CLOSE: &str = "}";
const SUM_BYTES: usize = 16;

/// Why a recording cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// The file does not begin as a recording.
    #[error(
        "this is not a recording; `elastane record FILE` makes one of what the server has done"
    )]
    NotOne,
    /// The recording has another version of the format.
    #[error(
        "the recording has format {0}, and this release reads format {VERSION}; replay it with the \
         release that made it"
    )]
    Version(u32),
    /// A line is not as it was written.
    #[error("line {number} is damaged: {why}")]
    Damaged {
        /// Number of the line in the file, from 1.
        number: u64,
        /// Reason.
        why: String,
    },
    /// The file cannot be read.
    #[error("cannot read the recording: {0}")]
    Unread(String),
    /// The state cannot be built.
    #[error("the state at line {number} cannot be built: {why}")]
    State {
        /// Number of the line in the file, from 1.
        number: u64,
        /// Reason.
        why: String,
    },
}

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SegmentLine {
    /// A segment begins.
    Recording(Head),
    /// The base that the state was built from.
    Base(Box<Base>),
    /// A batch of inputs.
    Batch(Box<Batch>),
    /// Batches are missing from here on, because the disk did not keep up.
    Gap,
}

/// The first line of a segment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) version: u32,
    pub(crate) release: String,
}

/// Everything from which a state is built.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Base {
    /// Stored rows.
    pub snapshot: Snapshot,
    /// The nodes.
    pub nodes: NodeList,
    /// Faults of real GPUs.
    pub gpus: GpuFaults,
    /// Window of past usage that counts for fairness; `None` if past usage does not count.
    #[serde(with = "usage")]
    pub usage: Option<model::UsageWindow>,
    /// Clock of the server when the state was built.
    pub settled: Settled,
    /// State handed over by the state before that is not stored.
    pub handed_over: HandedOver,
    /// Settings of the operator.
    #[serde(flatten)]
    pub settings: Settings,
}

/// A batch of inputs, and its outcome.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// Time of the batch; `None` for the first batch of a state, which has the time when the state
    /// was built.
    pub(crate) moment: Option<Moment>,
    /// The inputs, in order; `None` stands for a decision, which follows from the batches before.
    pub(crate) inputs: Vec<Option<Input>>,
    /// Time when a decision was requested after the batch; `None` if none was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked_at: Option<Instant>,
    /// Outcome as lines of text, truncated if there are many.
    pub(crate) came: Vec<String>,
    /// Check sum of all lines of the outcome, the truncated ones included.
    pub(crate) sum: String,
    /// Reason why the batch failed and had no effect; `None` if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
}

/// A running check sum of texts: FNV-1a. It detects accidents, not forgery.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sum(u64);

impl Sum {
    pub(crate) const NONE: Self = Self(0xcbf2_9ce4_8422_2325);

    #[must_use]
    pub(crate) fn of(self, bytes: &[u8]) -> Self {
        let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self(bytes.iter().fold(self.0, step))
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Appends a line to `to`, and updates `sum`, the check sum of the lines before it in the segment.
pub(crate) fn write(json: &str, sum: &mut Sum, to: &mut String) {
    *sum = sum.of(json.as_bytes());
    to.push_str(OPEN);
    to.push_str(&sum.to_string());
    to.push_str(MIDDLE);
    to.push_str(json);
    to.push_str(CLOSE);
    to.push('\n');
}

/// The check sum of a line, and its JSON.
fn parts(text: &str) -> Option<(&str, &str)> {
    let (sum, rest) = text.strip_prefix(OPEN)?.split_at_checked(SUM_BYTES)?;
    Some((sum, rest.strip_prefix(MIDDLE)?.strip_suffix(CLOSE)?))
}

/// Reads a line, and updates `sum`, the check sum of the lines before it in the segment. The first
/// line of a segment restarts the check sum.
pub(crate) fn read(text: &str, number: u64, sum: &mut Sum) -> Result<SegmentLine, Fault> {
    let damaged = |why: String| Fault::Damaged { number, why };
    let Some((expected, json)) = parts(text) else {
        return Err(match number {
            1 => Fault::NotOne,
            _ => damaged("it is not a line of a recording, or not a whole one".to_owned()),
        });
    };
    let begins = json.starts_with("{\"recording\":");
    *sum = if begins { Sum::NONE } else { *sum }.of(json.as_bytes());
    if sum.to_string() != expected {
        return Err(damaged("its check sum is another".to_owned()));
    }
    if begins
        && let Ok(Version { recording: Format { version } }) = serde_json::from_str(json)
        && version != VERSION
    {
        return Err(Fault::Version(version));
    }
    serde_json::from_str(json).map_err(|error| damaged(error.to_string()))
}

/// Part of the first line that all versions of the format have in common.
#[derive(Deserialize)]
struct Version {
    recording: Format,
}

#[derive(Deserialize)]
struct Format {
    version: u32,
}

/// Serialization of a window of usage.
mod usage {
    use model::{UsageWindow, WindowKind};
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use units::Instant;

    #[derive(Serialize, Deserialize)]
    struct Wire {
        length_ms: u64,
        half_life_ms: Option<u64>,
        tumbles_from: Option<Instant>,
    }

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(
        usage: &Option<UsageWindow>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let wire = usage.map(|window| Wire {
            length_ms: window.length_ms(),
            half_life_ms: window.half_life_ms(),
            tumbles_from: match window.kind() {
                WindowKind::Sliding => None,
                WindowKind::Tumbling { start } => Some(start),
            },
        });
        wire.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<UsageWindow>, D::Error> {
        let wire: Option<Wire> = Deserialize::deserialize(from)?;
        let window = |Wire { length_ms, half_life_ms, tumbles_from }| {
            let kind =
                tumbles_from.map_or(WindowKind::Sliding, |start| WindowKind::Tumbling { start });
            UsageWindow::new(length_ms, kind, half_life_ms).map_err(D::Error::custom)
        };
        wire.map(window).transpose()
    }
}
