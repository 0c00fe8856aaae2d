//! Kubeconfig files. Owns: merging several, and the settings of a context. Does not know about: the
//! fields' forms (`documents`).

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::documents::{Cluster, Context, File, NamedCluster, NamedContext, NamedUser, User};
use super::{Config, Exec, Source, TokenSource, address, read};
use crate::error::ConfigError;

const VARIABLE: &str = "KUBECONFIG";
const SERVER_SCHEMES: [&str; 2] = ["https", "http"];
const PROXY_SCHEMES: [&str; 2] = ["http", "socks5"];
const EXEC_VERSIONS: [&str; 2] =
    ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

/// Contexts, clusters and users of one or several files.
#[derive(Debug, Clone, Default)]
pub struct Kubeconfig {
    current: String,
    contexts: Vec<NamedContext>,
    /// Clusters, with the folder of their file.
    clusters: Vec<(PathBuf, NamedCluster)>,
    users: Vec<(PathBuf, NamedUser)>,
}

impl Kubeconfig {
    /// The files that `$KUBECONFIG` names (those that do not exist are left out), else the one in
    /// the home directory.
    ///
    /// # Errors
    /// There is none, or one cannot be read.
    pub fn find(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let named = env(VARIABLE).filter(|named| !named.is_empty());
        let paths: Vec<PathBuf> = match named {
            Some(named) => std::env::split_paths(&named).collect(),
            None => {
                env("HOME").into_iter().map(|home| Path::new(&home).join(".kube/config")).collect()
            }
        };
        let there: Vec<_> = paths
            .into_iter()
            .filter(|path| !path.as_os_str().is_empty() && path.exists())
            .collect();
        if there.is_empty() { Err(ConfigError::Absent) } else { Self::read(&there) }
    }

    /// Reads files and merges them: of several entries with one name the first counts, and the
    /// first `current-context`.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn read(paths: &[PathBuf]) -> Result<Self, ConfigError> {
        let mut merged = Self::default();
        for path in paths {
            let file = parse(path)?;
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            if merged.current.is_empty() {
                merged.current = file.current_context;
            }
            merged.contexts.extend(file.contexts);
            merged.clusters.extend(file.clusters.into_iter().map(|one| (folder.clone(), one)));
            merged.users.extend(file.users.into_iter().map(|one| (folder.clone(), one)));
        }
        Ok(merged)
    }

    /// The settings of a context; none: of the current one.
    ///
    /// # Errors
    /// There is none of that name, or it cannot be used.
    pub fn config(&self, context: Option<&str>) -> Result<Config, ConfigError> {
        let name = context.unwrap_or(&self.current);
        if name.is_empty() {
            let known = self.contexts.iter().map(|one| one.name.clone()).collect();
            return Err(ConfigError::NoContext { known });
        }
        let contexts = self.contexts.iter().map(|one| (one.name.as_str(), &one.context));
        let context: &Context = entry("context", name, contexts)?;
        let clusters =
            self.clusters.iter().map(|(folder, one)| (one.name.as_str(), (folder, &one.cluster)));
        let (folder, cluster) = entry("cluster", &context.cluster, clusters)?;
        let mut config = of_cluster(&format!("cluster {}", context.cluster), folder, cluster)?;
        if !context.namespace.is_empty() {
            config.namespace.clone_from(&context.namespace);
        }
        if !context.user.is_empty() {
            let users =
                self.users.iter().map(|(folder, one)| (one.name.as_str(), (folder, &one.user)));
            let (folder, user) = entry("user", &context.user, users)?;
            config.user = of_user(&format!("user {}", context.user), folder, user)?;
        }
        Ok(config)
    }
}

fn parse(path: &Path) -> Result<File, ConfigError> {
    let wrong = |fault: String| ConfigError::File { path: path.to_owned(), fault };
    let text = String::from_utf8(read(path)?).map_err(|error| wrong(error.to_string()))?;
    // A file without a document is one that nothing was written to yet.
    if text.lines().all(|line| line.trim().is_empty() || line.starts_with('#')) {
        return Ok(File::default());
    }
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    serde_saphyr::from_str_with_options(&text, options)
        .map_err(|error| wrong(error.render_with_formatter(&serde_saphyr::UserMessageFormatter)))
}

/// The first entry of a name.
fn entry<'a, T>(
    kind: &'static str,
    name: &str,
    entries: impl Iterator<Item = (&'a str, T)>,
) -> Result<T, ConfigError> {
    let mut known = Vec::new();
    for (other, value) in entries {
        if other == name {
            return Ok(value);
        }
        known.push(other.to_owned());
    }
    Err(ConfigError::Missing { kind, name: name.to_owned(), known })
}

