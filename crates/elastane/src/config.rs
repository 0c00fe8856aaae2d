//! The values `elastane up` works with: default < file < environment < flag.
//! Owns the keys of the file and what is said about a wrong one. Touches nothing but that file.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use engine_local::AccountPolicy;
use model::{UsageWindow, UsageWindowError, WindowKind};
use sim::scenario::amount::{Millis, Unit};
use thiserror::Error;
use toml::de::{DeTable, DeValue};
use tracing::level_filters::LevelFilter;

use super::accounts;
use super::args::Up;
use super::login::{self, Login};
use super::reach;
use super::runtime::{self, Choice};
use cli_kit::settings::Env;

/// Where the server listens when nothing else is said.
pub(crate) const LISTEN_DEFAULT: &str = "127.0.0.1:7070";
/// The keys of the file. In the environment they are upper case after `ELASTANE_`.
pub(super) const KEYS: [&str; 36] = [
    "account_domains",
    "account_pool",
    "accounts",
    "allow_privileged",
    "audit_kept",
    "cluster_name",
    "copies_max",
    "credentials_key_file",
    "database",
    "database_password_file",
    "events_kept",
    "gpus",
    "host_paths",
    "insecure_listen",
    "listen",
    "log",
    "nodes",
    "oidc_client_id",
    "oidc_client_secret_file",
    "oidc_create_users",
    "oidc_groups_claim",
    "oidc_issuer",
    "oidc_scopes",
    "oidc_token_exchange",
    "oidc_trust_email",
    "oidc_user_claim",
    "public_url",
    "require_isolation",
    "runtime",
    "state_dir",
    "tls_cert",
    "tls_key",
    "trusted_proxies",
    "usage_half_life",
    "usage_window",
    "workloads_domain",
];
/// Those that are true or false; the others are texts.
const SWITCHES: [&str; 6] = [
    "allow_privileged",
    "insecure_listen",
    "oidc_create_users",
    "oidc_token_exchange",
    "oidc_trust_email",
    "require_isolation",
];
/// Largest copy of a repository or bucket, unless said otherwise.
pub(super) const COPY_BYTES_MAX: u64 = 50 << 30;
/// Shortest time for which a log is kept: a day.
const KEPT_MS_MIN: u64 = 86_400_000;
/// Longest domain of workloads, of the 253 characters of a name.
const DOMAIN_CHARS_MAX: usize = 189;
/// An unknown key is taken for a misspelt one up to this distance.
const SIMILARITY_MIN: f64 = 0.6;

/// Why the values cannot be used.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// The file cannot be read.
    #[error("failed to read {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is wrong.
    #[error("{} line {line}: {fault}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Where in it.
        line: usize,
        /// What is wrong and what is allowed.
        fault: String,
    },
    /// A value means nothing.
    #[error("{origin}: {fault}")]
    Value {
        /// Where the value comes from.
        origin: String,
        /// What is wrong and what is allowed.
        fault: String,
    },
    /// There is no place for the state.
    #[error("HOME is not set; say where to keep the state with --state-dir DIR")]
    NoHome,
}

/// Keys that name files with secrets.
const SECRET_FILES: [&str; 4] =
    ["credentials_key_file", "database_password_file", "oidc_client_secret_file", "tls_key"];

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) state_dir: PathBuf,
    pub(crate) listen: SocketAddr,
    /// Where others reach it.
    pub(crate) public_url: Option<String>,
    /// Whose word counts about where a request comes from.
    pub(crate) trusted_proxies: api::Proxies,
    /// Files of the certificate and its key.
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    pub(crate) cluster_name: String,
    /// Where the keys of credentials are, if not in the state directory.
    pub(crate) credentials_key_file: Option<PathBuf>,
    pub(crate) database: store::Database,
    pub(crate) log: LevelFilter,
    /// Who else vouches for people.
    pub(crate) login: Option<Login>,
    pub(crate) machines: Machines,
    /// Which Unix accounts the runs of submitters have.
    pub(crate) accounts: AccountPolicy,
    /// Whether to start only where runs are kept apart.
    pub(crate) require_isolation: bool,
    /// Whether workloads may lose their places because the machines are others than before.
    pub(crate) replaces_nodes: bool,
    pub(crate) runtime: Choice,
    /// Which past counts in fair shares.
    pub(crate) usage: Option<UsageWindow>,
    /// How long the logs are kept.
    pub(crate) kept: control::Kept,
    /// Largest copy of a repository or bucket, in bytes.
    pub(crate) copy_bytes_max: u64,
    /// Folders of the machine that every workload may mount.
    pub(crate) host_paths: Vec<PathBuf>,
    /// Files that keep secrets of the server, or may: this configuration as well.
    pub(crate) secret_files: Vec<PathBuf>,
    /// Whether everyone's workloads may have rights over the machine.
    pub(crate) allow_privileged: bool,
    /// The domain below which ports of workloads have their hosts.
    pub(crate) workloads_domain: String,
}

