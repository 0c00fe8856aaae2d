//! The daemon. Owns: finding its socket, and its properties. Does not know about containers.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bollard::{API_DEFAULT_VERSION, Docker};
use engine::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use units::Instant;

use crate::{failed, silence};

/// Timeout of a request, in seconds.
pub(crate) const ANSWER_S_MAX: u64 = 60;
/// Where Docker listens.
const DOCKER: &str = "/var/run/docker.sock";
/// Where Podman listens.
pub const PODMAN: &str = "/run/podman/podman.sock";
/// Where NVIDIA's container toolkit names GPUs: by hand, and by its service.
const CDI: [&str; 2] = ["/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"];

/// A daemon that answered.
#[derive(Debug, Clone)]
pub struct Daemon {
    pub(crate) docker: Docker,
    pub(crate) socket: PathBuf,
    pub(crate) facts: DaemonProperties,
}

/// The properties of a daemon.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DaemonProperties {
    /// Product and version, for people.
    pub(crate) name: String,
    /// Podman implements most of the same API.
    pub(crate) podman: bool,
    /// How it provides NVIDIA GPUs.
    pub(crate) gpus: Gpus,
    /// Memory of the machine.
    pub(crate) memory_bytes: Option<u64>,
    /// Folder of its containers and images, if it reports one.
    pub(crate) data_folder: Option<PathBuf>,
    /// Free bytes on its disk before a start; `None` if unknown.
    pub(crate) free_bytes: Option<u64>,
    /// True if containers outlive a daemon.
    pub(crate) keeps: bool,
    /// When it was started, if that ended the containers of its predecessor.
    pub(crate) ends_all_before: Option<Instant>,
    /// Start of the outage of the daemon before this one; `None` if it went unnoticed.
    pub(crate) away_since: Option<Instant>,
}

impl DaemonProperties {
    /// Name of the product.
    pub(crate) const fn product(&self) -> &'static str {
        if self.podman { "Podman" } else { "Docker" }
    }
}

/// How a daemon provides NVIDIA GPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Gpus {
    /// Not at all: the container toolkit is not installed or not configured.
    #[default]
    None,
    /// By device requests.
    Requests,
    /// By their names in the Container Device Interface.
    Cdi,
}

impl Daemon {
    /// The first daemon that answers at the configured (`variable` is the environment) or usual
    /// places.
    ///
    /// # Errors
    /// None answers; the text lists the places.
    pub fn find(
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> impl Future<Output = Result<Self, Error>> + Send + use<> {
        let sockets = sockets(variable);
        async move {
            let mut tried = Vec::new();
            for socket in sockets? {
                match Self::at(&socket).await {
                    Ok(daemon) => return Ok(daemon),
                    Err(error) => tried.push(format!("{}: {}", socket.display(), cause(&error))),
                }
            }
            Err(Error::Invalid(format!("no Docker or Podman answers ({})", tried.join("; "))))
        }
    }

    /// The daemon at a socket.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn at(socket: &Path) -> Result<Self, Error> {
        let path = socket.to_string_lossy();
        let docker = Docker::connect_with_unix(&path, ANSWER_S_MAX, API_DEFAULT_VERSION)
            .map_err(|error| failed("connect to Docker", error))?;
        let docker = docker
            .negotiate_version()
            .await
            .map_err(|error| failed("ask Docker for its version", error))?;
        let facts = facts(&docker, socket).await?;
        Ok(Self { docker, socket: socket.to_owned(), facts })
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// True if it can provide GPUs to containers.
    #[must_use]
    pub fn has_gpus(&self) -> bool {
        self.facts.gpus != Gpus::None
    }
}

/// Name, version and socket.
impl std::fmt::Display for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.facts.name, self.socket.display())
    }
}

fn cause(error: &Error) -> String {
    match error {
        Error::Io { source, .. } => {
            silence::cause(source).map_or_else(|| source.to_string(), str::to_owned)
        }
        other => other.to_string(),
    }
}

