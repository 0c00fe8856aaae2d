//! The control plane as a state machine: inputs change the state, and produce effects.
//!
//! ```text
//!  command | observation | plan | time ---> State::apply ---> State::finish ---> rows to write,
//!                                         view, events, answers, actions for the engine, and
//!                                         changes for the scheduler's replica
//! ```
//!
//! Owns: departments, projects, pools, objects, and the life cycle of workloads. Does no I/O, reads
//! no clock, and generates no random ids: the time and a seed for ids come with each batch. Equal
//! inputs give equal effects.

mod adopted;
mod batch;
mod commands;
mod decisions;
mod deleted;
mod documents;
mod effect;
mod emit;
mod input;
mod ledger;
mod limits;
mod node_list;
mod nodes;
mod org;
mod pools;
mod recover;
mod settings;
mod state;
#[cfg(test)]
mod texts;
mod view_builder;
mod workloads;

pub use batch::Batch;
pub use command::{
    Command, Edit, NewId, NewObject, NodeChange, OrgChange, PoolChange, Readiness, Record, Subject,
    Wanted, WorkloadChange, check_name,
};
pub use decisions::{Culprits, Decision, HandedOver, NEVER};
pub use deleted::{archived_views, deleted_views};
pub use documents::{
    CONFIG_MAP_BYTES_MAX, VOLUME, VOLUME_ENDING, bytes_of, check_config_map, texts_of, volume_name,
};
pub use effect::{Action, Note, Sealed, Start, Tally};
pub use input::{Input, NodeEvent};
pub use limits::{IdleSince, MEASURE_EVERY_MS};
pub use node_list::NodeList;
pub use org::{DEPARTMENT_DEFAULT, SYSTEM};
pub use pools::{POOL_DEFAULT_ID, check_label, levels_of, new_topology};
pub use records::{Moment, STEP_MS_MIN, Settled, Step, settle};
pub use recover::{StoredState, check_nodes};
pub use settings::{ENDED_KEPT, PLACES_KEPT_MS_MAX, Settings};
pub use spec::RequestError as Error;
pub use state::State;
pub use workloads::{PortsWanted, leave_out_archived};
