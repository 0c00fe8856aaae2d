//! Check of every field of a manifest against the list of fields. Owns: that all refused fields are
//! reported at once, and that one note names all fields without effect. Does not know the meaning
//! of any field.

use http_kit::{ApiError, nearest};
use serde_json::{Map, Value};

use super::fields::{Fate, Field};

/// Maximum number of fields that a message names.
const NAMED_MAX: usize = 25;

/// Fields without effect, and refused fields.
#[derive(Debug, Default)]
pub(super) struct Screened {
    noted: Vec<String>,
    refused: Vec<(String, String)>,
}

impl Screened {
    /// Removes the fields that are not used from a part of a manifest.
    pub(super) fn screen(&mut self, at: &str, part: &mut Value, known: &'static [Field]) {
        match part {
            Value::Object(fields) => self.object(at, fields, known),
            Value::Array(items) => {
                for (number, item) in items.iter_mut().enumerate() {
                    self.screen(&format!("{at}[{number}]"), item, known);
                }
            }
            // A value of another type is reported where it is parsed.
            _ => {}
        }
    }

    fn object(&mut self, at: &str, fields: &mut Map<String, Value>, known: &'static [Field]) {
        fields.retain(|name, value| {
            // Kubernetes treats null like a missing field.
            if value.is_null() {
                return false;
            }
            let inner = format!("{at}.{}", units::shown(name));
            match fate(known, name) {
                Some(Fate::Acts) => return true,
                Some(Fate::In(known)) => {
                    self.screen(&inner, value, known);
                    return true;
                }
                Some(Fate::Named(known)) => {
                    for (name, value) in value.as_object_mut().into_iter().flatten() {
                        self.screen(&format!("{inner}.{}", units::shown(name)), value, known);
                    }
                    return true;
                }
                Some(Fate::Usual(values)) if values.iter().any(|usual| *value == *usual) => {}
                Some(Fate::Noted | Fate::Usual(_)) if says_nothing(value) => {}
                Some(Fate::Noted | Fate::Usual(_)) => self.note(&inner),
                Some(Fate::Refused(why)) => {
                    self.refused.push((inner, format!("is refused: {why}; leave it out")));
                }
                None => self.refused.push((inner, unknown(name, known))),
            }
            false
        });
    }

    /// Records a field or a value without effect.
    pub(super) fn note(&mut self, what: &str) {
        self.noted.push(what.strip_prefix("manifest.").unwrap_or(what).to_owned());
    }

    /// # Errors
    /// Refused fields: the error names all of them.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        if self.refused.is_empty() {
            return Ok(());
        }
        let each: Vec<_> = self.refused.iter().map(|(at, why)| format!("{at}: {why}")).collect();
        Err(ApiError::bad(some_of(&each, "; ")))
    }

    /// The note that names all fields without effect.
    pub(super) fn into_note(self) -> Option<String> {
        (!self.noted.is_empty()).then(|| format!("no effect here: {}", some_of(&self.noted, ", ")))
    }
}

fn fate(known: &'static [Field], name: &str) -> Option<Fate> {
    let is_it = |known: &str| match known.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == known,
    };
    known.iter().find(|(known, _)| is_it(known)).map(|(_, fate)| *fate)
}

fn unknown(name: &str, known: &'static [Field]) -> String {
    match nearest(name, known.iter().map(|(known, _)| *known)) {
        Some(near) => format!("unknown field; did you mean `{near}`?"),
        None => "unknown field; leave it out".to_owned(),
    }
}

/// `false`, an empty list and the like.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn some_of(all: &[String], between: &str) -> String {
    let shown = all.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(between);
    match all.len().saturating_sub(NAMED_MAX) {
        0 => shown,
        more => format!("{shown}{between}and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fields::POD;
    use super::*;

    #[test]
    fn all_refused_fields_are_named_at_once_and_one_note_names_those_without_effect() {
        let mut pod = json!({
            "dnsPolicy": "None", "schedulerName": "kai-scheduler", "hostname": null,
            "initContainers": [{}], "container": [], "volumes": [{"name": "a", "csi": {}}],
            "containers": [{"image": "i", "ports": [{"containerPort": 80}], "lifecycle": {},
                "resources": {"limits": {"amd.com/gpu": 1, "rdma/hca": 1, "nvidia.com/mig-1g.5gb": 1}}}],
        });
        let mut screened = Screened::default();
        screened.screen("manifest.spec", &mut pod, POD);
        let text = screened.check().unwrap_err().message();
        for part in [
            "manifest.spec.initContainers: is refused: a pod here is one process; leave it out",
            "manifest.spec.container: unknown field; did you mean `containers`?",
            "manifest.spec.volumes[0].csi: is refused: volumes here are emptyDir",
            "manifest.spec.containers[0].resources.limits.amd.com/gpu: is refused: no node has it",
        ] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
        let note = "no effect here: spec.containers[0].ports, \
                    spec.containers[0].resources.limits.rdma/hca, spec.dnsPolicy";
        assert_eq!(screened.into_note().as_deref(), Some(note));
        let left = json!({"containers": [{"image": "i",
            "resources": {"limits": {"nvidia.com/mig-1g.5gb": 1}}}], "volumes": [{"name": "a"}]});
        assert_eq!(pod, left);
    }

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let all: Vec<_> = (0..30).map(|number| number.to_string()).collect();
        assert!(some_of(&all, ", ").ends_with("23, 24, and 5 more"));
    }
}
