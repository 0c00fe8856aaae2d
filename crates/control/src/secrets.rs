//! Secrets of runs. Owns: from what a credential keeps to what a run gets, at the last moment
//! before it starts. Refuses to know: how values are sealed, and what credentials there are.

use std::path::{Component, Path};

use engine::{RunSpec, Secret, SecretPlace};

use crate::options::Unseal;
use crate::state::{Sealed, Start};

/// The run with its secrets, or why it cannot have them.
pub(crate) fn complete(start: Start, unseal: &Unseal) -> Result<RunSpec, String> {
    let Start { mut spec, sealed } = start;
    for one in sealed {
        values(one, unseal, &mut spec.secrets)?;
    }
    Ok(spec)
}

fn values(sealed: Sealed, unseal: &Unseal, to: &mut Vec<Secret>) -> Result<(), String> {
    let Sealed { of, name, text } = sealed;
    let name = name.ok_or_else(|| {
        format!("the credential {} it uses was deleted; submit it again with another", of.object)
    })?;
    let mut values = unseal(&of.object, &text)
        .map_err(|why| format!("credential `{name}` cannot be opened: {why}"))?;
    let Some(key) = &of.key else {
        let SecretPlace::File { path: folder, mode } = of.to else {
            return Err(format!("credential `{name}`: a variable holds one value; name its key"));
        };
        to.extend(values.into_iter().map(|(key, value)| {
            let path = folder.join(file_name(&key));
            Secret { to: SecretPlace::File { path, mode }, value }
        }));
        return Ok(());
    };
    let value = values.remove(key).ok_or_else(|| {
        let keys = values.keys().cloned().collect::<Vec<_>>().join(", ");
        format!("credential `{name}` has no value `{key}` any more; it has {keys}")
    })?;
    to.push(Secret { to: of.to, value });
    Ok(())
}

/// A key as the name of a file: one that is a path loses its separators.
fn file_name(key: &str) -> String {
    let plain = Path::new(key).components().all(|part| matches!(part, Component::Normal(_)));
    if plain && !key.contains('/') { key.to_owned() } else { key.replace(['/', '.'], "_") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_leads_out_of_its_folder() {
        for (key, file) in [("a.pem", "a.pem"), ("..", "__"), ("../x", "___x"), ("/x", "_x")] {
            assert_eq!(file_name(key), file, "{key}");
        }
    }
}
