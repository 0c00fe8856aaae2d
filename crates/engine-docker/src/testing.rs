//! A daemon for tests. Owns: finding the programs, starting and stopping it without leftovers,
//! even if the test is killed, and an image of a shell.

#![expect(clippy::unwrap_used, reason = "it is part of tests, which end with a panic")]

use std::fs;

use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bollard::query_parameters::{
    CreateImageOptionsBuilder, ListContainersOptions, ListContainersOptionsBuilder,
    ListNetworksOptions, ListVolumesOptions, RemoveImageOptionsBuilder,
    RestartContainerOptionsBuilder,
};
use futures_util::TryStreamExt as _;
use rustix::process::{Pid, Signal, kill_process};

use crate::Daemon;

/// The image every daemon of a test has: busybox, and nothing else.
pub const IMAGE: &str = "elastane-test:latest";

const POLL_PAUSE: Duration = Duration::from_millis(50);
/// Many small networks: each test uses some.
const ADDRESSES: &str = "base=10.211.0.0/16,size=26";
/// Its first start writes databases to the disk, which may be busy for minutes.
const UP_WAIT: Duration = Duration::from_secs(240);
/// The name of the shared daemon among fixtures.
const SHARED: &str = "docker";
/// Stops the daemon and whatever ran below it when its input ends, or the process `$2` where there
/// is one: `$0` is its folder. Interfaces of its networks would stay, and once they hold all
/// addresses, no daemon could make a network.
const KEEPER: &str = r#"if [ "$2" ]; then tail --pid="$2" -f /dev/null; else cat > /dev/null; fi
pid=$(cat "$0/pid" 2> /dev/null) && kill "$pid" && for i in $(seq 150); do
  [ -d "/proc/$pid" ] || break; sleep 0.1; done
