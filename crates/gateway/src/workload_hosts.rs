//! Requests to the hosts of workloads: ports that are opened in a browser, and inferences. Owns:
//! who is admitted, and what the workload does not see. Does not know how a port is reached
//! (`control`), which replica answers (`serving`), and what comes back.

use std::sync::Arc;
use std::time::Duration;

use access::{Caller, resource_of};
use auth::Action;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State as FromState};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, StatusCode, Uri, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use convert::{HostOwner, whose};
use http_body_util::BodyExt as _;
use http_kit::{ApiError, Origin, host_of, must_be_own_page, wants_page};
use spec::Audience;
use view::{PodState, WorkloadView};

use crate::Gateway;
use crate::admission::{
    NoAnswer, is_meant, no_longer_allowed, refusal, refuse, said_at, set_caller_headers,
    take_caller,
};
use crate::browser::{
    cookie, is_from_elsewhere, keep_visits, set_cookie, take_ticket, take_visits,
};
use crate::page;
use crate::tickets::{PortKey, VISIT_MS};

/// Answers requests to hosts of workloads. No other route is reachable there, and these are not
/// reachable elsewhere.
pub async fn divert(
    FromState(gateway): FromState<Arc<Gateway>>,
    Extension(origin): Extension<Origin>,
    mut request: Request,
    next: Next,
) -> Response {
    let whose = whose(host_of(&request), &gateway.origins.domain);
    if whose == HostOwner::Server {
        return next.run(request).await;
    }
    let for_people = wants_page(request.headers());
    let refused = match find(&gateway, &whose) {
        Some(door) => door.answer(&gateway, origin, request).await,
        None => {
            let caller = take_caller(&gateway, &origin, request.headers_mut()).ok().flatten();
            let fault = caller.as_ref().map_or_else(closed, |_| nowhere());
            Err(refuse(&gateway, &origin, caller.as_ref(), fault))
        }
    };
    match refused {
        Ok(answer) => answer,
        Err(refused) if for_people => page::of(refused),
        Err(refused) => refused,
    }
}

/// An admitted request.
struct Admitted {
    caller: Option<Caller>,
    /// True if a page of another host uses the visit.
    elsewhere: bool,
    /// Longest time of a connection, in milliseconds.
    lasts_ms: u64,
}

/// Program behind a host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// The port itself.
    Port,
    /// A replica of an inference.
    Replica,
}

/// A port of a workload that is opened in a browser, or the port of an inference.
struct ExposedPort {
    workload: Arc<WorkloadView>,
    target: Target,
    port: u16,
    audience: Audience,
    /// Its address, without a path.
    address: String,
}

fn find(gateway: &Gateway, whose: &HostOwner) -> Option<ExposedPort> {
    let view = gateway.control.view();
    let (project, name, port) = match whose {
        HostOwner::Workload { project, name, port } => (project, name, port),
        HostOwner::Inference { project, name } => {
            return replicas(gateway, view.inference(project, name)?);
        }
        HostOwner::InferenceById(id) => return replicas(gateway, view.workloads.get(id)?),
        HostOwner::Server | HostOwner::NoWorkload => return None,
    };
    let workload = view.named(project, name)?;
    let url = workload.spec.urls.iter().find(|url| url.port == *port)?;
    let address = gateway.origins.of_port(workload, *port)?;
    Some(ExposedPort {
        workload: workload.clone(),
        target: Target::Port,
        port: *port,
        audience: url.audience.clone(),
        address,
    })
}

fn replicas(gateway: &Gateway, inference: &Arc<WorkloadView>) -> Option<ExposedPort> {
    let serving = inference.spec.serving.as_ref().filter(|_| inference.spec.has_revisions())?;
    Some(ExposedPort {
        workload: inference.clone(),
        target: Target::Replica,
        port: serving.container_port,
        audience: serving.audience.clone(),
        address: gateway.origins.of_inference(inference),
    })
}

fn nowhere() -> ApiError {
    let why = "no workload has this address; `runai describe job NAME` shows those it has";
    ApiError::new(StatusCode::NOT_FOUND, why)
}

/// Without a token, the answer does not reveal which exist.
fn closed() -> ApiError {
    let why = "addresses of workloads need a login: open one with `runai workload open NAME`, or send `Authorization: Bearer <token>`";
    ApiError::new(StatusCode::UNAUTHORIZED, why)
}