/// Which machines there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Machines {
    /// This one, with the GPUs it has; simulated ones if it has none.
    Found,
    /// One, with simulated GPUs, from this text.
    Gpus(Given),
    /// Several simulated ones, from this text.
    Nodes(Given),
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) text: String,
    pub(crate) origin: String,
}

impl Given {
    pub(super) fn fault(&self, fault: impl ToString) -> Error {
        Error::Value { origin: self.origin.clone(), fault: fault.to_string() }
    }
}

/// Values of one origin.
#[derive(Debug, Default)]
struct Layer(Vec<(&'static str, Given)>);

impl Layer {
    fn get(&self, key: &str) -> Option<&Given> {
        self.0.iter().find(|(own, _)| *own == key).map(|(_, given)| given)
    }
}

/// Brings the four origins together.
pub(crate) fn resolve(state_dir: Option<&Path>, flags: &Up, env: Env<'_>) -> Result<Config, Error> {
    let set = |name: &str| env(name).filter(|text| !text.is_empty());
    let file = flags.place.config.clone().or_else(|| set("ELASTANE_CONFIG").map(PathBuf::from));
    // Highest first.
    let layers = [
        from_flags(state_dir, flags),
        from_environment(&set),
        file.as_deref().map(from_file).transpose()?.unwrap_or_default(),
    ];
    let find = |key: &str| layers.iter().find_map(|layer| layer.get(key)).cloned();
    let state_dir = match find("state_dir") {
        Some(given) => PathBuf::from(given.text),
        None => client::state_dir(env).ok_or(Error::NoHome)?,
    };
    let listen = find("listen")
        .unwrap_or_else(|| Given { text: LISTEN_DEFAULT.to_owned(), origin: "default".to_owned() });
    let insecure = find("insecure_listen").map(|given| boolean(&given)).transpose()?;
    let tls = tls(find("tls_cert"), find("tls_key"))?;
    Ok(Config {
        state_dir,
        listen: address(&listen, insecure.unwrap_or(false) || tls.is_some())?,
        public_url: find("public_url").map(|given| reach::public_url(&given)).transpose()?,
        trusted_proxies: find("trusted_proxies")
            .map(|given| reach::proxies(&given))
            .transpose()?
            .unwrap_or_default(),
        tls,
        cluster_name: cluster_name(find("cluster_name"))?,
        credentials_key_file: find("credentials_key_file").map(|given| given.text.into()),
        database: database(find("database"), find("database_password_file"))?,
        log: find("log").map_or(Ok(LevelFilter::WARN), |given| {
            let allowed = "write off, error, warn, info, debug or trace";
            let level = given.text.parse();
            level.map_err(|_| given.fault(format!("`{}` is no level; {allowed}", given.text)))
        })?,
        login: login::login(&find)?,
        machines: machines(&layers)?,
        accounts: accounts::policy(&find)?,
        require_isolation: find("require_isolation")
            .map(|given| boolean(&given))
            .transpose()?
            .unwrap_or(false),
        // For this one start: it is no setting.
        replaces_nodes: flags.replace_nodes,
        runtime: runtime::choice(find("runtime"))?,
        usage: usage(find("usage_window"), find("usage_half_life"))?,
        kept: kept(find("events_kept"), find("audit_kept"))?,
        copy_bytes_max: find("copies_max").map_or(Ok(COPY_BYTES_MAX), |given| size(&given))?,
        host_paths: find("host_paths")
            .map(|given| folders(&given))
            .transpose()?
            .unwrap_or_default(),
        secret_files: SECRET_FILES
            .iter()
            .filter_map(|key| find(key))
            .map(|given| given.text.into())
            .chain(file)
            .collect(),
        allow_privileged: find("allow_privileged")
            .map(|given| boolean(&given))
            .transpose()?
            .unwrap_or(false),
        workloads_domain: find("workloads_domain")
            .map_or_else(|| Ok("localhost".to_owned()), |given| domain(&given))?,
    })
}

fn size(given: &Given) -> Result<u64, Error> {
    match units::parse_bytes(&given.text) {
        Ok(0) => Err(given.fault("0 allows no copy at all; write a size such as 50GiB")),
        Ok(bytes) => Ok(bytes),
        Err(why) => Err(given.fault(format!("{why}; write a size such as 50GiB"))),
    }
}

/// The name of a domain, in small letters. There is room for a label before it.
fn domain(given: &Given) -> Result<String, Error> {
    let domain = given.text.to_ascii_lowercase();
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.chars().all(allowed);
    let is_address = domain.parse::<std::net::IpAddr>().is_ok();
    if domain.len() <= DOMAIN_CHARS_MAX && domain.split('.').all(is_label) && !is_address {
        return Ok(domain);
    }
    let text = units::shown(&given.text);
    Err(given.fault(format!("`{text}` is no domain; write one such as apps.example.org")))
}

/// Folders by their absolute paths, with commas between them.
fn folders(given: &Given) -> Result<Vec<PathBuf>, Error> {
    let each = given.text.split(',').map(str::trim).filter(|path| !path.is_empty());
    let absolute = |path: &str| {
        let is = Path::new(path).is_absolute();
        let why = || given.fault(format!("`{path}` is not an absolute path; begin it with /"));
        is.then(|| PathBuf::from(path)).ok_or_else(why)
    };
    each.map(absolute).collect()
}

fn from_flags(state_dir: Option<&Path>, flags: &Up) -> Layer {
    let text = |flag: &Option<String>| flag.clone();
    let switch = |on: bool| on.then(|| "true".to_owned());
    let login = &flags.login;
    let values = [
        ("account_domains", "--account-domains", text(&flags.accounts.account_domains)),
        ("account_pool", "--account-pool", text(&flags.accounts.account_pool)),
        ("accounts", "--accounts", text(&flags.accounts.accounts)),
        ("allow_privileged", "--allow-privileged", switch(flags.allow_privileged)),
        ("audit_kept", "--audit-kept", text(&flags.audit_kept)),
        ("cluster_name", "--cluster-name", text(&flags.cluster_name)),
        ("copies_max", "--copies-max", text(&flags.copies_max)),
        ("credentials_key_file", "--credentials-key-file", text(&flags.credentials_key_file)),
        ("database", "--database", text(&flags.place.database)),
        (
            "database_password_file",
            "--database-password-file",
            text(&flags.place.database_password_file),
        ),
        ("events_kept", "--events-kept", text(&flags.events_kept)),
        ("gpus", "--gpus", text(&flags.gpus)),
        ("host_paths", "--host-paths", text(&flags.host_paths)),
        ("insecure_listen", "--insecure-listen", switch(flags.insecure_listen)),
        ("listen", "--listen", text(&flags.listen)),
        ("log", "--log", text(&flags.log)),
        ("nodes", "--nodes", text(&flags.nodes)),
        ("oidc_client_id", "--oidc-client-id", text(&login.oidc_client_id)),
        (
            "oidc_client_secret_file",
            "--oidc-client-secret-file",
            text(&login.oidc_client_secret_file),
        ),
        ("oidc_create_users", "--oidc-create-users", switch(login.oidc_create_users)),
        ("oidc_groups_claim", "--oidc-groups-claim", text(&login.oidc_groups_claim)),
        ("oidc_issuer", "--oidc-issuer", text(&login.oidc_issuer)),
        ("oidc_scopes", "--oidc-scopes", text(&login.oidc_scopes)),
        ("oidc_token_exchange", "--oidc-token-exchange", switch(login.oidc_token_exchange)),
        ("oidc_trust_email", "--oidc-trust-email", switch(login.oidc_trust_email)),
        ("oidc_user_claim", "--oidc-user-claim", text(&login.oidc_user_claim)),
        ("public_url", "--public-url", text(&flags.public_url)),
        ("require_isolation", "--require-isolation", switch(flags.accounts.require_isolation)),
        ("runtime", "--runtime", text(&flags.runtime)),
        ("state_dir", "--state-dir", state_dir.map(|dir| dir.display().to_string())),
        ("tls_cert", "--tls-cert", text(&flags.tls_cert)),
        ("tls_key", "--tls-key", text(&flags.tls_key)),
        ("trusted_proxies", "--trusted-proxies", text(&flags.trusted_proxies)),
        ("usage_half_life", "--usage-half-life", text(&flags.usage_half_life)),
        ("usage_window", "--usage-window", text(&flags.usage_window)),
        ("workloads_domain", "--workloads-domain", text(&flags.workloads_domain)),
    ];
    let given = |(key, flag, text): (&'static str, &str, Option<String>)| {
        text.map(|text| (key, Given { text, origin: flag.to_owned() }))
    };
    Layer(values.into_iter().filter_map(given).collect())
}

fn from_environment(set: &dyn Fn(&str) -> Option<String>) -> Layer {
    let given = |key: &&'static str| {
        let origin = format!("ELASTANE_{}", key.to_ascii_uppercase());
        set(&origin).map(|text| (*key, Given { text, origin }))
    };
    Layer(KEYS.iter().filter_map(given).collect())
}

fn from_file(path: &Path) -> Result<Layer, Error> {
    let text =
        fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let at = |offset: usize, fault: String| {
        let before = text.get(..offset).unwrap_or(&text);
        Error::File { path: path.to_owned(), line: before.matches('\n').count() + 1, fault }
    };
    let table = DeTable::parse(&text).map_err(|error| {
        at(error.span().map_or(0, |span| span.start), error.message().to_owned())
    })?;
    let mut layer = Layer::default();
    for (key, value) in table.get_ref() {
        let name = key.get_ref().as_ref();
        let Some(known) = KEYS.into_iter().find(|known| *known == name) else {
            return Err(at(key.span().start, unknown_key(name)));
        };
        let switch = SWITCHES.contains(&known);
        let text = match value.get_ref() {
            DeValue::String(text) if !switch => text.to_string(),
            DeValue::Boolean(yes) if switch => yes.to_string(),
            _ => {
                let kind = if switch { "true or false" } else { "\"text\"" };
                return Err(at(value.span().start, format!("`{known}` takes {kind}")));
            }
        };
        let origin = format!("{known} in {}", path.display());
        layer.0.push((known, Given { text, origin }));
    }
    Ok(layer)
}

fn unknown_key(name: &str) -> String {
    let nearest = KEYS
        .into_iter()
        .map(|known| (strsim::jaro_winkler(known, name), known))
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    match nearest {
        Some((_, known)) => format!("unknown key `{name}`; did you mean `{known}`?"),
        None => format!("unknown key `{name}`; known are {}", KEYS.join(", ")),
    }
}

pub(super) fn boolean(given: &Given) -> Result<bool, Error> {
    match given.text.as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(given.fault(format!("`{other}` is neither true nor false"))),
    }
}

