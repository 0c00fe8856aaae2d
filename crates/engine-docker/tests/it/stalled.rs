//! A daemon that never unpacks a copy. Owns: as much of the protocol as starting and stopping
//! need.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The daemon. It has every image and network, and no container that can be inspected.
pub(crate) struct Stalled {
    pub(crate) socket: PathBuf,
    heard: UnboundedReceiver<String>,
    _folder: TempDir,
}

impl Stalled {
    pub(crate) fn open() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("docker.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (tell, heard) = unbounded_channel();
        std::thread::spawn(move || {
            for visitor in listener.incoming().flatten() {
                let tell = tell.clone();
                std::thread::spawn(move || answer(visitor, &tell));
            }
        });
        Self { socket, heard, _folder: folder }
    }

    /// Waits until it gets this request.
    pub(crate) async fn hears(&mut self, wanted: &str) {
        while self.heard.recv().await.expect("it lives") != wanted {}
    }
}

fn answer(mut visitor: UnixStream, tell: &UnboundedSender<String>) -> std::io::Result<()> {
    let mut reader = BufReader::new(visitor.try_clone()?);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let mut first = head.split(' ');
    let (verb, address) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let path = address.split('?').next().unwrap_or_default();
    // Behind the version.
    let path = path
        .find("/v1.")
        .map_or(path, |at| &path[at + path[at + 1..].find('/').unwrap_or(0) + 1..]);
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    if header("transfer-encoding: chunked").is_some() || path == "/events" {
        let _gone = tell.send(if path == "/events" { "events" } else { "unpack" }.to_owned());
        return std::io::copy(&mut reader, &mut std::io::sink()).map(drop);
    }
    let bytes = header("content-length: ").and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
    reader.take(bytes).read_to_end(&mut Vec::new())?;
    let (status, said) = match (verb, path) {
        (_, "/version") => ("200 OK", r#"{"ApiVersion":"1.47","Version":"27"}"#),
        (_, "/containers/json") => ("200 OK", "[]"),
        ("POST", "/containers/create") => ("201 Created", r#"{"Id":"0","Warnings":[]}"#),
        ("GET", path) if path.starts_with("/containers/") => {
            ("404 Not Found", r#"{"message":"no"}"#)
        }
        ("DELETE", _) => ("204 No Content", ""),
        _ => ("200 OK", "{}"),
    };
    let length = said.len();
    write!(
        visitor,
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{said}"
    )?;
    let _gone = tell.send(format!("{verb} {path}"));
    Ok(())
}
