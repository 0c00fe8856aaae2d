//! Starting a server. Owns: the listener, and ending when the job has ended. Does not know about:
//! what is served.

use std::net::SocketAddr;
use std::sync::Arc;

use elastic_proto::v1::parameter_server_server::ParameterServerServer;
use elastic_proto::{Credentials, WINDOW_BYTES};
use tokio::net::TcpListener;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::server::TcpIncoming;

use crate::checkpoint;
use crate::server::Connected;
use crate::service::Service;
use crate::{Error, Pushes, Settings, orders};

/// A server that has its port.
pub struct Server {
    settings: Settings,
    credentials: Credentials,
    listener: TcpListener,
    /// Address that it listens on.
    pub address: SocketAddr,
}

/// Serves until the job has ended.
///
/// # Errors
///
/// [`Error`].
pub async fn run(settings: Settings) -> Result<Pushes, Error> {
    run_until(settings, std::future::pending()).await
}

/// Serves until the job has ended, or it has to stop: then what waits becomes an update, and the
/// model a checkpoint. The caller bounds how long that may take.
///
/// # Errors
///
/// [`Error`].
pub async fn run_until(
    settings: Settings,
    stop: impl Future<Output = ()>,
) -> Result<Pushes, Error> {
    Server::bind(settings).await?.serve(stop).await
}

impl Server {
    /// Takes the port.
    ///
    /// # Errors
    ///
    /// [`Error`], if the settings are wrong or the port is taken.
    pub async fn bind(settings: Settings) -> Result<Self, Error> {
        let (index, servers, address) = (settings.index, settings.servers, settings.listen);
        if index >= servers {
            return Err(Error::Index { index, servers });
        }
        let credentials = Credentials::read(&settings.token_file)?;
        settings.checkpoint_dir.iter().chain(&settings.init_dir).try_for_each(checkpoint::check)?;
        let listen = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        Ok(Self { settings, credentials, listener, address })
    }

    /// Serves until the job has ended, or it has to stop; see [`run_until`].
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<Pushes, Error> {
        let Self { settings, credentials, listener, address } = self;
        let limit = settings.message_bytes_max;
        let advertised = match &settings.advertise {
            None => address.to_string(),
            Some(host) if host.contains(':') => host.clone(),
            Some(host) => format!("{host}:{}", address.port()),
        };
        let serving = credentials.server()?;
        let server = Arc::new(Connected::new(settings, credentials.clone())?);
        let service = ParameterServerServer::new(Service(Arc::clone(&server)))
            .max_decoding_message_size(limit)
            .max_encoding_message_size(limit);
        let serving = serving
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .add_service(InterceptedService::new(service, credentials))
            // The builder's own setting is for listeners of its own.
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)));
        let (stopped, counted) = (Arc::clone(&server), Arc::clone(&server));
        let introduction = orders::introduction(&server, advertised);
        let ended = async {
            tokio::select! {
                ended = orders::follow(server, introduction.clone()) => ended,
                () = stop => {
                    stopped.finish().await.map_err(Error::Unsaved)?;
                    if stopped.leads() {
                        orders::say_saved(&stopped, introduction).await;
                    }
                    Ok(())
                }
            }
        };
        tokio::select! {
            ended = ended => ended?,
            broken = serving => broken?,
        }
        Ok(counted.pushes())
    }
}
