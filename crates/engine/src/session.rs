//! Sessions at a run. Owns: the input and output of a command inside a run, of a run's own
//! terminal, and of a connection to one of its ports. Does not know about users and transports.

use std::collections::BTreeMap;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::Exit;

/// A command inside a run, or the run's own input and output, while a client is attached. Dropping
/// it ends a command with all it started; a run that was attached to goes on.
#[derive(Debug)]
pub struct Session {
    /// What is typed. It waits while the other side does not read.
    pub input: mpsc::Sender<Input>,
    /// What is printed. [`Output::End`] is the last; without it the session broke off.
    pub output: mpsc::Receiver<Output>,
}

/// What goes into a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Bytes of its standard input.
    Bytes(Vec<u8>),
    /// There are no more.
    Eof,
    /// The terminal has another size.
    Resize(TerminalSize),
}

/// What comes out of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Of its standard output; with a terminal, all.
    Stdout(Vec<u8>),
    /// Of its standard error.
    Stderr(Vec<u8>),
    /// It ended like this.
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
    /// True if it reads what is typed; else it finds no input.
    pub stdin: bool,
    /// The terminal it gets; none = pipes.
    pub terminal: Option<TerminalSize>,
    /// Environment beside the run's own, such as `TERM`.
    pub env: BTreeMap<String, String>,
}

/// A connection, in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}
