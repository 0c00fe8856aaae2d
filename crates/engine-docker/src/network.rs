//! Networks of containers. Owns: one of each server for all that work alone, in which none reaches another,
//! and one for each gang, in which pods have names. A gang's goes with its last container, the other when the server
//! is taken down.

use bollard::models::NetworkCreateRequest;
use engine::{Error, RunSpec};
use uuid::Uuid;

use crate::daemon::Daemon;
use crate::open::Shared;
use crate::owner::Owner;
use crate::{failed, status, unless};

/// Keeps containers of a network from each other; Docker's own word.
const NO_NEIGHBOURS: &str = "com.docker.network.bridge.enable_icc";

/// The network of a run. No two servers have one of the same name: daemons make both.
pub(crate) fn name(spec: &RunSpec, owner: &Owner) -> String {
    match &spec.gang {
        Some(_) => gangs(spec.workload_id),
        None => alone(owner),
    }
}

fn gangs(workload_id: Uuid) -> String {
    format!("elastane-{workload_id}")
}

/// The network of all that work alone.
fn alone(owner: &Owner) -> String {
    format!("elastane-{}", owner.name())
}

/// Makes a network, unless it is there. Calls for one name must not cross.
pub(crate) async fn make(daemon: &Daemon, name: &str, owner: &Owner) -> Result<(), Error> {
    match daemon.docker.inspect_network(name, None).await {
        Ok(_) => return Ok(()),
        Err(fault) if status(&fault) == Some(404) => {}
        Err(fault) => return Err(failed(format!("look for the network {name}"), fault)),
    }
    let apart = name == alone(owner) && !daemon.facts.podman;
    let wanted = NetworkCreateRequest {
        name: name.to_owned(),
        driver: Some("bridge".to_owned()),
        options: apart.then(|| [(NO_NEIGHBOURS.to_owned(), "false".to_owned())].into()),
        labels: Some(owner.labels().into()),
        ..NetworkCreateRequest::default()
    };
    let made = daemon.docker.create_network(wanted).await;
    made.map(drop).map_err(|fault| failed(format!("make the network {name}"), fault))
}

/// Takes the network of a gang away, unless a container is in it. A workload that is none has none.
pub(crate) async fn discard(shared: &Shared, workload_id: Uuid) -> Result<(), Error> {
    remove(shared, gangs(workload_id)).await
}

/// Takes the network of those that work alone away, unless a container is in it.
pub(crate) async fn discard_own(shared: &Shared) -> Result<(), Error> {
    remove(shared, alone(&shared.owner)).await
}

async fn remove(shared: &Shared, name: String) -> Result<(), Error> {
    let _turn = shared.networks.take(name.clone()).await;
    let gone = unless(shared.daemon.docker.remove_network(&name).await, &[403, 404, 409]);
    gone.map_err(|fault| failed(format!("remove the network {name}"), fault))
}
