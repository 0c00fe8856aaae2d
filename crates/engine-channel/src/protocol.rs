//! The messages on a channel. Owns: their fields and limits. One connection carries one request, a
//! line of JSON, and its answer, another line.

use serde::{Deserialize, Serialize};

/// The longest request, in bytes.
pub(crate) const REQUEST_BYTES_MAX: usize = 4096;
/// The latest next checkpoint that can be announced, in seconds.
pub const NEXT_IN_S_MAX: f64 = 86_400.0;

/// The latest generation of a world, the most pods in it, and the longest address of its store.
const GENERATION_MAX: u64 = 1 << 53;
const SIZE_MAX: u32 = 100_000;
const WAIT_MS_MAX: u64 = 86_400_000;
const ADDRESS_BYTES_MAX: usize = 256;

/// A request of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Request {
    /// A checkpoint was written. The message carries one open file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint: Option<Saved>,
    /// The next checkpoint will be complete in this many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_in_s: Option<f64>,
    /// The run asks whether the server waits for a checkpoint.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) asks: bool,
    /// The run meets the others of its workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) meet: Option<Meet>,
}

/// A request of a run to join the rendezvous of its workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Meet {
    /// Minimum and maximum number of pods of a world.
    pub(crate) min: u32,
    pub(crate) max: u32,
    /// The number of pods is a multiple of this.
    #[serde(default = "one")]
    pub(crate) unit: u32,
    /// How long the first world waits for more pods once there are enough, in milliseconds.
    #[serde(default)]
    pub(crate) wait_ms: u64,
    /// The last world of the run; `None` if it was in none.
    #[serde(default)]
    pub(crate) of: Option<Seat>,
    /// Nothing of the run computes: it waits for the next world.
    #[serde(default)]
    pub(crate) arrives: bool,
    /// The first of a world: where the others find the store.
    #[serde(default)]
    pub(crate) store: Option<Store>,
    /// The script has ended well, so there is no other world.
    #[serde(default)]
    pub(crate) done: bool,
    /// The agent ends with an error: the others go on without this run.
    #[serde(default)]
    pub(crate) leaves: bool,
}

/// A place in a world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seat {
    pub(crate) generation: u64,
    pub(crate) rank: u32,
    pub(crate) size: u32,
}

/// Where the pods of a world exchange what they need of each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Store {
    pub(crate) generation: u64,
    pub(crate) address: String,
}

const fn one() -> u32 {
    1
}

/// The answer to one that meets the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct World {
    pub(crate) generation: u64,
    /// Rank of the run; `None` if it is not in the world.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rank: Option<u32>,
    pub(crate) size: u32,
    /// True if it is another world than the last that the run was in.
    pub(crate) changed: bool,
    /// All have arrived, and their store is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<String>,
    /// The script has ended well somewhere.
    pub(crate) over: bool,
    /// True if it has ended well in this run, whose next `torchrun` cannot use the server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) used: bool,
}

/// A checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Saved {
    /// The step of the training, which only rises.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<u64>,
}

/// The answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Reply {
    pub(crate) ok: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// Seconds that the server still waits for a checkpoint; `None` if it waits for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) save_within_s: Option<f64>,
    /// Where the run meets the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) world: Option<World>,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// Reason why the request is invalid.
    pub(crate) fn read(line: &[u8]) -> Result<Self, String> {
        let request: Self = serde_json::from_slice(line)
            .map_err(|error| format!("the request cannot be read: {error}"))?;
        let is_empty = request.checkpoint.is_none() && request.next_in_s.is_none();
        if is_empty && !request.asks && request.meet.is_none() {
            let all = "`checkpoint`, `next_in_s`, `asks` and `meet`";
            return Err(format!("the request has none of {all}"));
        }
        if let Some(meet) = &request.meet {
            meet.check()?;
        }
        let is_span = |seconds: f64| (0.0..=NEXT_IN_S_MAX).contains(&seconds);
        match request.next_in_s {
            Some(seconds) if !is_span(seconds) => Err(format!(
                "`next_in_s` is {seconds}; it is a number of seconds from 0 to {NEXT_IN_S_MAX}"
            )),
            _ => Ok(request),
        }
    }
}

impl Meet {
    fn check(&self) -> Result<(), String> {
        let seat = self.of.unwrap_or_default();
        let address = self.store.as_ref().map_or(0, |store| store.address.len());
        for (field, value, most) in [
            ("max", u64::from(self.max), u64::from(SIZE_MAX)),
            ("wait_ms", self.wait_ms, WAIT_MS_MAX),
            ("of.generation", seat.generation, GENERATION_MAX),
            ("length of store.address", address as u64, ADDRESS_BYTES_MAX as u64),
        ] {
            if value > most {
                return Err(format!("`meet`: {field} is {value}; at most {most} is allowed"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_or_the_answer_says_what_is_wrong() {
        let read = |text: &str| Request::read(text.as_bytes());
        let saved = Request {
            checkpoint: Some(Saved { step: Some(7) }),
            next_in_s: Some(2.5),
            ..Request::default()
        };
        assert_eq!(read(r#"{"checkpoint": {"step": 7}, "next_in_s": 2.5}"#), Ok(saved.clone()));
        assert_eq!(read(&serde_json::to_string(&saved).unwrap()), Ok(saved));
        let asks = Request { asks: true, ..Request::default() };
        assert_eq!(read(r#"{"asks": true}"#), Ok(asks));
        for (text, part) in [
            ("", "cannot be read"),
            ("{}", "none of"),
            (r#"{"asks": false}"#, "none of"),
            (r#"{"next_in_s": -1}"#, "from 0 to 86400"),
            (r#"{"next_in_s": 1e99}"#, "from 0 to 86400"),
            (r#"{"checkpoint": {"step": -1}}"#, "cannot be read"),
            (r#"{"checkpoint": {"path": "/etc/passwd"}}"#, "unknown field `path`"),
            (r#"{"meet": {"min": 1}}"#, "missing field `max`"),
            (
                r#"{"meet": {"min": 1, "max": 2, "of": {"generation": 9007199254740993, "rank": 0, "size": 1}}}"#,
                "of.generation is 9007199254740993",
            ),
        ] {
            let why = read(text).expect_err(text);
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
