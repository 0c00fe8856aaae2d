//! Rates of writes that only inform. Owns: their text, and the writes that a rate allows.

use std::str::FromStr;
use std::time::{Duration, Instant};

/// Maximum number of writes a second.
const PER_SECOND_MAX: u32 = 1000;
const SECOND: Duration = Duration::from_secs(1);

/// A rate: none, a number of writes a second, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// At most this many a second; 0 for none.
    PerSecond(u32),
    /// Every write.
    All,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(number) if number <= PER_SECOND_MAX => Ok(Self::PerSecond(number)),
            _ if text == "all" => Ok(Self::All),
            _ => Err(format!(
                "`{}` is not a rate; write a number a second from 0 to {PER_SECOND_MAX}, or all",
                units::shown(text)
            )),
        }
    }
}

impl Rate {
    /// Time between two writes; `None` if there are none.
    pub(crate) fn pause(self) -> Option<Duration> {
        match self {
            Self::PerSecond(0) => None,
            Self::PerSecond(number) => Some(SECOND / number),
            Self::All => Some(Duration::ZERO),
        }
    }
}

/// Limits of the writes to a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Writes {
    /// Maximum number of bindings in flight.
    pub binds_max: usize,
    /// Conditions of pods that wait. Those beyond it are written later, the newest first.
    pub conditions: Rate,
    /// Events of pods that are bound. Those beyond it are left out.
    pub events: Rate,
}

/// Writes that a rate allows: those beyond it are left out.
#[derive(Debug)]
pub(crate) struct Allowance {
    rate: Rate,
    /// Begin of the present second, and the number of writes in it.
    second: Option<(Instant, u32)>,
}

impl Allowance {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate, second: None }
    }

    /// True if a write is allowed at this time, which counts it.
    pub(crate) fn takes(&mut self, now: Instant) -> bool {
        let Rate::PerSecond(most) = self.rate else { return true };
        let present = self.second.filter(|(began, _)| now.duration_since(*began) < SECOND);
        let (began, count) = present.unwrap_or((now, 0));
        let takes = count < most;
        self.second = Some((began, count + u32::from(takes)));
        takes
    }
}
