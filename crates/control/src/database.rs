//! Disk of the database. Owns: that it is an outage when a transaction finds no space, and when the
//! outage is over. Does not know about: the reserve on the disk of the state, which the engine
//! watches.

use std::sync::{Mutex, PoisonError};

use engine::Outage;
use units::Instant;

use crate::metrics::Purpose;

/// Time without a failure after which a transaction for any purpose ends the outage: the purpose
/// that failed may not be needed for hours.
const QUIET_MS: u64 = 5 * 60_000;

/// Outage of the disk of the database.
#[derive(Debug, Default)]
pub(crate) struct DatabaseDisk(Mutex<Option<Full>>);

#[derive(Debug)]
struct Full {
    outage: Outage,
    /// Last failure of each purpose for which no transaction has found space since.
    failed_at: Vec<(Purpose, Instant)>,
}

impl DatabaseDisk {
    pub(crate) fn outage(&self) -> Option<Outage> {
        let full = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        full.as_ref().map(|full| full.outage.clone())
    }

    /// Takes note of the result of a transaction. A small transaction may find space where a larger
    /// one does not, so the outage ends when each purpose that found none has found some.
    pub(crate) fn written(
        &self,
        purpose: Purpose,
        result: &Result<(), store::Error>,
        now: Instant,
    ) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(()) => {
                let Some(full) = slot.as_mut() else { return };
                full.failed_at
                    .retain(|(failed, at)| *failed != purpose && now.since_ms(*at) < QUIET_MS);
                if full.failed_at.is_empty() {
                    *slot = None;
                }
            }
            Err(store::Error::Full { database }) => {
                let outage = Outage::DatabaseFull { database: database.clone(), since: now };
                let full = slot.get_or_insert(Full { outage, failed_at: Vec::new() });
                full.failed_at.retain(|(failed, _)| *failed != purpose);
                full.failed_at.push((purpose, now));
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk and its outage after these transactions: purpose, `true` if it found space, time.
    fn after(transactions: &[(Purpose, bool, u64)]) -> Option<u64> {
        let disk = DatabaseDisk::default();
        for (purpose, found, at) in transactions {
            let full = store::Error::Full { database: "here".to_owned() };
            let result = if *found { Ok(()) } else { Err(full) };
            disk.written(*purpose, &result, Instant(*at));
        }
        disk.outage().map(|outage| outage.since().0)
    }

    #[test]
    fn an_outage_ends_with_a_transaction_of_the_purpose_that_found_no_space() {
        use Purpose::{Decision, Samples};
        assert_eq!(after(&[(Decision, true, 1)]), None);
        assert_eq!(after(&[(Decision, false, 1)]), Some(1));
        assert_eq!(after(&[(Decision, false, 1), (Decision, true, 2)]), None);
        let samples_fit = [(Decision, false, 1), (Samples, true, 2), (Decision, false, 3)];
        assert_eq!(after(&samples_fit), Some(1), "one outage, not two");
        let both = [(Decision, false, 1), (Samples, false, 2), (Decision, true, 3)];
        assert_eq!(after(&both), Some(1));
        assert_eq!(after(&[&both[..], &[(Samples, true, 4)]].concat()), None);
    }

    #[test]
    fn an_outage_of_a_purpose_that_is_not_needed_any_more_ends_by_itself() {
        use Purpose::{Decision, Samples};
        let sampled = |at| after(&[(Decision, false, 1), (Samples, true, at)]);
        assert_eq!(sampled(QUIET_MS), Some(1));
        assert_eq!(sampled(QUIET_MS + 1), None);
    }
}
