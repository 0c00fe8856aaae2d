//! E-mail addresses, which are the names of people.

use http_kit::ApiError;

/// Longest e-mail address, by the standard.
const EMAIL_BYTES_MAX: usize = 254;

/// An e-mail address as the published pattern allows it, in small letters.
pub(crate) fn email(text: &str) -> Result<String, ApiError> {
    let allowed = |part: &str, others: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
    };
    let right = text.split_once('@').is_some_and(|(name, host)| {
        let (site, top) = host.rsplit_once('.').unwrap_or_default();
        allowed(name, "._%+-")
            && allowed(site, ".-")
            && top.len() >= 2
            && top.chars().all(|c| c.is_ascii_alphabetic())
    });
    if right && text.len() <= EMAIL_BYTES_MAX {
        return Ok(text.to_lowercase());
    }
    let shown = units::shown(text);
    Err(ApiError::field(
        "email",
        format!("`{shown}` is not an e-mail address; write ann@example.org"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_what_the_published_pattern_allows() {
        for (text, want) in [
            ("ann@example.org", Some("ann@example.org")),
            ("Ann.B+c_d%e-f@X-y.Example.ORG", Some("ann.b+c_d%e-f@x-y.example.org")),
            ("ann", None),
            ("ann@example", None),
            ("@example.org", None),
            ("ann@.o", None),
            ("ann@x.o1", None),
            ("a b@x.org", None),
            ("ann@x@y.org", None),
            ("ann\n@x.org", None),
            ("", None),
        ] {
            assert_eq!(email(text).ok().as_deref(), want, "{text}");
        }
        assert!(email(&format!("{}@example.org", "a".repeat(250))).is_err());
    }
}
