//! Settings of what is kept: logs, ended workloads, places.

use super::up;

#[test]
fn logs_are_kept_for_a_day_or_more() {
    let audit = |text: &str, env: &[_]| up(&["--audit-kept", text], env);
    let kept = audit("10d", &[("ELASTANE_EVENTS_KEPT", "36h")]).unwrap().kept();
    assert_eq!((kept.events_ms, kept.audit_ms), (36 * 3_600_000, 10 * 86_400_000));
    for (text, said) in
        [("1h", "--audit-kept: `1h` is too short; at least 1d"), ("x", "`x` is not")]
    {
        let error = audit(text, &[]).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn any_bounded_number_of_ended_workloads_stays_in_memory() {
    let kept = |text: &str| up(&[&*format!("--ended-workloads-kept={text}")], &[]);
    assert_eq!(up(&[], &[]).unwrap().settings.ended_workloads_kept, orchestrator::ENDED_KEPT);
    for (text, count) in [("0", 0), ("100000", 100_000)] {
        assert_eq!(kept(text).unwrap().settings.ended_workloads_kept, count);
    }
    for text in ["-1", "100001", "many", ""] {
        let error = kept(text).unwrap_err().to_string();
        assert!(
            error.contains("is not a number of workloads; write one from 0 to 100000"),
            "{error}"
        );
    }
}

#[test]
fn places_are_kept_for_a_minute_at_most() {
    let kept = |text: &str| up(&[&*format!("--places-kept={text}")], &[]);
    assert_eq!(up(&[], &[]).unwrap().settings.places_kept, orchestrator::PLACES_KEPT_MS_MAX);
    for (text, ms) in [("0s", 0), ("1500ms", 1500), ("1m", 60_000)] {
        assert_eq!(kept(text).unwrap().settings.places_kept, ms);
    }
    for (text, why) in [
        ("soon", "is not a span of time up to 60s; write one such as 500ms or 30s"),
        ("61s", "is too long; at most 60s"),
    ] {
        let error = kept(text).unwrap_err().to_string();
        assert_eq!(error, format!("--places-kept: `{text}` {why}"));
    }
}
