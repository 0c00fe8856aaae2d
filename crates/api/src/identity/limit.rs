//! How often secrets may be guessed. Owns: the count of failures by name and address.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use units::Instant;

/// Failures count for so long.
const WINDOW_MS: u64 = 5 * 60 * 1000;
/// Most names and addresses remembered.
const REMEMBERED_MAX: usize = 30_000;

/// Failures of late. An attempt counts as failed until it has succeeded, so that many at once are
/// not as good as one.
#[derive(Debug)]
pub(crate) struct Attempts {
    most: Most,
    windows: Mutex<BTreeMap<String, Window>>,
}

/// Most failures of a name from one address, of a name, and from one address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    pub(crate) pair: u32,
    pub(crate) name: u32,
    pub(crate) address: u32,
}

impl Most {
    /// Of guesses at a secret.
    pub(crate) const GUESSES: Self = Self { pair: 10, name: 100, address: 300 };
    /// Of refusals that are written down.
    pub(crate) const REFUSALS: Self = Self { pair: 200, name: 1000, address: 1000 };
}

#[derive(Debug, Clone, Copy)]
struct Window {
    since: Instant,
    failures: u32,
}

fn keys(most: Most, name: &str, address: &str) -> [(String, u32); 3] {
    // What a name is made of must not make it look like another's.
    let name = auth::hash_secret(&name.to_lowercase());
    [
        (format!("pair {address} {name}"), most.pair),
        (format!("name {name}"), most.name),
        (format!("address {address}"), most.address),
    ]
}

impl Attempts {
    pub(crate) fn new(most: Most) -> Self {
        Self { most, windows: Mutex::default() }
    }

    /// Begins an attempt, or says how many seconds to wait.
    pub(crate) fn begin(&self, name: &str, address: &str, now: Instant) -> Result<(), u64> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = |window: &Window| now.since_ms(window.since) >= WINDOW_MS;
        if windows.len() >= REMEMBERED_MAX {
            windows.retain(|_, window| !ended(window));
        }
        if windows.len() >= REMEMBERED_MAX {
            // Somebody invents names; better to forget than to run out of memory.
            windows.clear();
        }
        let keys = keys(self.most, name, address);
        for (key, most) in &keys {
            match windows.get(key) {
                Some(window) if !ended(window) && window.failures >= *most => {
                    let left_ms = WINDOW_MS - now.since_ms(window.since);
                    return Err(left_ms.div_ceil(1000));
                }
                _ => {}
            }
        }
        for (key, _) in keys {
            let window = windows.entry(key).or_insert(Window { since: now, failures: 0 });
            if ended(window) {
                *window = Window { since: now, failures: 0 };
            }
            window.failures += 1;
        }
        Ok(())
    }

    /// An attempt that was begun has succeeded. Earlier failures still count.
    pub(crate) fn succeeded(&self, name: &str, address: &str) {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, _) in keys(self.most, name, address) {
            if let Some(window) = windows.get_mut(&key) {
                window.failures = window.failures.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant(1_000_000);

    #[test]
    fn after_ten_failures_a_name_waits_and_others_do_not() {
        let attempts = Attempts::new(Most::GUESSES);
        for _ in 0..10 {
            assert_eq!(attempts.begin("Ann", "10.0.0.1", NOW), Ok(()));
        }
        assert_eq!(attempts.begin("ann", "10.0.0.1", NOW.plus_ms(1000)), Err(299));
        assert_eq!(attempts.begin("ann", "10.0.0.2", NOW), Ok(()));
        assert_eq!(attempts.begin("bob", "10.0.0.1", NOW), Ok(()));
        assert_eq!(attempts.begin("ann", "10.0.0.1", NOW.plus_ms(WINDOW_MS)), Ok(()));
    }

    #[test]
    fn a_name_is_not_guessed_from_many_addresses_nor_many_names_from_one() {
        let attempts = Attempts::new(Most::GUESSES);
        let of_name = (0..200).filter(|n| attempts.begin("ann", &n.to_string(), NOW).is_ok());
        assert_eq!(of_name.count(), 100);
        let from_one = (0..400).filter(|n| attempts.begin(&n.to_string(), "x", NOW).is_ok());
        assert_eq!(from_one.count(), 300);
    }

    #[test]
    fn successes_do_not_count_and_do_not_forgive() {
        let attempts = Attempts::new(Most::GUESSES);
        for _ in 0..9 {
            attempts.begin("ann", "x", NOW).unwrap();
        }
        for _ in 0..100 {
            attempts.begin("ann", "x", NOW).unwrap();
            attempts.succeeded("ann", "x");
        }
        attempts.begin("ann", "x", NOW).unwrap();
        assert!(attempts.begin("ann", "x", NOW).is_err());
    }

    #[test]
    fn invented_names_do_not_fill_the_memory() {
        let attempts = Attempts::new(Most::GUESSES);
        for n in 0..20_000_u32 {
            // Each from an address of its own.
            attempts.begin(&n.to_string(), &n.to_string(), NOW).unwrap();
        }
        assert!(attempts.windows.lock().unwrap().len() <= REMEMBERED_MAX + 3);
    }
}
