//! Limits of guesses at secrets. Owns: the count of failures by name and address, and that invented
//! names do not displace it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use units::Instant;

/// After this time without failures none counts any more.
const WINDOW_MS: u64 = 5 * 60 * 1000;
/// Most names and addresses remembered.
const REMEMBERED_MAX: usize = 30_000;

/// Recent failures. Each fills a bucket of its name, its address and the pair of both; a bucket
/// empties evenly in [`WINDOW_MS`]. A full bucket does not block for long: it has room for one more
/// after the time in which one failure drains.
#[derive(Debug)]
pub(crate) struct Failures {
    most: FailureLimits,
    /// Time at which each bucket is empty.
    buckets: Mutex<BTreeMap<String, Instant>>,
}

/// Most failures of a name from one address, of a name, and from one address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailureLimits {
    pair: u32,
    name: u32,
    address: u32,
}

impl FailureLimits {
    /// Limits of wrong passwords. The limit of an address is high, so that users who share one
    /// rarely notice.
    pub(crate) const PASSWORDS: Self = Self { pair: 10, name: 100, address: 300 };
    /// Limits of wrong secrets of programs. They are too long to be guessed, so failures from other
    /// addresses do not count.
    pub(crate) const SECRETS: Self = Self { pair: 10, name: u32::MAX, address: u32::MAX };
    /// Limits of refused logins at the provider; only the address is known before.
    pub(crate) const LOGINS: Self = Self { pair: 30, name: u32::MAX, address: u32::MAX };
    /// Limits of refusals that are written to the audit log.
    pub(crate) const REFUSALS: Self = Self { pair: 200, name: 1000, address: 1000 };
}

/// An attempt to authenticate: the name and the address that failures count for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) name: &'a str,
    pub(crate) address: &'a str,
    /// True if the name has been proved from this address before: what others fail at elsewhere,
    /// and by other names here, does not count then.
    pub(crate) known: bool,
}

impl Attempt<'_> {
    /// Keys of the buckets that it counts in, with the limit of failures of each.
    fn keys(self, most: FailureLimits) -> impl Iterator<Item = (String, u32)> {
        // The hash keeps characters of a name from making its key look like another name's.
        let name = auth::hash_secret(&self.name.to_lowercase());
        let network = network(self.address);
        let unless_known = |most: u32| if self.known { u32::MAX } else { most };
        let keys = [
            (format!("pair {network} {name}"), most.pair),
            (format!("name {name}"), unless_known(most.name)),
            (format!("address {network}"), unless_known(most.address)),
        ];
        keys.into_iter().filter(|(_, most)| *most < u32::MAX)
    }
}

/// The network an address counts as: an owner of one IPv6 address has the other 2^64 of its
/// network, too.
pub(crate) fn network(address: &str) -> String {
    match address.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V6(own)) => {
            let prefix = own.to_bits() & !u128::from(u64::MAX);
            format!("{}/64", Ipv6Addr::from_bits(prefix))
        }
        Ok(own) => own.to_string(),
        Err(_) => address.to_owned(),
    }
}

impl Failures {
    pub(crate) fn new(most: FailureLimits) -> Self {
        Self { most, buckets: Mutex::default() }
    }

    /// Returns the seconds to wait as the error if there were too many.
    pub(crate) fn check(&self, who: Attempt<'_>, now: Instant) -> Result<(), u64> {
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, most) in who.keys(self.most) {
            let filled_ms = buckets.get(&key).map_or(0, |empty| empty.since_ms(now));
            let too_much_ms = (filled_ms + share_ms(most)).saturating_sub(WINDOW_MS);
            if too_much_ms > 0 {
                return Err(too_much_ms.div_ceil(1000));
            }
        }
        Ok(())
    }

    /// Counts a failure, or returns the seconds to wait as the error if there were too many
    /// already.
    pub(crate) fn count(&self, who: Attempt<'_>, now: Instant) -> Result<(), u64> {
        self.check(who, now)?;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= REMEMBERED_MAX {
            forget(&mut buckets, now);
        }
        for (key, most) in who.keys(self.most) {
            let empty = buckets.entry(key).or_insert(now);
            *empty = (*empty).max(now).plus_ms(share_ms(most));
        }
        Ok(())
    }
}

/// Milliseconds that a bucket with this limit takes to drain one failure.
fn share_ms(most: u32) -> u64 {
    WINDOW_MS / u64::from(most.max(1))
}

