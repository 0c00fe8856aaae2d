//! The processes of the simulated driver: one for each simulated GPU in use. Owns: starting one,
//! connecting, what a GPU holds and does, and when such a process ends. It outlives the server, so
//! that a crash of it takes no program its GPU. Does not know about: which run has the GPU.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use fraction_abi::wire::{
    OK, Operation, REPLY_BYTES, REPLY_WORDS, SOCKET_SEPARATOR, SOCKET_VARIABLE, read_words, request,
};
use fraction_broker::{Broker, Device, Driver};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};

use crate::libraries::open_folder;
use crate::{Error, failed};

/// Version that `cuDriverGetVersion` returns.
const CUDA_VERSION: u32 = 13_000;
/// Memory of a context on a GPU that is not small, in bytes: about as much as on a real one.
const CONTEXT_BYTES: u64 = 300 << 20;
/// Longest path of a socket, with its zero byte.
const PATH_MAX: usize = 107;
/// Time limit for a new process to open its socket.
const START_MAX: Duration = Duration::from_secs(20);
/// Time without connections after which the process ends.
const IDLE: Duration = Duration::from_secs(3);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// A process that is stopped or broken must not stop the server.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// The word after the program's name that makes it a simulated driver.
pub(crate) const SUBCOMMAND: &str = "simulated-driver";

/// A simulated GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Simulated {
    /// Name of the GPU in the scheduler.
    pub name: String,
    /// Size of its memory, in bytes.
    pub bytes: u64,
}

/// Memory and activity of a simulated GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Bytes in use.
    pub used: u64,
    /// Bytes of each process, by id.
    pub holders: BTreeMap<u32, u64>,
    /// Busy thousandths of the last second, by id of each process that ever ran something.
    pub busy: BTreeMap<u32, u64>,
}

/// The UUID of a simulated GPU: its name, spread over 16 bytes (FNV-1a), the same in all versions.
#[must_use]
pub fn uuid_of(name: &str) -> [u8; 16] {
    let hash = name.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
    });
    hash.to_be_bytes()
}

/// A UUID as drivers write it: `GPU-` and groups of digits.
#[must_use]
pub fn uuid_text(uuid: [u8; 16]) -> String {
    let dash = |at| if matches!(at, 0 | 4 | 6 | 8 | 10) { "-" } else { "" };
    let bytes = uuid.iter().enumerate().map(|(at, byte)| format!("{}{byte:02x}", dash(at)));
    std::iter::once("GPU".to_owned()).chain(bytes).collect()
}

/// The UUID in a text of the driver's form; `None` for another text.
#[must_use]
pub fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.strip_prefix("GPU-")?.chars().filter(|c| *c != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
    Some(number.to_be_bytes())
}

impl Simulated {
    /// Memory that a context takes on it, in bytes.
    #[must_use]
    pub fn context_bytes(&self) -> u64 {
        CONTEXT_BYTES.min(self.bytes / 16)
    }

