//! Scenarios of whole runs, without a process.

use super::*;
use crate::net::PARAMS;

const RATE: f32 = 0.05;

fn options(dir: &std::path::Path, args: &[&str]) -> Options {
    let dir = dir.display().to_string();
    let fixed = ["--micro-step-ms", "0", "--checkpoint-dir", &dir];
    let args = fixed.iter().chain(args).map(|arg| (*arg).to_owned());
    match options::parse(args, &|_| None) {
        Ok(Parsed::Run(options)) => options,
        other => panic!("{other:?}"),
    }
}

/// Runs to the end, never asked to stop, and returns what it printed.
fn output(options: &Options) -> String {
    let (_keep, stopped) = mpsc::channel();
    let mut out = Vec::new();
    assert_eq!(
        train(options, &stopped, &|_, _| Ok(()), &mut out).expect("trains"),
        Ending::Finished
    );
    String::from_utf8(out).expect("text")
}

#[test]
fn training_learns_the_spirals() {
    let mut trainer = Trainer::new(1);
    let plan = BatchPlan::new(256, 64, 1);
    let first = trainer.advance(&plan, RATE);
    let mut last = first;
    for _ in 0..400 {
        last = trainer.advance(&plan, RATE);
    }
    assert!(last < first / 3.0, "loss {first} -> {last}");
    assert!(trainer.accuracy() > 0.9, "accuracy {}", trainer.accuracy());
}

#[test]
fn the_number_of_gpus_does_not_change_what_is_learned() {
    let weights = |gpus| {
        let mut trainer = Trainer::new(5);
        for _ in 0..20 {
            trainer.advance(&BatchPlan::new(256, 64, gpus), RATE);
        }
        trainer.snapshot()
    };
    assert_eq!(weights(1), weights(2));
    assert_eq!(weights(1), weights(4));
}

#[test]
fn a_run_in_two_halves_ends_where_one_run_ends() {
    let (whole, halves) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
    output(&options(whole.path(), &["--steps", "20", "--seed", "9"]));
    output(&options(halves.path(), &["--steps", "8", "--seed", "9"]));
    let second = output(&options(halves.path(), &["--steps", "20", "--gpus", "2"]));
    assert!(second.starts_with("resumed at step 8, seed 9\n"), "{second}");
    let kept = |dir: &tempfile::TempDir| {
        std::fs::read_to_string(dir.path().join("quickstart.json")).expect("a checkpoint")
    };
    assert_eq!(kept(&whole), kept(&halves));
}

#[test]
fn a_run_says_what_it_works_with() {
    let dir = tempfile::tempdir().expect("dir");
    let text = output(&options(dir.path(), &["--steps", "3", "--gpus", "2"]));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "started at step 0, seed 1");
    assert_eq!(lines[1], "training on gpus 2 accumulation 2 batch per gpu 64");
    assert!(lines[2].starts_with("step 1 loss ") && lines[2].ends_with("gpus 2 accumulation 2"));
    assert!(lines[lines.len() - 2].starts_with("step 3 loss "), "{text}");
    assert_eq!(lines.last(), Some(&"finished at step 3"));
}

#[test]
fn a_run_that_is_asked_to_stop_writes_its_checkpoint() {
    let dir = tempfile::tempdir().expect("dir");
    let (ask, stopped) = mpsc::channel();
    ask.send(()).expect("the receiver is alive");
    let options = options(dir.path(), &[]);
    let mut out = Vec::new();
    let reported = std::cell::RefCell::new(Vec::new());
    let report = |file: &std::path::Path, step: u64| {
        assert!(file.is_file(), "it is written before it is reported");
        reported.borrow_mut().push(step);
        Ok(())
    };
    let ending = train(&options, &stopped, &report, &mut out).expect("trains");
    assert_eq!((ending, reported.into_inner()), (Ending::Interrupted, vec![1]));
    let text = String::from_utf8(out).expect("text");
    assert!(text.ends_with("asked to stop; checkpoint written at step 1\n"), "{text}");
    let vault = Vault::open(dir.path()).expect("opens");
    match vault.load(&Trainer::new(1).snapshot()).expect("reads") {
        LoadedCheckpoint::Snapshot(snapshot) => {
            assert_eq!((snapshot.step, snapshot.weights.len()), (1, PARAMS));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_damaged_checkpoint_starts_the_training_over() {
    let dir = tempfile::tempdir().expect("dir");
    std::fs::write(dir.path().join("quickstart.json"), "{ half").expect("writes");
    let text = output(&options(dir.path(), &["--steps", "2"]));
    assert!(text.starts_with("the checkpoint is damaged ("), "{text}");
    assert!(text.contains("quickstart.damaged-1.json, starting over\nstarted at step 0"), "{text}");
}