/// A service worker would stay in the browser, and answer there for the next workload of this name.
fn must_not_stay(headers: &HeaderMap) -> Result<(), ApiError> {
    let why = "pages of workloads may not keep a service worker: the next workload of \
               this name would get it";
    let stays = headers.contains_key("service-worker");
    if stays { Err(ApiError::forbidden(why)) } else { Ok(()) }
}

impl ExposedPort {
    /// The response of the workload, or the refusal of the caller.
    async fn answer(
        &self,
        gateway: &Arc<Gateway>,
        mut origin: Origin,
        mut request: Request,
    ) -> Result<Response, Response> {
        origin.path.insert_str(0, &self.address);
        serving::strip(request.headers_mut());
        let visits = take_visits(request.headers_mut(), cookie(&self.address));
        if let Some((ticket, rest)) = take_ticket(request.uri()) {
            let entered = self.enter(gateway, &origin, &visits, (&ticket, &rest));
            return entered.map_err(|fault| refuse(gateway, &origin, None, fault));
        }
        let guest = self.guest(gateway, &origin, &visits, request.headers_mut());
        let guest = guest.map_err(|fault| refuse(gateway, &origin, None, fault))?;
        let answer = self.pass(gateway, &origin, &guest, request).await;
        answer.map_err(|fault| refuse(gateway, &origin, guest.caller.as_ref(), fault))
    }

    fn place(&self) -> PortKey {
        (self.workload.id, self.port)
    }

    /// Caller of the request, by a token or by a visit.
    fn guest(
        &self,
        gateway: &Gateway,
        origin: &Origin,
        visits: &[String],
        headers: &mut HeaderMap,
    ) -> Result<Admitted, ApiError> {
        let anonymous = Admitted { caller: None, elsewhere: false, lasts_ms: u64::MAX };
        if let Some(caller) = take_caller(gateway, origin, headers)? {
            return Ok(Admitted { caller: Some(caller), ..anonymous });
        }
        let now = gateway.now();
        let Some(pass) = gateway.tickets.visit(visits, self.place(), now) else {
            return Ok(anonymous);
        };
        let caller = gateway.authenticator.again(&Caller { origin: origin.clone(), ..pass.caller });
        let elsewhere = caller.is_some() && is_from_elsewhere(headers);
        Ok(Admitted { caller, elsewhere, lasts_ms: pass.ends.since_ms(now) })
    }

    /// Begins a visit with a ticket, and redirects to the address without it.
    fn enter(
        &self,
        gateway: &Gateway,
        origin: &Origin,
        visits: &[String],
        (ticket, rest): (&str, &str),
    ) -> Result<Response, ApiError> {
        let (now, place) = (gateway.now(), self.place());
        let onwards = [
            (header::LOCATION, format!("{}{rest}", self.address)),
            (header::CACHE_CONTROL, "no-store".to_owned()),
            (header::REFERRER_POLICY, "no-referrer".to_owned()),
        ];
        let caller = gateway.tickets.redeem(ticket, place, now);
        let caller = caller.and_then(|caller| {
            gateway.authenticator.again(&Caller { origin: origin.clone(), ..caller })
        });
        let Some(caller) = caller else {
            if self.audience == Audience::Everyone
                || gateway.tickets.visit(visits, place, now).is_some()
            {
                return Ok((StatusCode::SEE_OTHER, onwards).into_response());
            }
            let why = format!(
                "this address was opened already, or not within a minute; {} makes another",
                self.command()
            );
            return Err(ApiError::new(StatusCode::UNAUTHORIZED, why));
        };
        self.admit(gateway, origin, Some(&caller))?;
        let secret = gateway.tickets.begin(place, caller, now).map_err(ApiError::internal)?;
        let cookie = set_cookie(&self.address, &secret, VISIT_MS / 1000);
        Ok((StatusCode::SEE_OTHER, onwards, [(header::SET_COOKIE, cookie)]).into_response())
    }

    /// The command that opens it.
    fn command(&self) -> String {
        let WorkloadView { spec, project_name, .. } = &*self.workload;
        format!("`runai workload open {} -p {project_name}`", spec.name)
    }

