//! Requests over a connection of their own, for pods that are no replicas: nothing is measured, and nobody
//! comes to a connection that another pod may have by now. Owns: how many are made at a time. Refuses to
//! know: who asks, and how a connection is made.

use std::time::Duration;

use http::{Request, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::forward::{Body, CONNECT_WAIT, Error, Proxy, answer, client_side, in_words};

/// Longest until an answer begins. Who has something to say later goes over to a WebSocket, or begins.
const ANSWER_WAIT: Duration = Duration::from_secs(300);

impl Proxy {
    /// Has a request answered over a connection that is made for it. If it goes over to another
    /// protocol that ends with `until`.
    ///
    /// # Errors
    /// There was no connection or no answer, or there are too many requests.
    pub(crate) async fn pass<C, E>(
        &self,
        connect: impl Future<Output = Result<C, E>>,
        mut request: Request<Body>,
        until: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Response<Body>, E>
    where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        E: From<Error>,
    {
        let place = self.place()?;
        let connection = timeout(CONNECT_WAIT, self.in_turn(connect)).await;
        let connection = connection.map_err(|_| Error::TooSlow(CONNECT_WAIT.as_secs()))??;
        let client_side = client_side(&mut request);
        let broken = |error: hyper::Error| Error::Broken(in_words(&error));
        let (mut sender, driver) =
            http1::handshake(TokioIo::new(connection)).await.map_err(broken)?;
        tokio::spawn(async move {
            let ended = driver.with_upgrades().await;
            tracing::debug!(?ended, "a connection to a pod ended");
        });
        let answered = timeout(ANSWER_WAIT, sender.send_request(request)).await;
        let response = answered.map_err(|_| Error::TooSlow(ANSWER_WAIT.as_secs()))?;
        Ok(answer(response.map_err(broken)?, client_side, place, until))
    }

    /// Connects when few others do.
    async fn in_turn<T>(&self, connect: impl Future<Output = T>) -> T {
        // It is never closed.
        let _turn = self.connecting.acquire().await;
        connect.await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use http_body_util::{BodyExt as _, Empty};

    use super::*;

    #[tokio::test]
    async fn without_a_place_no_connection_is_begun() {
        let proxy = Proxy::with_places(0);
        let connect = std::future::pending::<Result<tokio::io::DuplexStream, Error>>();
        let nothing = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let passed = proxy.pass(connect, Request::new(nothing), std::future::pending()).await;
        assert!(matches!(passed, Err(Error::NoReplica(crate::NoReplica::Crowded))));
    }

    #[tokio::test]
    async fn few_connections_are_made_at_a_time() {
        let proxy = Proxy::default();
        let all = proxy.connecting.available_permits();
        let others = proxy.connecting.acquire_many(u32::try_from(all).unwrap()).await;
        let mut next = Box::pin(proxy.in_turn(async { 1 }));
        assert_eq!((&mut next).now_or_never(), None);
        drop(others);
        assert_eq!(next.now_or_never(), Some(1));
    }
}
