//! A lock for each key. Owns: creating and dropping the locks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Gate, OwnedMutexGuard};

use crate::RunKey;

/// Serializes operations by key, so that a stop of a run cannot overtake its start.
#[derive(Debug)]
pub struct KeyedLock<K = RunKey>(Mutex<BTreeMap<K, Weak<Gate<()>>>>);

impl<K> Default for KeyedLock<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> KeyedLock<K> {
    /// Waits for the lock of a key. It is released when the guard is dropped.
    pub async fn take(&self, key: K) -> OwnedMutexGuard<()> {
        self.gate(key).lock_owned().await
    }

    fn gate(&self, key: K) -> Arc<Gate<()>> {
        // No code panics inside a change.
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gates.retain(|_, gate| gate.strong_count() > 0);
        if let Some(gate) = gates.get(&key).and_then(Weak::upgrade) {
            return gate;
        }
        let gate = Arc::new(Gate::new(()));
        gates.insert(key, Arc::downgrade(&gate));
        gate
    }
}
