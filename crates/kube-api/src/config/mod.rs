//! Settings of a connection to an API server. Owns: where settings come from. Does not know about:
//! connections.

mod documents;
mod in_cluster;
mod kubeconfig;

use std::path::{Path, PathBuf};

use http::Uri;

use crate::error::ConfigError;
pub use kubeconfig::Kubeconfig;

/// Bytes in a file, or inline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    File(PathBuf),
    Inline(Vec<u8>),
}

/// The API server, the way to it, and the credentials.
#[derive(Debug, Clone)]
pub struct Config {
    /// `https://host:port`, with the path of a proxy that serves several clusters.
    pub(crate) server: Uri,
    /// Namespace of the context.
    pub(crate) namespace: String,
    /// Authorities that sign the API server's certificate; `None`: those that this machine trusts.
    pub(crate) authority: Option<Source>,
    /// Name in its certificate, where that is not the host of `server`.
    pub(crate) server_name: Option<String>,
    pub(crate) proxy: Option<Uri>,
    pub(crate) user: User,
}

/// Sources of credentials. The certificate is independent of the token.
#[derive(Clone, Default)]
pub(crate) struct User {
    pub(crate) certificate: Option<(Source, Source)>,
    pub(crate) token: Option<TokenSource>,
    pub(crate) exec: Option<Exec>,
}

/// The user contains secrets, which are left out.
impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let command = self.exec.as_ref().map(|exec| &exec.command);
        f.debug_struct("User").field("exec", &command).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum TokenSource {
    Inline(String),
    /// Read again from time to time: the kubelet renews it.
    File(PathBuf),
}

/// A program that prints credentials.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Exec {
    pub(crate) api_version: String,
    pub(crate) command: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) install_hint: String,
    pub(crate) provides_cluster: bool,
}

impl Config {
    /// The settings for this process: the kubeconfig that is named, else the service account
    /// of the pod that it runs in, else the kubeconfig of `$KUBECONFIG` or of the home directory.
    ///
    /// # Errors
    /// There are none, or they cannot be used.
    pub fn find(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        if let Some(path) = kubeconfig {
            return Kubeconfig::read(&[path.to_owned()])?.config(context);
        }
        if context.is_none()
            && let Some(config) = Self::of_pod(Path::new(in_cluster::FOLDER), env)?
        {
            return Ok(config);
        }
        Kubeconfig::find(env)?.config(context)
    }

    /// The service account of the pod that this process runs in, from the volume with its token;
    /// none if this is no pod, or one without a service account.
    ///
    /// # Errors
    /// A file of the volume cannot be read.
    pub fn of_pod(
        folder: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ConfigError> {
        in_cluster::find(folder, env)
    }

    /// Address of the API server.
    #[must_use]
    pub const fn server(&self) -> &Uri {
        &self.server
    }

    /// Namespace of the context, else `default`.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl Source {
    pub(crate) fn read(&self) -> Result<Vec<u8>, ConfigError> {
        match self {
            Self::Inline(bytes) => Ok(bytes.clone()),
            Self::File(path) => read(path),
        }
    }

    /// The name of it in errors.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Inline(_) => "the kubeconfig".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path)
        .map_err(|error| ConfigError::File { path: path.to_owned(), fault: error.to_string() })
}

/// An address with a scheme of these and a host.
fn address(
    field: &'static str,
    place: &str,
    text: &str,
    schemes: &[&str],
) -> Result<Uri, ConfigError> {
    let wrong = |fault: String| ConfigError::Field { field, place: place.to_owned(), fault };
    let uri: Uri = text.parse().map_err(|error| wrong(format!("`{text}`: {error}")))?;
    let allowed = uri.scheme_str().is_some_and(|scheme| schemes.contains(&scheme));
    if !allowed || uri.host().is_none_or(str::is_empty) {
        let schemes = schemes.join("://, ");
        return Err(wrong(format!("`{text}` is no address that begins with {schemes}://")));
    }
    Ok(uri)
}

#[cfg(test)]
mod tests;
