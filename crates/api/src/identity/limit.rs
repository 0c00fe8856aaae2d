//! How often secrets may be guessed. Owns: the count of failures by name and address, and that
//! whoever invents names does not make it forget.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use units::Instant;

/// Failures count for so long.
const WINDOW_MS: u64 = 5 * 60 * 1000;
/// Most names and addresses remembered.
const REMEMBERED_MAX: usize = 30_000;

/// Failures of late.
#[derive(Debug)]
pub(crate) struct Failures {
    most: Most,
    windows: Mutex<BTreeMap<String, Window>>,
}

/// Most failures of a name from one address, of a name, and from one address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    pair: u32,
    name: u32,
    address: u32,
}

impl Most {
    /// Of guesses at a password. Not by address: many people may share one.
    pub(crate) const PASSWORDS: Self = Self { pair: 10, name: 100, address: u32::MAX };
    /// Of wrong secrets of programs. They are too long to be guessed, so others' do not count.
    pub(crate) const SECRETS: Self = Self { pair: 10, name: u32::MAX, address: u32::MAX };
    /// Of refused logins at the provider, where the name is not known before: those of an address.
    pub(crate) const LOGINS: Self = Self { pair: 30, name: u32::MAX, address: u32::MAX };
    /// Of refusals that are written down.
    pub(crate) const REFUSALS: Self = Self { pair: 200, name: 1000, address: 1000 };
}

#[derive(Debug, Clone, Copy)]
struct Window {
    since: Instant,
    failures: u32,
}

impl Window {
    fn has_ended(&self, now: Instant) -> bool {
        now.since_ms(self.since) >= WINDOW_MS
    }
}

/// Who fails, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who<'a> {
    pub(crate) name: &'a str,
    pub(crate) address: &'a str,
    /// Whether the name has been proved from this address before: what others fail at elsewhere
    /// does not count then.
    pub(crate) known: bool,
}

impl Who<'_> {
    /// What counts for it, and how many failures are too many.
    fn keys(self, most: Most) -> impl Iterator<Item = (String, u32)> {
        // What a name is made of must not make it look like another's.
        let name = auth::hash_secret(&self.name.to_lowercase());
        let address = self.address;
        let keys = [
            (format!("pair {address} {name}"), most.pair),
            (format!("name {name}"), if self.known { u32::MAX } else { most.name }),
            (format!("address {address}"), most.address),
        ];
        keys.into_iter().filter(|(_, most)| *most < u32::MAX)
    }
}

impl Failures {
    pub(crate) fn new(most: Most) -> Self {
        Self { most, windows: Mutex::default() }
    }

    /// Says how many seconds to wait when there were too many.
    pub(crate) fn check(&self, who: Who<'_>, now: Instant) -> Result<(), u64> {
        let windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, most) in who.keys(self.most) {
            match windows.get(&key) {
                Some(window) if !window.has_ended(now) && window.failures >= most => {
                    let left_ms = WINDOW_MS - now.since_ms(window.since);
                    return Err(left_ms.div_ceil(1000));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Counts one, or says how many seconds to wait when there were too many already.
    pub(crate) fn count(&self, who: Who<'_>, now: Instant) -> Result<(), u64> {
        self.check(who, now)?;
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= REMEMBERED_MAX {
            forget(&mut windows, now);
        }
        for (key, _) in who.keys(self.most) {
            let window = windows.entry(key).or_insert(Window { since: now, failures: 0 });
            if window.has_ended(now) {
                *window = Window { since: now, failures: 0 };
            }
            window.failures += 1;
        }
        Ok(())
    }
}

/// Makes room: what is over goes, then those that failed least. So whoever invents names loses
/// its own, and what is guessed at stays known.
fn forget(windows: &mut BTreeMap<String, Window>, now: Instant) {
    windows.retain(|_, window| !window.has_ended(now));
    let many = windows.len().saturating_sub(REMEMBERED_MAX / 2);
    let mut by_weight: Vec<_> =
        windows.iter().map(|(key, window)| (window.failures, window.since, key.clone())).collect();
    by_weight.sort_unstable();
    for (_, _, key) in by_weight.into_iter().take(many) {
        windows.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1_000_000);

    fn who<'a>(name: &'a str, address: &'a str) -> Who<'a> {
        Who { name, address, known: false }
    }

    #[test]
    fn after_ten_failures_a_name_waits_and_others_do_not() {
        let failures = Failures::new(Most::PASSWORDS);
        for _ in 0..10 {
            assert_eq!(failures.count(who("Ann", "10.0.0.1"), NOW), Ok(()));
        }
        let check = |name, address, at| failures.check(who(name, address), at);
        assert_eq!(check("ann", "10.0.0.1", NOW.plus_ms(1000)), Err(299));
        assert_eq!(check("ann", "10.0.0.2", NOW), Ok(()));
        assert_eq!(check("bob", "10.0.0.1", NOW), Ok(()));
        assert_eq!(check("ann", "10.0.0.1", NOW.plus_ms(WINDOW_MS)), Ok(()));
    }

    #[test]
    fn a_name_is_not_guessed_from_many_addresses_except_where_it_is_known() {
        let failures = Failures::new(Most::PASSWORDS);
        let of_name = (0..200).filter(|n| failures.count(who("ann", &n.to_string()), NOW).is_ok());
        assert_eq!(of_name.count(), 100);
        assert!(failures.check(who("ann", "home"), NOW).is_err());
        let known = Who { known: true, ..who("ann", "home") };
        let at_home = (0..200).filter(|_| failures.count(known, NOW).is_ok());
        assert_eq!(at_home.count(), 10, "also there not without end");
    }

    #[test]
    fn names_that_fail_at_one_address_do_not_stop_others_there() {
        for most in [Most::PASSWORDS, Most::SECRETS] {
            let failures = Failures::new(most);
            for n in 0..2000 {
                failures.count(who(&n.to_string(), "x"), NOW).unwrap();
            }
            assert_eq!(failures.check(who("ann", "x"), NOW), Ok(()));
        }
        let refusals = Failures::new(Most::REFUSALS);
        let noted = (0..2000).filter(|n| refusals.count(who(&n.to_string(), "x"), NOW).is_ok());
        assert_eq!(noted.count(), 1000);
    }

    #[test]
    fn invented_names_neither_fill_the_memory_nor_make_it_forget() {
        let failures = Failures::new(Most::PASSWORDS);
        for _ in 0..10 {
            failures.count(who("ann", "x"), NOW).unwrap();
        }
        for n in 0..50_000_u32 {
            // Each from an address of its own.
            failures.count(who(&n.to_string(), &n.to_string()), NOW.plus_ms(1)).unwrap();
        }
        assert!(failures.windows.lock().unwrap().len() <= REMEMBERED_MAX + 3);
        assert!(failures.check(who("ann", "x"), NOW.plus_ms(2)).is_err());
    }
}
