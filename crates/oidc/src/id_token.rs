//! ID tokens (OpenID Connect Core 1.0, 3.1.3.7). Owns: every reason for which one is refused. Does
//! not know about: where keys come from, and what time it is.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};
use units::Instant;

use crate::error::TokenFault;
use crate::keys::{Algorithm, Keys};

/// Longest token looked at, in bytes.
const TOKEN_BYTES_MAX: usize = 64 * 1024;
/// Largest difference between the clocks of provider and server, in seconds.
const LEEWAY_S: u64 = 60;
/// Longest subject, by the standard.
const SUBJECT_BYTES_MAX: usize = 255;

/// Required values of a token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) nonce: Nonce<'a>,
    pub(crate) now: Instant,
}

/// Login that a token must belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nonce<'a> {
    /// The token has this nonce.
    Is(&'a str),
    /// Another program got the token, and has checked the nonce.
    Any,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

/// The claims of a token whose signature and claims are valid.
pub(crate) fn verify(
    token: &str,
    keys: &Keys,
    expected: Expected<'_>,
) -> Result<Map<String, Value>, TokenFault> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(TokenFault::Malformed);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(TokenFault::Malformed)?;
    let (head, body) = signed.split_once('.').ok_or(TokenFault::Malformed)?;
    let decode = |part| BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenFault::Malformed);
    let header: Header =
        serde_json::from_slice(&decode(head)?).map_err(|_| TokenFault::Malformed)?;
    let algorithm = Algorithm::named(&header.alg)?;
    // Access tokens and notes of logouts are signed with the same keys.
    let other_kind = header.typ.is_some_and(|kind| !kind.eq_ignore_ascii_case("JWT"));
    if other_kind || header.crit.is_some() {
        return Err(TokenFault::Kind);
    }
    keys.verify(algorithm, header.kid.as_deref(), signed.as_bytes(), &decode(signature)?)?;
    let claims = serde_json::from_slice(&decode(body)?).map_err(|_| TokenFault::Malformed)?;
    check(&claims, expected)?;
    Ok(claims)
}

fn check(claims: &Map<String, Value>, expected: Expected<'_>) -> Result<(), TokenFault> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let issuer = text("iss").unwrap_or_default();
    if issuer != expected.issuer {
        return Err(TokenFault::Issuer(units::shown(issuer)));
    }
    check_audience(claims, expected.client_id)?;
    let now_s = expected.now.0 / 1000;
    let expires = seconds(claims, "exp")?.ok_or(TokenFault::Malformed)?;
    let issued = seconds(claims, "iat")?.ok_or(TokenFault::Malformed)?;
    if expires.saturating_add(LEEWAY_S) <= now_s {
        return Err(TokenFault::Expired);
    }
    let begins = seconds(claims, "nbf")?.unwrap_or(issued).max(issued);
    if begins > now_s.saturating_add(LEEWAY_S) {
        return Err(TokenFault::Early);
    }
    if expected.nonce != Nonce::Any && text("nonce").map(Nonce::Is) != Some(expected.nonce) {
        return Err(TokenFault::Nonce);
    }
    let subject = text("sub").unwrap_or_default();
    let named = (1..=SUBJECT_BYTES_MAX).contains(&subject.len());
    named.then_some(()).ok_or(TokenFault::Subject)
}

/// Seconds since the epoch; some providers write fractions.
fn seconds(claims: &Map<String, Value>, name: &str) -> Result<Option<u64>, TokenFault> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let whole = value.as_u64().or_else(|| {
        let text = value.as_number()?.to_string();
        text.split('.').next()?.parse().ok()
    });
    whole.map(Some).ok_or(TokenFault::Malformed)
}

