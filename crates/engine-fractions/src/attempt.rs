//! Trying, at the start of a server, a limit that something else than our libraries keeps. Owns:
//! what is tried, on which GPU, and what it proves. Does not know about: how a program gets the
//! limit.

use std::ffi::OsStr;
use std::process::Command;

use fraction_agent::Report;

pub(crate) const MIB: u64 = 1 << 20;
/// Limit of the attempt, in MiB. A context takes some of it.
pub(crate) const LIMIT_MIB: u64 = 1024;
/// Sizes of two allocations: one within the limit, one beyond it.
const SIZES: [&str; 2] = ["16MiB", "1025MiB"];
/// Answers of the driver: success, and out of memory.
pub(crate) const GRANTED: i32 = 0;
pub(crate) const OUT_OF_MEMORY: i32 = 2;

/// Result of an attempt to exceed a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    Kept,
    /// No GPU has enough free memory for a program to exceed the limit.
    NoRoom,
}

impl Tried {
    /// Note for a message, to append to a sentence.
    pub(crate) const fn note(self) -> &'static str {
        match self {
            Self::Kept => "",
            Self::NoRoom => {
                "; no GPU had 1,025 MiB free when the server started, so that it could not try a limit"
            }
        }
    }
}

/// Why containers are refused with this value of `--fractions`.
pub(crate) fn not_for_containers(policy: &str) -> String {
    format!(
        "`--fractions {policy}` is for processes: add `--runtime process`, or choose mig (which is hard for \
         containers), auto or none"
    )
}

/// Tries on the first GPU with room whether a program gets less with the limit than without.
/// `program`: the server's, for a GPU by UUID, with the limit or without.
///
/// # Errors
/// Why the limit is not kept.
pub(crate) fn attempt<'g>(
    gpus: impl IntoIterator<Item = &'g String>,
    program: impl Fn(&str, bool) -> Result<Command, String>,
) -> Result<Tried, String> {
    for gpu in gpus {
        let seen = |limited| {
            let (reports, seen) = answers(program(gpu, limited)?, &SIZES)?;
            let first = reports.into_iter().next().map(|first| first.allocations);
            let answers = first.unwrap_or_default().iter().map(|one| one.answer).collect();
            Ok::<(Vec<i32>, _), String>((answers, seen))
        };
        let wrong = |(_, seen)| format!("on {gpu} a program without a limit saw {seen}");
        match seen(false).map_err(|why| format!("{gpu}: {why}"))? {
            (answers, _) if answers == [GRANTED, GRANTED] => {}
            (answers, _) if answers.last() == Some(&OUT_OF_MEMORY) => continue,
            other => return Err(wrong(other)),
        }
        let (answers, seen) = seen(true).map_err(|why| format!("{gpu}: {why}"))?;
        if answers != [GRANTED, OUT_OF_MEMORY] {
            let tried = format!("a program that tried to exceed {LIMIT_MIB} MiB");
            return Err(format!("on {gpu} {tried} saw {seen}"));
        }
        return Ok(Tried::Kept);
    }
    Ok(Tried::NoRoom)
}

/// Reports of a program that allocates these sizes, and its error output.
pub(crate) fn answers(
    mut command: Command,
    sizes: &[impl AsRef<OsStr>],
) -> Result<(Vec<Report>, String), String> {
    command.args(["gpu-check", "--json"]).args(sizes);
    fraction_agent::reports(&mut command)
}
