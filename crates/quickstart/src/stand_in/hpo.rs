//! One pod of a search for good hyperparameters. Owns: the grid, the assignment of its experiments
//! to pods, and the table of results in a folder that the pods share. Does not know about: how an
//! experiment trains.
//!
//! A pod takes an experiment by a lock on its file, which ends with the process in any case. So the
//! next pod resumes an experiment that was stopped or killed half way, at its last checkpoint.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::Receiver;

use serde::{Deserialize, Serialize};

use super::Env;
use crate::checkpoint::{LoadedCheckpoint, Vault};
use crate::options::{self, Options, Parsed};
use crate::trainer::Trainer;
use crate::{EXIT_INTERRUPTED, EXIT_USAGE, Ending, complain};

const BATCHES: [u32; 3] = [32, 64, 128];
const LEARNING_RATES: [f32; 4] = [0.2, 0.05, 0.01, 0.002];
/// Default number of steps of an experiment.
const STEPS: u64 = 60;
/// Folders that pods of a search share in its images.
const MOUNTS: [&str; 2] = ["/hpo", "/nfs"];
const RESULTS: &str = "results.json";

/// Result of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Outcome {
    experiment: usize,
    batch: u32,
    learning_rate: f32,
    accuracy: f32,
    /// Pod that ran it.
    pod: String,
}

/// The folder that the pods share.
struct Sweep {
    dir: PathBuf,
    pod: String,
}

/// Takes an experiment without a result, runs it, and records the result.
pub(super) fn run(args: &[String], env: Env<'_>) -> ExitCode {
    let (dir, rest) = match folder(args, env) {
        Ok(found) => found,
        Err(why) => return usage(&why),
    };
    let options = match options::parse(rest, &env) {
        Ok(Parsed::Run(options)) => options,
        Ok(Parsed::Help) => return usage("--help is that of quickstart-workload, without a word"),
        Err(why) => return usage(&why),
    };
    let sweep = Sweep { dir, pod: super::pod_name(env) };
    let stopped = match crate::watch_signals() {
        Ok(stopped) => stopped,
        Err(error) => {
            complain(&format!("failed to watch for signals: {error}"));
            return ExitCode::FAILURE;
        }
    };
    match sweep.go(&options, &stopped, &mut std::io::stdout()) {
        Ok(Ending::Finished) => ExitCode::SUCCESS,
        Ok(Ending::Interrupted) => ExitCode::from(EXIT_INTERRUPTED),
        Err(why) => {
            complain(&why);
            ExitCode::FAILURE
        }
    }
}

fn usage(why: &str) -> ExitCode {
    complain(why);
    ExitCode::from(EXIT_USAGE)
}

/// The shared folder, and the arguments that are not about it.
fn folder(args: &[String], env: Env<'_>) -> Result<(PathBuf, Vec<String>), String> {
    let (mut dir, mut rest) = (None, Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.strip_prefix("--dir") {
            Some("") => dir = Some(args.next().ok_or("--dir needs a folder")?.clone()),
            Some(value) if value.starts_with('=') => dir = Some(value[1..].to_owned()),
            _ => rest.push(arg.clone()),
        }
    }
    let mount = || MOUNTS.into_iter().find(|mount| Path::new(mount).is_dir()).map(str::to_owned);
    let dir = dir.or_else(|| env("HPO_DIR")).filter(|dir| !dir.is_empty()).or_else(mount);
    let dir = dir.ok_or(
        "no folder that the pods share: mount one at /hpo (-v HOST:/hpo), or name it \
         (-v DIR:DIR … -- --dir DIR)",
    )?;
    Ok((dir.into(), rest))
}

impl Sweep {
    fn go(
        &self,
        options: &Options,
        stopped: &Receiver<()>,
        out: &mut impl Write,
    ) -> Result<Ending, String> {
        fs::create_dir_all(&self.dir).map_err(failed("create", &self.dir))?;
        let Some((experiment, _lock)) = self.pick()? else {
            return self.table(&self.outcomes()?, out).map(|()| Ending::Finished);
        };
        let (batch, learning_rate) = grid(experiment);
        let options = Options {
            global_batch: batch,
            learning_rate,
            steps: Some(options.steps.unwrap_or(STEPS)),
            checkpoint_dir: self.dir.join(format!("experiment-{experiment}")),
            ..options.clone()
        };
        let head = format!("experiment {experiment}: batch {batch} learning rate {learning_rate}");
        write_line(out, &head)?;
        // A checkpoint of one trial is none of the whole search.
        let ending = crate::train(&options, stopped, &|_, _| Ok(()), out)
            .map_err(|error| error.to_string())?;
        if ending == Ending::Interrupted {
            write_line(out, &format!("experiment {experiment} is left to another pod"))?;
            return Ok(ending);
        }
        let (pod, accuracy) = (self.pod.clone(), accuracy(&options)?);
        let outcome = Outcome { experiment, batch, learning_rate, accuracy, pod };
        let outcomes = self.note(outcome)?;
        self.table(&outcomes, out).map(|()| ending)
    }

