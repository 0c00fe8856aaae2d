//! The certificate of the server. Owns: reading the pair, noticing that it was replaced, and saying
//! what is wrong with it. A connection goes on with the certificate it began with.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use api_types::Time;
use arc_swap::ArcSwap;
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use units::Instant;

/// A certificate that ends within this time is warned of.
const SOON_MS: u64 = 14 * 24 * 3600 * 1000;

/// Error of a certificate.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error("cannot use {path} as the {what}: {fault}")]
    File {
        /// `certificate` or `key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Description of the fault.
        fault: String,
    },
    /// The two do not belong together.
    #[error(
        "the key in {key} is not that of the certificate in {certificate}; give the two that were made together"
    )]
    NotAPair {
        /// File of the certificate.
        certificate: PathBuf,
        /// File of the key.
        key: PathBuf,
    },
    /// The library refuses.
    #[error("cannot set up TLS: {0}")]
    Unusable(#[from] rustls::Error),
}

/// The certificate and key for new connections.
#[derive(Debug)]
struct Pair {
    certificate: PathBuf,
    key: PathBuf,
    current: ArcSwap<CertifiedKey>,
    /// The files as they were last looked at.
    seen: Mutex<Stamp>,
}

/// Stamp of the files, which changes when one is replaced: time, size and number of each.
type Stamp = [(i64, i64, u64, u64); 2];

impl ResolvesServerCert for Pair {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

/// TLS for a server. Cheap to clone.
#[derive(Clone)]
pub struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    pair: Arc<Pair>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tls({})", self.pair.certificate.display())
    }
}

impl Tls {
    /// TLS with a chain of certificates, the server's own first, and its key, both PEM.
    ///
    /// # Errors
    /// They cannot be read or do not belong together.
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let current = read(certificate, key)?;
        let pair = Arc::new(Pair {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            seen: Mutex::new(stamp(certificate, key)),
            current: ArcSwap::from_pointee(current),
        });
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(pair.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), pair })
    }

    /// Reads the files again. On an error the certificate stays as it was.
    ///
    /// # Errors
    /// See [`Tls::open`].
    pub fn reload(&self) -> Result<(), TlsError> {
        let Pair { certificate, key, .. } = &*self.pair;
        *self.seen() = stamp(certificate, key);
        self.pair.current.store(Arc::new(read(certificate, key)?));
        Ok(())
    }

    /// Reads the files again if one of them was replaced, and then returns `true`.
    ///
    /// # Errors
    /// See [`Tls::open`]; once for each time they change.
    pub fn reload_if_changed(&self) -> Result<bool, TlsError> {
        if *self.seen() == stamp(&self.pair.certificate, &self.pair.key) {
            return Ok(false);
        }
        self.reload().map(|()| true)
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Stamp> {
        self.pair.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the certificate is for this name.
    pub fn is_for(&self, name: &str) -> bool {
        let current = self.pair.current.load();
        let Ok(own) = current.end_entity_cert() else { return false };
        let Ok(name) = ServerName::try_from(name) else { return false };
        ParsedCertificate::try_from(own).is_ok_and(|own| verify_server_name(&own, &name).is_ok())
    }

    /// Warnings about the certificate, for the operator.
    #[must_use]
    pub fn warnings(&self, now: Instant) -> Vec<String> {
        let Pair { certificate, key, current, .. } = &*self.pair;
        let mut all = Vec::new();
        let end = current.load().end_entity_cert().ok().and_then(|own| not_after(own));
        if let Some(end) = end {
            let (file, at) = (certificate.display(), Time(end));
            if end <= now {
                all.push(format!("the certificate in {file} expired at {at}; clients refuse it"));
            } else if end.since_ms(now) < SOON_MS {
                all.push(format!("the certificate in {file} expires at {at}; replace it before"));
            }
        }
        let exposed = |meta: fs::Metadata| meta.permissions().mode() & 0o077 != 0;
        if fs::metadata(key).is_ok_and(exposed) {
            let file = key.display();
            all.push(format!("the key in {file} may be read by others; run `chmod 600 {file}`"));
        }
        all
    }
}

fn stamp(certificate: &Path, key: &Path) -> Stamp {
    [certificate, key].map(|path| {
        let of = |meta: fs::Metadata| (meta.mtime(), meta.mtime_nsec(), meta.size(), meta.ino());
        fs::metadata(path).map(of).unwrap_or_default()
    })
}

fn read(certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let wrong = |what, path: &Path, fault: &dyn std::fmt::Display| TlsError::File {
        what,
        path: path.to_owned(),
        fault: fault.to_string(),
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong("certificate", certificate, &error))?;
    if chain.is_empty() {
        return Err(wrong("certificate", certificate, &"it holds no `BEGIN CERTIFICATE`"));
    }
    let own = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong("key", key, &error))?;
    CertifiedKey::from_der(chain, own, &ring::default_provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            TlsError::NotAPair { certificate: certificate.to_owned(), key: key.to_owned() }
        }
        rustls::Error::InvalidCertificate(_) => wrong("certificate", certificate, &error),
        error => wrong("key", key, &error),
    })
}

