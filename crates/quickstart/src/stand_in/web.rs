//! As much of HTTP/1.1 as a page and a demo request need, for both ends. Owns: reading a message
//! and writing one; each has a connection of its own. Does not know about: the contents of requests
//! and responses.

use std::convert::Infallible;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Most bytes of the head of a request, and of a body that is waited for.
const HEAD_BYTES_MAX: u64 = 16 << 10;
const BODY_BYTES_MAX: u64 = 16 << 20;
/// Longest silence of the other end.
const SILENCE_MAX: Duration = Duration::from_secs(310);
/// Wait after a connection that could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A response.
#[derive(Debug)]
pub(super) struct Answer {
    /// Its type, such as `text/html`.
    pub(super) kind: &'static str,
    /// Body of the response.
    pub(super) body: String,
}

/// Listens on this machine.
pub(super) fn listen(port: u16) -> Result<TcpListener, String> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        format!("cannot listen on port {port}: {error}; say another with the variable PORT")
    })
}

/// Answers every request, for ever.
pub(super) fn serve(
    listener: &TcpListener,
    answer: impl Fn() -> Answer + Send + Sync + 'static,
) -> Result<Infallible, String> {
    let answer = Arc::new(answer);
    loop {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(ACCEPT_AGAIN);
            continue;
        };
        let answer = Arc::clone(&answer);
        // A client that breaks off, or one too many, concerns no other client.
        let _gone = thread::Builder::new().spawn(move || respond(&stream, &*answer));
    }
}

fn respond(mut stream: &TcpStream, answer: &dyn Fn() -> Answer) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    let mut reader = BufReader::new(stream);
    let (mut length, mut is_head) = (0, None);
    for line in (&mut reader).take(HEAD_BYTES_MAX).lines() {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        is_head.get_or_insert(line.starts_with("head "));
        if let Some(bytes) = line.strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap_or(0);
        }
    }
    let Some(is_head) = is_head else { return Ok(()) };
    io::copy(&mut reader.take(BODY_BYTES_MAX.min(length)), &mut io::sink())?;
    let Answer { kind, body } = answer();
    let length = body.len();
    let body = if is_head { "" } else { &body };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

/// The body of what is answered to a GET, if that is well.
pub(super) fn get(host: &str, port: u16, path: &str) -> Result<String, String> {
    let text = fetch(host, port, path).map_err(|error| error.to_string())?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or("the answer broke off")?;
    let status = head.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some("200") => Ok(body.to_owned()),
        _ => Err(status.to_owned()),
    }
}

fn fetch(host: &str, port: u16, path: &str) -> io::Result<String> {
    // Names below `localhost` are this machine's (RFC 6761), which many resolvers do not know.
    let is_here = host == "localhost" || host.ends_with(".localhost");
    let mut stream = match is_here {
        true => TcpStream::connect((Ipv4Addr::LOCALHOST, port))?,
        false => TcpStream::connect((host, port))?,
    };
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n")?;
    let mut text = Vec::new();
    stream.take(BODY_BYTES_MAX).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn what_is_answered_is_what_is_got() {
    let listener = listen(0).expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || serve(&listener, || Answer { kind: "text/plain", body: "well".into() }));
    for host in ["127.0.0.1", "localhost", "svc--team-a.localhost"] {
        assert_eq!(get(host, port, "/any"), Ok("well".to_owned()), "{host}");
    }
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a connection");
    stream.write_all(b"HEAD / HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    assert!(text.contains("Content-Length: 4\r\n") && text.ends_with("\r\n\r\n"), "{text}");
}
