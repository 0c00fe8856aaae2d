//! `simulate --seeds`: random histories with every invariant checked.

use std::io::Write;

use super::Simulate;
use cli_kit::exit::{self, Error};

pub(super) fn run(flags: &Simulate, seeds: u64, out: &mut dyn Write) -> Result<(), Error> {
    let policy = super::knobs(flags)?.policy.value;
    let mut done = sim::faults::Tally::default();
    for number in 0..seeds {
        let seed = flags.seed.wrapping_add(number);
        match sim::faults::run(seed, flags.steps, &policy) {
            Ok(tally) => done += tally,
            Err(broken) => {
                // The script can be run again as a scenario.
                write!(out, "{}", broken.script)?;
                out.flush()?;
                let mut err = std::io::stderr();
                writeln!(err, "error: seed {seed}, step {}: {}", broken.step, broken.fault)?;
                writeln!(
                    err,
                    "the scenario above repeats it; keep it in a file and simulate that"
                )?;
                return Err(Error::Said(exit::FAILED));
            }
        }
    }
    let last = flags.seed.wrapping_add(seeds - 1);
    writeln!(out, "{seeds} histories (seeds {} to {last}), every invariant held", flags.seed)?;
    writeln!(
        out,
        "{} steps, {} decisions, {} starts, {} stops",
        done.steps, done.cycles, done.starts, done.stops
    )?;
    Ok(())
}
