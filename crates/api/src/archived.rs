//! Lists of workloads where some are archived. Owns: that a list is the same as if all were in
//! memory, and that a usual one reads only its page from the database. Does not know about: which
//! workloads are archived, and when.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::Caller;
use auth::Resource;
use control::Handle;
use convert::Listed;
use http_kit::{ApiError, ListQuery, Row};
use records::{ArchivedFilter, ArchivedKey, ArchivedOrder, ArchivedPlace};
use spec::WorkloadKind;
use units::Instant;
use uuid::Uuid;
use view::{Phase, View, WorkloadView};

/// Archived workloads that are read at once where all have to be looked at.
const CHUNK: u64 = 500;
/// Fields in which all archived workloads are alike: they have no place.
const ALIKE: [&str; 11] = [
    "nodepool",
    "allocatedGPU",
    "allocatedCPU",
    "allocatedCPUMemory",
    "runningPods",
    "nodes",
    "deletedAt",
    "allocatedGPUMemory",
    "idleGpus",
    "idleAllocatedGpus",
    "idleTimeSeconds",
];

/// Archived workloads that a query may select.
pub(crate) struct Selected {
    filter: ArchivedFilter,
    /// True if the filter selects exactly these workloads. Else each has to be checked.
    is_exact: bool,
    /// One of them, for comparisons with others.
    sample: Arc<WorkloadView>,
}

impl Selected {
    /// Archived workloads that the caller may see and a query may select; `None` if there are none.
    /// `called` maps a field of the rows to the field of a workload.
    pub(crate) async fn of(
        control: &Handle,
        (view, caller, now): (&View, &Caller, Instant),
        query: &ListQuery,
        called: fn(&str) -> Option<&str>,
    ) -> Result<Option<Self>, ApiError> {
        if query.deleted || view.archived.is_empty() {
            return Ok(None);
        }
        let any = control.archived_first(&ArchivedFilter::default(), 1).await?.pop();
        let Some(sample) = any else { return Ok(None) };
        let sight = caller.sight(Resource::Workloads, view);
        let mut filter = ArchivedFilter::default();
        let mut projects: Vec<u64> = view.projects.keys().copied().collect();
        projects.retain(|id| sight.has(*id));
        let mut is_exact = !query.searches();
        let (mut kinds, mut failed) = (WorkloadKind::ALL.to_vec(), vec![false, true]);
        let mut none = false;
        for (number, (field, equal, operand)) in query.conditions().enumerate() {
            let holds = |probe: &WorkloadView| -> Result<bool, ApiError> {
                query.holds::<WorkloadView, Listed>(number, probe, now)
            };
            let parts = || operand.split('|').chain([operand]).map(str::to_owned);
            match called(field) {
                Some("projectId" | "projectName" | "departmentId" | "departmentName") => {
                    retain(&mut projects, |id| holds(&in_project(&sample, *id, view)))?;
                }
                Some("type" | "category") => {
                    retain(&mut kinds, |kind| holds(&of_kind(&sample, *kind)))?;
                }
                Some("phase") => retain(&mut failed, |failed| holds(&ended(&sample, *failed)))?,
                Some(field) if ALIKE.contains(&field) => {
                    none |= !holds(&sample)?;
                }
                Some("name") if equal => narrow(&mut filter.names, parts()),
                Some("submittedBy") if equal => narrow(&mut filter.users, parts()),
                Some("id") if equal => narrow(&mut filter.ids, parts().filter_map(id_of)),
                _ => is_exact = false,
            }
        }
        filter.projects = (projects.len() < view.projects.len()).then_some(projects);
        filter.kinds = (kinds.len() < WorkloadKind::ALL.len()).then_some(kinds);
        filter.failed = if failed.len() == 1 { failed.pop() } else { None };
        if none || failed.is_empty() && filter.failed.is_none() {
            filter.ids = Some(Vec::new());
        }
        Ok(Some(Self { filter, is_exact, sample }))
    }

