//! What can be the matter with a GPU.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use sched::Code;
use spec::Stranger;
use units::format_bytes;

use crate::reasons::{GPU_LOST, GPU_TAKEN};

/// What is the matter with a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// It does not work, and why.
    Lost(String),
    /// Processes of no run hold memory of it, by process id.
    Taken(BTreeMap<u32, Stranger>),
}

/// What is the matter with real GPUs, by what the driver calls them.
pub type Troubles = Arc<BTreeMap<String, Trouble>>;

impl Trouble {
    /// Its code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Lost(_) => GPU_LOST,
            Self::Taken(_) => GPU_TAKEN,
        }
    }

    /// Whether it does not work any more.
    #[must_use]
    pub const fn is_loss(&self) -> bool {
        matches!(self, Self::Lost(_))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(why) => write!(f, "lost: {why}"),
            Self::Taken(strangers) => {
                let one = |(pid, stranger): (&u32, &Stranger)| {
                    let Stranger { name, user, memory_bytes } = stranger;
                    format!("{name} of {user} (process {pid}, {})", format_bytes(*memory_bytes))
                };
                let all: Vec<_> = strangers.iter().map(one).collect();
                write!(f, "used by strangers: {}", all.join(", "))
            }
        }
    }
}
