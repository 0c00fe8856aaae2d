//! Checks of GPUs between measurements. Owns: the delay until a run is noticed that holds more
//! memory than it was granted, or whose program is not limited. Does not know about: the
//! consequences.

use std::sync::Arc;
use std::time::Duration;

use engine::{Observation, RunEvent};

use crate::measure::measure;
use crate::shared::{LocalEngineState, blocking};

const EVERY: Duration = Duration::from_secs(1);

/// Measures out of turn where the driver shows more than the runs with limits account for.
pub(crate) fn spawn(shared: &Arc<LocalEngineState>) {
    // Its own, as each answers one question at a time.
    let (own, driver) = (Arc::clone(shared), Arc::<gpu::Driver>::default());
    shared.spawn(async move {
        loop {
            tokio::time::sleep(EVERY).await;
            let (own, driver) = (Arc::clone(&own), Arc::clone(&driver));
            let look = blocking(move || {
                for (key, why) in own.fractions.unreached() {
                    let event = RunEvent::GpuUnlimited(why);
                    own.observations.report(Observation::new(key, event));
                }
                // One that owes an answer is reported by the measurements.
                if own.fractions.is_urgent(|| driver.sample().unwrap_or_default()) {
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
