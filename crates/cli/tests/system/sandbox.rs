//! A user's machine in a folder: a home, a state directory, a port, and the built binaries on the
//! PATH. Owns: every process that is started in it; none outlives it. Does not know about:
//! scenarios.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fixture::STUCK_AFTER;
use rustix::process::{Pid, Signal, kill_process};

/// Output of a command (both streams, as a terminal shows them) and its exit code.
#[derive(Debug)]
pub(crate) struct Output {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Everything it printed.
    pub text: String,
}

/// A process that belongs to a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    /// Its id.
    pub pid: u32,
    /// Its parent's id.
    pub parent: u32,
    /// Ticks since boot at its start: with the id, the identity of a process.
    pub started: u64,
    /// Program and arguments.
    pub command: String,
}

/// The folder and its server.
#[derive(Debug)]
pub(crate) struct Sandbox {
    root: tempfile::TempDir,
    port: u16,
    server: Option<Child>,
    /// Socket of the Docker daemon that runs the workloads; `None` = they are processes.
    docker: Option<PathBuf>,
    /// A folder of programs that come first on the PATH.
    programs: Option<PathBuf>,
}

impl Sandbox {
    /// An empty machine.
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new().prefix("elastane-test-").tempdir().expect("a folder");
        let home = root.path().join("home");
        fs::create_dir(&home).expect("a home");
        // As root, runs have accounts of their own, and work in here.
        for (folder, mode) in [(root.path(), 0o755), (home.as_path(), 0o777)] {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).expect("changed");
        }
        Self { root, port: free_port(), server: None, docker: None, programs: None }
    }

    /// An empty machine whose workloads are containers of this daemon.
    pub(crate) fn with_docker(socket: &Path) -> Self {
        let mut sandbox = Self::new();
        sandbox.docker = Some(socket.to_owned());
        sandbox
    }

    /// The sandbox with the programs of a folder first on its PATH.
    pub(crate) fn with_programs(mut self, folder: &Path) -> Self {
        self.programs = Some(folder.to_owned());
        self
    }

    /// Working directory of commands.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// State directory of the server.
    pub(crate) fn state_dir(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// Mounts a disk of this many MiB, with room for 6,000 files, at the state directory; false if
    /// that is impossible here.
    pub(crate) fn with_disk(&self, mib: u32) -> bool {
        let dir = self.state_dir();
        fs::create_dir(&dir).expect("a folder");
        let options = format!("size={mib}m,nr_inodes=6000,mode=700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "disk"]).arg(&dir).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success())
    }

    /// Port of the server.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.prepared("timeout");
        command.args(["--signal=KILL", "1800", "sh", "-c", line]).stdin(Stdio::null());
        command
    }

    /// Runs a command line in a shell at this terminal.
    pub(crate) fn at_terminal(&self, line: &str, terminal: OwnedFd) -> Child {
        let ends = [(); 2].map(|()| terminal.try_clone().expect("a handle"));
        let [output, errors] = ends.map(Stdio::from);
        let mut command = self.prepared("setsid");
        command.args(["--ctty", "--wait", "sh", "-c", line]).env("TERM", "xterm");
        command.stdin(terminal).stdout(output).stderr(errors).spawn().expect("a shell")
    }

    /// A program with the environment of this machine.
    fn prepared(&self, program: &str) -> Command {
        let binaries = Path::new(env!("CARGO_BIN_EXE_elastane")).parent().expect("a folder");
        let path = std::env::var("PATH").expect("PATH");
        let path = match &self.programs {
            Some(first) => format!("{}:{path}", first.display()),
            None => path,
        };
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", format!("{}:{path}", binaries.display()))
            .env("HOME", self.root.path().join("home"))
            .env("USER", "researcher")
            .env("LANG", "C.UTF-8")
            .env("ELASTANE_STATE_DIR", self.state_dir())
            .current_dir(self.root.path().join("home"));
        // Sets the runtime, whatever else this machine supports.
        match &self.docker {
            None => command.env("ELASTANE_RUNTIME", "process"),
            Some(socket) => command
                .env("ELASTANE_RUNTIME", "docker")
                .env("DOCKER_HOST", format!("unix://{}", socket.display())),
        };
        command
    }

    /// Runs a command line in a shell and waits for it.
    pub(crate) fn shell(&self, line: &str) -> Output {
        finish(self.begin(line))
    }

    /// Names and statuses in a list of workloads, such as `runai list jobs`, in its order.
    pub(crate) fn statuses(&self, list: &str) -> Vec<(String, String)> {
        let output = self.shell(&format!("{list} --no-headers"));
        assert_eq!(output.code, Some(0), "{list}: {}", output.text);
        let rows = output.text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.to_owned()))
        });
        rows.collect()
    }

    /// Waits until a workload of that list has that status. The word alone proves nothing, as a
    /// header may contain it.
    pub(crate) fn await_status(&self, list: &str, name: &str, status: &str) {
        let wanted = (name.to_owned(), status.to_owned());
        let seen = wait_until(|| self.statuses(list).contains(&wanted));
        assert!(
            seen,
            "{name} never is {status}: {}\n{}\n{}",
            self.shell(list).text,
            self.shell(&format!("runai describe job {name}")).text,
            self.server_text()
        );
    }

    /// Waits until a command line prints a text. The time limit restarts with each new output, such
    /// as a line of a training's log.
    pub(crate) fn await_text(&self, line: &str, wanted: &str) {
        let (mut last, mut since) = (String::new(), Instant::now());
        loop {
            let text = self.shell(line).text;
            if text.contains(wanted) {
                return;
            }
            if text != last {
                (last, since) = (text, Instant::now());
            }
            if since.elapsed() > STUCK_AFTER {
                panic!("`{line}` never has `{wanted}`:\n{last}\n{}", self.server_text());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs a command line in a shell without waiting; see [`finish`].
    pub(crate) fn begin(&self, line: &str) -> Child {
        let merged = format!("exec 2>&1\n{line}");
        self.command(&merged).stdout(Stdio::piped()).spawn().expect("a shell")
    }

    /// Starts the server with a command line like `elastane up --gpus 4x16GiB`, on this sandbox's
    /// port, and waits until it answers.
    pub(crate) fn start_server(&mut self, line: &str) {
        assert!(self.server.is_none(), "a server runs already");
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.server_log())
            .expect("a log file");
        let child = self
            .command(&format!("exec {line} --listen 127.0.0.1:{}", self.port))
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("a server process");
        self.server = Some(child);
        let ready = wait_until(|| {
            self.server_ended() || self.get("/healthz").is_some_and(|(code, _)| code == 200)
        });
        assert!(ready && !self.server_ended(), "the server did not start:\n{}", self.server_text());
    }

    fn server_ended(&mut self) -> bool {
        self.server.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    fn server_log(&self) -> PathBuf {
        self.root.path().join("server.log")
    }

    /// Everything the server printed so far.
    pub(crate) fn server_text(&self) -> String {
        fs::read_to_string(self.server_log()).unwrap_or_default()
    }

    /// Kills the server with SIGKILL; its workloads continue.
    pub(crate) fn kill_server(&mut self) {
        let Some(mut child) = self.server.take() else { return };
        // `timeout` started the shell, which became the server: all in one process group.
        let below: Vec<u32> = every_process()
            .into_iter()
            .filter(|it| it.parent == child.id())
            .map(|it| it.pid)
            .collect();
        // It ends once it has waited for the server, which holds the lock of its state until then.
        match below.as_slice() {
            [] => kill(child.id()),
            servers => servers.iter().for_each(|pid| kill(*pid)),
        }
        child.wait().expect("a child can be waited for");
    }

    /// Kills all processes, with those of the server, as after a power failure.
    pub(crate) fn kill_everything(&mut self) {
        // A supervisor may be starting a process at this moment: repeat until there is none. A
        // process that waits for the server continues until the server has released its state.
        let waits = self.server.as_ref().map(Child::id);
        for _ in 0..50 {
            let mut left = self.processes();
            left.retain(|process| Some(process.pid) != waits);
            if left.is_empty() {
                break;
            }
            left.iter().for_each(|process| kill(process.pid));
            std::thread::sleep(Duration::from_millis(20));
        }
        self.kill_server();
    }

    /// One GET request with the token of the state directory: status and body.
    pub(crate) fn get(&self, path: &str) -> Option<(u16, String)> {
        self.ask("GET", path, "")
    }

    /// One request with the token of the state directory: status and body.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        self.door(&self.state_dir()).ask(method, path, body)
    }

    /// Access to the API, with the token of a state directory.
    pub(crate) fn door(&self, state_dir: &Path) -> Door {
        Door { port: self.port, token_file: state_dir.join("token") }
    }

    /// The living processes of this sandbox: command line, environment or working directory are in
    /// it, or the parent is. The server itself and the commands of the test count too.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let all: BTreeMap<u32, Process> =
            every_process().into_iter().map(|process| (process.pid, process)).collect();
        let root = self.root.path().display().to_string();
        let ours = |mut pid: u32| loop {
            if pid == std::process::id() {
                return false;
            }
            if mentions(pid, &root) {
                return true;
            }
            match all.get(&pid) {
                Some(process) if process.parent > 1 => pid = process.parent,
                _ => return false,
            }
        };
        all.values().filter(|process| ours(process.pid)).cloned().collect()
    }
}

