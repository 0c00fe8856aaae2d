//! Volumes of projects: folders that the engine keeps from one workload to the next. Owns: the list
//! of volumes, and that the data of a deleted one is never seen again: each has a unique name at
//! the engine, also when it has the claim name of an earlier one, and a deletion is recorded until
//! the engine has done it. A volume exists from the first workload that requests it until it is
//! deleted, or its project is. Does not know about: the data in it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use command::{NewId, NewObject, check_name};
use serde_json::json;
use spec::{MountSource, WorkloadSpec};

use crate::Error;
use crate::documents::{Documents, DocumentsMut};
use crate::effect::{Action, Outbox};
use view::{Object, Scope};

/// Kind of the objects that are volumes; the name of the object is that of the claim.
pub const VOLUME: &str = "volume";
/// Kind of the objects that are volumes being deleted; the name of the object is the volume's name
/// at the engine. Its body has the `project`, the `claim`, and, after a failed attempt, the
/// `error`.
pub const VOLUME_ENDING: &str = "volume-ending";
/// Key in the body of a volume with its name at the engine.
const AT_ENGINE: &str = "engine";

/// Name by which workloads refer to the volume of a project's claim.
#[must_use]
pub fn volume_name(project: u64, claim: &str) -> String {
    format!("p{project}-{claim}")
}

/// Name by which workloads refer to an object that is a volume.
pub(crate) fn volume_of(object: &Object) -> Option<String> {
    match object.scope {
        Scope::Project(id) if &*object.kind == VOLUME => Some(volume_name(id, &object.name)),
        _ => None,
    }
}

/// Name of a volume at the engine. Volumes from before these names have the name that workloads
/// use.
fn at_engine(object: &Object) -> Option<String> {
    let name = volume_of(object)?;
    Some(object.body[AT_ENGINE].as_str().map_or(name, str::to_owned))
}

/// The object by which one counts for the limits: a volume is one of its project until its data is
/// deleted.
pub(super) fn counted(object: &Object) -> Cow<'_, Object> {
    match object.body["project"].as_u64() {
        Some(project) if &*object.kind == VOLUME_ENDING => {
            let scope = Scope::Project(project);
            Cow::Owned(Object { kind: VOLUME.into(), scope, ..object.clone() })
        }
        _ => Cow::Borrowed(object),
    }
}

impl Documents {
    /// The volume that workloads refer to by this name.
    fn volume(&self, name: &str) -> Option<&Arc<Object>> {
        let mut all = self.objects.shelf(VOLUME).into_iter().flat_map(|shelf| shelf.values());
        all.find(|object| volume_of(object).is_some_and(|known| known == name))
    }

    /// Replaces the names of a run's volumes by those at the engine.
    pub(crate) fn name_volumes(&self, mounts: &mut [spec::Mount]) {
        for mount in mounts {
            if let MountSource::Volume { name, ephemeral: false } = &mut mount.from
                && let Some(known) = self.volume(name).and_then(|object| at_engine(object))
            {
                *name = known;
            }
        }
    }

    /// Resumes the deletion of volumes, after a start.
    pub(crate) fn drop_volumes_again(&self, outbox: &mut Outbox) {
        let ending = self.objects.all(VOLUME_ENDING);
        let again = ending.iter().map(|object| Action::RemoveVolume(object.name.clone()));
        outbox.act(again);
    }
}

impl DocumentsMut<'_> {
    /// Records the volumes that a workload is the first to request.
    pub(super) fn note_volumes(
        &mut self,
        project_id: u64,
        spec: &WorkloadSpec,
    ) -> Result<(), Error> {
        let asked: BTreeSet<&str> = spec.volumes().collect();
        let first = self.documents.last_seq + 1;
        let new =
            (first..).zip(asked.into_iter().filter(|name| self.documents.volume(name).is_none()));
        let new: Vec<_> = new
            .map(|(number, name)| NewObject {
                kind: VOLUME,
                id: NewId::Any,
                scope: Scope::Project(project_id),
                owner: String::new(),
                name: name.strip_prefix(&volume_name(project_id, "")).unwrap_or(name).to_owned(),
                // A number is never used again, and no earlier name begins like this.
                body: json!({ AT_ENGINE: format!("v{number}-{name}") }),
                newest: None,
            })
            .collect();
        // All are checked before the first is created: a refused command leaves no trace.
        new.iter().try_for_each(|new| check_name(&new.name))?;
        self.may_be_more(&spec.submitted_by, &new)?;
        for new in new {
            self.create(spec.submitted_by.clone(), new)?;
        }
        Ok(())
    }

    /// Requests the deletion of a volume's data from the engine.
    pub(super) fn drop_volume(&mut self, object: &Object) {
        let (Some(name), Scope::Project(project)) = (at_engine(object), object.scope) else {
            return;
        };
        self.documents.last_seq += 1;
        let ending = Object {
            seq: self.documents.last_seq,
            kind: VOLUME_ENDING.into(),
            id: name.clone(),
            scope: Scope::Tenant,
            name: name.clone(),
            body: json!({ "project": project, "claim": object.name }),
            updated_at: self.now,
            ..object.clone()
        };
        self.put(ending);
        self.outbox.act([Action::RemoveVolume(name)]);
    }
}
