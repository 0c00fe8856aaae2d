//! Identity and access: stored principals, how they get tokens, the validity of a token now, and
//! permissions.
//!
//! Owns: users, service accounts, access keys, sessions, access rules, their routes, and the checks
//! that every request passes. Does not know what the other routes do.

mod browser;
mod check;
mod email;
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

/// Check whether a host is one of the server's own names.
pub type IsOwnHost = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Principals, sessions and permissions, and recent failed attempts.
pub struct Iam {
    backend: Backend,
    authority: Arc<Authority>,
    /// Provider that authenticates users beside passwords; `None` if only passwords do.
    login_provider: Option<Arc<LoginProvider>>,
    site: Site,
    /// Grants of each subject.
    rules: Mutex<Arc<RuleIndex>>,
    /// Wrong passwords of people.
    wrong_passwords: Failures,
    /// Wrong secrets of programs and sessions.
    wrong_secrets: Failures,
    /// Refused logins at the provider.
    wrong_logins: Failures,
    /// Refusals written to the audit log.
    refusals: Failures,
    /// Slots for hashing passwords.
    hash_queues: HashQueues,
    /// Slots for requests to the login provider.
    asking: ProviderPermits,
}

impl Iam {
    /// Identity and access on this backend; `site` is the server as browsers reach it.
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

    /// Current grants of each subject. Recomputed only when a rule has changed.
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
