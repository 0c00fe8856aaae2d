//! Workloads in the orders of lists. Owns: that several lists of one moment are sorted only once.
//! Does not know about: which rows a list omits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use http_kit::{ListQuery, Row};
use units::Instant;
use view::{View, WorkloadView};

/// All workloads of a moment, in one order.
pub(crate) type Ordered = Arc<[Arc<WorkloadView>]>;

/// Fields that change without any change of the workload.
const CHANGING: [&str; 2] = ["totalPendingTimeSeconds", "totalRunningTimeSeconds"];

/// The orders of the newest view.
#[derive(Debug, Default)]
pub(crate) struct Orders(Mutex<OfView>);

#[derive(Debug, Default)]
struct OfView {
    view: Weak<View>,
    /// Orders by field and direction; `None` after the first query, which is sorted by itself.
    orders: BTreeMap<(Option<String>, bool), Option<Ordered>>,
}

impl Orders {
    /// All workloads in the order of a query. `None` if sorting all is not worthwhile: for the
    /// first list in this order since a change, or for an order that changes by itself.
    pub(crate) fn of(&self, view: &Arc<View>, query: &ListQuery, now: Instant) -> Option<Ordered> {
        let (field, descends) = query.order();
        let known = |field| WorkloadView::FIELDS.iter().any(|(name, _)| *name == field);
        if field.is_some_and(|field| !known(field) || CHANGING.contains(&field)) {
            return None;
        }
        let key = (field.map(str::to_owned), descends);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.view.as_ptr() != Arc::as_ptr(view) {
            *known = OfView { view: Arc::downgrade(view), orders: BTreeMap::new() };
        }
        match known.orders.get(&key) {
            Some(Some(ordered)) => return Some(ordered.clone()),
            Some(None) => {}
            None => {
                known.orders.insert(key, None);
                return None;
            }
        }
        // Others need not wait while it is put in order.
        drop(known);
        let ordered = in_order(view, field, descends, now);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.view.as_ptr() == Arc::as_ptr(view) {
            known.orders.insert(key, Some(ordered.clone()));
        }
        Some(ordered)
    }
}

/// By a field, then by age.
fn in_order(view: &View, field: Option<&str>, descends: bool, now: Instant) -> Ordered {
    let mut all: Vec<_> = view.workloads.values().cloned().collect();
    all.sort_unstable_by_key(|workload| workload.seq);
    if let Some(field) = field {
        let mut keys: Vec<_> = all.iter().map(|one| (one.field(field, now), one)).collect();
        keys.sort_by(
            |(left, _), (right, _)| {
                if descends { right.cmp(left) } else { left.cmp(right) }
            },
        );
        return keys.into_iter().map(|(_, one)| one.clone()).collect();
    }
    all.into()
}