fn address(given: &Given, insecure: bool) -> Result<SocketAddr, Error> {
    let text = given.text.replacen("localhost:", "127.0.0.1:", 1);
    let address: SocketAddr = text.parse().map_err(|_| {
        given.fault(format!("`{}` is no address; write {LISTEN_DEFAULT}", given.text))
    })?;
    if !address.ip().is_loopback() && !insecure {
        return Err(given.fault(format!(
            "{address} can be reached from other machines, and the traffic is not encrypted; \
             listen on 127.0.0.1:{port}, encrypt it with --tls-cert and --tls-key, or accept the risk \
             with --insecure-listen",
            port = address.port()
        )));
    }
    Ok(address)
}

/// Both or none.
fn tls(cert: Option<Given>, key: Option<Given>) -> Result<Option<(PathBuf, PathBuf)>, Error> {
    match (cert, key) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => Ok(Some((cert.text.into(), key.text.into()))),
        (Some(cert), None) => Err(cert.fault("needs its key; give --tls-key FILE as well")),
        (None, Some(key)) => Err(key.fault("needs its certificate; give --tls-cert FILE as well")),
    }
}

fn cluster_name(given: Option<Given>) -> Result<String, Error> {
    let Some(given) = given else { return Ok("default".to_owned()) };
    units::check_name(&given.text).map_err(|error| given.fault(error))?;
    Ok(given.text)
}

