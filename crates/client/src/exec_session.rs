//! Sessions with a pod: commands in it, its own terminal, its ports. Owns: the WebSocket upgrade,
//! and the meaning of its messages. Does not know about: the caller's terminal and sockets.

use std::time::Duration;

use api_types::{SessionEnd, TerminalSize, channel};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Method, StatusCode, Upgraded};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Bytes, Error as Fault, Message};

use crate::request::GONE;
use crate::routes::question;
use crate::{Client, Error};

/// Maximum silence on a connection; the server sends four signs of life in this time.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Error of a WebSocket whose connection was cut.
const CUT: ProtocolError = ProtocolError::ResetWithoutClosingHandshake;

/// A command to run in a pod.
#[derive(Debug, Clone, Copy)]
pub struct Exec<'a> {
    /// Program and arguments.
    pub command: &'a [String],
    /// True if it has standard input.
    pub stdin: bool,
    /// Size and type of its terminal; `None` = no terminal.
    pub terminal: Option<(TerminalSize, &'a str)>,
}

/// A WebSocket to a pod.
#[derive(Debug)]
pub struct ExecSession {
    socket: WebSocketStream<Upgraded>,
    url: String,
}

/// Sending half of a session.
#[derive(Debug)]
pub struct Sender(SplitSink<WebSocketStream<Upgraded>, Message>);

/// Receiving half of a session.
#[derive(Debug)]
pub struct Receiver {
    socket: SplitStream<WebSocketStream<Upgraded>>,
    url: String,
}

/// Input of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Bytes for standard input.
    Bytes(Vec<u8>),
    /// End of the input.
    End,
    /// New size of the terminal.
    Size(TerminalSize),
}

/// Output of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Printed {
    /// Bytes of standard output.
    Output(Bytes),
    /// Bytes of standard error.
    Errors(Bytes),
    /// End of the session.
    End(SessionEnd),
}

impl Client {
    /// Runs a command in a pod: the named one, or the first that runs.
    ///
    /// # Errors
    /// As every request.
    pub async fn exec(
        &self,
        id: &str,
        pod: Option<&str>,
        what: Exec<'_>,
    ) -> Result<ExecSession, Error> {
        let mut query: Vec<_> = what.command.iter().map(|word| ("command", word.clone())).collect();
        query.push(("stdin", what.stdin.to_string()));
        if let Some((size, kind)) = what.terminal {
            query.extend(terminal(size));
            query.push(("term", kind.to_owned()));
        }
        self.visit(id, "exec", pod, query).await
    }

    /// Attaches to the main process of a pod: the named one, or the first that runs.
    ///
    /// # Errors
    /// As every request.
    pub async fn attach(
        &self,
        id: &str,
        pod: Option<&str>,
        stdin: bool,
        size: Option<TerminalSize>,
    ) -> Result<ExecSession, Error> {
        let mut query = vec![("stdin", stdin.to_string())];
        query.extend(size.into_iter().flat_map(terminal));
        self.visit(id, "attach", pod, query).await
    }

    /// Connects to a port of a pod: the named one, or the first that runs.
    ///
    /// # Errors
    /// As every request.
    pub async fn connect(
        &self,
        id: &str,
        pod: Option<&str>,
        port: u16,
    ) -> Result<ExecSession, Error> {
        self.visit(id, "portforward", pod, vec![("port", port.to_string())]).await
    }

