//! Recordings: what went into the control plane and what came of it, as a file that plays the same
//! again.
//!
//! ```text
//!  base | batch ---> Writer ---> segments on disk ---> one file ---> Replay ---> the same again,
//!                    (thread)    (bounded)                                       or the difference
//! ```
//!
//! Owns: the format, the ring of segments, what is left out of them, and playing them. Does not
//! know where inputs come from, nor what asks for a replay.

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