    /// An experiment without a result that no pod runs, and the lock that reserves it.
    fn pick(&self) -> Result<Option<(usize, File)>, String> {
        for experiment in 0..BATCHES.len() * LEARNING_RATES.len() {
            let path = self.dir.join(format!("experiment-{experiment}.lock"));
            let file = File::create(&path).map_err(failed("open", &path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
            }
            // Checked only now: the pod that held it may just have written its result.
            if self.outcomes()?.iter().all(|outcome| outcome.experiment != experiment) {
                return Ok(Some((experiment, file)));
            }
        }
        Ok(None)
    }

    fn outcomes(&self) -> Result<Vec<Outcome>, String> {
        let path = self.dir.join(RESULTS);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| format!("{} is damaged: {error}", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(failed("read", &path)(error)),
        }
    }

    /// Adds a result; returns all.
    fn note(&self, outcome: Outcome) -> Result<Vec<Outcome>, String> {
        let lock = self.dir.join("results.lock");
        let file = File::create(&lock).map_err(failed("open", &lock))?;
        file.lock().map_err(failed("lock", &lock))?;
        let mut outcomes = self.outcomes()?;
        outcomes.push(outcome);
        outcomes.sort_by_key(|outcome| outcome.experiment);
        let (path, new) = (self.dir.join(RESULTS), self.dir.join("results.new"));
        let text = serde_json::to_vec_pretty(&outcomes).map_err(|error| error.to_string())?;
        fs::write(&new, text).map_err(failed("write", &new))?;
        fs::rename(&new, &path).map_err(failed("write", &path))?;
        Ok(outcomes)
    }

    fn table(&self, outcomes: &[Outcome], out: &mut impl Write) -> Result<(), String> {
        let all = BATCHES.len() * LEARNING_RATES.len();
        write_line(out, &format!("{} of {all} experiments done:", outcomes.len()))?;
        for Outcome { experiment, batch, learning_rate, accuracy, pod } in outcomes {
            let what = format!("{experiment:>10}  batch {batch:>3}  learning rate {learning_rate}");
            write_line(out, &format!("{what:<46}  accuracy {accuracy:.3}  {pod}"))?;
        }
        let best = outcomes.iter().max_by(|a, b| a.accuracy.total_cmp(&b.accuracy));
        best.map_or(Ok(()), |best| {
            write_line(out, &format!("best: experiment {}", best.experiment))
        })
    }
}

fn grid(experiment: usize) -> (u32, f32) {
    let (batch, rate) = (experiment / LEARNING_RATES.len(), experiment % LEARNING_RATES.len());
    (BATCHES[batch % BATCHES.len()], LEARNING_RATES[rate])
}

/// Accuracy of the network in the last checkpoint.
fn accuracy(options: &Options) -> Result<f32, String> {
    let vault = Vault::open(&options.checkpoint_dir).map_err(|error| error.to_string())?;
    let fresh = Trainer::new(options.seed).snapshot();
    match vault.load(&fresh).map_err(|error| error.to_string())? {
        LoadedCheckpoint::Snapshot(snapshot) => Ok(Trainer::resume(snapshot).accuracy()),
        LoadedCheckpoint::Nothing => Err("the checkpoint is gone".to_owned()),
        LoadedCheckpoint::Damaged { why, .. } => Err(format!("the checkpoint is damaged: {why}")),
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("failed to {what} {path}: {error}")
}

fn write_line(out: &mut impl Write, line: &str) -> Result<(), String> {
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|error| format!("no output: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn options() -> Options {
        let args = ["--micro-step-ms", "0", "--steps", "2"].map(str::to_owned);
        match options::parse(args, &|_| None) {
            Ok(Parsed::Run(options)) => options,
            other => panic!("{other:?}"),
        }
    }

    fn pod(dir: &Path, name: &str, stop: bool) -> (Ending, String) {
        let (ask, stopped) = mpsc::channel();
        if stop {
            ask.send(()).expect("the receiver is alive");
        }
        let sweep = Sweep { dir: dir.to_owned(), pod: name.to_owned() };
        let mut out = Vec::new();
        let ending = sweep.go(&options(), &stopped, &mut out).expect("goes");
        (ending, String::from_utf8(out).expect("text"))
    }

    #[test]
    fn each_pod_takes_another_experiment_until_all_are_done() {
        let dir = tempfile::tempdir().expect("a folder");
        for number in 0..12 {
            let (ending, text) = pod(dir.path(), &format!("hpo1-0-{number}"), false);
            assert_eq!(ending, Ending::Finished);
            assert!(text.starts_with(&format!("experiment {number}: batch ")), "{text}");
            assert!(text.contains(&format!("{} of 12 experiments done:", number + 1)), "{text}");
        }
        let (_, text) = pod(dir.path(), "late", false);
        assert!(text.starts_with("12 of 12 experiments done:"), "{text}");
        assert!(text.lines().last().is_some_and(|line| line.starts_with("best: experiment ")));
    }

    #[test]
    fn what_one_does_another_leaves_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let sweep = Sweep { dir: dir.path().to_owned(), pod: "first".to_owned() };
        let first = sweep.pick().expect("a folder").expect("an experiment");
        let (_, text) = pod(dir.path(), "second", false);
        assert!(text.starts_with("experiment 1: "), "{text}");
        drop(first);
        let (_, text) = pod(dir.path(), "third", false);
        assert!(text.starts_with("experiment 0: "), "{text}");
    }

    #[test]
    fn what_was_stopped_goes_on_in_the_next_pod() {
        let dir = tempfile::tempdir().expect("a folder");
        let (ending, text) = pod(dir.path(), "first", true);
        assert_eq!(ending, Ending::Interrupted);
        assert!(text.ends_with("experiment 0 is left to another pod\n"), "{text}");
        let (_, text) = pod(dir.path(), "second", false);
        assert!(text.starts_with("experiment 0: batch 32 learning rate 0.2\nresumed at step 1"));
    }

    #[test]
    fn the_folder_is_named_or_asked_for() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let found = folder(&words("--steps 3 --dir=/a"), &|_| None);
        assert_eq!(found, Ok(("/a".into(), words("--steps 3"))));
        let found = folder(&[], &|name| (name == "HPO_DIR").then(|| "/b".to_owned()));
        assert_eq!(found, Ok(("/b".into(), Vec::new())));
        assert!(folder(&words("--dir"), &|_| None).is_err_and(|why| why.contains("a folder")));
    }
}
