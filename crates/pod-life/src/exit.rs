//! The end of a run, in words.

use spec::{Exit, Limits};
use units::format_bytes;

/// End of a run with these limits, in words for users.
#[must_use]
pub fn in_words(exit: &Exit, limits: Limits) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
        Exit::CannotRun(why) => format!("could not be started: {why}"),
        Exit::NotStarted(why) => format!("could not be started now: {why}"),
        Exit::NotKept(why) => {
            format!("could not be started: its part of the GPU would not be kept: {why}")
        }
        Exit::OutOfMemory => {
            let most = limits.memory_bytes_max.map(|most| format!(" of {}", format_bytes(most)));
            format!(
                "out of memory: killed because it had more than its limit{}; submit it again with a \
                 larger one (--memory-limit, --cpu-memory-limit)",
                most.unwrap_or_default()
            )
        }
        Exit::OutOfDisk(grown) => {
            let grown = match grown.bytes {
                0 => format!("{} files", grown.files),
                bytes => format_bytes(bytes),
            };
            format!(
                "killed because the disk of the server was almost full, and of all it had grown \
                 most, by {grown}; let it write less, or to another disk"
            )
        }
        Exit::Lost => {
            "lost: what ran it is gone (a crash, or a restart of the machine or of Docker)"
                .to_owned()
        }
    }
}
