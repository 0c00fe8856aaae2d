//! The REST interface: authenticate, validate, convert, ask `control`, convert back.
//!
//! ```text
//!  request -> panic, time, host -> token -> handler -> convert -> control::Handle
//!                                              `<---- convert <---- view::View
//! ```
//!
//! Owns: routes, statuses, error bodies, list queries, streams. Does not know how anything
//! is decided, stored or run. The published routes lie under `/api/v1`, our own under
//! `/elastane/v1`.

mod advice_rights;
mod archived;
mod drain_effects;
mod forecast;
mod limit_permissions;
mod list_order;
mod list_rows;
mod node_order;
mod prediction;
mod question_turns;
mod quota_effects;
mod repair_advice;
mod routes;
#[cfg(test)]
mod texts;
mod what_if;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use access::{Backend, Caller};
use assets::Assets;
use axum::extract::FromRef;
use control::Diagnosis;
use convert::Origins;
use gateway::Gateway;
use http_kit::{ApiError, Hosts, Proxies, Shutdown};
use iam::{Iam, LoginProvider, Site};
use list_order::Orders;
use list_rows::WrittenRows;
use question_turns::QuestionTurns;
use telemetry::Telemetry;
use units::Instant;
use uuid::Uuid;
use view::WorkloadView;

use routes::interface::DIGEST as INTERFACE;
pub use routes::router;
pub use what_if::{as_in_a_scenario, workload_asked_for};

/// Decryption of credentials, for the dispatcher.
#[must_use]
pub fn unseal(vault: auth::Vault) -> control::Unseal {
    Arc::new(move |of, sealed| {
        let token = match of.split_once('/') {
            Some((control::JOB_TOKEN, _)) => Some(vault.derive(of)),
            Some((control::JOB_TOKEN_TLS, id)) => {
                let token = vault.derive(&format!("{}/{id}", control::JOB_TOKEN));
                let identity = auth::job_identity(&vault.derive(of), training::TLS_NAME)
                    .map_err(|error| error.to_string())?;
                Some(format!("{token}\n{identity}"))
            }
            _ => None,
        };
        if let Some(token) = token {
            return Ok(BTreeMap::from([("token".to_owned(), token)]));
        }
        let text = vault.unseal(of, sealed).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|_| auth::Sealed::Damaged.to_string())
    })
}

/// Says that this crate says how something is listed.
pub(crate) struct Listed;

/// Services and settings that the handlers use.
#[derive(Clone)]
pub struct State {
    /// Handle of the dispatcher.
    pub control: control::Handle,
    /// Authority for tokens and roles.
    pub authority: Arc<auth::Authority>,
    /// Login provider for people; `None` if only passwords authenticate them.
    pub login_provider: Option<Arc<LoginProvider>>,
    /// Encryption of credentials.
    pub vault: auth::Vault,
    /// Source of the time.
    pub clock: Arc<dyn control::Clock>,
    /// Host names that requests may use, beside those of the loopback.
    pub hosts: Hosts,
    /// Proxies that the server trusts for the origin of a request.
    pub proxies: Proxies,
    /// The researcher's program for download; `None` if there is none beside this one.
    pub client_program: Option<PathBuf>,
    /// Serves the inferences.
    pub serving: Arc<serving::Service>,
    /// Follows the elastic trainings.
    pub training: Arc<training::Service>,
    /// Address of this server, such as `http://127.0.0.1:7171`; the public address if there is one.
    pub url: String,
    /// True if `url` is a public address: then links contain it, regardless of the host of a
    /// request.
    pub url_is_public: bool,
    /// Domain with a host for each port of a workload that opens in a browser.
    pub workloads_domain: String,
    /// Cancelled when the server is to stop. Ends the streams, and is triggered by `POST /down`.
    pub shutdown: Shutdown,
}

/// [`State`], and state for the lifetime of the server.
pub(crate) struct Server {
    backend: Backend,
    /// Users, roles and tokens.
    pub(crate) iam: Arc<Iam>,
    /// Assets that submissions take values from.
    pub(crate) assets: Arc<Assets>,
    /// Policies for submissions and assets.
    pub(crate) policy: Arc<policy::Context>,
    /// The researcher's program, for download.
    pub(crate) client_program: Option<PathBuf>,
    /// Access to ports of workloads.
    pub(crate) gateway: Arc<Gateway>,
    /// Address of this server.
    pub(crate) url: String,
    /// True if `url` is a public address.
    pub(crate) url_is_public: bool,
    /// Cancelled when the server is to stop.
    pub(crate) shutdown: Shutdown,
    /// Turns at diagnoses and forecasts.
    pub(crate) questions: QuestionTurns,
    /// Current and past measurements.
    pub(crate) telemetry: Arc<Telemetry>,
    /// Streams of changes.
    pub(crate) changes: Arc<changes::Context>,
    /// Service of the elastic trainings.
    pub(crate) training: Arc<training::Service>,
    /// Workloads in the orders in which they are listed.
    pub(crate) orders: Orders,
    /// Rows of the list of workloads that were written before.
    pub(crate) rows: WrittenRows,
}

