//! The replay of a recording. Owns: the order of the lines, and the comparison of the outcome of
//! each batch with the recorded outcome.

use std::io::BufRead;

use units::Instant;

use crate::line::{Base, Batch, Fault, SegmentLine, Sum, read};
use crate::machine::{Failed, Machine};

/// A recording under replay.
pub struct Replay<R> {
    from: R,
    /// Number of the last line that was read.
    number: u64,
    sum: Sum,
    /// Line that was read and is not played yet.
    ahead: Option<Next>,
    machine: Option<Machine>,
    /// Number of the last batch that was played.
    batch: u64,
}

/// Next item to play.
enum Next {
    Line(SegmentLine),
    CutOff,
    End,
}

/// An item that was played.
#[derive(Debug)]
pub enum Played {
    /// A segment begins; holds the release that recorded it.
    Segment(String),
    /// A state was built.
    Built,
    /// A batch.
    Batch(Outcome),
    /// Batches are missing from here on.
    Gap,
    /// The file ends in the middle of a line.
    CutOff,
}

/// The outcome of a replayed batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Number of the batch in the file, from 1.
    pub number: u64,
    /// Time of the batch.
    pub at: Instant,
    /// Number of inputs.
    pub inputs: usize,
    /// `true` if the batch took over a decision.
    pub decided: bool,
    /// Outcome of the replay as lines of text.
    pub came: Vec<String>,
    /// Reason why the batch failed when it was recorded; `None` if it succeeded.
    pub failed: Option<String>,
    /// The first line of the outcome that differs: as recorded, and as replayed.
    pub difference: Option<(String, String)>,
}

const END: &str = "(nothing more)";

impl<R: BufRead> Replay<R> {
    /// Reads a recording.
    pub const fn new(from: R) -> Self {
        Self { from, number: 0, sum: Sum::NONE, ahead: None, machine: None, batch: 0 }
    }

    /// Time of the next batch; `None` if the next item is no batch, or the first batch of a state.
    ///
    /// # Errors
    /// The recording cannot be read, or is damaged.
    pub fn next_at(&mut self) -> Result<Option<Instant>, Fault> {
        let next = match self.ahead.take() {
            Some(next) => next,
            None => self.read()?,
        };
        let at = match &next {
            Next::Line(SegmentLine::Batch(batch)) => batch.moment.map(|moment| moment.now),
            Next::Line(_) | Next::CutOff | Next::End => None,
        };
        self.ahead = Some(next);
        Ok(at)
    }

    /// Plays the next item; `None` at the end.
    ///
    /// # Errors
    /// The recording cannot be read, or is damaged.
    pub fn play(&mut self) -> Result<Option<Played>, Fault> {
        let next = match self.ahead.take() {
            Some(next) => next,
            None => self.read()?,
        };
        match next {
            Next::Line(line) => self.line(line).map(Some),
            Next::CutOff => Ok(Some(Played::CutOff)),
            Next::End => Ok(None),
        }
    }

    fn read(&mut self) -> Result<Next, Fault> {
        let mut text = String::new();
        let unread = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::InvalidData if self.number == 0 => Fault::NotOne,
            std::io::ErrorKind::InvalidData => {
                Fault::Damaged { number: self.number + 1, why: "it is not text".to_owned() }
            }
            _ => Fault::Unread(error.to_string()),
        };
        if self.from.read_line(&mut text).map_err(unread)? == 0 {
            return if self.number == 0 { Err(Fault::NotOne) } else { Ok(Next::End) };
        }
        self.number += 1;
        let is_whole = text.ends_with('\n');
        match read(text.trim_end_matches('\n'), self.number, &mut self.sum) {
            Ok(line) => Ok(Next::Line(line)),
            Err(Fault::Damaged { .. }) if !is_whole => Ok(Next::CutOff),
            Err(fault) => Err(fault),
        }
    }

    fn line(&mut self, line: SegmentLine) -> Result<Played, Fault> {
        match line {
            SegmentLine::Recording(head) => {
                self.machine = None;
                Ok(Played::Segment(head.release))
            }
            SegmentLine::Base(base) => self.build(*base),
            SegmentLine::Batch(batch) => self.batch(*batch),
            SegmentLine::Gap => Ok(Played::Gap),
        }
    }

    fn build(&mut self, base: Base) -> Result<Played, Fault> {
        let unbuilt = |error: orchestrator::Error| Fault::State {
            number: self.number,
            why: error.to_string(),
        };
        self.machine = Some(Machine::new(base).map_err(unbuilt)?);
        Ok(Played::Built)
    }

    fn batch(&mut self, batch: Batch) -> Result<Played, Fault> {
        let number = self.number;
        let lost = || Fault::Damaged { number, why: "there is no state before it".to_owned() };
        let machine = self.machine.as_mut().ok_or_else(lost)?;
        self.batch += 1;
        let Batch { moment, inputs, asked_at, came: before, sum, failed } = batch;
        let (count, decided) = (inputs.len(), inputs.iter().any(Option::is_none));
        let came = machine.take(moment, inputs, asked_at);
        let words = came.map(|came| came.words(None));
        let difference = match (&words, &failed) {
            // There is no recorded outcome to compare with.
            (_, Some(_)) => None,
            (Ok(now), None) if now.sum == sum => None,
            (Ok(now), None) => Some(first_difference(&before, &now.lines)),
            (Err(Failed::NoDecision), None) => {
                Some((first(&before), "there is no decision to take over".to_owned()))
            }
            (Err(Failed::Panicked), None) => {
                Some((first(&before), "the machine panics".to_owned()))
            }
        };
        Ok(Played::Batch(Outcome {
            number: self.batch,
            at: machine.now(),
            inputs: count,
            decided,
            came: words.map(|words| words.lines).unwrap_or_default(),
            failed,
            difference,
        }))
    }

    /// The machine after the last line; `None` if no state was built.
    pub const fn machine(&self) -> Option<&Machine> {
        self.machine.as_ref()
    }
}

fn first(lines: &[String]) -> String {
    lines.first().map_or(END, String::as_str).to_owned()
}

/// The first lines that differ. If all kept lines are equal, the difference is in the truncated
/// ones.
fn first_difference(before: &[String], now: &[String]) -> (String, String) {
    let same = before.iter().zip(now).take_while(|(before, now)| before == now).count();
    if same == before.len() && same == now.len() {
        let behind = "(a line beyond those that are kept)".to_owned();
        return (behind.clone(), behind);
    }
    (first(&before[same..]), first(&now[same..]))
}
