//! A server and what it is connected with: its state, the master, the other servers. Owns: these,
//! and repeating calls to them until they succeed. Does not know about: what is called.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use elastic_proto::v1::master_client::MasterClient;
use elastic_proto::v1::parameter_server_client::ParameterServerClient;
use elastic_proto::v1::{CheckpointBody, CheckpointHeader};
use elastic_proto::{Credentials, Sign};
use tokio::sync::{Mutex, watch};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Response, Status};

use crate::checkpoint::{self, CheckpointError};
use crate::core::{Core, Refused};
use crate::model::{ModelError, Place};
use crate::{Error, Pushes, Settings};

pub(crate) type Signed = InterceptedService<Channel, Sign>;
pub(crate) type Master = MasterClient<Signed>;
pub(crate) type Peer = ParameterServerClient<Signed>;

/// Between two attempts at a call.
const AGAIN: Duration = Duration::from_millis(100);

/// Numbers for people.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub accepted: AtomicU64,
    pub rejected: AtomicU64,
    pub duplicates: AtomicU64,
    pub bytes_received: AtomicU64,
    pub bytes_sent: AtomicU64,
    pub checkpoint: AtomicU64,
    /// Records whose gradients are in the model.
    pub applied: AtomicU64,
}

pub(crate) struct Connected {
    pub settings: Settings,
    pub credentials: Credentials,
    pub master: Master,
    pub core: Mutex<Core>,
    /// The other servers, from 1, for the leader; fewer while not all are there.
    pub peers: std::sync::Mutex<Vec<(String, Peer)>>,
    /// Rises when a pull that waits may succeed.
    pub changed: watch::Sender<u64>,
    /// The model generation that the master wants; work for another is given up.
    pub wanted: watch::Sender<u64>,
    /// Held while a file of a checkpoint is written.
    pub writer: Arc<Mutex<()>>,
    /// Checkpoints of the job that this server writes and keeps.
    pub checkpoints: std::sync::Mutex<Checkpoints>,
    pub counts: Counts,
}

/// Checkpoints of this job, as far as this server knows them.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    pub job_id: String,
    /// True while one is being written.
    pub writing: bool,
    /// Versions of which this server has its file, oldest first.
    pub kept: Vec<u64>,
    /// Servers other than the leader: the checkpoint that was taken and not written yet.
    pub taken: Option<(CheckpointHeader, CheckpointBody)>,
}

impl Connected {
    pub(crate) fn new(settings: Settings, credentials: Credentials) -> Result<Self, Error> {
        let wrong = || Error::Master { master: settings.master.clone() };
        let channel = channel(&credentials, &settings.master).ok_or_else(wrong)?;
        let master = MasterClient::with_interceptor(channel, credentials.sign())
            .max_decoding_message_size(settings.message_bytes_max);
        Ok(Self {
            settings,
            credentials,
            master,
            core: Mutex::new(Core::closed()),
            peers: std::sync::Mutex::default(),
            changed: watch::Sender::new(0),
            wanted: watch::Sender::new(0),
            writer: Arc::default(),
            checkpoints: std::sync::Mutex::default(),
            counts: Counts::default(),
        })
    }

    pub(crate) fn place(&self) -> Place {
        (self.settings.index, self.settings.servers)
    }

    pub(crate) fn leads(&self) -> bool {
        self.settings.index == 0
    }