for line in $(grep -la -- "$0/" /proc/[0-9]*/cmdline 2> /dev/null); do
  pid=${line#/proc/}; pid=${pid%/cmdline}; [ "$pid" = $$ ] || kill -9 "$pid"; done
for bridge in /sys/class/net/br-*; do
  grep -qsa -- "${bridge##*-}" "$0/data/network/files/local-kv.db" &&
    "$1" ip link delete "${bridge##*/}"; done
grep -o "$0[^ ]*" /proc/mounts | sort -r | while read -r at; do umount -l "$at"; done
rm -rf "$0""#;

/// A running daemon.
#[derive(Debug)]
pub struct DockerServer {
    dir: PathBuf,
    /// Address pools for its networks, as `--default-address-pool` takes them.
    addresses: &'static str,
    /// Has everything stopped when it closes: when this is dropped, or this process has ended.
    /// A shared daemon ends with the run of the tests.
    _keeper: Option<Child>,
}

impl DockerServer {
    /// The socket of the daemon that all tests share: the machine's, or one that is started; none,
    /// after a line that says so, where that is impossible.
    ///
    /// # Panics
    /// A daemon should start and does not.
    #[must_use]
    pub fn shared() -> Option<PathBuf> {
        let find = || match machines() {
            Some(daemon) => {
                import_shell(&daemon, &busybox()?);
                Ok(daemon.socket)
            }
            None => Self::start(ADDRESSES, Some(fixture::owner_pid())).map(|one| one.socket()),
        };
        let socket = || find().map(|socket| socket.display().to_string()).map_err(str::to_owned);
        match fixture::shared(SHARED, socket) {
            Ok(socket) => Some(socket.into()),
            Err(why) => skip::missing(&why),
        }
    }

    /// A daemon for one test, which may kill it. None if the machine has one: they would remove
    /// each other's packet filter rules.
    ///
    /// # Panics
    /// A daemon should start and does not.
    #[must_use]
    pub fn own() -> Option<Self> {
        Self::alone(ADDRESSES)
    }

    /// As [`Self::own`], with addresses for one network.
    ///
    /// # Panics
    /// A daemon should start and does not.
    #[must_use]
    pub fn with_one_network() -> Option<Self> {
        Self::alone("base=10.210.0.0/26,size=26")
    }

    fn alone(addresses: &'static str) -> Option<Self> {
        match machines() {
            Some(_) => skip::missing("no Docker of its own: this machine has one that is in use"),
            None => Self::start(addresses, None).map_or_else(skip::missing, Some),
        }
    }

    /// A daemon that ends with this value, or with a process.
    fn start(addresses: &'static str, owner: Option<u32>) -> Result<Self, &'static str> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::getuid().is_root() {
            return Err("no Docker: only root can start one for a test");
        }
        let (Some(_), Some(_)) = (program("dockerd"), program("containerd")) else {
            return Err("no Docker: dockerd was not found");
        };
        let busybox = busybox()?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        // A socket's path may not be long.
        let dir = std::env::temp_dir().join(format!("dk-{}-{number}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        // A signal to the tests, such as that of Ctrl-C, is none to it.
        let keeper = Command::new("sh")
            .args(["-c", KEEPER])
            .args([&dir, &busybox])
            .arg(owner.map_or_else(String::new, |pid| pid.to_string()))
            .process_group(0)
            .stdin(if owner.is_some() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { dir, addresses, _keeper: fixture::kept(keeper, owner) };
        server.up();
        let daemon = block_on(Daemon::at(&server.socket())).unwrap();
        import_shell(&daemon, &busybox);
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.join("docker.sock")
    }

    /// Its address for `DOCKER_HOST`.
    #[must_use]
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Starts it (again), and waits until it answers.
    ///
    /// # Panics
    /// It does not.
    pub fn up(&self) {
        let path = |name: &str| self.dir.join(name).display().to_string();
        let log = fs::OpenOptions::new().create(true).append(true).open(path("log")).unwrap();
        let pid = path("pid");
        let start = || {
            Command::new("dockerd")
                .args(["--data-root", &path("data"), "--exec-root", &path("exec")])
                .args(["--host", &self.host(), "--pidfile", &pid, "--bridge", "none"])
                .args(["--shutdown-timeout", "5"])
                .args(["--default-address-pool", self.addresses])
                .stdin(Stdio::null())
                .process_group(0)
                .stdout(log.try_clone().unwrap())
                .stderr(log.try_clone().unwrap())
                .spawn()
                .unwrap()
        };
        let began = Instant::now();
        let mut daemon = start();
        while !block_on(async { Daemon::at(&self.socket()).await.is_ok() }) {
            let said = || fs::read_to_string(path("log")).unwrap_or_default();
            assert!(began.elapsed() < UP_WAIT, "dockerd does not answer: {}", said());
            std::thread::sleep(POLL_PAUSE);
            // Two that begin at the same moment change the packet filter together, and one fails.
            if daemon.try_wait().unwrap().is_some() {
                daemon = start();
            }
        }
        std::thread::spawn(move || daemon.wait());
    }

    /// Kills it, as a crash would.
    ///
    /// # Panics
    /// It does not run.
    pub fn kill(&self) {
        self.end(Signal::KILL);
    }

    /// Stops it in order, as for an update.
    ///
    /// # Panics
    /// It does not run.
    pub fn stop(&self) {
        self.end(Signal::TERM);
    }

    fn end(&self, signal: Signal) {
        let pid = self.pid("pid").unwrap();
        kill_process(pid, signal).unwrap();
        // Its helper dies with it, but stays a zombie where nothing reaps it, and the next daemon
        // would take it for a helper.
        for file in ["pid", "exec/containerd/containerd.pid"] {
            while self.pid(file).is_some_and(lives) {
                std::thread::sleep(POLL_PAUSE);
            }
            let _absent = fs::remove_file(self.dir.join(file));
        }
    }

    /// The ids of the containers that run, in order.
    ///
    /// # Panics
    /// It does not answer.
    #[must_use]
    pub fn containers(&self) -> Vec<String> {
        let found = block_on(async {
            let daemon = Daemon::at(&self.socket()).await.unwrap();
            daemon.docker.list_containers(None::<ListContainersOptions>).await.unwrap()
        });
        let mut ids: Vec<_> = found.into_iter().filter_map(|container| container.id).collect();
        ids.sort_unstable();
        ids
    }

    /// Everything that servers have left on it: containers, including ended ones, and volumes.
    ///
    /// # Panics
    /// It does not answer.
    #[must_use]
    pub fn left(&self) -> Vec<String> {
        let (containers, volumes) = block_on(async {
            let docker = Daemon::at(&self.socket()).await.unwrap().docker;
            let all = ListContainersOptionsBuilder::default().all(true).build();
            let containers = docker.list_containers(Some(all)).await.unwrap();
            (containers, docker.list_volumes(None::<ListVolumesOptions>).await.unwrap())
        });
        let containers = containers.into_iter().flat_map(|one| one.names.unwrap_or_default());
        let volumes = volumes.volumes.unwrap_or_default().into_iter().map(|one| one.name);
        containers.chain(volumes).filter(|name| name.contains("elastane-")).collect()
    }

    /// Kills the processes of a container, as the kernel does if memory is short.
    ///
    /// # Panics
    /// It does not run.
    pub fn kill_container(&self, id: &str) {
        block_on(async {
            let daemon = Daemon::at(&self.socket()).await.unwrap();
            daemon.docker.kill_container(id, None).await.unwrap();
        });
    }

    /// Names of the networks that servers have made on it, in order.
    ///
    /// # Panics
    /// It does not answer.
    #[must_use]
    pub fn networks(&self) -> Vec<String> {
        let found = block_on(async {
            let daemon = Daemon::at(&self.socket()).await.unwrap();
            daemon.docker.list_networks(None::<ListNetworksOptions>).await.unwrap()
        });
        let names = found.into_iter().filter_map(|network| network.name);
        let mut names: Vec<_> = names.filter(|name| name.starts_with("elastane-")).collect();
        names.sort_unstable();
        names
    }

    fn pid(&self, file: &str) -> Option<Pid> {
        let text = fs::read_to_string(self.dir.join(file)).ok()?;
        Pid::from_raw(text.trim().parse().ok()?)
    }
}

/// Restarts the containers of a daemon whose command has this text, as a person may. How many.
///
/// # Panics
/// It does not answer, or cannot.
#[must_use]
pub fn restart_containers(socket: &Path, text: &str) -> usize {
    block_on(async {
        let docker = Daemon::at(socket).await.unwrap().docker;
        let all = docker.list_containers(None::<ListContainersOptions>).await.unwrap();
        let mut restarted = 0;
        for id in all.into_iter().filter_map(|container| container.id) {
            // Another test may have removed it since.
            let Ok(found) = docker.inspect_container(&id, None).await else { continue };
            let words = found.config.and_then(|config| config.cmd).unwrap_or_default();
            if words.iter().any(|word| word.contains(text)) {
                let at_once = RestartContainerOptionsBuilder::default().t(0).build();
                docker.restart_container(&id, Some(at_once)).await.unwrap();
                restarted += 1;
            }
        }
        restarted
    })
}

/// The daemon of this machine.
fn machines() -> Option<Daemon> {
    block_on(Daemon::find(&|name| std::env::var(name).ok())).ok()
}

fn busybox() -> Result<PathBuf, &'static str> {
    let found = program("busybox").filter(|path| is_static(path));
    found.ok_or("no image for Docker: busybox-static was not found")
}

/// The files of the image, as an archive; none, after a line that says so, where that is
/// impossible.
#[must_use]
pub fn layer() -> Option<Vec<u8>> {
    busybox().map_or_else(skip::missing, |busybox| Some(archive(&busybox)))
}

fn archive(busybox: &Path) -> Vec<u8> {
    let root = tempfile::tempdir().unwrap();
    let bin = root.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::create_dir(root.path().join("tmp")).unwrap();
    fs::copy(busybox, bin.join("busybox")).unwrap();
    let applets = Command::new(busybox).arg("--list").output().unwrap();
    for applet in String::from_utf8(applets.stdout).unwrap().lines() {
        if applet != "busybox" {
            symlink("busybox", bin.join(applet)).unwrap();
        }
    }
    Command::new("tar").arg("-C").arg(root.path()).args(["-c", "."]).output().unwrap().stdout
}

/// An image that one test needs; gone from the daemon when this is dropped.
#[derive(Debug)]
pub struct Image {
    daemon: Daemon,
    name: String,
}

impl Image {
    /// Makes it of an archive of its files, with instructions of a Dockerfile.
    ///
    /// # Panics
    /// The daemon does not take it.
    #[must_use]
    pub fn import(socket: &Path, name: &str, archive: Vec<u8>, changes: &[&str]) -> Self {
        let daemon = block_on(Daemon::at(socket)).unwrap();
        import(&daemon, name, archive, changes);
        Self { daemon, name: name.to_owned() }
    }

    /// Name of the image.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let options = RemoveImageOptionsBuilder::default().force(true).build();
        // A daemon that is gone has no images either.
        let _gone = block_on(self.daemon.docker.remove_image(&self.name, Some(options), None));
    }
}

/// Gives a daemon the image of a shell.
fn import_shell(daemon: &Daemon, busybox: &Path) {
    import(daemon, IMAGE, archive(busybox), &[r#"CMD ["/bin/sh"]"#, "ENV PATH=/bin"]);
}

fn import(daemon: &Daemon, name: &str, archive: Vec<u8>, changes: &[&str]) {
    let (name, tag) = name.split_once(':').unwrap();
    let options = CreateImageOptionsBuilder::default()
        .from_src("-")
        .repo(name)
        .tag(tag)
        .changes(changes.iter().map(ToString::to_string).collect())
        .build();
    block_on(async {
        let body = bollard::body_full(archive.into());
        let steps = daemon.docker.create_image(Some(options), Some(body), None);
        steps.try_collect::<Vec<_>>().await.unwrap();
    });
}

impl Daemon {
    /// A client of it.
    #[must_use]
    pub fn client(&self) -> bollard::Docker {
        self.docker.clone()
    }
}

/// True if a process exists and has not ended.
fn lives(pid: Pid) -> bool {
    let stat =
        fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// In a thread of its own: tests are in a runtime already.
fn block_on<T: Send>(work: impl Future<Output = T> + Send) -> T {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(work)
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let sbin = ["/usr/sbin".into(), "/sbin".into()];
    let mut found = std::env::split_paths(&path).chain(sbin).map(|dir| dir.join(name));
    found.find(|path| path.is_file())
}

/// True if a program needs no libraries: it names no loader.
fn is_static(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap_or_default();
    !bytes.windows(7).any(|word| word == b"/ld-lin")
}
