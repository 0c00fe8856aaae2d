//! Heads of requests before they are parsed. Owns: a request whose end a proxy could see elsewhere
//! is refused: a line that ends without a carriage return, and a length beside `Transfer-Encoding`.
//! The parser accepts both silently. Does not know about: other contents of a head.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::http::{HeaderMap, Method, header};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of a line that are kept: the headers that matter are shorter.
const LINE_BYTES: usize = 64;

/// Part of a request that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Head,
    /// A body with so many bytes left.
    Body(u64),
    /// A body without a known end. [`ends_connection`] allows no request after it.
    Rest,
}

/// `true` for a request after which its connection has to end unless it goes over to another
/// protocol: where its body ends is not looked at here.
pub(crate) fn ends_connection(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::CONNECT
        || headers.contains_key(header::TRANSFER_ENCODING)
        || headers.contains_key(header::UPGRADE)
}

/// State of the requests on a connection.
#[derive(Debug)]
struct Heads {
    at: At,
    /// The first bytes of the present line, its length and its last byte.
    line: Vec<u8>,
    line_bytes: usize,
    last: u8,
    /// Facts of the present head so far.
    has_begun: bool,
    is_chunked: bool,
    goes_over: bool,
    length: Option<u64>,
}

impl Heads {
    const fn new() -> Self {
        Self {
            at: At::Head,
            line: Vec::new(),
            line_bytes: 0,
            last: 0,
            has_begun: false,
            is_chunked: false,
            goes_over: false,
            length: None,
        }
    }

    /// Checks bytes as they come. The end of a line that makes a request ambiguous becomes a NUL,
    /// for which the parser answers 400 and closes the connection.
    fn look_at(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let passed = match self.at {
                At::Rest => return,
                At::Body(left) => {
                    let passed = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    self.goes_on_after(left - passed as u64);
                    passed
                }
                At::Head => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    self.keep(&bytes[..end.unwrap_or(bytes.len())]);
                    let Some(end) = end else { return };
                    if !self.line_ends() {
                        bytes[end] = 0;
                        self.at = At::Rest;
                    }
                    end + 1
                }
            };
            bytes = &mut bytes[passed..];
        }
    }

    const fn goes_on_after(&mut self, body_left: u64) {
        self.at = if body_left == 0 { At::Head } else { At::Body(body_left) };
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES.saturating_sub(self.line.len()).min(bytes.len());
        self.line.extend_from_slice(&bytes[..room]);
        self.line_bytes += bytes.len();
        self.last = bytes.last().copied().unwrap_or(self.last);
    }

    /// Takes the line that ends here; `false` for one that is refused.
    fn line_ends(&mut self) -> bool {
        let (line, bytes) = (std::mem::take(&mut self.line), std::mem::take(&mut self.line_bytes));
        if std::mem::take(&mut self.last) != b'\r' {
            return false;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        match (line.is_empty(), self.has_begun) {
            // Empty lines before a request are allowed.
            (true, false) => true,
            (true, true) => self.head_ends(),
            (false, false) => {
                self.has_begun = true;
                self.goes_over = line.starts_with(b"CONNECT ");
                true
            }
            (false, true) => self.header(line, bytes <= LINE_BYTES),
        }
    }

    fn header(&mut self, line: &[u8], is_whole: bool) -> bool {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return true };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.is_chunked = true;
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            self.goes_over = true;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let text = str::from_utf8(value).ok().filter(|_| is_whole).map(str::trim);
            self.length = text.and_then(|text| text.parse().ok());
            return self.length.is_some();
        }
        true
    }

    fn head_ends(&mut self) -> bool {
        let length = self.length.take();
        let (is_chunked, goes_over) =
            (std::mem::take(&mut self.is_chunked), std::mem::take(&mut self.goes_over));
        self.has_begun = false;
        if is_chunked && length.is_some() {
            return false;
        }
        self.goes_on_after(length.unwrap_or_default());
        if is_chunked || goes_over {
            self.at = At::Rest;
        }
        true
    }
}

/// A connection on which ambiguous requests are made ones that the parser refuses.
#[derive(Debug)]
pub(crate) struct CheckedHeads<S> {
    stream: S,
    heads: Heads,
}

impl<S> CheckedHeads<S> {
    pub(crate) const fn new(stream: S) -> Self {
        Self { stream, heads: Heads::new() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CheckedHeads<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, to))?;
        self.heads.look_at(&mut to.filled_mut()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CheckedHeads<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of line ends in these bytes that are refused, if they come in pieces of `piece`
    /// bytes.
    fn refused(text: &str, piece: usize) -> usize {
        let (mut heads, mut bytes) = (Heads::new(), text.as_bytes().to_vec());
        bytes.chunks_mut(piece).for_each(|piece| heads.look_at(piece));
        bytes.iter().filter(|byte| **byte == 0).count()
    }

    #[test]
    fn a_request_whose_end_is_ambiguous_is_refused_however_it_comes() {
        let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(500));
        let padded = format!("GET / HTTP/1.1\r\ncontent-length:{}5\r\n\r\n", " ".repeat(90));
        for (text, want) in [
            ("GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n", 0),
            ("\r\n\r\nGET / HTTP/1.1\r\n\r\n", 0),
            (&*long, 0),
            ("POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\na\nbGET / HTTP/1.1\r\n\r\n", 0),
            ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\n\na\n", 0),
            ("GET / HTTP/1.1\r\nupgrade: websocket\r\n\r\n\n\n\n", 0),
            ("GET / HTTP/1.1\n\r\n", 1),
            ("GET / HTTP/1.1\r\nhost: a\n\r\n", 1),
            ("GET / HTTP/1.1\r\nhost: a\r\n\n", 1),
            ("\nGET / HTTP/1.1\r\n\r\n", 1),
            ("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\n", 1),
            ("POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 1),
            ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 1\r\n\r\n", 1),
            ("POST / HTTP/1.1\r\ncontent-length: 1 1\r\n\r\n", 1),
            (&*padded, 1),
        ] {
            for piece in [1, 2, 3, 7, text.len()] {
                assert_eq!(refused(text, piece), want, "{text:?} in pieces of {piece}");
            }
        }
    }
}
