//! Who asks: what is kept of principals, how they get tokens, what a token is worth now, and what
//! they may do.
//!
//! Owns: users, service accounts, access keys, sessions, access rules, their routes, and the checks
//! that every request passes. Does not know what the other routes do.

mod browser;
mod check;
mod email;
mod fair_queue;
mod grant;
mod guard;
mod hashing;
mod limit;
mod logins;
mod provider;
mod routes;
mod rules;
mod session;
mod subjects;

use std::sync::{Arc, Mutex, PoisonError};

use access::{Backend, Family};
use auth::Authority;

use hashing::HashQueues;
use limit::{FailureLimits, Failures};
use provider::ProviderPermits;
use rules::{AccessRule, RuleIndex};

pub use browser::Site;
pub use guard::{authenticate, authorise};
pub use provider::LoginProvider;
pub use routes::routes;
pub use subjects::documents;

/// Says whether a host is one of the server's own names.
pub type IsOwnHost = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Who may ask, and what was seen of those who may not.
pub struct Iam {
    backend: Backend,
    authority: Arc<Authority>,
    /// Who else vouches for people; none if only passwords do.
    login_provider: Option<Arc<LoginProvider>>,
    site: Site,
    /// What each subject was given.
    rules: Mutex<Arc<RuleIndex>>,
    /// Wrong passwords of people.
    wrong_passwords: Failures,
    /// Wrong secrets of programs and sessions.
    wrong_secrets: Failures,
    /// Refused logins at the provider.
    wrong_logins: Failures,
    /// Refusals written to the audit log.
    refusals: Failures,
    /// Who may hash a password now.
    hash_queues: HashQueues,
    /// Who may ask the login provider now.
    asking: ProviderPermits,
}

impl Iam {
    /// With whom to ask, and the server as browsers reach it.
    #[must_use]
    pub fn new(
        backend: Backend,
        authority: Arc<Authority>,
        login_provider: Option<Arc<LoginProvider>>,
        site: Site,
    ) -> Self {
        Self {
            backend,
            authority,
            login_provider,
            site,
            rules: Mutex::default(),
            wrong_passwords: Failures::new(FailureLimits::PASSWORDS),
            wrong_secrets: Failures::new(FailureLimits::SECRETS),
            wrong_logins: Failures::new(FailureLimits::LOGINS),
            refusals: Failures::new(FailureLimits::REFUSALS),
            hash_queues: HashQueues::default(),
            asking: ProviderPermits::default(),
        }
    }

    /// What each subject was given, as of now. Recomputed only when a rule has changed.
    fn rules(&self) -> Arc<RuleIndex> {
        let view = self.control.view();
        let now = view.objects.shelf(AccessRule::KIND);
        let mut index = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if !index.is_of(now) {
            *index = Arc::new(RuleIndex::new(now));
        }
        index.clone()
    }
}

impl std::ops::Deref for Iam {
    type Target = Backend;
    fn deref(&self) -> &Backend {
        &self.backend
    }
}
