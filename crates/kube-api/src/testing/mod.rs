//! For tests: an API server with its database. Owns: finding the programs, starting and ending
//! them without leaving anything behind, also when the test is killed. Does not know about: what
//! is tried with them.

#![expect(clippy::unwrap_used, reason = "it is part of tests, which end with a panic")]

mod files;
mod manifests;
mod objects;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::client::{ApiRequest, Client};
use crate::config::{Config, Kubeconfig};
use crate::error::{Call, Rule, Verb};
pub use files::{ADMIN, ADMIN_BY_CERTIFICATE, READER};
pub use manifests::documents;
pub use objects::{Budget, Namespace};

/// Variable that makes an error of what would be skipped.
const REQUIRED: &str = "ELASTANE_REQUIRE_KUBE";
/// Variable with the folder of the programs.
const ASSETS: &str = "KUBEBUILDER_ASSETS";
const PROGRAMS: [&str; 2] = ["etcd", "kube-apiserver"];
/// The name of the shared cluster among fixtures.
const SHARED: &str = "kubernetes";
/// Its first start makes tables and roles, beside all other tests.
const UP_WAIT: Duration = Duration::from_secs(240);
const POLL_PAUSE: Duration = Duration::from_millis(50);
/// Most starts: a port may be taken meanwhile.
const STARTS_MAX: u32 = 5;
/// Below those that the kernel gives to connections: a server comes back to its port.
const PORTS: std::ops::Range<u32> = 20_000..32_000;
/// Kills the servers, which name the folder `$0`, when its input ends, or the process `$1` where
/// there is one.
const KEEPER: &str = r#"if [ "$1" ]; then tail --pid="$1" -f /dev/null; else cat > /dev/null; fi
for line in $(grep -la -- "$0/" /proc/[0-9]*/cmdline 2> /dev/null); do
  pid=${line#/proc/}; pid=${pid%/cmdline}; [ "$pid" = $$ ] || kill -9 "$pid"; done
rm -rf "$0""#;

/// An API server with its database. There is no controller manager: objects that others make of
/// objects do not come, and no kubelet.
#[derive(Debug)]
pub struct Cluster {
    dir: PathBuf,
    programs: PathBuf,
    ports: Ports,
    /// Has the servers stopped and their folder deleted when it closes: when this is dropped, or
    /// this process has ended in whatever way. A shared cluster ends with the run of the tests.
    _keeper: Option<Child>,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    database: u16,
    server: u16,
}

impl Cluster {
    /// The one cluster that all tests share; `None`, and a line that reports it, on a machine
    /// without the programs.
    ///
    /// # Panics
    /// It should start and does not.
    #[must_use]
    pub fn shared() -> Option<Self> {
        let start = || {
            let cluster = Self::start(Some(fixture::owner_pid()))?;
            Ok(cluster.dir.display().to_string())
        };
        match fixture::shared(SHARED, start) {
            Ok(dir) => {
                let (dir, programs) = (PathBuf::from(dir), programs().unwrap());
                let ports = Ports::read(&dir);
                Some(Self { dir, programs, ports, _keeper: None })
            }
            Err(why) => missing(&why),
        }
    }

    /// A cluster for one test, which may kill its server.
    ///
    /// # Panics
    /// It should start and does not.
    #[must_use]
    pub fn own() -> Option<Self> {
        Self::start(None).map_or_else(|why| missing(&why), Some)
    }

    fn start(owner: Option<u32>) -> Result<Self, String> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let programs = programs()?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("kube-{}-{number}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        // A signal to the tests, such as that of Ctrl-C, is none to it.
        let keeper = Command::new("sh")
            .args(["-c", KEEPER])
            .arg(&dir)
            .arg(owner.map_or_else(String::new, |pid| pid.to_string()))
            .process_group(0)
            .stdin(if owner.is_some() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let ports = Ports::free();
        let keeper = fixture::kept(keeper, owner);
        let mut cluster = Self { dir, programs, ports, _keeper: keeper };
        for tries in 1..=STARTS_MAX {
            cluster.ports.write(&cluster.dir);
            files::write(&cluster.dir, cluster.ports.server);
            if cluster.database_up() && cluster.try_up() {
                return Ok(cluster);
            }
            assert!(tries < STARTS_MAX, "{}", cluster.log_tails());
            cluster.end_all();
            cluster.ports = Ports::free();
        }
        unreachable!("the last try starts it or panics")
    }

    /// A kubeconfig with a context for each user.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join(files::KUBECONFIG)
    }

    /// The settings of a user.
    ///
    /// # Panics
    /// There is no such user.
    #[must_use]
    pub fn config(&self, user: &str) -> Config {
        Kubeconfig::read(&[self.kubeconfig()]).unwrap().config(Some(user)).unwrap()
    }

    /// A client of the administrator.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.config(ADMIN), 1)
    }

    /// Kills the API server, as a crash would.
    ///
    /// # Panics
    /// It does not run.
    pub fn kill(&self) {
        self.end("kube-apiserver");
    }

    /// Starts the API server again, and waits until it answers.
    ///
    /// # Panics
    /// It does not.
    pub fn up(&self) {
        assert!(self.try_up(), "{}", self.log_tails());
    }

    /// Compacts the database: every version but the newest is gone.
    ///
    /// # Panics
    /// It does not answer.
    pub fn compact(&self) {
        let newest = self.database("/v3/kv/range", r#"{"key": "AA=="}"#);
        let revision = newest["header"]["revision"].as_str().unwrap();
        let asked = format!(r#"{{"revision": "{revision}", "physical": true}}"#);
        let done = self.database("/v3/kv/compaction", &asked);
        assert!(done["header"].is_object(), "{done}");
    }

    /// A service account of namespace `default` to which no role gives anything: the folder that
    /// the kubelet would mount into its pods, and their environment.
    ///
    /// # Panics
    /// The API server does not make it.
    pub async fn service_account(&self, name: &str) -> (PathBuf, BTreeMap<String, String>) {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": "default"},
        });
        self.apply(&account).await.unwrap();
        let token = self.token_of("default", name).await;
        let folder = self.dir.join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("token"), token).unwrap();
        fs::write(folder.join("namespace"), "default").unwrap();
        fs::copy(self.dir.join(files::AUTHORITY), folder.join("ca.crt")).unwrap();
        let port = self.ports.server.to_string();
        let env = [("KUBERNETES_SERVICE_HOST", "127.0.0.1"), ("KUBERNETES_SERVICE_PORT", &port)];
        (folder, env.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }

    fn database_up(&self) -> bool {
        let url = format!("http://127.0.0.1:{}", self.ports.database);
        let data = self.dir.join("data");
        let mut etcd = self.spawn(
            "etcd",
            &[
                format!("--data-dir={}", data.display()),
                format!("--listen-client-urls={url}"),
                format!("--advertise-client-urls={url}"),
                "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
                "--unsafe-no-fsync".to_owned(),
                "--log-level=warn".to_owned(),
            ],
        );
        let answers = || TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports.database)).is_ok();
        let is_up = self.wait(&mut etcd, answers);
        reap(etcd);
        is_up
    }

    fn try_up(&self) -> bool {
        let file = |name: &str| self.dir.join(name).display().to_string();
        let mut server = self.spawn(
            "kube-apiserver",
            &[
                format!("--etcd-servers=http://127.0.0.1:{}", self.ports.database),
                "--bind-address=127.0.0.1".to_owned(),
                "--advertise-address=127.0.0.1".to_owned(),
                format!("--secure-port={}", self.ports.server),
                format!("--tls-cert-file={}", file(files::CERTIFICATE)),
                format!("--tls-private-key-file={}", file(files::KEY)),
                format!("--client-ca-file={}", file(files::AUTHORITY)),
                format!("--token-auth-file={}", file(files::TOKENS)),
                "--authorization-mode=RBAC".to_owned(),
                "--disable-admission-plugins=ServiceAccount".to_owned(),
                "--endpoint-reconciler-type=none".to_owned(),
                "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
                "--service-account-issuer=https://localhost".to_owned(),
                format!("--service-account-key-file={}", file(files::ACCOUNTS_PUBLIC_KEY)),
                format!("--service-account-signing-key-file={}", file(files::ACCOUNTS_KEY)),
            ],
        );
        let client = self.client();
        let is_up = self.wait(&mut server, || block_on(is_ready(&client)));
        reap(server);
        is_up
    }

    /// Waits until a server answers; `false` if it ends before.
    fn wait(&self, server: &mut Child, answers: impl Fn() -> bool) -> bool {
        let began = Instant::now();
        loop {
            if server.try_wait().unwrap().is_some() {
                return false;
            }
            if answers() {
                return true;
            }
            assert!(began.elapsed() < UP_WAIT, "it does not answer: {}", self.log_tails());
            std::thread::sleep(POLL_PAUSE);
        }
    }

    fn spawn(&self, program: &str, args: &[String]) -> Child {
        let path = self.dir.join(format!("{program}.log"));
        let log = OpenOptions::new().create(true).append(true).open(path).unwrap();
        let child = Command::new(self.programs.join(program))
            .args(args)
            .current_dir(&self.dir)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        fs::write(self.dir.join(format!("{program}.pid")), child.id().to_string()).unwrap();
        child
    }

    fn end_all(&self) {
        PROGRAMS.into_iter().for_each(|program| self.end(program));
    }

    fn end(&self, program: &str) {
        let Ok(text) = fs::read_to_string(self.dir.join(format!("{program}.pid"))) else { return };
        let pid = text.parse().ok().and_then(Pid::from_raw).unwrap();
        // The process may have ended by itself.
        let _gone = kill_process(pid, Signal::KILL);
        while Path::new(&format!("/proc/{text}")).exists() {
            std::thread::sleep(POLL_PAUSE);
        }
    }

    /// The ends of what the servers wrote.
    fn log_tails(&self) -> String {
        let end = |program: &str| {
            let log = fs::read_to_string(self.dir.join(format!("{program}.log")));
            let log = log.unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            format!("{program}: {}", lines[lines.len().saturating_sub(15)..].join("\n"))
        };
        PROGRAMS.map(end).join("\n")
    }

    /// Sends a request to the database itself.
    fn database(&self, path: &str, body: &str) -> Value {
        let mut connection =
            TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports.database)).unwrap();
        let length = body.len();
        let head = format!("POST {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {length}");
        write!(connection, "{head}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }
}

