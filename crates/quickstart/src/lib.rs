//! The quickstart workload: a small real training job that needs no GPU and no framework, and
//! programs that stand in for the other demo images of the published quickstarts (`stand_in`).
//!
//! Owns: its command line, its environment, and its order of steps (resume, train, report,
//! checkpoint, stop). Does not know about: the scheduler, the server, and their files.
//!
//! The training is real: the data is generated, the gradients are computed and accumulated, the
//! loss falls, a checkpoint outlives the process. Only the GPUs are simulated: each one is worth
//! one micro-batch of time, so that a workload with more of them really trains faster.

mod checkpoint;
mod data;
mod net;
mod options;
mod plan;
mod random;
mod stand_in;
mod trainer;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crate::checkpoint::{LoadedCheckpoint, Vault};
use crate::options::{Options, Parsed};
use crate::plan::BatchPlan;
use crate::trainer::Trainer;

/// Exit code after SIGTERM or SIGINT, with the checkpoint written: 128 + SIGTERM, so that an
/// interrupted training is not taken for a finished one.
pub const EXIT_INTERRUPTED: u8 = 143;

/// Exit code of a command line that makes no sense.
pub const EXIT_USAGE: u8 = 2;

/// Reports a complete checkpoint to the server: its file, and its step.
pub type Report<'a> = &'a dyn Fn(&Path, u64) -> Result<(), String>;

/// Runs the workload with command line arguments (without the program's name) and environment
/// `env`, until it is stopped or has done the requested steps. Where the first argument is
/// the word of another image, what stands in for that runs with the rest.
///
/// Ends with 0 when `--steps` were done, [`EXIT_INTERRUPTED`] after SIGTERM or SIGINT,
/// [`EXIT_USAGE`] for a bad command line, and 1 when checkpoints cannot be written.
pub fn run(
    args: impl IntoIterator<Item = String>,
    env: impl Fn(&str) -> Option<String>,
    report: Report<'_>,
) -> ExitCode {
    let mut args = args.into_iter().peekable();
    if let Some(program) = args.peek().and_then(|word| stand_in::program(word)) {
        args.next();
        return program(&args.collect::<Vec<_>>(), &env);
    }
    let options = match options::parse(args, &env) {
        Ok(Parsed::Run(options)) => options,
        Ok(Parsed::Help) => {
            // A reader that went away before the help was out is not a failure.
            let _ = std::io::stdout().write_all(options::HELP.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            complain(&error);
            return ExitCode::from(EXIT_USAGE);
        }
    };
    let stopped = match watch_signals() {
        Ok(stopped) => stopped,
        Err(error) => {
            complain(&format!("failed to watch for signals: {error}"));
            return ExitCode::FAILURE;
        }
    };
    match train(&options, &stopped, report, &mut std::io::stdout()) {
        Ok(Ending::Finished) => ExitCode::SUCCESS,
        Ok(Ending::Interrupted) => ExitCode::from(EXIT_INTERRUPTED),
        Err(error) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Error that ends the workload early.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// Checkpoints cannot be kept.
    #[error(transparent)]
    Checkpoint(#[from] checkpoint::Error),
    /// The reader of the output is gone.
    #[error("failed to print progress: {0}")]
    Print(#[from] std::io::Error),
}

/// End of the workload.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    /// All steps done.
    Finished,
    /// Stopped by a signal.
    Interrupted,
}

#[expect(clippy::disallowed_methods, reason = "a failed write is dropped")]
fn complain(what: &str) {
    // There is nowhere left to report that standard error is closed.
    let _ = writeln!(std::io::stderr(), "quickstart: {what}");
}

/// A channel that receives a message when the process has to stop, so that waiting costs nothing
/// and ends at once.
fn watch_signals() -> std::io::Result<Receiver<()>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])?;
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for _ in signals.forever() {
            if sender.send(()).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

/// Resumes, trains, reports and checkpoints until the steps are done or `stopped` has a message.
fn train(
    options: &Options,
    stopped: &Receiver<()>,
    report_saved: Report<'_>,
    out: &mut impl Write,
) -> Result<Ending, Error> {
    let plan = BatchPlan::new(options.global_batch, options.max_gpu_batch, options.gpus);
    let vault = Vault::open(&options.checkpoint_dir)?;
    let mut trainer = begin(options, &vault, out)?;
    writeln!(out, "training on {plan}")?;
    out.flush()?;

    let mut reported: Option<Instant> = None;
    let mut saved = Instant::now();
    let mut last = None;
    let mut told = Ok(());
    let mut save = |trainer: &Trainer| -> Result<(), Error> {
        vault.save(&trainer.snapshot())?;
        let now = report_saved(vault.file(), trainer.step());
        if let (Ok(()), Err(why)) = (&told, &now) {
            complain(&format!("the checkpoint is written and could not be reported: {why}"));
        }
        told = now;
        Ok(())
    };
    while options.steps.is_none_or(|steps| trainer.step() < steps) {
        last = Some(trainer.advance(&plan, options.learning_rate));
        if reported.is_none_or(|at| at.elapsed() >= options.report_every) {
            report(&trainer, last, &plan, out)?;
            reported = Some(Instant::now());
        }
        if saved.elapsed() >= options.checkpoint_every {
            save(&trainer)?;
            saved = Instant::now();
        }
        if asked_to_stop(stopped, options.micro_step * plan.accumulation) {
            save(&trainer)?;
            writeln!(out, "asked to stop; checkpoint written at step {}", trainer.step())?;
            out.flush()?;
            return Ok(Ending::Interrupted);
        }
    }
    save(&trainer)?;
    report(&trainer, last, &plan, out)?;
    writeln!(out, "finished at step {}", trainer.step())?;
    out.flush()?;
    Ok(Ending::Finished)
}

/// A trainer at the last checkpoint, or at the beginning.
fn begin(options: &Options, vault: &Vault, out: &mut impl Write) -> Result<Trainer, Error> {
    let fresh = Trainer::new(options.seed);
    match vault.load(&fresh.snapshot())? {
        LoadedCheckpoint::Nothing => {
            writeln!(out, "started at step 0, seed {}", options.seed)?;
            Ok(fresh)
        }
        LoadedCheckpoint::Snapshot(snapshot) => {
            writeln!(out, "resumed at step {}, seed {}", snapshot.step, snapshot.seed)?;
            Ok(Trainer::resume(snapshot))
        }
        LoadedCheckpoint::Damaged { why, kept_as } => {
            writeln!(
                out,
                "the checkpoint is damaged ({why}); kept as {}, starting over",
                kept_as.display()
            )?;
            writeln!(out, "started at step 0, seed {}", options.seed)?;
            Ok(fresh)
        }
    }
}

fn report(
    trainer: &Trainer,
    loss: Option<f32>,
    plan: &BatchPlan,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let loss = loss.map_or_else(|| "-".to_owned(), |loss| format!("{loss:.4}"));
    writeln!(
        out,
        "step {} loss {loss} accuracy {:.3} gpus {} accumulation {}",
        trainer.step(),
        trainer.accuracy(),
        plan.gpus,
        plan.accumulation
    )?;
    out.flush()
}

/// Waits for `pause`, or less when asked to stop.
fn asked_to_stop(stopped: &Receiver<()>, pause: Duration) -> bool {
    use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
    match stopped.recv_timeout(pause) {
        Ok(()) => true,
        Err(Timeout) => false,
        // The watcher is gone only when its thread died: waiting must still take its time.
        Err(Disconnected) => {
            std::thread::sleep(pause);
            false
        }
    }
}

#[cfg(test)]
mod tests;
