//! Turns: what is done to one thing is done one after the other. Owns: who waits for whom.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Gate, OwnedMutexGuard};

use crate::RunKey;

/// The verbs of one run take turns, so that a stop cannot overtake its start; so may those of other
/// things that have keys.
#[derive(Debug)]
pub struct Turns<K = RunKey>(Mutex<BTreeMap<K, Weak<Gate<()>>>>);

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> Turns<K> {
    /// Waits for the turn. It ends when the answer is dropped.
    pub async fn take(&self, key: K) -> OwnedMutexGuard<()> {
        self.gate(key).lock_owned().await
    }

    fn gate(&self, key: K) -> Arc<Gate<()>> {
        // Nothing can panic half-way through a change.
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
