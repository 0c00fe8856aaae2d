//! Pages of reason codes. Owns: the pages as text. Does not know about: what a code means.

use access::Route;
use api_types::CodePage;
use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use http_kit::openapi::get;
use http_kit::{ApiError, nearest};

use crate::ApiState;

/// Each code with its page in Markdown, which begins with `# CODE NAME`.
const PAGES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/codes.rs"));

pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let (path, about) = ("/elastane/v1/codes/{code}", "The page of a reason code");
    std::iter::once(get(path, "get_code", about, page).own().of("Elastane"))
}

async fn page(Path(code): Path<String>) -> Result<Json<CodePage>, ApiError> {
    let found = PAGES.iter().find(|(known, _)| known.eq_ignore_ascii_case(&code));
    found.and_then(|(code, text)| read(code, text)).map(Json).ok_or_else(|| no_code(&code))
}

/// The page as values; `None` if it does not begin with its title.
fn read(code: &str, text: &str) -> Option<CodePage> {
    let (title, text) = text.split_once('\n')?;
    let name = title.strip_prefix("# ")?.strip_prefix(code)?.trim();
    Some(CodePage { code: code.to_owned(), name: name.to_owned(), text: text.trim().to_owned() })
}

fn no_code(wrong: &str) -> ApiError {
    let shown = units::shown(wrong);
    let why = match nearest(&wrong.to_uppercase(), PAGES.iter().map(|(code, _)| *code)) {
        Some(near) => format!("there is no reason code {shown}; did you mean `{near}`?"),
        None => format!("there is no reason code {shown}; a code is a letter and three digits"),
    };
    ApiError::new(StatusCode::NOT_FOUND, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_a_name_and_a_text() {
        assert!(PAGES.len() > 50, "{}", PAGES.len());
        for (code, text) in PAGES {
            let page = read(code, text).unwrap_or_else(|| panic!("{code}: {text}"));
            assert!(!page.name.is_empty() && !page.name.contains(' '), "{code}: {}", page.name);
            assert!(!page.text.is_empty(), "{code}");
        }
    }
}
