//! The end of a browser login: a local address to which the browser brings the code (RFC 8252,
//! 7.3). Owns: the answer to the browser. Does not know about: providers and tokens.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use cli_kit::exit::Error;

/// Maximum duration of a login.
const LOGIN_WAIT: Duration = Duration::from_secs(600);
/// Maximum wait for the request of a browser. Some browsers open connections that they do not use.
const REQUEST_WAIT: Duration = Duration::from_secs(30);
const REQUEST_BYTES_MAX: usize = 16 * 1024;
const PATH: &str = "/callback";

/// A port of this machine.
pub(super) struct Loopback {
    listener: TcpListener,
    port: u16,
}

impl Loopback {
    pub(super) async fn open() -> Result<Self, Error> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(deaf)?;
        let port = listener.local_addr().map_err(deaf)?.port();
        Ok(Self { listener, port })
    }

    /// Redirect address for the browser.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// The code of the login with this state. A request with another state belongs to another login
    /// and is ignored.
    pub(super) async fn code(self, state: &str) -> Result<String, Error> {
        let (found, mut queries) = mpsc::channel::<String>(16);
        let look = async {
            while let Some(query) = queries.recv().await {
                if let Some(code) = code_in(&query, state) {
                    return code;
                }
            }
            Err(Error::Failed(
                "the listener for the browser has ended; run `runai login` again".to_owned(),
            ))
        };
        tokio::select! {
            error = listen(&self.listener, found) => Err(deaf(error)),
            code = look => code,
            () = tokio::time::sleep(LOGIN_WAIT) => {
                Err(Error::Failed("the login was not finished within ten minutes; run `runai login` again".to_owned()))
            }
        }
    }
}

fn deaf(error: std::io::Error) -> Error {
    Error::Failed(format!("cannot listen for the browser: {error}"))
}

/// Answers requests until that fails, and sends on their queries.
async fn listen(listener: &TcpListener, found: mpsc::Sender<String>) -> std::io::Error {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let answer = answer(stream, found.clone());
                tokio::spawn(tokio::time::timeout(REQUEST_WAIT, answer));
            }
            Err(error) => return error,
        }
    }
}

/// Answers one request, and sends on its query.
async fn answer(mut stream: TcpStream, found: mpsc::Sender<String>) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let request = String::from_utf8_lossy(&request);
    let target = request.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let query = target.and_then(|target| target.strip_prefix(PATH)?.strip_prefix('?'));
    let (status, page) = match query {
        Some(_) => ("200 OK", "The login goes on in the terminal. This window may be closed."),
        None => ("404 Not Found", "There is nothing here."),
    };
    let head = "Content-Type: text/html; charset=utf-8\r\nConnection: close\r\n";
    let page = format!("<!doctype html><html lang=en><title>Login</title><p>{page}");
    let length = page.len();
    let answer = format!("HTTP/1.1 {status}\r\n{head}Content-Length: {length}\r\n\r\n{page}");
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    if let Some(query) = query {
        // The receiver is gone once the login has ended.
        let _ = found.send(query.to_owned()).await;
    }
    Ok(())
}

/// The code in a query, or the error of the provider; `None` if it is about another login.
pub(super) fn code_in(query: &str, state: &str) -> Option<Result<String, Error>> {
    let get = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(own, _)| *own == name).map(|(_, value)| decoded(value))
    };
    if get("state").as_deref() != Some(state) {
        return None;
    }
    Some(get("code").ok_or_else(|| {
        let said = [get("error"), get("error_description")].into_iter().flatten();
        let said = said.map(|text| units::shown(&text)).collect::<Vec<_>>().join(": ");
        Error::Failed(format!("the login provider gave no code ({said}); run `runai login` again"))
    }))
}

/// A percent-decoded value of a query.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let pair = [rest.next(), rest.next()].map(Option::unwrap_or_default);
                let hex = std::str::from_utf8(&pair).ok();
                hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or(b'%')
            }
            other => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_taken_only_with_its_state() {
        let code = |query: &str| code_in(query, "s/1").map(|code| code.map_err(|e| e.to_string()));
        assert_eq!(code("code=a%2Fb+c&state=s%2F1&iss=x"), Some(Ok("a/b c".to_owned())));
        for query in ["code=a", "code=a&state=other", "state=", "", "error=access_denied"] {
            assert_eq!(code(query), None, "{query}");
        }
        let refused = code("error=access_denied&error_description=no+way%0a&state=s/1").unwrap();
        assert!(refused.unwrap_err().contains("access_denied: no way\\n"));
        assert_eq!(code("code=%&state=s%2F1"), Some(Ok("%".to_owned())));
    }

    #[tokio::test]
    async fn the_browser_is_answered_and_strangers_do_not_end_the_login() {
        let loopback = Loopback::open().await.unwrap();
        let port = loopback.port;
        assert_eq!(loopback.address(), format!("http://127.0.0.1:{port}/callback"));
        let waiting = tokio::spawn(async move { loopback.code("s").await });
        let _unused = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        for (target, status) in [
            ("/favicon.ico", "404"),
            ("/callback?code=theirs&state=x", "200"),
            ("/callback?code=c&state=s", "200"),
        ] {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        }
        assert_eq!(waiting.await.unwrap().unwrap(), "c");
    }
}
