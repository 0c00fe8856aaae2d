//! The REST interface: authenticate, validate, convert, ask `control`, convert back.
//!
//! ```text
//!  request -> panic, time, host -> token -> handler -> convert -> control::Handle
//!                                              `<---- convert <---- view::View
//! ```
//!
//! Owns: routes, statuses, error bodies, list queries, streams. Refuses to know: how anything is
//! decided, stored or run. The published routes lie under `/api/v1`, our own under
//! `/elastane/v1`.

mod access;
mod assets;
mod caller;
mod convert;
mod forecast;
mod gateway;
mod identity;
mod manifest;
mod metrics;
mod monitoring;
mod mounts;
mod objects;
mod orders;
mod policy;
mod routes;
mod scopes;
mod templates;
#[cfg(test)]
mod texts;
mod urls;
mod usage;
mod visits;
mod what_if;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use access::RuleIndex;
use http_kit::{Hosts, Proxies, Shutdown};
use identity::{Asking, Failures, Most, Turns};
use monitoring::Monitor;
use orders::Orders;
use tokio::sync::Semaphore;
use units::Instant;
use visits::Visits;

pub use assets::reseal;
pub use identity::LoginProvider;
pub use routes::router;
pub use what_if::{as_in_a_scenario, workload_asked_for};

/// Opens what credentials keep, for the dispatcher.
#[must_use]
pub fn unseal(vault: auth::Vault) -> control::Unseal {
    Arc::new(move |of, sealed| {
        let text = vault.unseal(of, sealed).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|_| auth::Sealed::Damaged.to_string())
    })
}

/// Says that this crate says how something is listed.
pub(crate) struct Listed;

/// What the handlers work with.
#[derive(Clone)]
pub struct State {
    /// The way to the dispatcher.
    pub control: control::Handle,
    /// Who may ask.
    pub authority: Arc<auth::Authority>,
    /// Who else vouches for people; none if only passwords do.
    pub login_provider: Option<Arc<LoginProvider>>,
    /// Seals what credentials keep.
    pub vault: auth::Vault,
    /// What time it is.
    pub clock: Arc<dyn control::Clock>,
    /// Names this server may be addressed by, beside those of the loopback.
    pub hosts: Hosts,
    /// Proxies that are believed about where a request comes from.
    pub proxies: Proxies,
    /// The researcher's program, to be downloaded; none if there is none beside this one.
    pub client_program: Option<PathBuf>,
    /// Serves the inferences.
    pub serving: Arc<serving::Service>,
    /// Where this server is reached, such as `http://127.0.0.1:7171`; the public address if there
    /// is one.
    pub url: String,
    /// Whether that is a public address: then links name it, whatever host a request was for.
    pub url_is_public: bool,
    /// The domain below which each port of a workload that is opened in a browser has a host.
    pub workloads_domain: String,
    /// Told when the server is to stop. Ends the streams, and is triggered by `POST /down`.
    pub shutdown: Shutdown,
}

/// The state with what lives as long as the server.
pub(crate) struct Server {
    state: State,
    /// What each subject was given.
    rules: Mutex<Arc<RuleIndex>>,
    /// Wrong passwords of people.
    pub(crate) wrong_passwords: Failures,
    /// Wrong secrets of programs and sessions.
    pub(crate) wrong_secrets: Failures,
    /// Refused logins at the provider.
    pub(crate) wrong_logins: Failures,
    /// Refusals written to the audit log.
    pub(crate) refusals: Failures,
    /// Who is at a pod now.
    pub(crate) visits: Arc<Visits>,
    /// Who may come to ports of workloads in a browser.
    pub(crate) passes: urls::Passes,
    /// Forecasts being made at a time.
    pub(crate) forecasting: Arc<Semaphore>,
    /// Who may hash a password now.
    pub(crate) turns: Turns,
    /// Who may ask the login provider now.
    pub(crate) asking: Asking,
    /// What Prometheus scrapes.
    pub(crate) monitor: Monitor,
    /// Scrapes being answered at a time.
    pub(crate) scraping: Arc<Semaphore>,
    /// Workloads in the orders in which they are listed.
    pub(crate) orders: Orders,
}

impl From<State> for Server {
    fn from(state: State) -> Self {
        let monitor = Monitor::new(&state.control, state.clock.clone());
        Self {
            state,
            monitor,
            scraping: Arc::new(Semaphore::new(1)),
            rules: Mutex::default(),
            wrong_passwords: Failures::new(Most::PASSWORDS),
            wrong_secrets: Failures::new(Most::SECRETS),
            wrong_logins: Failures::new(Most::LOGINS),
            refusals: Failures::new(Most::REFUSALS),
            visits: Arc::default(),
            passes: urls::Passes::default(),
            forecasting: Arc::new(Semaphore::new(1)),
            turns: Turns::default(),
            asking: Asking::default(),
            orders: Orders::default(),
        }
    }
}

impl Server {
    /// What each subject was given, as of now. Made anew only when a rule has changed.
    pub(crate) fn rules(&self) -> Arc<RuleIndex> {
        let view = self.control.view();
        let now = view.objects.shelf(<access::AccessRule as objects::Family>::KIND);
        let mut index = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if !index.is_of(now) {
            *index = Arc::new(RuleIndex::new(now));
        }
        index.clone()
    }
}

impl std::ops::Deref for Server {
    type Target = State;
    fn deref(&self) -> &State {
        &self.state
    }
}

impl State {
    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Where the addresses of ports of workloads are.
    pub(crate) fn origins(&self) -> urls::Origins {
        urls::Origins { server: self.url.clone(), domain: self.workloads_domain.clone() }
    }

    pub(crate) fn context(&self) -> convert::Context {
        let (cluster, view) = (self.control.cluster(), self.control.view());
        let named = view.objects.shelf(<convert::ClusterName as objects::Family>::KIND);
        let named = named.and_then(|named| named.values().next()).map(|named| &named.name);
        convert::Context {
            cluster_id: cluster.uuid.to_string(),
            origins: self.origins(),
            cluster_name: named.unwrap_or(&cluster.name).clone(),
            now: self.now(),
            outage: self.control.outage(),
        }
    }
}