async fn is_ready(client: &Client) -> bool {
    let (path, group) = ("/readyz".to_owned(), String::new());
    let rule = Rule { verb: Verb::Get, group, resource: path.clone(), namespace: None };
    client.open(&ApiRequest::reading(Call { rule, name: None }, path)).await.is_ok()
}

impl Ports {
    fn free() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut found = std::iter::repeat_with(|| {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let port = PORTS.start + (std::process::id() * 7 + number) % (PORTS.end - PORTS.start);
            let port = u16::try_from(port).unwrap();
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok().then_some(port)
        })
        .flatten();
        Self { database: found.next().unwrap(), server: found.next().unwrap() }
    }

    fn write(self, dir: &Path) {
        let mut file = File::create(dir.join("ports")).unwrap();
        write!(file, "{} {}", self.database, self.server).unwrap();
    }

    fn read(dir: &Path) -> Self {
        let text = fs::read_to_string(dir.join("ports")).unwrap();
        let (database, server) = text.split_once(' ').unwrap();
        Self { database: database.parse().unwrap(), server: server.parse().unwrap() }
    }
}

/// Has the status of a server taken when it ends, so that its process is gone then.
fn reap(mut server: Child) {
    std::thread::spawn(move || server.wait());
}

/// Folder of the programs, or why there is none.
fn programs() -> Result<PathBuf, String> {
    let folder = match std::env::var_os(ASSETS) {
        Some(folder) => PathBuf::from(folder),
        None => built()?,
    };
    match PROGRAMS.iter().find(|program| !folder.join(program).exists()) {
        None => Ok(folder),
        Some(program) => {
            let folder = folder.display();
            Err(format!("no Kubernetes: no {program} in {folder}; `make kube-assets` builds it"))
        }
    }
}

/// The folder that `make kube-assets` puts them in.
fn built() -> Result<PathBuf, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kube/assets/build.sh");
    let output = Command::new("bash").arg(script).arg("--folder").output();
    let output = output.map_err(|error| format!("no Kubernetes: no bash: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("no Kubernetes: {}", said.trim()));
    }
    Ok(PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()))
}

fn missing<T>(why: &str) -> Option<T> {
    let is_required = std::env::var(REQUIRED).is_ok_and(|value| value == "1");
    assert!(!is_required, "{REQUIRED}=1: {why}");
    skip::missing(why)
}

/// In a thread of its own: tests are in a runtime already.
fn block_on<T: Send>(work: impl Future<Output = T> + Send) -> T {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(work)
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}
