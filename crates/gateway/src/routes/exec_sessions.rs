//! Coming to a pod: commands in it, its own terminal, its ports. All three are WebSockets.

use std::sync::Arc;

use access::{Caller, Route, Where, find_workload};
use auth::Action::Update;
use auth::Resource;
use axum::Extension;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::extract::{FromRef, FromRequestParts, Path, State as FromState};
use axum::http::Uri;
use axum::http::request::Parts;
use engine::{ExecSpec, TerminalSize};
use http_kit::openapi::{Description, Input, get};
use http_kit::{ApiError, ConnectionPermit, Switched, parameters};
use utoipa::openapi::schema::Type;
use view::WorkloadView;

use super::GatewayState;
use crate::exec_sessions::{self, SessionPermit, Why};

/// Terminals are not larger than this.
const ROWS_COLUMNS_MAX: u16 = 10_000;
/// Longest `term`.
const TERM_CHARS_MAX: usize = 64;
/// Default size of a terminal.
const SIZE: TerminalSize = TerminalSize { rows: 24, columns: 80 };

pub(super) fn routes<S>() -> impl Iterator<Item = Route<S>>
where
    S: Clone + Send + Sync + 'static,
    GatewayState: FromRef<S>,
{
    let all = [
        get(
            "/elastane/v1/workloads/{workloadId}/exec",
            "exec",
            "Runs a command in a pod; a WebSocket",
            exec,
        )
        .part::<api_types::SessionEnd>()
        .part::<api_types::TerminalSize>(),
        get(
            "/elastane/v1/workloads/{workloadId}/attach",
            "attach",
            "Shows what a pod prints, and hands it what is typed; a WebSocket",
            attach,
        ),
        get(
            "/elastane/v1/workloads/{workloadId}/portforward",
            "port_forward",
            "A connection to a port of a pod; a WebSocket",
            port_forward,
        ),
    ];
    all.into_iter().map(|route| route.needs(Update, Resource::Workloads, Where::Workload))
}

/// The wish to go over to a WebSocket.
pub(super) struct Upgrade {
    socket: WebSocketUpgrade,
    place: Option<ConnectionPermit>,
}

impl Input for Upgrade {}

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let place = parts.extensions.get().cloned();
        let socket = WebSocketUpgrade::from_request_parts(parts, state).await;
        let socket = socket.map_err(|why| {
            ApiError::bad(format!("this route speaks WebSocket: {}", why.body_text()))
        })?;
        let most = exec_sessions::MESSAGE_BYTES_MAX;
        Ok(Self { socket: socket.max_message_size(most).max_frame_size(most), place })
    }
}

/// An admitted session in a pod.
struct AdmittedSession {
    gateway: GatewayState,
    caller: Caller,
    workload: Arc<WorkloadView>,
    slot: SessionPermit,
    upgrade: Upgrade,
}

impl AdmittedSession {
    async fn new(
        gateway: GatewayState,
        caller: Caller,
        id: &str,
        upgrade: Upgrade,
    ) -> Result<Self, ApiError> {
        let workload = find_workload(&gateway.control, id).await?;
        (gateway.may_enter)(&caller, &workload)?;
        let slot = gateway.sessions.begin(&caller.subject)?;
        Ok(Self { gateway, caller, workload, slot, upgrade })
    }