/// No text of this is repeated in an error: it may hold a password.
fn database(url: Option<Given>, file: Option<Given>) -> Result<store::Database, Error> {
    let database = match &url {
        Some(given) => given.text.parse().map_err(|error: store::BadUrl| given.fault(error))?,
        None => store::Database::default(),
    };
    let Some(file) = file else { return Ok(database) };
    let store::Database::Postgres(url) = database else {
        return Err(file.fault("there is no password without --database postgres://…"));
    };
    let text = fs::read_to_string(&file.text)
        .map_err(|error| file.fault(format!("cannot read {}: {error}", file.text)))?;
    Ok(store::Database::Postgres(url.with_password(text.trim_end_matches(['\r', '\n']))))
}

/// `7d`: what happened in the last seven days. `7d,tumbling`: in the week, and each week anew.
fn usage(window: Option<Given>, half_life: Option<Given>) -> Result<Option<UsageWindow>, Error> {
    let span = |given: &Given, text: &str| Millis::read(text).map_err(|fault| given.fault(fault));
    let Some(window) = window else {
        return half_life.map_or(Ok(None), |given| {
            Err(given.fault("needs a window to count in; give --usage-window too, such as 7d"))
        });
    };
    let (length, kind) = match window.text.split_once(',') {
        None => (window.text.as_str(), WindowKind::Sliding),
        Some((length, "tumbling")) => {
            (length, WindowKind::Tumbling { start: units::Instant::default() })
        }
        Some((_, other)) => {
            let fault = format!("`{other}` is no kind of window; write `7d` or `7d,tumbling`");
            return Err(window.fault(fault));
        }
    };
    let length_ms = span(&window, length)?;
    let half_life_ms = half_life.as_ref().map(|given| span(given, &given.text)).transpose()?;
    let made = UsageWindow::new(length_ms, kind, half_life_ms);
    made.map(Some).map_err(|error| match (&error, &half_life) {
        (UsageWindowError::HalfLife, Some(given)) => given.fault(error),
        _ => window.fault(error),
    })
}

