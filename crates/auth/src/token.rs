//! Tokens in the form of a JSON Web Token signed with HMAC-SHA-256 (RFC 7519, RFC 7515).
//!
//! Owns: signing and verifying, without a clock. No other algorithm is accepted, `none` least of
//! all.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use thiserror::Error;
use units::Instant;
use uuid::Uuid;

use crate::Error as AuthError;
use crate::secret::random;

/// Longest token looked at, in bytes.
const TOKEN_BYTES_MAX: usize = 4096;

/// Identity in a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Name, as it is shown and recorded.
    #[serde(rename = "sub")]
    pub name: String,
    /// Principal, in the form of [`crate::Principal`].
    pub principal: String,
    /// The session it belongs to, or the [`crate::fingerprint`] of the secret it was given for;
    /// it ends with either.
    #[serde(default)]
    pub proof: String,
}

/// Claims of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Identity of the caller.
    #[serde(flatten)]
    pub identity: Identity,
    /// Id of the token.
    pub jti: Uuid,
    /// Issued, seconds since the epoch.
    pub iat: u64,
    /// Valid before, seconds since the epoch.
    pub exp: u64,
}

/// Error of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TokenFault {
    /// The token is not three parts of base64url and JSON.
    #[error("the token is malformed; get a new one")]
    Malformed,
    /// Signed in another way.
    #[error("the token is not signed with HS256; get one from this server")]
    Algorithm,
    /// The token was not signed by this server.
    #[error("the token was not issued by this server; get a new one")]
    Signature,
    /// The token has expired.
    #[error("the token has expired; get a new one")]
    Expired,
}

/// The signing key.
#[derive(Clone)]
pub struct Keys {
    key: [u8; 32],
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(..)")
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
}

impl Keys {
    /// A new random key.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn generate() -> Result<Self, AuthError> {
        Ok(Self { key: random()? })
    }

    /// The key with these bytes.
    #[must_use]
    pub const fn from_bytes(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The bytes, to be kept where only the server can read them.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.key
    }

    /// A token of a principal, valid from `now` for so many seconds.
    #[must_use]
    pub fn issue(&self, identity: &Identity, now: Instant, valid_s: u64) -> String {
        let iat = now.0 / 1000;
        let exp = iat.saturating_add(valid_s);
        let Identity { name, principal, proof } = identity;
        let payload = serde_json::json!({
            "iss": "elastane", "sub": name, "principal": principal, "proof": proof,
            "jti": Uuid::new_v4(), "iat": iat, "exp": exp,
        });
        let head = BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
        let body = BASE64_URL_SAFE_NO_PAD.encode(escape(&payload.to_string()));
        let signed = format!("{head}.{body}");
        let signature = self.mac(&signed).finalize().into_bytes();
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    /// Claims of a token, if this key signed it and it has not expired.
    ///
    /// # Errors
    /// Description of the fault.
    pub fn verify(&self, token: &str, now: Instant) -> Result<Claims, TokenFault> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenFault::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenFault::Malformed)?;
        let (head, body) = signed.split_once('.').ok_or(TokenFault::Malformed)?;
        let header: Header = part(head)?;
        if header.alg != "HS256" {
            return Err(TokenFault::Algorithm);
        }
        let signature =
            BASE64_URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenFault::Malformed)?;
        self.mac(signed).verify_slice(&signature).map_err(|_| TokenFault::Signature)?;
        let claims: Claims = part(body)?;
        if claims.exp <= now.0 / 1000 { Err(TokenFault::Expired) } else { Ok(claims) }
    }

    fn mac(&self, signed: &str) -> Hmac<Sha256> {
        // HMAC fills a short key with zeros up to a block; done here, nothing can fail.
        let mut block = [0; 64];
        block[..self.key.len()].copy_from_slice(&self.key);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(signed.as_bytes());
        mac
    }
}

/// Decodes one part of a token.
fn part<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, TokenFault> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenFault::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| TokenFault::Malformed)
}

/// Escapes what would give `-` or `_` in base64url. The official client decodes the payload with
/// plain base64, which knows neither. In ASCII only `>`, `?`, `~` and DEL can yield them, and in
/// JSON these, like everything beyond ASCII, occur inside strings only.
fn escape(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for unit in json.encode_utf16() {
        match char::from_u32(u32::from(unit)) {
            Some(c) if c.is_ascii() && !matches!(c, '>' | '?' | '~' | '\x7f') => out.push(c),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1_700_000_000_000);

    fn of(name: &str) -> Identity {
        Identity { name: name.to_owned(), principal: "user/1".to_owned(), proof: String::new() }
    }

    fn keys() -> Keys {
        Keys::from_bytes([7; 32])
    }

    #[test]
    fn a_token_says_who_and_until_when() {
        let claims = keys().verify(&keys().issue(&of("ann"), NOW, 60), NOW).unwrap();
        assert_eq!(
            (claims.identity.name.as_str(), claims.iat, claims.exp),
            ("ann", 1_700_000_000, 1_700_000_060)
        );
    }

    #[test]
    fn a_token_ends_when_announced() {
        let token = keys().issue(&of("ann"), NOW, 60);
        assert!(keys().verify(&token, NOW.plus_ms(59_999)).is_ok());
        assert_eq!(keys().verify(&token, NOW.plus_ms(60_000)), Err(TokenFault::Expired));
    }

    #[test]
    fn what_another_key_signed_is_refused() {
        let token = Keys::generate().unwrap().issue(&of("ann"), NOW, 60);
        assert_eq!(keys().verify(&token, NOW), Err(TokenFault::Signature));
    }

    #[test]
    fn a_changed_token_is_refused() {
        let token = keys().issue(&of("ann"), NOW, 60);
        let parts: Vec<&str> = token.split('.').collect();
        let forged = BASE64_URL_SAFE_NO_PAD.encode(
            r#"{"sub":"bob","jti":"00000000-0000-0000-0000-000000000000","iat":0,"exp":9999999999}"#,
        );
        let forged = format!("{}.{forged}.{}", parts[0], parts[2]);
        assert_eq!(keys().verify(&forged, NOW), Err(TokenFault::Signature));
        let cut = format!("{}.{}.", parts[0], parts[1]);
        assert_eq!(keys().verify(&cut, NOW), Err(TokenFault::Signature));
    }

    #[test]
    fn other_algorithms_are_refused() {
        let token = keys().issue(&of("ann"), NOW, 60);
        let rest = token.split_once('.').unwrap().1;
        for alg in ["none", "None", "HS512", "RS256", "hs256"] {
            let head = BASE64_URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"{alg}"}}"#));
            let forged = format!("{head}.{rest}");
            assert_eq!(keys().verify(&forged, NOW), Err(TokenFault::Algorithm), "{alg}");
        }
    }

    #[test]
    fn rubbish_is_malformed() {
        let long = "a".repeat(5000);
        for token in ["", "a", "a.b", "a.b.c", "....", "ä.ö.ü", long.as_str(), "e30.e30.e30"] {
            assert_eq!(keys().verify(token, NOW), Err(TokenFault::Malformed), "{token}");
        }
    }

    #[test]
    fn the_payload_is_plain_base64_whatever_the_subject() {
        for subject in ["a?b", "a??b", "~~~", "ö>ü", "x\u{7f}y", "😀"] {
            let token = keys().issue(&of(subject), NOW, 60);
            let payload = token.split('.').nth(1).unwrap();
            assert!(!payload.contains(['-', '_']), "{subject}: {payload}");
            assert_eq!(keys().verify(&token, NOW).unwrap().identity.name, subject);
        }
    }
}
