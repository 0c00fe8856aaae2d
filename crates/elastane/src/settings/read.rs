//! Conversion of texts to the values of settings, each by itself. Owns: the allowed texts, and the
//! errors about others.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use model::WindowKind;
use orchestrator::PLACES_KEPT_MS_MAX;
use sim::scenario::amount::{Millis, Unit};
use spec::{UserLimit, UserLimits};
use tracing::level_filters::LevelFilter;

use super::{Error, SettingText};

/// Minimum retention of a log in milliseconds: a day.
const KEPT_MS_MIN: u64 = 86_400_000;
/// Maximum number of bindings of pods in flight.
const BINDS_MAX: usize = 1000;
/// Maximum number of ended workloads in memory: each takes a few KiB.
const ENDED_KEPT_MAX: usize = 100_000;
/// Maximum length of the domain of workloads, of the 253 characters of a name.
const DOMAIN_CHARS_MAX: usize = 189;

/// A window of time in which usage counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) length_ms: u64,
    pub(crate) kind: WindowKind,
}

/// Returns the text unchanged, for a value that is parsed later.
pub(crate) fn given(given: &SettingText) -> Result<SettingText, Error> {
    Ok(given.clone())
}

pub(crate) fn text(given: &SettingText) -> Result<String, Error> {
    Ok(given.text.clone())
}

pub(crate) fn path(given: &SettingText) -> Result<PathBuf, Error> {
    Ok(PathBuf::from(&given.text))
}

/// The default state directory, or the given one; an error without a home.
pub(crate) fn state_dir(given: &SettingText) -> Result<PathBuf, Error> {
    if given.text.is_empty() { Err(Error::NoHome) } else { path(given) }
}

pub(crate) fn switch(given: &SettingText) -> Result<bool, Error> {
    match given.text.as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(given.fault(format!("`{}` is neither true nor false", units::shown(other)))),
    }
}

pub(crate) fn level(given: &SettingText) -> Result<LevelFilter, Error> {
    given.text.parse().map_err(|_| {
        let text = units::shown(&given.text);
        given
            .fault(format!("`{text}` is not a level; write off, error, warn, info, debug or trace"))
    })
}

pub(crate) fn name(given: &SettingText) -> Result<String, Error> {
    units::check_name(&given.text).map_err(|error| given.fault(error))?;
    Ok(given.text.clone())
}

pub(crate) fn address(given: &SettingText) -> Result<SocketAddr, Error> {
    let text = given.text.replacen("localhost:", "127.0.0.1:", 1);
    text.parse().map_err(|_| {
        let text = units::shown(&given.text);
        given.fault(format!("`{text}` is not an address; write one such as 127.0.0.1:7070"))
    })
}

/// Names with commas between them, at least one.
pub(crate) fn names(given: &SettingText) -> Result<Vec<String>, Error> {
    let names = given.text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<_> = names.map(ToOwned::to_owned).collect();
    if names.is_empty() {
        return Err(given.fault("there is no name in it; write one such as elastane"));
    }
    Ok(names)
}

/// Maximum number of bindings in flight.
pub(crate) fn bind_concurrency(given: &SettingText) -> Result<usize, Error> {
    let count = given.text.parse().ok().filter(|count| (1..=BINDS_MAX).contains(count));
    count.ok_or_else(|| {
        given
            .fault(format!("`{}` is not a number from 1 to {BINDS_MAX}", units::shown(&given.text)))
    })
}

pub(crate) fn rate(given: &SettingText) -> Result<engine_kube::Rate, Error> {
    given.text.parse().map_err(|why: String| given.fault(why))
}

/// A size above 0.
pub(crate) fn bytes(given: &SettingText) -> Result<u64, Error> {
    match units::parse_bytes(&given.text) {
        Ok(0) => Err(given.fault("0 allows no copy at all; write a size such as 50GiB")),
        Ok(bytes) => Ok(bytes),
        Err(why) => Err(given.fault(format!("{why}; write a size such as 50GiB"))),
    }
}

/// A size in bytes, or 0 for none.
pub(crate) fn bytes_or_none(given: &SettingText) -> Result<u64, Error> {
    let bytes = units::parse_bytes(&given.text);
    bytes.map_err(|why| given.fault(format!("{why}; write a size such as 64MiB, or 0 for none")))
}

pub(crate) fn span_ms(given: &SettingText) -> Result<u64, Error> {
    Millis::read(&given.text).map_err(|fault| given.fault(fault))
}

