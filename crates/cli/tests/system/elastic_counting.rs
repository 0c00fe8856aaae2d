//! Trainings whose model counts: each record is trained once per epoch, also if a worker is killed or
//! terminated and if records are unreadable, and the model is never read torn between two versions.
//! Owns: these checks, for each number of servers and workers and each update mode, and for a loop of
//! its own whose first worker is killed while it makes a checkpoint. Does not know about: how servers
//! store versions.
//!
//! A selection by default; `ELASTANE_SOAK_ROUNDS=200` runs all combinations.

use std::collections::BTreeMap;

use crate::crash::number_from;
use crate::sandbox::Sandbox;
use crate::workers;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python/tests/torn_model.py");
const LOOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python/tests/counting_loop.py");
const RECORDS: u64 = 240;
const EPOCHS: u64 = 2;
/// Unreadable records, of those trainings that have some: empty lines.
const BAD: u64 = 3;
/// Update modes: the flags, and the number of gradients in each update; 0 if the servers' versions
/// are independent.
const WAYS: [(&str, u64); 4] = [
    ("--grads_to_wait=2", 2),
    ("--grads_to_wait=2 --gradients=reject", 2),
    ("--gradients=reject", 1),
    ("--use_async", 0),
];
/// Script that prints the number of trained records in the saved model.
pub(crate) const COUNT: &str = r#"
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
    /// The minibatch at which a worker ends, from 1, and the signal by which it does.
    ends_at: Option<(u64, Signal)>,
    /// Number of unreadable records.
    bad: u64,
}

/// Signal that ends a worker.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Signal {
    /// It is killed: its gradients that were not accepted are lost.
    Kill = 9,
    /// It is terminated: it finishes its minibatch and returns its tasks.
    Term = 15,
}

fn training((servers, workers, way, measured): (u64, u64, usize, bool)) -> Training {
    // Each second training has unreadable records.
    let bad = (servers + workers) % 2 * BAD;
    Training { servers, workers, way, measured, bad, ends_at: None }
}

