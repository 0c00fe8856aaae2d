//! Requests to Podman's own API. Its copy of Docker's API ignores device requests and looks for a
//! file with the name of a device (seen with 4.3.1, and in its issues up to 5.1), where its own
//! supports names of the Container Device Interface. The copy also fails to report the resource use
//! of a container with a memory reservation and without a limit (4.3.1, and its issue 29627 of
//! 2026). Owns: making a container with GPUs, and its resource use. Does not know about: what the
//! container is.

use std::path::Path;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error as Fault;
use bollard::models::{
    ContainerCreateBody, HostConfig, Mount, MountType, MountVolumeOptions, NetworkingConfig,
    PortMap, VolumeCreateRequest,
};
use http_body_util::BodyExt as _;
use hyper::Request;
use hyper::client::conn::http1::handshake;
use hyper::http::request::Builder;
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::net::UnixStream;

use crate::daemon::ANSWER_S_MAX;

const CREATE: &str = "/v4.0.0/libpod/containers/create";
/// Before the name of a container.
const STATS: &str = "/v4.0.0/libpod/containers/stats?stream=false&containers=";

/// True if a container is made by Podman's own API: it has names of devices, which Docker gets by
/// requests.
pub(crate) fn is_needed(body: &ContainerCreateBody) -> bool {
    body.host_config.as_ref().is_some_and(|host| host.devices.is_some())
}

/// Makes the volumes of a container that have labels or a driver of their own: a container made by
/// Podman's own API names volumes only, and the copy of Docker's makes them without labels, by
/// which they are found again (seen with 4.3.1).
///
/// # Errors
/// Podman does not make one.
pub(crate) async fn make_volumes(
    docker: &Docker,
    body: &mut ContainerCreateBody,
) -> Result<(), Fault> {
    let mounts = body.host_config.as_mut().and_then(|host| host.mounts.as_mut());
    for mount in mounts.into_iter().flatten() {
        make_volume(docker, mount).await?;
    }
    Ok(())
}

/// Makes a container of that name, whose volumes are there.
///
/// # Errors
/// As of the daemon where it makes one by Docker's API.
pub(crate) async fn create(
    docker: &Docker,
    socket: &Path,
    name: &str,
    mut body: ContainerCreateBody,
) -> Result<(), Fault> {
    // Other words may name it here.
    let image = docker.inspect_image(body.image.as_deref().unwrap_or_default()).await?;
    body.image = image.id;
    let spec = spec(name, body).map_err(|field| Fault::DockerResponseServerError {
        status_code: 400,
        message: format!(
            "with a GPU in Podman, {field} of a container is not supported; leave it out, or use \
             `elastane up --runtime process`"
        ),
    })?;
    let request = Request::post(CREATE).header("content-type", "application/json");
    let answer = ask(socket, request, spec.to_string());
    let answer = tokio::time::timeout(Duration::from_secs(ANSWER_S_MAX), answer).await;
    let (status, answer) = answer.map_err(|_| Fault::RequestTimeoutError)??;
    if status == 201 {
        return Ok(());
    }
    let message = serde_json::from_slice(&answer)
        .ok()
        .and_then(|answer: Value| answer.get("message").and_then(Value::as_str).map(str::to_owned));
    let message = message.unwrap_or_else(|| String::from_utf8_lossy(&answer).into_owned());
    Err(Fault::DockerResponseServerError { status_code: status, message })
}

/// Resource use of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) id: String,
    pub(crate) cpu_time_ns: u64,
    /// Includes memory of files that the container caches.
    pub(crate) memory_bytes: u64,
}

/// Resource use of the container of that name; `None` if it does not run. The caller limits the
/// time.
///
/// # Errors
/// Podman does not answer.
pub(crate) async fn usage(socket: &Path, name: &str) -> Result<Option<Usage>, Fault> {
    let request = Request::get(format!("{STATS}{name}"));
    let (_, answer) = ask(socket, request, String::new()).await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    Ok(answer.pointer("/Stats/0").and_then(read_usage))
}

/// `None` for a container that has ended: all numbers are 0.
fn read_usage(stats: &Value) -> Option<Usage> {
    let number = |name: &str| stats.get(name).and_then(Value::as_u64).filter(|number| *number > 0);
    Some(Usage {
        id: stats.get("ContainerID")?.as_str()?.to_owned(),
        cpu_time_ns: number("CPUNano")?,
        memory_bytes: number("MemUsage")?,
    })
}

