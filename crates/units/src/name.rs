//! The rule for names of projects and workloads: one rule, one error text, for CLI and API alike.

use thiserror::Error;

/// Longest name, in characters (Run:ai: DNS-1035 label, room left for pod suffixes).
pub const NAME_CHARS_MAX: usize = 49;

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "name `{name}` is not allowed: {fault}; a name is 1 to {max} lower-case letters, digits \
     and `-`, begins with a letter and does not end with `-`",
    max = NAME_CHARS_MAX
)]
pub struct NameError {
    /// The name as typed.
    pub name: String,
    /// What is wrong with it.
    pub fault: &'static str,
}

/// Checks a project or workload name.
///
/// # Errors
/// Says which part of the rule the name breaks.
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
}
