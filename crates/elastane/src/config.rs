//! Configuration of the server: its settings, and values derived from several of them. Owns which
//! of them require or exclude each other. Accesses no files except those with secrets.

use std::fs;
use std::path::{Path, PathBuf};

use engine_local::AccountPolicy;
use model::{UsageWindow, UsageWindowError};

use super::login::{self, Login};
use super::runtime::{Choice, Runtime};
use super::settings::{ALL, Error, Find, Layer, SettingText, Settings, Sources, fault};
use cli_kit::settings::Env;

/// Validated configuration of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    /// Value of each setting.
    pub(crate) settings: Settings,
    /// Files of the certificate and its key; `None` without TLS.
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    /// Database of the state, with its password.
    pub(crate) database: store::Database,
    /// Login provider; `None` = local logins only.
    pub(crate) login: Option<Login>,
    pub(crate) machines: Machines,
    /// Window of past usage that counts for fair shares; `None` = no past usage.
    pub(crate) usage: Option<UsageWindow>,
    /// Files with secrets, the settings file of the server among them.
    pub(crate) secret_files: Vec<PathBuf>,
}

/// Source of the nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Machines {
    /// This machine with its GPUs; with simulated ones if it has none.
    Found,
    /// One machine with simulated GPUs, from this text.
    Gpus(SettingText),
    /// Several simulated machines, from this text.
    Nodes(SettingText),
}

impl Config {
    /// Unix accounts for the runs of submitters.
    pub(crate) fn accounts(&self) -> AccountPolicy {
        let Settings { accounts, account_domains, account_pool, .. } = &self.settings;
        let (table, domains) = (accounts.clone(), account_domains.clone());
        AccountPolicy { table, domains, pool: account_pool.clone() }
    }

    /// Retention of the logs.
    pub(crate) fn kept(&self) -> control::RetentionPolicy {
        let Settings { events_kept, audit_kept, .. } = self.settings;
        control::RetentionPolicy { events_ms: events_kept, audit_ms: audit_kept }
    }
}

/// Reads the configuration from the command line, the environment and the settings file.
pub(crate) fn resolve(
    state_dir: Option<&Path>,
    flags: Layer,
    env: Env<'_>,
) -> Result<Config, Error> {
    check(&Sources::collect(state_dir, flags, env)?)
}

/// Reads the settings, and validates their combination.
pub(crate) fn check(sources: &Sources) -> Result<Config, Error> {
    let settings = Settings::read(sources)?;
    let find = |key: &str| sources.find(key);
    let tls = tls(&settings, &find)?;
    check_address(&settings, &find)?;
    let secret_files = ALL.iter().filter(|setting| setting.is_secret_file);
    let secret_files = secret_files.filter_map(|setting| find(setting.key));
    Ok(Config {
        tls,
        database: database(&settings, &find)?,
        login: login::login(&settings, &find)?,
        machines: machines(&settings, &find)?,
        usage: usage(&settings, &find)?,
        secret_files: secret_files.map(|given| PathBuf::from(&given.text)).collect(),
        settings,
    })
}

fn check_address(settings: &Settings, find: Find<'_>) -> Result<(), Error> {
    let address = settings.listen;
    let encrypted = settings.tls_cert.is_some();
    if address.ip().is_loopback() || encrypted || settings.insecure_listen {
        return Ok(());
    }
    let why = format!(
        "{address} can be reached from other machines, and the traffic is not encrypted; \
         listen on 127.0.0.1:{port}, encrypt it with --tls-cert and --tls-key, or accept the risk \
         with --insecure-listen",
        port = address.port()
    );
    Err(fault(find, "listen", why))
}

/// Both TLS files, or none.
fn tls(settings: &Settings, find: Find<'_>) -> Result<Option<(PathBuf, PathBuf)>, Error> {
    match (&settings.tls_cert, &settings.tls_key) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => Ok(Some((cert.clone(), key.clone()))),
        (Some(_), None) => {
            Err(fault(find, "tls_cert", "needs its key; give --tls-key FILE as well"))
        }
        (None, Some(_)) => {
            Err(fault(find, "tls_key", "needs its certificate; give --tls-cert FILE as well"))
        }
    }
}

/// The database, with a password from a file if there is one.
fn database(settings: &Settings, find: Find<'_>) -> Result<store::Database, Error> {
    let Some(file) = &settings.database_password_file else {
        return Ok(settings.database.clone());
    };
    let wrong = |why: String| fault(find, "database_password_file", why);
    let store::Database::Postgres(url) = &settings.database else {
        return Err(wrong("there is no password without --database postgres://…".to_owned()));
    };
    let text = fs::read_to_string(file)
        .map_err(|error| wrong(format!("cannot read {}: {error}", file.display())))?;
    let password = text.trim_end_matches(['\r', '\n']);
    Ok(store::Database::Postgres(url.clone().with_password(password)))
}

fn usage(settings: &Settings, find: Find<'_>) -> Result<Option<UsageWindow>, Error> {
    let half_life = settings.usage_half_life;
    let Some(window) = settings.usage_window else {
        let why = "needs a window to count in; give --usage-window too, such as 7d";
        return half_life.map_or(Ok(None), |_| Err(fault(find, "usage_half_life", why)));
    };
    let made = UsageWindow::new(window.length_ms, window.kind, half_life);
    made.map(Some).map_err(|error| match (&error, half_life) {
        (UsageWindowError::HalfLife, Some(_)) => fault(find, "usage_half_life", error),
        _ => fault(find, "usage_window", error),
    })
}

fn machines(settings: &Settings, find: Find<'_>) -> Result<Machines, Error> {
    let is_kubernetes = settings.runtime == Choice::Only(Runtime::Kubernetes);
    if let Some(given) =
        settings.gpus.as_ref().or(settings.nodes.as_ref()).filter(|_| is_kubernetes)
    {
        return Err(given.fault("the nodes are those of the cluster with --runtime kubernetes"));
    }
    let of_kubernetes = [
        ("kubeconfig", settings.kubeconfig.is_some()),
        ("context", settings.context.is_some()),
        ("default_project", settings.default_project.is_some()),
    ];
    if let Some((key, _)) = of_kubernetes.iter().find(|(_, given)| *given && !is_kubernetes) {
        return Err(fault(find, key, "is for --runtime kubernetes; give that as well"));
    }
    match (&settings.gpus, &settings.nodes) {
        (None, None) => Ok(Machines::Found),
        (Some(gpus), None) => Ok(Machines::Gpus(gpus.clone())),
        (None, Some(nodes)) => Ok(Machines::Nodes(nodes.clone())),
        (Some(gpus), Some(nodes)) => {
            Err(gpus.fault(format!("cannot be used together with {}", nodes.origin)))
        }
    }
}
