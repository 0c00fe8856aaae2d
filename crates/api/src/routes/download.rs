//! Download and installation of the researcher's program. Owns: the machine that it is for (the one
//! this server runs on), and the script that installs it. Does not know about the program.

use std::path::Path as File;

use access::Route;
use axum::body::Body;
use axum::extract::{Path, State as FromState};
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::stream;
use http_kit::openapi::get;
use http_kit::{ApiError, Binary, PlainText};
use tokio::io::AsyncReadExt as _;

use crate::ApiState;

/// Bytes read from the program at a time.
const CHUNK_BYTES: usize = 1 << 16;
const INSTALLER: &str = include_str!("download.sh");

/// The routes of downloads, open to all: the program is no secret, and an installing user has no
/// token yet.
pub(super) fn routes() -> impl Iterator<Item = Route<ApiState>> {
    let program = "/api/v1/cli-exposer/dist/{operatingSystem}/{architecture}/runai";
    let document = "/api/v1/cli-exposer/docs/{documentName}";
    let about = "Refused: the manual is `runai --help`";
    let program = [
        get(program, "get_binary", "The program `runai` for a kind of machine", binary),
        get(document, "get_manual_document", about, manual),
    ];
    let (script, line) = ("A script that installs `runai`", "The line that runs the installer");
    let scripts = [
        ("/api/v1/cli-exposer/installer/linux", "get_installer_linux", LINUX),
        ("/api/v1/cli-exposer/installer/mac", "get_installer_mac", MAC),
        ("/api/v1/cli-exposer/installer/unix", "get_installer_unix", UNIX),
    ]
    .map(|(path, id, system)| get(path, id, script, installer).with(system));
    let lines = [
        ("/api/v1/cli-exposer/installer/linux/commands", "get_installer_linux_commands", LINUX),
        ("/api/v1/cli-exposer/installer/mac/commands", "get_installer_mac_commands", MAC),
        ("/api/v1/cli-exposer/installer/unix/commands", "get_installer_unix_commands", UNIX),
        (
            "/api/v1/cli-exposer/installer/windows/commands",
            "get_installer_windows_commands",
            WINDOWS,
        ),
    ]
    .map(|(path, id, system)| get(path, id, line, commands).with(system));
    let all = program.into_iter().chain(scripts).chain(lines);
    all.map(|route| route.open().of("ResearcherCommandLineInterface"))
}

/// System of an installer: its published name, and Rust's names for the systems it supports.
#[derive(Debug, Clone, Copy)]
struct System {
    name: &'static str,
    known_as: &'static [&'static str],
}

const LINUX: System = System { name: "linux", known_as: &["linux"] };
const MAC: System = System { name: "mac", known_as: &["macos"] };
const UNIX: System = System { name: "unix", known_as: &["linux", "macos"] };
const WINDOWS: System = System { name: "windows", known_as: &["windows"] };

/// System and architecture of the program beside this one, by their published names.
fn platform() -> (&'static str, &'static str) {
    use std::env::consts::{ARCH, OS};
    let system = if OS == "macos" { "darwin" } else { OS };
    let architecture = match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    (system, architecture)
}

fn none_for(asked: &str) -> ApiError {
    let (system, architecture) = platform();
    let asked = units::shown(asked);
    let why = format!(
        "this server has no `runai` for {asked}, only for {system}/{architecture}; build it there \
         from the same sources"
    );
    ApiError::new(StatusCode::NOT_FOUND, why)
}

async fn binary(
    FromState(state): FromState<ApiState>,
    Path((system, architecture)): Path<(String, String)>,
) -> Result<Binary, ApiError> {
    if (system.as_str(), architecture.as_str()) != platform() {
        return Err(none_for(&format!("{system}/{architecture}")));
    }
    let missing = || {
        let why = "this server was started without `runai` beside it, so there is none to download";
        ApiError::new(StatusCode::NOT_FOUND, why)
    };
    let file = state.client_program.as_deref().ok_or_else(missing)?;
    open(file).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => missing(),
        _ => ApiError::internal(error),
    })
}

async fn open(file: &File) -> std::io::Result<Binary> {
    let file = tokio::fs::File::open(file).await?;
    let length = file.metadata().await?.len();
    let chunks = stream::try_unfold(file, |mut file| async move {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let read = file.read_buf(&mut chunk).await?;
        Ok::<_, std::io::Error>((read > 0).then_some((chunk, file)))
    });
    Ok(Binary { name: "runai", length, body: Body::from_stream(chunks) })
}

async fn manual(Path(name): Path<String>) -> Result<PlainText, ApiError> {
    let why = format!("there is no document {}; `runai --help` says it all", units::shown(&name));
    Err(ApiError::new(StatusCode::NOT_FOUND, why))
}

/// The public address of this server, else the host of the request, if it is safe in a script.
pub(super) fn own_url(state: &ApiState, headers: &HeaderMap) -> Result<String, ApiError> {
    if state.url_is_public {
        return Ok(state.url.clone());
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || ".:-[]".contains(c);
    if host.is_empty() || !host.chars().all(plain) {
        return Err(ApiError::bad("the header `host` does not say where this server is"));
    }
    let scheme = state.url.split_once("://").map_or("http", |(scheme, _)| scheme);
    Ok(format!("{scheme}://{host}"))
}

fn is_served(system: System) -> Result<(), ApiError> {
    let served = system.known_as.contains(&std::env::consts::OS);
    if served { Ok(()) } else { Err(none_for(system.name)) }
}

async fn installer(
    FromState(state): FromState<ApiState>,
    axum::Extension(system): axum::Extension<System>,
    headers: HeaderMap,
) -> Result<PlainText, ApiError> {
    is_served(system)?;
    Ok(PlainText(INSTALLER.replace("@URL@", &own_url(&state, &headers)?).into()))
}

async fn commands(
    FromState(state): FromState<ApiState>,
    axum::Extension(system): axum::Extension<System>,
    headers: HeaderMap,
) -> Result<PlainText, ApiError> {
    is_served(system)?;
    let url = own_url(&state, &headers)?;
    let line = format!("curl -fsSL {url}/api/v1/cli-exposer/installer/{} | sh\n", system.name);
    Ok(PlainText(line.into()))
}
