//! TLS to the API server. Owns: whom it trusts, and the certificate that it shows. Does not know
//! about: connections.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::config::Source;
use crate::error::ConfigError;

/// Protocols, the better first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Contents of the files that TLS needs. Connections are made again when they change.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Material {
    /// Authorities, as PEM; none: those of this machine.
    pub(crate) authority: Option<Vec<u8>>,
    /// Certificate and key of the client, as PEM.
    pub(crate) certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl Material {
    pub(crate) fn read(
        authority: Option<&Source>,
        certificate: Option<&(Source, Source)>,
    ) -> Result<Self, ConfigError> {
        let pair = |(certificate, key): &(Source, Source)| Ok((certificate.read()?, key.read()?));
        Ok(Self {
            authority: authority.map(Source::read).transpose()?,
            certificate: certificate.map(pair).transpose()?,
        })
    }
}

/// The settings of TLS. `place` is where the authority and the certificate are from.
pub(crate) fn config(material: &Material, place: [&str; 2]) -> Result<ClientConfig, ConfigError> {
    let tls = |error: rustls::Error| ConfigError::Tls(error.to_string());
    let mut roots = RootCertStore::empty();
    match &material.authority {
        Some(pem) => {
            for certificate in certificates("certificate-authority", place[0], pem)? {
                roots.add(certificate).map_err(tls)?;
            }
        }
        None => {
            // An unreadable certificate is not trusted.
            let _counts =
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(tls)?
        .with_root_certificates(roots);
    let mut config = match &material.certificate {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let chain = certificates("client-certificate", place[1], chain)?;
            let key = PrivateKeyDer::from_pem_slice(key)
                .map_err(|error| wrong("client-key", place[1], error.to_string()))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| wrong("client-certificate", place[1], error.to_string()))?
        }
    };
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    Ok(config)
}

fn certificates(
    field: &'static str,
    place: &str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| wrong(field, place, error.to_string()))?;
    if found.is_empty() {
        return Err(wrong(field, place, "holds no `BEGIN CERTIFICATE`".to_owned()));
    }
    Ok(found)
}

fn wrong(field: &'static str, place: &str, fault: String) -> ConfigError {
    ConfigError::Field { field, place: place.to_owned(), fault }
}
