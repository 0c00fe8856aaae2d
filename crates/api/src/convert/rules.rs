//! Scheduling rules in both directions. Owns: what of them can be acted on.

use api_types::SchedulingRules;
use control::view::Rules;

use crate::edge::Fault;

/// Longest limit: a hundred years.
const SECONDS_MAX: u64 = 100 * 366 * 86_400;

/// What a request asks for.
pub(super) fn rules(asked: &SchedulingRules) -> Result<Rules, Fault> {
    // Nothing measures yet whether a GPU is idle.
    for (name, asked) in [
        ("interactiveJobMaxIdleDurationSeconds", asked.interactive_job_max_idle_duration_seconds),
        (
            "interactiveJobPreemptIdleDurationSeconds",
            asked.interactive_job_preempt_idle_duration_seconds,
        ),
        ("trainingJobMaxIdleDurationSeconds", asked.training_job_max_idle_duration_seconds),
    ] {
        if asked.is_some() {
            return Err(Fault::not_yet(format!("schedulingRules.{name}")));
        }
    }
    let ms = |name: &str, seconds: Option<u64>| match seconds {
        Some(seconds) if !(1..=SECONDS_MAX).contains(&seconds) => {
            let why = format!("`{seconds}` is not allowed; 1 to {SECONDS_MAX}, or leave it out");
            Err(Fault::field(&format!("schedulingRules.{name}"), why))
        }
        seconds => Ok(seconds.map(|seconds| seconds * 1000)),
    };
    Ok(Rules {
        training_run_ms_max: ms(
            "trainingJobTimeLimitSeconds",
            asked.training_job_time_limit_seconds,
        )?,
        workspace_run_ms_max: ms(
            "interactiveJobTimeLimitSeconds",
            asked.interactive_job_time_limit_seconds,
        )?,
    })
}

/// Rules as the wire shows them.
pub(super) fn rules_wire(rules: Rules) -> SchedulingRules {
    SchedulingRules {
        interactive_job_time_limit_seconds: rules.workspace_run_ms_max.map(|ms| ms / 1000),
        training_job_time_limit_seconds: rules.training_run_ms_max.map(|ms| ms / 1000),
        ..SchedulingRules::default()
    }
}
