//! The rule for names of projects and workloads: one rule, one error text, for CLI and API alike.

use thiserror::Error;

/// Maximum length of a name, in characters (Run:ai: DNS-1035 label, room left for pod suffixes).
pub const NAME_CHARS_MAX: usize = 49;

/// Maximum length at which a message repeats a word, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// Error of a name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "name `{shown}` is not allowed: {fault}; a name is 1 to {max} lower-case letters, digits \
     and `-`, begins with a letter and does not end with `-`",
    shown = shown(name),
    max = NAME_CHARS_MAX
)]
pub struct NameError {
    /// The name as typed.
    pub name: String,
    /// The broken part of the rule.
    pub fault: &'static str,
}

/// Checks a project or workload name.
///
/// # Errors
/// The text says which part of the rule the name breaks.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let fault = if name.is_empty() {
        "it is empty"
    } else if name.chars().count() > NAME_CHARS_MAX {
        "it is too long"
    } else if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        "it does not begin with a lower-case letter"
    } else if !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        "it has a character other than a-z, 0-9 and `-`"
    } else if name.ends_with('-') {
        "it ends with `-`"
    } else {
        return Ok(());
    };
    Err(NameError { name: name.to_owned(), fault })
}

/// External text as a message repeats it: on one line, escaped, and truncated.
#[must_use]
pub fn shown(typed: &str) -> String {
    let mut chars = typed.chars();
    let mut shown = String::new();
    for char in chars.by_ref().take(SHOWN_CHARS_MAX) {
        if char.is_control() || is_invisible(char) {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
    }
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

/// Escapes text for HTML and SVG, in an element and in an attribute.
#[must_use]
pub fn markup(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// Direction marks, and line separators that are no control characters.
const fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_dns_1035() {
        for good in ["a", "train1", "team-a", "x9"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        let long = "a".repeat(50);
        for bad in ["", "1a", "A", "a_b", "a-", "-a", "ä", "a b", long.as_str()] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_wrong_name_is_repeated_on_one_short_line() {
        let long = format!("a\n\u{1b}[31m\u{202e}{}", "x".repeat(10_000));
        let said = check_name(&long).unwrap_err().to_string();
        assert!(said.starts_with(r"name `a\n\u{1b}[31m\u{202e}xxx"), "{said}");
        assert!(said.contains("xxx…` is not allowed: it is too long"), "{said}");
        assert!(said.chars().count() < 300, "{said}");
        assert_eq!(shown("Größe 1"), "Größe 1");
    }
}