    /// The page of a query over the workloads in memory that match, in order, and these.
    pub(crate) async fn page(
        self,
        control: &Handle,
        view: &View,
        here: Vec<Arc<WorkloadView>>,
        (query, now): (&ListQuery, Instant),
    ) -> Result<(Vec<Arc<WorkloadView>>, Option<u64>), ApiError> {
        match self.order(query) {
            Some(order) if self.is_exact => {
                self.merged(control, view, here, (query, now), order).await
            }
            _ => {
                let mut first = here;
                self.each(control, view, |chunk| {
                    first.extend(chunk);
                    let all = first.iter().map(AsRef::as_ref);
                    let kept =
                        query.up_to_page::<WorkloadView, Listed, _>(all, now, |one| one.seq)?;
                    let kept: Vec<Uuid> = kept.into_iter().map(|one| one.id).collect();
                    let mut all: BTreeMap<Uuid, _> =
                        first.drain(..).map(|one| (one.id, one)).collect();
                    first.extend(kept.iter().filter_map(|id| all.remove(id)));
                    Ok(())
                })
                .await?;
                Ok(query.page(first))
            }
        }
    }

    /// How many of them match, beside those in memory.
    pub(crate) async fn count(
        self,
        control: &Handle,
        view: &View,
        (query, now): (&ListQuery, Instant),
    ) -> Result<u64, ApiError> {
        let ArchivedFilter { projects, kinds, failed, names, users, ids, .. } = &self.filter;
        if self.is_exact && names.is_none() && users.is_none() && ids.is_none() {
            let counted = |key: &ArchivedKey| {
                projects.as_ref().is_none_or(|all| all.contains(&key.project_id))
                    && kinds.as_ref().is_none_or(|all| all.contains(&key.kind))
                    && failed.is_none_or(|failed| failed == key.failed)
            };
            return Ok(view.archived.iter().filter(|(key, _)| counted(key)).map(|(_, n)| n).sum());
        }
        if self.is_exact {
            return Ok(control.archived_count(&self.filter).await?);
        }
        let mut count = 0;
        self.each(control, view, |chunk| {
            let all = chunk.iter().map(AsRef::as_ref);
            count += query.matching::<WorkloadView, Listed>(all, now)?.len() as u64;
            Ok(())
        })
        .await?;
        Ok(count)
    }

    /// Reads all of them, some at a time, by age.
    pub(crate) async fn each(
        mut self,
        control: &Handle,
        view: &View,
        mut take: impl FnMut(Vec<Arc<WorkloadView>>) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        loop {
            let mut chunk = control.archived_first(&self.filter, CHUNK).await?;
            let Some(last) = chunk.last() else { return Ok(()) };
            self.filter.after_seq = last.seq;
            // A workload may have left memory since the view was made.
            chunk.retain(|one| !view.workloads.contains_key(&one.id));
            take(chunk)?;
        }
    }

    /// The order in the database that is the one of a query.
    fn order(&self, query: &ListQuery) -> Option<ArchivedOrder> {
        Some(match query.order().0 {
            None => ArchivedOrder::Seq,
            Some(field) if ALIKE.contains(&field) => ArchivedOrder::Seq,
            Some("name") => ArchivedOrder::Name,
            Some("qualifiedName") => ArchivedOrder::ProjectAndName,
            Some("createdAt") => ArchivedOrder::Created,
            Some("activity") => ArchivedOrder::CreatedAndName,
            Some("completedAt" | "phaseUpdatedAt") => ArchivedOrder::Completed,
            Some(_) => return None,
        })
    }

