//! The flags about what is around a workload, of both dialects: mounts, ports, limits, user and
//! rights. Owns the form of their values.

use api_types::{
    ClaimInfo, ConfigMapInstance, EmptyDirInstance, ExposedUrl, GitInstance, HostPathInstance,
    ImagePullPolicy, NfsInstance, Port, PortServiceType, PvcAccessModes, PvcInstance, S3Instance,
};
use clap::{Args, ValueEnum};

use super::values::{Fields, count, cpu, port, seconds, size};

/// Flags that both dialects have.
#[derive(Debug, Default, Args)]
pub(crate) struct Common {
    /// Pull policy of the image [default: IfNotPresent]
    #[arg(long, value_enum, value_name = "POLICY", ignore_case = true)]
    pub(crate) image_pull_policy: Option<Pull>,
    /// Give it a temporary home directory
    #[arg(long)]
    pub(crate) create_home_dir: Option<bool>,
    /// Shared memory as large as its memory
    #[arg(long)]
    pub(crate) large_shm: Option<bool>,
    /// Share the IPC namespace of the machine
    #[arg(long)]
    pub(crate) host_ipc: Option<bool>,
    /// Use the network of the machine
    #[arg(long)]
    pub(crate) host_network: Option<bool>,
    /// Let a process gain more privileges than its parent
    #[arg(long)]
    pub(crate) allow_privilege_escalation: Option<bool>,
    /// On simulated GPUs, a driver that counts memory and computes nothing
    #[arg(long)]
    pub(crate) simulated_driver: Option<bool>,
    /// Mount a folder of an NFS server
    #[arg(long, value_name = "server=HOST,path=DIR,mountpath=DIR,readwrite", value_parser = nfs)]
    pub(crate) nfs: Vec<NfsInstance>,
    /// Mount a folder of the machine
    #[arg(long, value_name = "path=DIR,mount=DIR,readwrite", value_parser = host_path)]
    pub(crate) host_path: Vec<HostPathInstance>,
    /// Mount an empty folder
    #[arg(long, value_name = "path=DIR,medium=Memory,size=SIZE", value_parser = empty_dir)]
    pub(crate) empty_dir_volume: Vec<EmptyDirInstance>,
    /// Config map of the project as files in a folder; with subpath=KEY as one file
    #[arg(long, value_name = "name=NAME,path=DIR", value_parser = config_map)]
    pub(crate) configmap_map_volume: Vec<ConfigMapInstance>,
    /// Numeric id of the user it runs as
    #[arg(long, value_name = "UID", value_parser = count)]
    pub(crate) run_as_uid: Option<u32>,
    /// Numeric id of the group it runs as
    #[arg(long, value_name = "GID", value_parser = count)]
    pub(crate) run_as_gid: Option<u32>,
    /// Refuse to run as root
    #[arg(long)]
    pub(crate) run_as_non_root: Option<bool>,
    /// Numeric ids of further groups
    #[arg(long, value_name = "GID,GID")]
    pub(crate) supplemental_groups: Option<String>,
    /// Copy a Git repository; rev=REV in place of a branch
    #[arg(long, value_parser = git)]
    #[arg(value_name = "source=URL,branch=BRANCH,target=DIR,secret=NAME")]
    pub(crate) git_sync: Vec<GitInstance>,
    /// Copy an S3 bucket; changes stay in the pod
    #[arg(long, value_parser = bucket)]
    #[arg(value_name = "bucket=BUCKET,path=DIR,url=URL,accesskey=CREDENTIAL")]
    pub(crate) s3: Vec<S3Instance>,
}

/// Start and run time of a workload that ends.
#[derive(Debug, Default, Args)]
pub(crate) struct Timing {
    /// Do not schedule it until this gate is removed
    #[arg(long, value_name = "NAME")]
    pub(crate) scheduling_gate: Vec<String>,
    /// Minimum wait before it may preempt others, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    pub(crate) preemption_delay: Option<u64>,
    /// Suspend it after this much run time, such as 8h
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    pub(crate) time_limit: Option<u64>,
}

