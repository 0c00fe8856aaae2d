//! Secrets: 256 random bits, of which only the hash is kept.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::Error;

/// Random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|fault| Error::NoRandomness(fault.to_string()))?;
    Ok(bytes)
}

/// A new secret of 256 random bits, as text.
///
/// # Errors
/// The operating system gives no random bytes.
pub fn new_secret() -> Result<String, Error> {
    Ok(BASE64_URL_SAFE_NO_PAD.encode(random::<32>()?))
}

/// SHA-256 of a secret, in hexadecimal. A plain hash is enough: 2^256 secrets cannot be tried.
#[must_use]
pub fn hash_secret(secret: &str) -> String {
    Sha256::digest(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Fingerprint of a hash: a token that carries it ends when the secret changes.
#[must_use]
pub fn fingerprint(secret_sha256: &str) -> String {
    hash_secret(secret_sha256)[..16].to_owned()
}

/// True if a secret has this hash; takes the same time wherever they differ.
#[must_use]
pub fn secret_matches(secret: &str, hash: &str) -> bool {
    let own = hash_secret(secret);
    let differing = own.bytes().zip(hash.bytes()).fold(0, |seen, (a, b)| seen | (a ^ b));
    std::hint::black_box(differing) == 0 && own.len() == hash.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_itself_matches() {
        let secret = new_secret().unwrap();
        let hash = hash_secret(&secret);
        assert_eq!(secret.len(), 43);
        assert!(secret_matches(&secret, &hash));
        assert!(!secret_matches(&secret[1..], &hash));
        assert!(!secret_matches(&secret, &hash[1..]));
        assert!(!secret_matches(&secret, ""));
        assert!(!secret_matches("", &hash));
    }

    #[test]
    fn the_hash_is_sha_256() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash_secret("abc"), abc);
    }
}