    /// Merges archived workloads into a page of `here`. Reads only the sort keys of the archived
    /// ones, and those on the page.
    async fn merged(
        mut self,
        control: &Handle,
        view: &View,
        here: Vec<Arc<WorkloadView>>,
        (query, now): (&ListQuery, Instant),
        order: ArchivedOrder,
    ) -> Result<(Vec<Arc<WorkloadView>>, Option<u64>), ApiError> {
        let (field, descending) = query.order();
        (self.filter.order, self.filter.descending) = (order, descending);
        let (offset, length, _) = query.window();
        // Archived ones before the page, as many as there are at least.
        let skip = offset.saturating_sub(here.len() as u64);
        let end = offset.saturating_add(length);
        let places = control.archived_places(&self.filter, skip, (end - skip).saturating_add(1));
        let mut places = places.await?;
        places.retain(|place| !view.workloads.contains_key(&place.id));
        let mut places = places.into_iter().peekable();
        let mut here = here.into_iter().peekable();
        let mut page = Vec::new();
        for position in skip..=end {
            let archived_first = match (here.peek(), places.peek()) {
                (None, None) => break,
                (Some(_), None) => false,
                (None, Some(_)) => true,
                (Some(own), Some(place)) => {
                    let stored = placed(&self.sample, place, view);
                    let by =
                        field.map(|field| stored.field(field, now).cmp(&own.field(field, now)));
                    let by = by.map(|by| if descending { by.reverse() } else { by });
                    by.unwrap_or(std::cmp::Ordering::Equal).then(place.seq.cmp(&own.seq)).is_lt()
                }
            };
            let next = match archived_first {
                true => places.next().map(|place| Err(place.id)),
                false => here.next().map(Ok),
            };
            page.extend(next.filter(|_| position >= offset));
        }
        let (page, next) = query.page_at_once(page);
        let ids: Vec<Uuid> = page.iter().filter_map(|one| one.as_ref().err().copied()).collect();
        let found = control.archived_with(&ids).await?;
        let mut found: BTreeMap<Uuid, _> = found.into_iter().map(|one| (one.id, one)).collect();
        // Workloads deleted since then are left out.
        let one = |one: Result<_, Uuid>| one.map_or_else(|id| found.remove(&id), Some);
        Ok((page.into_iter().filter_map(one).collect(), next))
    }
}

fn retain<T: Copy>(
    all: &mut Vec<T>,
    holds: impl Fn(&T) -> Result<bool, ApiError>,
) -> Result<(), ApiError> {
    let kept = all.iter().filter_map(|one| match holds(one) {
        Ok(holds) => holds.then_some(Ok(*one)),
        Err(error) => Some(Err(error)),
    });
    *all = kept.collect::<Result<_, _>>()?;
    Ok(())
}

/// Keeps the elements of both lists; `None` is a list of all.
fn narrow<T: PartialEq>(to: &mut Option<Vec<T>>, values: impl Iterator<Item = T>) {
    let values = values.collect::<Vec<_>>();
    *to = Some(match to.take() {
        None => values,
        Some(before) => before.into_iter().filter(|one| values.contains(one)).collect(),
    });
}

/// An id as it is shown.
fn id_of(text: String) -> Option<Uuid> {
    Uuid::parse_str(&text).ok().filter(|id| id.to_string() == text)
}

fn in_project(sample: &WorkloadView, id: u64, view: &View) -> WorkloadView {
    let project = view.projects.get(&id);
    let department = |of: &Arc<view::ProjectView>| (of.department_id, of.department_name.clone());
    let (department_id, department_name) = project.map(department).unwrap_or_default();
    WorkloadView {
        project_id: id,
        project_name: project.map(|project| project.unit.name.clone()).unwrap_or_default(),
        department_id,
        department_name,
        ..sample.clone()
    }
}

fn of_kind(sample: &WorkloadView, kind: WorkloadKind) -> WorkloadView {
    let mut probe = sample.clone();
    Arc::make_mut(&mut probe.spec).kind = kind;
    probe
}

fn ended(sample: &WorkloadView, failed: bool) -> WorkloadView {
    let phase = if failed { Phase::Failed } else { Phase::Completed };
    WorkloadView { phase, ..sample.clone() }
}

/// A workload with the sort keys of an archived one, for comparisons.
fn placed(sample: &WorkloadView, place: &ArchivedPlace, view: &View) -> WorkloadView {
    let mut probe = in_project(sample, place.project_id, view);
    Arc::make_mut(&mut probe.spec).name.clone_from(&place.name);
    WorkloadView {
        created_at: place.created_at,
        phase_since: place.phase_since,
        completed_at: Some(place.completed_at),
        ..probe
    }
}