fn of_cluster(place: &str, folder: &Path, cluster: &Cluster) -> Result<Config, ConfigError> {
    if cluster.insecure_skip_tls_verify {
        let fault = "is not supported; give certificate-authority-data instead".to_owned();
        let (field, place) = ("insecure-skip-tls-verify", place.to_owned());
        return Err(ConfigError::Field { field, place, fault });
    }
    let proxy = match cluster.proxy_url.as_str() {
        "" => None,
        url => Some(address("proxy-url", place, url, &PROXY_SCHEMES)?),
    };
    Ok(Config {
        server: address("server", place, &cluster.server, &SERVER_SCHEMES)?,
        namespace: "default".to_owned(),
        authority: source(
            ("certificate-authority-data", &cluster.certificate_authority_data),
            &cluster.certificate_authority,
            (place, folder),
        )?,
        server_name: Some(cluster.tls_server_name.clone()).filter(|name| !name.is_empty()),
        proxy,
        user: super::User::default(),
    })
}

fn of_user(place: &str, folder: &Path, user: &User) -> Result<super::User, ConfigError> {
    let wrong = |field, fault: &str| {
        Err(ConfigError::Field { field, place: place.to_owned(), fault: fault.to_owned() })
    };
    if !user.impersonated.is_empty() {
        return wrong("as", "is not supported; give the credentials of the account itself");
    }
    if !user.username.is_empty() {
        return wrong("username", "passwords are not supported; give a token or a certificate");
    }
    if user.auth_provider.is_some() {
        return wrong("auth-provider", "is not supported; use an `exec` plug-in");
    }
    let at = (place, folder);
    let data = &user.client_certificate_data;
    let certificate = source(("client-certificate-data", data), &user.client_certificate, at)?;
    let key = source(("client-key-data", &user.client_key_data), &user.client_key, at)?;
    let certificate = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(_), None) => return wrong("client-key", "is missing beside client-certificate"),
        (None, Some(_)) => return wrong("client-certificate", "is missing beside client-key"),
    };
    let token = match (user.token_file.as_str(), user.token.as_str()) {
        ("", "") => None,
        ("", token) => Some(TokenSource::Inline(token.to_owned())),
        (file, _) => Some(TokenSource::File(folder.join(file))),
    };
    let exec = user.exec.as_ref().map(|exec| of_exec(place, folder, exec)).transpose()?;
    Ok(super::User { certificate, token, exec })
}

fn of_exec(place: &str, folder: &Path, exec: &super::documents::Exec) -> Result<Exec, ConfigError> {
    let wrong =
        |field, fault: String| Err(ConfigError::Field { field, place: place.to_owned(), fault });
    if !EXEC_VERSIONS.contains(&exec.api_version.as_str()) {
        let allowed = EXEC_VERSIONS.join(" or ");
        return wrong("exec.apiVersion", format!("`{}` is not {allowed}", exec.api_version));
    }
    if exec.interactive_mode == "Always" {
        let fault = "`Always` needs a terminal; use a plug-in that runs without one";
        return wrong("exec.interactiveMode", fault.to_owned());
    }
    // A bare name is looked for in $PATH.
    let bare = !exec.command.contains('/');
    Ok(Exec {
        api_version: exec.api_version.clone(),
        command: if bare { exec.command.clone().into() } else { folder.join(&exec.command) },
        args: exec.args.clone(),
        env: exec.env.iter().map(|one| (one.name.clone(), one.value.clone())).collect(),
        install_hint: exec.install_hint.clone(),
        provides_cluster: exec.provide_cluster_info,
    })
}

/// Inline data counts before a file, whose path is relative to that of the kubeconfig.
fn source(
    (field, data): (&'static str, &str),
    file: &str,
    (place, folder): (&str, &Path),
) -> Result<Option<Source>, ConfigError> {
    match (data, file) {
        ("", "") => Ok(None),
        ("", file) => Ok(Some(Source::File(folder.join(file)))),
        (data, _) => {
            let packed: String = data.split_ascii_whitespace().collect();
            let bytes = BASE64_STANDARD.decode(packed).map_err(|error| {
                let fault = format!("is no base64: {error}");
                ConfigError::Field { field, place: place.to_owned(), fault }
            })?;
            Ok(Some(Source::Inline(bytes)))
        }
    }
}
