//! What is stored is read for good.

use serde_json::Value;
use spec::WorkloadSpec;

fn documents() -> Vec<Value> {
    serde_json::from_str(include_str!("documents.json")).expect("documents")
}

#[test]
fn documents_of_earlier_versions_are_read_and_written_as_they_were() {
    for document in documents() {
        let spec: WorkloadSpec = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(serde_json::to_value(&spec).unwrap(), document);
    }
}

/// What a document of this version says where the first one has `replaced`.
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
