//! Differences of two specifications of a workload. Owns: their names for people. Does not know
//! about: the changes that are allowed.

use crate::WorkloadSpec;

/// The differing fields, in words, each with `true` if it affects how the workload runs.
#[must_use]
pub fn differences(old: &WorkloadSpec, new: &WorkloadSpec) -> Vec<(String, bool)> {
    let yes = |value: bool| if value { "yes" } else { "no" };
    let mut all = Vec::new();
    if old.priority != new.priority {
        let (from, to) = (&old.priority.class, &new.priority.class);
        all.push((format!("priority from {from} to {to}"), true));
    }
    if old.preemptible != new.preemptible {
        let word = if new.preemptible { "preemptible" } else { "non-preemptible" };
        all.push((format!("preemptibility to {word}"), true));
    }
    if old.backoff_limit != new.backoff_limit {
        let (from, to) = (old.backoff_limit, new.backoff_limit);
        all.push((format!("back-off limit from {from} to {to}"), true));
    }
    if old.delete_when_preempted != new.delete_when_preempted {
        let to = yes(new.delete_when_preempted);
        all.push((format!("deletion after a preemption: {to}"), true));
    }
    if let Some(ms) = new.delete_after_ms.filter(|_| old.delete_after_ms != new.delete_after_ms) {
        let seconds = units::format_millis(ms);
        all.push((format!("deletion {seconds} s after its end"), false));
    }
    if old.gates != new.gates {
        let left = if new.gates.is_empty() { "none".to_owned() } else { new.gates.join(", ") };
        all.push((format!("gates to {left}"), true));
    }
    let [old_gpu, new_gpu] = [old, new].map(|spec| spec.pods.pod.gpu.limit());
    if let Some(limit) = new_gpu.filter(|_| old_gpu != new_gpu) {
        all.push((format!("most that it may use of each GPU to {limit}"), true));
    }
    if old.labels != new.labels {
        all.push(("labels".to_owned(), false));
    }
    if old.annotations != new.annotations {
        all.push(("annotations".to_owned(), false));
    }
    all
}
