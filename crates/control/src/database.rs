//! Disk of the database. Owns: that it is an outage when a transaction finds no space, until one
//! does. Does not know about: the reserve on the disk of the state, which the engine watches.

use std::sync::{Mutex, PoisonError};

use engine::Outage;
use units::Instant;

/// Outage of the disk of the database.
#[derive(Debug, Default)]
pub(crate) struct DatabaseDisk(Mutex<Option<Outage>>);

impl DatabaseDisk {
    pub(crate) fn outage(&self) -> Option<Outage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes note of the result of a transaction.
    pub(crate) fn written(&self, result: &Result<(), store::Error>, now: Instant) {
        let mut outage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(()) => *outage = None,
            Err(store::Error::Full { database }) if outage.is_none() => {
                *outage = Some(Outage::DatabaseFull { database: database.clone(), since: now });
            }
            Err(_) => {}
        }
    }
}
