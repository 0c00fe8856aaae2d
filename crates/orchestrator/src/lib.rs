//! The control plane as a state machine: inputs change the state, and what comes of that are effects.
//!
//! ```text
//!  command | observation | plan | time ---> State::apply ---> State::finish ---> rows to write
//!                                                                               views, events, answers
//!                                                                               actions for the engine
//!                                                                               changes for the replica
//! ```
//!
//! Owns: departments, projects, pools, objects, and the life cycle of workloads. Does no I/O, reads no
//! clock, and draws no ids: the time and a seed for ids come with each batch. The same inputs give the
//! same effects.

mod admission;
mod command;
mod commands;
mod config_maps;
mod decision;
mod deleted;
mod effect;
mod ending;
mod error;
mod expiry;
mod gang;
mod health;
mod idle;
mod input;
mod ledger;
mod lifecycle;
mod limits;
mod moment;
mod node;
mod node_constraints;
mod objects;
mod observe;
mod org;
mod persist;
mod phases;
mod places;
mod planned;
mod pools;
mod primary;
mod publish;
mod reasons;
mod recover;
mod redate;
mod revisions;
mod set_aside;
mod shared_map;
mod state;
mod tally;
#[cfg(test)]
mod texts;
mod topologies;
mod update;
mod usage;
pub mod view;
mod volumes;
mod words;

pub use admission::without_place;
pub use command::{Command, OrgChange, Readiness, Record, Subject, Wanted};
pub use config_maps::{CONFIG_MAP_BYTES_MAX, bytes_of, check_config_map, texts_of};
pub use decision::Decision;
pub use deleted::deleted_views;
pub use effect::{Action, Note, Sealed, Start};
pub use error::Error;
pub use gang::PortsWanted;
pub use health::{Trouble, Troubles};
pub use idle::{IdleSince, LOOK_EVERY_MS};
pub use input::Input;
pub use moment::{Moment, Settled, Step};
pub use node::{NodeGpu, NodeSpec};
pub use node_constraints::node_constraints;
pub use objects::{
    Edit, NAMES, NewId, NewObject, Object, Objects, SECRETS, Scope, Shelf, check_name,
};
pub use org::{DEPARTMENT_DEFAULT, SYSTEM};
pub use persist::event_from_row;
pub use pools::{POOL_DEFAULT_ID, PoolChange, PoolSettings, PoolSpec, check_label};
pub use primary::Op;
pub use publish::Batch;
pub use reasons::{FAILED, NOT_READY};
pub use recover::check_nodes;
pub use set_aside::{Culprits, NEVER};
pub use shared_map::SharedMap;
pub use state::{HandedOver, State};
pub use tally::Tally;
pub use topologies::{TOPOLOGY, levels_of, new_topology};
pub use update::WorkloadChange;
pub use volumes::{VOLUME, VOLUME_ENDING, volume_name};
