//! Refusal of a run with a part of a GPU by the check before its command. Owns: the kinds of
//! refusals, and the line in which a process reports one to the process that follows it. Does not
//! know about: the check.

use std::time::Duration;

use engine::Exit;

/// Beginning of the line; the word of the kind and the end of the mark follow.
const MARK: &str = "[FATAL elastane ";
const MARK_END: &str = "] ";

/// Kind of a refusal: the part that decisions depend on, without the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// The command itself cannot be started.
    CannotRun,
    /// The limits of the run would not be kept.
    NotKept,
    /// The driver did not answer in time; it may answer later.
    DriverSilent,
}

impl RefusalKind {
    const ALL: [Self; 3] = [Self::CannotRun, Self::NotKept, Self::DriverSilent];

    const fn word(self) -> &'static str {
        match self {
            Self::CannotRun => "cannot-run",
            Self::NotKept => "gpu-not-kept",
            Self::DriverSilent => "driver-silent",
        }
    }
}

/// Why the command of a run was not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its kind.
    pub kind: RefusalKind,
    /// The cause, as a sentence.
    pub why: String,
}

impl Refusal {
    /// The limits of the run would not be kept.
    #[must_use]
    pub fn not_kept(why: &str) -> Self {
        let why = why.lines().next().filter(|line| !line.is_empty()).unwrap_or("it was ended");
        let why = format!(
            "{}; see `elastane status`, and restart the server, which tries its limits again, or, \
             without `--fractions mig`, ask for whole GPUs",
            why.trim()
        );
        Self { kind: RefusalKind::NotKept, why }
    }

    /// The driver did not answer in this time.
    #[must_use]
    pub fn driver_silent(within: Duration) -> Self {
        let why = format!("the driver does not answer within {} ms", within.as_millis());
        Self { kind: RefusalKind::DriverSilent, why }
    }

    /// The command cannot be started.
    #[must_use]
    pub const fn cannot_run(why: String) -> Self {
        Self { kind: RefusalKind::CannotRun, why }
    }

    /// End of the run that is refused.
    #[must_use]
    pub fn exit(self) -> Exit {
        match self.kind {
            RefusalKind::CannotRun => Exit::CannotRun(self.why),
            RefusalKind::NotKept => Exit::NotKept(self.why),
            RefusalKind::DriverSilent => Exit::NotStarted(self.why),
        }
    }

    /// Line with the kind and the cause, for [`Self::of_line`].
    #[must_use]
    pub fn line(&self) -> String {
        format!("{MARK}{}{MARK_END}{}", self.kind.word(), self.why)
    }

    /// Refusal that a line reports; `None` for every other line.
    #[must_use]
    pub fn of_line(line: &str) -> Option<Self> {
        let (word, why) = line.trim_end().strip_prefix(MARK)?.split_once(MARK_END)?;
        let kind = RefusalKind::ALL.into_iter().find(|kind| kind.word() == word)?;
        Some(Self { kind, why: why.to_owned() })
    }

    /// Refusal by a check that failed with this error output. Without a line of its own the check
    /// was ended, or could not load its libraries: the limits would not be kept.
    #[must_use]
    pub fn of_output(output: &str) -> Self {
        let own = output.lines().rev().find_map(Self::of_line);
        own.unwrap_or_else(|| Self::not_kept(output))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_kind_through_its_line_whatever_its_sentence_says() {
        let silent = Refusal::driver_silent(Duration::from_secs(60));
        let not_kept = Refusal::not_kept(&silent.why);
        let cannot_run = Refusal::cannot_run(not_kept.why.clone());
        let exit: [fn(String) -> Exit; 3] = [Exit::NotStarted, Exit::NotKept, Exit::CannotRun];
        for (refusal, exit) in [silent, not_kept, cannot_run].into_iter().zip(exit) {
            let read = Refusal::of_output(&format!("a library warns\n{}\n", refusal.line()));
            assert_eq!(read, refusal);
            assert_eq!(read.exit(), exit(refusal.why));
        }
    }

    #[test]
    fn a_check_without_a_line_of_its_own_is_a_limit_that_is_not_kept() {
        assert_eq!(Refusal::of_line("[FATAL tini (7)] exec nosuch failed"), None);
        assert_eq!(Refusal::of_line("[FATAL elastane other] words"), None);
        for (output, why) in [("", "it was ended;"), ("no such library\nmore", "no such library;")]
        {
            let refusal = Refusal::of_output(output);
            assert_eq!(refusal.kind, RefusalKind::NotKept);
            assert!(refusal.why.starts_with(why), "{refusal:?}");
        }
    }
}