/// Time for which places are kept, in milliseconds.
pub(crate) fn places_kept_ms(given: &SettingText) -> Result<u64, Error> {
    match Millis::read(&given.text) {
        Ok(ms) if ms <= PLACES_KEPT_MS_MAX => Ok(ms),
        Ok(_) => Err(given.fault(format!("`{}` is too long; at most 60s", given.text))),
        Err(_) => {
            let why = "is not a span of time up to 60s; write one such as 500ms or 30s";
            Err(given.fault(format!("`{}` {why}", given.text)))
        }
    }
}

/// A duration of at least a day, in milliseconds.
pub(crate) fn kept_ms(given: &SettingText) -> Result<u64, Error> {
    match span_ms(given)? {
        ms if ms < KEPT_MS_MIN => {
            Err(given.fault(format!("`{}` is too short; at least 1d", given.text)))
        }
        ms => Ok(ms),
    }
}

/// Number of ended workloads that stay in memory.
pub(crate) fn ended_kept(given: &SettingText) -> Result<usize, Error> {
    let count = given.text.parse().ok().filter(|count| *count <= ENDED_KEPT_MAX);
    count.ok_or_else(|| {
        let text = units::shown(&given.text);
        given.fault(format!("`{text}` is not a number of workloads; write one from 0 to 100000"))
    })
}

/// Limits by name: sizes for limits in bytes, else numbers.
pub(crate) fn user_limits(given: &SettingText) -> Result<UserLimits, Error> {
    let mut limits = UserLimits::default();
    let parts = given.text.split(',').map(str::trim).filter(|part| !part.is_empty());
    for part in parts {
        let Some((name, value)) = part.split_once('=') else {
            let part = units::shown(part);
            let why = format!("`{part}` has no value; write environment-bytes=256KiB");
            return Err(given.fault(why));
        };
        let Some(limit) = UserLimit::named(name.trim()) else {
            let all: Vec<_> = UserLimit::ALL.iter().map(|limit| limit.name()).collect();
            let (name, all) = (units::shown(name), all.join(", "));
            return Err(given.fault(format!("`{name}` is not a limit; write one of {all}")));
        };
        let wrong = |form| given.fault(format!("{name}: `{}` is not {form}", units::shown(value)));
        let value = match limit.unit() {
            spec::Unit::Bytes => {
                units::parse_bytes(value.trim()).map_err(|_| wrong("a size; write 1MiB"))
            }
            spec::Unit::Count => value.trim().parse().map_err(|_| wrong("a number; write 1000")),
        };
        limits.set(limit, value?);
    }
    Ok(limits)
}

/// `7d` is the last seven days; `7d,tumbling` restarts every seven days.
pub(crate) fn window(given: &SettingText) -> Result<Window, Error> {
    let (length, kind) = match given.text.split_once(',') {
        None => (given.text.as_str(), WindowKind::Sliding),
        Some((length, "tumbling")) => {
            (length, WindowKind::Tumbling { start: units::Instant::default() })
        }
        Some((_, other)) => {
            let other = units::shown(other);
            let fault = format!("`{other}` is not a kind of window; write `7d` or `7d,tumbling`");
            return Err(given.fault(fault));
        }
    };
    let length_ms = Millis::read(length).map_err(|fault| given.fault(fault))?;
    Ok(Window { length_ms, kind })
}

/// Database URL. An error never repeats its text, which may contain a password.
pub(crate) fn database(given: &SettingText) -> Result<store::Database, Error> {
    given.text.parse().map_err(|error: store::BadUrl| given.fault(error))
}

/// Database URL without the password.
pub(crate) fn database_shown(text: &str) -> String {
    match text.parse() {
        Ok(store::Database::Postgres(url)) => url.to_string(),
        Ok(store::Database::Sqlite) => text.to_owned(),
        Err(_) => String::new(),
    }
}

/// A domain name in lower case, short enough for a label before it.
pub(crate) fn domain(given: &SettingText) -> Result<String, Error> {
    let domain = given.text.to_ascii_lowercase();
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.chars().all(allowed);
    let is_address = domain.parse::<std::net::IpAddr>().is_ok();
    if domain.len() <= DOMAIN_CHARS_MAX && domain.split('.').all(is_label) && !is_address {
        return Ok(domain);
    }
    let text = units::shown(&given.text);
    Err(given.fault(format!("`{text}` is not a domain; write one such as apps.example.org")))
}

/// Folders by their absolute paths, with commas between them.
pub(crate) fn folders(given: &SettingText) -> Result<Vec<PathBuf>, Error> {
    let each = given.text.split(',').map(str::trim).filter(|path| !path.is_empty());
    let absolute = |path: &str| {
        let is = Path::new(path).is_absolute();
        let why = || given.fault(format!("`{path}` is not an absolute path; begin it with /"));
        is.then(|| PathBuf::from(path)).ok_or_else(why)
    };
    each.map(absolute).collect()
}
