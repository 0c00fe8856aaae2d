//! For tests: databases of every statement in them, and a PostgreSQL server of a test's own. Owns:
//! finding its programs, starting and ending it without leaving anything behind, also when the test
//! is killed.

#![expect(clippy::unwrap_used, reason = "it is part of tests, which end with a panic")]

use std::fs;
use std::io::Write as _;

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{Connection as _, PgConnection};

use crate::PostgresUrl;

/// PostgreSQL refuses to run as root; then it runs as this user, which every Linux has.
const NOBODY: u32 = 65_534;

/// Reason of skipped tests.
const NONE: &str = "no PostgreSQL: initdb was not found";
/// The name of the shared server among fixtures.
const SHARED: &str = "postgresql";
/// Stops the server in `$0` and deletes its directory when its input ends, or the process `$2`
/// where there is one.
const KEEPER: &str = r#"if [ "$2" ]; then tail --pid="$2" -f /dev/null; else cat > /dev/null; fi
"$1" -D "$0/data" -m immediate stop; rm -rf "$0""#;
/// Makes a self-signed certificate.
const CERTIFICATE: [&str; 19] = [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
    "-days",
    "2",
    "-subj",
    "/CN=localhost",
    "-addext",
    "subjectAltName=DNS:localhost",
    "-addext",
    "basicConstraints=critical,CA:FALSE",
    "-keyout",
    "server.key",
    "-out",
    "server.crt",
];

/// A running server. It listens on a socket in a directory of its own, and nowhere else.
#[derive(Debug)]
pub struct PgServer {
    dir: PathBuf,
    programs: PathBuf,
    /// Has the server stopped and its directory deleted when it closes: when this is dropped, or
    /// this process has ended in whatever way. A shared server ends with the run of the tests.
    _keeper: Option<Child>,
}

impl PgServer {
    /// The one server that all tests share; `None`, and a line that reports it, on a machine
    /// without PostgreSQL.
    ///
    /// # Panics
    /// It is installed and cannot be started.
    #[must_use]
    pub fn shared() -> Option<Self> {
        let start = || {
            let owner = Some(fixture::owner_pid());
            let server = Self::start(owner).ok_or_else(|| NONE.to_owned())?;
            Ok(server.dir.display().to_string())
        };
        match fixture::shared(SHARED, start) {
            Ok(dir) => Some(Self { dir: dir.into(), programs: programs()?, _keeper: None }),
            Err(why) => skip::missing(&why),
        }
    }

    /// A server for one test, which may stop it.
    ///
    /// # Panics
    /// It is installed and cannot be started.
    #[must_use]
    pub fn own() -> Option<Self> {
        Self::start(None).or_else(|| skip::missing(NONE))
    }

