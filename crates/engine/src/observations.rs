//! The stream of an engine's observations. Owns: that it goes to one listener at a time.

use std::sync::{Mutex, PoisonError};

use spec::Observation;
use tokio::sync::mpsc;

/// Stream to which an engine reports its observations.
#[derive(Debug, Default)]
pub struct Observations(Mutex<Option<mpsc::UnboundedSender<Observation>>>);

impl Observations {
    /// A stream of the observations from now on. The stream before it ends.
    pub fn stream(&self) -> mpsc::UnboundedReceiver<Observation> {
        let (listener, stream) = mpsc::unbounded_channel();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
        stream
    }

    /// Reports an observation. Without a listener it is dropped: the next one begins with
    /// [`Engine::list`](crate::Engine::list), which has the states of all runs.
    pub fn report(&self, seen: Observation) {
        if let Some(listener) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let _no_listener = listener.send(seen);
        }
    }
}
