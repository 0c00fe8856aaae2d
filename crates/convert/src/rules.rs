//! Conversion of scheduling rules from and to the wire.

use api_types::SchedulingRules;
use http_kit::ApiError;
use spec::Rules;

/// Maximum of a limit in seconds: a hundred years.
const SECONDS_MAX: u64 = 100 * 366 * 86_400;

/// Converts rules from the wire.
pub(super) fn rules(asked: &SchedulingRules) -> Result<Rules, ApiError> {
    let ms = |name: &str, seconds: Option<u64>| match seconds {
        Some(seconds) if !(1..=SECONDS_MAX).contains(&seconds) => {
            let why =
                format!("`{seconds}` is not allowed; write 1 to {SECONDS_MAX}, or leave it out");
            Err(ApiError::field(&format!("schedulingRules.{name}"), why))
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
        training_idle_ms_max: ms(
            "trainingJobMaxIdleDurationSeconds",
            asked.training_job_max_idle_duration_seconds,
        )?,
        workspace_idle_ms_max: ms(
            "interactiveJobMaxIdleDurationSeconds",
            asked.interactive_job_max_idle_duration_seconds,
        )?,
        preemptible_workspace_idle_ms_max: ms(
            "interactiveJobPreemptIdleDurationSeconds",
            asked.interactive_job_preempt_idle_duration_seconds,
        )?,
    })
}

/// Converts rules to the wire.
pub(super) fn rules_wire(rules: Rules) -> SchedulingRules {
    let seconds = |ms: Option<u64>| ms.map(|ms| ms / 1000);
    SchedulingRules {
        interactive_job_time_limit_seconds: seconds(rules.workspace_run_ms_max),
        training_job_time_limit_seconds: seconds(rules.training_run_ms_max),
        interactive_job_max_idle_duration_seconds: seconds(rules.workspace_idle_ms_max),
        interactive_job_preempt_idle_duration_seconds: seconds(
            rules.preemptible_workspace_idle_ms_max,
        ),
        training_job_max_idle_duration_seconds: seconds(rules.training_idle_ms_max),
    }
}
