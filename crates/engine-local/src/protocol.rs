//! The protocol between server and session on the run's socket: a kind, a length, and that many
//! bytes. Owns: the format, for blocking and asynchronous readers.

use std::collections::BTreeMap;
use std::io::{self, Read};

use engine::{Input, Output, TerminalSize};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::record::ExitFile;

/// Most bytes of one frame. A longer piece is split.
const BYTES_MAX: usize = 64 << 10;
const HEAD_BYTES: usize = 5;

const OPEN: u8 = 0;
const BYTES: u8 = 1;
const EOF: u8 = 2;
const RESIZE: u8 = 3;
const ERRORS: u8 = 4;
const END: u8 = 5;

/// The first frame: what the client requests.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum SessionRequest {
    /// A command beside the main process.
    Exec {
        command: Vec<String>,
        stdin: bool,
        /// Rows and columns of its terminal.
        terminal: Option<(u16, u16)>,
        env: BTreeMap<String, String>,
    },
    /// The main process itself.
    Attach {
        terminal: Option<(u16, u16)>,
        /// Bytes of the log that the client has.
        from: u64,
        /// True if the client sends input; otherwise the input is not held open.
        #[serde(default)]
        stdin: bool,
    },
}

fn frames(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes.len() + HEAD_BYTES);
    for part in bytes.chunks(BYTES_MAX) {
        all.extend(frame(kind, part));
    }
    all
}

fn frame(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[kind][..], &length, bytes].concat()
}

pub(crate) fn request(request: &SessionRequest) -> io::Result<Vec<u8>> {
    let text = serde_json::to_vec(request)?;
    if text.len() > REQUEST_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is too long"));
    }
    Ok(frame(OPEN, &text))
}

/// Most bytes of a request: the kernel accepts fewer as arguments of a program.
const REQUEST_BYTES_MAX: usize = 4 << 20;

pub(crate) fn input(input: &Input) -> Vec<u8> {
    match input {
        Input::Bytes(bytes) => frames(BYTES, bytes),
        Input::Eof => frame(EOF, &[]),
        Input::Resize(size) => {
            frame(RESIZE, &[size.rows.to_be_bytes(), size.columns.to_be_bytes()].concat())
        }
    }
}

/// A piece of output, of standard error or not.
pub(crate) fn output(errors: bool, bytes: &[u8]) -> Vec<u8> {
    frames(if errors { ERRORS } else { BYTES }, bytes)
}

pub(crate) fn end(exit: &ExitFile) -> io::Result<Vec<u8>> {
    Ok(frame(END, &serde_json::to_vec(exit)?))
}

/// Kind and length of the frame that follows.
fn head(head: [u8; HEAD_BYTES]) -> io::Result<(u8, usize)> {
    let [kind, length @ ..] = head;
    let length = u32::from_be_bytes(length) as usize;
    let most = if kind == OPEN { REQUEST_BYTES_MAX } else { BYTES_MAX };
    if length > most { Err(unknown()) } else { Ok((kind, length)) }
}

fn unknown() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a frame that is known")
}

/// The next frame; an end inside a frame is an error.
fn read(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut bytes = [0; HEAD_BYTES];
    from.read_exact(&mut bytes)?;
    let (kind, length) = head(bytes)?;
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok((kind, bytes))
}

pub(crate) fn read_request(from: &mut impl Read) -> io::Result<SessionRequest> {
    match read(from)? {
        (OPEN, text) => Ok(serde_json::from_slice(&text)?),
        _ => Err(unknown()),
    }
}

pub(crate) fn read_input(from: &mut impl Read) -> io::Result<Input> {
    match read(from)? {
        (BYTES, bytes) => Ok(Input::Bytes(bytes)),
        (EOF, _) => Ok(Input::Eof),
        (RESIZE, bytes) => match bytes[..] {
            [a, b, c, d] => Ok(Input::Resize(TerminalSize {
                rows: u16::from_be_bytes([a, b]),
                columns: u16::from_be_bytes([c, d]),
            })),
            _ => Err(unknown()),
        },
        _ => Err(unknown()),
    }
}

pub(crate) async fn next_output(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Output> {
    let mut bytes = [0; HEAD_BYTES];
    from.read_exact(&mut bytes).await?;
    let (kind, length) = head(bytes)?;
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await?;
    match kind {
        BYTES => Ok(Output::Stdout(bytes)),
        ERRORS => Ok(Output::Stderr(bytes)),
        END => Ok(Output::End(serde_json::from_slice::<ExitFile>(&bytes)?.into())),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood_and_long_pieces_are_cut() {
        let long = vec![7; BYTES_MAX + 1];
        let size = TerminalSize { rows: 300, columns: 2 };
        let said =
            [Input::Bytes(long), Input::Resize(size), Input::Eof].iter().flat_map(input).collect();
        let said: Vec<u8> = said;
        let mut rest = &said[..];
        let mut next = || read_input(&mut rest).expect("a frame");
        assert_eq!(next(), Input::Bytes(vec![7; BYTES_MAX]));
        assert_eq!(next(), Input::Bytes(vec![7]));
        assert_eq!((next(), next()), (Input::Resize(size), Input::Eof));
        assert!(read_input(&mut rest).is_err(), "nothing more");
    }

    #[test]
    fn nobody_makes_the_other_side_wait_for_gigabytes() {
        assert!(read_input(&mut &[BYTES, 255, 255, 255, 255][..]).is_err());
        assert!(read_input(&mut &[9, 0, 0, 0, 0][..]).is_err());
    }
}
