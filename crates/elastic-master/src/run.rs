//! Starting a master: its journal, its port, its thread. Owns: how these come and go together. Does
//! not know about: what a call does.

use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;

use elastic_proto::v1::master_server::MasterServer;
use elastic_proto::{Credentials, CredentialsError};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::server::TcpIncoming;
use units::Instant;

use crate::clock::{Clock, Steady};
use crate::config::Settings;
use crate::desk::{Desk, Handle};
use crate::entry::Entry;
use crate::journal::{Journal, JournalError, Timed};
use crate::outside::Outside;
use crate::service::Service;
use crate::state::{Ended, State};

/// Error that ends a master early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The master has no token.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The master has no journal, or cannot write it any more.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The master cannot listen.
    #[error("cannot listen on {address}: {source}; give another address or port 0")]
    Listen {
        /// Address to listen on.
        address: SocketAddr,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The journal has an entry that the state refuses.
    #[error("entry {number} of the journal is refused: {what}; it is of another build")]
    Entry {
        /// Number of the entry, from 1.
        number: usize,
        /// Error of the state.
        what: String,
    },
    /// The data in the settings cannot be used.
    #[error("{0}")]
    Data(String),
    /// The connection of the server broke.
    #[error("serving failed: {0}")]
    Serve(#[from] tonic::transport::Error),
    /// The thread of the job is gone.
    #[error("the thread of the job ended: {0}")]
    Thread(String),
}

/// A master that has its journal and its port.
pub struct Master {
    settings: Settings,
    credentials: Credentials,
    listener: TcpListener,
    desk: Desk,
    /// Address that it listens on.
    pub address: SocketAddr,
}

/// Serves until the job has ended.
///
/// # Errors
///
/// [`Error`].
pub async fn run(settings: Settings, outside: impl Outside) -> Result<Ended, Error> {
    Master::open(settings, outside).await?.serve().await
}

impl Master {
    /// Reads the journal and takes the port.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub async fn open(settings: Settings, outside: impl Outside) -> Result<Self, Error> {
        Self::with_clock(settings, outside, Steady::new()).await
    }

    /// Starts a master with another clock.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub async fn with_clock(
        settings: Settings,
        outside: impl Outside,
        clock: impl Clock,
    ) -> Result<Self, Error> {
        let credentials = Credentials::read(&settings.token_file)?;
        let (state, journal) = recover(&settings)?;
        let address = settings.listen;
        let listen = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let now = Instant(clock.now_ms()).max(state.at);
        let mut desk = Desk::new((state, journal), (Box::new(clock), Box::new(outside)), now);
        let job = &settings.job;
        if desk.state.job.is_none() && !job.shards.is_empty() {
            let (shards, validation) = (job.shards.clone(), job.validation_shards.clone());
            let data = Entry::Data { shards, validation, settles: job.settles() };
            desk.put(data).map_err(|status| Error::Data(status.message().to_owned()))?;
        }
        Ok(Self { settings, credentials, listener, desk, address })
    }

    /// Serves until the job has ended.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub async fn serve(self) -> Result<Ended, Error> {
        let Self { settings, credentials, listener, desk, .. } = self;
        let (handle, works) = Handle::new();
        let (sender, ended) = oneshot::channel();
        let linger_ms = settings.linger_ms;
        let work = move || drop(sender.send(desk.run(&works, linger_ms)));
        let thread = std::thread::Builder::new().name("elastic-master".to_owned()).spawn(work);
        thread.map_err(|error| Error::Thread(error.to_string()))?;
        let limit = settings.job.message_bytes_max;
        let service = MasterServer::new(Service(handle)).max_decoding_message_size(limit);
        let serving = credentials
            .server()?
            .add_service(InterceptedService::new(service, credentials))
            // The builder's own setting is for listeners of its own.
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)));
        let ended = tokio::select! {
            ended = ended => ended.map_err(|_| Error::Thread("it panicked".to_owned()))?,
            broken = serving => return Err(broken.err().map_or_else(
                || Error::Thread("nothing is served any more".to_owned()),
                Error::Serve,
            )),
        };
        Ok(ended?)
    }
}

/// State that the last master journaled, or that of a job that begins.
fn recover(settings: &Settings) -> Result<(State, Journal), Error> {
    let begin = || {
        // A number that only has to differ from that of any other job.
        let unique = RandomState::new().hash_one(std::process::id());
        let job_id = format!("{}-{unique:016x}", settings.job.name);
        State::new(settings.job.clone(), job_id)
    };
    let (journal, found) =
        Journal::open::<State, Entry>(&settings.journal_dir, settings.journal_sync, begin)?;
    let mut state = found.state;
    if state.config != settings.job {
        return Err(JournalError::OtherJob { path: settings.journal_dir.clone() }.into());
    }
    for (number, Timed { at_ms, entry }) in (1..).zip(found.entries) {
        state.at = Instant(at_ms);
        let applied = state.apply(entry, state.at);
        applied.map_err(|error| Error::Entry { number, what: error.to_string() })?;
    }
    state.replaced.clear();
    Ok((state, journal))
}
