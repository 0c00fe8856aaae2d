//! Command lines that repeat a submission with one value changed.

use super::lines::submit;
use crate::{again, creation};

#[test]
fn each_dialect_says_it_by_its_own_flag() {
    for (line, kind, to, want) in [
        ("runai submit j -i x -g 4", "fewer_gpus", "3", "runai submit j -i x -g 3 -p a"),
        ("runai submit j -i x --gpu=4 -p b", "fewer_gpus", "3", "runai submit j -i x -p b -g 3"),
        (
            "runai submit j -i x -g4 -- a -g 4",
            "fewer_gpus",
            "3",
            "runai submit j -i x -g 3 -p a -- a -g 4",
        ),
        (
            "runai training submit j -i x --gpu-devices-request 4",
            "fewer_gpus",
            "3",
            "runai training submit j -i x -g 3 -p a",
        ),
        ("runai submit j -i x -g 0.5", "smaller_share", "0.35", "runai submit j -i x -g 0.35 -p a"),
        (
            "runai training submit j -i x --gpu-portion-request 0.5",
            "smaller_share",
            "0.35",
            "runai training submit j -i x --gpu-portion-request 0.35 -p a",
        ),
        (
            "runai submit j -i x --gpu-memory 8G",
            "less_gpu_memory",
            "6GiB",
            "runai submit j -i x --gpu-memory 6GiB -p a",
        ),
        ("runai submit j -i x --cpu 8", "less_cpu", "5", "runai submit j -i x --cpu 5 -p a"),
        (
            "runai training submit j -i x --cpu-memory-request 8G",
            "less_memory",
            "6GiB",
            "runai training submit j -i x --cpu-memory-request 6GiB -p a",
        ),
        (
            "runai submit-dist pytorch j -i x --workers 3",
            "fewer_pods",
            "2",
            "runai submit-dist pytorch j -i x --workers 2 -p a",
        ),
        ("runai submit j -i x -g 2", "elastic", "", "runai submit j -i x -g 2 --elastic -p a"),
        (
            "runai submit j -i x",
            "tolerate",
            "own=me:NoSchedule",
            "runai submit j -i x --toleration 'operator=Equal,key=own,value=me,effect=NoSchedule' -p a",
        ),
        (
            "runai submit j -i x",
            "tolerate",
            "own:NoExecute",
            "runai submit j -i x --toleration 'operator=Exists,key=own,effect=NoExecute' -p a",
        ),
        (
            "runai submit j -i x --node-affinity zone=a --exclude-node n1",
            "without_affinity",
            "",
            "runai submit j -i x -p a",
        ),
    ] {
        let said = again(line, "a", kind, Some(to).filter(|to| !to.is_empty()));
        let words = |line: &str| shell_words::split(line).unwrap();
        assert_eq!(said.as_deref().map(words), Some(words(want)), "{line}");
    }
}

#[test]
fn each_dialect_can_be_strict() {
    for head in ["submit", "submit-dist pytorch", "training submit", "workspace submit"] {
        let strict = |flag: &str| {
            let asked = submit(&format!("runai {head} j -i x {flag}"));
            creation(&asked, "j", "1".to_owned()).strict
        };
        assert_eq!((strict("--strict"), strict("")), (Some(true), None), "{head}");
    }
    let refused = crate::submission("submit j --strict").unwrap_err().to_string();
    assert!(refused.contains("--strict: nothing is submitted; leave it out"), "{refused}");
}

#[test]
fn what_no_flag_can_say_is_not_said() {
    for (line, kind) in [
        ("runai submit j -i x --interactive -g 2", "elastic"),
        ("runai submit j -i x", "more_nodes"),
        ("runai list", "elastic"),
        ("typed by hand 'and wrong", "elastic"),
    ] {
        assert_eq!(again(line, "a", kind, None), None, "{line}");
    }
    for flags in ["", "--min-replicas 1 --max-replicas 3"] {
        let line = format!("runai submit-dist pytorch j -i x {flags}");
        let fewer = |pods| again(&line, "a", "fewer_pods", Some(pods));
        assert_eq!(fewer("0"), None, "{line}");
        // A master with the specification of the workers is not a worker.
        assert_eq!(fewer("1").is_some(), flags.is_empty(), "{line}");
    }
}