async fn ask(socket: &Path, request: Builder, body: String) -> Result<(u16, Vec<u8>), Fault> {
    let http = |err| Fault::HyperResponseError { err };
    let stream = UnixStream::connect(socket).await?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(http)?;
    let request = request.header("host", "podman").body(body);
    let request = request.map_err(|err| Fault::HttpClientError { err })?;
    let answer = async move {
        let answer = sender.send_request(request).await?;
        let status = answer.status().as_u16();
        Ok((status, answer.into_body().collect().await?.to_bytes().to_vec()))
    };
    // The connection ends with its sender, after the answer.
    let (answer, _closed) = tokio::join!(answer, connection);
    answer.map_err(http)
}

async fn make_volume(docker: &Docker, mount: &mut Mount) -> Result<(), Fault> {
    let Some(options) = mount.volume_options.take() else { return Ok(()) };
    let MountVolumeOptions { labels, driver_config, .. } = options;
    // One without a name or a driver ends with its container.
    if mount.source.is_none() && driver_config.is_none() {
        return Ok(());
    }
    let driver_opts = driver_config.and_then(|driver| driver.options);
    let name = mount.source.clone();
    let wanted =
        VolumeCreateRequest { name, labels, driver_opts, ..VolumeCreateRequest::default() };
    mount.source = Some(docker.create_volume(wanted).await?.name);
    Ok(())
}

/// Body of Podman's own request for the container of a Docker request.
///
/// # Errors
/// Options that Podman's own API does not support here.
fn spec(name: &str, mut body: ContainerCreateBody) -> Result<Value, String> {
    let mut spec = Map::new();
    let mut set = |key: &str, value: Value| drop(spec.insert(key.to_owned(), value));
    set("name", json!(name));
    set("image", json!(body.image.take()));
    set("entrypoint", json!(body.entrypoint.take()));
    set("command", json!(body.cmd.take()));
    set("hostname", json!(body.hostname.take()));
    let env = body.env.take().unwrap_or_default();
    let env = env.iter().filter_map(|line| line.split_once('='));
    set("env", env.map(|(name, value)| (name.to_owned(), json!(value))).collect());
    set("work_dir", json!(body.working_dir.take()));
    // As Docker's API does.
    set("create_working_dir", json!(true));
    set("labels", json!(body.labels.take()));
    set("stdin", json!(body.open_stdin.take()));
    set("terminal", json!(body.tty.take()));
    set("user", json!(body.user.take()));
    // Else a command named `init` gets mounts of its own.
    set("systemd", json!("false"));
    let ports = body.exposed_ports.take().unwrap_or_default();
    let ports = ports.iter().filter_map(|port| port.split_once('/'));
    set("expose", ports.map(|(port, protocol)| (port.to_owned(), json!(protocol))).collect());
    let mut host = body.host_config.take().unwrap_or_default();
    let networks =
        body.networking_config.take().and_then(|all: NetworkingConfig| all.endpoints_config);
    if host.network_mode.take().as_deref() == Some("host") {
        set("netns", json!({ "nsmode": "host" }));
    } else {
        let networks = networks.into_iter().flatten();
        let named = networks.map(|(name, one)| (name, json!({ "aliases": one.aliases })));
        set("netns", json!({ "nsmode": "bridge" }));
        set("networks", named.collect());
    }
    set("portmappings", port_mappings(host.port_bindings.take().unwrap_or_default()));
    set("resource_limits", limits(&mut host));
    let devices = host.devices.take().unwrap_or_default();
    let devices = devices.into_iter().map(|device| json!({ "path": device.path_on_host }));
    set("devices", devices.collect());
    let mounts = host.mounts.take().unwrap_or_default();
    let (volumes, mounts): (Vec<_>, Vec<_>) =
        mounts.into_iter().partition(|mount| mount.typ == Some(MountType::VOLUME));
    set("volumes", volumes.into_iter().map(volume).collect());
    set("mounts", mounts.into_iter().map(other_mount).collect());
    options(&mut host, &mut set)?;
    // An option that is still set has no translation above: then no container is made.
    let known = body == ContainerCreateBody::default() && host == HostConfig::default();
    if known { Ok(Value::Object(spec)) } else { Err(left(&body, &host)) }
}

/// The names of the options that are set.
fn left(body: &ContainerCreateBody, host: &HostConfig) -> String {
    let names = [json!(body), json!(host)].into_iter().filter_map(|all| match all {
        Value::Object(all) => Some(all),
        _ => None,
    });
    let set = names.flatten().filter(|(_, value)| !value.is_null());
    set.map(|(name, _)| name).collect::<Vec<_>>().join(", ")
}