/// Removes empty buckets, then those nearest to empty. So invented names push out each other, and
/// names under attack stay known.
fn forget(buckets: &mut BTreeMap<String, Instant>, now: Instant) {
    buckets.retain(|_, empty| *empty > now);
    let many = buckets.len().saturating_sub(REMEMBERED_MAX / 2);
    let mut by_weight: Vec<_> = buckets.iter().map(|(key, empty)| (*empty, key.clone())).collect();
    by_weight.sort_unstable();
    for (_, key) in by_weight.into_iter().take(many) {
        buckets.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1_000_000);

    fn who<'a>(name: &'a str, address: &'a str) -> Attempt<'a> {
        Attempt { name, address, known: false }
    }

    #[test]
    fn after_ten_failures_a_name_waits_and_others_do_not() {
        let failures = Failures::new(FailureLimits::PASSWORDS);
        for _ in 0..10 {
            assert_eq!(failures.count(who("Ann", "10.0.0.1"), NOW), Ok(()));
        }
        let check = |name, address, at| failures.check(who(name, address), at);
        assert_eq!(check("ann", "10.0.0.1", NOW.plus_ms(1000)), Err(29));
        assert_eq!(check("ann", "10.0.0.2", NOW), Ok(()));
        assert_eq!(check("bob", "10.0.0.1", NOW), Ok(()));
        assert_eq!(check("ann", "10.0.0.1", NOW.plus_ms(30_000)), Ok(()));
    }

    #[test]
    fn an_attacker_who_goes_on_guesses_ten_times_in_five_minutes() {
        let failures = Failures::new(FailureLimits::PASSWORDS);
        let seconds = 0..3600;
        let guesses = seconds
            .filter(|s| failures.count(who("ann", "10.0.0.1"), NOW.plus_ms(s * 1000)).is_ok());
        assert_eq!(guesses.count(), 10 + 3600 / 30 - 1);
    }

    #[test]
    fn a_name_is_not_guessed_from_many_addresses_except_where_it_is_known() {
        let failures = Failures::new(FailureLimits::PASSWORDS);
        let of_name = (0..200).filter(|n| failures.count(who("ann", &n.to_string()), NOW).is_ok());
        assert_eq!(of_name.count(), 100);
        assert_eq!(failures.check(who("ann", "home"), NOW), Err(3), "elsewhere it goes on slowly");
        let known = Attempt { known: true, ..who("ann", "home") };
        let at_home = (0..200).filter(|_| failures.count(known, NOW).is_ok());
        assert_eq!(at_home.count(), 10, "also there not without end");
    }

    #[test]
    fn an_address_of_ipv6_is_all_of_its_network() {
        let failures = Failures::new(FailureLimits::PASSWORDS);
        let address = |n: u32| format!("2001:db8::{:x}:{:x}", n / 7, n);
        let guesses =
            (0..50).filter(|n| failures.count(who("ann", &address(*n)), NOW).is_ok()).count();
        assert_eq!(guesses, 10);
        assert_eq!(failures.check(who("ann", "2001:db8:0:1::1"), NOW), Ok(()));
        for (address, want) in [
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("10.0.0.1", "10.0.0.1"),
            ("", ""),
        ] {
            assert_eq!(network(address), want);
        }
    }

    #[test]
    fn names_that_fail_at_one_address_do_not_stop_others_there_for_long() {
        let failures = Failures::new(FailureLimits::PASSWORDS);
        let guesses = (0..2000).filter(|n| failures.count(who(&n.to_string(), "x"), NOW).is_ok());
        assert_eq!(guesses.count(), 300, "so much hashing an address gets");
        assert_eq!(failures.check(who("ann", "x"), NOW), Err(1));
        assert_eq!(failures.check(Attempt { known: true, ..who("ann", "x") }, NOW), Ok(()));
        assert_eq!(failures.check(who("ann", "y"), NOW), Ok(()));
        let secrets = Failures::new(FailureLimits::SECRETS);
        (0..2000).for_each(|n| secrets.count(who(&n.to_string(), "x"), NOW).unwrap());
        assert_eq!(secrets.check(who("ann", "x"), NOW), Ok(()));
        let refusals = Failures::new(FailureLimits::REFUSALS);
        let noted = (0..2000).filter(|n| refusals.count(who(&n.to_string(), "x"), NOW).is_ok());
        assert_eq!(noted.count(), 1000);
    }

    #[test]
    fn invented_names_neither_fill_the_memory_nor_make_it_forget() {
        let failures = Failures::new(FailureLimits::PASSWORDS);
        for _ in 0..10 {
            failures.count(who("ann", "x"), NOW).unwrap();
        }
        for n in 0..50_000_u32 {
            // Each from an address of its own.
            failures.count(who(&n.to_string(), &n.to_string()), NOW.plus_ms(1)).unwrap();
        }
        assert!(failures.buckets.lock().unwrap().len() <= REMEMBERED_MAX + 3);
        assert!(failures.check(who("ann", "x"), NOW.plus_ms(2)).is_err());
    }
}