/// API of the server of a sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    port: u16,
    token_file: PathBuf,
}

impl Door {
    /// Sends one request, with the token if there is one yet: status and body; `None` if the
    /// answer, or a part of it, is missing.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
        let token = fs::read_to_string(&self.token_file).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            token.trim(),
            body.len()
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let code = head.split_whitespace().nth(1)?.parse().ok()?;
        Some((code, body.to_owned()))
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.kill_server();
        self.kill_everything();
        // Killed supervisors left them, and no server will use this state directory again.
        for group in groups_of(&self.state_dir()) {
            let _gone = fs::remove_dir(group);
        }
        // Most sandboxes have no disk of their own.
        let _own = rustix::mount::unmount(self.state_dir(), rustix::mount::UnmountFlags::DETACH);
    }
}

/// The control groups of the runs in a state directory.
pub(crate) fn groups_of(state_dir: &Path) -> Vec<PathBuf> {
    let runs = fs::read_dir(state_dir.join("runs")).into_iter().flatten().flatten();
    let names: Vec<_> = runs.map(|run| run.file_name()).collect();
    let top = Path::new("/sys/fs/cgroup");
    let below = fs::read_dir(top).into_iter().flatten().flatten().map(|entry| entry.path());
    let hierarchies: Vec<_> = below.chain([top.to_owned()]).collect();
    let groups =
        names.iter().flat_map(|run| hierarchies.iter().map(move |h| h.join("elastane").join(run)));
    groups.filter(|group| group.is_dir()).collect()
}

