//! Looking at GPUs between measurements. Owns: how soon a container is noticed that holds more memory
//! than it was granted. Does not know about: what follows.

use std::sync::Arc;
use std::time::Duration;

use crate::measure::measure;
use crate::shared::{Shared, blocking};

const EVERY: Duration = Duration::from_secs(1);

/// Measures out of turn where the driver shows more than the containers with limits account for.
pub(crate) fn spawn(shared: &Arc<Shared>) {
    let own = Arc::clone(shared);
    shared.spawn(async move {
        loop {
            tokio::time::sleep(EVERY).await;
            let looking = Arc::clone(&own);
            let look = blocking(move || {
                // A driver that owes an answer is reported by the measurements.
                let sample = || looking.driver.sample().unwrap_or_default();
                Ok(looking.fractions.fractions.is_urgent(sample))
            });
            match look.await {
                Ok(true) => drop(measure(&own).await),
                Ok(false) => {}
                Err(error) => tracing::warn!("GPUs were not looked at: {error}"),
            }
        }
    });
}