/// Flags of the first dialect.
#[derive(Debug, Default, Args)]
pub(crate) struct V1 {
    /// Flags of both dialects.
    #[command(flatten)]
    pub(crate) common: Common,
    /// Most CPU cores it may use, such as 2 or 500m
    #[arg(long, alias = "cpu-core-limit", value_name = "CORES", value_parser = cpu)]
    pub(crate) cpu_limit: Option<u64>,
    /// Most memory it may use, such as 2G
    #[arg(long, alias = "cpu-memory-limit", value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<String>,
    /// Mount a folder of the machine, or of an NFS server
    #[arg(short, long, alias = "volumes", value_name = "DIR:DIR[:ro|rw][:nfs-host]")]
    #[arg(value_parser = volume)]
    pub(crate) volume: Vec<Volume>,
    /// NFS server of the folders of --volume
    #[arg(long, value_name = "HOST", requires = "volume")]
    pub(crate) nfs_server: Option<String>,
    /// Make later mounts below folders of the machine visible in the container
    #[arg(long, requires = "volume")]
    pub(crate) mount_propagation: bool,
    /// Mount a volume: a new one of a size, or one by its name
    #[arg(long, value_name = "[CLASS]:SIZE:DIR[:ro] | NAME:DIR[:ro]", value_parser = pvc)]
    pub(crate) pvc: Vec<PvcInstance>,
    /// Mount an existing volume
    #[arg(long, alias = "existing-pvc", value_parser = existing_pvc)]
    #[arg(value_name = "claimname=NAME,path=DIR")]
    pub(crate) pvc_exists: Vec<PvcInstance>,
    /// Mount a volume; create it if it does not exist
    #[arg(long, alias = "new-pvc", value_parser = new_pvc)]
    #[arg(value_name = "claimname=NAME,size=SIZE,path=DIR")]
    pub(crate) pvc_new: Vec<PvcInstance>,
    /// Port to expose
    #[arg(long, value_name = "EXTERNAL:INTERNAL", value_parser = port_v1)]
    pub(crate) port: Vec<Port>,
    /// Type of access to the ports: portforward on this machine while the command runs, ingress in
    /// a browser, the others on the machine of the server
    #[arg(short, long, value_enum, ignore_case = true, hide_possible_values = true)]
    #[arg(value_name = "portforward|nodeport|loadbalancer|clusterip|ingress")]
    pub(crate) service_type: Option<ServiceType>,
    /// Address on this machine where portforward listens [default: localhost]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Option<String>,
    /// Linux capability to add, such as SYS_PTRACE
    #[arg(long, alias = "capability", value_name = "CAPABILITY")]
    pub(crate) add_capability: Vec<String>,
    /// Keep it from gaining rights (older spelling)
    #[arg(long, hide = true, conflicts_with = "allow_privilege_escalation")]
    pub(crate) prevent_privilege_escalation: bool,
    /// Pull the image before each start (older spelling)
    #[arg(long, hide = true, conflicts_with = "image_pull_policy")]
    pub(crate) always_pull_image: bool,
    /// Delete it this long after its end, such as 2h
    #[arg(long, alias = "auto-deletion-time-after-completion", value_parser = seconds)]
    #[arg(value_name = "DURATION")]
    pub(crate) ttl_after_finish: Option<u64>,
    /// Its start and its run time.
    #[command(flatten)]
    pub(crate) timing: Timing,
}

/// Flags of the second dialect.
#[derive(Debug, Default, Args)]
pub(crate) struct V2 {
    /// Flags of both dialects.
    #[command(flatten)]
    pub(crate) common: Common,
    /// Most CPU cores it may use, such as 2
    #[arg(long, value_name = "CORES", value_parser = cpu)]
    pub(crate) cpu_core_limit: Option<u64>,
    /// Most memory it may use, such as 2G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) cpu_memory_limit: Option<String>,
    /// Mount a volume; create it if it does not exist
    #[arg(long, value_name = "claimname=NAME,size=SIZE,path=DIR", value_parser = new_pvc)]
    pub(crate) new_pvc: Vec<PvcInstance>,
    /// Mount an existing volume
    #[arg(long, value_name = "claimname=NAME,path=DIR", value_parser = existing_pvc)]
    pub(crate) existing_pvc: Vec<PvcInstance>,
    /// Port to expose
    #[arg(long, value_name = "container=PORT,external=PORT", value_parser = port_v2)]
    pub(crate) port: Vec<Opened>,
    /// Port to open in a browser, for everyone or for some users
    #[arg(long, value_parser = external_url)]
    #[arg(value_name = "container=PORT,name=NAME,authtype=WHO,authusers=A:B")]
    pub(crate) external_url: Vec<ExposedUrl>,
    /// Source of user and group: fromTheImage or custom
    #[arg(long, value_name = "SOURCE")]
    pub(crate) user_group_source: Option<String>,
    /// Linux capability to add, such as SYS_PTRACE
    #[arg(long, value_name = "CAPABILITY")]
    pub(crate) capability: Vec<String>,
    /// Seccomp profile: RuntimeDefault or Unconfined
    #[arg(long, value_name = "PROFILE")]
    pub(crate) seccomp_profile: Option<String>,
    /// Run privileged, with all rights on the machine
    #[arg(long)]
    pub(crate) privileged: Option<bool>,
}

