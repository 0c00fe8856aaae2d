//! Trainings whose model counts: each record is trained once per epoch, also if a worker is killed,
//! and the model is never read torn between two versions. Owns: these checks, for each number of
//! servers and workers and each update mode. Does not know about: how servers store versions.
//!
//! A selection by default; `ELASTANE_SOAK_ROUNDS=200` runs all combinations.

use crate::crash::number_from;
use crate::sandbox::Sandbox;
use crate::workers;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python/tests/torn_model.py");
const RECORDS: u64 = 240;
const EPOCHS: u64 = 2;
/// Update modes: the flags, and the number of gradients in each update; 0 if the servers' versions
/// are independent.
const WAYS: [(&str, u64); 4] = [
    ("--grads_to_wait=2", 2),
    ("--grads_to_wait=2 --gradients=reject", 2),
    ("--gradients=reject", 1),
    ("--use_async", 0),
];
/// Script that prints the number of trained records in the saved model.
const COUNT: &str = r#"
import sys
import numpy as np
saved = np.load(sys.argv[1])
times, records = np.unique(saved["seen/rows"][:, 0], return_counts=True)
print("seen:", dict(zip(times.tolist(), records.tolist())))
"#;

#[derive(Debug, Clone, Copy, Default)]
struct Training {
    servers: u64,
    workers: u64,
    /// Index of the update mode.
    way: usize,
    /// True if the model is evaluated meanwhile.
    measured: bool,
    /// The minibatch at which a worker is killed, from 1.
    killed_at: Option<u64>,
}

fn training((servers, workers, way, measured): (u64, u64, usize, bool)) -> Training {
    Training { servers, workers, way, measured, killed_at: None }
}

fn all() -> Vec<Training> {
    let mut all = Vec::new();
    for servers in 1..=4 {
        for workers in 1..=3 {
            for way in 0..WAYS.len() {
                all.extend([(servers, workers, way, false), (servers, workers, way, true)]);
            }
        }
    }
    all.into_iter().map(training).collect()
}

/// Each mode with two and more servers and workers, evaluated, and the simplest combination.
fn some() -> Vec<Training> {
    let some =
        [(1, 1, 0, false), (2, 3, 0, true), (4, 3, 1, true), (3, 2, 2, true), (2, 2, 3, true)];
    some.into_iter().map(training).collect()
}

/// Two workers of which one is killed, at another place of its task each time.
fn killed(rounds: u64) -> Vec<Training> {
    let mut killed = Vec::new();
    for round in 0..rounds {
        for servers in [1, 2, 4] {
            for way in [0, 1, 3] {
                let killed_at = Some(2 + (round + killed.len() as u64) % 11);
                killed.push(Training { servers, workers: 2, way, measured: false, killed_at });
            }
        }
    }
    killed
}

fn train(sandbox: &Sandbox, name: &str, training: Training) {
    let Training { servers, workers, way, measured, killed_at } = training;
    let (flags, of) = WAYS[way];
    let measures = match measured {
        true => "--validation_data=$PWD/test.csv --evaluation_steps=7",
        false => "",
    };
    let at = killed_at.unwrap_or_default();
    let run = sandbox.shell(&format!(
        "GRADIENTS_OF_AN_UPDATE={of} KILLED_AT={at} KILLED_ONCE=$PWD/{name}.killed \
         elasticdl local train --job_name={name} --model_zoo=zoo \
         --model_def=torn_model.custom_model --training_data=$PWD/train.csv --num_epochs={EPOCHS} \
         --minibatch_size=4 --num_minibatches_per_task=5 --num_ps_pods={servers} \
         --num_workers={workers} --output=$PWD/{name} {flags} {measures}"
    ));
    let what = format!("{training:?} {flags} {measures}\n{}", run.text);
    assert_eq!(run.code, Some(0), "{what}");
    let count = EPOCHS * RECORDS;
    let counted = format!("succeeded: {count} records (0 unreadable) in ");
    assert!(run.text.contains(&counted), "{what}");
    let applied =
        format!("lost with a worker, 0 failed; the model has the gradients of {count} records");
    assert!(run.text.contains(&applied), "{what}");
    assert!(!run.text.contains("TORN"), "{what}");
    assert_eq!(run.text.contains("Evaluation: version "), measured, "{what}");
    let was_killed = run.text.contains("has failed (signal: 9 (SIGKILL)); another begins");
    assert_eq!(was_killed, killed_at.is_some(), "{what}");
    let saved = sandbox.shell(&format!("python3 count.py {name}/model.npz"));
    assert_eq!(saved.text.trim(), format!("seen: {{{EPOCHS}.0: {RECORDS}}}"), "{what}");
}

/// Carries out trainings one after the other.
fn train_all(trainings: Vec<Training>) {
    let Some(programs) = workers::programs() else { return };
    let sandbox = Sandbox::new().with_programs(&programs);
    std::fs::write(sandbox.home().join("count.py"), COUNT).expect("written");
    let made = sandbox.shell(&format!(
        "mkdir zoo && cp '{MODEL}' zoo && seq 0 {} > train.csv && seq 0 99 > test.csv",
        RECORDS - 1
    ));
    assert_eq!(made.code, Some(0), "{}", made.text);
    for (number, training) in trainings.into_iter().enumerate() {
        train(&sandbox, &format!("c{number}"), training);
    }
}

#[test]
fn each_record_counts_once_an_epoch_and_each_pull_is_of_one_version() {
    let is_soak = number_from("ELASTANE_SOAK_ROUNDS", 0) > 0;
    train_all(if is_soak { all() } else { some() });
}

#[test]
fn records_of_a_killed_worker_count_once_an_epoch() {
    train_all(killed(1 + number_from("ELASTANE_SOAK_ROUNDS", 0) / 10));
}
