//! Encryption between the parts of a job. Owns: the proof that a process is a part. Does not know
//! about: the origin of the certificate.
//!
//! All parts of a job have one certificate and its key. A client accepts this certificate alone, so
//! it sends the token of the job to no process that lacks the key.

use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

/// The name in the certificates of all jobs: a part may be at any address.
pub const TLS_NAME: &str = "job.elastane";

/// Certificate and key of a job, as PEM.
#[derive(Clone)]
pub(crate) struct Tls {
    pem: String,
}

impl Tls {
    /// Certificate and key from a text; `None` if the text is empty.
    pub(crate) fn of(pem: &str) -> Option<Self> {
        let pem = pem.trim();
        (!pem.is_empty()).then(|| Self { pem: pem.to_owned() })
    }

    pub(crate) fn client(&self) -> ClientTlsConfig {
        let only = Certificate::from_pem(&self.pem);
        ClientTlsConfig::new().ca_certificate(only).domain_name(TLS_NAME)
    }

    /// The library finds certificate and key by their kinds.
    pub(crate) fn server(&self) -> ServerTlsConfig {
        ServerTlsConfig::new().identity(Identity::from_pem(&self.pem, &self.pem))
    }
}