/// End of a certificate (RFC 5280, 4.1): the fifth or sixth element of the first one.
fn not_after(certificate: &[u8]) -> Option<Instant> {
    let (_, whole, _) = element(certificate)?;
    let (_, mut rest, _) = element(whole)?;
    let (version, _, after) = element(rest)?;
    if version == 0xa0 {
        rest = after;
    }
    for _ in ["number", "algorithm", "issuer"] {
        rest = element(rest)?.2;
    }
    let (_, validity, _) = element(rest)?;
    let (_, _, after_begin) = element(validity)?;
    let (kind, text, _) = element(after_begin)?;
    let text = std::str::from_utf8(text).ok()?;
    let (year, rest) = match kind {
        // Two digits of the year: 1950 to 2049.
        0x17 => {
            let (year, rest) = text.split_at_checked(2)?;
            let century = if year < "50" { 20 } else { 19 };
            (format!("{century}{year}"), rest)
        }
        _ => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.to_owned(), rest)
        }
    };
    let part = |at: usize| rest.get(at..at + 2);
    let (month, day) = (part(0)?, part(2)?);
    let (hour, minute, second) = (part(4)?, part(6)?, part(8)?);
    let time = format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z").parse::<Time>();
    time.ok().map(|time| time.0)
}

/// The first element of DER: its tag, its content, and what follows.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match usize::from(first) {
        short @ ..0x80 => (short, rest),
        long => {
            let (digits, rest) =
                rest.split_at_checked(long - 0x80).filter(|(d, _)| d.len() <= 4)?;
            (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), rest)
        }
    };
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Made {
        dir: tempfile::TempDir,
        key: rcgen::KeyPair,
    }

    impl Made {
        /// A pair that ends at this date.
        fn new(year: i32) -> Self {
            let made = Self {
                dir: tempfile::tempdir().unwrap(),
                key: rcgen::KeyPair::generate().unwrap(),
            };
            let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            params.not_after = rcgen::date_time_ymd(year, 2, 3);
            let certificate = params.self_signed(&made.key).unwrap();
            fs::write(made.certificate(), certificate.pem()).unwrap();
            fs::write(made.key_file(), made.key.serialize_pem()).unwrap();
            fs::set_permissions(made.key_file(), fs::Permissions::from_mode(0o600)).unwrap();
            made
        }

        fn certificate(&self) -> PathBuf {
            self.dir.path().join("cert.pem")
        }

        fn key_file(&self) -> PathBuf {
            self.dir.path().join("key.pem")
        }

        fn open(&self) -> Result<Tls, TlsError> {
            Tls::open(&self.certificate(), &self.key_file())
        }
    }

    fn at(text: &str) -> Instant {
        text.parse::<Time>().unwrap().0
    }

    #[test]
    fn a_certificate_that_ends_is_warned_of() {
        for (year, now, said) in [
            (2040, "2039-12-31T00:00:00Z", None),
            (2040, "2040-01-25T00:00:00Z", Some("expires at 2040-02-03T00:00:00")),
            (2040, "2040-02-03T00:00:00Z", Some("expired at 2040-02-03T00:00:00")),
            (2077, "2076-12-31T00:00:00Z", None),
            (2077, "2078-01-01T00:00:00Z", Some("expired at 2077-02-03T00:00:00")),
        ] {
            let warnings = Made::new(year).open().unwrap().warnings(at(now)).join("; ");
            assert_eq!(said.is_none(), warnings.is_empty(), "{year} {now}: {warnings}");
            assert!(warnings.contains(said.unwrap_or_default()), "{year} {now}: {warnings}");
        }
        let made = Made::new(2040);
        fs::set_permissions(made.key_file(), fs::Permissions::from_mode(0o644)).unwrap();
        let warnings = made.open().unwrap().warnings(at("2030-01-01T00:00:00Z"));
        assert!(warnings[0].contains("may be read by others; run `chmod 600"), "{warnings:?}");
    }

    #[test]
    fn the_names_of_a_certificate_are_known() {
        let tls = Made::new(2040).open().unwrap();
        assert!(tls.is_for("localhost"));
        for name in ["localhost.evil.example", "evil.example", "127.0.0.1", ""] {
            assert!(!tls.is_for(name), "{name}");
        }
    }

    #[test]
    fn what_is_no_pair_is_refused_by_the_name_of_the_file() {
        let (one, other) = (Made::new(2040), Made::new(2040));
        let said = |tls: Result<Tls, TlsError>| tls.unwrap_err().to_string();
        let mixed = said(Tls::open(&one.certificate(), &other.key_file()));
        assert!(mixed.contains("is not that of the certificate in"), "{mixed}");
        let swapped = said(Tls::open(&one.key_file(), &one.certificate()));
        assert!(swapped.contains("key.pem as the certificate: it holds no `BEGIN"), "{swapped}");
        let none = said(Tls::open(&one.dir.path().join("none"), &one.key_file()));
        assert!(none.contains("none as the certificate"), "{none}");
        let key = said(Tls::open(&one.certificate(), &one.certificate()));
        assert!(key.contains("cert.pem as the key"), "{key}");
    }

    #[test]
    fn a_replaced_pair_is_noticed_and_a_wrong_one_changes_nothing() {
        let (made, next) = (Made::new(2040), Made::new(2041));
        let tls = made.open().unwrap();
        let own = |tls: &Tls| tls.pair.current.load().end_entity_cert().unwrap().to_vec();
        let before = own(&tls);
        assert!(!tls.reload_if_changed().unwrap());
        fs::rename(next.certificate(), made.certificate()).unwrap();
        assert!(matches!(tls.reload_if_changed(), Err(TlsError::NotAPair { .. })));
        assert!(!tls.reload_if_changed().unwrap(), "told once");
        assert_eq!(own(&tls), before, "half of a pair is none");
        fs::rename(next.key_file(), made.key_file()).unwrap();
        assert!(tls.reload_if_changed().unwrap());
        assert_ne!(own(&tls), before);
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        for der in [&[][..], &[0x30], &[0x30, 0x82, 0xff], &[0x30, 0x03, 1, 2, 3], &[0xff; 64]] {
            assert_eq!(not_after(der), None);
        }
    }
}
