//! The last steps before a run starts. Owns: the credentials and config maps that a run, its pulls
//! and its copies get; and that nothing of the server's own is mounted. Does not know about: how
//! values are encrypted, and which credentials exist.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::sync::Arc;

use engine::{Bucket, Login, MountSource, RegistryLogin, Repository, RunSpec, Secret, SecretPlace};

use crate::NodeAccess;
use crate::options::{Unseal, job_token};
use orchestrator::{Sealed, Start, texts_of};
use spec::{Framework, JOB_TOKEN_FILE, SecretTo, SecretUse};
use view::{Object, SECRETS};

/// The user of a registry whose credential is a key alone.
const USER_OF_A_KEY: &str = "$oauthtoken";

/// Secrets and access rights to add to runs.
#[derive(Clone)]
pub(crate) struct Completion {
    pub(crate) unseal: Unseal,
    pub(crate) node_access: Arc<NodeAccess>,
}

impl Completion {
    /// The run with its secrets, or why it cannot have them.
    pub(crate) async fn complete(&self, start: Start) -> Result<RunSpec, String> {
        let Start { mut spec, sealed } = start;
        for mount in &spec.container.mounts {
            if let MountSource::HostPath { path, .. } = &mount.from {
                // The server may keep more for itself than when this was submitted. A file system
                // may be long in answering.
                let (access, path) = (self.node_access.clone(), path.clone());
                let look = tokio::task::spawn_blocking(move || access.real(&path).map(drop));
                look.await.map_err(|error| error.to_string())??;
            }
        }
        for one in sealed {
            self.values(one, &mut spec)?;
        }
        if spec.gang.as_ref().is_some_and(|gang| gang.framework == Framework::ElasticDl) {
            let of = job_token(spec.workload_id, &spec.env);
            let value = take(&of, &mut (self.unseal)(&of, "")?, "token")?;
            let to = SecretPlace::File { path: JOB_TOKEN_FILE.into(), mode: 0o400 };
            spec.secrets.push(Secret { to, value });
        }
        Ok(spec)
    }

    fn values(&self, sealed: Sealed, run: &mut RunSpec) -> Result<(), String> {
        let Sealed { of, keeper } = sealed;
        let keeper = keeper.ok_or_else(|| gone(&of, &run.project_name))?;
        let (name, mut values) = self.open(&of, &keeper)?;
        match (of.to, &of.key) {
            (SecretTo::Run(to), Some(key)) => {
                let value = take(&name, &mut values, key)?;
                run.secrets.push(Secret { to, value });
            }
            (SecretTo::Run(SecretPlace::File { path: folder, mode }), None) => {
                run.secrets.extend(values.into_iter().map(|(key, value)| {
                    let path = folder.join(file_name(&key));
                    Secret { to: SecretPlace::File { path, mode }, value }
                }));
            }
            (SecretTo::Run(SecretPlace::Variable(_)), None) => {
                return Err(format!("{name}: a variable holds one value; name its key"));
            }
            (SecretTo::Registry(registry), _) => {
                let login = match values.remove("NGC_API_KEY") {
                    Some(password) => Login { user: USER_OF_A_KEY.to_owned(), password },
                    None => login(&name, &mut values, "username", "password")?,
                };
                run.registry = Some(RegistryLogin { registry, login });
            }
            (SecretTo::Copy { mount: at, user_key, password_key }, _) => {
                let own = login(&name, &mut values, &user_key, &password_key)?;
                for mount in run.container.mounts.iter_mut().filter(|mount| mount.to == at) {
                    match &mut mount.from {
                        MountSource::Git(Repository { login, .. })
                        | MountSource::S3(Bucket { login, .. }) => *login = Some(own.clone()),
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Name of the object that keeps the values, for a message, and the values.
    fn open(
        &self,
        of: &SecretUse,
        keeper: &Object,
    ) -> Result<(String, BTreeMap<String, String>), String> {
        if of.config_map().is_some() {
            let own = |(key, text): (&str, &str)| (key.to_owned(), text.to_owned());
            return Ok((
                format!("config map `{}`", keeper.name),
                texts_of(keeper).map(own).collect(),
            ));
        }
        let name = format!("credential `{}`", keeper.name);
        let text = keeper.body[SECRETS].as_str().unwrap_or_default();
        let values = (self.unseal)(&of.object, text);
        Ok((name.clone(), values.map_err(|why| format!("{name} cannot be opened: {why}"))?))
    }
}

/// The error of a run whose secret values are gone.
fn gone(of: &SecretUse, project: &str) -> String {
    match of.config_map() {
        Some(name) => format!(
            "config map `{name}` of project {project} was deleted; make it again with `elastane \
             config-map set {name} --from-file FILE -p {project}`, and submit again"
        ),
        None => {
            format!(
                "the credential {} it uses was deleted; submit it again with another",
                of.object
            )
        }
    }
}

fn login(
    name: &str,
    values: &mut BTreeMap<String, String>,
    user: &str,
    password: &str,
) -> Result<Login, String> {
    Ok(Login { user: take(name, values, user)?, password: take(name, values, password)? })
}

fn take(name: &str, values: &mut BTreeMap<String, String>, key: &str) -> Result<String, String> {
    values.remove(key).ok_or_else(|| {
        let keys = values.keys().cloned().collect::<Vec<_>>().join(", ");
        format!("{name} has no value `{key}` any more; it has {keys}")
    })
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
