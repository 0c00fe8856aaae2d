//! Requests over a connection of their own, for pods that are no replicas: nothing is measured, and nobody
//! comes to a connection that another pod may have by now. Refuses to know: who asks, and how the
//! connection was made.

use std::time::Duration;

use http::{Request, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::forward::{Body, Error, Proxy, answer, client_side, in_words};

/// Longest until an answer begins. Who has something to say later goes over to a WebSocket, or begins.
const ANSWER_WAIT: Duration = Duration::from_secs(300);

impl Proxy {
    /// Has a request answered over this connection. If it goes over to another protocol that ends
    /// with `until`.
    ///
    /// # Errors
    /// There was no answer, or there are too many requests.
    pub(crate) async fn pass(
        &self,
        connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        mut request: Request<Body>,
        until: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Response<Body>, Error> {
        let place = self.place()?;
        let client_side = client_side(&mut request);
        let broken = |error: hyper::Error| Error::Broken(in_words(&error));
        let (mut sender, driver) =
            http1::handshake(TokioIo::new(connection)).await.map_err(broken)?;
        tokio::spawn(async move {
            let ended = driver.with_upgrades().await;
            tracing::debug!(?ended, "a connection to a pod ended");
        });
        let answered = tokio::time::timeout(ANSWER_WAIT, sender.send_request(request)).await;
        let response = answered.map_err(|_| Error::TooSlow(ANSWER_WAIT.as_secs()))?;
        Ok(answer(response.map_err(broken)?, client_side, place, until))
    }
}