/// State of the handlers. Handlers of a capability get its part.
#[derive(Clone)]
pub(crate) struct ApiState(Arc<Server>);

impl std::ops::Deref for ApiState {
    type Target = Arc<Server>;
    fn deref(&self) -> &Arc<Server> {
        &self.0
    }
}

impl FromRef<ApiState> for Arc<Iam> {
    fn from_ref(server: &ApiState) -> Self {
        server.iam.clone()
    }
}

impl FromRef<ApiState> for Arc<Gateway> {
    fn from_ref(server: &ApiState) -> Self {
        server.gateway.clone()
    }
}

impl FromRef<ApiState> for Arc<Telemetry> {
    fn from_ref(server: &ApiState) -> Self {
        server.telemetry.clone()
    }
}

impl FromRef<ApiState> for Arc<Assets> {
    fn from_ref(server: &ApiState) -> Self {
        server.assets.clone()
    }
}

impl FromRef<ApiState> for Arc<changes::Context> {
    fn from_ref(server: &ApiState) -> Self {
        server.changes.clone()
    }
}

impl FromRef<ApiState> for Arc<policy::Context> {
    fn from_ref(server: &ApiState) -> Self {
        server.policy.clone()
    }
}

impl From<State> for ApiState {
    fn from(state: State) -> Self {
        let backend = Backend { control: state.control, clock: state.clock };
        let origins = Origins { server: state.url.clone(), domain: state.workloads_domain };
        let (hosts, domain) = (state.hosts, origins.domain.clone());
        let encrypts = hosts.certificate.is_some();
        let is_own_host =
            move |host: &str| hosts.is_named(host) && !convert::is_of_a_workload(host, &domain);
        let (authority, provider) = (state.authority, state.login_provider);
        let site = Site {
            public_url: state.url_is_public.then(|| state.url.clone()),
            encrypts,
            interface: INTERFACE,
            is_own_host: Box::new(is_own_host),
        };
        let iam = Iam::new(backend.clone(), authority, provider, site);
        let iam = Arc::new(iam);
        let asked = backend.clone();
        let may_enter = move |caller: &Caller, workload: &WorkloadView| {
            assets::may_enter(&asked, caller, workload)
        };
        let gateway = Gateway::new(
            (backend.clone(), iam.clone()),
            state.serving,
            origins.clone(),
            state.shutdown.clone(),
            Box::new(may_enter),
        );
        let telemetry = Arc::new(Telemetry::new(backend.clone(), origins.clone()));
        let counter = telemetry.clone();
        let changes = changes::Context::new(
            (backend.clone(), origins.clone(), INTERFACE),
            iam.clone(),
            assets::documents().into_iter().chain(iam::documents()).collect(),
            Box::new(move || Box::new(counter.watcher())),
            state.shutdown.clone(),
        );
        Self(Arc::new(Server {
            assets: Arc::new(Assets::new(backend.clone(), state.vault, origins)),
            policy: Arc::new(policy::Context::new(backend.clone(), assets::imposed)),
            telemetry,
            changes: Arc::new(changes),
            training: state.training,
            backend,
            iam,
            gateway: Arc::new(gateway),
            client_program: state.client_program,
            url: state.url,
            url_is_public: state.url_is_public,
            shutdown: state.shutdown,
            questions: QuestionTurns::default(),
            orders: Orders::default(),
            rows: WrittenRows::default(),
        }))
    }
}

impl std::ops::Deref for Server {
    type Target = Backend;
    fn deref(&self) -> &Backend {
        &self.backend
    }
}

impl Server {
    /// Detailed reasons why a workload waits, and their time; `None` if it does not wait.
    pub(crate) async fn diagnose(
        &self,
        caller: &Caller,
        id: Uuid,
    ) -> Result<Option<(Diagnosis, Instant)>, ApiError> {
        let turn = self.questions.diagnosis(caller).await?;
        Ok(self.control.diagnose(id, turn).await?)
    }

    pub(crate) fn context(&self) -> convert::Context {
        convert::Context::new(&self.backend, &self.gateway.origins)
    }
}
