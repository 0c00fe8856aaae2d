//! Predicted effects of requests. Owns: reading the stored state, and that it is played forward in
//! the turn of the caller. Changes nothing.

use access::Caller;
use http_kit::{ApiError, run_blocking};
use sim::what_if::Asked;
use units::Instant;

use crate::{ApiState, what_if};

/// The decisions that requests would lead to, and the time of the state that they were predicted
/// from.
pub(crate) async fn predicted(
    (state, caller): (&ApiState, &Caller),
    asked: Vec<Asked>,
) -> Result<(Instant, Vec<sim::Decision>), ApiError> {
    foretold((state, caller), asked).await.map(|(as_of, came)| (as_of, came.decisions))
}

/// The predicted effect of requests, and the time of the state that they were predicted from.
pub(crate) async fn foretold(
    (state, caller): (&ApiState, &Caller),
    asked: Vec<Asked>,
) -> Result<(Instant, sim::what_if::WouldHappen), ApiError> {
    let turn = state.questions.forecast(caller).await?;
    let mut stored = state.control.stored_state().await?;
    let lookups = what_if::lookups(&asked, &stored);
    what_if::restore(&mut stored, state.control.archived_rows(&lookups).await?);
    let work = move || what_if::play(stored, &asked);
    let (answer, _turn) = run_blocking(turn, work).await?;
    answer
}