    /// A server that ends with this value, or with a process.
    fn start(owner: Option<u32>) -> Option<Self> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let programs = programs()?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        // A socket's path may not be long.
        let dir = std::env::temp_dir().join(format!("pg-{}-{number}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        if rustix::process::getuid().is_root() {
            chown(&dir, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let input = if owner.is_some() { Stdio::null() } else { Stdio::piped() };
        let mut keeper = command(&dir, Path::new("sh"), &["-c", KEEPER]);
        keeper.arg(&dir).arg(programs.join("pg_ctl"));
        keeper.arg(owner.map_or_else(String::new, |pid| pid.to_string()));
        // A signal to the tests, such as that of Ctrl-C, is none to it.
        keeper.process_group(0).stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = fixture::kept(keeper.spawn().unwrap(), owner);
        let server = Self { dir, programs, _keeper: keeper };
        let settings = format!(
            "listen_addresses=''\nunix_socket_directories='{}'\nfsync=off\n",
            server.dir.display()
        );
        let data = server.dir.join("data");
        let data = data.to_str().unwrap();
        let same = ["-U", "elastane", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
        server.call("initdb", &[&["-D", data], &same[..]].concat());
        server.configure(&settings);
        server.up();
        Some(server)
    }

    /// Starts it again.
    pub fn up(&self) {
        self.call("pg_ctl", &["-D", "data", "-l", "log", "-w", "start"]);
    }

    /// Kills it, as a crash would; what it committed is in its log.
    pub fn down(&self) {
        self.call("pg_ctl", &["-D", "data", "-m", "immediate", "-w", "stop"]);
    }

    /// Makes it listen on a port of this machine, with a certificate of its own for `localhost`:
    /// returns the port and the certificate. `None`, and a line that reports it, on a machine
    /// without `openssl`.
    ///
    /// # Panics
    /// It cannot be done.
    #[must_use]
    pub fn with_tls(&self) -> Option<(u16, PathBuf)> {
        let openssl = command(&self.dir, Path::new("openssl"), &["version"]).output();
        if !openssl.is_ok_and(|out| out.status.success()) {
            return skip::missing("no openssl to make a certificate with");
        }
        let made = command(&self.dir, Path::new("openssl"), &CERTIFICATE).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let settings = "listen_addresses='127.0.0.1'\nssl=on\n\
            ssl_cert_file='../server.crt'\nssl_key_file='../server.key'\n";
        self.configure(&format!("{settings}port={port}\n"));
        self.down();
        self.up();
        Some((port, self.dir.join("server.crt")))
    }

    fn configure(&self, settings: &str) {
        let file = self.dir.join("data/postgresql.conf");
        let file = fs::OpenOptions::new().append(true).open(file);
        file.and_then(|mut file| file.write_all(settings.as_bytes())).unwrap();
    }

    /// An empty database.
    ///
    /// # Panics
    /// It cannot be made.
    pub async fn database(&self) -> PostgresUrl {
        static MADE: AtomicU32 = AtomicU32::new(0);
        // Other processes make some of the shared server, too.
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("d{}_{number}", std::process::id());
        self.run("postgres", &format!("CREATE DATABASE {name}")).await;
        self.url(&name)
    }

    /// Runs SQL in a database.
    ///
    /// # Panics
    /// It is refused.
    pub async fn run(&self, database: &str, sql: &str) {
        let mut db = PgConnection::connect(&self.text(database)).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut db).await.unwrap();
        db.close().await.unwrap();
    }

    /// URL of a database.
    ///
    /// # Panics
    /// Never, if the name needs no quotes.
    #[must_use]
    pub fn url(&self, database: &str) -> PostgresUrl {
        self.text(database).parse().unwrap()
    }

    /// Directory of its socket.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The URL as text.
    #[must_use]
    pub fn text(&self, database: &str) -> String {
        format!("postgres:///{database}?host={}&user=elastane", self.dir.display())
    }

    fn call(&self, program: &str, args: &[&str]) {
        let mut command = command(&self.dir, &self.programs.join(program), args);
        let out = command.stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        assert!(out.status.success(), "{program} {args:?}: {said}\n{log}");
    }
}

/// Directory of `initdb` and `pg_ctl`.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let debian = debian.map(|version| version.path().join("bin"));
    let mut found = std::env::split_paths(&path).chain(debian);
    let dir = found.find(|dir| dir.join("initdb").is_file() && dir.join("pg_ctl").is_file())?;
    // The programs look for each other beside themselves, not beside a link to them.
    fs::canonicalize(dir.join("initdb")).ok()?.parent().map(Path::to_owned)
}

fn command(dir: &Path, program: &Path, args: &[&str]) -> Command {
    let mut command = match rustix::process::getuid().is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(program);
            command
        }
        false => Command::new(program),
    };
    command.args(args).current_dir(dir).env("LC_ALL", "C");
    command
}

/// Makes a database in a state directory, of every statement that is in it.
///
/// # Panics
/// A statement fails.
pub async fn fill(state_dir: &Path, sql: &'static str) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(state_dir.join("elastane.db"));
    let options = options.create_if_missing(true);
    let mut db = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut db).await.unwrap();
    db.close().await.unwrap();
}
