//! Unix accounts of runs, as configured. Owns: reading the three settings. Does not know which
//! accounts exist.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use engine_local::AccountPolicy;

use super::settings::{Error, SettingText};

/// Names with commas between them.
pub(super) fn domains(given: &SettingText) -> Result<Vec<String>, Error> {
    Ok(words(&given.text))
}

fn words(text: &str) -> Vec<String> {
    let each = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    each.map(ToOwned::to_owned).collect()
}

/// Pairs of a user and an account.
pub(super) fn table(given: &SettingText) -> Result<BTreeMap<String, String>, Error> {
    let pair = |word: String| {
        let halves = word.split_once('=').map(|(user, account)| (user.trim(), account.trim()));
        match halves {
            Some((user, account)) if !user.is_empty() && !account.is_empty() => {
                Ok((user.to_owned(), account.to_owned()))
            }
            _ => Err(given.fault(format!(
                "`{}` is not USER=ACCOUNT; write for example ann@example.org=ann",
                units::shown(&word)
            ))),
        }
    };
    words(&given.text).into_iter().map(pair).collect()
}

/// A range of ids.
pub(super) fn pool(given: &SettingText) -> Result<RangeInclusive<u32>, Error> {
    let id = |text: &str| text.trim().parse::<u32>().ok();
    let range = given.text.split_once('-').and_then(|(first, last)| Some((id(first)?, id(last)?)));
    let bounds = AccountPolicy::POOL_BOUNDS;
    match range {
        Some((first, last))
            if bounds.contains(&first) && bounds.contains(&last) && first <= last =>
        {
            Ok(first..=last)
        }
        _ => Err(given.fault(format!(
            "`{}` is not a range of private ids; write FIRST-LAST, from {} to {}, such as \
             1900000000-1900065535",
            units::shown(&given.text),
            bounds.start(),
            bounds.end()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> SettingText {
        SettingText { text: text.to_owned(), origin: "--flag".to_owned() }
    }

    #[test]
    fn the_settings_are_lists_pairs_and_a_range() {
        assert!(table(&given("")).unwrap().is_empty());
        let table = table(&given("ann@example.org=ann, root = ops")).unwrap();
        let pairs: Vec<_> = table.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(pairs, [("ann@example.org", "ann"), ("root", "ops")]);
        assert_eq!(domains(&given("a.org, b.org")).unwrap(), ["a.org", "b.org"]);
        assert_eq!(pool(&given("20000-29999")).unwrap(), 20_000..=29_999);
    }

    #[test]
    fn a_wrong_setting_says_what_is_allowed() {
        for text in ["0-100", "5000-9000", "2-1", "30000-20000", "7", "20000-4294967295", "x-y"] {
            let said = pool(&given(text)).unwrap_err().to_string();
            assert!(said.contains("write FIRST-LAST"), "{text}: {said}");
        }
        for text in ["ann", "ann=", "=ann"] {
            let said = table(&given(text)).unwrap_err().to_string();
            assert!(said.contains("USER=ACCOUNT"), "{text}: {said}");
        }
    }
}