/// Type of access to ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lowercase")]
pub(crate) enum ServiceType {
    /// On the machine of who submits.
    PortForward,
    /// At the machine.
    NodePort,
    /// At the machine.
    LoadBalancer,
    /// At the machine.
    ClusterIp,
    /// In a browser.
    #[value(alias = "external-url")]
    Ingress,
}

/// A port that is reached from outside.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Opened {
    /// At the machine.
    Port(Port),
    /// In a browser.
    Url(ExposedUrl),
}

/// Pull policy of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum Pull {
    /// Before each start.
    Always,
    /// If it is not there.
    IfNotPresent,
    /// Never.
    Never,
}

impl From<Pull> for ImagePullPolicy {
    fn from(pull: Pull) -> Self {
        match pull {
            Pull::Always => Self::Always,
            Pull::IfNotPresent => Self::IfNotPresent,
            Pull::Never => Self::Never,
        }
    }
}

/// A folder of the machine or of an NFS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Volume {
    /// Path on the machine or the NFS server.
    pub(crate) from: String,
    /// Path in the workload.
    pub(crate) to: String,
    /// True if it can only be read.
    pub(crate) read_only: bool,
    /// The server; none is this machine.
    pub(crate) server: Option<String>,
}

fn volume(text: &str) -> Result<Volume, String> {
    let mut parts = text.split(':');
    let (from, to) = match (parts.next(), parts.next()) {
        (Some(from), Some(to)) if !from.is_empty() && !to.is_empty() => (from, to),
        _ => return Err("write DIR:DIR, :ro or :rw, and :HOST of an NFS server".to_owned()),
    };
    let (mut read_only, mut server) = (false, None);
    for part in parts {
        match part {
            "ro" => read_only = true,
            "rw" | "" => {}
            host if server.is_none() => server = Some(host.to_owned()),
            _ => return Err(format!("`{part}` is one word too many after DIR:DIR:ro:HOST")),
        }
    }
    Ok(Volume { from: from.to_owned(), to: to.to_owned(), read_only, server })
}

/// `CLAIM:PATH[:ro]` is one that is there, `[CLASS]:SIZE:PATH[:ro]` a new one.
fn pvc(text: &str) -> Result<PvcInstance, String> {
    let mut parts: Vec<&str> = text.split(':').collect();
    let read_only = matches!(parts.last(), Some(&"ro" | &"rw")).then(|| parts.pop() == Some("ro"));
    match parts.as_slice() {
        [claim, path] if !claim.is_empty() => Ok(PvcInstance {
            claim_name: Some((*claim).to_owned()),
            path: Some((*path).to_owned()),
            existing_pvc: Some(true),
            read_only,
            ..PvcInstance::default()
        }),
        [class, bytes, path] => Ok(PvcInstance {
            path: Some((*path).to_owned()),
            read_only,
            claim_info: Some(ClaimInfo {
                size: Some(size(bytes)?),
                storage_class: Some((*class).to_owned()).filter(|class| !class.is_empty()),
                ..ClaimInfo::default()
            }),
            ..PvcInstance::default()
        }),
        _ => Err("write [CLASS]:SIZE:DIR for a new volume, NAME:DIR for one there is".to_owned()),
    }
}

fn existing_pvc(text: &str) -> Result<PvcInstance, String> {
    let fields = Fields::read(text, &["claimname", "path", "ro"])?;
    Ok(PvcInstance {
        claim_name: Some(fields.needed("claimname")?),
        path: Some(fields.needed("path")?),
        existing_pvc: Some(true),
        read_only: fields.flag("ro")?,
        ..PvcInstance::default()
    })
}

