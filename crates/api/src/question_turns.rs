//! Turns at questions that keep a core busy. Owns: that one of each kind is answered at a time, and
//! that a caller with many waits behind its own. Does not know about: the answers.

use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use http_kit::{ApiError, FairQueue, Permit};

/// Longest wait of a question for its turn.
const TURN_WAIT: Duration = Duration::from_secs(20);

/// Queues of questions, in which callers take turns.
pub(crate) struct QuestionTurns {
    diagnoses: Arc<FairQueue>,
    forecasts: Arc<FairQueue>,
}

impl Default for QuestionTurns {
    fn default() -> Self {
        Self { diagnoses: FairQueue::new(1), forecasts: FairQueue::new(1) }
    }
}

impl QuestionTurns {
    /// The next turn of a caller at a diagnosis.
    ///
    /// # Errors
    /// It takes too long, or too many questions of the caller wait.
    pub(crate) async fn diagnosis(&self, caller: &Caller) -> Result<Permit, ApiError> {
        let turn = self.diagnoses.turn(&key(caller), TURN_WAIT).await;
        turn.ok_or_else(|| ApiError::too_many(1))
    }

    /// The next turn of a caller at a forecast.
    ///
    /// # Errors
    /// It takes too long, or too many questions of the caller wait.
    pub(crate) async fn forecast(&self, caller: &Caller) -> Result<Permit, ApiError> {
        let turn = self.forecast_within(caller, TURN_WAIT).await;
        turn.ok_or_else(|| ApiError::too_many(1))
    }

    /// The next turn of a caller at a forecast; `None` if it takes longer than this.
    pub(crate) async fn forecast_within(
        &self,
        caller: &Caller,
        longest: Duration,
    ) -> Option<Permit> {
        self.forecasts.turn(&key(caller), longest).await
    }
}

/// All tokens and access keys of a user take turns as one.
fn key(caller: &Caller) -> String {
    caller.principal.to_string()
}
