//! The inputs of the state.

use std::sync::Arc;

use crate::command::Command;
use crate::decisions::{Culprits, Decision};
use crate::limits::IdleSince;
use crate::workloads::PortsWanted;
use records::{Archived, AuditDetail};
use serde::{Deserialize, Serialize};
use spec::{LimitsKept, ListedRun, NodeSpec, Observation};
use uuid::Uuid;
use view::GpuFaults;

/// An input of the state, which changes by nothing else but time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Input {
    /// A person or a part of the server asks for something; with where that came from.
    Command(Box<Command>, Arc<AuditDetail>),
    /// What the engine sees of a run.
    Run(Observation),
    /// A volume is gone, or why it is not.
    Volume(String, Option<String>),
    /// Ports that are free, of those wanted.
    Ports(PortsWanted, Vec<u16>),
    /// What is seen of nodes.
    Node(NodeEvent),
    /// Archived workloads that inputs after it have to do with, as the database has them.
    Archived(Archived),
    /// Since when workloads have been idle.
    Idle(IdleSince),
    /// What is the matter with real GPUs.
    Gpus(GpuFaults),
    /// All runs that the engine has, and which limits it keeps them to: the first thing that a
    /// state gets to know.
    Engine(Vec<ListedRun>, LimitsKept),
    /// Pods of deleted workloads of which the engine still has something: a server ended before it
    /// had forgotten them.
    Left(Vec<Uuid>),
    /// What the scheduler decided. In documents it is left out: it follows from the inputs before
    /// it.
    #[serde(skip)]
    Decided(Box<Decision>),
    /// The scheduler failed; it will be found out on what.
    DecisionFailed,
    /// On what decisions fail.
    Culprits(Culprits),
}

/// What is seen of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeEvent {
    /// A node is there as described: a new one, or one of this name that may be different now.
    Applied(NodeSpec),
    /// The node of this name is gone.
    Deleted(String),
    /// These are all nodes: others are gone.
    Listed(Vec<NodeSpec>),
}
