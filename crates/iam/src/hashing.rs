//! Passwords, compared and hashed. Owns: that it is done a few at a time and in fair turns, that
//! wrong ones are counted, and that unknown clients do not keep out known users. Does not know
//! about: whose they are.

use std::sync::Arc;
use std::time::Duration;

use auth::PasswordHash;
use http_kit::{ApiError, FairQueue, Permit, run_blocking};

use crate::Iam;
use crate::limit::{Attempt, network};

/// Passwords of unknown clients compared at a time; each takes a core and 19 MiB.
const UNKNOWN_MAX: usize = 2;
/// Requests of known users: logged in, or seen at this address before.
const KNOWN_MAX: usize = 1;
/// Longest wait of a password for a slot.
const TURN_WAIT: Duration = Duration::from_secs(10);

/// Queues to hash a password. Unknown clients take turns by address, known users by name.
pub(crate) struct HashQueues {
    unknown: Arc<FairQueue>,
    known: Arc<FairQueue>,
}

impl Default for HashQueues {
    fn default() -> Self {
        Self { unknown: FairQueue::new(UNKNOWN_MAX), known: FairQueue::new(KNOWN_MAX) }
    }
}

impl HashQueues {
    async fn next(&self, who: Attempt<'_>) -> Result<Permit, ApiError> {
        let turn = if who.known {
            self.known.turn(who.name, TURN_WAIT).await
        } else {
            self.unknown.turn(&network(who.address), TURN_WAIT).await
        };
        turn.ok_or_else(|| ApiError::too_many(1))
    }
}

impl Iam {
    /// True if a password is the one that was hashed; takes equally long if `hash` is `None`.
    ///
    /// Only wrong passwords count. The count is checked before the queue, so that a flood that is
    /// over its limit takes no slots, and again in the slot: many right passwords at once pass, and
    /// many wrong ones at once are not more guesses than one after another.
    pub(crate) async fn matches(
        &self,
        who: Attempt<'_>,
        hash: Option<PasswordHash>,
        password: String,
    ) -> Result<bool, ApiError> {
        self.wrong_passwords.check(who, self.now()).map_err(ApiError::too_many)?;
        if !auth::may_be_password(&password) {
            // The answer does not show if the user exists: it is the same for all of them.
            self.wrong_passwords.count(who, self.now()).map_err(ApiError::too_many)?;
            return Ok(false);
        }
        let turn = self.hash_queues.next(who).await?;
        self.wrong_passwords.check(who, self.now()).map_err(ApiError::too_many)?;
        let compare = move || match hash {
            Some(hash) => hash.matches(&password),
            None => {
                PasswordHash::waste_time(&password);
                false
            }
        };
        let (matches, _turn) = run_blocking(turn, compare).await?;
        if !matches {
            // Other wrong attempts at the same moment may have reached the limit already.
            let _ = self.wrong_passwords.count(who, self.now());
        }
        Ok(matches)
    }

    /// Hashes a new password, set by a logged-in user.
    pub(crate) async fn hash(&self, by: &str, password: String) -> Result<PasswordHash, ApiError> {
        let turn = self.hash_queues.next(Attempt { name: by, address: "", known: true }).await?;
        let (hash, _turn) = run_blocking(turn, move || PasswordHash::new(&password)).await?;
        hash.map_err(ApiError::internal)
    }
}
