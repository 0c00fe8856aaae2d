//! Access to workloads that are submitted in the first dialect: the meaning of the lines.

use super::lines::{meaning, submit};
use crate::intent::{Access, Kind};

/// Access that a submission opens.
fn access(line: &str) -> Access {
    submit(line).access.unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn ports_of_an_interactive_job_are_brought_here() {
    let line = "runai submit nginx-test -i zembutsu/docker-sample-nginx --interactive \
                --service-type portforward --port 8080:80 --port 6006";
    let said = submit(line);
    assert!(said.spec.around.ports.is_empty(), "they are not opened at the machine");
    let here = access(line);
    assert_eq!(here.ports, [(8080, 80), (6006, 6006)]);
    assert_eq!((here.address.as_str(), here.any_port, here.notebook), ("localhost", false, false));
    assert_eq!(access(&format!("{line} --address 0.0.0.0")).address, "0.0.0.0");
}

#[test]
fn nobody_stays_at_the_ports_of_a_training() {
    let said = submit("runai submit j -i x -s portforward --port 8080:80");
    assert!(said.access.is_none() && said.spec.around.ports.is_empty());
    assert!(said.notes[0].contains("`runai port-forward j --port 8080:80` does so"), "{said:?}");
}

#[test]
fn a_notebook_is_the_usual_one_where_nothing_else_was_said() {
    let said = submit("runai submit jup1 --jupyter -g 1");
    assert_eq!(said.kind, Kind::Workspace);
    assert_eq!(said.spec.image.as_deref(), Some("jupyter/scipy-notebook"));
    let notes = [
        "Using image jupyter/scipy-notebook; --image changes it",
        "Using port 8888; --port changes it",
        "Using service type portforward; --service-type changes it",
    ];
    assert_eq!(said.notes, notes);
    let here = access("runai submit jup1 --jupyter -g 1");
    assert_eq!(here.ports, [(8888, 8888)]);
    assert!(here.notebook && here.any_port && !here.own_path);

    let own = "runai submit jup1 --jupyter -i mine --port 9000:8888 -s portforward";
    assert!(submit(own).notes.is_empty());
    assert_eq!(submit(own).spec.image.as_deref(), Some("mine"));
    assert!(!access(own).any_port, "that one was asked for");
}

#[test]
fn a_notebook_in_a_browser_has_a_path_of_its_own_unless_it_has_a_command() {
    let line = "runai submit jup1 --jupyter -g 0.5 --service-type=ingress";
    let here = access(line);
    assert!(here.notebook && here.own_path && here.ports.is_empty());
    assert_eq!(submit(line).spec.around.urls[0].container, Some(8888));
    assert!(!access(&format!("{line} --command -- jupyter lab")).own_path);
}

#[test]
fn an_inference_is_reached_at_its_address_whatever_the_service_type() {
    let line = "runai submit --name inference1 --service-type nodeport --port 8888 --inference \
                -i gcr.io/run-ai-demo/quickstart-inference-marian -g 1";
    let said = submit(line);
    let Kind::Inference(serving) = &said.kind else { panic!("{said:?}") };
    let port = serving.port.as_ref().and_then(|port| port.container);
    assert_eq!((port, &serving.autoscaling), (Some(8888), &None));
    assert!(said.spec.around.ports.is_empty() && said.access.is_none());
}

#[test]
fn ingress_has_no_number_outside() {
    let said = submit("runai submit j -i x --interactive -s ingress --port 8080:80");
    assert_eq!(said.spec.around.urls[0].container, Some(80));
    assert!(said.notes[0].starts_with("Port 8080 is not used: port 80 has"), "{:?}", said.notes);
}

#[test]
fn a_program_before_the_dashes_is_the_command() {
    let line = "runai workspace submit jup1 --image jupyter/scipy-notebook --gpu-devices-request 1 \
                --external-url container=8888 --command start-notebook.sh -- --NotebookApp.token=";
    assert_eq!(submit(line).spec.command, ["start-notebook.sh", "--NotebookApp.token="]);
    let usual = submit("runai workspace submit j -i x --command -- sleep 5");
    assert_eq!(usual.spec.command, ["sleep", "5"]);
    let named = submit("runai submit -i x --interactive --command j -- sleep 5");
    assert_eq!(named.spec.command, ["sleep", "5"], "in the first dialect that is the name");
    assert!(meaning("runai workspace submit j -i x -c a b -- c").is_err(), "one too many");
}
