//! Networks of containers. Owns: one of each server for pods without a gang, in which containers
//! cannot reach each other, and one for each gang, in which pods have names. A gang's network is
//! removed with its last container, the server's when the server is removed.

use std::io;

use bollard::errors::Error as Fault;
use bollard::models::NetworkCreateRequest;
use engine::{Error, RunSpec};
use uuid::Uuid;

use crate::daemon::Daemon;
use crate::owner::Owner;
use crate::shared::DockerEngineState;
use crate::{failed, status, unless};

/// Isolates containers of a network from each other (Docker's option).
const ENABLE_ICC: &str = "com.docker.network.bridge.enable_icc";

/// Part of Docker's error message when all its address ranges are in use.
const NO_ADDRESSES: &str = "address pool";
const ADVICE: &str = "remove networks without containers with `docker network prune`, or give the \
                      daemon more addresses with `default-address-pools` in its daemon.json";

/// The network of a run. Names are unique across servers, which may share a daemon.
pub(crate) fn name(spec: &RunSpec, owner: &Owner) -> String {
    match &spec.gang {
        Some(_) => gangs(spec.workload_id),
        None => alone(owner),
    }
}

fn gangs(workload_id: Uuid) -> String {
    format!("elastane-{workload_id}")
}

/// The network of pods without a gang.
fn alone(owner: &Owner) -> String {
    format!("elastane-{}", owner.name())
}

/// Creates a network if it does not exist. Calls for one name must not overlap.
pub(crate) async fn make(daemon: &Daemon, name: &str, owner: &Owner) -> Result<(), Error> {
    match daemon.docker.inspect_network(name, None).await {
        Ok(_) => return Ok(()),
        Err(fault) if status(&fault) == Some(404) => {}
        Err(fault) => return Err(failed(format!("find the network {name}"), fault)),
    }
    let apart = name == alone(owner) && !daemon.facts.podman;
    let wanted = NetworkCreateRequest {
        name: name.to_owned(),
        driver: Some("bridge".to_owned()),
        options: apart.then(|| [(ENABLE_ICC.to_owned(), "false".to_owned())].into()),
        labels: Some(owner.labels().into()),
        ..NetworkCreateRequest::default()
    };
    let made = daemon.docker.create_network(wanted).await;
    let what = format!("make the network {name}");
    made.map(drop).map_err(|fault| match fault {
        Fault::DockerResponseServerError { message, .. } if message.contains(NO_ADDRESSES) => {
            Error::Io { what, source: io::Error::other(format!("{message}; {ADVICE}")) }
        }
        fault => failed(what, fault),
    })
}

/// Removes the network of a gang, unless a container is in it.
pub(crate) async fn discard(shared: &DockerEngineState, workload_id: Uuid) -> Result<(), Error> {
    remove(shared, gangs(workload_id)).await
}

/// Removes the network of pods without a gang, unless a container is in it.
pub(crate) async fn discard_own(shared: &DockerEngineState) -> Result<(), Error> {
    remove(shared, alone(&shared.owner)).await
}

async fn remove(shared: &DockerEngineState, name: String) -> Result<(), Error> {
    let _turn = shared.networks.take(name.clone()).await;
    let gone = unless(shared.daemon.docker.remove_network(&name).await, &[403, 404, 409]);
    gone.map_err(|fault| failed(format!("remove the network {name}"), fault))
}
