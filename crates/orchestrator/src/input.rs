//! The inputs of the state, and ids for what it makes.

use std::sync::Arc;

use records::AuditDetail;
use serde::{Deserialize, Serialize};
use spec::{LimitsKept, Observation};
use uuid::Uuid;

use crate::command::Command;
use crate::decision::Decision;
use crate::gang::PortsWanted;
use crate::health::Troubles;
use crate::idle::IdleSince;
use crate::set_aside::Culprits;

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
    /// Since when workloads have been idle.
    Idle(IdleSince),
    /// What is the matter with real GPUs.
    Gpus(Troubles),
    /// All runs that the engine has, and which limits it keeps them to: the first thing that a state is
    /// told.
    Engine(Vec<Observation>, LimitsKept),
    /// What the scheduler decided. In documents it is left out: it follows from the inputs before it.
    #[serde(skip)]
    Decided(Box<Decision>),
    /// The scheduler failed; it will be found out on what.
    DecisionFailed,
    /// On what decisions fail.
    Culprits(Culprits),
}

/// Ids that follow from a seed, so that the same inputs make the same things.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids(u128);

impl Ids {
    /// The bits that are random in a UUID of version 7, and not only there to keep an order.
    const RANDOM: u128 = (1 << 62) - 1;

    /// Those that follow a UUID of version 7, which is the first.
    pub(crate) const fn from_seed(seed: Uuid) -> Self {
        Self(seed.as_u128())
    }

    /// The next; the ids of a seed are in the order in which they were made.
    pub(crate) fn next(&mut self) -> Uuid {
        let next = Uuid::from_u128(self.0);
        self.0 = (self.0 & !Self::RANDOM) | (self.0.wrapping_add(1) & Self::RANDOM);
        next
    }
}