fn new_pvc(text: &str) -> Result<PvcInstance, String> {
    let modes = ["accessmode-rwo", "accessmode-rom", "accessmode-rwm"];
    let known = ["claimname", "path", "size", "storageclass", "ro", "ephemeral"];
    let fields = Fields::read(text, &[&known[..], &modes[..]].concat())?;
    let [read_write_once, read_only_many, read_write_many] = modes.map(|mode| fields.flag(mode));
    Ok(PvcInstance {
        claim_name: fields.get("claimname"),
        path: Some(fields.needed("path")?),
        read_only: fields.flag("ro")?,
        ephemeral: fields.flag("ephemeral")?,
        claim_info: Some(ClaimInfo {
            size: fields.get("size").as_deref().map(size).transpose()?,
            storage_class: fields.get("storageclass"),
            access_modes: Some(PvcAccessModes {
                read_write_once: read_write_once?,
                read_only_many: read_only_many?,
                read_write_many: read_write_many?,
            })
            .filter(|modes| *modes != PvcAccessModes::default()),
            ..ClaimInfo::default()
        })
        .filter(|info| *info != ClaimInfo::default()),
        ..PvcInstance::default()
    })
}

fn nfs(text: &str) -> Result<NfsInstance, String> {
    let fields = Fields::read(text, &["server", "path", "mountpath", "readwrite", "readonly"])?;
    Ok(NfsInstance {
        server: Some(fields.needed("server")?),
        path: Some(fields.needed("path")?),
        mount_path: Some(fields.needed("mountpath")?),
        read_only: read_only(&fields)?,
        ..NfsInstance::default()
    })
}

fn host_path(text: &str) -> Result<HostPathInstance, String> {
    let known = ["path", "mount", "mountpath", "mount-propagation", "readwrite", "readonly"];
    let fields = Fields::read(text, &known)?;
    let mount = fields.get("mount").or(fields.get("mountpath"));
    Ok(HostPathInstance {
        path: Some(fields.needed("path")?),
        mount_path: Some(mount.ok_or("`mount=…` is missing")?),
        mount_propagation: fields.get("mount-propagation"),
        read_only: read_only(&fields)?,
        ..HostPathInstance::default()
    })
}

/// True for a read-only mount; `None` without `readwrite` and `readonly`. `readwrite` takes
/// precedence.
fn read_only(fields: &Fields<'_>) -> Result<Option<bool>, String> {
    Ok(match fields.flag("readwrite")? {
        Some(writable) => Some(!writable),
        None => fields.flag("readonly")?,
    })
}

fn empty_dir(text: &str) -> Result<EmptyDirInstance, String> {
    let fields = Fields::read(text, &["path", "medium", "size", "sizelimit"])?;
    let limit = fields.get("size").or(fields.get("sizelimit"));
    Ok(EmptyDirInstance {
        path: Some(fields.needed("path")?),
        medium: fields.get("medium"),
        size_limit: limit.as_deref().map(size).transpose()?,
        ..EmptyDirInstance::default()
    })
}

fn config_map(text: &str) -> Result<ConfigMapInstance, String> {
    let fields = Fields::read(text, &["name", "path", "subpath", "default-mode"])?;
    Ok(ConfigMapInstance {
        config_map: Some(fields.needed("name")?),
        mount_path: Some(fields.needed("path")?),
        sub_path: fields.get("subpath"),
        default_mode: fields.get("default-mode"),
        ..ConfigMapInstance::default()
    })
}

fn git(text: &str) -> Result<GitInstance, String> {
    let known = [
        "source",
        "repository",
        "branch",
        "rev",
        "target",
        "path",
        "secret",
        "name",
        "username",
        "password",
    ];
    let fields = Fields::read(text, &known)?;
    if fields.get("username").is_some() || fields.get("password").is_some() {
        let why = "a login on the command line is seen by everyone; make a credential of type \
                   password and write secret=NAME";
        return Err(why.to_owned());
    }
    let source = fields.get("source").or(fields.get("repository"));
    let target = fields.get("target").or(fields.get("path"));
    Ok(GitInstance {
        name: fields.get("name"),
        repository: Some(source.ok_or("`source=…` is missing")?),
        branch: fields.get("branch"),
        revision: fields.get("rev"),
        path: Some(target.unwrap_or_else(|| "/code".to_owned())),
        password_secret: fields.get("secret"),
        ..GitInstance::default()
    })
}

