//! Commands for documents, and results of the engine for volumes.

use std::sync::Arc;

use command::NewObject;
use serde_json::Value;
use spec::WorkloadSpec;

use crate::Error;
use crate::documents::{DocumentsMut, VOLUME_ENDING, volume_of};
use crate::emit::EventBuilder;
use crate::org::SYSTEM;
use crate::state::State;
use crate::workloads::Workload;
use view::{Object, Phase, Scope};

impl State {
    fn documents_mut(&mut self) -> DocumentsMut<'_> {
        let Self { documents, now, ids, org, settings, outbox, .. } = self;
        let limits = &settings.user_limits;
        DocumentsMut { documents, now: *now, ids, org, limits, outbox }
    }

    pub(crate) fn create_object(
        &mut self,
        by: String,
        new: NewObject,
    ) -> Result<Arc<Object>, Error> {
        self.documents_mut().create(by, new)
    }

    pub(crate) fn update_object(
        &mut self,
        by: String,
        before: &Object,
        to: (String, Value),
    ) -> Result<Arc<Object>, Error> {
        self.documents_mut().update(by, before, to)
    }

    /// Records the volumes that a workload is the first to request.
    pub(crate) fn note_volumes(
        &mut self,
        project_id: u64,
        spec: &WorkloadSpec,
    ) -> Result<(), Error> {
        self.documents_mut().note_volumes(project_id, spec)
    }

    /// Deletes an object and the objects that it owns.
    pub(crate) fn delete_object(
        &mut self,
        by: &str,
        kind: &'static str,
        id: &str,
    ) -> Result<Arc<Object>, Error> {
        let object = self.documents.known(kind, id)?;
        self.documents.is_not_named(&object)?;
        self.object_is_not_needed(&object)?;
        self.volume_is_not_used(&object)?;
        self.documents_mut().end(by, &object);
        Ok(object)
    }

    /// Deletes the objects of a deleted project or department.
    pub(crate) fn delete_objects_of(&mut self, by: &str, scope: Scope) {
        self.documents_mut().end_scope(by, scope);
    }

    /// Checks that no workload that runs, or may run again, gets its secrets.
    fn object_is_not_needed(&self, object: &Object) -> Result<(), Error> {
        let key = object.key();
        let needs = |workload: &&Workload| {
            !matches!(workload.phase, Phase::Completed | Phase::Failed)
                && workload.spec.secrets().any(|secret| secret.object == key)
        };
        match self.workloads.values().find(needs) {
            Some(user) => Err(Error::conflict(format!(
                "workload `{}` uses it; delete the workload first",
                user.spec.name
            ))),
            None => Ok(()),
        }
    }

    /// Checks that no workload uses a volume: the engine keeps the data of ended workloads, and
    /// their volumes with it.
    fn volume_is_not_used(&self, object: &Object) -> Result<(), Error> {
        let Some(name) = volume_of(object) else { return Ok(()) };
        let uses = |workload: &&Workload| workload.spec.volumes().any(|used| used == name);
        match self.workloads.values().find(uses) {
            Some(user) => Err(Error::conflict(format!(
                "workload `{}` uses volume `{}`; delete the workload first",
                user.spec.name, object.name
            ))),
            None => Ok(()),
        }
    }

    /// Records that the engine has deleted a volume, or the error of its attempt.
    pub(crate) fn volume_ends(&mut self, name: &str, error: Option<String>) {
        let Some(object) = self.documents.get(VOLUME_ENDING, name).cloned() else { return };
        let (project, claim) = (object.body["project"].as_u64(), object.body["claim"].as_str());
        let (project, claim) = (project.unwrap_or_default(), claim.unwrap_or_default());
        let had_failed = object.body.get("error").is_some();
        let Some(error) = error else {
            self.documents_mut().end(SYSTEM, &object);
            if had_failed {
                let text = format!("volume `{claim}` is deleted now");
                self.emit_of_project(project, EventBuilder::new("VolumeDeleted", text));
            }
            return;
        };
        let text = format!(
            "volume `{claim}` was deleted and is still on the disk, as `{name}`: {error}; it is tried \
             again and again"
        );
        self.emit_of_project(project, EventBuilder::new("VolumeStays", text).warning());
        let mut object = Object::clone(&object);
        object.body["error"] = error.into();
        object.updated_at = self.now;
        self.documents_mut().put(object);
    }
}