/// Checks that runs, which have other accounts if the tests run as root, can enter the parent
/// folders; the error names a closed one.
pub(crate) fn open_to_others(folder: &Path) -> Result<(), String> {
    let closed = |folder: &&Path| {
        fs::metadata(folder).is_ok_and(|of| of.permissions().mode() & 0o005 != 0o005)
    };
    match folder.ancestors().skip(1).find(closed) {
        None => Ok(()),
        Some(closed) => Err(format!("{} is closed to other accounts", closed.display())),
    }
}

/// A free port that no other test gets while this one runs. It is outside the range of ephemeral
/// ports, from which the kernel could take it while a server is down.
pub(crate) fn free_port() -> u16 {
    static CLAIMED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    let ports = 15_000..32_000;
    let first = u16::try_from(std::process::id() % 17_000).expect("small");
    for port in ports.clone().cycle().skip(first.into()).take(ports.len()) {
        // The kernel releases the name when this process ends.
        let name = SocketAddr::from_abstract_name(format!("elastane-test-port-{port}"));
        let Ok(claim) = UnixListener::bind_addr(&name.expect("a name")) else { continue };
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            CLAIMED.lock().expect("the claims").push(claim);
            return port;
        }
    }
    panic!("no port is free");
}

/// Ends a command of [`Sandbox::begin`], as a shell's `kill` does.
pub(crate) fn end(child: &mut Child) {
    // `timeout` forwards it.
    kill_with(child.id(), Signal::TERM);
    child.wait().expect("a child can be waited for");
}

/// Waits for a command of [`Sandbox::begin`].
pub(crate) fn finish(child: Child) -> Output {
    let output = child.wait_with_output().expect("a child can be waited for");
    Output {
        code: output.status.code(),
        text: String::from_utf8_lossy(&output.stdout).into_owned(),
    }
}

/// The environment with which a process was started; `None` if it is gone.
pub(crate) fn environment(pid: u32) -> Option<BTreeMap<String, String>> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
    Some(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Polls a condition; false if it is not true in time.
pub(crate) fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    loop {
        if done() {
            return true;
        }
        if since.elapsed() > STUCK_AFTER {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Kills a process with SIGKILL.
pub(crate) fn kill(pid: u32) {
    kill_with(pid, Signal::KILL);
}

fn kill_with(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // The process may be gone already.
    let _ = kill_process(pid.expect("a process id"), signal);
}

fn mentions(pid: u32, root: &str) -> bool {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let within = |name: &str| {
        fs::read(proc.join(name)).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(root))
    };
    let works_in = fs::read_link(proc.join("cwd")).is_ok_and(|cwd| cwd.starts_with(root));
    works_in || within("cmdline") || within("environ")
}

/// Every living process of this machine.
pub(crate) fn every_process() -> Vec<Process> {
    let pids = fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(read_process).collect()
}

/// Reads one process; `None` if it is gone, or a zombie.
fn read_process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in brackets and may contain anything, brackets too.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        command: command.trim_end().to_owned(),
    })
}

#[test]
fn nothing_outlives_a_sandbox() {
    let sandbox = Sandbox::new();
    let output = sandbox.shell("setsid sleep 1000 > /dev/null 2>&1 & echo started; exit 3");
    assert_eq!((output.code, output.text.as_str()), (Some(3), "started\n"));
    let mut sleepers = Vec::new();
    assert!(wait_until(|| {
        sleepers = sandbox.processes();
        sleepers.iter().any(|process| process.command == "sleep 1000")
    }));
    drop(sandbox);
    let left = every_process();
    assert!(sleepers.iter().all(|process| !left.contains(process)), "{sleepers:?}");
}