/// Spans of a day or more.
fn kept(events: Option<Given>, audit: Option<Given>) -> Result<control::Kept, Error> {
    let usual = control::Kept::default();
    let span = |given: Option<Given>, usual_ms: u64| {
        let Some(given) = given else { return Ok(usual_ms) };
        match Millis::read(&given.text) {
            Ok(ms) if ms < KEPT_MS_MIN => {
                Err(given.fault(format!("`{}` is too short; at least 1d", given.text)))
            }
            read => read.map_err(|fault| given.fault(fault)),
        }
    };
    Ok(control::Kept {
        events_ms: span(events, usual.events_ms)?,
        audit_ms: span(audit, usual.audit_ms)?,
    })
}

/// The highest origin that says anything about machines decides.
fn machines(layers: &[Layer]) -> Result<Machines, Error> {
    for layer in layers {
        match (layer.get("gpus").cloned(), layer.get("nodes").cloned()) {
            (Some(gpus), None) => return Ok(Machines::Gpus(gpus)),
            (None, Some(nodes)) => return Ok(Machines::Nodes(nodes)),
            (Some(gpus), Some(nodes)) => {
                return Err(gpus.fault(format!("cannot be used together with {}", nodes.origin)));
            }
            (None, None) => {}
        }
    }
    Ok(Machines::Found)
}
