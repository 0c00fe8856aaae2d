//! Elastic training: which worker trains which records, and the effect of workers that join, leave
//! and die.
//!
//! ```text
//!   Job: one state machine of all this; its inputs are the journal of a master
//!
//!  plan --> ledger <-- tasks asked for, finished, handed back, lost --- workers
//!             |                                                            |
//!             |  cut (what a checkpoint contains)                          |  pushes
//!             v                                                            v
//!         evaluation           rendezvous, resize              gate (versions of the model)
//! ```
//!
//! Owns: the ledger of data, membership, the steps of a resize, the choice of updates that count,
//! the collecting of evaluations, priorities of workers. Does not know about: sockets, files,
//! clocks, tensors, or the processes of workers.
//!
//! The guarantee: a worker that hands its work back loses nothing and repeats nothing; a killed
//! worker repeats at most the records it had not reported; a model that is restored from a
//! checkpoint is trained again on exactly the records that are not in that checkpoint.

mod evaluation;
mod gate;
mod job;
mod ledger;
mod order;
mod plan;
mod priorities;
mod rendezvous;
mod resize;
mod task;

pub use evaluation::{Evaluated, Evaluations};
pub use gate::{Gate, Mode, Push, Verdict};
pub use job::{Effect, Input, Job, Refused, Training, TrainingError};
pub use ledger::{Answer, Cut, Ledger, LedgerError, Limits, Outcome, Progress};
pub use order::Permutation;
pub use plan::{Epochs, Order, Plan, PlanError, Shard};
pub use priorities::{High, PriorityError};
pub use rendezvous::{Rendezvous, RendezvousError, World, WorldLimits};
pub use resize::{Resize, ResizeStep};
pub use task::{Kind, Measure, Records, Task, TaskId, WorkerId};
