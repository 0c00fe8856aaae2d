//! Every document in `docs/walkthroughs` is followed to the letter. Owns: running a document's
//! steps in a sandbox. Does not know about: what any document says.
//!
//! Two numbers are not those of the document, since this machine may need them: the server's port
//! and the port that is brought to the reader's machine.

use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use engine_docker::testing::DockerServer;

use crate::document::{self, Step};
use crate::elastic_containers;
use crate::elastic_training::{EXAMPLES, TRAINING_PATIENCE};
use crate::matching::compare;
use crate::sandbox::{Sandbox, end, free_port};
use crate::workers;

/// How long a command that only looks is repeated until it shows what it should.
const PATIENCE: Duration = Duration::from_secs(120);
/// The ports in the documents: the server's, and the one on the reader's machine.
const SERVER_PORT: &str = "7070";
const LOCAL_PORT: &str = "8080";

/// A machine with what a document has left in its background.
struct Machine {
    sandbox: Sandbox,
    background: Vec<Child>,
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/walkthroughs"))
}

fn read(name: &str) -> String {
    let path = folder().join(format!("{name}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Follows a document on a fresh machine; the error says which line did not do what it says.
fn follow(text: &str) -> Result<(), String> {
    follow_on(Sandbox::new(), text, |_| PATIENCE)
}

fn follow_on(
    sandbox: Sandbox,
    text: &str,
    patience: impl Fn(&Step) -> Duration,
) -> Result<(), String> {
    let text = text.replace(SERVER_PORT, &sandbox.port().to_string());
    let steps = document::parse(&text.replace(LOCAL_PORT, &free_port().to_string()))?;
    let mut machine = Machine { sandbox, background: Vec::new() };
    if !steps.iter().any(Step::is_server) {
        return Err("no block starts a server with `$ elastane up`".to_owned());
    }
    for step in &steps {
        take(step, &mut machine, patience(step)).map_err(|what| {
            format!(
                "line {}: $ {}\n{what}server:\n{}",
                step.line,
                step.command,
                machine.sandbox.server_text()
            )
        })?;
    }
    Ok(())
}

fn take(step: &Step, machine: &mut Machine, patience: Duration) -> Result<(), String> {
    let Machine { sandbox, background } = machine;
    if step.is_server() {
        sandbox.start_server(&step.command);
        return repeat(patience, || compare(&step.expected, &sandbox.server_text()));
    }
    if let Some(command) = step.in_background() {
        let log = sandbox.home().join(format!("background.{}", background.len()));
        background.push(sandbox.begin(&format!("exec {command} > {} 2>&1", log.display())));
        let said = || fs::read_to_string(&log).unwrap_or_default();
        return repeat(patience, || compare(&step.expected, &said()));
    }
    if let Some(which) = step.ends() {
        let child =
            background.get_mut(which).ok_or("nothing of this number is in the background")?;
        end(child);
        return Ok(());
    }
    let once = || {
        let output = sandbox.shell(&step.command);
        match output.code {
            Some(0) => compare(&step.expected, &output.text),
            code => Err(format!("ended with {code:?} and printed:\n{}", output.text)),
        }
    };
    if step.is_read_only() { repeat(patience, once) } else { once() }
}

/// Tries until it works; the last failure counts.
fn repeat(
    patience: Duration,
    mut attempt: impl FnMut() -> Result<(), String>,
) -> Result<(), String> {
    let since = Instant::now();
    loop {
        let result = attempt();
        if result.is_ok() || since.elapsed() > patience {
            return result;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
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

/// The published lines enter a workload and look at its GPU, so its image must have what they need.
#[test]
fn fractions_with_containers() {
    let Some(daemon) = DockerServer::shared() else { return };
    for name in ["fractions", "fractions-limits"] {
        if let Err(what) = follow_on(Sandbox::with_docker(daemon), &read(name), |_| PATIENCE) {
            panic!("docs/walkthroughs/{name}.md with Docker, {what}");
        }
    }
}

/// The published tutorial about elastic scheduling: real processes train a real model.
#[test]
fn elasticdl() {
    let Some(programs) = workers::programs() else { return };
    let sandbox = Sandbox::new().with_programs(&programs);
    let copied = sandbox.shell(&format!("cp -r '{EXAMPLES}' . && chmod -R a+rX ."));
    assert_eq!(copied.code, Some(0), "{}", copied.text);
    if let Err(what) = follow_on(sandbox, &read("elasticdl"), |_| TRAINING_PATIENCE) {
        panic!("docs/walkthroughs/elasticdl.md, {what}");
    }
}

/// The same in containers; the image has a name of its own.
#[test]
fn elasticdl_with_containers() {
    let Some((sandbox, image)) = elastic_containers::prepared() else { return };
    let text = read("elasticdl").replace("gcr.io/elasticdl/elasticdl:dev", image.name());
    if let Err(what) = follow_on(sandbox, &text, |_| TRAINING_PATIENCE) {
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
    let mut followed = [DOCUMENTS, &["elasticdl"]].concat();
    found.sort();
    followed.sort_unstable();
    assert_eq!(found, followed);
}

/// The proof that following a document checks something.
#[test]
fn a_wrong_state_in_a_document_is_noticed() {
    let truth = read("train");
    let (before, rest) = truth.split_once("```console\n$ runai list jobs\n").expect("a list");
    let (list, _) = rest.split_once("\n```\n").expect("its end");
    let lie = list.replacen("train1  Running", "train1  Pending", 1);
    assert_ne!(list, lie, "the document shows train1 running");
    // The truth comes first: what has not begun yet is pending.
    let block = |list: &str| format!("```console\n$ runai list jobs\n{list}\n```\n");
    let text = format!("{before}{}{}", block(list), block(&lie));
    let patience = |step: &Step| match step.expected.iter().any(|line| line.contains("Pending ")) {
        true => Duration::from_secs(2),
        false => PATIENCE,
    };
    let what = follow_on(Sandbox::new(), &text, patience).expect_err("train1 is not pending");
    assert!(what.contains("  > train1 Pending"), "{what}");
    assert!(what.contains("    train1 Running"), "{what}");
}
