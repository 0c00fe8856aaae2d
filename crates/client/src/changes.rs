//! The stream of changes. Owns: that a reader continues at its position after an interruption.

use std::time::Duration;

use api_types::{ChangeFrame, ChangeKind};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::Method;
use tokio::time::timeout;

use crate::request::{ANSWER_TIMEOUT, GONE};
use crate::routes::escape;
use crate::{Client, Error};

/// Maximum silence on a connection; a server sends a sign of life every 15 s.
const SILENT_MAX: Duration = Duration::from_secs(45);
/// Maximum size of an event in bytes.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// Filter of a change stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watched {
    /// Kinds of changes; empty = all.
    pub kinds: Vec<ChangeKind>,
    /// Id or name of the project; `None` = all.
    pub project: Option<String>,
    /// Id of the workload, whose pods are included; `None` = all.
    pub workload: Option<String>,
    /// True if all existing objects are sent first.
    pub list: bool,
}

/// A stream of changes.
pub struct ChangeStream {
    client: Client,
    watched: Watched,
    /// Position of the last read event; empty at the start.
    position: String,
    bytes: Option<BoxStream<'static, Result<Vec<u8>, Error>>>,
    /// Received bytes that are not parsed yet.
    pending: Vec<u8>,
}

impl std::fmt::Debug for ChangeStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeStream").field("position", &self.position).finish_non_exhaustive()
    }
}

impl Client {
    /// Opens a change stream. It connects with the first read.
    #[must_use]
    pub fn changes(&self, watched: Watched) -> ChangeStream {
        let (position, pending) = (String::new(), Vec::new());
        ChangeStream { client: self.clone(), watched, position, bytes: None, pending }
    }
}

impl ChangeStream {
    /// The next event. A broken connection is reopened once, at the last position; after an error,
    /// this can be called again. Safe to cancel and to call again.
    ///
    /// # Errors
    /// There is no connection, or the server refuses.
    pub async fn next(&mut self) -> Result<ChangeFrame, Error> {
        let mut is_new = false;
        loop {
            if let Some(frame) = self.take()? {
                return Ok(frame);
            }
            let Some(bytes) = &mut self.bytes else {
                self.connect().await?;
                is_new = true;
                continue;
            };
            let fault = match timeout(SILENT_MAX, bytes.next()).await {
                Ok(Some(Ok(more))) => {
                    self.pending.extend(more);
                    continue;
                }
                Ok(Some(Err(error))) => error,
                Ok(None) => self.dropped(GONE),
                Err(_) => self.dropped("nothing came for too long"),
            };
            self.bytes = None;
            if is_new {
                return Err(fault);
            }
        }
    }

    fn dropped(&self, fault: &str) -> Error {
        Error::Dropped { url: self.client.url().to_owned(), fault: fault.to_owned() }
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let path = self.path();
        let answer = self.client.accept(self.client.request(Method::GET, &path));
        let answer = timeout(ANSWER_TIMEOUT, answer).await;
        let answer = answer.map_err(|_| self.dropped("it took too long"))??;
        let client = self.client.clone();
        let bytes = answer.bytes_stream().map(move |chunk| match chunk {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err(error) => Err(client.failed(&error)),
        });
        self.pending.clear();
        self.bytes = Some(bytes.boxed());
        Ok(())
    }

    fn path(&self) -> String {
        let Watched { kinds, project, workload, list } = &self.watched;
        let kinds: Vec<_> = kinds.iter().map(|kind| kind.word()).collect();
        let after = match (self.position.as_str(), list) {
            ("", false) => "now",
            (position, _) => position,
        };
        let parameters = [
            ("kinds", kinds.join(",")),
            ("project", escape(project.as_deref().unwrap_or_default())),
            ("workload", escape(workload.as_deref().unwrap_or_default())),
            ("after", after.to_owned()),
        ];
        let given = parameters.iter().filter(|(_, value)| !value.is_empty());
        let given: Vec<_> = given.map(|(name, value)| format!("{name}={value}")).collect();
        format!("/elastane/v1/changes?{}", given.join("&"))
    }

    /// The next complete event.
    fn take(&mut self) -> Result<Option<ChangeFrame>, Error> {
        loop {
            let end = self.pending.windows(2).position(|two| two == b"\n\n");
            let Some(end) = end else {
                if self.pending.len() > EVENT_BYTES_MAX {
                    return Err(self.protocol("an event has no end"));
                }
                return Ok(None);
            };
            let event: Vec<u8> = self.pending.drain(..end + 2).collect();
            let (mut id, mut data) = (None, None);
            for line in event.split(|byte| *byte == b'\n') {
                if let Some(text) = line.strip_prefix(b"id: ") {
                    id = Some(String::from_utf8_lossy(text).into_owned());
                }
                data = data.or_else(|| line.strip_prefix(b"data: "));
            }
            // Without data it is only a sign of life.
            let Some(data) = data else { continue };
            let frame = serde_json::from_slice(data);
            let frame = frame.map_err(|error| self.protocol(&error.to_string()))?;
            self.position = id.unwrap_or_else(|| std::mem::take(&mut self.position));
            return Ok(Some(frame));
        }
    }

    fn protocol(&self, fault: &str) -> Error {
        let fault = format!("{fault}; is it an elastane server of this version?");
        Error::Protocol { url: self.client.url().to_owned(), fault }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(list: bool) -> ChangeStream {
        let client = Client::new("http://127.0.0.1:9", None, None).unwrap();
        let project = Some("a b".to_owned());
        client.changes(Watched { project, list, ..Watched::default() })
    }

    #[test]
    fn events_are_read_whole_and_their_position_is_kept() {
        let mut stream = stream(true);
        let event = b":\n\nid: ab-7\ndata: {\"type\":\"synced\",\"position\":\"ab-7\"}\n\nid: \nda";
        for byte in event {
            stream.pending.push(*byte);
            let frame = stream.take().unwrap();
            assert_eq!(frame.is_some(), stream.pending.is_empty() && stream.position == "ab-7");
            if frame.is_some() {
                assert_eq!(stream.path(), "/elastane/v1/changes?project=a%20b&after=ab-7");
                stream.position.push('!');
            }
        }
        stream.pending.extend(b"ta: {\"type\":\"reset\",\"reason\":\"access\"}\n\n");
        assert!(stream.take().unwrap().is_some() && stream.position.is_empty(), "taken back");
        stream.pending.extend(b"data: {\"type\":\"later\"}\n\n");
        assert!(stream.take().unwrap_err().to_string().contains("of this version?"));
    }

    #[test]
    fn without_a_position_it_begins_with_a_list_or_now() {
        assert_eq!(stream(true).path(), "/elastane/v1/changes?project=a%20b");
        assert_eq!(stream(false).path(), "/elastane/v1/changes?project=a%20b&after=now");
    }

    #[tokio::test]
    async fn what_cannot_be_reached_is_told_and_can_be_asked_again() {
        let mut stream = stream(true);
        for _ in 0..2 {
            let error = stream.next().await.unwrap_err();
            assert!(matches!(error, Error::NotRunning { .. }), "{error}");
        }
    }
}
