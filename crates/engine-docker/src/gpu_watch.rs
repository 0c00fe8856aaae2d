//! Looking at GPUs between measurements. Owns: how soon a container is noticed that holds more
//! memory than it was granted, or whose program is not limited. Does not know about: what follows.

use std::sync::Arc;
use std::time::Duration;

use engine::{Observation, RunEvent};

use crate::measure::measure;
use crate::shared::{DockerEngineState, blocking};

const EVERY: Duration = Duration::from_secs(1);

/// Measures out of turn where the driver shows more than the containers with limits account for.
pub(crate) fn spawn(shared: &Arc<DockerEngineState>) {
    // A driver connection for this task alone, as each answers one query at a time.
    let (own, driver) = (Arc::clone(shared), Arc::<gpu::Driver>::default());
    shared.spawn(async move {
        loop {
            tokio::time::sleep(EVERY).await;
            let (looking, driver) = (Arc::clone(&own), Arc::clone(&driver));
            let look = blocking(move || {
                for (key, why) in looking.fractions.fractions.unreached() {
                    let event = RunEvent::GpuUnlimited(why);
                    looking.runs.observations.report(Observation::new(key, event));
                }
                // One that owes an answer is reported by the measurements.
                let sample = || driver.sample().unwrap_or_default();
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
