//! `$(NAME)` in commands, arguments and variables of manifests, by the rules of Kubernetes. Owns:
//! those rules. Does not know variables that are set when a pod starts.

use std::collections::BTreeMap;

/// The value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    /// It is in the manifest.
    Text(String),
    /// Of a credential or a config map: it is read when the pod starts.
    Elsewhere,
}

/// The variables that are known so far, by name.
pub(super) type Variables = BTreeMap<String, Known>;

/// Replaces `$(NAME)` by the value of the variable and `$$` by `$`. Undefined variables stay as
/// they are.
///
/// # Errors
/// The name of a variable whose value is not in the manifest.
pub(super) fn expand(text: &str, variables: &Variables) -> Result<String, String> {
    let (mut done, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('$') {
        done.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            done.push('$');
            rest = after;
            continue;
        }
        rest = after;
        let name = after.strip_prefix('(').and_then(|after| after.split_once(')'));
        match name.map(|(name, after)| (name, variables.get(name), after)) {
            Some((_, Some(Known::Text(value)), after)) => {
                done.push_str(value);
                rest = after;
            }
            Some((name, Some(Known::Elsewhere), _)) => return Err(name.to_owned()),
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
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_as_in_kubernetes() {
        let text = |value: &str| Known::Text(value.to_owned());
        let known = [("A", text("1")), ("B", text("$(A)")), ("C", Known::Elsewhere)];
        let known = known.map(|(name, value)| (name.to_owned(), value)).into();
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
        assert_eq!(expand("a$(C)", &known), Err("C".to_owned()));
    }
}