    async fn visit(
        &self,
        id: &str,
        what: &str,
        pod: Option<&str>,
        mut query: Vec<(&str, String)>,
    ) -> Result<ExecSession, Error> {
        query.extend(pod.map(|pod| ("pod", pod.to_owned())));
        let query: Vec<_> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let path = format!("/elastane/v1/workloads/{id}/{what}{}", question(&query));
        let key = generate_key();
        let request = self.request(Method::GET, &path).header(CONNECTION, "Upgrade");
        let request = request.header(UPGRADE, "websocket").header(SEC_WEBSOCKET_VERSION, "13");
        let answer = self.accept(request.header(SEC_WEBSOCKET_KEY, &key)).await?;
        let url = self.url().to_owned();
        let proof =
            answer.headers().get(SEC_WEBSOCKET_ACCEPT).and_then(|proof| proof.to_str().ok());
        let agreed = answer.status() == StatusCode::SWITCHING_PROTOCOLS
            && proof == Some(derive_accept_key(key.as_bytes()).as_str());
        if !agreed {
            let fault = "no WebSocket came about; is something between here and there that takes \
                         them away?"
                .to_owned();
            return Err(Error::Protocol { url, fault });
        }
        let stream = answer.upgrade().await.map_err(|error| self.failed(&error))?;
        let socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
        Ok(ExecSession { socket, url })
    }
}

fn terminal(size: TerminalSize) -> [(&'static str, String); 3] {
    [
        ("tty", "true".to_owned()),
        ("rows", size.rows.to_string()),
        ("columns", size.columns.to_string()),
    ]
}

impl ExecSession {
    /// Sending and receiving half.
    #[must_use]
    pub fn split(self) -> (Sender, Receiver) {
        let (to, from) = self.socket.split();
        (Sender(to), Receiver { socket: from, url: self.url })
    }
}

impl Sender {
    /// Sends input to a session. An error means that the connection has ended; the receiver has the
    /// reason.
    pub async fn types(&mut self, typed: Input) -> Result<(), Gone> {
        let message = match typed {
            Input::Bytes(bytes) => [&[channel::INPUT], &bytes[..]].concat(),
            Input::End => vec![channel::INPUT_ENDS],
            Input::Size(size) => {
                let size = serde_json::json!(size).to_string();
                [&[channel::SIZE], size.as_bytes()].concat()
            }
        };
        self.sends(message).await
    }

    /// Sends bytes to a connection; none = the end. An error means that the connection has ended.
    pub async fn sends(&mut self, bytes: Vec<u8>) -> Result<(), Gone> {
        self.0.send(Message::Binary(bytes.into())).await.map_err(|_| Gone)
    }

    /// Closes the connection, if the peer still listens.
    pub async fn leaves(mut self) {
        let _gone = self.0.send(Message::Close(None)).await;
    }
}

/// The peer has closed the connection.
#[derive(Debug, Clone, Copy)]
pub struct Gone;

impl Receiver {
    /// The next bytes of a connection; empty at their end.
    ///
    /// # Errors
    /// The connection broke, or the server closed it with a reason.
    pub async fn receives(&mut self) -> Result<Bytes, Error> {
        let fault = loop {
            match tokio::time::timeout(SILENCE_MAX, self.socket.next()).await {
                Ok(Some(Ok(Message::Binary(bytes)))) => return Ok(bytes),
                // Pings are answered by the library.
                Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => {}
                Ok(Some(Ok(Message::Close(Some(why))))) => break why.reason.to_string(),
                Ok(Some(Ok(_)) | None) => break GONE.to_owned(),
                Ok(Some(Err(Fault::Io(_) | Fault::Protocol(CUT)))) => break GONE.to_owned(),
                Ok(Some(Err(error))) => break error.to_string(),
                Err(_) => break "it sent nothing for a minute".to_owned(),
            }
        };
        Err(Error::Dropped { url: self.url.clone(), fault })
    }

    /// The next output of a session.
    ///
    /// # Errors
    /// The connection broke before the session had ended, or the server closed it with a reason.
    pub async fn hears(&mut self) -> Result<Printed, Error> {
        let message = self.receives().await?;
        let fault = |fault: String| Error::Protocol { url: self.url.clone(), fault };
        match message.first().copied() {
            Some(channel::OUTPUT) => Ok(Printed::Output(message.slice(1..))),
            Some(channel::ERRORS) => Ok(Printed::Errors(message.slice(1..))),
            Some(channel::END) => serde_json::from_slice(&message[1..])
                .map(Printed::End)
                .map_err(|error| fault(error.to_string())),
            other => Err(fault(format!("a message on channel {other:?}"))),
        }
    }
}
