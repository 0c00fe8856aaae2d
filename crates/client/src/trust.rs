//! Trusted certificates. Does not know about: addresses and tokens.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::Error;

/// Trusts the authorities in this PEM file, or those that this machine trusts.
pub(crate) fn authorities(file: Option<&Path>) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            let wrong = |fault: String| Error::Authorities { path: file.to_owned(), fault };
            let all = CertificateDer::pem_file_iter(file)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| wrong(error.to_string()))?;
            for one in all {
                roots.add(one).map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("it holds no `BEGIN CERTIFICATE`".to_owned()));
            }
        }
        None => {
            let known = rustls_native_certs::load_native_certs().certs;
            // A certificate that cannot be parsed is not trusted.
            let _counts = roots.add_parsable_certificates(known);
        }
    }
    Ok(builder()?.with_root_certificates(roots).with_no_client_auth())
}

/// Trusts no authority: for connections that are not encrypted.
pub(crate) fn no_authorities() -> Result<ClientConfig, Error> {
    Ok(builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// Trusts any certificate: for a listener whose owner the kernel reports. A certificate adds
/// nothing to that, and is seldom issued for the loopback address.
pub(crate) fn anybody() -> Result<ClientConfig, Error> {
    let verifier = Arc::new(NoVerification(provider()));
    Ok(builder()?.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

type Builder = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;

fn builder() -> Result<Builder, Error> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Tls(error.to_string()))
}

#[derive(Debug)]
struct NoVerification(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
