//! Workloads as rows of lists. Owns: the data that a row depends on, in addition to its workload.
//! Does not know about: the selection of rows, and how long they are cached.

use std::sync::Arc;

use http_kit::ApiError;
use spec::TOPOLOGY;
use units::Instant;
use view::{NodeView, ObjectsById, PendingReason, PoolView, ReasonView, View, WorkloadView};

use super::Context;
use super::workload::{times_s, workload};

/// Data other than the workload that rows depend on.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    nodes: Vec<Arc<NodeView>>,
    pools: Vec<Arc<PoolView>>,
    topologies: Option<Arc<ObjectsById>>,
}

impl Surroundings {
    /// The data of a view.
    #[must_use]
    pub fn of(view: &View) -> Self {
        let topologies = view.objects.shelf(TOPOLOGY).cloned();
        Self { nodes: view.nodes.clone(), pools: view.pools.clone(), topologies }
    }

    /// True if rows that were written with these data are the same with those of a view.
    #[must_use]
    pub fn are_those_of(&self, view: &View) -> bool {
        let same_node = |(one, other): (&Arc<NodeView>, &Arc<NodeView>)| {
            Arc::ptr_eq(one, other)
                || (&one.name, &one.gpu_memory_bytes) == (&other.name, &other.gpu_memory_bytes)
        };
        let same_pool = |(one, other): (&Arc<PoolView>, &Arc<PoolView>)| one.name == other.name;
        self.nodes.len() == view.nodes.len()
            && self.nodes.iter().zip(&view.nodes).all(same_node)
            && self.pools.len() == view.pools.len()
            && self.pools.iter().zip(&view.pools).all(same_pool)
            && self.topologies.as_ref().map(Arc::as_ptr)
                == view.objects.shelf(TOPOLOGY).map(Arc::as_ptr)
    }
}

/// A workload as JSON, without its times, which change continuously.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadRow {
    text: Arc<str>,
    /// Pending reasons of its classes, which may change without the workload.
    waits: Vec<Option<Arc<[ReasonView]>>>,
}

/// Maximum size of a command, arguments and command line in a row, in bytes.
const COMMAND_BYTES_MAX: usize = 4096;

/// A workload in the form of lists: without its environment and without long commands, so that a
/// page stays short.
#[must_use]
pub fn in_list(mut shown: api_types::Workload) -> api_types::Workload {
    let short = |text: &String| text.len() <= COMMAND_BYTES_MAX;
    shown.environment_variables = None;
    shown.command = shown.command.filter(short);
    shown.arguments = shown.arguments.filter(short);
    let extras = &mut shown.additional_fields;
    extras.command_line = extras.command_line.take().filter(short);
    shown
}

/// End of the JSON of a workload whose times are 0.
const NO_TIMES: &str = "\"totalPendingTimeSeconds\":0,\"totalRunningTimeSeconds\":0}";

impl WorkloadRow {
    /// Writes the row of a workload.
    ///
    /// # Errors
    /// The workload cannot be written as JSON.
    pub fn of(one: &WorkloadView, view: &View, context: &Context) -> Result<Self, ApiError> {
        let shown = api_types::Workload {
            total_pending_time_seconds: 0,
            total_running_time_seconds: 0,
            ..in_list(workload(one, view, context))
        };
        let text = serde_json::to_string(&shown).map_err(ApiError::internal)?;
        let text = text.strip_suffix(NO_TIMES);
        let text =
            text.ok_or_else(|| ApiError::internal("the times of a workload are not last"))?;
        Ok(Self { text: text.into(), waits: waits(one, view).map(Option::<&_>::cloned).collect() })
    }

    /// True if the row has the current pending reasons of its workload.
    #[must_use]
    pub fn says_why(&self, one: &WorkloadView, view: &View) -> bool {
        let then = self.waits.iter().map(|reasons| reasons.as_ref().map(Arc::as_ptr));
        then.eq(waits(one, view).map(|reasons| reasons.map(Arc::as_ptr)))
    }

    /// Appends the row to a text.
    pub fn write(&self, one: &WorkloadView, now: Instant, to: &mut String) {
        let (waited_s, ran_s) = times_s(one, now);
        let times =
            format!("\"totalPendingTimeSeconds\":{waited_s},\"totalRunningTimeSeconds\":{ran_s}}}");
        to.push_str(&self.text);
        to.push_str(&times);
    }
}

/// Pending reasons of the classes of a workload.
fn waits<'a>(
    one: &'a WorkloadView,
    view: &'a View,
) -> impl Iterator<Item = Option<&'a Arc<[ReasonView]>>> {
    let classes = one.pending.iter().filter_map(PendingReason::class);
    classes.map(|class| view.pending.reasons(class))
}
