//! `elastane record` and `elastane replay`: a recording of the server's inputs as a file, and its
//! replay. Owns: the end of a replay and its printed part.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use cli_kit::exit::{self, Error};
use cli_kit::local_time::{self, exact};
use cli_kit::message::{Plain, print_always};
use cli_kit::parse_number::whole;
use recording::{FOLDER, Outcome, Played, RELEASE, Replay};
use serde_json::json;
use sim::scenario::Scenario;

use super::simulate::{Simulate, what_if};

/// `replay`.
#[derive(Debug, Args)]
#[command(after_help = "Recordings and defect reports: docs/operations/recordings.md")]
pub(crate) struct Play {
    /// A file made by `elastane record`; `-` reads standard input
    file: PathBuf,
    /// Stop after this batch, or after the last one until this time
    #[arg(long, value_name = "N|TIME", value_parser = stop)]
    until: Option<Stop>,
    /// First batch to print
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true)]
    #[arg(value_parser = whole(1_u64..=u64::MAX))]
    from: u64,
    /// Print the events
    #[arg(long)]
    events: bool,
    /// Print the decisions: plans, and why workloads wait
    #[arg(long)]
    plans: bool,
    /// Print the whole outcome of each batch, as a line of JSON
    #[arg(long, conflicts_with_all = ["events", "plans"])]
    json: bool,
    /// Print the state at the end as a scenario for `simulate --from`
    #[arg(long, conflicts_with_all = ["events", "plans", "json", "submit"])]
    snapshot: bool,
    /// Ask what would happen if this were submitted at the end; as for `simulate --from`
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["events", "plans"])]
    submit: Vec<String>,
}

/// End of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Batch(u64),
    At(u64),
}

fn stop(text: &str) -> Result<Stop, String> {
    if let Ok(number) = text.parse() {
        return Ok(Stop::Batch(number));
    }
    let at = local_time::at_ms(text).ok_or(
        "write the number of a batch, or a time with its zone such as 2026-01-31T13:00:05Z",
    )?;
    Ok(Stop::At(at))
}

impl Stop {
    fn is_behind(self, outcome: &Outcome) -> bool {
        match self {
            Self::Batch(last) => outcome.number >= last,
            Self::At(_) => false,
        }
    }

    fn is_before(self, at_ms: u64) -> bool {
        matches!(self, Self::At(last) if at_ms > last)
    }
}

/// Saves the recording of the state directory to a file.
pub(super) fn record(state_dir: &Path, file: &Path) -> Result<(), Error> {
    let dir = state_dir.join(FOLDER);
    if !dir.is_dir() {
        return Err(Error::Failed(format!(
            "nothing is recorded in {}; `elastane up` records, unless recording_max is 0",
            state_dir.display()
        )));
    }
    let failed = |error: std::io::Error| {
        let file = file.display();
        Error::Failed(match error.kind() {
            ErrorKind::AlreadyExists => format!("{file} exists already; give another name"),
            _ => format!("cannot save the recording in {file}: {error}"),
        })
    };
    if file == Path::new("-") {
        recording::save(&dir, &mut std::io::stdout().lock())?;
        return Ok(());
    }
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let saved = recording::save(&dir, &mut made.map_err(failed)?).map_err(failed)?;
    writeln!(
        std::io::stdout(),
        "saved {}, {} to {}; it has names of people, projects and workloads, and no \
         secrets",
        units::counted(saved.segments, "segment"),
        units::format_bytes(saved.bytes),
        file.display()
    )?;
    Ok(())
}

/// Totals of a replay.
#[derive(Default)]
struct Sums {
    batches: u64,
    decisions: u64,
    span: Option<(u64, u64)>,
    notices: Vec<String>,
}

/// Replays a recording.
pub(super) fn replay(flags: &Play, out: &mut dyn Write) -> Result<(), Error> {
    let read: Box<dyn BufRead> = if flags.file == Path::new("-") {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        let file = File::open(&flags.file).map_err(|error| {
            Error::Failed(format!("cannot read {}: {error}", flags.file.display()))
        })?;
        Box::new(BufReader::new(file))
    };
    let mut replay = Replay::new(read);
    let mut sums = Sums::default();
    let quiet = flags.snapshot || !flags.submit.is_empty();
    let played = play(flags, &mut replay, &mut sums, out);
    sums.notices.iter().for_each(|notice| print_always(notice));
    let verdict = if played.is_ok() { "the same again" } else { "the same again up to there" };
    let text = sums.text(verdict);
    if quiet || flags.json {
        print_always(&text);
    } else {
        writeln!(out, "{text}")?;
    }
    played?;
    if quiet { ask(flags, &replay, out) } else { Ok(()) }
}

