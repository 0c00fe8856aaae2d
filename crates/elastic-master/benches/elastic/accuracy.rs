//! Accuracy of a training whose workers come and go: of one worker, of two, and of two that are
//! killed repeatedly, with each library that Python has. Owns: the comparison. Does not know about:
//! how a training is started.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use elastic::{Epochs, Kind};
use elastic_master::{JobConfig, Mode};

use crate::line;
use crate::training::{LOOK, Model, SDK, STUCK_AFTER, Training, job, working};

/// Module that Python must have, and the example for it.
const MODELS: [(&str, &str); 3] =
    [("numpy", "digits_numpy"), ("torch", "digits_torch"), ("tensorflow", "digits_keras")];
const SEEDS: u32 = 5;
const EPOCHS: u32 = 3;
/// Records of all epochs.
const RECORDS: u64 = 4500;
/// Number of kills of a worker in the last kind of training, if it lasts so long: each time after
/// as many records.
const KILLS: u64 = 6;
/// Means are at most so many points apart.
const APART_MAX: f64 = 2.0;

#[derive(Clone, Copy)]
enum Workers {
    One,
    Two,
    /// One or two workers: one is killed repeatedly.
    Killed,
}

const ALL: [(&str, Workers); 3] =
    [("1 worker", Workers::One), ("2 workers", Workers::Two), ("1 to 2, killed", Workers::Killed)];

/// Measures each library that is there, or those of them that are named; `data` is the folder of
/// the training records.
pub(crate) async fn run(folder: &Path, python: &str, data: &Path) {
    let named = |(library, _): &(&str, &str)| std::env::args().any(|word| word == *library);
    let some = MODELS.iter().any(named);
    for (library, example) in MODELS.into_iter().filter(|one| !some || named(one)) {
        let mut command = Command::new(python);
        command.args(["-c", &format!("import {library}")]).stderr(Stdio::null());
        if command.status().is_ok_and(|status| status.success()) {
            compare(&folder.join(library), python, data, (library, example)).await;
        } else {
            crate::print_line(&format!(
                "accuracy of {library} is not measured: Python does not have it"
            ));
        }
    }
}

async fn compare(folder: &Path, python: &str, data: &Path, (library, example): (&str, &str)) {
    let mut means = Vec::new();
    for (name, workers) in ALL {
        let (mut all, mut killed) = (Vec::new(), 0);
        for seed in 1..=SEEDS {
            let folder = folder.join(format!("{}-{seed}", means.len()));
            let (accuracy, kills) = train(&folder, python, data, (example, workers, seed)).await;
            all.push(accuracy);
            killed += kills;
        }
        let mean = all.iter().sum::<f64>() / f64::from(SEEDS);
        line(&format!("accuracy, {library}, {name}: mean of {SEEDS}"), mean, "%");
        line("    least", all.iter().copied().fold(f64::INFINITY, f64::min), "%");
        line("    most", all.iter().copied().fold(0.0, f64::max), "%");
        if killed > 0 {
            crate::print_line(&format!("    workers killed in all: {killed}"));
        }
        means.push(mean);
    }
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    let apart = means.iter().copied().fold(0.0, f64::max) - least;
    let verdict = if apart <= APART_MAX { "within" } else { "NOT within" };
    line(&format!("    means {verdict} {APART_MAX} points: apart"), apart, "points");
}

/// Trains a model; returns how many of 100 test images it gets right, and the workers that were
/// killed.
async fn train(
    folder: &Path,
    python: &str,
    data: &Path,
    (example, workers, seed): (&str, Workers, u32),
) -> (f64, u64) {
    let config = |kind| {
        let mut job = job(data, Mode::Synchronous, 1, Epochs::Count(1));
        job.arguments.insert("model_file".into(), format!("{SDK}/examples/{example}.py"));
        let test = data.with_file_name("test").display().to_string();
        job.arguments.insert("validation_data".into(), test);
        JobConfig { kind, ..job }
    };
    let job = JobConfig { epochs: Epochs::Count(EPOCHS), ..config(Kind::Train) };
    let saved = folder.join("model");
    let model = Model { to: Some(saved.clone()), from: None };
    let mut training = Training::begin_with(&folder.join("train"), python, job, model).await;
    training.with("SEED", seed.to_string());
    training.start();
    if !matches!(workers, Workers::One) {
        training.start();
    }
    let killed = match workers {
        Workers::Killed => kills(&mut training).await,
        Workers::One | Workers::Two => 0,
    };
    let status = training.ends().await;
    assert_eq!(status.records, RECORDS, "{status:?}");

    let model = Model { from: Some(saved), to: None };
    let folder = folder.join("evaluate");
    let mut evaluation = Training::begin_with(&folder, python, config(Kind::Evaluate), model).await;
    evaluation.start();
    let status = evaluation.ends().await;
    let metrics = status.evaluations.last().map(|of| of.metrics.as_slice()).unwrap_or_default();
    let accuracy = metrics.iter().find(|metric| metric.name == "accuracy");
    let accuracy = accuracy.unwrap_or_else(|| panic!("no accuracy: {status:?}"));
    (100.0 * accuracy.total / accuracy.weight, killed)
}

/// Kills a worker after each of equal parts of the records, once both work, and starts another;
/// returns how many were killed before the end.
async fn kills(training: &mut Training) -> u64 {
    let mut killed = 0;
    let (mut records, mut moved_at) = (0, Instant::now());
    loop {
        let status = training.status().await;
        if status.records != records {
            (records, moved_at) = (status.records, Instant::now());
        }
        if killed == KILLS || status.records >= RECORDS {
            return killed;
        }
        let is_time = status.records >= RECORDS * (killed + 1) / (KILLS + 1);
        if is_time && working(&status) == 2 {
            training.kill().await;
            training.start();
            killed += 1;
        }
        assert!(moved_at.elapsed() < STUCK_AFTER, "the training is stuck: {status:?}");
        tokio::time::sleep(LOOK).await;
    }
}