fn bucket(text: &str) -> Result<S3Instance, String> {
    let known = ["bucket", "path", "target", "url", "accesskey", "name", "key", "secret"];
    let fields = Fields::read(text, &known)?;
    if fields.get("key").is_some() || fields.get("secret").is_some() {
        let why = "an access key on the command line is seen by everyone; make a credential of type \
                   access-key and write accesskey=NAME";
        return Err(why.to_owned());
    }
    let path = fields.get("path").or(fields.get("target"));
    Ok(S3Instance {
        name: fields.get("name"),
        bucket: Some(fields.needed("bucket")?),
        path: Some(path.ok_or("`path=…` is missing")?),
        url: fields.get("url"),
        access_key_secret: fields.get("accesskey"),
        ..S3Instance::default()
    })
}

/// `EXTERNAL:INTERNAL`, or one number for both.
fn port_v1(text: &str) -> Result<Port, String> {
    let (external, container) = text.split_once(':').unwrap_or((text, text));
    let (external, container) = (Some(port(external)?.into()), Some(port(container)?.into()));
    Ok(Port { container, external, ..Port::default() })
}

fn port_v2(text: &str) -> Result<Opened, String> {
    let fields = Fields::read(text, &["container", "external", "service-type", "name"])?;
    let container = Some(port(&fields.needed("container")?)?.into());
    let external = fields.get("external").as_deref().map(port).transpose()?.map(u32::from);
    let name = fields.get("name");
    let kind = fields.get("service-type");
    let read = |kind: String| match ServiceType::from_str(&kind, true) {
        Ok(ServiceType::PortForward) | Err(_) => Err(kind),
        Ok(known) => Ok(known),
    };
    let kind = kind.map(read).transpose().map_err(|other| {
        let allowed = "allowed are nodeport, loadbalancer, clusterip and external-url";
        format!("service-type `{other}`; {allowed}")
    })?;
    opened(Port { container, external, name, ..Port::default() }, kind)
}

/// A port with the type it is reached by.
///
/// # Errors
/// It has a number outside, which an address has not.
pub(crate) fn opened(port: Port, kind: Option<ServiceType>) -> Result<Opened, String> {
    let service_type = match kind {
        // Nothing of it is the workload's: it is forwarded to.
        None | Some(ServiceType::PortForward) => None,
        Some(ServiceType::NodePort) => Some(PortServiceType::NodePort),
        Some(ServiceType::LoadBalancer) => Some(PortServiceType::LoadBalancer),
        Some(ServiceType::ClusterIp) => Some(PortServiceType::ClusterIP),
        Some(ServiceType::Ingress) => {
            let Port { container, external, name, .. } = port;
            if external.is_some_and(|external| Some(external) != container) {
                let why = "what is opened in a browser has no port outside; give the one inside";
                return Err(why.to_owned());
            }
            return Ok(Opened::Url(ExposedUrl { container, name, ..ExposedUrl::default() }));
        }
    };
    Ok(Opened::Port(Port { service_type, ..port }))
}

fn external_url(text: &str) -> Result<ExposedUrl, String> {
    let known = ["container", "url", "name", "authtype", "authusers", "authgroups"];
    let fields = Fields::read(text, &known)?;
    let audience = |text: String| {
        let audience = serde_json::from_value(serde_json::Value::String(text.clone()));
        audience.map_err(|_| {
            format!(
                "authtype: `{text}` is not allowed; public, authenticatedUsers or authorizedUsers"
            )
        })
    };
    let list = |key: &str| {
        fields.get(key).map(|all| all.split(':').map(str::to_owned).collect::<Vec<_>>())
    };
    Ok(ExposedUrl {
        container: Some(port(&fields.needed("container")?)?.into()),
        url: fields.get("url"),
        name: fields.get("name"),
        authorization_type: fields.get("authtype").map(audience).transpose()?,
        authorized_users: list("authusers"),
        authorized_groups: list("authgroups"),
        ..ExposedUrl::default()
    })
}
