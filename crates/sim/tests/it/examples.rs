//! The scenarios in `examples/scenarios`, and the one in the reference, hold.

use std::path::{Path, PathBuf};

use sim::scenario::Scenario;
use sim::{Outcome, Record, run};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn holds(name: &str, text: &str) -> Outcome {
    let scenario = Scenario::read(text).unwrap_or_else(|error| panic!("{name}:{error}"));
    let outcome = run(&scenario, Record::Everything).unwrap_or_else(|e| panic!("{name}:{e}"));
    assert!(outcome.failures.is_empty(), "{name}: {:#?}", outcome.failures);
    assert!(outcome.expectations > 0, "{name} expects nothing");
    assert_eq!(outcome.simulation.cluster().verify(), Ok(()), "{name}");
    outcome
}

#[test]
fn the_examples_of_the_reference_hold() {
    let page = std::fs::read_to_string(repository().join("docs/reference/scenario.md")).unwrap();
    let examples = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    // Besides the complete example there is one about queues with a share in each pool.
    let examples: Vec<_> = examples.collect();
    assert_eq!(examples.len(), 2);
    holds("docs/reference/scenario.md", examples[0]);
    holds("docs/reference/scenario.md", &format!("version: 1\n{}", examples[1]));
}

#[test]
fn every_example_holds_and_reads_back_as_it_was_written() {
    let dir = repository().join("examples/scenarios");
    let mut paths: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 6, "{paths:?}");
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let outcome = holds(&name, &text);
        let scenario = Scenario::read(&text).unwrap();
        let written = scenario.to_json().unwrap();
        assert_eq!(Scenario::read(&written).unwrap(), scenario, "{name}");
        let again = run(&Scenario::read(&written).unwrap(), Record::Everything).unwrap();
        assert_eq!(again.frames, outcome.frames, "{name}");
    }
}
