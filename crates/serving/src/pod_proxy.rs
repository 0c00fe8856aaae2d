//! Requests over a connection of their own, for pods that are no replicas: nothing is measured, and
//! no request reaches a connection that another pod may have by now. Owns: that no workload takes
//! the permits of others. Does not know about: the client, and how a connection is established.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use http::{Request, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use uuid::Uuid;

use crate::limits::{CONNECTING_MAX, OWN_MAX, Share};
use crate::proxy::{
    Body, CONNECT_WAIT, Error, Proxy, UntilAnswered, answer, client_side, in_words,
};

/// Maximum time until a response begins. A program with later data upgrades to a WebSocket, or
/// begins the response.
const ANSWER_WAIT: Duration = Duration::from_secs(300);

/// Permits of a request among all, and among those to its workload.
struct ProxyPermit {
    share: Arc<Share>,
    _places: [OwnedSemaphorePermit; 2],
}

impl UntilAnswered for ProxyPermit {}

impl Proxy {
    /// Sends a request over a new connection to a workload. An upgraded connection ends with
    /// `until`.
    ///
    /// # Errors
    /// There was no connection or no response, or there are too many requests.
    pub(crate) async fn pass<C, E>(
        &self,
        workload: Uuid,
        connect: impl Future<Output = Result<C, E>>,
        mut request: Request<Body>,
        until: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Response<Body>, E>
    where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        E: From<Error>,
    {
        let guest = self.guest(workload)?;
        let turn = timeout(CONNECT_WAIT, guest.share.connecting.acquire()).await;
        let turn = turn.map_err(|_| Error::NoTurn)?;
        let connection = timeout(CONNECT_WAIT, connect).await;
        let connection = connection.map_err(|_| Error::TooSlow(CONNECT_WAIT.as_secs()))??;
        drop(turn);
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
        Ok(answer(response.map_err(broken)?, client_side, guest, until))
    }

    fn guest(&self, workload: Uuid) -> Result<ProxyPermit, Error> {
        let share = self.share(workload);
        let own = share.requests.clone().try_acquire_owned().map_err(|_| Error::Crowded)?;
        Ok(ProxyPermit { share, _places: [own, self.place()?] })
    }

    fn share(&self, workload: Uuid) -> Arc<Share> {
        // No code can panic half-way through a change.
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|_, share| share.strong_count() > 0);
        if let Some(share) = shares.get(&workload).and_then(Weak::upgrade) {
            return share;
        }
        let (requests, connecting) =
            (Arc::new(Semaphore::new(OWN_MAX)), Semaphore::new(CONNECTING_MAX));
        let share = Arc::new(Share { requests, connecting });
        shares.insert(workload, Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use http_body_util::{BodyExt as _, Empty};
    use tokio::io::DuplexStream;

    use super::*;

    const ONE: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);

    /// Error of a request that would use this connection.
    async fn asked(
        proxy: &Proxy,
        workload: Uuid,
        connect: impl Future<Output = Result<DuplexStream, Error>>,
    ) -> Error {
        let nothing = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let passed = proxy.pass(workload, connect, Request::new(nothing), pending()).await;
        passed.expect_err("nothing is there")
    }

    async fn refused() -> Result<DuplexStream, Error> {
        Err(Error::Broken("connection refused".to_owned()))
    }

    #[tokio::test]
    async fn without_a_place_no_connection_is_begun() {
        let proxy = Proxy::with_places(0);
        let passed = asked(&proxy, ONE, pending()).await;
        assert!(matches!(passed, Error::NoReplica(crate::NoReplica::Crowded)));
    }

    #[tokio::test]
    async fn the_requests_to_one_workload_leave_places_to_others() {
        let proxy = Proxy::default();
        let held: Vec<_> = (0..OWN_MAX).map(|_| proxy.guest(ONE).unwrap()).collect();
        assert!(matches!(asked(&proxy, ONE, refused()).await, Error::Crowded));
        assert!(matches!(asked(&proxy, OTHER, refused()).await, Error::Broken(_)));
        drop(held);
        assert!(matches!(asked(&proxy, ONE, refused()).await, Error::Broken(_)));
        assert_eq!(proxy.shares.lock().unwrap().len(), 1, "others are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_takes_no_connection_holds_up_its_own_only() {
        let proxy = Proxy::default();
        let share = proxy.share(ONE);
        let all = u32::try_from(CONNECTING_MAX).unwrap();
        let hang = share.connecting.acquire_many(all).await;
        assert!(matches!(asked(&proxy, ONE, refused()).await, Error::NoTurn));
        assert!(matches!(asked(&proxy, OTHER, refused()).await, Error::Broken(_)));
        assert!(matches!(asked(&proxy, OTHER, pending()).await, Error::TooSlow(_)));
        drop(hang);
        assert!(matches!(asked(&proxy, ONE, refused()).await, Error::Broken(_)));
    }
}
