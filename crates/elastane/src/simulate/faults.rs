//! `simulate --seeds`: random histories with every invariant checked.

use std::io::Write;

use super::Simulate;
use cli_kit::exit::{self, Error};
use cli_kit::message::print_always;

pub(super) fn run(flags: &Simulate, seeds: u64, out: &mut dyn Write) -> Result<(), Error> {
    let policy = super::policy(flags)?;
    let mut done = sim::chaos::Tally::default();
    for number in 0..seeds {
        let seed = flags.seed.wrapping_add(number);
        match sim::chaos::run(seed, flags.steps, &policy) {
            Ok(tally) => done += tally,
            Err(broken) => {
                write!(out, "{}", broken.history)?;
                out.flush()?;
                print_always(&format!(
                    "error: seed {seed}, step {}: {}\nabove is the shortest history found that \
                     breaks a rule; --seed {seed} --seeds 1 repeats it",
                    broken.step, broken.fault
                ));
                return Err(Error::Said(exit::FAILED));
            }
        }
    }
    let last = flags.seed.wrapping_add(seeds - 1);
    writeln!(out, "{seeds} histories (seeds {} to {last}), every invariant held", flags.seed)?;
    writeln!(
        out,
        "{}, {}, {}, {}",
        units::counted(done.steps, "step"),
        units::counted(done.batches, "batch"),
        units::counted(done.crashes, "crash"),
        units::counted(done.starts, "start")
    )?;
    Ok(())
}
