//! A new key for what credentials keep. Owns: that everything is sealed with the newest key soon
//! after a start, and that what cannot be opened is logged.

use auth::{Vault, key_of};
use control::Handle;
use orchestrator::Edit;
use serde_json::Value;
use view::{Object, SECRETS};

use super::credentials::ALL;

/// Re-encrypts every credential that is sealed with an older key.
pub async fn reseal(control: &Handle, vault: &Vault) {
    let view = control.view();
    let all =
        ALL.iter().flat_map(|kind| view.objects.all(kind).into_iter().map(move |o| (*kind, o)));
    let old =
        |object: &Object| sealed(object).is_some_and(|text| key_of(text) != Some(vault.current()));
    for (kind, object) in all.filter(|(_, object)| old(object)) {
        let own = vault.clone();
        let edit = Edit::new(move |object| again(&own, object));
        if let Err(error) = control.update_object("system", kind, &object.id, edit).await {
            tracing::error!("credential `{}` stays as it is: {error}", object.name);
        }
    }
}

fn sealed(object: &Object) -> Option<&str> {
    object.body[SECRETS].as_str()
}

fn again(vault: &Vault, object: &Object) -> Result<(String, Value), orchestrator::Error> {
    let failed = |error: &dyn std::fmt::Display| orchestrator::Error::Internal {
        message: error.to_string(),
    };
    let text = sealed(object).unwrap_or_default();
    let values = vault.unseal(&object.key(), text).map_err(|error| failed(&error))?;
    let text = vault.seal(&object.key(), &values).map_err(|error| failed(&error))?;
    let mut body = object.body.clone();
    body["spec"]["keyId"] = key_of(&text).into();
    body[SECRETS] = text.into();
    Ok((object.name.clone(), body))
}
