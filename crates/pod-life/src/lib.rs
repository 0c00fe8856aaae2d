//! The life of a pod between its first wait for a place and its end. Owns: its states, the inputs
//! that change them, and the one transition function. Does not know about: the place itself, which
//! the model has; the choice between a pause, another place and the end after an exit, which is the
//! restart policy's; engines and stored rows.

mod exit;
mod fault;
mod input;
mod life;
mod step;

pub use exit::in_words;
pub use fault::{Fault, FaultCause};
pub use input::Input;
pub use life::{Ended, Life};
pub use step::{Effect, Step};
