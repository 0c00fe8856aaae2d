//! The rule for labels, as Kubernetes has it: one rule, one error text.

/// Maximum length of a name or value, in characters.
const PART_CHARS_MAX: usize = 63;
/// Maximum length of the prefix of a key, in characters.
const PREFIX_CHARS_MAX: usize = 253;

fn is_plain(text: &str, others: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(ends)
        && text.ends_with(ends)
        && text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

/// Checks key and value of a label: `zone`, `run.ai/type`.
///
/// # Errors
/// The text says what is allowed.
pub fn check_label(key: &str, value: &str) -> Result<(), String> {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(p, n)| (Some(p), n));
    let prefix_fits = prefix.is_none_or(|p| p.len() <= PREFIX_CHARS_MAX && is_plain(p, "-."));
    if !prefix_fits || name.len() > PART_CHARS_MAX || !is_plain(name, "-_.") {
        return Err(format!(
            "`{}` is not a valid label key; 1 to {PART_CHARS_MAX} letters, digits, `-`, `_` and `.`, after \
             a prefix such as `example.org/` if need be",
            crate::shown(key)
        ));
    }
    if value.len() > PART_CHARS_MAX || !(value.is_empty() || is_plain(value, "-_.")) {
        return Err(format!(
            "`{}` is not a valid label value; up to {PART_CHARS_MAX} letters, digits, `-`, `_` and `.`",
            crate::shown(value)
        ));
    }
    Ok(())
}

/// Reads labels written like `zone=a,run.ai/type=big`.
///
/// # Errors
/// The text names the invalid part and the syntax.
pub fn parse_labels(text: &str) -> Result<std::collections::BTreeMap<String, String>, String> {
    let pair = |part: &str| {
        let Some((key, value)) = part.split_once('=') else {
            let part = crate::shown(part);
            return Err(format!("`{part}` is not a label; write key=value, such as zone=a"));
        };
        check_label(key, value)?;
        Ok((key.to_owned(), value.to_owned()))
    };
    text.split(',').map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_kubernetes() {
        for (key, value) in
            [("zone", "a"), ("run.ai/type", "big-1"), ("a", ""), ("A_b.c", "v1.2_x"), ("9", "0")]
        {
            assert_eq!(check_label(key, value), Ok(()), "{key}={value}");
        }
        for (key, value, said) in [
            ("", "a", "`` is not a valid label key"),
            ("-a", "a", "`-a` is not a valid label key"),
            ("a/", "a", "`a/` is not a valid label key"),
            ("/a", "a", "`/a` is not a valid label key"),
            ("a b", "a", "`a b` is not a valid label key"),
            ("a/b/c", "a", "`a/b/c` is not a valid label key"),
            ("a", "b c", "`b c` is not a valid label value"),
            ("a", "b-", "`b-` is not a valid label value"),
            ("é", "a", "`é` is not a valid label key"),
        ] {
            let fault = check_label(key, value).unwrap_err();
            assert!(fault.starts_with(said), "{key}={value}: {fault}");
        }
        assert!(
            check_label(&"a".repeat(64), "").is_err() && check_label("a", &"b".repeat(64)).is_err()
        );
    }

    #[test]
    fn several_are_written_with_commas() {
        let labels = parse_labels("zone=a,run.ai/type=").unwrap();
        assert_eq!(format!("{labels:?}"), r#"{"run.ai/type": "", "zone": "a"}"#);
        assert!(parse_labels("zone").unwrap_err().starts_with("`zone` is not a label; write key="));
        assert!(parse_labels("").is_err() && parse_labels("a=b,").is_err());
    }
}