    async fn pass(
        &self,
        gateway: &Arc<Gateway>,
        origin: &Origin,
        guest: &Admitted,
        mut request: Request,
    ) -> Result<Response, ApiError> {
        let caller = guest.caller.as_ref();
        if guest.elsewhere {
            let why = "a page of another host asked for this; open the address itself";
            return Err(ApiError::forbidden(why));
        }
        self.admit(gateway, origin, caller)?;
        must_be_own_page(&self.address, request.headers())?;
        must_not_stay(request.headers())?;
        set_caller_headers(gateway, request.headers_mut(), origin, caller);
        *request.uri_mut() = path_of(request.uri());
        *request.version_mut() = Version::HTTP_11;
        let place = request.extensions_mut().remove::<http_kit::ConnectionPermit>();
        match (&place, caller) {
            (Some(place), Some(caller)) => place.belongs_to(&caller.subject)?,
            (Some(place), None) => {
                let WorkloadView { spec, project_name, .. } = &*self.workload;
                place.belongs_to_guests_of(&format!("{} of {project_name}", spec.name))?;
            }
            (None, _) => {}
        }
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        let until = no_longer_allowed(gateway.clone(), caller.cloned(), place);
        let over = tokio::time::sleep(Duration::from_millis(guest.lasts_ms));
        let until = async move {
            tokio::select! {
                () = until => {}
                () = over => {}
            }
        };
        let mut answer = match self.target {
            Target::Port => {
                let connect = async { self.connect(gateway, caller).await.map_err(NoAnswer) };
                let answer = gateway.serving.pass(self.workload.id, connect, request, until).await;
                answer.map_err(|NoAnswer(fault)| fault)?.map(Body::new)
            }
            Target::Replica => {
                let answer = gateway.serving.forward(&self.workload, request, until).await;
                let refused = |error| refusal(gateway, &self.workload, error, caller);
                answer.map_err(refused)?.map(Body::new)
            }
        };
        // The header would end visits of other ports.
        answer.headers_mut().remove("clear-site-data");
        keep_visits(answer.headers_mut(), cookie(&self.address));
        Ok(answer)
    }

    /// Lets those pass that may open it.
    fn admit(
        &self,
        gateway: &Gateway,
        origin: &Origin,
        by: Option<&Caller>,
    ) -> Result<(), ApiError> {
        by.map_or(Ok(()), Caller::must_have_own_password)?;
        let local_only = self.workload.spec.serving.as_ref().is_some_and(|one| one.local_only);
        if local_only && !origin.is_local {
            // Without a token an address elsewhere gives the error of a missing one.
            by.ok_or_else(closed)?;
            let why = "this inference answers requests from its own machine only";
            return Err(ApiError::forbidden(why));
        }
        if by.is_none() && self.audience != Audience::Everyone {
            return Err(closed());
        }
        let named_at = match self.target {
            Target::Port => self.workload.created_at,
            Target::Replica => said_at(&gateway.control.view(), &self.workload),
        };
        is_meant(&self.audience, by, named_at)
    }

    /// A connection to the port: of the pod that leads, where one does, else of the first that
    /// runs.
    async fn connect(
        &self,
        gateway: &Gateway,
        caller: Option<&Caller>,
    ) -> Result<Box<dyn engine::Duplex>, ApiError> {
        let workload = &self.workload;
        let leader = workload.spec.distributed.and(workload.pods.first());
        let leader = leader.map(|pod| pod.name.as_str());
        let connection = gateway.control.connect(workload.id, leader, self.port).await;
        connection.map_err(|error| {
            if let orchestrator::Error::Internal { message } = &error {
                tracing::warn!(workload = %workload.id, message, "a port cannot be reached");
            }
            let resource = resource_of(workload.spec.kind);
            let may_know = caller.is_some_and(|caller| {
                caller.must_to_workload(Action::Read, resource, workload).is_ok()
            });
            let why = if may_know { self.standing(gateway, &error) } else { unavailable() };
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, why)
        })
    }

    /// Reason in the state why nothing answers.
    fn standing(&self, gateway: &Gateway, error: &orchestrator::Error) -> String {
        let WorkloadView { spec, pods, phase, .. } = &*self.workload;
        let runs = pods.iter().any(|pod| pod.state == PodState::Running);
        match gateway.control.view().why(&self.workload).first() {
            _ if runs => error.to_string(),
            Some(reason) => format!("{} waits: {} ({})", spec.name, reason.message, reason.code),
            None => format!("{} is {phase:?}", spec.name),
        }
    }
}

/// The answer to unauthenticated clients for a workload that does not run, or does not answer yet.
fn unavailable() -> String {
    "nothing answers at this address now; try again later".to_owned()
}

/// The path and the query, as they were written.
fn path_of(uri: &Uri) -> Uri {
    let written = uri.path_and_query().cloned();
    Uri::from(written.unwrap_or_else(|| PathAndQuery::from_static("/")))
}
