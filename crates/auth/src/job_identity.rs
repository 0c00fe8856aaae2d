//! The certificate of a job and its key. Owns: making the same ones of the same secret each time,
//! so that they are kept nowhere and pods that start later have them too. Does not know about:
//! which jobs encrypt, and how their parts use it.

use p256::SecretKey;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::{EncodePrivateKey, LineEnding};
use rcgen::{CertificateParams, DistinguishedName, DnType, PublicKeyData, SignatureAlgorithm};
use sha2::{Digest, Sha256};

use crate::Error;

/// Key of a job, which signs its certificate. Its signatures have no random part (RFC 6979):
/// clients in C compare the exact bytes of the trusted certificate.
struct JobKey {
    signs: SigningKey,
    public: Vec<u8>,
}

/// Certificate and key of a job as PEM, for parts that are called `name`: the same ones for the
/// same `secret`. The key is on P-256, which clients of all languages have.
///
/// # Errors
///
/// [`Error::JobIdentity`].
pub fn job_identity(secret: &str, name: &str) -> Result<String, Error> {
    let refused = |error: &dyn std::fmt::Display| Error::JobIdentity { what: error.to_string() };
    let key = JobKey::of(secret);
    let mut params =
        CertificateParams::new(vec![name.to_owned()]).map_err(|error| refused(&error))?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let certificate = params.self_signed(&key).map_err(|error| refused(&error))?.pem();
    let pem = SecretKey::from(&key.signs)
        .to_pkcs8_pem(LineEnding::LF)
        .map_err(|error| refused(&error))?;
    Ok(format!("{certificate}{}", pem.as_str()))
}

impl JobKey {
    fn of(secret: &str) -> Self {
        // One in 2^32 hashes is no scalar of the curve.
        let scalar = |number: u32| {
            let hash = Sha256::new().chain_update(secret).chain_update(number.to_be_bytes());
            SigningKey::from_slice(&hash.finalize()).ok()
        };
        let signs = (0..=u32::MAX).find_map(scalar).expect("one of 2^32 hashes is a scalar");
        let public = signs.verifying_key().to_sec1_point(false).as_bytes().to_vec();
        Self { signs, public }
    }
}

impl PublicKeyData for JobKey {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

impl rcgen::SigningKey for JobKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signature: DerSignature = self.signs.sign(message);
        Ok(signature.as_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_secret_has_the_same_certificate_and_key() {
        let one = job_identity("a", "job").unwrap();
        assert_eq!(one, job_identity("a", "job").unwrap());
        assert_ne!(one, job_identity("b", "job").unwrap());
        assert_eq!(one.matches("-----BEGIN CERTIFICATE-----").count(), 1);
        assert_eq!(one.matches("-----BEGIN PRIVATE KEY-----").count(), 1);
    }
}
