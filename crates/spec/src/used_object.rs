//! Objects from which a workload took values: assets, a template, credentials.

use serde::{Deserialize, Serialize};

/// An object from which a workload took values, as it was at the submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct UsedObject {
    /// `<kind>/<id>`.
    pub key: String,
    /// Its name; empty in workloads of before names were recorded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

impl UsedObject {
    /// Its kind and its id.
    #[must_use]
    pub fn kind_and_id(&self) -> (&str, &str) {
        self.key.split_once('/').unwrap_or_default()
    }
}

/// The forms in which it is written: in recordings of before names were recorded, the key alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Key(String),
    Named {
        key: String,
        #[serde(default)]
        name: String,
    },
}

impl From<Stored> for UsedObject {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Key(key) => Self { key, name: String::new() },
            Stored::Named { key, name } => Self { key, name },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_was_the_key_alone() {
        let read = |text: &str| serde_json::from_str::<UsedObject>(text).expect("readable");
        let old = read("\"compute-asset/7\"");
        assert_eq!((old.kind_and_id(), &*old.name), (("compute-asset", "7"), ""));
        let new = UsedObject { key: "template/8".to_owned(), name: "std".to_owned() };
        assert_eq!(read(&serde_json::to_string(&new).expect("written")), new);
    }
}
