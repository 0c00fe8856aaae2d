//! Documents that the scheduler does not need: users, rules, assets, templates, settings, volumes.
//!
//! Owns: their names (unique among the living of a kind, scope and owner), their owners, with which
//! they are deleted, and that a change is applied to the present state.

mod commands;
mod config_maps;
mod volumes;

use std::ops::Deref;
use std::slice;
use std::sync::Arc;

use command::{NewId, NewObject, ObjectTable, check_name};
use records::{Ids, ObjectRow};
use serde_json::Value;
use spec::UserLimits;
use units::Instant;
use view::{Object, Objects, SECRETS, Scope};

use crate::Error;
use crate::effect::Outbox;
use crate::org::Org;

pub use config_maps::{CONFIG_MAP_BYTES_MAX, bytes_of, check_config_map, texts_of};
pub(crate) use volumes::volume_of;
pub use volumes::{VOLUME, VOLUME_ENDING, volume_name};

/// The living objects. They are read as [`Objects`], and changed by the methods here.
#[derive(Debug)]
pub(crate) struct Documents {
    objects: Objects,
    used: ObjectTable,
    last_seq: u64,
}

/// The living objects with the state that a change of them reads and writes.
struct DocumentsMut<'a> {
    documents: &'a mut Documents,
    now: Instant,
    ids: &'a mut Ids,
    org: &'a Org,
    limits: &'a UserLimits,
    outbox: &'a mut Outbox,
}

impl Deref for Documents {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}

/// True if objects of the outer scope can be used in the inner one.
fn reaches(outer: Scope, inner: Scope, org: &Org) -> bool {
    match (outer, inner) {
        (Scope::System | Scope::Tenant, _) => true,
        (Scope::Cluster, inner) => !matches!(inner, Scope::Tenant | Scope::System),
        (Scope::Department(department), Scope::Project(project)) => {
            org.project(project).is_ok_and(|found| found.department_id == department)
        }
        (outer, inner) => outer == inner,
    }
}

impl Documents {
    /// Loads stored objects.
    pub(crate) fn new(rows: Vec<ObjectRow>, last_seq: u64) -> Result<Self, Error> {
        let (objects, used) = (Objects::default(), ObjectTable::default());
        let mut documents = Self { objects, used, last_seq };
        for row in rows {
            documents.put(Arc::new(Object::from_row(row)?));
        }
        Ok(documents)
    }

    /// Adds a built-in object, which is not stored before it is changed.
    pub(crate) fn add_built_in(&mut self, object: Object) {
        self.put(Arc::new(object));
    }

    /// Adds an object, or replaces the one with its id.
    fn put(&mut self, object: Arc<Object>) {
        self.remove(&object);
        self.used.add(&volumes::counted(&object));
        self.objects.put(object);
    }

    /// Removes the object with this id, if it exists.
    fn remove(&mut self, object: &Object) {
        if let Some(before) = self.objects.get(&object.kind, &object.id).cloned() {
            self.used.free(&volumes::counted(&before));
            self.objects.remove(&before);
        }
    }

    /// The object with this id.
    pub(crate) fn known(&self, kind: &'static str, id: &str) -> Result<Arc<Object>, Error> {
        let found = self.objects.get(kind, id).cloned();
        found.ok_or_else(|| Error::NotFound {
            what: kind,
            name: id.to_owned(),
            hint: "list them to see those there are".to_owned(),
        })
    }

    fn name_is_free(&self, wanted: &Object) -> Result<(), Error> {
        let taken = |other: &Arc<Object>| {
            other.name == wanted.name
                && other.scope == wanted.scope
                && other.owner == wanted.owner
                && other.id != wanted.id
        };
        let mut others = self.objects.shelf(&wanted.kind).into_iter().flat_map(|s| s.values());
        if others.any(taken) {
            let (kind, name) = (wanted.kind.replace('-', " "), units::shown(&wanted.name));
            return Err(Error::conflict(format!(
                "{kind} `{name}` already exists; choose another name"
            )));
        }
        Ok(())
    }

    /// Checks that the scope and the owner of an object exist.
    fn belongings_exist(&self, new: &NewObject, org: &Org) -> Result<(), Error> {
        if let Scope::Project(id) = new.scope {
            org.project(id)?;
        }
        if let Scope::Department(id) = new.scope {
            org.department(id)?;
        }
        if let Some((kind, id)) = new.owner.split_once('/')
            && self.objects.get(kind, id).is_none()
        {
            return Err(Error::NotFound {
                what: "owner",
                name: new.owner.clone(),
                hint: "it was deleted".to_owned(),
            });
        }
        Ok(())
    }

