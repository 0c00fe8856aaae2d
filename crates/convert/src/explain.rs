//! Explanation of the state of a workload.

use std::cell::Cell;

use api_types::{
    Advice, AdvisedChange, AdvisedRequest, Diagnosis, Explanation, FractionLimit, LiveEvent,
    Millis, Search, ShareInPool, StartEstimate,
};
use reasons::WorkloadRef;
use reasons::diagnosis as found;
use reasons::diagnosis::Change;
use spec::GpuRequest;
use units::Instant;
use view::codes::{IMAGE_PULL, NOT_READY, PLACES_KEPT, UPDATE_FAILED};
use view::{
    Phase, PodState, PodView, PoolShare, ProjectView, QueueStatus, ReasonView, View, WorkloadView,
};

use super::Context;
use super::advice::{self, May};
use super::advised::change_of;
use super::advised_steps::request_of;
use super::cluster::{fraction_limit, fractions_on, share_on};
use super::diagnosis_ids::Ids;
use super::diagnosis_values::{
    advised, before, held, held_by_queue, node_classes, not_counted, pods_placed,
};
use super::workload::{eviction, failure, message_of, nodes, phase_name, reason_of, reasons};

/// Puts a reason into words.
type Words<'a> = &'a dyn Fn(&ReasonView) -> String;

/// Explains the state of a workload.
pub fn explanation(
    (view, why): (&WorkloadView, &[ReasonView]),
    project: Option<&ProjectView>,
    events: Vec<LiveEvent>,
    diagnosis: Option<Diagnosis>,
    start_estimate: Option<StartEstimate>,
    now: Instant,
) -> Explanation {
    let pools = project.map_or_else(Vec::new, |project| pools_of(view, project));
    let sum = |of: fn(&PoolShare) -> u64| {
        Millis(pools.iter().fold(0, |sum: u64, pool| sum.saturating_add(of(pool))))
    };
    let (summary, stated) = summary(view, why.first(), now);
    Explanation {
        workload_id: view.id.to_string(),
        workload_name: view.spec.name.clone(),
        project_name: view.project_name.clone(),
        phase: phase_name(view.phase).to_owned(),
        summary,
        further_reasons: why
            .iter()
            .skip(usize::from(stated))
            .map(|why| reason_of(view, why))
            .collect(),
        pending_reasons: reasons(view, why),
        last_eviction: view.last_eviction.as_ref().map(eviction),
        fractions: None,
        project_quota: sum(|pool| pool.share.gpu_quota_millis),
        project_fair_share: sum(|pool| pool.status.fair_share.gpu_millis),
        project_allocated: sum(|pool| pool.status.allocated.gpu_millis),
        project_pools: match project.map_or(0, |project| project.unit.pools.len()) {
            0 | 1 => Vec::new(),
            _ => pools.iter().map(|pool| share_in_pool(pool)).collect(),
        },
        events,
        diagnosis,
        start_estimate,
        unsaved_since: view.unsaved_since.filter(|_| view.spec.preemptible).map(Into::into),
        training: None,
    }
}

/// The node pools that a workload uses, or may use, with the shares of its project there. Pools in
/// which the project has nothing are left out, unless there is no other.
fn pools_of<'a>(view: &WorkloadView, project: &'a ProjectView) -> Vec<&'a PoolShare> {
    let is_one = |pool: &&PoolShare| match (&view.pool, &*view.spec.node_pools) {
        (Some(own), _) => *pool.name == **own,
        (None, []) => {
            let usual = &project.effective_pools;
            usual.is_empty() || usual.iter().any(|name| **name == *pool.name)
        }
        (None, named) => named.iter().any(|name| **name == *pool.name),
    };
    let pools: Vec<_> = project.unit.pools.iter().filter(is_one).collect();
    let has_some = |pool: &&PoolShare| {
        let QueueStatus { allocated, fair_share, .. } = &pool.status;
        [pool.share.gpu_quota_millis, allocated.gpu_millis, fair_share.gpu_millis] != [0; 3]
    };
    let some: Vec<_> = pools.iter().copied().filter(has_some).collect();
    if some.is_empty() { pools } else { some }
}

