//! Which Unix accounts runs have, as it is configured. Owns: reading the three settings. Refuses
//! to know: which accounts there are.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use engine_local::AccountPolicy;

use super::config::{Error, Given};

/// Lowest id of the pool: those below belong to the system and to people.
const POOL_FIRST_MIN: u32 = 10_000;
/// Highest id of the pool: the one after it means "none" to the kernel.
const POOL_LAST_MAX: u32 = u32::MAX - 1;

/// Reads the settings.
pub(super) fn policy(find: &dyn Fn(&str) -> Option<Given>) -> Result<AccountPolicy, Error> {
    let usual = AccountPolicy::default();
    Ok(AccountPolicy {
        table: find("accounts").map_or(Ok(usual.table), |given| table(&given))?,
        domains: find("account_domains").map_or(usual.domains, |given| words(&given.text)),
        pool: find("account_pool").map_or(Ok(usual.pool), |given| pool(&given))?,
    })
}

fn words(text: &str) -> Vec<String> {
    let each = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    each.map(ToOwned::to_owned).collect()
}

fn table(given: &Given) -> Result<BTreeMap<String, String>, Error> {
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

fn pool(given: &Given) -> Result<RangeInclusive<u32>, Error> {
    let id = |text: &str| text.trim().parse::<u32>().ok();
    let range = given.text.split_once('-').and_then(|(first, last)| Some((id(first)?, id(last)?)));
    match range {
        Some((first, last))
            if first >= POOL_FIRST_MIN && last <= POOL_LAST_MAX && first <= last =>
        {
            Ok(first..=last)
        }
        _ => Err(given.fault(format!(
            "`{}` is no range of private ids; write FIRST-LAST, from {POOL_FIRST_MIN} to \
             {POOL_LAST_MAX}, such as 1900000000-1900065535",
            units::shown(&given.text)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &'static str, text: &str) -> Result<AccountPolicy, String> {
        let given = Given { text: text.to_owned(), origin: key.to_owned() };
        policy(&|name| (name == key).then(|| given.clone())).map_err(|error| error.to_string())
    }

    #[test]
    fn the_settings_are_lists_pairs_and_a_range() {
        assert_eq!(read("accounts", "").unwrap(), AccountPolicy::default());
        let table = read("accounts", "ann@example.org=ann, root = ops").unwrap().table;
        let pairs: Vec<_> = table.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(pairs, [("ann@example.org", "ann"), ("root", "ops")]);
        assert_eq!(read("account_domains", "a.org, b.org").unwrap().domains, ["a.org", "b.org"]);
        assert_eq!(read("account_pool", "20000-29999").unwrap().pool, 20_000..=29_999);
    }

    #[test]
    fn a_wrong_setting_says_what_is_allowed() {
        for text in ["0-100", "5000-9000", "2-1", "30000-20000", "7", "20000-4294967295", "x-y"] {
            let said = read("account_pool", text).unwrap_err();
            assert!(said.contains("write FIRST-LAST"), "{text}: {said}");
        }
        for text in ["ann", "ann=", "=ann"] {
            assert!(read("accounts", text).unwrap_err().contains("USER=ACCOUNT"), "{text}");
        }
    }
}
