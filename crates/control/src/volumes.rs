//! Volumes of projects: folders that the engine keeps from one workload to the next. Owns: which there
//! are. A volume is there from the first workload that asks for it until somebody deletes it, or its
//! project ends. Refuses to know: what is in it.

use engine::MountSource;
use serde_json::json;

use crate::Error;
use crate::command::WorkloadSpec;
use crate::objects::{NewId, NewObject, Object, Scope};
use crate::state::{Action, State, Workload};

/// What they are called among the objects; the name of one is that of its claim.
pub const VOLUME: &str = "volume";

/// What the engine calls the volume of a project behind a claim.
#[must_use]
pub fn volume_name(project: u64, claim: &str) -> String {
    format!("p{project}-{claim}")
}

impl WorkloadSpec {
    /// The volumes of its project that it mounts, as the engine calls them.
    pub fn volumes(&self) -> impl Iterator<Item = &str> {
        let mounts = self.sets().flat_map(|set| &set.pod.container.mounts);
        mounts.filter_map(|mount| match &mount.from {
            MountSource::Volume { name, ephemeral: false } => Some(name.as_str()),
            _ => None,
        })
    }
}

impl State {
    /// Writes down the volumes that a workload is the first to ask for.
    pub(crate) fn note_volumes(
        &mut self,
        project_id: u64,
        spec: &WorkloadSpec,
    ) -> Result<(), Error> {
        let scope = Scope::Project(project_id);
        for name in spec.volumes() {
            let claim = name.strip_prefix(&volume_name(project_id, "")).unwrap_or(name);
            let shelf = self.objects.shelf(VOLUME);
            let mut there = shelf.into_iter().flat_map(|shelf| shelf.values());
            if there.any(|one| one.scope == scope && one.name == claim) {
                continue;
            }
            let new = NewObject {
                kind: VOLUME,
                id: NewId::Any,
                scope,
                owner: String::new(),
                name: claim.to_owned(),
                body: json!({}),
                newest: None,
            };
            self.create_object(spec.submitted_by.clone(), new)?;
        }
        Ok(())
    }

    /// The engine's name of an object that is a volume.
    fn volume_of(object: &Object) -> Option<String> {
        match object.scope {
            Scope::Project(id) if &*object.kind == VOLUME => Some(volume_name(id, &object.name)),
            _ => None,
        }
    }

    /// No workload has it: the engine keeps what is left of those that have ended, and their volumes
    /// with it.
    pub(crate) fn volume_is_not_used(&self, object: &Object) -> Result<(), Error> {
        let Some(name) = Self::volume_of(object) else { return Ok(()) };
        let uses = |workload: &&Workload| workload.spec.volumes().any(|used| used == name);
        match self.workloads.values().find(uses) {
            Some(user) => Err(Error::conflict(format!(
                "workload `{}` uses volume `{}`; delete the workload first",
                user.spec.name, object.name
            ))),
            None => Ok(()),
        }
    }

    /// Has the engine delete what is in a volume that ends.
    pub(crate) fn drop_volume(&mut self, object: &Object) {
        self.outbox.actions.extend(Self::volume_of(object).map(Action::RemoveVolume));
    }
}
