//! Readiness probes of replicas. Owns: one task for each run of a replica, which ends with it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spec::Probe;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::endpoint::Endpoint;
use crate::proxy::{ProbeFault, Proxy};

/// Maximum time between two probes of a replica that is not ready yet: a request may wait for it.
const FIRST_PERIOD: Duration = Duration::from_millis(200);

/// A run of a replica that is probed.
pub(crate) struct Watched {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) pod: Uuid,
    pub(crate) generation: u32,
    pub(crate) address: SocketAddr,
    pub(crate) probe: Probe,
}

/// A probe task, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    task: JoinHandle<()>,
    fault: Fault,
}

/// Fault of the last probe; `None` if the replica was ready.
type Fault = Arc<Mutex<Option<Unready>>>;

/// A failed probe: where it was sent, and its result.
#[derive(Debug, Clone)]
pub(crate) struct Unready {
    /// Address and path.
    pub(crate) at: String,
    pub(crate) fault: ProbeFault,
}

impl Watch {
    pub(crate) fn begin(watched: Watched, proxy: Proxy) -> Self {
        let fault = Fault::default();
        Self { task: tokio::spawn(watched.look(proxy, fault.clone())), fault }
    }

    /// The last probe, if it failed.
    pub(crate) fn fault(&self) -> Option<Unready> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watched {
    async fn look(self, proxy: Proxy, last: Fault) {
        let probe = &self.probe;
        let period = Duration::from_millis(probe.period_ms);
        let (mut ready, mut good, mut bad) = (false, 0, 0);
        tokio::time::sleep(Duration::from_millis(probe.first_ms)).await;
        loop {
            let fault = self.fault(&proxy).await;
            (good, bad) = match fault {
                None => (good + 1, 0),
                Some(_) => (0, bad + 1),
            };
            *last.lock().unwrap_or_else(PoisonError::into_inner) = fault;
            if good >= probe.successes {
                ready = true;
                // Also after a request failed to reach it in the meantime.
                self.endpoint.set_ready(self.pod, self.generation, true);
            } else if bad >= probe.failures {
                ready = false;
                self.endpoint.set_ready(self.pod, self.generation, false);
            }
            let next = if ready { period } else { period.min(FIRST_PERIOD) };
            tokio::time::sleep(next).await;
        }
    }

    /// Probes once; `None` if the replica is ready.
    async fn fault(&self, proxy: &Proxy) -> Option<Unready> {
        let most = Duration::from_millis(self.probe.wait_ms_max);
        let look = async {
            match &self.probe.path {
                None => match TcpStream::connect(self.address).await {
                    Ok(_) => Ok(()),
                    Err(error) => Err(ProbeFault::Failed(error.to_string())),
                },
                Some(path) => proxy.look(self.address, path).await,
            }
        };
        let late = || ProbeFault::Failed(format!("no answer within {} ms", self.probe.wait_ms_max));
        let looked = tokio::time::timeout(most, look).await.unwrap_or_else(|_| Err(late()));
        let path = self.probe.path.as_deref().unwrap_or_default();
        looked.err().map(|fault| Unready { at: format!("{}{path}", self.address), fault })
    }
}