/// Where a daemon may listen. `DOCKER_HOST` overrides all others.
fn sockets(variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<PathBuf>, Error> {
    if let Some(host) = variable("DOCKER_HOST").filter(|host| !host.is_empty()) {
        return match host.strip_prefix("unix://") {
            Some(path) => Ok(vec![path.into()]),
            None => Err(Error::Invalid(format!(
                "DOCKER_HOST is `{host}`, but containers are started on this machine only; \
                 write unix:// and the path of a socket, or unset it"
            ))),
        };
    }
    let own = variable("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("podman/podman.sock"));
    Ok([Some(DOCKER.into()), own, Some(PODMAN.into())].into_iter().flatten().collect())
}

/// Queries a daemon's properties.
pub(crate) async fn facts(docker: &Docker, socket: &Path) -> Result<DaemonProperties, Error> {
    let version = docker.version().await.map_err(|e| failed("ask Docker for its version", e))?;
    let info = docker.info().await.map_err(|e| failed("ask Docker about itself", e))?;
    let components = version.components.unwrap_or_default();
    let podman = components.iter().any(|component| component.name.contains("Podman"));
    let product = if podman { "Podman" } else { "Docker" };
    let has_runtime = info.runtimes.is_some_and(|runtimes| runtimes.contains_key("nvidia"));
    let devices = info.discovered_devices.unwrap_or_default();
    let is_gpu = |id: Option<String>| id.is_some_and(|id| id.starts_with("nvidia.com/gpu="));
    // Podman does not report it.
    let named = podman && CDI.iter().any(|path| Path::new(path).exists());
    let gpus = if named || devices.into_iter().any(|device| is_gpu(device.id)) {
        Gpus::Cdi
    } else if has_runtime {
        Gpus::Requests
    } else {
        Gpus::None
    };
    let keeps = podman || info.live_restore_enabled.unwrap_or(false);
    let started_at = started_at(socket).await;
    let started_at = started_at.map_err(|e| failed("ask Docker again", e.into()))?;
    Ok(DaemonProperties {
        name: format!("{product} {}", version.version.unwrap_or_default()),
        podman,
        gpus,
        memory_bytes: info.mem_total.and_then(|bytes| u64::try_from(bytes).ok()),
        data_folder: info.docker_root_dir.map(PathBuf::from),
        free_bytes: None,
        keeps,
        ends_all_before: started_at.filter(|_| !keeps),
        away_since: None,
    })
}

/// The start time of the daemon that answers a new connection. None where its process is not
/// visible on this machine. A daemon that shuts down answers no new connection, and only then ends
/// containers.
pub(crate) async fn started_at(socket: &Path) -> io::Result<Option<Instant>> {
    let mut stream = UnixStream::connect(socket).await?;
    let listener = stream.peer_cred()?.pid();
    stream.write_all(b"GET /_ping HTTP/1.0\r\n\r\n").await?;
    let mut answer = [0];
    tokio::time::timeout(Duration::from_secs(ANSWER_S_MAX), stream.read_exact(&mut answer))
        .await??;
    Ok(listener.and_then(begun_at))
}

/// The start time of the daemon whose socket this process opened.
fn begun_at(listener: i32) -> Option<Instant> {
    // systemd may have opened the socket for it.
    let by_file = || std::fs::read_to_string("/run/docker.pid").ok()?.trim().parse().ok();
    let pid =
        if is_daemon(listener) { listener } else { by_file().filter(|pid| is_daemon(*pid))? };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in brackets and may contain anything; 20 fields after it is the start in ticks.
    let ticks: u64 = stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()?;
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let up_s: f64 = uptime.split(' ').next()?.parse().ok()?;
    let age_s = up_s - ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    let started = SystemTime::now() - Duration::try_from_secs_f64(age_s).ok()?;
    let since = started.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Instant(u64::try_from(since.as_millis()).ok()?))
}

fn is_daemon(pid: i32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim() == "dockerd"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(variables: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let paths = sockets(&variable).map_err(|error| error.to_string())?;
        Ok(paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn docker_is_looked_for_before_podman_and_docker_host_decides_alone() {
        let both = Ok("/var/run/docker.sock /run/podman/podman.sock".to_owned());
        assert_eq!(paths(&[]), both);
        let own = paths(&[("XDG_RUNTIME_DIR", "/run/user/7")]).expect("paths");
        assert!(own.contains(" /run/user/7/podman/podman.sock "), "{own}");
        assert_eq!(paths(&[("DOCKER_HOST", "unix:///x/y")]), Ok("/x/y".to_owned()));
        assert_eq!(paths(&[("DOCKER_HOST", "")]), both);
        let error = paths(&[("DOCKER_HOST", "tcp://10.0.0.1:2375")]).expect_err("elsewhere");
        assert!(error.contains("tcp://10.0.0.1:2375") && error.contains("unix://"), "{error}");
    }
}
