//! Effects of draining a node on workloads. Owns: the sentences that say them, and that a drain
//! after which work waits, or other work is stopped, needs `force`. Does not know about: how the
//! effects are predicted.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::Caller;
use http_kit::ApiError;
use serde_json::json;
use sim::Decision;
use spec::Scheduling;
use units::counted;
use uuid::Uuid;
use view::{PodView, View, WorkloadView};

use crate::ApiState;
use crate::prediction::predicted;
use crate::quota_effects::QuotaEffects;
use crate::what_if::read_steps;

/// Most workloads with a sentence of their own.
const NAMED_MAX: usize = 20;
/// Unsaved run time that is not worth a word, in milliseconds.
const UNSAVED_MS_MIN: u64 = 60_000;

/// A node that is considered for draining, with the effects on the workloads of a moment.
#[derive(Debug, Clone)]
pub(crate) struct Drain {
    node: String,
    /// The runs of pods on the node at that moment.
    runs: Vec<(Uuid, u32)>,
    /// True if it is drained already, or gone.
    is_drained: bool,
    lines: Vec<String>,
    losses: Vec<String>,
}

/// Prediction for the pods of a workload.
#[derive(Debug, Default)]
struct Fate {
    /// Node that each stopped pod leaves, by the number of the pod.
    from: BTreeMap<u32, String>,
    /// Next node of these pods.
    to: BTreeMap<u32, String>,
    beneficiary: Option<String>,
    resized: bool,
}

impl Drain {
    /// Predicts the effects; there are none if there is no such node, or it is drained already.
    ///
    /// # Errors
    /// The state cannot be read.
    pub(crate) async fn considered(
        (state, caller): (&ApiState, &Caller),
        node: &str,
    ) -> Result<Self, ApiError> {
        let view = state.control.view();
        let runs = runs_on(&view, node);
        let found = view.nodes.iter().find(|one| one.name == node);
        let node = node.to_owned();
        let is_drained = found.is_none_or(|one| one.scheduling == Scheduling::Draining);
        let (lines, losses) = (Vec::new(), Vec::new());
        let mut drain = Self { node, runs, is_drained, lines, losses };
        if is_drained {
            return Ok(drain);
        }
        let asked = read_steps(&[json!({"drain": [&*drain.node]})], Vec::new())?;
        let (now, decisions) = predicted((state, caller), asked).await?;
        for ((project, name), fate) in fates(&decisions) {
            let named =
                |one: &&Arc<WorkloadView>| (&*one.project_name, &*one.spec.name) == (project, name);
            // A replica is known by the name of its inference.
            let revision = view.revisions.values().find(named).and_then(|one| one.spec.revision);
            let workload = match revision {
                Some(revision) => view.workloads.get(&revision.of),
                None => view.workloads.values().find(named),
            };
            let name = workload.map_or(name, |workload| &*workload.spec.name);
            drain.note((project, name), &fate, workload.map_or(0, |it| unsaved_ms(it, now)));
        }
        [&mut drain.lines, &mut drain.losses].into_iter().for_each(abridge);
        Ok(drain)
    }

    fn note(&mut self, (project, name): (&str, &str), fate: &Fate, unsaved_ms: u64) {
        let of = format!("{name} of {project}");
        let unsaved = match unsaved_ms {
            UNSAVED_MS_MIN.. => {
                format!("; it has saved nothing for {} min", unsaved_ms / 60_000)
            }
            _ => String::new(),
        };
        if fate.resized && fate.from.is_empty() {
            self.lines.push(format!("{of} would change its size"));
        }
        let is_here = |from: &&String| **from == self.node;
        let elsewhere: Vec<_> = fate.from.values().filter(|from| !is_here(from)).collect();
        let waits = fate.from.keys().filter(|pod| !fate.to.contains_key(pod)).count();
        if let Some(from) = elsewhere.first() {
            let whom = fate.beneficiary.as_ref();
            let whom = whom.map(|whom| format!(" for {whom}")).unwrap_or_default();
            let line = format!("{of}, on {from}, would be stopped{whom}{unsaved}");
            self.losses.push(line);
        } else if waits > 0 {
            let what = match fate.from.len() {
                1 => String::new(),
                _ => format!("{} of ", counted(waits, "pod")),
            };
            self.losses.push(format!("{what}{of} would be stopped and wait for a place{unsaved}"));
        } else if !fate.from.is_empty() {
            let mut nodes: Vec<_> = fate.to.values().map(String::as_str).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let nodes = nodes.join(", ");
            self.lines.push(format!("{of} would start again on {nodes}{unsaved}"));
        }
    }

    /// The effects, for a state in which the same runs are on the node.
    pub(crate) fn as_of(&self, view: &View) -> QuotaEffects {
        let mut losses = self.losses.clone();
        let has_come = |run: &(Uuid, u32)| !self.runs.contains(run);
        if !self.is_drained && runs_on(view, &self.node).iter().any(has_come) {
            losses.push(format!("other pods came to {} meanwhile", self.node));
        }
        QuotaEffects::new(self.lines.clone(), losses)
    }

    /// The effects.
    pub(crate) fn effects(self) -> QuotaEffects {
        QuotaEffects::new(self.lines, self.losses)
    }
}

/// Leaves out the last of too many sentences, and says how many.
fn abridge(lines: &mut Vec<String>) {
    let others = lines.len().saturating_sub(NAMED_MAX);
    if others > 0 {
        lines.truncate(NAMED_MAX);
        lines.push(format!("{} more likewise", counted(others, "workload")));
    }
}

/// Run time of a workload since it last saved its work, as far as that is reported.
fn unsaved_ms(workload: &WorkloadView, now: units::Instant) -> u64 {
    workload.unsaved_since.map_or(0, |since| now.since_ms(since))
}

fn runs_on(view: &View, node: &str) -> Vec<(Uuid, u32)> {
    let is_there = |pod: &&PodView| pod.node_name.as_deref() == Some(node);
    let pods = view.workloads.values().flat_map(|workload| &workload.pods).filter(is_there);
    let mut runs: Vec<_> = pods.map(|pod| (pod.id, pod.generation)).collect();
    runs.sort_unstable();
    runs
}

/// The prediction for each workload with decisions, by project and name.
fn fates(decisions: &[Decision]) -> BTreeMap<(&str, &str), Fate> {
    let mut fates: BTreeMap<(&str, &str), Fate> = BTreeMap::new();
    for one in decisions {
        let fate = fates.entry((&one.project, &one.workload)).or_default();
        match one.kind {
            "evict" | "move" => {
                if let Some(from) = &one.from {
                    fate.from.entry(one.task).or_insert_with(|| from.node.clone());
                }
                fate.to.remove(&one.task);
                fate.to.extend(one.to.as_ref().map(|to| (one.task, to.node.clone())));
                fate.beneficiary = fate.beneficiary.take().or_else(|| one.beneficiary.clone());
            }
            "bind" | "reserve" => {
                fate.to.extend(one.to.as_ref().map(|to| (one.task, to.node.clone())));
            }
            "unreserve" => drop(fate.to.remove(&one.task)),
            "resize" => fate.resized = true,
            _ => {}
        }
    }
    fates
}
