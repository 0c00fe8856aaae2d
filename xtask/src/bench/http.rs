//! As much of HTTP as a measurement needs: one connection, one request at a time. Owns: framing.
//! Does not know about: the contents of requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// A connection that is kept open.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Connection {
    /// Connects; every request carries the token.
    pub(crate) fn open(address: SocketAddr, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Self { stream: BufReader::new(stream), token: token.to_owned() })
    }

    /// Status and body of one request.
    pub(crate) fn ask(&mut self, verb: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let request = format!(
            "{verb} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        let code = status.split_whitespace().nth(1).and_then(|code| code.parse().ok());
        let code = code.with_context(|| format!("no status in `{status}`"))?;
        let mut length = 0;
        loop {
            let header = self.line()?.to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().context("a length that is not a number")?;
            } else if header.starts_with("transfer-encoding:") {
                bail!("an answer in chunks, which this client does not read");
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((code, String::from_utf8(body)?))
    }

    /// The body of one request, which must succeed.
    pub(crate) fn expect(&mut self, verb: &str, path: &str, body: &str) -> Result<String> {
        let (code, answer) = self.ask(verb, path, body)?;
        if !(200..300).contains(&code) {
            bail!("{verb} {path}: {code} {answer}");
        }
        Ok(answer)
    }

    /// Requests an endless stream, to read with [`Self::read_until`].
    pub(crate) fn watch(&mut self, path: &str) -> Result<()> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
            self.token
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        if !status.contains(" 200 ") {
            bail!("GET {path}: {status}");
        }
        Ok(())
    }

    /// Sets how long a read waits for the next byte.
    pub(crate) fn set_timeout(&self, most: Duration) -> Result<()> {
        Ok(self.stream.get_ref().set_read_timeout(Some(most))?)
    }

    /// Reads a stream up to the line that contains this.
    pub(crate) fn read_until(&mut self, wanted: &str) -> Result<()> {
        while !self.line()?.contains(wanted) {}
        Ok(())
    }

    /// Reads the next line of a stream, with its end.
    pub(crate) fn read_line_into(&mut self, line: &mut Vec<u8>) -> Result<()> {
        line.clear();
        self.read_on_into(line)
    }

    /// Reads the rest of a line of which a part has been read.
    pub(crate) fn read_on_into(&mut self, line: &mut Vec<u8>) -> Result<()> {
        if self.stream.read_until(b'\n', line)? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            bail!("the server closed the connection");
        }
        Ok(line.trim_end().to_owned())
    }
}
