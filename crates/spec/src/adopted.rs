//! Adopted pods: pods of a cluster with an API of its own, which decides about their existence. This
//! server only places, evicts and explains them. Owns: the types of the feed that reports them.
//! Does not know about: projects, and the state of the server.

use serde::{Deserialize, Serialize};
use units::Instant;
use uuid::Uuid;

use crate::{NodeSpec, Place};

/// An adopted pod, as its cluster has it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptedPod {
    /// Id that no other pod ever has.
    pub uid: Uuid,
    /// Its namespace.
    pub namespace: String,
    /// Its name, unique in the namespace.
    pub name: String,
    /// Creation time.
    pub created_at: Instant,
    /// Kind and name of the controller that replaces it; `None` without one.
    pub owner: Option<(String, String)>,
    /// True if this server has to place it.
    pub is_ours: bool,
    /// The project that a label names, with the key of the label.
    pub project: Option<(String, String)>,
    /// Number of GPUs.
    pub gpus: u32,
    /// CPU request, thousandths of a core.
    pub cpu_millis: u64,
    /// Memory request, bytes.
    pub memory_bytes: u64,
    /// Constraints on its node.
    pub place: Place,
    /// Name of its priority class; empty without one.
    pub priority_class: String,
    /// True if it may be evicted for others; `None` if its priority class decides.
    pub preemptible: Option<bool>,
    /// Pods that it starts together with; `None` if it starts by itself.
    #[serde(default)]
    pub gang: Option<AdoptedGang>,
    /// Gates that keep it from being placed.
    pub gates: Vec<String>,
    /// Part of its specification that is not supported: it is not placed.
    pub hold: Option<Hold>,
    /// Node that it is bound to.
    pub node: Option<String>,
    /// Reason for which its cluster refuses to evict it now; `None` if it was not asked, or not for
    /// a while.
    #[serde(default)]
    pub protected: Option<String>,
    /// Its state.
    pub phase: AdoptedPhase,
    /// Start of its containers, as far as it is known.
    #[serde(default)]
    pub started_at: Option<Instant>,
    /// True if its deletion has begun.
    pub deleting: bool,
    /// Time between the request to end and the kill, milliseconds.
    pub grace_ms: u64,
}

impl AdoptedPod {
    /// `NAMESPACE/NAME`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// True if it is bound to a node and has not ended: it holds its requests there.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.node.is_some() && !self.phase.is_over()
    }
}

/// Adopted pods that start together, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptedGang {
    /// Id of the gang, the same in each of its pods.
    pub id: Uuid,
    /// Kind and name of its owner, such as `job.train`.
    pub name: String,
    /// Number of pods that start together.
    pub pods_min: u32,
}

/// A part of the specification of a pod that is not supported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Path of the field, such as `spec.volumes[0].nfs`.
    pub field: String,
    /// The cause, as a phrase after the field.
    pub why: String,
}

/// State of an adopted pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AdoptedPhase {
    /// No container has started.
    Pending,
    /// A container runs, or restarts.
    Running,
    /// All containers have ended with success.
    Succeeded,
    /// A container has failed, and none is restarted.
    Failed,
}

impl AdoptedPhase {
    /// True if no container will run any more.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// Everything that a feed knows, after a full listing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedListing {
    /// All nodes.
    pub nodes: Vec<NodeSpec>,
    /// All pods that this server has to place, or that are bound to a node.
    pub pods: Vec<AdoptedPod>,
}

/// A change after the listing: the newest state of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FeedChange {
    /// A node exists in this state.
    Node(NodeSpec),
    /// The node of this name no longer exists.
    NodeGone(String),
    /// A pod exists in this state.
    Pod(Box<AdoptedPod>),
    /// The pod with this uid no longer exists.
    PodGone(Uuid),
}

/// An operation on an adopted pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FeedVerb {
    /// Binds it to the node of this name.
    Bind {
        /// Name of the node.
        node: String,
    },
    /// Evicts it with its grace period.
    Evict,
    /// Publishes why it is not placed.
    Report(PlacementReport),
    /// Publishes the node on which room is kept for it; `None` for none any more.
    Nominate(Option<String>),
}

/// The reason why an adopted pod is not placed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementReport {
    /// Code of the reason.
    pub code: String,
    /// The sentence.
    pub message: String,
}

/// Outcome of an operation on an adopted pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedOutcome {
    /// It is done, or was done before.
    Done,
    /// The pod is in another state than expected, such as bound to another node.
    Conflict(String),
    /// There is no such pod any more.
    Gone,
    /// The cluster refuses it, for this reason.
    Refused(String),
    /// It is not possible now, for this reason; trying again may help.
    Later(String),
    /// It may be done, for the answer is lost, for this reason; asking again tells.
    Unknown(String),
}
