//! Volumes of projects: folders that the engine keeps from one workload to the next. Owns: which
//! there are, and that what was behind one that was deleted is never seen again: each has a name of
//! its own at the engine, also where it is asked for by the name of one before, and what is to be
//! deleted is written down until the engine has done it. A volume is there from the first workload
//! that asks for it until it is deleted, or its project ends. Does not know about: what is in
//! it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use spec::{MountSource, WorkloadSpec};

use crate::Error;
use crate::documents::{Documents, DocumentsMut, NewId, NewObject, check_name};
use crate::effect::{Action, Outbox};
use view::{Object, Scope};

/// What they are called among the objects; the name of one is that of its claim.
pub const VOLUME: &str = "volume";
/// What those are called that are being deleted; the name of one is what the engine calls it. Its
/// body says the `project`, the `claim`, and, where it cannot be deleted, the `error`.
pub const VOLUME_ENDING: &str = "volume-ending";
/// The part of the body of a volume that says what the engine calls it.
const AT_ENGINE: &str = "engine";

/// What a workload calls the volume of a project behind a claim.
#[must_use]
pub fn volume_name(project: u64, claim: &str) -> String {
    format!("p{project}-{claim}")
}

/// What workloads call an object that is a volume.
pub(crate) fn volume_of(object: &Object) -> Option<String> {
    match object.scope {
        Scope::Project(id) if &*object.kind == VOLUME => Some(volume_name(id, &object.name)),
        _ => None,
    }
}

/// What the engine calls it. Those that were made before each had its own name have that of
/// workloads.
fn at_engine(object: &Object) -> Option<String> {
    let name = volume_of(object)?;
    Some(object.body[AT_ENGINE].as_str().map_or(name, str::to_owned))
}

impl Documents {
    /// The volume that workloads call so.
    fn volume(&self, name: &str) -> Option<&Arc<Object>> {
        let mut all = self.objects.shelf(VOLUME).into_iter().flat_map(|shelf| shelf.values());
        all.find(|object| volume_of(object).is_some_and(|known| known == name))
    }

    /// Calls the volumes of a run what the engine calls them.
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
    /// Writes down the volumes that a workload is the first to ask for.
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
                // No number is given out twice, and no name of before begins so.
                body: json!({ AT_ENGINE: format!("v{number}-{name}") }),
                newest: None,
            })
            .collect();
        // All of them before the first: a refused command leaves no trace.
        new.iter().try_for_each(|new| check_name(&new.name))?;
        self.documents.may_be_more(&new.iter().collect::<Vec<_>>(), self.limits)?;
        for new in new {
            self.create(spec.submitted_by.clone(), new)?;
        }
        Ok(())
    }

    /// Has the engine delete what is in a volume that ends.
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