    pub(crate) fn notify(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// The servers that have these addresses, the first one left out.
    pub(crate) fn know_peers(&self, addresses: &[String]) {
        let mut peers = lock(&self.peers);
        let known = peers.iter().map(|(address, _)| address);
        if !self.leads() || known.eq(addresses.iter().skip(1)) {
            return;
        }
        let peer = |address: &String| {
            // An address that is none cannot be called: pushes wait until the server registers
            // again.
            let channel = channel(&self.credentials, address)?;
            let peer = ParameterServerClient::with_interceptor(channel, self.credentials.sign())
                .max_decoding_message_size(self.settings.message_bytes_max);
            Some((address.clone(), peer))
        };
        *peers = addresses.iter().skip(1).filter_map(peer).collect();
    }

    /// All other servers.
    pub(crate) fn all_peers(&self) -> Result<Vec<Peer>, Status> {
        let peers: Vec<_> = lock(&self.peers).iter().map(|(_, peer)| peer.clone()).collect();
        let missing = "other parameter servers are not there yet; repeat the call";
        let all = peers.len() + 1 == self.settings.servers as usize;
        if all { Ok(peers) } else { Err(Status::unavailable(missing)) }
    }

    /// Repeats a call until it succeeds, as long as its generation is wanted.
    pub(crate) async fn insist<T, F>(
        &self,
        generation: u64,
        call: impl Fn() -> F,
    ) -> Result<T, Status>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let mut wanted = self.wanted.subscribe();
        loop {
            if *wanted.borrow_and_update() != generation {
                return Err(Status::unavailable("the model goes back to a checkpoint; try again"));
            }
            let attempt = async {
                let result = call().await;
                if let Err(status) = &result {
                    tracing::debug!(%status, "a call to another part of the job is repeated");
                    tokio::time::sleep(AGAIN).await;
                }
                result
            };
            tokio::select! {
                result = attempt => if let Ok(reply) = result { return Ok(reply.into_inner()) },
                _ = wanted.changed() => {}
            }
        }
    }

    /// Writes the part of this server, to the end although the caller is gone.
    pub(crate) async fn write(
        &self,
        header: CheckpointHeader,
        body: CheckpointBody,
    ) -> Result<(), String> {
        let version = header.version;
        let none = || CheckpointError::NoFolder { version }.to_string();
        let root = self.settings.checkpoint_dir.clone().ok_or_else(none)?;
        let writes = Arc::clone(&self.writer).lock_owned().await;
        let written = tokio::task::spawn_blocking(move || {
            let _writes = writes;
            checkpoint::write(&root, &header, &body)
        });
        let written = written.await.map_err(|error| error.to_string())?;
        written.map_err(|error| error.to_string())
    }

    /// Removes what the leader does not go back to any more, in a folder that may not be the
    /// leader's.
    pub(crate) async fn keep_from(&self, oldest: u64, written: u64) -> Result<(), String> {
        let mut kept = std::mem::take(&mut lock(&self.checkpoints).kept);
        kept.push(written);
        let removed: Vec<u64> = kept.extract_if(.., |version| *version < oldest).collect();
        lock(&self.checkpoints).kept = kept;
        self.remove(removed, vec![self.place()]).await
    }

    /// Removes the files of these places, of each of these versions.
    pub(crate) async fn remove(
        &self,
        versions: Vec<u64>,
        places: Vec<Place>,
    ) -> Result<(), String> {
        let root = self.settings.checkpoint_dir.clone().unwrap_or_default();
        let removed = tokio::task::spawn_blocking(move || {
            let all = versions.into_iter().flat_map(|of| places.iter().map(move |at| (of, *at)));
            let mut all = all.collect::<Vec<_>>().into_iter();
            all.try_for_each(|(version, place)| checkpoint::remove(&root, version, place))
        });
        let removed = removed.await.map_err(|error| error.to_string())?;
        removed.map_err(|error| error.to_string())
    }

    pub(crate) fn count(&self, counter: impl Fn(&Counts) -> &AtomicU64, add: u64) {
        counter(&self.counts).fetch_add(add, Ordering::Relaxed);
    }

    pub(crate) fn pushes(&self) -> Pushes {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counts { accepted, rejected, .. } = &self.counts;
        Pushes { accepted: of(accepted), rejected: of(rejected) }
    }
}

/// A connection that is made when it is first used, and again when it breaks.
fn channel(credentials: &Credentials, address: &str) -> Option<Channel> {
    let endpoint = credentials
        .endpoint(address)?
        .connect_timeout(Duration::from_secs(5))
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(Duration::from_secs(20))
        .initial_stream_window_size(elastic_proto::WINDOW_BYTES)
        .initial_connection_window_size(elastic_proto::WINDOW_BYTES)
        .tcp_nodelay(true);
    Some(endpoint.connect_lazy())
}

/// Locks data that no panic leaves inconsistent: each holder changes one value.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        let text = refused.to_string();
        match refused {
            Refused::Closed | Refused::NotStaged { .. } | Refused::Order { .. } => {
                Self::unavailable(text)
            }
            Refused::Generation { .. } | Refused::Gone(_) | Refused::NoModel => {
                Self::failed_precondition(text)
            }
        }
    }
}

impl From<ModelError> for Status {
    fn from(error: ModelError) -> Self {
        Self::invalid_argument(error.to_string())
    }
}
