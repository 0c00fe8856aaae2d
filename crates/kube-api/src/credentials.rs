//! Credentials over time. Owns: when tokens, certificates and plug-ins are read again. Does not
//! know about: requests.

use std::time::{Duration, Instant};

use http::HeaderValue;
use jiff::Timestamp;

use crate::config::{Config, Source, TokenSource, read};
use crate::error::ConfigError;
use crate::plugin::{self, Printed};
use crate::tls::Material;

/// Files are read again after this time: the kubelet renews tokens, other programs certificates.
const REREAD_AFTER: Duration = Duration::from_secs(60);

/// Sources of credentials, and the credentials that were read last.
pub(crate) struct Credentials {
    pub(crate) config: Config,
    reread_after: Duration,
    printed: Option<Printed>,
    read: Option<Current>,
    /// Number of times that they were made.
    generations: u64,
}

/// Credentials for requests.
#[derive(Clone)]
pub(crate) struct Current {
    at: Instant,
    /// Number of these credentials, which changes each time they are renewed.
    pub(crate) generation: u64,
    /// Value of the header `Authorization`.
    pub(crate) bearer: Option<HeaderValue>,
    pub(crate) material: Material,
}

impl Credentials {
    pub(crate) const fn new(config: Config) -> Self {
        Self { config, reread_after: REREAD_AFTER, printed: None, read: None, generations: 0 }
    }

    /// The credentials for a request. After the API server refused those of a generation they are
    /// made again, once for all requests that were refused.
    ///
    /// A file that cannot be read at this moment leaves what was read before, which the API server
    /// refuses once it has expired.
    pub(crate) async fn current(
        &mut self,
        now: Instant,
        refused: Option<u64>,
    ) -> Result<&Current, ConfigError> {
        let read = self.read.take();
        let is_refused = read.as_ref().is_some_and(|read| refused == Some(read.generation));
        let has_printed = self.print(is_refused).await?;
        let is_old = |read: &Current| now.saturating_duration_since(read.at) >= self.reread_after;
        let current = match read {
            Some(read) if !is_refused && !has_printed && !is_old(&read) => read,
            Some(read) if !is_refused && !has_printed => {
                self.made(now).unwrap_or(Current { at: now, ..read })
            }
            _ => self.made(now)?,
        };
        self.generations = self.generations.max(current.generation);
        Ok(self.read.insert(current))
    }

    /// Runs the plug-in, if there is one and what it printed is no longer of use.
    async fn print(&mut self, is_refused: bool) -> Result<bool, ConfigError> {
        let Some(exec) = &self.config.user.exec else { return Ok(false) };
        let expired = |printed: &Printed| printed.expires.is_some_and(|at| at <= Timestamp::now());
        if !is_refused && !self.printed.as_ref().is_none_or(expired) {
            return Ok(false);
        }
        self.printed = Some(plugin::run(exec, &self.config).await?);
        Ok(true)
    }

    fn made(&self, now: Instant) -> Result<Current, ConfigError> {
        let user = &self.config.user;
        let printed = self.printed.as_ref();
        let token = match (printed.and_then(|printed| printed.token.clone()), &user.token) {
            (Some(token), _) => Some(token),
            (None, Some(TokenSource::Inline(token))) => Some(token.clone()),
            (None, Some(TokenSource::File(path))) => {
                Some(String::from_utf8_lossy(&read(path)?).trim().to_owned())
            }
            (None, None) => None,
        };
        let mut material =
            Material::read(self.config.authority.as_ref(), user.certificate.as_ref())?;
        if let Some(pair) = printed.and_then(|printed| printed.certificate.clone()) {
            material.certificate = Some(pair);
        }
        let bearer = token.as_deref().map(bearer).transpose()?;
        Ok(Current { at: now, generation: self.generations + 1, bearer, material })
    }

    /// Names, in errors, of the sources of authority and certificate.
    pub(crate) fn places(&self) -> [String; 2] {
        let user = &self.config.user;
        let certificate = match (&user.exec, &user.certificate) {
            (Some(exec), None) => exec.command.display().to_string(),
            (_, Some((certificate, _))) => certificate.place(),
            (None, None) => String::new(),
        };
        [self.config.authority.as_ref().map(Source::place).unwrap_or_default(), certificate]
    }
}

fn bearer(token: &str) -> Result<HeaderValue, ConfigError> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
        let fault = "has characters that no header can have".to_owned();
        ConfigError::Field { field: "token", place: "the credentials".to_owned(), fault }
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