fn share_in_pool(pool: &PoolShare) -> ShareInPool {
    ShareInPool {
        node_pool: pool.name.to_string(),
        quota: Millis(pool.share.gpu_quota_millis),
        fair_share: Millis(pool.status.fair_share.gpu_millis),
        allocated: Millis(pool.status.allocated.gpu_millis),
    }
}

/// Enforcement of the workload's GPU fractions on its nodes; `None` without fractions or nodes. It
/// is the same on all nodes of a workload.
pub fn fractions_kept(
    workload: &WorkloadView,
    view: &View,
    context: &Context,
) -> Option<FractionLimit> {
    if !matches!(workload.spec.pods.pod.gpu, GpuRequest::Shared(_)) {
        return None;
    }
    let on = nodes(workload);
    let node = view.nodes.iter().find(|node| on.contains(&node.name.to_string()))?;
    let set = workload.spec.sets().next()?;
    let run = spec::without_place(&workload.spec, set);
    if node.simulated && !engine::image::has_simulated_driver(&run) {
        let none = engine::FractionLimit::none(engine::FractionLimit::NO_SIMULATED_DRIVER);
        return Some(fraction_limit(&none, None));
    }
    // All its pods have equal shares of GPUs of one kind.
    let share = workload.pods.iter().find_map(|pod| pod.gpus.first());
    Some(match share {
        Some((_, millis)) => share_on(node, *millis, context),
        None => fractions_on(node, context),
    })
}

/// Advice that is not the scheduler's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FurtherAdvice {
    /// Kind of the change.
    pub kind: &'static str,
    /// The change.
    pub change: AdvisedChange,
    /// Number of workloads that would be stopped or moved for it.
    pub disturbs: u32,
    /// One sentence.
    pub message: String,
    /// Commands that make the change.
    pub commands: Vec<String>,
    /// The role or person with the permission, where the caller lacks it.
    pub ask: Option<String>,
    /// The request that makes the change; `None` if none does, or the caller may not send it.
    pub request: Option<AdvisedRequest>,
}

impl FurtherAdvice {
    fn lines(&self) -> Vec<String> {
        let commands = self.commands.iter().map(|command| format!("  {command}"));
        std::iter::once(self.message.clone()).chain(commands).collect()
    }

    fn shown(self) -> Advice {
        Advice {
            kind: self.kind.to_owned(),
            change: self.change,
            disturbs: self.disturbs,
            message: self.message,
            line: None,
            commands: self.commands,
            request: self.request,
            ask: self.ask,
            to: None,
        }
    }
}

/// The diagnosis without labels by which a node would go to another pool: it was tried out in its
/// present one.
fn within_pools(found: &found::Diagnosis, view: &View) -> found::Diagnosis {
    let is_of_pool = |label: &str| {
        let mut labels = view.pools.iter().filter_map(|pool| pool.settings.label.as_ref());
        labels.any(|(key, _)| key == label)
    };
    let mut found = found.clone();
    found.advice.retain(|one| match &one.change {
        Change::Label { key, .. } => !is_of_pool(key),
        _ => true,
    });
    found
}

