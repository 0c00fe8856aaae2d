//! Documents of every version stay readable.

use serde_json::Value;
use spec::{WorkloadSpec, document};

/// One document of each kind, as each version wrote it.
const WRITTEN: [&str; 3] = [
    include_str!("documents/1.json"),
    include_str!("documents/2.json"),
    include_str!("documents/3.json"),
];

fn documents() -> Vec<Value> {
    serde_json::from_str(WRITTEN.last().expect("a version")).expect("documents")
}

#[test]
fn documents_of_every_version_are_read_and_written_as_this_one_does() {
    assert_eq!(WRITTEN.len(), document::version_of::<WorkloadSpec>() as usize);
    let newest = documents();
    for written in WRITTEN {
        let documents: Vec<Value> = serde_json::from_str(written).unwrap();
        for (document, newest) in documents.iter().zip(&newest) {
            let spec: WorkloadSpec = document::read(&document.to_string()).unwrap();
            let text = document::write(&spec).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), *newest);
        }
    }
}

/// Error of a document of this version in which the first text of `replaced` has become the second.
fn refused(replaced: (&str, &str)) -> String {
    let text = documents()[1].to_string();
    assert!(text.contains(replaced.0), "{} is not in {text}", replaced.0);
    let text = text.replacen(replaced.0, replaced.1, 1);
    serde_json::from_str::<WorkloadSpec>(&text).expect_err("a fault").to_string()
}

#[test]
fn what_is_not_known_is_named() {
    let kind = refused(("\"kind\":\"distributed\"", "\"kind\":\"quantum\""));
    assert!(kind.contains("unknown variant `quantum`, expected one of `training`"), "{kind}");
    let operator = refused(("\"not-in\"", "\"near\""));
    assert!(operator.contains("`near` of a label is not known"), "{operator}");
    let secret = refused(("\"variable\":\"V\"", "\"nowhere\":\"V\""));
    assert!(secret.contains("a secret that goes nowhere"), "{secret}");
    let mig = refused(("\"1g.5gb\"", "\"9g.5gb\""));
    assert!(mig.contains("MIG instances that are none"), "{mig}");
}

#[test]
fn what_this_version_does_not_know_of_an_audience_is_open_to_no_one() {
    let text = documents()[2].to_string().replacen("\"authenticated\"", "\"friends\"", 1);
    let spec: WorkloadSpec = serde_json::from_str(&text).unwrap();
    assert_eq!(spec.serving.unwrap().audience, spec::Audience::Users(Default::default()));
}
