//! Tests of the supervisor: what it refuses, and what it reports of the end of a run.

use std::collections::BTreeMap;

use super::*;

#[test]
fn only_a_run_with_limits_needs_the_group_that_cannot_be_made() {
    let spec = |group: &str, limits: &str| {
        let text = format!(
            r#"{{"argv":[],"env":{{}},"working_dir":"/","group":{group},"limits":{limits}}}"#
        );
        serde_json::from_str::<ProcessSpec>(&text).expect("a specification")
    };
    let nowhere = r#"{"version":"v2","folders":{"cpu":"/no/such/place"}}"#;
    let none = r#"{"cpu_millis_max":null,"memory_bytes_max":null}"#;
    let some = r#"{"cpu_millis_max":500,"memory_bytes_max":null}"#;
    assert_eq!(confine(&spec("null", some)).expect("it starts, without"), None);
    assert_eq!(confine(&spec(nowhere, none)).expect("it starts, without"), None);
    assert!(confine(&spec(nowhere, some)).is_err(), "later it may do better");
}

#[test]
fn a_run_with_gpus_by_its_group_starts_in_one_that_limits_them_or_not_at_all() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = |group: &str| {
        let text = format!(
            r#"{{"argv":[],"env":{{}},"working_dir":"/","group":{group},"limits":{{}},"fraction":
                {{"limits":[],"simulated":[],"sockets":"","program":"",
                  "regions":{{"drm/0000:0a:00.0/vram0":8589934592}}}}}}"#
        );
        serde_json::from_str::<ProcessSpec>(&text).expect("a specification")
    };
    let own = dir.path().join("run");
    let of = |controller: &str| {
        spec(&format!(r#"{{"version":"v2","folders":{{"{controller}":"{}"}}}}"#, own.display()))
    };
    assert!(confine(&of("dmem")).expect("it starts").is_some());
    let written = std::fs::read_to_string(own.join("dmem.max")).expect("written");
    assert_eq!(written, "drm/0000:0a:00.0/vram0 8589934592");
    let not_kept = |spec: &ProcessSpec| match confine(spec) {
        Err(Fault::Refused(refusal)) => refusal.why,
        other => panic!("{other:?}"),
    };
    assert!(not_kept(&of("memory")).contains("no controller dmem"));
    assert!(not_kept(&spec("null")).contains("the run has no control group"));
    // The group is gone, and none can be made in its place.
    std::fs::remove_dir_all(&own).expect("removed");
    std::fs::write(&own, "").expect("written");
    assert!(not_kept(&of("dmem")).contains("dmem.max"));
}

#[test]
fn only_what_would_fail_again_is_the_runs_own_fault() {
    let around = RunContext {
        key: String::new(),
        env: BTreeMap::new(),
        working_dir: "/work".into(),
        group: None,
        boundary: None,
    };
    let refusal = |error| refusal(error, "train", &around);
    let own = |error: Errno| matches!(refusal(error.into()), Fault::OfRun(_));
    for error in [Errno::NOENT, Errno::ACCESS, Errno::NOEXEC, Errno::TOOBIG, Errno::LOOP] {
        assert!(own(error), "{error}");
    }
    for error in [
        Errno::AGAIN,
        Errno::NOMEM,
        Errno::NOSPC,
        Errno::MFILE,
        Errno::NFILE,
        Errno::IO,
        Errno::TXTBSY,
        Errno::INVAL,
    ] {
        assert!(!own(error), "{error}");
    }
    let zero = Command::new("a\0b").spawn().expect_err("no such name");
    assert!(matches!(refusal(zero), Fault::OfRun(_)));
}