    /// Checks that the objects that an object refers to exist, in scopes that it can use.
    fn named_exist(&self, object: &Object, org: &Org) -> Result<(), Error> {
        let there = |key: &&str| {
            let (kind, id) = key.split_once('/').unwrap_or((key, ""));
            let found = self.objects.get(kind, id);
            found.is_some_and(|named| reaches(named.scope, object.scope, org))
        };
        match object.names().find(|key| !there(key)) {
            Some(key) => Err(Error::NotFound {
                what: "object",
                name: key.to_owned(),
                hint: format!("{} names it", object.name),
            }),
            None => Ok(()),
        }
    }

    /// Checks that no object refers to this one.
    fn is_not_named(&self, object: &Object) -> Result<(), Error> {
        let key = object.key();
        match self.objects.iter().find(|other| other.names().any(|name| name == key)) {
            Some(other) => Err(Error::conflict(format!(
                "{} `{}` names it; change or delete the {0} first",
                other.kind,
                units::shown(&other.name)
            ))),
            None => Ok(()),
        }
    }
}

impl DocumentsMut<'_> {
    fn create(&mut self, by: String, new: NewObject) -> Result<Arc<Object>, Error> {
        check_name(&new.name)?;
        self.documents.belongings_exist(&new, self.org)?;
        self.may_be_more(&by, slice::from_ref(&new))?;
        let seq = self.documents.last_seq + 1;
        let id = match new.id {
            NewId::Any => self.ids.next_id().to_string(),
            NewId::Number => seq.to_string(),
            NewId::Given(id) => id.to_string(),
        };
        if self.documents.objects.get(new.kind, &id).is_some() {
            return Err(Error::conflict(format!("there is a {} with id {id} already", new.kind)));
        }
        let object = Object {
            seq,
            kind: new.kind.into(),
            id,
            scope: new.scope,
            owner: new.owner,
            name: new.name,
            body: new.body,
            created_at: self.now,
            created_by: by.clone(),
            updated_at: self.now,
            updated_by: by,
        };
        self.documents.name_is_free(&object)?;
        self.documents.named_exist(&object, self.org)?;
        self.documents.last_seq = seq;
        let made = self.put(object);
        if let Some(most) = new.newest {
            self.end_oldest(&made, most);
        }
        Ok(made)
    }

    /// Checks that a user may create all of these, which are of one kind, scope and owner.
    fn may_be_more(&self, by: &str, new: &[NewObject]) -> Result<(), Error> {
        let shelf = new.first().and_then(|one| self.documents.objects.shelf(one.kind));
        let there = shelf.map_or(0, |shelf| shelf.len() as u64);
        Ok(self.documents.used.check_new(self.limits, (by, there), new)?)
    }

    /// Deletes the oldest objects of the kind with the same owner, until `most` are left.
    fn end_oldest(&mut self, made: &Object, most: usize) {
        let mut all = self.documents.objects.all(&made.kind);
        all.retain(|other| other.owner == made.owner);
        let many = all.len().saturating_sub(most);
        for object in &all[..many] {
            self.end(&made.created_by, object);
        }
    }

    fn update(
        &mut self,
        by: String,
        before: &Object,
        (name, body): (String, Value),
    ) -> Result<Arc<Object>, Error> {
        check_name(&name)?;
        // Strictly increasing: it distinguishes each state of an object from the next.
        let updated_at = self.now.max(before.updated_at.plus_ms(1));
        let object = Object { name, body, updated_at, updated_by: by, ..before.clone() };
        self.documents.name_is_free(&object)?;
        self.documents.named_exist(&object, self.org)?;
        self.documents.used.check_change(self.limits, before, &object)?;
        Ok(self.put(object))
    }

    fn put(&mut self, object: Object) -> Arc<Object> {
        let object = Arc::new(object);
        self.outbox.write([object.row(None)]);
        self.documents.put(object.clone());
        object
    }

    /// Deletes an object, and the objects that it owns.
    fn end(&mut self, by: &str, object: &Object) {
        self.documents.remove(object);
        self.drop_volume(object);
        let mut last = object.clone();
        if let Some(body) = last.body.as_object_mut() {
            body.remove(SECRETS);
        }
        by.clone_into(&mut last.updated_by);
        last.updated_at = self.now;
        self.outbox.write([last.row(Some(self.now))]);
        let key = object.key();
        self.end_those(by, |other| other.owner == key);
    }

    /// Deletes the objects of a deleted project or department.
    fn end_scope(&mut self, by: &str, scope: Scope) {
        self.end_those(by, |object| object.scope == scope);
    }

    fn end_those(&mut self, by: &str, ends: impl Fn(&Object) -> bool) {
        let ending: Vec<_> = self.documents.objects.iter().filter(|o| ends(o)).cloned().collect();
        for object in ending {
            self.end(by, &object);
        }
    }
}
