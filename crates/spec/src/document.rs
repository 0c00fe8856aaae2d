//! Documents that are stored. Owns: the version in each, and the upgrade of an older one to the
//! newest.
//!
//! A document is the JSON object of its type with `document_version` before its fields; one without
//! a version has version 1. Each version after the first has a step, which upgrades a document of
//! the version before. A step is never changed once it was released. A document of a newer version
//! is refused: fields that this program does not know would be lost when it is written again.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Error, Value};

/// Upgrades a document from one version to the next.
pub type Step = fn(&mut Value);

/// A type that is stored as a document.
pub trait Document: Serialize + DeserializeOwned {
    /// Noun for messages, such as "specification of a workload".
    const WHAT: &'static str;
    /// From version 1 to 2, from 2 to 3, and so on.
    const STEPS: &'static [Step] = &[];
}

/// Error of reading a document.
#[derive(Debug)]
pub enum Unreadable {
    /// Its version is newer than this program knows.
    Newer {
        /// Noun of the document, for messages.
        what: &'static str,
        /// Its version.
        found: u32,
        /// The newest version that is known.
        known: u32,
    },
    /// The text is no valid document.
    Wrong(Error),
}

impl From<Error> for Unreadable {
    fn from(error: Error) -> Self {
        Self::Wrong(error)
    }
}

/// Beginning of a document that has a version.
const HEAD: &str = "{\"document_version\":";
const KEY: &str = "document_version";

/// The newest version of a document.
#[must_use]
pub fn version_of<D: Document>() -> u32 {
    newest(D::STEPS)
}

fn newest(steps: &[Step]) -> u32 {
    u32::try_from(steps.len()).unwrap_or(u32::MAX).saturating_add(1)
}

/// Writes a document as text.
///
/// # Errors
/// It is no JSON object.
pub fn write<D: Document>(document: &D) -> Result<String, Error> {
    versioned(&serde_json::to_string(document)?, version_of::<D>())
}

/// Writes a document whose type only its owner knows. Its version is 1.
///
/// # Errors
/// It is no JSON object.
pub fn write_value(document: &Value) -> Result<String, Error> {
    versioned(&document.to_string(), 1)
}

fn versioned(text: &str, version: u32) -> Result<String, Error> {
    let fields = text.strip_prefix('{').ok_or_else(|| Error::custom("it is not a JSON object"))?;
    let comma = if fields == "}" { "" } else { "," };
    Ok(format!("{HEAD}{version}{comma}{fields}"))
}

/// Reads a document from its text.
///
/// # Errors
/// The document is newer than this program, or is invalid.
pub fn read<D: Document>(text: &str) -> Result<D, Unreadable> {
    let found = found(text)?;
    let (known, what) = (version_of::<D>(), D::WHAT);
    if found > known {
        return Err(Unreadable::Newer { what, found, known });
    }
    if found == known {
        return Ok(serde_json::from_str(text)?);
    }
    let mut document: Value = serde_json::from_str(text)?;
    let done = usize::try_from(found - 1).unwrap_or(usize::MAX);
    D::STEPS.iter().skip(done).for_each(|step| step(&mut document));
    Ok(serde_json::from_value(document)?)
}

/// Reads a document whose type only its owner knows.
///
/// # Errors
/// The document is newer than this program, or is invalid.
pub fn read_value(text: &str, what: &'static str) -> Result<Value, Unreadable> {
    let found = found(text)?;
    if found > 1 {
        return Err(Unreadable::Newer { what, found, known: 1 });
    }
    let mut document: Value = serde_json::from_str(text)?;
    if let Some(fields) = document.as_object_mut() {
        fields.remove(KEY);
    }
    Ok(document)
}

/// Version of a document. Documents written here begin with it, so they are not parsed twice.
fn found(text: &str) -> Result<u32, Error> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default = "first")]
        document_version: u32,
    }
    let digits = text.strip_prefix(HEAD).and_then(|rest| rest.split([',', '}']).next());
    let found = match digits.and_then(|digits| digits.parse().ok()) {
        Some(found) => found,
        None => serde_json::from_str::<Head>(text)?.document_version,
    };
    if found == 0 {
        return Err(Error::custom("there is no document version 0"));
    }
    Ok(found)
}

const fn first() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Pet {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        names: Option<Vec<String>>,
    }

    impl Document for Pet {
        const WHAT: &'static str = "pet";
        const STEPS: &'static [Step] = &[
            |pet| {
                let name = pet.as_object_mut().and_then(|pet| pet.remove("called"));
                pet["name"] = name.unwrap_or_default();
            },
            |pet| pet["names"] = json!([pet["name"].take()]),
        ];
    }

    fn named(text: &str) -> Option<Vec<String>> {
        read::<Pet>(text).unwrap().names
    }

    #[test]
    fn a_document_of_every_version_is_read() {
        let rex = || Some(vec!["rex".to_owned()]);
        assert_eq!(named(r#"{"called":"rex"}"#), rex());
        assert_eq!(named(r#"{"document_version":1,"called":"rex"}"#), rex());
        assert_eq!(named(r#"{"document_version":2,"name":"rex"}"#), rex());
        // Another program may have written its fields in another order.
        assert_eq!(named(r#"{"names":["rex"], "document_version": 3}"#), rex());
        for pet in [Pet { names: rex() }, Pet { names: None }] {
            assert_eq!(read::<Pet>(&write(&pet).unwrap()).unwrap(), pet);
        }
        assert_eq!(write(&Pet { names: None }).unwrap(), r#"{"document_version":3}"#);
        assert!(write_value(&json!([])).is_err());
    }

    #[test]
    fn a_newer_document_is_refused_by_name() {
        let newer = read::<Pet>(r#"{"document_version":4,"names":{}}"#).unwrap_err();
        let Unreadable::Newer { what, found, known } = newer else { panic!("{newer:?}") };
        assert_eq!((what, found, known), ("pet", 4, 3));
        let newer = read_value(r#"{"x":1,"document_version":2}"#, "object").unwrap_err();
        assert!(matches!(newer, Unreadable::Newer { what: "object", .. }), "{newer:?}");
        for wrong in [r#"{"document_version":0}"#, r#"{"document_version":"x"}"#, "[]x"] {
            assert!(matches!(read::<Pet>(wrong), Err(Unreadable::Wrong(_))), "{wrong}");
        }
    }

    #[test]
    fn what_only_its_owner_knows_comes_back_as_it_was() {
        for value in [json!({}), json!({"a": [1, {"b": null}]})] {
            let text = write_value(&value).unwrap();
            assert_eq!(read_value(&text, "object").unwrap(), value, "{text}");
        }
        assert_eq!(read_value(r#"{"a":1}"#, "object").unwrap(), json!({"a": 1}));
    }
}
