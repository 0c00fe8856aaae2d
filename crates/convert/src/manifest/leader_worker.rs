//! Conversion of groups of a leader and workers (`LeaderWorkerSet`) to submissions. Owns: the
//! meaning of their supported fields.

use api_types::{DistributedFramework, PodGroups, RestartPolicy, WorkloadSpec};
use http_kit::{ApiError, read_part};
use serde::Deserialize;
use serde_json::Value;

use super::kinds::{Meta, Template};
use super::pod::{of_the_whole, pod};
use crate::pod_groups::check_number;

/// API group and kind.
pub(super) const KIND: (&str, &str) = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet");
/// Prefix of annotations reserved for the set's controller.
const ANNOTATIONS: &str = "leaderworkerset.sigs.k8s.io/";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LeaderWorkerSet {
    replicas: Option<u32>,
    startup_policy: Option<String>,
    leader_worker_template: LeaderWorkerTemplate,
    #[expect(dead_code, reason = "looked at in every manifest alike")]
    suspend: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LeaderWorkerTemplate {
    size: Option<u32>,
    restart_policy: Option<String>,
    leader_template: Option<Template>,
    worker_template: Template,
}

/// The workers of each group, the leader if it differs, and the groups.
pub(super) fn groups(
    meta: &Meta,
    spec: Value,
) -> Result<(WorkloadSpec, Option<WorkloadSpec>, PodGroups), ApiError> {
    const AT: &str = "manifest.spec";
    check_annotations("manifest.metadata", meta)?;
    let set: LeaderWorkerSet = read_part(AT, spec)?;
    if let Some(other) = set.startup_policy.filter(|policy| policy != "LeaderCreated") {
        let why = format!(
            "`{}` is not here, where the pods of a group begin together; write LeaderCreated, or \
             leave it out",
            units::shown(&other)
        );
        return Err(ApiError::field(&format!("{AT}.startupPolicy"), why));
    }
    let number = check_number(&format!("{AT}.replicas"), set.replicas.unwrap_or(1))?;
    let template = set.leader_worker_template;
    let at = format!("{AT}.leaderWorkerTemplate");
    let workers = match template.size.unwrap_or(1).checked_sub(1) {
        Some(workers) if workers > 0 => workers,
        _ => {
            let why = "is a leader and its workers: write 2 or more; pods that are each on their \
                       own are a Job with `parallelism`";
            return Err(ApiError::field(&format!("{at}.size"), why));
        }
    };
    let leader = template.leader_template;
    let leader = leader.map(|one| restarting(&format!("{at}.leaderTemplate"), one)).transpose()?;
    let spec = WorkloadSpec {
        distributed_framework: Some(DistributedFramework::LWS),
        num_workers: Some(workers),
        ..restarting(&format!("{at}.workerTemplate"), template.worker_template)?
    };
    let (spec, leader) = match leader {
        None => (spec, None),
        Some(leader) => {
            let (spec, leader) = of_the_whole(spec, leader);
            (spec, Some(leader))
        }
    };
    let recreate = recreate(&at, template.restart_policy.as_deref())?;
    Ok((spec, leader, PodGroups { number, recreate: Some(recreate) }))
}

/// Refuses annotations for the set's controller.
fn check_annotations(at: &str, meta: &Meta) -> Result<(), ApiError> {
    let mut names = meta.annotations.keys();
    let Some(name) = names.find(|name| name.starts_with(ANNOTATIONS)) else { return Ok(()) };
    let why = format!("`{}` is refused: it means nothing here; leave it out", units::shown(name));
    Err(ApiError::field(&format!("{at}.annotations"), why))
}

/// True if a failed group restarts as a whole; it does not wait until all of its pods have started.
fn recreate(at: &str, policy: Option<&str>) -> Result<bool, ApiError> {
    match policy {
        None | Some("RecreateGroupOnPodRestart" | "RecreateGroupAfterStart") => Ok(true),
        Some("None" | "Default") => Ok(false),
        Some(other) => {
            let why = format!(
                "`{}` is not known; RecreateGroupOnPodRestart, RecreateGroupAfterStart and None are",
                units::shown(other)
            );
            Err(ApiError::field(&format!("{at}.restartPolicy"), why))
        }
    }
}

/// The specification of a pod with restart policy `Always`, which all pods of such a set have.
fn restarting(at: &str, template: Template) -> Result<WorkloadSpec, ApiError> {
    check_annotations(&format!("{at}.metadata"), &template.metadata)?;
    let spec = pod(&format!("{at}.spec"), template)?;
    if spec.restart_policy.is_some_and(|policy| policy != RestartPolicy::Always) {
        let why = "is not Always, which pods of a LeaderWorkerSet have; leave it out";
        return Err(ApiError::field(&format!("{at}.spec.restartPolicy"), why));
    }
    Ok(WorkloadSpec { restart_policy: Some(RestartPolicy::Always), ..spec })
}
