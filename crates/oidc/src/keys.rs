//! The public keys of a provider (RFC 7517), and whether one of them made a signature. Owns: which
//! algorithms there are, RS256 and ES256. There is no other, `none` and HS256 least of all: that
//! one would take a public key for a secret.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

use crate::error::TokenFault;

/// Bytes of a coordinate of P-256.
const COORDINATE: usize = 32;

/// Algorithm of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Es256,
}

impl Algorithm {
    pub(crate) fn named(name: &str) -> Result<Self, TokenFault> {
        match name {
            "RS256" => Ok(Self::Rs256),
            "ES256" => Ok(Self::Es256),
            other => Err(TokenFault::Algorithm(units::shown(other))),
        }
    }
}

/// The keys of a provider that can be used here.
#[derive(Debug, Default)]
pub(crate) struct Keys(Vec<Key>);

#[derive(Debug)]
struct Key {
    kid: Option<String>,
    public: Public,
}

#[derive(Debug)]
enum Public {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// The point, as 4, x, y.
    P256(Vec<u8>),
}

#[derive(Deserialize)]
pub(crate) struct Jwks {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    r#use: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Keys {
    /// Reads a set of keys. Keys of other kinds are left out: a provider may have them for other
    /// clients.
    pub(crate) fn of(set: Jwks) -> Self {
        let usable = |key| serde_json::from_value::<Jwk>(key).ok().and_then(Key::of);
        Self(set.keys.into_iter().filter_map(usable).collect())
    }

    /// Checks that the key of this id made the signature; without an id, that any key did.
    pub(crate) fn verify(
        &self,
        algorithm: Algorithm,
        kid: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), TokenFault> {
        let meant = |key: &&Key| {
            key.algorithm() == algorithm && (kid.is_none() || key.kid.as_deref() == kid)
        };
        let mut meant = self.0.iter().filter(meant).peekable();
        if meant.peek().is_none() {
            return Err(TokenFault::UnknownKey);
        }
        let made = meant.any(|key| key.made(message, signature));
        made.then_some(()).ok_or(TokenFault::Signature)
    }
}

impl Key {
    fn of(jwk: Jwk) -> Option<Self> {
        let bytes = |text: Option<String>| BASE64_URL_SAFE_NO_PAD.decode(text?).ok();
        let for_signatures = jwk.r#use.is_none_or(|purpose| purpose == "sig");
        let (public, alg) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => (Public::Rsa { n: bytes(jwk.n)?, e: bytes(jwk.e)? }, "RS256"),
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(jwk.x)?, bytes(jwk.y)?);
                let whole = x.len() == COORDINATE && y.len() == COORDINATE;
                whole.then(|| (Public::P256([&[4], x.as_slice(), &y].concat()), "ES256"))?
            }
            _ => return None,
        };
        let fits = for_signatures && jwk.alg.is_none_or(|own| own == alg);
        fits.then_some(Self { kid: jwk.kid, public })
    }

    const fn algorithm(&self) -> Algorithm {
        match self.public {
            Public::Rsa { .. } => Algorithm::Rs256,
            Public::P256(_) => Algorithm::Es256,
        }
    }

    fn made(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.public {
            Public::Rsa { n, e } => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
            Public::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(message, signature)
                .is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key, message and signature of RFC 7515, A.2.
    const RSA: &str = r#"{"keys": [{"kty": "RSA", "e": "AQAB", "n":
        "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
        }]}"#;
    const RSA_SIGNED: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    const RSA_SIGNATURE: &str = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    /// The example of A.3.
    const EC: &str = r#"{"keys": [{"kty": "EC", "crv": "P-256", "kid": "one",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;
    const EC_SIGNED: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    const EC_SIGNATURE: &str =
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";

    fn verify(
        keys: &str,
        (algorithm, kid): (Algorithm, Option<&str>),
        message: &str,
        signature: &str,
    ) -> Result<(), TokenFault> {
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
        let keys = Keys::of(serde_json::from_str(keys).unwrap());
        keys.verify(algorithm, kid, message.as_bytes(), &signature)
    }

    #[test]
    fn the_signatures_of_the_standard_are_good_and_no_others() {
        use Algorithm::{Es256, Rs256};
        assert_eq!(verify(RSA, (Rs256, None), RSA_SIGNED, RSA_SIGNATURE), Ok(()));
        assert_eq!(verify(EC, (Es256, None), EC_SIGNED, EC_SIGNATURE), Ok(()));
        assert_eq!(verify(EC, (Es256, Some("one")), EC_SIGNED, EC_SIGNATURE), Ok(()));
        for (keys, how, message, signature, fault) in [
            (RSA, (Rs256, None), "other", RSA_SIGNATURE, TokenFault::Signature),
            (RSA, (Rs256, None), RSA_SIGNED, EC_SIGNATURE, TokenFault::Signature),
            (EC, (Es256, None), "other", EC_SIGNATURE, TokenFault::Signature),
            (EC, (Es256, None), EC_SIGNED, "", TokenFault::Signature),
            (EC, (Es256, Some("two")), EC_SIGNED, EC_SIGNATURE, TokenFault::UnknownKey),
            (RSA, (Rs256, Some("one")), RSA_SIGNED, RSA_SIGNATURE, TokenFault::UnknownKey),
            (RSA, (Es256, None), EC_SIGNED, EC_SIGNATURE, TokenFault::UnknownKey),
        ] {
            assert_eq!(verify(keys, how, message, signature), Err(fault));
        }
    }

    #[test]
    fn keys_for_other_purposes_are_left_out() {
        for more in [r#""use": "enc""#, r#""alg": "ES384""#, r#""crv": "P-384""#, r#""x": "AA""#] {
            let name = more.split(':').next().unwrap();
            let key: serde_json::Value = serde_json::from_str(EC).unwrap();
            let mut key = key["keys"][0].as_object().unwrap().clone();
            let value = serde_json::from_str::<serde_json::Value>(&format!("{{{more}}}")).unwrap();
            let name = name.trim_matches('"');
            key.insert(name.to_owned(), value[name].clone());
            let set = serde_json::json!({"keys": [key, {"kty": "oct", "k": "AA"}, 7]}).to_string();
            let fault = verify(&set, (Algorithm::Es256, None), EC_SIGNED, EC_SIGNATURE);
            assert_eq!(fault, Err(TokenFault::UnknownKey), "{more}");
        }
        assert!(serde_json::from_str::<Jwks>("{}").is_err());
    }
}
