//! Rows of the list of workloads that were written before. Owns: that a row is written once for
//! each state of its workload, however often it is listed. Does not know about: which rows a list
//! has.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use api_types::Workload;
use convert::{Context, Surroundings, WorkloadRow};
use http_kit::ApiError;
use uuid::Uuid;
use view::{View, WorkloadView};

/// Most rows that are kept.
const ROWS_MAX: usize = 8192;
/// Typical length of a row, in bytes.
const ROW_BYTES: usize = 2560;

/// Stored rows.
#[derive(Debug, Default)]
pub(crate) struct WrittenRows(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    surroundings: Surroundings,
    rows: BTreeMap<Uuid, (Weak<WorkloadView>, WorkloadRow)>,
}

impl WrittenRows {
    /// A page of the workloads of a view. `fresh`: rows that have to be written each time.
    pub(crate) fn page(
        &self,
        page: &[Arc<WorkloadView>],
        next: Option<u64>,
        (view, context): (&View, &Context),
        fresh: &dyn Fn(&WorkloadView) -> Option<Workload>,
    ) -> Result<String, ApiError> {
        let mut rows = self.kept(page, view);
        debug_assert!(
            rows.iter().zip(page).all(|(row, one)| row.as_ref().is_none_or(|row| {
                WorkloadRow::of(one, view, context).is_ok_and(|new| new == *row)
            })),
            "a kept row is as if it were written now"
        );
        let own: Vec<_> = page.iter().map(|one| fresh(one)).collect();
        let mut written = Vec::new();
        for ((row, one), own) in rows.iter_mut().zip(page).zip(&own) {
            if row.is_some() || own.is_some() {
                continue;
            }
            let new = WorkloadRow::of(one, view, context)?;
            // One that is read from the database for each list never finds its row again.
            if view.workloads.contains_key(&one.id) {
                written.push((one.id, (Arc::downgrade(one), new.clone())));
            }
            *row = Some(new);
        }
        self.keep(written, view);
        let mut text = String::with_capacity((page.len() + 1) * ROW_BYTES);
        text.push_str("{\"workloads\":[");
        for (at, (one, row)) in page.iter().zip(own.iter().zip(&rows)).enumerate() {
            text.push_str(if at == 0 { "" } else { "," });
            match row {
                (Some(own), _) => {
                    text.push_str(&serde_json::to_string(own).map_err(ApiError::internal)?);
                }
                (None, Some(row)) => row.write(one, context.now, &mut text),
                (None, None) => {}
            }
        }
        text.push(']');
        if let Some(next) = next {
            text.push_str(&format!(",\"next\":{next}"));
        }
        text.push('}');
        Ok(text)
    }

    /// Stored rows of a page; `None` for rows that are missing or outdated.
    fn kept(&self, page: &[Arc<WorkloadView>], view: &View) -> Vec<Option<WorkloadRow>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.surroundings.are_those_of(view) {
            *kept = Kept { surroundings: Surroundings::of(view), rows: BTreeMap::new() };
        }
        let kept_one = |one: &Arc<WorkloadView>| {
            let (of, row) = kept.rows.get(&one.id)?;
            (of.as_ptr() == Arc::as_ptr(one) && row.says_why(one, view)).then(|| row.clone())
        };
        page.iter().map(kept_one).collect()
    }

    fn keep(&self, written: Vec<(Uuid, (Weak<WorkloadView>, WorkloadRow))>, view: &View) {
        if written.is_empty() {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another list may be of another moment.
        if kept.surroundings.are_those_of(view) {
            if kept.rows.len() + written.len() > ROWS_MAX {
                kept.rows.clear();
            }
            kept.rows.extend(written);
        }
    }
}
