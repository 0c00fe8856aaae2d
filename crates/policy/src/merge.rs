//! Changes of a policy: what is added to what there was, and what is taken away.

use api_types::PolicyBody;
use http_kit::{ApiError, take_part};
use serde_json::Value;

/// A policy after a change: without what is at the paths in `reset`, and with new values in the
/// place of those there were.
pub(crate) fn merge(
    mut kept: PolicyBody,
    change: &PolicyBody,
    reset: &[String],
) -> Result<PolicyBody, ApiError> {
    for (at, path) in reset.iter().enumerate() {
        let parts = [&mut kept.defaults, &mut kept.rules];
        let gone = parts.map(|part| part.as_mut().and_then(|part| take_part(part, path)));
        if gone.iter().all(Option::is_none) {
            let why = format!("`{}` has no default and no rule", units::shown(path));
            return Err(ApiError::field(&format!("reset[{at}]"), why));
        }
    }
    for (part, change) in [
        (&mut kept.defaults, &change.defaults),
        (&mut kept.rules, &change.rules),
        (&mut kept.imposed_assets, &change.imposed_assets),
    ] {
        if let Some(change) = change {
            put(part.get_or_insert_default(), change);
        }
    }
    Ok(kept)
}

/// Puts a value over another one, field by field.
fn put(to: &mut Value, change: &Value) {
    let Some(fields) = change.as_object() else {
        to.clone_from(change);
        return;
    };
    if !to.is_object() {
        *to = Value::Object(serde_json::Map::new());
    }
    for (name, change) in fields {
        put(&mut to[name], change);
    }
}