/// Diagnosis of a waiting workload, for a caller with these rights, with further advice.
pub fn diagnosis(
    found: &reasons::diagnosis::Diagnosis,
    view: &View,
    now: Instant,
    may: &May<'_>,
    further: Vec<FurtherAdvice>,
) -> Diagnosis {
    let found = &within_pools(found, view);
    let further_lines = further.iter().map(FurtherAdvice::lines).collect();
    let searches = found
        .searches
        .iter()
        .map(|search| Search { code: search.code().code.to_owned(), message: search.text(now) });
    let ids = Ids::new(found, view);
    let how_to = |advice: &found::Advice| advice::how_to(advice, view, &|of| ids.of(of), may);
    let advice = found.advice.iter().map(|advice| (advice, how_to(advice)));
    let request = |advice: &found::Advice, how: &found::HowTo| {
        let workload = view.workloads.get(&ids.of(&advice.workload)?)?;
        let change = change_of(&advice.change, &ids);
        request_of(&change, workload, view).filter(|_| how.ask.is_none())
    };
    let advice = advice.map(|(advice, how)| {
        let request = request(advice, &how);
        advised(advice, (how, request), &ids, now)
    });
    let details = found.details_with(now, &how_to, further_lines);
    let all = advice.chain(further.into_iter().map(FurtherAdvice::shown));
    let advice = all.zip(&details.advice_at);
    let advice = advice.map(|(one, at)| Advice { line: u32::try_from(*at).ok(), ..one }).collect();
    Diagnosis {
        nodes: found.parts.iter().flat_map(reasons::diagnosis::Part::lines).collect(),
        holders: found.holders.lines(now),
        searches: searches.collect(),
        advice,
        node_classes: found.parts.iter().flat_map(node_classes).collect(),
        pod_sets: found.parts.iter().filter_map(pods_placed).collect(),
        workload_holdings: found.holders.workloads.iter().map(|one| held(one, &ids)).collect(),
        workload_holdings_more: found.holders.workloads_more,
        project_holdings: found.holders.queues.iter().map(held_by_queue).collect(),
        project_holdings_more: found.holders.queues_more,
        not_counted: found.holders.own_demand.as_ref().map(not_counted),
        ahead: found.ahead.named.iter().map(|one| before(one, &ids)).collect(),
        ahead_more: found.ahead.more,
        complete: found.complete,
        lines: details.lines,
    }
}

/// Lines of the diagnosis of a workload that was not submitted, for a caller with these rights: no
/// command updates the workload.
pub fn lines_before_submission(
    found: &reasons::diagnosis::Diagnosis,
    view: &View,
    now: Instant,
    may: &May<'_>,
) -> Vec<String> {
    let found = &within_pools(found, view);
    let ids = Ids::new(found, view);
    let how_to = |advice: &found::Advice| match advice.updates_workload() {
        true => found::HowTo::default(),
        false => {
            // Another workload may have the name.
            let find = |of: &WorkloadRef| ids.of(of).filter(|_| *of != advice.workload);
            advice::how_to(advice, view, &find, may)
        }
    };
    found.details_for(now, &how_to)
}

/// One sentence about the state of a workload; true if it states the reason.
fn summary(view: &WorkloadView, why: Option<&ReasonView>, now: Instant) -> (String, bool) {
    let stated = Cell::new(false);
    let text = summary_stating(view, why, now, &|why| {
        stated.set(true);
        format!("{} ({})", message_of(view, why), why.code)
    });
    (text, stated.get())
}

/// The sentence of a workload; `reason` puts a reason into words.
fn summary_stating(
    view: &WorkloadView,
    why: Option<&ReasonView>,
    now: Instant,
    reason: Words<'_>,
) -> String {
    let name = &view.spec.name;
    let gpus = units::gpus(view.allocated.gpu_millis);
    let nodes = || nodes(view).join(", ");
    if let Some(summary) = of_inference(view, why, (&nodes(), &gpus), reason) {
        return summary;
    }
    match (view.phase, why) {
        (Phase::Pending | Phase::Resuming, Some(why)) => match next_start(view) {
            None => format!("{name} waits: {}", reason(why)),
            Some((at, pod)) => format!(
                "{name} has failed ({}) and is started again in {} s at the earliest{}: {}",
                last_exit(pod),
                at.since_ms(now).div_ceil(1000),
                retry(view),
                reason(why)
            ),
        },
        (Phase::Pending | Phase::Resuming, None) => format!("{name} is about to be looked at"),
        (Phase::Initializing, Some(why)) if why.code == IMAGE_PULL.code => {
            waits_for_image(view, &reason(why), &nodes(), &gpus)
        }
        (Phase::Initializing, Some(why)) if why.code == PLACES_KEPT.code => {
            format!("{name} has lost pods: {}", reason(why))
        }
        (Phase::Initializing, Some(why)) => {
            format!("{name} is being started on {}: {}", nodes(), reason(why))
        }
        (Phase::Initializing, None) => match next_start(view) {
            None => format!("{name} is being started on {}", nodes()),
            Some((at, pod)) => format!(
                "{name} has ended ({}) and keeps its place on {}, where it starts again in {} s",
                last_exit(pod),
                nodes(),
                at.since_ms(now).div_ceil(1000)
            ),
        },
        (Phase::Running, _) if view.over_quota => {
            format!("{name} runs on {} with {gpus}, above its project's quota", nodes())
        }
        (Phase::Running | Phase::Updating, _) => {
            format!("{name} runs on {} with {gpus}", nodes())
        }
        (Phase::Degraded, _) => {
            format!("{name} runs on {} with {gpus} and fewer pods than it asks for", nodes())
        }
        (Phase::Stopping, _) => format!("{name} is being suspended"),
        (Phase::Stopped, _) => format!(
            "{name} is suspended; `runai resume {name} -p {}` queues it again",
            view.project_name
        ),
        (Phase::Deleting, _) => format!("{name} is being deleted"),
        (Phase::Completed, _) => format!("{name} has completed"),
        (Phase::Failed, _) => format!("{name} has {}", failure(view)),
    }
}

