//! A server of Git repositories for a test. Owns: one repository, and Git's own programs behind a
//! port of the loopback address, by both protocols, with a login if wanted, or saying nothing.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::silent_clients::Silence;

/// The server; with it everything it kept is gone.
#[derive(Debug)]
pub struct GitServer {
    folder: PathBuf,
    port: u16,
    shared: Arc<GitServerState>,
}

#[derive(Debug, Default)]
struct GitServerState {
    /// Required `Authorization` of a request over HTTP; `None` if all are accepted.
    login: Option<String>,
    silence: Arc<Silence>,
}

impl GitServer {
    /// A server that lets everybody in.
    #[must_use]
    pub fn open() -> Self {
        Self::start(None)
    }

    /// A server that wants this login over HTTP.
    #[must_use]
    pub fn with_login(user: &str, password: &str) -> Self {
        let encoded = run(
            Path::new("/"),
            "sh",
            &["-c", "printf %s \"$0\" | base64 -w0", &format!("{user}:{password}")],
        );
        Self::start(Some(format!("Basic {encoded}")))
    }

    fn start(login: Option<String>) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("elastane-git-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        make_repository(&folder);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(GitServerState { login, ..GitServerState::default() });
        let (own, below) = (Arc::clone(&shared), folder.clone());
        std::thread::spawn(move || {
            for visitor in listener.incoming().flatten() {
                let (own, below) = (Arc::clone(&own), below.clone());
                std::thread::spawn(move || own.answer(visitor, &below));
            }
        });
        Self { folder, port, shared }
    }

    /// URL of the repository by the protocol of Git, which has no logins.
    #[must_use]
    pub fn git(&self) -> String {
        format!("git://127.0.0.1:{}/repo", self.port)
    }

    /// URL of the repository over HTTP.
    #[must_use]
    pub fn http(&self) -> String {
        format!("http://127.0.0.1:{}/repo", self.port)
    }

    /// The number of a commit, by any name of it.
    #[must_use]
    pub fn commit(&self, name: &str) -> String {
        run(&self.folder.join("repo"), "git", &["rev-parse", name])
    }

    /// Switch that leaves clients without an answer.
    #[must_use]
    pub fn silence(&self) -> &Arc<Silence> {
        &self.shared.silence
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.folder);
    }
}

/// A repository: `hello` says `old` in the commit that is tagged `v1`, `new` in the newest of
/// `main`, `side` in that of the branch `side`; in each of them it can be run, and `link` leads to
/// it.
fn make_repository(folder: &Path) {
    let script = "set -e; git init -q -b main repo; cd repo
        git config user.name t; git config user.email t@example.org; ln -s hello link
        say() { echo $1 > hello; chmod +x hello; git add .; git commit -qm $1; }
        say older; say old; git tag -am v1 v1; say new
        git checkout -q -b side; say side; git checkout -q main";
    fs::create_dir_all(folder).expect("a folder");
    run(folder, "sh", &["-c", script]);
}

fn git_command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}

fn run(folder: &Path, program: &str, words: &[&str]) -> String {
    let done = git_command(program).args(words).current_dir(folder).output().expect("a program");
    assert!(done.status.success(), "{words:?}: {done:?}");
    String::from_utf8(done.stdout).expect("text").trim().to_owned()
}

impl GitServerState {
    fn answer(&self, visitor: TcpStream, folder: &Path) {
        let Some(mut visitor) = self.silence.pass(visitor) else { return };
        let mut first = [0; 4];
        // A client that disconnects early needs no answer.
        let _gone = match visitor.peek(&mut first) {
            // The protocol of Git begins with a length.
            Ok(4) if first.iter().all(u8::is_ascii_hexdigit) => daemon(visitor, folder),
            Ok(_) => self.http(&mut visitor, folder),
            Err(error) => Err(error),
        };
    }

    /// One request, which Git's own program answers.
    fn http(&self, visitor: &mut TcpStream, folder: &Path) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            visitor.read_exact(&mut byte)?;
            head.extend(byte);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let field = |name: &str| {
            let fields = head.lines().filter_map(|line| line.split_once(": "));
            let mut own = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
            own.next().map(|(_, value)| value.to_owned())
        };
        let length = field("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        visitor.read_exact(&mut body)?;
        if self.login.is_some() && field("authorization") != self.login {
            let refusal = b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"t\"\r\n\
                            Content-Length: 0\r\nConnection: close\r\n\r\n";
            return visitor.write_all(refusal);
        }
        let mut line = head.split_whitespace();
        let (method, target) = (line.next().unwrap_or_default(), line.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut program = git_command("git")
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", folder)
            .envs([("GIT_HTTP_EXPORT_ALL", "1"), ("REMOTE_ADDR", "127.0.0.1")])
            .envs([("REQUEST_METHOD", method), ("PATH_INFO", path), ("QUERY_STRING", query)])
            .env("CONTENT_TYPE", field("content-type").unwrap_or_default())
            .env("CONTENT_LENGTH", length.to_string())
            .env("HTTP_CONTENT_ENCODING", field("content-encoding").unwrap_or_default())
            .env("GIT_PROTOCOL", field("git-protocol").unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut input) = program.stdin.take() {
            input.write_all(&body)?;
        }
        let answer = program.wait_with_output()?.stdout;
        let text = String::from_utf8_lossy(&answer);
        let status = text.strip_prefix("Status: ").and_then(|rest| rest.split_once("\r\n"));
        let status = status.map_or("200 OK", |(status, _)| status);
        visitor.write_all(format!("HTTP/1.1 {status}\r\nConnection: close\r\n").as_bytes())?;
        visitor.write_all(&answer)
    }
}

fn daemon(visitor: TcpStream, folder: &Path) -> std::io::Result<()> {
    let input = OwnedFd::from(visitor.try_clone()?);
    git_command("git")
        .args(["daemon", "--inetd", "--export-all"])
        .arg(format!("--base-path={}", folder.display()))
        .stdin(input)
        .stdout(OwnedFd::from(visitor))
        .stderr(Stdio::null())
        .status()
        .map(drop)
}
