//! Changed objects to the wire. Owns: that each is as its list shows it.

use access::DocumentView;
use api_types::{Change, ChangeFrame, ChangeKind};
use auth::Resource;
use control::feed::{Entry, Key};
use convert::PodRow;
use http_kit::ApiError;
use serde::Serialize;
use view::View;

use crate::Context;

/// Kind of an object in the stream; `None` if it is not in the stream.
pub(super) fn kind_of(key: &Key, context: &Context) -> Option<ChangeKind> {
    Some(match key {
        Key::Department(_) => ChangeKind::Department,
        Key::Project(_) => ChangeKind::Project,
        Key::Pool(_) => ChangeKind::NodePool,
        Key::Node(_) => ChangeKind::Node,
        Key::Gpu(..) => ChangeKind::Gpu,
        Key::Reason(_) => ChangeKind::Reason,
        Key::Workload(_) | Key::Row(_) => ChangeKind::Workload,
        Key::Pod(..) => ChangeKind::Pod,
        Key::Object(stored, _) => context.documents_of(stored)?.kind,
    })
}

/// Resource that roles name for an object.
pub(super) fn resource_of(key: &Key, context: &Context) -> Option<Resource> {
    Some(match key {
        Key::Department(_) => Resource::Department,
        Key::Project(_) => Resource::Project,
        Key::Pool(_) => Resource::NodePools,
        Key::Node(_) | Key::Gpu(..) => Resource::Nodes,
        Key::Reason(_) | Key::Workload(_) | Key::Row(_) | Key::Pod(..) => Resource::Workloads,
        Key::Object(stored, _) => context.documents_of(stored)?.resource,
    })
}

/// The text of a change; `None` if there is none to send. `is_seen` is true for projects whose pods
/// may be shown within another object.
pub(super) fn text(
    context: &Context,
    view: &View,
    entry: &Entry,
    is_seen: &dyn Fn(u64) -> bool,
) -> Option<String> {
    let kind = kind_of(&entry.key, context)?;
    let frame = Frame { context, view, entry, kind, is_seen };
    match frame.text() {
        Ok(text) => text,
        Err(fault) => {
            tracing::error!(key = ?entry.key, "a change is left out: {}", fault.message());
            None
        }
    }
}

/// Parts that a frame is made from.
struct Frame<'a> {
    context: &'a Context,
    view: &'a View,
    entry: &'a Entry,
    kind: ChangeKind,
    is_seen: &'a dyn Fn(u64) -> bool,
}

impl Frame<'_> {
    fn text(&self) -> Result<Option<String>, ApiError> {
        let (view, key) = (self.view, &self.entry.key);
        if self.entry.deleted {
            return self.deletion();
        }
        let context = convert::Context::new(self.context, &self.context.origins);
        let id = self.id();
        let workload = |id| self.entry.archived.as_ref().or_else(|| view.workloads.get(id));
        Ok(match key {
            Key::Department(number) => match view.departments.get(number) {
                Some(found) => Some(self.of(id, convert::department(found, view, &context))?),
                None => None,
            },
            Key::Project(number) => match view.projects.get(number) {
                Some(found) => Some(self.of(id, convert::project(found, view, &context))?),
                None => None,
            },
            Key::Pool(name) => match view.pools.iter().find(|pool| *pool.id == **name) {
                Some(found) => Some(self.of(id, convert::node_pool(found, view, &context))?),
                None => None,
            },
            Key::Node(name) => match view.nodes.iter().find(|node| *node.name == **name) {
                Some(found) => Some(self.of(id, convert::node(found, &context))?),
                None => None,
            },
            Key::Gpu(node, index) => {
                let node = view.nodes.iter().find(|found| *found.name == **node);
                match node.and_then(|node| node.gpu(*index)) {
                    Some(found) => {
                        Some(self.of(id, convert::gpu(&found, view, &context, self.is_seen))?)
                    }
                    None => None,
                }
            }
            Key::Workload(number) => match workload(number) {
                Some(found) => {
                    Some(self.of(id, convert::in_list(convert::workload(found, view, &context)))?)
                }
                None => None,
            },
            Key::Row(number) => match workload(number) {
                Some(found) => Some(self.of(id, convert::grid_row(found))?),
                None => None,
            },
            Key::Reason(class) => match view.pending.reasons(*class) {
                Some(found) => Some(self.of(id, convert::shared_reason(class.0, found))?),
                None => None,
            },
            Key::Pod(of, number) => {
                let of = workload(of);
                let row = of.and_then(|of| PodRow::of(of).find(|row| row.id() == *number));
                match row {
                    Some(row) => Some(self.of(id, convert::pod(&row, view, &context))?),
                    None => None,
                }
            }
            Key::Object(stored, number) => {
                let found = view.objects.get(stored, number);
                let of = self.context.documents_of(stored).zip(found);
                match of.map(|(of, found)| (of.shown)(self.context, view, found)).transpose()? {
                    Some(Some(DocumentView { id, object })) => Some(self.of(id, object)?),
                    _ => None,
                }
            }
        })
    }

    fn id(&self) -> String {
        match &self.entry.key {
            Key::Department(id) | Key::Project(id) => id.to_string(),
            Key::Pool(id) | Key::Node(id) | Key::Object(_, id) => id.to_string(),
            Key::Gpu(node, index) => format!("{node}/{index}"),
            Key::Reason(class) => class.0.to_string(),
            Key::Workload(id) | Key::Row(id) | Key::Pod(_, id) => id.to_string(),
        }
    }

    fn deletion(&self) -> Result<Option<String>, ApiError> {
        match &self.entry.key {
            // The object that shows it still exists, or its own deletion is sent.
            Key::Object(stored, _)
                if self.context.documents_of(stored).is_none_or(|of| of.is_part) =>
            {
                Ok(None)
            }
            _ => line(&ChangeFrame::Deleted(self.change::<()>(self.id(), None))).map(Some),
        }
    }

    fn of<T: Serialize>(&self, id: String, object: T) -> Result<String, ApiError> {
        line(&ChangeFrame::Changed(self.change(id, Some(object))))
    }

    fn change<T>(&self, id: String, object: Option<T>) -> Change<T> {
        let (kind, version, place) = (self.kind, self.entry.version, self.entry.place);
        let project_id = place.project().map(|id| id.to_string());
        let department_id = place.department.map(|id| id.to_string());
        Change { kind, id, version, project_id, department_id, object }
    }
}

/// A frame as a line of the stream.
pub(super) fn line<T: Serialize>(frame: &ChangeFrame<T>) -> Result<String, ApiError> {
    let json = serde_json::to_string(frame).map_err(ApiError::internal)?;
    Ok(format!("data: {json}\n\n"))
}
