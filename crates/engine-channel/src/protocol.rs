//! The messages on a channel. Owns: their fields and limits. One connection carries one request, a line
//! of JSON, and its answer, another line.

use serde::{Deserialize, Serialize};

/// The longest request, in bytes.
pub(crate) const REQUEST_BYTES_MAX: usize = 4096;
/// The latest next checkpoint that can be announced, in seconds.
pub const NEXT_IN_S_MAX: f64 = 86_400.0;

/// What a run reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Request {
    /// A checkpoint was written. The message carries one open file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint: Option<Saved>,
    /// The next one will be complete in so many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_in_s: Option<f64>,
    /// The run wants to know whether a checkpoint of it is waited for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) asks: bool,
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
    /// A checkpoint is waited for, for so many seconds more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) save_within_s: Option<f64>,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(line: &[u8]) -> Result<Self, String> {
        let request: Self = serde_json::from_slice(line)
            .map_err(|error| format!("the request cannot be read: {error}"))?;
        if request.checkpoint.is_none() && request.next_in_s.is_none() && !request.asks {
            return Err("the request has none of `checkpoint`, `next_in_s` and `asks`".to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_or_the_answer_says_what_is_wrong() {
        let read = |text: &str| Request::read(text.as_bytes());
        let saved = Request {
            checkpoint: Some(Saved { step: Some(7) }),
            next_in_s: Some(2.5),
            asks: false,
        };
        assert_eq!(read(r#"{"checkpoint": {"step": 7}, "next_in_s": 2.5}"#), Ok(saved));
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
        ] {
            let why = read(text).expect_err(text);
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