    /// Starts `asking` at the engine and writes it to the audit log, upgrades to the WebSocket, and
    /// runs `doing` there until the caller has to leave.
    async fn enter<S: Send + 'static, F: Future<Output = ()> + Send + 'static>(
        self,
        what: &str,
        detail: &str,
        asking: impl Future<Output = Result<S, orchestrator::Error>> + Send + 'static,
        doing: impl FnOnce(WebSocket, S, Leaving) -> F + Send + 'static,
    ) -> Result<Switched, ApiError> {
        let Self { gateway, caller, workload, slot, upgrade } = self;
        let target = format!("{}/{}: {detail}", workload.project_name, workload.spec.name);
        let (control, who) = (gateway.asked_by(&caller), caller.subject.clone());
        let what = format!("workload.{what}");
        // In a task of its own: a client that hangs up meanwhile does not stop it.
        let asked = tokio::spawn(async move {
            let asked = asking.await;
            let result = asked.as_ref().err().map_or_else(|| "ok".to_owned(), ToString::to_string);
            control.record(&who, &what, &target, &result);
            asked
        });
        let session = asked.await.map_err(ApiError::internal)??;
        let until = Box::pin(exec_sessions::no_longer_allowed(gateway, caller, workload));
        Ok(Switched(upgrade.socket.on_upgrade(async move |socket| {
            let _held = (slot, upgrade.place);
            doing(socket, session, until).await;
        })))
    }
}

type Leaving = std::pin::Pin<Box<dyn Future<Output = Why> + Send>>;

async fn exec(
    FromState(gateway): FromState<GatewayState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Exec { pod, what }: Exec,
    upgrade: Upgrade,
) -> Result<Switched, ApiError> {
    let visitor = AdmittedSession::new(gateway, caller, &id, upgrade).await?;
    // Arguments of the program may be secret.
    let program = units::shown(what.command.first().map_or("", String::as_str));
    let (control, id) = (visitor.gateway.control.clone(), visitor.workload.id);
    let asking = async move { control.exec(id, pod.as_deref(), what).await };
    visitor.enter("exec", &program, asking, exec_sessions::carry).await
}

async fn attach(
    FromState(gateway): FromState<GatewayState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Attach { pod, stdin, terminal }: Attach,
    upgrade: Upgrade,
) -> Result<Switched, ApiError> {
    let visitor = AdmittedSession::new(gateway, caller, &id, upgrade).await?;
    let (control, id) = (visitor.gateway.control.clone(), visitor.workload.id);
    let asking = async move { control.attach(id, pod.as_deref(), stdin, terminal).await };
    let detail = if stdin { "with input" } else { "without input" };
    visitor.enter("attach", detail, asking, exec_sessions::carry).await
}

async fn port_forward(
    FromState(gateway): FromState<GatewayState>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Port { pod, port }: Port,
    upgrade: Upgrade,
) -> Result<Switched, ApiError> {
    let visitor = AdmittedSession::new(gateway, caller, &id, upgrade).await?;
    let (control, id) = (visitor.gateway.control.clone(), visitor.workload.id);
    let asking = async move { control.connect(id, pod.as_deref(), port).await };
    visitor.enter("portforward", &port.to_string(), asking, exec_sessions::forward).await
}

/// Parameters of all sessions.
#[derive(Default)]
struct SessionParameters {
    pod: Option<String>,
    command: Vec<String>,
    stdin: bool,
    tty: bool,
    rows: Option<u16>,
    columns: Option<u16>,
    term: Option<String>,
    port: Option<u16>,
}

impl SessionParameters {
    /// Reads the parameters named in `known`; others are an error.
    fn read(uri: &Uri, known: &[&str]) -> Result<Self, ApiError> {
        let mut asked = Self::default();
        for (name, value) in parameters(uri)? {
            if !known.contains(&name.as_str()) {
                let known = known.join(", ");
                return Err(ApiError::bad(format!(
                    "unknown parameter `{name}`; allowed are {known}"
                )));
            }
            match name.as_str() {
                "pod" => asked.pod = Some(value),
                "command" => asked.command.push(value),
                "stdin" => asked.stdin = switch(&name, &value)?,
                "tty" => asked.tty = switch(&name, &value)?,
                "rows" => asked.rows = Some(count(&name, &value, ROWS_COLUMNS_MAX)?),
                "columns" => asked.columns = Some(count(&name, &value, ROWS_COLUMNS_MAX)?),
                "port" => asked.port = Some(count(&name, &value, u16::MAX)?),
                _ => asked.term = Some(term(value)?),
            }
        }
        Ok(asked)
    }

