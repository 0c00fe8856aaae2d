//! Looking whether replicas are ready. Owns: one task for each run of a replica, which ends with it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use control::Probe;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::endpoint::Endpoint;
use crate::forward::Proxy;

/// A replica that is not ready yet is looked at so often: somebody may wait for it.
const FIRST_PERIOD: Duration = Duration::from_millis(200);

/// A run of a replica that is looked at.
pub(crate) struct Watched {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) pod: Uuid,
    pub(crate) generation: u32,
    pub(crate) address: SocketAddr,
    pub(crate) probe: Probe,
}

/// Looks as long as it is kept.
#[derive(Debug)]
pub(crate) struct Watch(JoinHandle<()>);

impl Watch {
    pub(crate) fn begin(watched: Watched, proxy: Proxy) -> Self {
        Self(tokio::spawn(watched.look(proxy)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Watched {
    async fn look(self, proxy: Proxy) {
        let probe = &self.probe;
        let period = Duration::from_millis(probe.period_ms);
        let (mut ready, mut good, mut bad) = (false, 0, 0);
        tokio::time::sleep(Duration::from_millis(probe.first_ms)).await;
        loop {
            if self.is_well(&proxy).await {
                (good, bad) = (good + 1, 0);
            } else {
                (good, bad) = (0, bad + 1);
            }
            if good >= probe.successes {
                ready = true;
                // Also after a request found it out of reach in the meantime.
                self.endpoint.set_ready(self.pod, self.generation, true);
            } else if bad >= probe.failures {
                ready = false;
                self.endpoint.set_ready(self.pod, self.generation, false);
            }
            let next = if ready { period } else { period.min(FIRST_PERIOD) };
            tokio::time::sleep(next).await;
        }
    }

    async fn is_well(&self, proxy: &Proxy) -> bool {
        let most = Duration::from_millis(self.probe.wait_ms_max);
        let look = async {
            match &self.probe.path {
                None => TcpStream::connect(self.address).await.is_ok(),
                Some(path) => proxy.is_well(self.address, path).await,
            }
        };
        tokio::time::timeout(most, look).await.unwrap_or(false)
    }
}
