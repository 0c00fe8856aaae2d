//! Reading: YAML or JSON (which is YAML) to scenario types, with the position of every error. Owns:
//! the one use of the YAML library. Does not know about: the meaning of a scenario.

use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use super::VERSION;
use crate::Error;

/// A value and its position. The position is not part of the value.
#[derive(Debug, Clone, Default)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Line, from 1; 0 for a value that was not read.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
}

impl<T> From<T> for At<T> {
    fn from(value: T) -> Self {
        Self { value, line: 0, column: 0 }
    }
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> At<T> {
    /// An error at this position.
    pub(crate) fn fault(&self, message: impl Into<String>) -> Error {
        Error::Scenario { line: self.line, column: self.column, message: message.into() }
    }
}

impl<T> std::ops::Deref for At<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Serialize> Serialize for At<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = serde_saphyr::Spanned::<T>::deserialize(deserializer)?;
        let at = found.referenced;
        Ok(Self { value: found.value, line: at.line(), column: at.column() })
    }
}

/// The part that is read if the rest is invalid: the version shows whether the file is a scenario.
#[derive(Deserialize)]
struct Version {
    version: Option<At<u32>>,
}

/// Reads a document.
///
/// # Errors
/// The first error, with its position; for an unknown key also the nearest known one.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let wrong = match parse::<T>(text) {
        Ok(value) => return Ok(value),
        Err(wrong) => wrong,
    };
    match parse::<Version>(text) {
        Ok(Version { version: Some(version) }) if version.value != VERSION => {
            Err(wrong_version(&version))
        }
        _ => Err(fault(&wrong)),
    }
}

/// Refuses a file of another version.
pub(crate) fn wrong_version(version: &At<u32>) -> Error {
    version.fault(format!(
        "version {} is not known; this program reads version {VERSION}",
        version.value
    ))
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    // The size of a scenario is bounded by its own limits, whose errors name them.
    let options =
        serde_saphyr::options! { budget: None, with_snippet: false, strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options)
}

fn fault(error: &serde_saphyr::Error) -> Error {
    use serde_saphyr::Error as E;
    let place = error.location();
    let (line, column) = place.map_or((0, 0), |at| (at.line(), at.column()));
    let message = match error.without_snippet() {
        E::SerdeUnknownField { field, expected, .. } => unknown("key", field, expected),
        E::SerdeUnknownVariant { variant, expected, .. } => unknown("value", variant, expected),
        E::SerdeMissingField { field, .. } => format!("key `{field}` is missing"),
        E::DuplicateMappingKey { key, .. } => {
            format!("key `{}` is given twice", key.as_deref().unwrap_or_default())
        }
        E::InvalidScalar { ty: ty @ ("u32" | "u64" | "usize"), .. } => {
            let most = if *ty == "u32" { u64::from(u32::MAX) } else { u64::MAX };
            format!("this must be a whole number from 0 to {most}")
        }
        E::NonFiniteFloat { value, .. } => {
            format!("`{value}` is not a number that can be counted with")
        }
        E::Unexpected { expected: "sequence start", .. } => {
            "this must be a list, such as `[a, b]` or lines that begin with `- `".to_owned()
        }
        E::Unexpected { expected: "mapping start", .. } => {
            "this must be keys with values, such as `{name: a}`".to_owned()
        }
        E::Eof { .. } => "the file is empty or ends too early".to_owned(),
        other => {
            let text = other.render_with_formatter(&serde_saphyr::UserMessageFormatter);
            let end = text.rfind(" at line ").unwrap_or(text.len());
            text[..end].to_owned()
        }
    };
    Error::Scenario { line, column, message }
}

fn unknown(what: &str, found: &str, known: &[&str]) -> String {
    match crate::suggest::nearest(found, known.iter().copied()) {
        Some(near) => format!("unknown {what} `{found}`; did you mean `{near}`?"),
        None => format!("unknown {what} `{found}`; known are {}", known.join(", ")),
    }
}
