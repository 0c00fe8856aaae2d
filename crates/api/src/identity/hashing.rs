//! Passwords, compared and hashed. Owns: that it is done a few at a time, that wrong ones are
//! counted, and that strangers do not keep out whoever is known. Refuses to know: whose they are.

use std::sync::Arc;
use std::time::Duration;

use auth::PasswordHash;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Who;
use crate::Server;
use crate::edge::Fault;

/// Passwords of strangers compared at a time; each takes a core and 19 MiB.
const STRANGERS_MAX: usize = 2;
/// Those of whoever is logged in or was at this address before.
const KNOWN_MAX: usize = 1;
/// How long a password may wait for its turn.
const TURN_WAIT: Duration = Duration::from_secs(10);

/// Turns to hash a password.
pub(crate) struct Turns {
    strangers: Arc<Semaphore>,
    known: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        let semaphore = |most| Arc::new(Semaphore::new(most));
        Self { strangers: semaphore(STRANGERS_MAX), known: semaphore(KNOWN_MAX) }
    }
}

impl Turns {
    async fn next(&self, known: bool) -> Result<OwnedSemaphorePermit, Fault> {
        let turns = if known { &self.known } else { &self.strangers };
        let turn = tokio::time::timeout(TURN_WAIT, turns.clone().acquire_owned()).await;
        turn.ok().and_then(Result::ok).ok_or_else(|| Fault::too_many(1))
    }
}

impl Server {
    /// Whether a password is the one that was hashed; takes equally long where there is none.
    ///
    /// Only wrong ones count, and they are looked at when it is their turn: many right ones at
    /// once pass, and many wrong ones at once are not more guesses than one after another.
    pub(crate) async fn matches(
        &self,
        who: Who<'_>,
        hash: Option<PasswordHash>,
        password: String,
    ) -> Result<bool, Fault> {
        let turn = self.turns.next(who.known).await?;
        self.wrong_passwords.check(who, self.now()).map_err(Fault::too_many)?;
        let compare = move || match hash {
            Some(hash) => hash.matches(&password),
            None => {
                PasswordHash::waste_time(&password);
                false
            }
        };
        let (matches, _turn) = aside(turn, compare).await?;
        if !matches {
            // Those who were wrong at the same moment may have used up what was left.
            let _ = self.wrong_passwords.count(who, self.now());
        }
        Ok(matches)
    }

    /// Hashes a password of somebody whom the caller has to do with.
    pub(crate) async fn hash(&self, password: String) -> Result<PasswordHash, Fault> {
        let turn = self.turns.next(true).await?;
        let (hash, _turn) = aside(turn, move || PasswordHash::new(&password)).await?;
        hash.map_err(Fault::internal)
    }
}

/// Works away from what answers requests. The turn is held to the end, also if nobody waits for it
/// any more.
pub(crate) async fn aside<T: Send + 'static>(
    turn: OwnedSemaphorePermit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<(T, OwnedSemaphorePermit), Fault> {
    tokio::task::spawn_blocking(move || (work(), turn)).await.map_err(Fault::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_turn_is_held_to_the_end_also_if_nobody_waits_for_it_any_more() {
        let turns = Arc::new(Semaphore::new(1));
        let turn = turns.clone().acquire_owned().await.unwrap();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let waits = tokio::spawn(aside(turn, move || ended.recv()));
        tokio::task::yield_now().await;
        waits.abort();
        assert!(waits.await.is_err());
        assert_eq!(turns.available_permits(), 0);
        end.send(()).unwrap();
        assert!(turns.acquire().await.is_ok());
    }
}