fn play(
    flags: &Play,
    replay: &mut Replay<Box<dyn BufRead>>,
    sums: &mut Sums,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let name = flags.file.display();
    loop {
        if let (Some(stop), Some(next)) =
            (flags.until, replay.next_at().map_err(|f| fault(&name, &f))?)
            && stop.is_before(next.0)
        {
            return Ok(());
        }
        let played = replay.play().map_err(|error| fault(&name, &error))?;
        match played {
            None => return Ok(()),
            Some(Played::Built) => {}
            Some(Played::Segment(release)) => {
                if release != RELEASE {
                    sums.notices.push(format!(
                        "it was recorded by release {release} and is played by {RELEASE}, which \
                         may decide otherwise"
                    ));
                }
            }
            Some(Played::Gap) => sums.notices.push(format!(
                "batches after {} are missing: the disk did not keep up, or the recording was full",
                sums.batches
            )),
            Some(Played::CutOff) => sums.notices.push(format!(
                "the recording is cut off in the middle of a line after batch {}",
                sums.batches
            )),
            Some(Played::Batch(outcome)) => {
                sums.add(&outcome);
                if outcome.number >= flags.from {
                    show(flags, &outcome, out)?;
                }
                if let Some((then, now)) = &outcome.difference {
                    differs(&outcome, then, now);
                    return Err(Error::Said(exit::FAILED));
                }
                if flags.until.is_some_and(|stop| stop.is_behind(&outcome)) {
                    return Ok(());
                }
            }
        }
    }
}

fn fault(name: &dyn std::fmt::Display, fault: &recording::Fault) -> Error {
    Error::Failed(format!("{name}: {fault}"))
}

fn differs(outcome: &Outcome, then: &str, now: &str) {
    let (number, at) = (outcome.number, exact(outcome.at.0));
    print_always(&format!(
        "batch {number} ({at}) comes to something else\n  then: {then}\n  now:  {now}"
    ));
}

/// Prints the requested parts of a batch.
fn show(flags: &Play, outcome: &Outcome, out: &mut dyn Write) -> Result<(), Error> {
    let Outcome { number, at, inputs, came, failed, .. } = outcome;
    if flags.json {
        let line = json!({
            "batch": number, "at": at.0, "inputs": inputs, "came": came, "failed": failed,
        });
        writeln!(out, "{line}")?;
        return Ok(());
    }
    if let Some(why) = failed {
        writeln!(out, "{number}  {}  failed: {why}", exact(at.0))?;
    }
    let wanted = |line: &&String| {
        let starts = |all: &[&str]| all.iter().any(|word| line.starts_with(word));
        flags.events && starts(&["event:"]) || flags.plans && starts(&["plan", "reason:", "share:"])
    };
    for line in came.iter().filter(wanted) {
        writeln!(Plain(&mut *out), "{number}  {}  {line}", exact(at.0))?;
    }
    Ok(())
}

impl Sums {
    fn add(&mut self, outcome: &Outcome) {
        self.batches += 1;
        self.decisions += u64::from(outcome.decided);
        let first = self.span.map_or(outcome.at.0, |(first, _)| first);
        self.span = Some((first, outcome.at.0));
    }

    fn text(&self, verdict: &str) -> String {
        let Some((first, last)) = self.span else {
            return "no batch was played".to_owned();
        };
        format!(
            "{} with {}, from {} to {}: {verdict}",
            units::counted(self.batches, "batch"),
            units::counted(self.decisions, "decision"),
            exact(first),
            exact(last)
        )
    }
}

/// Prints the state at the end of the replay, or the predicted outcome of submissions to it.
fn ask<R: BufRead>(flags: &Play, replay: &Replay<R>, out: &mut dyn Write) -> Result<(), Error> {
    let seen = replay.machine().and_then(recording::Machine::scheduler);
    let Some((cluster, policy, now)) = seen else {
        return Err(Error::Failed("there is no state at this place of the recording".to_owned()));
    };
    let told = |error: &dyn std::fmt::Display| Error::Failed(error.to_string());
    let text = sim::snapshot(cluster, now, policy).to_json().map_err(|error| told(&error))?;
    if flags.snapshot {
        out.write_all(text.as_bytes())?;
        return Ok(());
    }
    let scenario = Scenario::read(&text).map_err(|error| told(&error))?;
    let asked = Simulate { submit: flags.submit.clone(), json: flags.json, ..Simulate::default() };
    what_if::ask(&asked, scenario, &flags.file, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_at_a_batch_or_at_a_time() {
        assert_eq!(stop("12"), Ok(Stop::Batch(12)));
        let at = Stop::At(1_769_860_805_000);
        for same in ["2026-01-31T12:00:05Z", "2026-01-31 13:00:05 +01:00"] {
            assert_eq!(stop(same), Ok(at), "{same}");
        }
        assert!(!at.is_before(1_769_860_805_000) && at.is_before(1_769_860_805_001));
        for wrong in ["", "noon", "-1", "2026-01-31 13:00:05"] {
            assert!(stop(wrong).unwrap_err().contains("such as"), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_recorded_cannot_be_saved_and_no_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("report");
        let why = record(dir.path(), &file).unwrap_err().to_string();
        assert!(why.contains("recording_max") && !file.exists(), "{why}");
        std::fs::create_dir(dir.path().join(FOLDER)).unwrap();
        std::fs::write(&file, "mine").unwrap();
        assert!(record(dir.path(), &file).unwrap_err().to_string().contains("exists"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    }
}