    /// UUID of the GPU.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        uuid_of(&self.name)
    }

    /// The socket of its process. One of the same name and another size is another GPU.
    ///
    /// # Errors
    /// The path does not fit.
    pub fn socket(&self, folder: &Path) -> Result<PathBuf, Error> {
        let [a, b, c, d, e, f, ..] = uuid_of(&format!("{} {}", self.name, self.bytes));
        let path = folder.join(format!("{a:02x}{b:02x}{c:02x}{d:02x}{e:02x}{f:02x}"));
        let bytes = path.as_os_str().as_bytes();
        let fits = bytes.len() < PATH_MAX && !bytes.contains(&SOCKET_SEPARATOR);
        if fits { Ok(path) } else { Err(Error::Path(path)) }
    }

    /// Connects to its process, and starts one if there is none. `program` is the program that
    /// calls [`drive`] for the subcommand. Blocks until the process answers.
    ///
    /// # Errors
    /// It does not start or answer.
    pub fn connect(&self, folder: &Path, program: &Path) -> Result<Connection, Error> {
        let path = self.socket(folder)?;
        open_folder(folder).map_err(failed("make", folder))?;
        let since = Instant::now();
        let mut started = None;
        loop {
            let why = match Connection::open(&path) {
                Ok(connection) => return Ok(connection),
                Err(why) => why,
            };
            // It may have just ended for want of connections: then another one is started.
            let runs = match &mut started {
                None => false,
                Some(child) => {
                    let child: &mut std::process::Child = child;
                    child
                        .try_wait()
                        .map_err(failed("start the simulated driver at", &path))?
                        .is_none()
                }
            };
            if !runs {
                let child = self.start(&path, program);
                started = Some(child.map_err(failed("start the simulated driver at", &path))?);
            }
            if since.elapsed() > START_MAX {
                return Err(Error::Driver { path, why: why.to_string() });
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn start(&self, path: &Path, program: &Path) -> io::Result<std::process::Child> {
        let mut command = Command::new(program);
        command.arg(SUBCOMMAND).arg(path).arg(&self.name).arg(self.bytes.to_string());
        command.env_clear().current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn()
    }
}

/// A connection to the process of a simulated GPU; while there is one, the process stays.
#[derive(Debug)]
pub struct Connection(OwnedFd);

impl Connection {
    /// Connects to a process that is there, and has it answer.
    ///
    /// # Errors
    /// There is none, or it does not answer.
    pub fn open(path: &Path) -> io::Result<Self> {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        for which in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, which, Some(ANSWER_MAX))?;
        }
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        let connection = Self(socket);
        connection.ask(Operation::Hello, &mut [0; REPLY_WORDS * 8])?;
        Ok(connection)
    }

    fn ask(&self, operation: Operation, reply: &mut [u8]) -> io::Result<[u64; REPLY_WORDS]> {
        send(&self.0, &request(operation, 0, 0, 0), SendFlags::NOSIGNAL)?;
        let (length, _) = recv(&self.0, &mut *reply, RecvFlags::empty())?;
        let words: [u64; REPLY_WORDS] = read_words(reply);
        match words {
            [OK, ..] if length >= REPLY_WORDS * 8 => Ok(words),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Memory and activity of the GPU.
    ///
    /// # Errors
    /// Its process is gone.
    pub fn state(&self, bytes: u64) -> io::Result<State> {
        let mut reply = vec![0; REPLY_BYTES];
        let [_, _, free, ..] = self.ask(Operation::State, &mut reply)?;
        let holders = self.list(Operation::Holders, &mut reply)?;
        // The process may be of an earlier version, which does not know the question.
        let busy = match self.list(Operation::Work, &mut reply) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => BTreeMap::new(),
            busy => busy?,
        };
        Ok(State { used: bytes.saturating_sub(free), holders, busy })
    }

    /// A value of each process.
    fn list(&self, operation: Operation, reply: &mut [u8]) -> io::Result<BTreeMap<u32, u64>> {
        let [_, count, ..] = self.ask(operation, reply)?;
        let list = reply.get(REPLY_WORDS * 8..).unwrap_or_default().chunks_exact(16);
        let entry = |bytes: &[u8]| {
            let [pid, value] = read_words(bytes);
            Some((u32::try_from(pid).ok()?, value))
        };
        Ok(list.take(usize::try_from(count).unwrap_or(0)).filter_map(entry).collect())
    }
}

/// Connects to the simulated GPUs that the environment names, for the life of the program that this
/// process becomes: it inherits the connections.
///
/// # Errors
/// One does not answer.
pub fn hold_over_exec() -> io::Result<()> {
    let Some(sockets) = std::env::var_os(SOCKET_VARIABLE) else { return Ok(()) };
    let all = sockets.as_bytes().split(|byte| *byte == SOCKET_SEPARATOR);
    for path in all.filter(|path| !path.is_empty()) {
        let Connection(socket) = Connection::open(Path::new(OsStr::from_bytes(path)))?;
        fcntl_setfd(&socket, FdFlags::empty())?;
        // Closed with the process.
        let _held = socket.into_raw_fd();
    }
    Ok(())
}

/// The process of a simulated GPU: `<program> simulated-driver <socket> <name> <bytes>`. Returns
/// once nothing has been connected for a while, unless `stay` follows, or if there is one already.
///
/// Call it first in a process of its own.
#[must_use]
pub fn drive(args: &[String]) -> ExitCode {
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a failed write is dropped")]
fn note(error: &str) {
    drop(writeln!(io::stderr(), "the simulated driver failed: {error}"));
}

fn run(args: &[String]) -> Result<(), String> {
    let (path, name, bytes, stays) = match args {
        [path, name, bytes] => (path, name, bytes, false),
        [path, name, bytes, stay] if stay == "stay" => (path, name, bytes, true),
        _ => return Err(format!("{SUBCOMMAND} needs a socket, a name and a number of bytes")),
    };
    let bytes = bytes.parse().map_err(|_| format!("`{bytes}` is no number of bytes"))?;
    let (path, gpu) = (Path::new(path), Simulated { name: name.clone(), bytes });
    // Fails for the leader of a job, when started by hand.
    let _leader = rustix::process::setsid();
    let locked = path.with_extension("lock");
    let lock =
        fs::File::create(&locked).map_err(|error| format!("{}: {error}", locked.display()))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(()); // another one serves this GPU
    }
    // Left by one that was killed.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.to_string()),
        _ => {}
    }
    let (uuid, context_bytes) = (gpu.uuid(), gpu.context_bytes());
    let devices = vec![Device { uuid, bytes, context_bytes }];
    let driver = Driver { cuda_version: CUDA_VERSION, devices };
    let broker = Broker::start(path, driver).map_err(|error| error.to_string())?;
    let mut used = Instant::now();
    while used.elapsed() < IDLE {
        std::thread::sleep(IDLE / 10);
        if stays || broker.connections() > 0 {
            used = Instant::now();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_has_the_same_uuid_and_socket_in_all_versions() {
        let gpu = Simulated { name: "GPU-sim-node-1-0".to_owned(), bytes: 16 << 30 };
        let hex: String = gpu.uuid().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "a5436e0fa5d473cfc209dca1938eccd9");
        let text = uuid_text(gpu.uuid());
        assert_eq!(parse_uuid(&text), Some(gpu.uuid()), "{text}");
        assert_eq!(parse_uuid("GPU-sim-node-1-0"), None);
        assert_eq!(gpu.context_bytes(), 300 << 20);
        let small = Simulated { bytes: 1 << 30, ..gpu.clone() };
        assert_eq!(small.context_bytes(), 64 << 20);
        let folder = Path::new("/s");
        assert_ne!(gpu.socket(folder).unwrap(), small.socket(folder).unwrap());
        assert!(gpu.socket(&Path::new("/s").join("x".repeat(100))).is_err());
        assert!(gpu.socket(Path::new("/a:b")).is_err());
    }

    #[test]
    fn what_is_held_is_seen_from_outside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gpu");
        let device = Device { uuid: [1; 16], bytes: 1000, context_bytes: 1 };
        let driver = Driver { cuda_version: CUDA_VERSION, devices: vec![device] };
        let broker = Broker::start(&path, driver).unwrap();
        let program = Connection::open(&path).unwrap();
        let ask = |operation, a| {
            send(&program.0, &request(operation, 0, a, 0), SendFlags::NOSIGNAL).unwrap();
            recv(&program.0, &mut [0; 48], RecvFlags::empty()).unwrap();
        };
        ask(Operation::Take, 300);
        let seen = || Connection::open(&path).unwrap().state(1000).unwrap();
        let state = seen();
        assert_eq!((state.used, state.busy), (300, BTreeMap::new()));
        assert_eq!(state.holders, BTreeMap::from([(std::process::id(), 300)]));
        ask(Operation::Run, 0);
        assert_eq!(seen().busy, BTreeMap::from([(std::process::id(), 0)]));
        drop(broker);
        assert!(program.state(1000).is_err() && Connection::open(&path).is_err());
    }
}
