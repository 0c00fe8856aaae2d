//! Address of a PostgreSQL database. Owns: reading its URL, and never showing its password.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

/// Default time for which a batch is tried again after its session broke.
const PATIENCE: Duration = Duration::from_secs(15);
/// Parameters that a URL may have after `?`. The driver would log any other with its value, which
/// may be a misspelt password.
const PARAMETERS: [&str; 11] = [
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "user",
];

/// A PostgreSQL database and how to get in. Its password is shown by nothing.
#[derive(Clone)]
pub struct PostgresUrl {
    options: Box<PgConnectOptions>,
    patience: Duration,
}

/// Error of a text that is no URL of a database. It does not repeat the text, which may hold a
/// password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write `sqlite` or postgres://USER@HOST:5432/DATABASE")]
pub struct BadUrl(String);

impl PostgresUrl {
    /// This URL with another password.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.options = Box::new(self.options.password(password));
        self
    }

    /// This URL with another time for which a batch is tried again after its session broke.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    pub(super) const fn patience(&self) -> Duration {
        self.patience
    }

    pub(crate) fn options(&self) -> &PgConnectOptions {
        &self.options
    }
}

impl FromStr for PostgresUrl {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, BadUrl> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        if !matches!(scheme, Some("postgres" | "postgresql")) {
            return Err(BadUrl("it does not begin with postgres://".to_owned()));
        }
        let parameters = text.split_once('?').map_or("", |(_, parameters)| parameters);
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let name = parameter.split('=').next().unwrap_or_default();
            if !PARAMETERS.contains(&name) {
                let known = PARAMETERS.join(", ");
                return Err(BadUrl(format!("`{name}` is no parameter; known are {known}")));
            }
        }
        let options = text.parse().map_err(|error: sqlx::Error| {
            let why = match &error {
                sqlx::Error::Configuration(cause) => cause.to_string(),
                _ => "it cannot be read".to_owned(),
            };
            BadUrl(why)
        })?;
        Ok(Self { options: Box::new(options), patience: PATIENCE })
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (user, port) = (self.options.get_username(), self.options.get_port());
        let database = self.options.get_database().unwrap_or(user);
        let socket = self.options.get_socket().map(|path| path.display().to_string());
        let host = socket.as_deref().unwrap_or_else(|| self.options.get_host());
        match host.starts_with('/') {
            true => write!(f, "postgres://{user}@/{database}?host={host}&port={port}"),
            false => write!(f, "postgres://{user}@{host}:{port}/{database}"),
        }
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// URLs are equal if they name the same database and user; passwords are not compared.
impl PartialEq for PostgresUrl {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for PostgresUrl {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for text in [
            "postgres://ann:hush@db.example:5433/gpus",
            "postgresql://ann@db.example:5433/gpus?password=hush&sslmode=prefer",
        ] {
            let url: PostgresUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), "postgres://ann@db.example:5433/gpus");
            assert_eq!(format!("{url:?}"), "postgres://ann@db.example:5433/gpus");
        }
        let socket: PostgresUrl = "postgres:///gpus?host=/run/pg&user=ann".parse().unwrap();
        let shown = "postgres://ann@/gpus?host=/run/pg&port=5432";
        assert_eq!(socket.with_password("hush").to_string(), shown);
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for text in [
            "mysql://ann:hush@h/d",
            "ann:hush@h/d",
            "postgres://ann:hush@h/d?pasword=hush",
            "postgres://ann:hush@h:hush/d",
            "postgres://ann:hush@h/d?sslmode=hush",
            "postgres://ann:hush@[h/d",
        ] {
            let error = text.parse::<PostgresUrl>().unwrap_err().to_string();
            assert!(!error.contains("hush") || text.contains("sslmode=hush"), "{text}: {error}");
        }
    }
}
