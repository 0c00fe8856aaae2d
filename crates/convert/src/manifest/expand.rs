//! Expansion of `$(NAME)` in commands, arguments and variables of manifests, by the rules of
//! Kubernetes. Owns: those rules. Does not know variables that are set when a pod starts.

use std::cell::Cell;
use std::collections::BTreeMap;

/// Value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VariableValue {
    /// Text in the manifest.
    Text(String),
    /// Value of a credential or a config map, which is read when the pod starts.
    Elsewhere,
}

/// Maximum total size of the words and variables of a container, in bytes.
pub(super) const EXPANDED_BYTES_MAX: usize = 1 << 20;

/// The variables of a container that have been read so far.
#[derive(Debug, Default)]
pub(super) struct Variables {
    pub(super) known: BTreeMap<String, VariableValue>,
    /// Total size so far, in bytes.
    bytes: Cell<usize>,
}

/// Errors of the expansion.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The value of this variable is not in the manifest.
    Elsewhere(String),
    /// The words and variables of a container exceed the maximum size.
    TooLong,
}

/// Replaces `$(NAME)` by the value of the variable and `$$` by `$`. Undefined variables are left
/// unchanged.
///
/// # Errors
/// The value of a variable is not in the manifest, or the total size is too large: variables that
/// refer to others may double with each.
pub(super) fn expand(text: &str, variables: &Variables) -> Result<String, Refused> {
    let (mut done, mut rest) = (String::with_capacity(text.len()), text);
    let left = EXPANDED_BYTES_MAX.saturating_sub(variables.bytes.get());
    // No name ends after the last `)`.
    let mut names_end = text.contains(')');
    while let Some((before, after)) = rest.split_once('$') {
        done.push_str(before);
        if done.len() > left {
            return Err(Refused::TooLong);
        }
        if let Some(after) = after.strip_prefix('$') {
            done.push('$');
            rest = after;
            continue;
        }
        rest = after;
        let opened = after.strip_prefix('(').filter(|_| names_end);
        let name = opened.and_then(|after| after.split_once(')'));
        names_end &= opened.is_none() || name.is_some();
        match name.map(|(name, after)| (name, variables.known.get(name), after)) {
            Some((_, Some(VariableValue::Text(value)), after)) => {
                done.push_str(value);
                rest = after;
            }
            Some((name, Some(VariableValue::Elsewhere), _)) => {
                return Err(Refused::Elsewhere(name.to_owned()));
            }
            Some((name, None, after)) => {
                done.push_str("$(");
                done.push_str(name);
                done.push(')');
                rest = after;
            }
            None => done.push('$'),
        }
    }
    done.push_str(rest);
    if done.len() > left {
        return Err(Refused::TooLong);
    }
    variables.bytes.set(variables.bytes.get() + done.len());
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_as_in_kubernetes() {
        let text = |value: &str| VariableValue::Text(value.to_owned());
        let known = [("A", text("1")), ("B", text("$(A)")), ("C", VariableValue::Elsewhere)];
        let known = known.map(|(name, value)| (name.to_owned(), value)).into();
        let known = Variables { known, ..Variables::default() };
        for (from, to) in [
            ("$(A)", "1"),
            ("x$(A)y$(A)", "x1y1"),
            ("$(B)", "$(A)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$$$$(A)", "$$(A)"),
            ("$(MISSING)", "$(MISSING)"),
            ("$(date +%s) $(A)", "$(date +%s) 1"),
            ("$($(A))", "$($(A))"),
            ("$A ${A} $", "$A ${A} $"),
            ("$(A", "$(A"),
            ("$()", "$()"),
            ("5$", "5$"),
            ("é$(A)é", "é1é"),
        ] {
            assert_eq!(expand(from, &known).as_deref(), Ok(to), "{from}");
        }
        assert_eq!(expand("$$(C)", &known).as_deref(), Ok("$(C)"));
        assert_eq!(expand("a$(C)", &known), Err(Refused::Elsewhere("C".to_owned())));
    }

    #[test]
    fn variables_that_name_others_come_to_no_more_than_a_bound() {
        let mut all = Variables::default();
        all.known.insert("A0".to_owned(), VariableValue::Text("x".repeat(10)));
        let refused = (0..10).find_map(|at| {
            let text = format!("$(A{at})").repeat(10);
            match expand(&text, &all) {
                Ok(value) => {
                    all.known.insert(format!("A{}", at + 1), VariableValue::Text(value));
                    None
                }
                Err(refused) => Some((at, refused)),
            }
        });
        assert_eq!(refused, Some((4, Refused::TooLong)));
    }

    #[test]
    fn names_that_never_end_are_looked_for_once() {
        let text = "$(".repeat(400_000);
        assert_eq!(expand(&text, &Variables::default()).as_deref(), Ok(text.as_str()));
    }
}
