//! Config maps of projects: texts under keys, which workloads get as files and variables. Owns:
//! their allowed names and contents, and the config map that a workload refers to. As in Kubernetes
//! that is the one with the name when a run starts. Does not know about: how a run gets it.

use std::collections::BTreeMap;
use std::sync::Arc;

use spec::{CONFIG_MAP, SecretUse};

use crate::Error;
use crate::documents::Documents;
use view::{Object, SECRETS, Scope};

/// Maximum size of a config map, keys and texts, in bytes; equal to that of Kubernetes.
pub const CONFIG_MAP_BYTES_MAX: usize = 1 << 20;
/// Maximum length of a name or key, in bytes; equal to that of Kubernetes.
const NAME_BYTES_MAX: usize = 253;

/// Checks the name and the contents of a config map.
///
/// # Errors
/// Its name, a key or its size is not allowed.
pub fn check_config_map(name: &str, data: &BTreeMap<String, String>) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let label = |part: &str| {
        part.starts_with(plain)
            && part.ends_with(plain)
            && part.chars().all(|c| plain(c) || c == '-')
    };
    if name.len() > NAME_BYTES_MAX || !name.split('.').all(label) {
        let name = units::shown(name);
        let why = format!(
            "name `{name}` is not allowed; small letters, digits, `-` and `.`, such as train-settings"
        );
        return Err(Error::invalid("name", why));
    }
    let allowed = |key: &str| {
        let known = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        (1..=NAME_BYTES_MAX).contains(&key.len())
            && key.chars().all(known)
            && !key.starts_with("..")
    };
    if let Some(key) = data.keys().find(|key| *key == "." || !allowed(key)) {
        let key = units::shown(key);
        let why = format!(
            "key `{key}` is not allowed; letters, digits, `-`, `_` and `.`, such as train.yaml"
        );
        return Err(Error::invalid("data", why));
    }
    let bytes = bytes_of(data.iter().map(|(key, text)| (key.as_str(), text.as_str())));
    if bytes > CONFIG_MAP_BYTES_MAX {
        let why = format!(
            "{bytes} bytes are too many; at most {CONFIG_MAP_BYTES_MAX} are allowed in a config map. \
             Copy larger files from a repository or a bucket, or keep them on a volume"
        );
        return Err(Error::invalid("data", why));
    }
    Ok(())
}

/// The texts of a config map by their keys. They are stored in the part of the body that is removed
/// when the object is deleted.
pub fn texts_of(object: &Object) -> impl Iterator<Item = (&str, &str)> {
    let all = object.body[SECRETS].as_object().into_iter().flatten();
    all.filter_map(|(key, text)| Some((key.as_str(), text.as_str()?)))
}

/// Size of texts and their keys, in bytes.
pub fn bytes_of<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> usize {
    texts.map(|(key, text)| key.len() + text.len()).sum()
}

impl Documents {
    /// The object that holds a value for the workloads of a project.
    pub(crate) fn keeper(&self, project_id: u64, of: &SecretUse) -> Option<&Arc<Object>> {
        match of.config_map() {
            Some(name) => self.objects.named(CONFIG_MAP, Scope::Project(project_id), name),
            None => {
                let (kind, id) = of.object.split_once('/')?;
                self.objects.get(kind, id)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_keys_are_those_of_kubernetes() {
        let check = |name: &str, key: &str| {
            let data = BTreeMap::from([(key.to_owned(), "x".to_owned())]);
            check_config_map(name, &data).is_ok()
        };
        for (name, key) in [("a", "K"), ("a-1.b", "train.yaml"), ("1", ".hidden"), ("a", "-_.9")] {
            assert!(check(name, key), "{name} {key}");
        }
        for name in ["", "A", "-a", "a-", "a..b", "a_b", "a/b", &"a".repeat(254)] {
            assert!(!check(name, "k"), "{name}");
        }
        for key in ["", ".", "..", "..x", "a/b", "ä", "a b", &"a".repeat(254)] {
            assert!(!check("a", key), "{key}");
        }
    }

    #[test]
    fn a_config_map_holds_a_mebibyte_and_no_more() {
        let of = |bytes: usize| BTreeMap::from([("k".to_owned(), "x".repeat(bytes - 1))]);
        assert!(check_config_map("a", &of(CONFIG_MAP_BYTES_MAX)).is_ok());
        let why = check_config_map("a", &of(CONFIG_MAP_BYTES_MAX + 1)).unwrap_err().to_string();
        assert!(why.contains("1048577 bytes are too many"), "{why}");
    }
}
