//! Requests to the hosts of workloads. Owns: who may come, and what is told and kept from the workload.
//! Refuses to know: how its port is reached (`control`), and what comes back.

use std::sync::Arc;

use auth::Action;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State as FromState};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, StatusCode, Uri, Version, header};
use axum::middleware::Next;
use axum::response::Response;
use control::view::{PodState, WorkloadView};
use control::{Audience, ExposedUrl};
use http_body_util::BodyExt as _;
use serving::Error;

use super::address::{Whose, whose};
use super::page;
use crate::Server;
use crate::access::resource_of;
use crate::convert::phase_name;
use crate::edge::{Caller, Fault, Origin, host_of};
use crate::gateway::{is_meant, no_longer_allowed, refuse, take_caller, tell};
use crate::serve::Place;

/// Answers requests to hosts of workloads. No other route is reached there, and none of these elsewhere.
pub(crate) async fn divert(
    FromState(server): FromState<Arc<Server>>,
    Extension(origin): Extension<Origin>,
    mut request: Request,
    next: Next,
) -> Response {
    let (project, name, port) = match whose(host_of(&request), &server.workloads_domain) {
        Whose::Server => return next.run(request).await,
        Whose::Workload { project, name, port } => (project, name, port),
        Whose::Nobody => Default::default(),
    };
    let for_people = wants_page(request.headers());
    let refused = match find(&server, &project, &name, port) {
        Some(door) => door.answer(&server, origin, request).await,
        None => {
            let caller = take_caller(&server, &origin, request.headers_mut());
            let fault = caller.as_ref().map_or_else(closed, |_| nowhere());
            Err(refuse(&server, &origin, caller.as_ref(), fault))
        }
    };
    match refused {
        Ok(answer) => answer,
        Err(refused) if for_people => page::of(refused),
        Err(refused) => refused,
    }
}

/// Whether a browser asks for a page to show.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accepts.is_some_and(|accept| accept.contains("text/html"))
}

/// A port of a workload that is opened in a browser.
struct Door {
    workload: Arc<WorkloadView>,
    url: ExposedUrl,
    /// Its address, without a path.
    address: String,
}

fn find(server: &Server, project: &str, name: &str, port: u16) -> Option<Door> {
    let view = server.control.view();
    let workload = view.named(project, name)?;
    let url = workload.spec.urls.iter().find(|url| url.port == port)?.clone();
    let address = server.origins().of_port(workload, port)?;
    Some(Door { workload: workload.clone(), url, address })
}

fn nowhere() -> Fault {
    let why = "no workload has this address; `runai describe job NAME` shows those it has";
    Fault::new(StatusCode::NOT_FOUND, why)
}

/// Whoever has no token is not told which there are.
fn closed() -> Fault {
    let why = "nothing here is open to everyone, or there is nothing; send `Authorization: \
               Bearer <token>`";
    Fault::new(StatusCode::UNAUTHORIZED, why)
}

/// A service worker would stay in the browser, and answer there for the next workload of this name.
fn must_not_stay(headers: &HeaderMap) -> Result<(), Fault> {
    let why = "pages of workloads may not keep a service worker: the next workload of \
               this name would get it";
    let stays = headers.contains_key("service-worker");
    if stays { Err(Fault::forbidden(why)) } else { Ok(()) }
}

impl Door {
    /// The answer of the workload, or that who asks is refused.
    async fn answer(
        &self,
        server: &Arc<Server>,
        mut origin: Origin,
        mut request: Request,
    ) -> Result<Response, Response> {
        origin.path.insert_str(0, &self.address);
        serving::strip(request.headers_mut());
        let caller = take_caller(server, &origin, request.headers_mut());
        let answer = self.pass(server, &origin, caller.as_ref(), request).await;
        answer.map_err(|fault| refuse(server, &origin, caller.as_ref(), fault))
    }

    async fn pass(
        &self,
        server: &Arc<Server>,
        origin: &Origin,
        caller: Option<&Caller>,
        mut request: Request,
    ) -> Result<Response, Fault> {
        self.admit(caller)?;
        must_not_stay(request.headers())?;
        tell(server, request.headers_mut(), None, origin, caller);
        *request.uri_mut() = path_of(request.uri());
        *request.version_mut() = Version::HTTP_11;
        let place = request.extensions_mut().remove::<Place>();
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        let until = no_longer_allowed(server.clone(), caller.cloned(), place);
        let answer = server.serving.pass(self.connect(server, caller), request, until).await;
        Ok(answer?.map(Body::new))
    }

    /// Lets those pass that may open it.
    fn admit(&self, caller: Option<&Caller>) -> Result<(), Fault> {
        caller.map_or(Ok(()), Caller::must_have_own_password)?;
        if caller.is_none() && self.url.audience != Audience::Everyone {
            return Err(closed());
        }
        is_meant(&self.url.audience, caller, self.workload.created_at)
    }

    /// A connection to the port: of the pod that leads, where one does, else of the first that runs.
    async fn connect(
        &self,
        server: &Server,
        caller: Option<&Caller>,
    ) -> Result<Box<dyn engine::Duplex>, Fault> {
        let workload = &self.workload;
        let leader = workload.spec.together.and(workload.pods.first());
        let leader = leader.map(|pod| pod.name.as_str());
        let connection = server.control.connect(workload.id, leader, self.url.port).await;
        connection.map_err(|error| {
            if let control::Error::Internal { message } = &error {
                tracing::warn!(workload = %workload.id, message, "a port cannot be reached");
            }
            let resource = resource_of(workload.spec.kind);
            let may_know = caller.is_some_and(|caller| {
                caller.must_to_workload(Action::Read, resource, workload).is_ok()
            });
            let why = if may_know { self.standing(&error) } else { nobody_there() };
            Fault::new(StatusCode::SERVICE_UNAVAILABLE, why)
        })
    }

    /// Why nothing answers, as far as the state says it.
    fn standing(&self, error: &control::Error) -> String {
        let WorkloadView { spec, pods, pending, phase, .. } = &*self.workload;
        let runs = pods.iter().any(|pod| pod.state == PodState::Running);
        match pending.first() {
            _ if runs => error.to_string(),
            Some(reason) => format!("{} waits: {} ({})", spec.name, reason.message, reason.code),
            None => format!("{} is {}", spec.name, phase_name(*phase)),
        }
    }
}

/// What strangers hear of a workload that does not run, or not yet answer.
fn nobody_there() -> String {
    "nothing answers at this address now; try again later".to_owned()
}

/// The path and the query, as they were written.
fn path_of(uri: &Uri) -> Uri {
    let written = uri.path_and_query().cloned();
    Uri::from(written.unwrap_or_else(|| PathAndQuery::from_static("/")))
}

/// What happened instead of an answer.
impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let (status, why) = match error {
            Error::NoReplica(why) => (StatusCode::SERVICE_UNAVAILABLE, why.to_string()),
            Error::TooSlow(s) => {
                (StatusCode::GATEWAY_TIMEOUT, format!("it did not begin to answer within {s} s"))
            }
            Error::Broken(why) => (StatusCode::BAD_GATEWAY, format!("it did not answer: {why}")),
        };
        Self::new(status, why)
    }
}