fn options(host: &mut HostConfig, set: &mut impl FnMut(&str, Value)) -> Result<(), String> {
    set("init", json!(host.init.take()));
    set("shm_size", json!(host.shm_size.take()));
    set("groups", json!(host.group_add.take()));
    set("cap_add", json!(host.cap_add.take()));
    set("cap_drop", json!(host.cap_drop.take()));
    set("privileged", json!(host.privileged.take()));
    set("read_only_filesystem", json!(host.readonly_rootfs.take()));
    match host.ipc_mode.take().as_deref() {
        None => {}
        Some("host") => set("ipcns", json!({ "nsmode": "host" })),
        Some(other) => return Err(format!("IpcMode `{other}`")),
    }
    for option in host.security_opt.take().unwrap_or_default() {
        match option.as_str() {
            "no-new-privileges" => set("no_new_privileges", json!(true)),
            "seccomp=unconfined" => set("seccomp_profile_path", json!("unconfined")),
            other => return Err(format!("SecurityOpt `{other}`")),
        }
    }
    Ok(())
}

fn limits(host: &mut HostConfig) -> Value {
    json!({
        "cpu": {
            "shares": host.cpu_shares.take(),
            "quota": host.cpu_quota.take(),
            "period": host.cpu_period.take(),
        },
        "memory": {
            "limit": host.memory.take(),
            "reservation": host.memory_reservation.take(),
            "swap": host.memory_swap.take(),
        },
        "pids": { "limit": host.pids_limit.take() },
    })
}

fn port_mappings(ports: PortMap) -> Value {
    let one = |(port, bindings): (String, Option<Vec<_>>)| {
        let port: Option<u16> = port.split('/').next().and_then(|port| port.parse().ok());
        let mapping = move |binding: bollard::models::PortBinding| {
            let host: Option<u16> = binding.host_port.and_then(|port| port.parse().ok());
            json!({ "container_port": port, "host_port": host, "host_ip": binding.host_ip })
        };
        bindings.into_iter().flatten().map(mapping).collect::<Vec<_>>()
    };
    ports.into_iter().flat_map(one).collect()
}

fn access(read_only: Option<bool>) -> &'static str {
    if read_only == Some(true) { "ro" } else { "rw" }
}

fn volume(mount: Mount) -> Value {
    let name = mount.source.unwrap_or_default();
    json!({ "Name": name, "Dest": mount.target, "Options": [access(mount.read_only)] })
}

