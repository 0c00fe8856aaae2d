//! Work that would keep a thread from answering requests.

use crate::error::ApiError;

/// Works away from what answers requests. The turn is held to the end, also if no caller waits for
/// it any more.
///
/// # Errors
/// The work panicked.
pub async fn run_blocking<T: Send + 'static, P: Send + 'static>(
    turn: P,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<(T, P), ApiError> {
    tokio::task::spawn_blocking(move || (work(), turn)).await.map_err(ApiError::internal)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn a_turn_is_held_to_the_end_also_if_nobody_waits_for_it_any_more() {
        let turns = Arc::new(Semaphore::new(1));
        let turn = turns.clone().acquire_owned().await.unwrap();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let waits = tokio::spawn(run_blocking(turn, move || ended.recv()));
        tokio::task::yield_now().await;
        waits.abort();
        assert!(waits.await.is_err());
        assert_eq!(turns.available_permits(), 0);
        end.send(()).unwrap();
        assert!(turns.acquire().await.is_ok());
    }
}
