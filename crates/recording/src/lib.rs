//! Recordings: the inputs and the outcomes of the control plane, in a file that can be replayed.
//!
//! ```text
//!  base | batch ---> Writer ---> segments on disk ---> one file ---> Replay ---> the same again,
//!                    (thread)    (bounded)                                       or the difference
//! ```
//!
//! Owns: the format, the ring of segments, the secrets that are left out, and the replay. Does not
//! know about: the source of the inputs, and the caller of a replay.

mod line;
mod machine;
mod outcome;
mod replay;
mod ring;
mod secrets;
mod writer;

pub use line::{Base, Fault, RELEASE};
pub use machine::Machine;
pub use outcome::BatchOutcome;
pub use replay::{Outcome, Played, Replay};
pub use ring::{FOLDER, Saved, save};
pub use writer::{Taken, Writer};