/// A folder of the machine, or memory.
fn other_mount(mount: Mount) -> Value {
    if let Some(memory) = mount.tmpfs_options {
        let size = memory.size_bytes.map(|bytes| format!("size={bytes}"));
        let mode = memory.mode.map(|mode| format!("mode={mode:o}"));
        let options: Vec<_> = size.into_iter().chain(mode).collect();
        return json!({ "type": "tmpfs", "destination": mount.target, "options": options });
    }
    let shown = mount.bind_options.and_then(|options| options.propagation);
    let shown = shown.map_or_else(|| "rprivate".to_owned(), |shown| shown.to_string());
    json!({
        "type": "bind",
        "source": mount.source,
        "destination": mount.target,
        "options": ["rbind", access(mount.read_only), shown],
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixListener;

    use bollard::models::{DeviceMapping, EndpointSettings};

    use super::*;

    /// Answers with these texts in turn; returns the requests.
    fn podman(socket: &Path, answers: Vec<String>) -> std::thread::JoinHandle<String> {
        let listener = UnixListener::bind(socket).expect("a socket");
        std::thread::spawn(move || {
            let mut asked = String::new();
            for answer in answers {
                let (mut visitor, _) = listener.accept().expect("a visitor");
                let mut head = [0; 4096];
                let length = visitor.read(&mut head).expect("a question");
                let head = String::from_utf8_lossy(&head[..length]).into_owned();
                asked.push_str(head.lines().next().unwrap_or_default());
                asked.push('\n');
                let length = answer.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
                write!(visitor, "{head}{answer}").expect("an answer");
            }
            asked
        })
    }

    #[tokio::test]
    async fn what_a_container_uses_is_asked_of_podmans_own_api() {
        // As 4.3.1 answers, shortened: of one that runs, of one that has ended, of one that is
        // gone.
        let stats = |id: &str, cpu: u64, memory: u64| {
            let one =
                json!({ "AvgCPU": 4.04, "ContainerID": id, "CPUNano": cpu, "MemUsage": memory });
            json!({ "Error": null, "Stats": [one] }).to_string()
        };
        let gone = r#"{"Error":{},"Stats":null}"#.to_owned();
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("podman");
        let answers = vec![stats("48621a", 34_768_810, 438_272), stats("5edbae", 0, 0), gone];
        let asked = podman(&socket, answers);
        let found = usage(&socket, "elastane-1.1").await.expect("an answer");
        let expected =
            Usage { id: "48621a".into(), cpu_time_ns: 34_768_810, memory_bytes: 438_272 };
        assert_eq!(found, Some(expected));
        assert_eq!(usage(&socket, "ended").await.expect("an answer"), None);
        assert_eq!(usage(&socket, "gone").await.expect("an answer"), None);
        let asked = asked.join().expect("it ends");
        let first = "GET /v4.0.0/libpod/containers/stats?stream=false&containers=elastane-1.1 ";
        assert!(asked.starts_with(first), "{asked}");
        assert!(usage(&socket, "away").await.is_err(), "it does not answer any more");
    }

    fn body(host: HostConfig) -> ContainerCreateBody {
        let endpoint =
            EndpointSettings { aliases: Some(vec!["a-0".into()]), ..EndpointSettings::default() };
        ContainerCreateBody {
            image: Some("sha256:1".into()),
            cmd: Some(vec!["sleep".into(), "1".into()]),
            env: Some(vec!["A=b=c".into(), "EMPTY=".into()]),
            exposed_ports: Some(vec!["80/tcp".into()]),
            networking_config: Some(NetworkingConfig {
                endpoints_config: Some([("net".to_owned(), endpoint)].into()),
            }),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        }
    }

    fn host() -> HostConfig {
        let mount = |typ, source: Option<&str>, target: &str| Mount {
            typ: Some(typ),
            source: source.map(str::to_owned),
            target: Some(target.to_owned()),
            read_only: Some(true),
            ..Mount::default()
        };
        let device = "nvidia.com/gpu=GPU-1".to_owned();
        let binding = bollard::models::PortBinding {
            host_ip: Some("127.0.0.1".to_owned()),
            host_port: Some("8080".to_owned()),
        };
        HostConfig {
            network_mode: Some("net".to_owned()),
            devices: Some(vec![DeviceMapping {
                path_on_host: Some(device),
                ..DeviceMapping::default()
            }]),
            mounts: Some(vec![
                mount(MountType::BIND, Some("/a"), "/b"),
                mount(MountType::VOLUME, Some("v"), "/v"),
            ]),
            memory: Some(64),
            security_opt: Some(vec!["no-new-privileges".into(), "seccomp=unconfined".into()]),
            port_bindings: Some([("80/tcp".to_owned(), Some(vec![binding]))].into()),
            ..HostConfig::default()
        }
    }

    #[test]
    fn a_container_is_the_same_by_podmans_own_api() {
        let spec = spec("one", body(host())).expect("all is known");
        for (at, expected) in [
            ("/name", json!("one")),
            ("/command/0", json!("sleep")),
            ("/env/A", json!("b=c")),
            ("/env/EMPTY", json!("")),
            ("/expose/80", json!("tcp")),
            ("/networks/net/aliases/0", json!("a-0")),
            ("/netns/nsmode", json!("bridge")),
            ("/devices/0/path", json!("nvidia.com/gpu=GPU-1")),
            ("/create_working_dir", json!(true)),
            ("/volumes", json!([{ "Name": "v", "Dest": "/v", "Options": ["ro"] }])),
            ("/mounts/0/options", json!(["rbind", "ro", "rprivate"])),
            ("/resource_limits/memory/limit", json!(64)),
            ("/no_new_privileges", json!(true)),
            ("/seccomp_profile_path", json!("unconfined")),
            (
                "/portmappings",
                json!([{ "container_port": 80, "host_port": 8080, "host_ip": "127.0.0.1" }]),
            ),
        ] {
            assert_eq!(spec.pointer(at), Some(&expected), "{at} of {spec}");
        }
    }

    #[test]
    fn an_option_that_podmans_own_api_would_lose_is_named() {
        let unknown = HostConfig { dns: Some(vec!["10.0.0.1".into()]), ..host() };
        assert_eq!(spec("one", body(unknown)), Err("Dns".to_owned()));
        let profile = HostConfig { security_opt: Some(vec!["apparmor=x".into()]), ..host() };
        assert_eq!(spec("one", body(profile)), Err("SecurityOpt `apparmor=x`".to_owned()));
    }
}
