//! Looking at GPUs between measurements. Owns: how soon a run is noticed that holds more memory than
//! it was granted. Does not know about: what follows.

use std::sync::Arc;
use std::time::Duration;

use crate::measure::measure;
use crate::shared::{Shared, blocking};

const EVERY: Duration = Duration::from_secs(1);

/// Measures out of turn where the driver shows more than the runs with limits account for.
pub(crate) fn spawn(shared: &Arc<Shared>) {
    let own = Arc::clone(shared);
    shared.spawn(async move {
        loop {
            tokio::time::sleep(EVERY).await;
            let own = Arc::clone(&own);
            let look = blocking(move || {
                // A driver that owes an answer is reported by the measurements.
                if own.fractions.is_urgent(|| own.driver.sample().unwrap_or_default()) {
                    let _reported = measure(&own);
                }
                Ok(())
            });
            if let Err(error) = look.await {
                tracing::warn!("GPUs were not looked at: {error}");
            }
        }
    });
}
