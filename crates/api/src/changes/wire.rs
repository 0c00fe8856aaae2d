//! Changed objects to the wire. Owns: that each is as its list shows it, and which documents are in
//! the stream at all.

use std::sync::Arc;

use access::{Family as _, Item};
use api_types::{
    AccessKeySpec, Change, ChangeFrame, ChangeKind, Compute, ConfigMapAssetSpec,
    DockerRegistrySpec, EnvironmentAssetSpec, GenericSecretSpec, GitAssetSpec, HostPathSpec,
    NfsAssetSpec, NgcApiKeySpec, PasswordSpec, PvcAssetSpec, S3AssetSpec, SecretAssetSpec,
};
use auth::Resource;
use control::feed::{Entry, Key};
use convert::PodRow;
use http_kit::ApiError;
use iam::{LOGIN, USER};
use orchestrator::Object;
use orchestrator::view::View;
use serde::Serialize;

use crate::Server;
use assets::{AssetSpec, Stored, Template};

/// A kind of assets.
pub(super) struct AssetKind {
    stored: &'static str,
    pub(super) resource: Resource,
    shown: fn(&Frame<'_>, &Arc<Object>) -> Result<String, ApiError>,
}

impl AssetKind {
    const fn of<S: AssetSpec>() -> Self {
        Self { stored: S::STORED, resource: S::RESOURCE, shown: asset::<S> }
    }
}

const ASSET_KINDS: [AssetKind; 14] = [
    AssetKind::of::<Compute>(),
    AssetKind::of::<EnvironmentAssetSpec>(),
    AssetKind::of::<NfsAssetSpec>(),
    AssetKind::of::<PvcAssetSpec>(),
    AssetKind::of::<S3AssetSpec>(),
    AssetKind::of::<GitAssetSpec>(),
    AssetKind::of::<HostPathSpec>(),
    AssetKind::of::<ConfigMapAssetSpec>(),
    AssetKind::of::<SecretAssetSpec>(),
    AssetKind::of::<AccessKeySpec>(),
    AssetKind::of::<DockerRegistrySpec>(),
    AssetKind::of::<GenericSecretSpec>(),
    AssetKind::of::<NgcApiKeySpec>(),
    AssetKind::of::<PasswordSpec>(),
];

/// Every kind of assets.
pub(super) fn asset_kinds() -> impl Iterator<Item = &'static AssetKind> {
    ASSET_KINDS.iter()
}

fn asset_kind(stored: &str) -> Option<&'static AssetKind> {
    asset_kinds().find(|kind| kind.stored == stored)
}

/// What an object is in the stream; none of what is not in it.
pub(super) fn kind_of(key: &Key) -> Option<ChangeKind> {
    Some(match key {
        Key::Department(_) => ChangeKind::Department,
        Key::Project(_) => ChangeKind::Project,
        Key::Pool(_) => ChangeKind::NodePool,
        Key::Node(_) => ChangeKind::Node,
        Key::Workload(_) => ChangeKind::Workload,
        Key::Pod(..) => ChangeKind::Pod,
        Key::Object(stored, _) => match &**stored {
            // A user shows when it logged in last.
            USER | LOGIN => ChangeKind::User,
            Template::KIND => ChangeKind::Template,
            stored => asset_kind(stored).map(|_| ChangeKind::Asset)?,
        },
    })
}

/// What roles call it.
pub(super) fn resource_of(key: &Key) -> Option<Resource> {
    Some(match key {
        Key::Department(_) => Resource::Department,
        Key::Project(_) => Resource::Project,
        Key::Pool(_) => Resource::NodePools,
        Key::Node(_) => Resource::Nodes,
        Key::Workload(_) | Key::Pod(..) => Resource::Workloads,
        Key::Object(stored, _) => match &**stored {
            USER | LOGIN => Resource::Users,
            Template::KIND => Resource::Templates,
            stored => asset_kind(stored)?.resource,
        },
    })
}

/// The text of a change; none where there is nothing to say. What is newer than this version is
/// shown already where it is known: it comes again with its own version.
pub(super) fn text(server: &Server, entry: &Entry) -> Option<String> {
    let kind = kind_of(&entry.key)?;
    let frame = Frame { server, view: server.control.view(), entry, kind };
    match frame.text() {
        Ok(text) => text,
        Err(fault) => {
            tracing::error!(key = ?entry.key, "a change is left out: {}", fault.message);
            None
        }
    }
}

/// What a frame is made from.
struct Frame<'a> {
    server: &'a Server,
    view: Arc<View>,
    entry: &'a Entry,
    kind: ChangeKind,
}

impl Frame<'_> {
    fn text(&self) -> Result<Option<String>, ApiError> {
        let (view, key) = (&*self.view, &self.entry.key);
        if self.entry.deleted {
            return self.deletion();
        }
        let context = self.server.context();
        let id = self.id();
        // What is gone by now is no longer shown; that it is gone is a version of its own.
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
            Key::Workload(number) => match view.workloads.get(number) {
                Some(found) => Some(self.of(id, convert::workload(found, view, &context))?),
                None => None,
            },
            Key::Pod(workload, number) => {
                let workload = view.workloads.get(workload);
                let row = workload.and_then(|of| PodRow::of(of).find(|row| row.id() == *number));
                match row {
                    Some(row) => Some(self.of(id, convert::pod(&row, view, &context))?),
                    None => None,
                }
            }
            Key::Object(stored, number) => match view.objects.get(stored, number) {
                Some(object) => self.object(id, object)?,
                None => None,
            },
        })
    }

    fn id(&self) -> String {
        match &self.entry.key {
            Key::Department(id) | Key::Project(id) => id.to_string(),
            Key::Pool(id) | Key::Node(id) | Key::Object(_, id) => id.to_string(),
            Key::Workload(id) | Key::Pod(_, id) => id.to_string(),
        }
    }

    fn object(&self, id: String, object: &Arc<Object>) -> Result<Option<String>, ApiError> {
        let user = match &*object.kind {
            USER => Some(object.id.as_str()),
            LOGIN => object.owner.strip_prefix("user/"),
            Template::KIND => {
                let item = Item::<Template>::of(object)?;
                return self.of(id, assets::shown_template(self.server, &item)).map(Some);
            }
            stored => {
                let kind = asset_kind(stored);
                return kind.map(|kind| (kind.shown)(self, object)).transpose();
            }
        };
        match user.and_then(|id| self.view.objects.get(USER, id)) {
            Some(user) => self.of(user.id.clone(), self.server.iam.shown_user(user)?).map(Some),
            None => Ok(None),
        }
    }

    fn deletion(&self) -> Result<Option<String>, ApiError> {
        match &self.entry.key {
            // The user is still there, or says itself that it is not.
            Key::Object(stored, _) if **stored == *LOGIN => Ok(None),
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

fn asset<S: AssetSpec>(frame: &Frame<'_>, object: &Arc<Object>) -> Result<String, ApiError> {
    let item = Item::<Stored<S>>::of(object)?;
    frame.of(object.id.clone(), assets::shown(frame.server, &frame.view, item, None))
}

/// A frame as a line of the stream.
pub(super) fn line<T: Serialize>(frame: &ChangeFrame<T>) -> Result<String, ApiError> {
    let json = serde_json::to_string(frame).map_err(ApiError::internal)?;
    Ok(format!("data: {json}\n\n"))
}
