//! Owners of pods: the controllers that make them, up to the top one. Owns: the kinds that are read,
//! and the metadata of each owner, read once. Does not know about: the meaning of its labels and
//! annotations.

use std::collections::BTreeMap;
use std::time::Duration;

use kube_api::types::{ObjectMeta, OwnerReference, Pod};
use kube_api::{Client, Reason};

use crate::pod::inherit;

/// Kinds that are read: API group, kind, and the kind in paths.
pub(crate) const KINDS: [(&str, &str, &str); 4] = [
    ("apps", "Deployment", "deployments"),
    ("apps", "ReplicaSet", "replicasets"),
    ("apps", "StatefulSet", "statefulsets"),
    ("batch", "Job", "jobs"),
];
/// Maximum number of owners of a pod, one above the other.
const DEPTH_MAX: usize = 10;
/// Maximum number of owners in memory; beyond it all are read again.
const KNOWN_MAX: usize = 10_000;
/// Wait after an owner could not be read.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Owners of pods, by uid.
#[derive(Debug)]
pub(crate) struct Owners {
    client: Client,
    /// `None` for one that does not exist, or cannot be read.
    known: BTreeMap<String, Option<ObjectMeta>>,
}

impl Owners {
    pub(crate) const fn new(client: Client) -> Self {
        Self { client, known: BTreeMap::new() }
    }

    /// Gives a pod the settings of its owners. Without an answer of the API server this waits: a
    /// gang must not be placed as single pods.
    pub(crate) async fn add_to(&mut self, pod: &mut Pod) {
        let namespace = pod.metadata.namespace.clone();
        let mut next = pod.metadata.controller().cloned();
        for _ in 0..DEPTH_MAX {
            let Some(owner) = next else { return };
            let Some(meta) = self.owner(&namespace, &owner).await else { return };
            inherit(&mut pod.metadata, meta);
            next = meta.controller().cloned();
        }
    }

    async fn owner(&mut self, namespace: &str, owner: &OwnerReference) -> Option<&ObjectMeta> {
        let plural = plural_of(owner)?;
        if !self.known.contains_key(&owner.uid) {
            let found = self.read(namespace, owner, plural).await;
            if self.known.len() >= KNOWN_MAX {
                self.known.clear();
            }
            self.known.insert(owner.uid.clone(), found);
        }
        self.known.get(&owner.uid)?.as_ref()
    }

    async fn read(
        &self,
        namespace: &str,
        owner: &OwnerReference,
        plural: &str,
    ) -> Option<ObjectMeta> {
        let OwnerReference { kind, name, .. } = owner;
        loop {
            match self.client.owner(namespace, owner, plural).await {
                Ok(found) => return Some(found).filter(|found| found.uid == owner.uid),
                Err(error) if error.reason() == Some(&Reason::NotFound) => return None,
                Err(error) if error.is_transient() => {
                    tracing::warn!("{kind} {namespace}/{name} is not read now: {error}");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
                Err(error) => {
                    tracing::warn!(
                        "annotations of {kind} {namespace}/{name} do not count: {error}"
                    );
                    return None;
                }
            }
        }
    }
}

/// The kind of an owner in paths; `None` if it is not read.
fn plural_of(owner: &OwnerReference) -> Option<&'static str> {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let mut kinds = KINDS.iter();
    kinds.find(|(of, kind, _)| (*of, *kind) == (group, &owner.kind)).map(|(_, _, plural)| *plural)
}
