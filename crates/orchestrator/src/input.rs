//! The inputs of the state.

use std::sync::Arc;

use command::Command;

use crate::decisions::{Culprits, Decision};
use crate::limits::IdleSince;
use crate::workloads::PortsWanted;
use records::{Archived, AuditDetail};
use serde::{Deserialize, Serialize};
use spec::{FeedChange, FeedListing, LimitsKept, ListedRun, NodeSpec, Observation};
use uuid::Uuid;
use view::GpuFaults;

/// An input of the state, which changes only by inputs and time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Input {
    /// A request of a user or of a part of the server, with its origin.
    Command(Box<Command>, Arc<AuditDetail>),
    /// Observation of the engine about a run.
    Run(Observation),
    /// Deletion of the volume of this name, or its error.
    Volume(String, Option<String>),
    /// Free ports among the requested ones.
    Ports(PortsWanted, Vec<u16>),
    /// Observation of nodes.
    Node(NodeEvent),
    /// All nodes and pods of a feed: the first input of a state with one.
    Listed(FeedListing),
    /// Change that a feed reports.
    Changed(FeedChange),
    /// Archived workloads that following inputs need, as the database has them.
    Archived(Archived),
    /// Start of the idle time of workloads.
    Idle(IdleSince),
    /// Faults of real GPUs.
    Gpus(GpuFaults),
    /// All runs of the engine, and the limits that it enforces: the first input of a state.
    Engine(Vec<ListedRun>, LimitsKept),
    /// Pods of deleted workloads that the engine still has: a server ended before it had forgotten
    /// them.
    Left(Vec<Uuid>),
    /// Decision of the scheduler. Documents leave it out: it follows from the inputs before it.
    #[serde(skip)]
    Decided(Box<Decision>),
    /// Failure of the scheduler; its cause is being determined.
    DecisionFailed,
    /// Workloads on which decisions fail.
    Culprits(Culprits),
}

/// Observation of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeEvent {
    /// A node exists with this specification: a new one, or one of this name that may have changed.
    Applied(NodeSpec),
    /// The node of this name no longer exists.
    Deleted(String),
    /// All nodes: others no longer exist.
    Listed(Vec<NodeSpec>),
}
