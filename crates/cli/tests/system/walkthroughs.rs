//! Follows every document in `docs/walkthroughs` to the letter. Owns: the list of documents and
//! their requirements. Does not know about: the content of a document.

use std::fs;
use std::time::Duration;

use engine_docker::testing::DockerServer;
use fixture::STUCK_AFTER;

use crate::document::Step;
use crate::elastic_containers;
use crate::elastic_training::EXAMPLES;
use crate::follow::{folder, follow_on, read};
use crate::sandbox::Sandbox;
use crate::workers;

/// A document that the tests of `clients` follow, as it needs TensorFlow.
const ELSEWHERE: &str = "elastic-keras";

/// Follows a document on a fresh machine; the error names the line with another output.
fn follow(text: &str) -> Result<(), String> {
    follow_on(Sandbox::new(), text, |_| STUCK_AFTER)
}

/// One test per document, and the list of them.
macro_rules! walkthroughs {
    ($($test:ident: $name:literal),* $(,)?) => {
        const DOCUMENTS: &[&str] = &[$($name),*];
        $(
            #[test]
            fn $test() {
                if let Err(what) = follow(&read($name)) {
                    panic!("docs/walkthroughs/{}.md, {what}", $name);
                }
            }
        )*
    };
}

walkthroughs! {
    train: "train",
    build: "build",
    build_ports: "build-ports",
    jupyter: "jupyter",
    inference: "inference",
    distributed: "distributed",
    hpo: "hpo",
    suspend: "suspend",
    fractions: "fractions",
    fractions_limits: "fractions-limits",
    elasticity_2020: "elasticity-2020",
    elasticity_2021: "elasticity-2021",
    over_quota: "over-quota",
    queue_fairness: "queue-fairness",
}

/// The published lines enter a workload and show its GPU, so its image needs these programs.
#[test]
fn fractions_with_containers() {
    let Some(daemon) = DockerServer::shared() else { return };
    for name in ["fractions", "fractions-limits"] {
        if let Err(what) = follow_on(Sandbox::with_docker(&daemon), &read(name), |_| STUCK_AFTER) {
            panic!("docs/walkthroughs/{name}.md with Docker, {what}");
        }
    }
}

/// Time limit for a step of the tutorial about elastic scheduling: its training of 60 epochs takes
/// a minute on an idle machine.
const TRAINED_AFTER: Duration = Duration::from_secs(4 * STUCK_AFTER.as_secs());

/// The published tutorial about elastic scheduling: real processes train a real model.
#[test]
fn elasticdl() {
    let Some(programs) = workers::programs() else { return };
    let sandbox = Sandbox::new().with_programs(&programs);
    let copied = sandbox.shell(&format!("cp -r '{EXAMPLES}' . && chmod -R a+rX ."));
    assert_eq!(copied.code, Some(0), "{}", copied.text);
    if let Err(what) = follow_on(sandbox, &read("elasticdl"), |_| TRAINED_AFTER) {
        panic!("docs/walkthroughs/elasticdl.md, {what}");
    }
}

/// With containers, in a third of the epochs; their image has a name of its own.
#[test]
fn elasticdl_with_containers() {
    let Some((sandbox, image)) = elastic_containers::prepared() else { return };
    let text = read("elasticdl")
        .replace("gcr.io/elasticdl/elasticdl:dev", image.name())
        .replace("--num_epoch=60", "--num_epoch=20")
        .replace("90000 records", "30000 records");
    if let Err(what) = follow_on(sandbox, &text, |_| TRAINED_AFTER) {
        panic!("docs/walkthroughs/elasticdl.md with Docker, {what}");
    }
}

#[test]
fn every_document_is_followed() {
    let mut found: Vec<String> = fs::read_dir(folder())
        .expect("the folder of the walk-throughs")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".md")?.to_owned()))
        .filter(|name| name != "README")
        .collect();
    let mut followed = [DOCUMENTS, &["elasticdl", ELSEWHERE]].concat();
    found.sort();
    followed.sort_unstable();
    assert_eq!(found, followed);
}

/// Checks that a wrong output in a document fails its test.
#[test]
fn a_wrong_state_in_a_document_is_noticed() {
    let truth = read("train");
    let (before, rest) = truth.split_once("```console\n$ runai list jobs\n").expect("a list");
    let (list, _) = rest.split_once("\n```\n").expect("its end");
    let lie = list.replacen("train1  Running", "train1  Pending", 1);
    assert_ne!(list, lie, "the document shows train1 running");
    // The correct output comes first: a job that has not started yet is pending.
    let block = |list: &str| format!("```console\n$ runai list jobs\n{list}\n```\n");
    let text = format!("{before}{}{}", block(list), block(&lie));
    let patience = |step: &Step| match step.expected.iter().any(|line| line.contains("Pending ")) {
        true => Duration::from_secs(2),
        false => STUCK_AFTER,
    };
    let what = follow_on(Sandbox::new(), &text, patience).expect_err("train1 is not pending");
    assert!(what.contains("  > train1 Pending"), "{what}");
    assert!(what.contains("    train1 Running"), "{what}");
}