fn all() -> Vec<Training> {
    let mut all = Vec::new();
    for servers in 1..=8 {
        for workers in 1..=6 {
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
        [(1, 1, 0, false), (2, 3, 0, true), (8, 6, 1, true), (3, 2, 2, true), (2, 2, 3, true)];
    some.into_iter().map(training).collect()
}

/// Two workers of which one ends, at another place of its task each time.
fn with_an_end(signal: Signal, rounds: u64) -> Vec<Training> {
    let mut ended = Vec::new();
    for round in 0..rounds {
        for servers in [1, 2, 4] {
            for way in [0, 1, 3] {
                let at = 2 + (round + ended.len() as u64) % 11;
                let ends_at = Some((at, signal));
                ended.push(Training { ends_at, ..training((servers, 2, way, false)) });
            }
        }
    }
    ended
}

fn train(sandbox: &Sandbox, name: &str, training: Training) {
    let Training { servers, workers, way, measured, ends_at, bad } = training;
    let (flags, of) = WAYS[way];
    let measures = match measured {
        true => "--validation_data=$PWD/test.csv --evaluation_steps=7",
        false => "",
    };
    let ends = ends_at.map_or_else(String::new, |(at, signal)| {
        format!("ENDS_AT={at} ENDS_BY={} ENDS_ONCE=$PWD/{name}.ended", signal as u8)
    });
    let run = sandbox.shell(&format!(
        "GRADIENTS_OF_AN_UPDATE={of} {ends} \
         elasticdl local train --job_name={name} --model_zoo=zoo \
         --model_def=torn_model.custom_model --training_data=$PWD/train{bad}.csv \
         --num_epochs={EPOCHS} --minibatch_size=4 --num_minibatches_per_task=5 \
         --num_ps_pods={servers} --num_workers={workers} --bad_records_max={bad} \
         --output=$PWD/{name} {flags} {measures}"
    ));
    let what = format!("{training:?} {flags} {measures}\n{}", run.text);
    assert_eq!(run.code, Some(0), "{what}");
    let visited = EPOCHS * (RECORDS + bad);
    let counted = format!("succeeded: {visited} records ({bad} unreadable) in ");
    assert!(run.text.contains(&counted), "{what}");
    let count = EPOCHS * RECORDS;
    let applied = format!(" 0 failed; the model has the gradients of {count} records");
    assert!(run.text.contains(&applied), "{what}");
    assert!(!run.text.contains("TORN"), "{what}");
    assert_eq!(run.text.contains("Evaluation: version "), measured, "{what}");
    let killed = run.text.contains("has failed (signal: 9 (SIGKILL)); another begins");
    assert_eq!(killed, matches!(ends_at, Some((_, Signal::Kill))), "{what}");
    if let Some((_, Signal::Term)) = ends_at {
        assert!(run.text.contains(" were handed back, 0 were lost with a worker"), "{what}");
        assert!(sandbox.home().join(format!("{name}.ended")).exists(), "{what}");
    }
    let saved = sandbox.shell(&format!("python3 count.py {name}/model.npz"));
    assert_eq!(saved.text.trim(), format!("seen: {{{EPOCHS}.0: {RECORDS}}}"), "{what}");
}

/// Carries out trainings one after the other.
fn train_all(trainings: Vec<Training>) {
    let Some(programs) = workers::programs() else { return };
    let sandbox = Sandbox::new().with_programs(&programs);
    std::fs::write(sandbox.home().join("count.py"), COUNT).expect("written");
    let made = sandbox.shell(&format!(
        "mkdir zoo && cp '{MODEL}' zoo && seq 0 {} > train0.csv && seq 0 99 > test.csv && \
         awk 'NR % {} == 7 {{ print \"\" }} {{ print }}' train0.csv > train{BAD}.csv",
        RECORDS - 1,
        RECORDS / BAD
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
    train_all(with_an_end(Signal::Kill, 1 + number_from("ELASTANE_SOAK_ROUNDS", 0) / 10));
}

#[test]
fn a_worker_that_is_terminated_loses_no_record() {
    let is_soak = number_from("ELASTANE_SOAK_ROUNDS", 0) > 0;
    let all = with_an_end(Signal::Term, 1 + number_from("ELASTANE_SOAK_ROUNDS", 0) / 10);
    train_all(all.into_iter().step_by(if is_soak { 1 } else { 4 }).collect());
}

/// A loop of its own, whose first worker is killed in the checkpoint of version 24, and if it is
/// killed twice the worker that is first then, in its next one.
#[derive(Debug, Clone, Copy)]
struct Loop {
    workers: u64,
    /// `cut`: the master has cut its ledger, and there is no file; `file`: there is one, which the
    /// master does not know about.
    at: &'static str,
    kills: u64,
}

const LOOPS: [Loop; 8] = [
    Loop { workers: 1, at: "file", kills: 1 },
    Loop { workers: 2, at: "cut", kills: 1 },
    Loop { workers: 2, at: "cut", kills: 2 },
    Loop { workers: 1, at: "cut", kills: 1 },
    Loop { workers: 1, at: "cut", kills: 2 },
    Loop { workers: 1, at: "file", kills: 2 },
    Loop { workers: 2, at: "file", kills: 1 },
    Loop { workers: 2, at: "file", kills: 2 },
];
/// Most records that a killed worker has in hand: two tasks of five minibatches of four.
const HELD_MAX: u64 = 2 * 5 * 4;

/// How often the records of a loop were trained, as its workers print it: `seen: {1.0: 480}`.
fn times_trained(text: &str) -> Vec<BTreeMap<String, u64>> {
    let counts = text.lines().filter_map(|line| line.strip_prefix("seen: {")?.strip_suffix('}'));
    let parsed = counts.map(|counts| {
        let pairs = counts.split(", ").filter_map(|pair| {
            let (times, records) = pair.split_once(": ")?;
            Some((times.to_owned(), records.parse().ok()?))
        });
        pairs.collect()
    });
    parsed.collect()
}

fn loop_with_kills(sandbox: &Sandbox, name: &str, each: Loop) {
    let Loop { workers, at, kills } = each;
    let marks = (0..kills).map(|kill| format!("$PWD/{name}.{kill}")).collect::<Vec<_>>().join(":");
    let records = EPOCHS * RECORDS;
    let run = sandbox.shell(&format!(
        "RECORDS={records} KILLED_FROM=20 KILLED_AT={at} KILLED_ONCE={marks} \
         elasticdl local train --job_name={name} --distribution_strategy=AllreduceStrategy \
         --num_workers={workers} --minibatch_size=4 --num_minibatches_per_task=5 \
         --checkpoint_steps=8 --checkpoint_dir=$PWD/{name} --relaunch_on_worker_failure=3 \
         --image_name=$(command -v python3) --job_command='python3 counting_loop.py'"
    ));
    let what = format!("{each:?}\n{}", run.text);
    assert_eq!(run.code, Some(0), "{what}");
    let killed = run.text.matches("; another begins\n").count() as u64;
    assert_eq!(killed, kills, "{what}");
    let counted = format!("succeeded: {records} records (0 unreadable) in ");
    assert!(run.text.contains(&counted), "{what}");
    let found = times_trained(&run.text);
    assert!(!found.is_empty() && found.iter().all(|each| *each == found[0]), "{what}");
    let times = |times: &str| found[0].get(times).copied().unwrap_or_default();
    // With all workers their model is lost, and the loop goes on from the checkpoint before. A
    // worker that is left has the model; records are trained again that the killed one had not
    // reported.
    let goes_on = "the model goes on from the checkpoint of version 16";
    assert_eq!(run.text.contains(goes_on), kills == workers || workers == 1, "{what}");
    let again = if kills < workers { HELD_MAX } else { 0 };
    assert!(times("1.0") + times("2.0") == records && times("2.0") <= again, "{what}");
}

#[test]
fn a_loop_whose_first_worker_is_killed_in_a_checkpoint_loses_no_record() {
    let Some(programs) = workers::programs() else { return };
    let sandbox = Sandbox::new().with_programs(&programs);
    std::fs::copy(LOOP, sandbox.home().join("counting_loop.py")).expect("copied");
    let is_soak = number_from("ELASTANE_SOAK_ROUNDS", 0) > 0;
    for (number, each) in LOOPS.iter().take(if is_soak { LOOPS.len() } else { 3 }).enumerate() {
        loop_with_kills(&sandbox, &format!("l{number}"), *each);
    }
}