    fn terminal(&self) -> Option<TerminalSize> {
        let size = TerminalSize {
            rows: self.rows.unwrap_or(SIZE.rows),
            columns: self.columns.unwrap_or(SIZE.columns),
        };
        self.tty.then_some(size)
    }
}

fn switch(name: &str, value: &str) -> Result<bool, ApiError> {
    let why = || format!("`{}` is not allowed; write true or false", units::shown(value));
    value.parse().map_err(|_| ApiError::field(name, why()))
}

fn count(name: &str, value: &str, most: u16) -> Result<u16, ApiError> {
    let number = value.parse().ok().filter(|number| (1..=most).contains(number));
    let why = || format!("`{}` is not allowed; write 1 to {most}", units::shown(value));
    number.ok_or_else(|| ApiError::field(name, why()))
}

fn term(value: String) -> Result<String, ApiError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    if value.len() <= TERM_CHARS_MAX && value.chars().all(allowed) {
        return Ok(value);
    }
    Err(ApiError::field("term", "a name of a kind of terminal, such as xterm-256color, is allowed"))
}

const POD: &str = "Name of a pod that runs; the first one unless told";

fn describe_terminal(to: &mut Description) {
    to.parameter("pod", Type::String, POD);
    to.parameter("stdin", Type::Boolean, "Whether it is handed what is typed");
    to.parameter("tty", Type::Boolean, "Whether it has a terminal");
    to.parameter("rows", Type::Integer, "Lines of the terminal; 24 unless told");
    to.parameter("columns", Type::Integer, "Characters in a line of it; 80 unless told");
}

/// The parameters of `exec`.
struct Exec {
    pod: Option<String>,
    what: ExecSpec,
}

impl Input for Exec {
    fn describe(to: &mut Description) {
        describe_terminal(to);
        to.parameter("term", Type::String, "What kind of terminal it is: its TERM");
        to.several("command", Type::String, "Program and arguments, a parameter each");
    }
}

impl<S: Sync> FromRequestParts<S> for Exec {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let known = ["columns", "command", "pod", "rows", "stdin", "term", "tty"];
        let asked = SessionParameters::read(&parts.uri, &known)?;
        if asked.command.first().is_none_or(String::is_empty) {
            return Err(ApiError::field("command", "say which program to run"));
        }
        let terminal = asked.terminal();
        let SessionParameters { pod, command, stdin, term, .. } = asked;
        let env = term.map(|term| ("TERM".to_owned(), term)).into_iter().collect();
        Ok(Self { pod, what: ExecSpec { command, stdin, terminal, env } })
    }
}

/// The parameters of `attach`.
struct Attach {
    pod: Option<String>,
    stdin: bool,
    terminal: Option<TerminalSize>,
}

impl Input for Attach {
    fn describe(to: &mut Description) {
        describe_terminal(to);
    }
}

impl<S: Sync> FromRequestParts<S> for Attach {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let asked =
            SessionParameters::read(&parts.uri, &["columns", "pod", "rows", "stdin", "tty"])?;
        let terminal = asked.terminal();
        Ok(Self { pod: asked.pod, stdin: asked.stdin, terminal })
    }
}

/// The parameters of `portforward`.
struct Port {
    pod: Option<String>,
    port: u16,
}

impl Input for Port {
    fn describe(to: &mut Description) {
        to.parameter("pod", Type::String, POD);
        to.required("port", Type::Integer, "The port that the pod listens on");
    }
}

impl<S: Sync> FromRequestParts<S> for Port {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let asked = SessionParameters::read(&parts.uri, &["pod", "port"])?;
        let port = asked.port.ok_or_else(|| ApiError::field("port", "say which, 1 to 65535"))?;
        Ok(Self { pod: asked.pod, port })
    }
}
