//! `elastane credential …`: passwords and keys that workloads of a project use. Owns: that no
//! secret value is on a command line, which all users of the machine can read. Does not know about:
//! their storage.

use std::io::Write;
use std::path::{Path, PathBuf};

use api_types::{Asset, ScopeType};
use client::Client;
use serde_json::{Map, Value, json};

use super::args::{self, CredentialType};
use cli_kit::exit::Error;
use cli_kit::input::read_text;
use cli_kit::message::Plain;

/// Maximum size of a value in bytes.
const VALUE_BYTES_MAX: u64 = 1 << 20;

impl CredentialType {
    /// Its name in the API, the required keys, and those of them that are not secret.
    const fn parts(self) -> (&'static str, &'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Password => ("password", &["user", "password"], &["user"]),
            Self::AccessKey => {
                ("access-key", &["accessKeyId", "secretAccessKey"], &["accessKeyId"])
            }
            Self::DockerRegistry => {
                ("docker-registry", &["url", "user", "password"], &["url", "user"])
            }
            Self::NgcApiKey => ("ngc-api-key", &["ngc_api_key"], &[]),
            Self::GenericSecret => ("generic-secret", &[], &[]),
        }
    }
}

pub(super) async fn run(state_dir: PathBuf, verb: args::Credential) -> Result<(), Error> {
    let client = client::find(None, None, Some(&state_dir), None)?.client;
    let mut out = Plain(std::io::stdout());
    let (args::Credential::Set { project, .. } | args::Credential::Delete { project, .. }) = &verb;
    let id = super::project::existing(&client, project).await?.id;
    match verb {
        args::Credential::Set { name, kind, from_file, from_literal, project } => {
            let spec = spec(kind, &from_file, &from_literal)?;
            let path = format!("/api/v1/asset/credentials/{}", kind.parts().0);
            match existing(&client, &[kind], &name, &id).await? {
                Some((found, _)) => {
                    let body = json!({"meta": {"name": name}, "spec": spec});
                    client.replace_asset(&format!("{path}/{}", found.meta.id), &body).await?;
                }
                None => {
                    let project: u64 = id.parse().map_err(|_| {
                        Error::Failed(format!("project {project} has no number: {id}"))
                    })?;
                    let meta = json!({"name": name, "scope": "project", "projectId": project});
                    client.create_asset(&path, &json!({"meta": meta, "spec": spec})).await?;
                }
            }
            writeln!(out, "credential {name} of project {project} is kept")?;
        }
        args::Credential::Delete { name, project } => {
            let found = existing(&client, &CredentialType::ALL, &name, &id).await?;
            let Some((found, kind)) = found else {
                let why = format!("project {project} has no credential {name} of its own");
                return Err(Error::NotFound(why));
            };
            let kind = kind.parts().0;
            let path = format!("/api/v1/asset/credentials/{kind}/{}", found.meta.id);
            client.delete_asset(&path).await?;
            writeln!(out, "credential {name} of project {project} deleted")?;
        }
    }
    Ok(())
}

/// The project's own credential of this name.
async fn existing(
    client: &Client,
    kinds: &[CredentialType],
    name: &str,
    project: &str,
) -> Result<Option<(Asset<Value>, CredentialType)>, Error> {
    for &kind in kinds {
        let family = format!("credentials/{}", kind.parts().0);
        let found = client.assets(&family, name, project).await?;
        let own = |asset: &Asset<Value>| {
            asset.meta.scope == ScopeType::Project && asset.meta.name == name
        };
        if let Some(asset) = found.into_iter().find(own) {
            return Ok(Some((asset, kind)));
        }
    }
    Ok(None)
}

/// The specification in the form of the API.
fn spec(
    kind: CredentialType,
    files: &[(String, PathBuf)],
    literals: &[(String, String)],
) -> Result<Value, Error> {
    let (word, needed, plain) = kind.parts();
    let mut values = Map::new();
    for (key, text) in literals {
        if !plain.contains(&key.as_str()) {
            return Err(Error::Usage(format!(
                "--from-literal {key}=…: what is on a command line is seen by everyone; write \
                 --from-file {key}=FILE, or {key}=- for standard input"
            )));
        }
        values.insert(key.clone(), text.clone().into());
    }
    for (key, file) in files {
        if values.insert(key.clone(), value(kind, file)?.into()).is_some() {
            return Err(Error::Usage(format!("{key} is there twice")));
        }
    }
    if kind == CredentialType::GenericSecret {
        let pair = |(key, value)| json!({"key": key, "value": value});
        return Ok(json!({"keyValuePairs": values.into_iter().map(pair).collect::<Vec<_>>()}));
    }
    let given: Vec<&str> = values.keys().map(String::as_str).collect();
    let missing = needed.iter().find(|key| !given.contains(key));
    let unknown = given.iter().find(|key| !needed.contains(key));
    match (missing, unknown) {
        (Some(key), _) => Err(Error::Usage(format!(
            "a credential of type {word} needs {}; {key} is missing: --from-file {key}=FILE",
            needed.join(", ")
        ))),
        (_, Some(key)) => Err(Error::Usage(format!(
            "a credential of type {word} has no {key}; it has {}",
            needed.join(", ")
        ))),
        (None, None) => Ok(Value::Object(values)),
    }
}

/// A value from a file. A line break at the end of a single line is not part of a password.
fn value(kind: CredentialType, file: &Path) -> Result<String, Error> {
    let text = read_text(file, VALUE_BYTES_MAX)?;
    Ok(match kind {
        CredentialType::GenericSecret => text,
        _ => text.trim_end_matches(['\r', '\n']).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(kind: CredentialType, literals: &[(&str, &str)], text: &str) -> Result<Value, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("value");
        std::fs::write(&file, text).unwrap();
        let secret = kind.parts().1.last().copied().unwrap_or("token");
        let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let literals: Vec<_> = literals.iter().map(pair).collect();
        spec(kind, &[(secret.to_owned(), file)], &literals).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_those_of_the_type_and_secret_ones_are_in_files() {
        let (password, any) = (CredentialType::Password, CredentialType::GenericSecret);
        let good = made(password, &[("user", "ann")], "horse\n");
        assert_eq!(good, Ok(json!({"user": "ann", "password": "horse"})));
        let pairs = json!({"keyValuePairs": [{"key": "token", "value": "a\n"}]});
        assert_eq!(made(any, &[], "a\n"), Ok(pairs));
        for (given, why) in [
            (&[][..], "needs user, password; user is missing: --from-file user=FILE"),
            (&[("password", "horse")], "seen by everyone; write --from-file password=FILE"),
            (&[("url", "x")], "seen by everyone"),
        ] {
            let refused = made(password, given, "horse").unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
