//! Sessions at a run. Owns: the input and output of a command inside a run, of a run's own
//! terminal, and of a connection to one of its ports. Does not know about users and transports.

use std::collections::BTreeMap;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::Exit;

/// A command inside a run, or the run's own input and output, while a client is attached. Dropping
/// it ends a command and its processes; a run with an attached client continues.
#[derive(Debug)]
pub struct Session {
    /// Input of the session. Sending waits while the other side does not read.
    pub input: mpsc::Sender<Input>,
    /// Output of the session. [`Output::End`] is the last; without it the session broke off.
    pub output: mpsc::Receiver<Output>,
}

/// Input of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Bytes of standard input.
    Bytes(Vec<u8>),
    /// End of standard input.
    Eof,
    /// New size of the terminal.
    Resize(TerminalSize),
}

/// Output of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Bytes of standard output; with a terminal, of standard error too.
    Stdout(Vec<u8>),
    /// Bytes of standard error.
    Stderr(Vec<u8>),
    /// End of the process.
    End(Exit),
}

/// Size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// A command to run beside the main process of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecSpec {
    /// Program and arguments; not empty.
    pub command: Vec<String>,
    /// True if it reads input from the client; else its input is empty.
    pub stdin: bool,
    /// Terminal of the command; `None` for pipes.
    pub terminal: Option<TerminalSize>,
    /// Environment beside the run's own, such as `TERM`.
    pub env: BTreeMap<String, String>,
}

/// A connection, in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}