/// The client must be an audience and, if there are others or an `azp` claim, the authorized party.
fn check_audience(claims: &Map<String, Value>, client_id: &str) -> Result<(), TokenFault> {
    let audiences: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let party = claims.get("azp").map(|party| party.as_str().unwrap_or_default());
    let asked = match party {
        Some(party) => party == client_id,
        None => audiences.len() <= 1,
    };
    if audiences.contains(&client_id) && asked {
        return Ok(());
    }
    Err(TokenFault::Audience(units::shown(&audiences.join(", "))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Signer;

    const NOW: Instant = Instant(1_700_000_000_000);

    fn claims() -> Value {
        json!({
            "iss": "https://id.example.org", "aud": "elastane", "sub": "7", "nonce": "n",
            "iat": 1_700_000_000, "exp": 1_700_000_300,
        })
    }

    fn expected() -> Expected<'static> {
        let (issuer, client_id) = ("https://id.example.org", "elastane");
        Expected { issuer, client_id, nonce: Nonce::Is("n"), now: NOW }
    }

    fn look(signer: &Signer, token: &str) -> Result<Map<String, Value>, TokenFault> {
        let keys = Keys::of(serde_json::from_value(signer.jwks()).unwrap());
        verify(token, &keys, expected())
    }

    #[test]
    fn a_token_is_believed_only_if_every_claim_fits() {
        let signer = Signer::new("one");
        let other = |text: &str| TokenFault::Issuer(text.to_owned());
        let audience = |text: &str| TokenFault::Audience(text.to_owned());
        let with_client = json!(["elastane", "other"]);
        for (change, fault) in [
            (json!({}), None),
            (json!({"aud": ["elastane"]}), None),
            (json!({"aud": with_client, "azp": "elastane"}), None),
            (json!({"exp": 1_699_999_941}), None),
            (json!({"exp": 1_700_000_300.5}), None),
            (json!({"iss": "https://id.example.org/"}), Some(other("https://id.example.org/"))),
            (json!({"iss": null}), Some(other(""))),
            (json!({"aud": "other"}), Some(audience("other"))),
            (json!({"aud": null}), Some(audience(""))),
            (json!({"aud": with_client}), Some(audience("elastane, other"))),
            (json!({"azp": "other"}), Some(audience("elastane"))),
            (json!({"azp": 7}), Some(audience("elastane"))),
            (json!({"exp": 1_699_999_940}), Some(TokenFault::Expired)),
            (json!({"exp": "soon"}), Some(TokenFault::Malformed)),
            (json!({"exp": null}), Some(TokenFault::Malformed)),
            (json!({"iat": 1_700_000_061}), Some(TokenFault::Early)),
            (json!({"nbf": 1_700_000_061}), Some(TokenFault::Early)),
            (json!({"nonce": "m"}), Some(TokenFault::Nonce)),
            (json!({"nonce": null}), Some(TokenFault::Nonce)),
            (json!({"sub": ""}), Some(TokenFault::Subject)),
            (json!({"sub": 7}), Some(TokenFault::Subject)),
            (json!({"sub": "x".repeat(256)}), Some(TokenFault::Subject)),
        ] {
            let mut claims = claims();
            let changes = change.as_object().unwrap().clone();
            claims.as_object_mut().unwrap().extend(changes);
            assert_eq!(look(&signer, &signer.sign(&claims)).err(), fault, "{change}");
        }
    }

    #[test]
    fn a_signature_is_of_the_providers_key_and_never_done_without() {
        let (signer, stranger) = (Signer::new("one"), Signer::new("one"));
        let token = signer.sign(&claims());
        assert!(look(&signer, &token).is_ok());
        assert_eq!(look(&stranger, &token), Err(TokenFault::Signature));
        assert_eq!(look(&Signer::new("two"), &token), Err(TokenFault::UnknownKey));
        let (signed, _) = token.rsplit_once('.').unwrap();
        assert_eq!(look(&signer, &format!("{signed}.")), Err(TokenFault::Signature));
        let body = signed.split_once('.').unwrap().1;
        for alg in ["none", "None", "HS256", "RS384", "ES512", "PS256", "es256", ""] {
            let head = BASE64_URL_SAFE_NO_PAD.encode(json!({ "alg": alg }).to_string());
            let forged = look(&signer, &format!("{head}.{body}."));
            assert_eq!(forged, Err(TokenFault::Algorithm(alg.to_owned())), "{alg}");
        }
    }

    #[test]
    fn other_tokens_of_the_same_key_and_rubbish_are_refused() {
        let signer = Signer::new("one");
        for header in [json!({"typ": "at+jwt"}), json!({"crit": ["b64"], "b64": false})] {
            let token = signer.sign_with(header, &claims());
            assert_eq!(look(&signer, &token), Err(TokenFault::Kind));
        }
        let long = "a".repeat(70_000);
        for token in ["", "a", "a.b", "a.b.c", "....", "ä.ö.ü", "e30.e30.e30", long.as_str()] {
            assert_eq!(look(&signer, token), Err(TokenFault::Malformed), "{token}");
        }
    }

    #[test]
    fn a_token_that_another_program_got_needs_no_nonce_of_ours() {
        let signer = Signer::new("one");
        let keys = Keys::of(serde_json::from_value(signer.jwks()).unwrap());
        let any = Expected { nonce: Nonce::Any, ..expected() };
        assert!(verify(&signer.sign(&claims()), &keys, any).is_ok());
    }
}