/// True if replicas of the former revision leave for those of the newest one.
fn gives_way(view: &WorkloadView) -> bool {
    let serving = view.pods.iter().filter(|pod| pod.state == PodState::Running).count();
    serving > 1 || view.spec.serving.as_ref().is_some_and(|serving| serving.recreate)
}

/// Summary of an inference that serves, or that runs and does not answer; `None` of any other
/// workload and phase.
fn of_inference(
    view: &WorkloadView,
    why: Option<&ReasonView>,
    (nodes, gpus): (&str, &str),
    reason: Words<'_>,
) -> Option<String> {
    view.spec.serving.as_ref()?;
    let (name, project) = (&view.spec.name, &view.project_name);
    Some(match (view.phase, why) {
        (Phase::Updating, why) => {
            let why = match why {
                Some(why) if view.waits_for_a_place() && gives_way(view) => format!(
                    "; the newest revision gets room as they leave, one by one ({})",
                    reason(why)
                ),
                Some(why) => format!(", which is not ready yet: {}", reason(why)),
                None => String::new(),
            };
            format!(
                "{name} is being updated on {nodes}: the replicas of the former revision serve until \
                 those of the newest one take over{why}"
            )
        }
        (Phase::Running | Phase::Degraded, Some(why)) if why.code == UPDATE_FAILED.code => {
            let back = view.serves.map_or_else(String::new, |serves| {
                format!(
                    "; `runai inference update {name} -p {project} --from-revision {serves}` goes back to \
                     the values that serve"
                )
            });
            format!("{name} was not updated: {}{back}", reason(why))
        }
        (Phase::Degraded, Some(why)) if why.code == NOT_READY.code => {
            let why = reason(why);
            format!("{name} holds {gpus} on {nodes}, and no replica answers: {why}")
        }
        (Phase::Running, _) if view.pods.is_empty() => format!(
            "{name} has no replicas, because no request comes; the next one starts a replica"
        ),
        _ => return None,
    })
}

fn waits_for_image(view: &WorkloadView, why: &str, nodes: &str, gpus: &str) -> String {
    let (name, project) = (&view.spec.name, &view.project_name);
    format!(
        "{name} cannot start on {nodes}: {why}; it holds {gpus} until the image can be pulled: see \
         that its name is right and the registry can be reached, or end it by `runai delete {name} -p \
         {project}`"
    )
}

/// The number of the next retry; empty where retries are not limited.
fn retry(view: &WorkloadView) -> String {
    let limit = view.spec.backoff_limit;
    let is_limited = view.spec.sets().any(|set| view.spec.gives_up(set.pod.restart));
    if is_limited { format!(" (retry {} of {limit})", view.restarts) } else { String::new() }
}

/// Text about the last end of a pod.
fn last_exit(pod: &PodView) -> &str {
    pod.last_exit.as_deref().unwrap_or("no trace")
}

/// The next pod to be restarted, and the time.
fn next_start(view: &WorkloadView) -> Option<(Instant, &PodView)> {
    let again = view.pods.iter().filter_map(|pod| Some((pod.restart_at?, pod)));
    again.min_by_key(|(at, _)| *at)
}
