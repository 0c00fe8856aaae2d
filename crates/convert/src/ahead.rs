//! The workloads that go before a waiting one in its project. Owns: their order and their sentences.
//! Does not know about: other projects, whose turn depends on shares.

use std::cmp::Reverse;

use api_types::{Millis, WorkloadAhead, WorkloadName};
use reasons::{BACKING_OFF, GATED, NOT_COUNTED};
use view::{View, WorkloadView};

/// Most workloads that are named.
const NAMED_MAX: usize = 5;

/// The workloads of its project that the scheduler looks at before a waiting one, the first first.
#[derive(Debug, Clone, Default)]
pub struct Ahead {
    pub(crate) named: Vec<WorkloadAhead>,
    more: usize,
}

/// The workloads that go before this one in its project: those that are more important, or as
/// important and older, and could start.
pub fn ahead(of: &WorkloadView, view: &View) -> Ahead {
    let rank = |one: &WorkloadView| (Reverse(one.spec.priority.value), one.created_at, one.id);
    let is_before = |one: &&WorkloadView| {
        one.project_id == of.project_id && rank(one) < rank(of) && stands_in_line(one, view)
    };
    let mut before: Vec<_> = view.workloads.values().map(AsRef::as_ref).filter(is_before).collect();
    before.sort_unstable_by_key(|one| rank(one));
    let more = before.len().saturating_sub(NAMED_MAX);
    let named = before.into_iter().take(NAMED_MAX).map(|one| WorkloadAhead {
        workload: WorkloadName {
            id: Some(one.id.to_string()),
            name: one.spec.name.clone(),
            project_name: one.project_name.clone(),
        },
        requested_gpus: Millis(one.requested.gpu_millis),
        priority: one.spec.priority.class.clone(),
        more_important: one.spec.priority.value > of.spec.priority.value,
    });
    Ahead { named: named.collect(), more }
}

/// True if a workload waits and may be given a place now.
fn stands_in_line(one: &WorkloadView, view: &View) -> bool {
    let is_apart = |code: &str| [NOT_COUNTED, GATED, BACKING_OFF].iter().any(|no| no.code == code);
    one.waits_for_a_place() && !view.why(one).iter().any(|why| is_apart(&why.code))
}

impl Ahead {
    /// A sentence for each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("and {} more", self.more));
        self.named.iter().map(line).chain(more).collect()
    }
}

fn line(of: &WorkloadAhead) -> String {
    let WorkloadAhead { workload, requested_gpus, priority, more_important } = of;
    let why = match more_important {
        true => format!("more important (priority {priority})"),
        false => "older".to_owned(),
    };
    let WorkloadName { name, project_name, .. } = workload;
    format!("{project_name}/{name} asks for {}: {why}", units::gpus(requested_gpus.0))
}
