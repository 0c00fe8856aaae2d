//! Checks of values that can never be right, for every kind of asset.

use http_kit::ApiError;

/// Refuses what lacks one of these.
pub(super) fn needs<const N: usize>(fields: [(&str, bool); N]) -> Result<(), ApiError> {
    match fields.into_iter().find(|(_, there)| !there) {
        Some((field, _)) => Err(ApiError::field(&format!("spec.{field}"), "must be set")),
        None => Ok(()),
    }
}

/// Refuses a path that does not begin at the root.
pub(super) fn absolute(field: &str, path: Option<&str>) -> Result<(), ApiError> {
    match path {
        Some(path) if !path.starts_with('/') => {
            let why = format!("`{path}` is not an absolute path; begin it with /");
            Err(ApiError::field(field, why))
        }
        _ => Ok(()),
    }
}

/// Refuses what is not written as permissions are.
pub(super) fn mode(field: &str, text: Option<&str>) -> Result<(), ApiError> {
    let octal = |text: &str| {
        let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3);
        digits.is_some_and(|rest| rest.bytes().all(|digit| (b'0'..=b'7').contains(&digit)))
    };
    match text.filter(|text| !octal(text)) {
        Some(text) => {
            let why = format!("`{text}` is not allowed; four octal digits such as 0644");
            Err(ApiError::field(field, why))
        }
        None => Ok(()),
    }
}

/// Reads permissions.
pub(super) fn bits(field: &str, text: Option<&str>) -> Result<Option<u32>, ApiError> {
    mode(field, text)?;
    Ok(text.and_then(|text| u32::from_str_radix(text, 8).ok()))
}

/// Refuses a word that is none of these.
pub(super) fn one_of(field: &str, word: Option<&str>, allowed: &[&str]) -> Result<(), ApiError> {
    match word.filter(|word| !allowed.contains(word)) {
        Some(word) => {
            let why = format!("`{word}` is not allowed; {}", allowed.join(", "));
            Err(ApiError::field(&format!("spec.{field}"), why))
        }
        None => Ok(()),
    }
}
