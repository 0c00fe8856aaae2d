//! Documents that the scheduler does not need: users, rules, assets, templates, settings.
//!
//! Owns: their names (unique among the living of a kind, scope and owner), what they cannot
//! outlive, and that a change is made to what is there now. Refuses to know: what is in them;
//! whoever sends one has checked it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use records::{Change, ObjectRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use units::Instant;
use uuid::Uuid;

use crate::Error;
use crate::shared_map::SharedMap;
use crate::state::{State, Workload};
use crate::view::Phase;
use crate::words::{Word, word};

/// Most living objects of a kind.
const OBJECTS_MAX: usize = 50_000;
/// Most of a kind that belong to one project, department or owner, so that nobody with a right in
/// one of these uses up what all have.
const OBJECTS_OF_ONE_MAX: usize = 1000;
/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 1024;
/// Largest body, in bytes of JSON, beside its secrets.
const BODY_BYTES_MAX: usize = 64 << 10;
/// The part of a body that ends with the object; what is left of a deleted one is history.
pub const SECRETS: &str = "secrets";
/// The part of a body that names other objects, `["<kind>/<id>"]`. They must be there, in a scope
/// around the object's, and are not deleted as long as it names them.
pub const NAMES: &str = "names";

/// Whose an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    /// The program's own.
    System,
    /// Of the whole installation.
    Tenant,
    /// Of the cluster.
    Cluster,
    /// Of a department; ends with it.
    Department(u64),
    /// Of a project; ends with it.
    Project(u64),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Tenant => f.write_str("tenant"),
            Self::Cluster => f.write_str("cluster"),
            Self::Department(id) => write!(f, "department/{id}"),
            Self::Project(id) => write!(f, "project/{id}"),
        }
    }
}

impl FromStr for Scope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (kind, id) = text.split_once('/').unwrap_or((text, ""));
        match (kind, id.parse()) {
            ("system", _) => Ok(Self::System),
            ("tenant", _) => Ok(Self::Tenant),
            ("cluster", _) => Ok(Self::Cluster),
            ("department", Ok(id)) => Ok(Self::Department(id)),
            ("project", Ok(id)) => Ok(Self::Project(id)),
            _ => Err(Error::Internal { message: format!("`{text}` is no scope") }),
        }
    }
}

/// A living object.
#[derive(Clone, PartialEq, Eq)]
pub struct Object {
    /// Number in order of creation, over all kinds; never given out twice.
    pub seq: u64,
    /// What it is: `user`, `access-rule`, ….
    pub kind: Arc<str>,
    /// Id, unique in its kind.
    pub id: String,
    /// Whose it is.
    pub scope: Scope,
    /// The object it ends with, `user/<id>`; empty for none.
    pub owner: String,
    /// Name, unique among the living of the kind, scope and owner.
    pub name: String,
    /// Everything else, in the storage type of its kind.
    pub body: Value,
    /// When it was made.
    pub created_at: Instant,
    /// By whom.
    pub created_by: String,
    /// Last change.
    pub updated_at: Instant,
    /// By whom.
    pub updated_by: String,
}

/// Without the body, which may hold hashes of secrets.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({} {} {} of {})", self.kind, self.id, self.name, self.scope)
    }
}

/// The id of an object to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewId {
    /// A new UUID.
    Any,
    /// Its number, for families whose clients insist on integers.
    Number,
    /// This UUID, which whoever asks has made: part of the body depends on it.
    Given(Uuid),
}

/// An object to create.
#[derive(Clone, Serialize, Deserialize)]
pub struct NewObject {
    /// What it is.
    #[serde(deserialize_with = "word")]
    pub kind: Word,
    /// What its id is.
    pub id: NewId,
    /// Whose it is.
    pub scope: Scope,
    /// The object it ends with, `user/<id>`; empty for none.
    pub owner: String,
    /// Name.
    pub name: String,
    /// Everything else.
    pub body: Value,
    /// How many of the kind its owner may have: the oldest end for a new one. None: it is refused
    /// when there are too many.
    pub newest: Option<usize>,
}

impl fmt::Debug for NewObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewObject({} {} of {})", self.kind, self.name, self.scope)
    }
}

/// A new name and body, from the object as it is when the change is made.
type EditFn = dyn Fn(&Object) -> Result<(String, Value), Error> + Send + Sync;

/// A change of an object. Of two at once none is lost: the second is made again, to what the first left.
#[derive(Clone)]
pub struct Edit(Arc<EditFn>);

/// What a change makes of an object.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Edited {
    /// The object as it was: it counts only if that has not changed since.
    pub updated_at: Instant,
    /// Its name and body, or why the change refuses it.
    pub to: Result<(String, Value), Error>,
}

impl Edit {
    /// The change that this makes.
    pub fn new(
        edit: impl Fn(&Object) -> Result<(String, Value), Error> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(edit))
    }

    /// Makes it to an object as it is seen; none where no such object is.
    pub fn made_to(&self, object: Option<&Object>) -> Edited {
        let unseen = || (Instant(0), Err(Error::Internal { message: "not seen".to_owned() }));
        let (updated_at, to) =
            object.map_or_else(unseen, |object| (object.updated_at, (self.0)(object)));
        Edited { updated_at, to }
    }
}

impl fmt::Debug for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Edit(..)")
    }
}

/// The living objects by kind and id. Parts that did not change are shared with the ones before.
#[derive(Debug, Clone, Default)]
pub struct Objects(BTreeMap<Arc<str>, Arc<Shelf>>);

/// The living objects of one kind, by id.
pub type Shelf = SharedMap<String, Arc<Object>>;

impl Objects {
    /// Those of a kind; the same allocation until one of them changes.
    #[must_use]
    pub fn shelf(&self, kind: &str) -> Option<&Arc<Shelf>> {
        self.0.get(kind)
    }

    /// Every kind of which there was ever one.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.keys()
    }

    /// Those of a kind, in order of creation.
    #[must_use]
    pub fn all(&self, kind: &str) -> Vec<Arc<Object>> {
        let mut all: Vec<_> = self.shelf(kind).into_iter().flat_map(|s| s.values()).collect();
        all.sort_unstable_by_key(|object| object.seq);
        all.into_iter().cloned().collect()
    }

    /// The one with this id.
    #[must_use]
    pub fn get(&self, kind: &str, id: &str) -> Option<&Arc<Object>> {
        self.shelf(kind)?.get(id)
    }

    /// The one with this name in a scope, of those that end with nobody else.
    #[must_use]
    pub fn named(&self, kind: &str, scope: Scope, name: &str) -> Option<&Arc<Object>> {
        let is =
            |one: &&Arc<Object>| one.scope == scope && one.name == name && one.owner.is_empty();
        self.shelf(kind)?.values().find(is)
    }

    pub(crate) fn put(&mut self, object: Arc<Object>) {
        let shelf = self.0.entry(object.kind.clone()).or_default();
        Arc::make_mut(shelf).insert(object.id.clone(), object);
    }

    fn remove(&mut self, object: &Object) {
        if let Some(shelf) = self.0.get_mut(&object.kind) {
            Arc::make_mut(shelf).remove(&object.id);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.0.values().flat_map(|shelf| shelf.values())
    }

    /// From what is stored.
    pub(crate) fn from_rows(rows: Vec<ObjectRow>) -> Result<Self, Error> {
        let mut objects = Self::default();
        for row in rows {
            objects.put(Arc::new(Object {
                seq: row.seq,
                kind: row.kind.into(),
                id: row.id,
                scope: row.scope.parse()?,
                owner: row.owner,
                name: row.name,
                body: row.body,
                created_at: row.created_at,
                created_by: row.created_by,
                updated_at: row.updated_at,
                updated_by: row.updated_by,
            }));
        }
        Ok(objects)
    }
}

impl Object {
    /// The keys of the objects it names.
    fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.body.get(NAMES).and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The kind and id of it as an owner.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}", self.kind, self.id)
    }

    fn row(&self, deleted_at: Option<Instant>) -> Change {
        Change::Object(Box::new(ObjectRow {
            seq: self.seq,
            kind: self.kind.to_string(),
            id: self.id.clone(),
            scope: self.scope.to_string(),
            owner: self.owner.clone(),
            name: self.name.clone(),
            body: self.body.clone(),
            created_at: self.created_at,
            created_by: self.created_by.clone(),
            updated_at: self.updated_at,
            updated_by: self.updated_by.clone(),
            deleted_at,
        }))
    }
}

/// Checks the name of an object: text without blanks at its ends.
///
/// # Errors
/// It is empty, too long, or has what cannot be seen.
pub fn check_name(name: &str) -> Result<(), Error> {
    let allowed = !name.is_empty() && name == name.trim() && !name.chars().any(char::is_control);
    if allowed && name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let shown = units::shown(name);
    let why = format!(
        "name `{shown}` is not allowed; 1 to {NAME_BYTES_MAX} bytes of text, no blank at the ends"
    );
    Err(Error::invalid("name", why))
}

fn check_body(kind: &str, body: &Value) -> Result<(), Error> {
    let beside = |(name, value): (&String, &Value)| {
        if name == SECRETS { 0 } else { name.len() + value.to_string().len() }
    };
    let bytes = match body.as_object() {
        Some(fields) => fields.iter().map(beside).sum(),
        None => body.to_string().len(),
    };
    if bytes <= BODY_BYTES_MAX {
        return Ok(());
    }
    let why =
        format!("a {kind} of {bytes} bytes is too large; at most {BODY_BYTES_MAX} are allowed");
    Err(Error::invalid("body", why))
}

impl State {
    /// The object with this id.
    pub(crate) fn object(&self, kind: &'static str, id: &str) -> Result<Arc<Object>, Error> {
        let found = self.objects.get(kind, id).cloned();
        found.ok_or_else(|| Error::NotFound {
            what: kind,
            name: id.to_owned(),
            hint: "list them to see those there are".to_owned(),
        })
    }

    fn object_name_is_free(&self, wanted: &Object) -> Result<(), Error> {
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
                "{kind} `{name}` already exists; choose another name, or delete the one there is"
            )));
        }
        Ok(())
    }

    /// What an object belongs to and cannot outlive must be there.
    fn belongings_exist(&self, new: &NewObject) -> Result<(), Error> {
        if let Scope::Project(id) = new.scope
            && !self.projects.contains_key(&id)
        {
            return Err(Error::no_project(id));
        }
        if let Scope::Department(id) = new.scope
            && !self.departments.contains_key(&id)
        {
            return Err(Error::no_department(id));
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

    /// Whether what is in the one scope can be used in the other.
    fn reaches(&self, outer: Scope, inner: Scope) -> bool {
        match (outer, inner) {
            (Scope::System | Scope::Tenant, _) => true,
            (Scope::Cluster, inner) => !matches!(inner, Scope::Tenant | Scope::System),
            (Scope::Department(department), Scope::Project(project)) => {
                self.projects.get(&project).is_some_and(|found| found.department_id == department)
            }
            (outer, inner) => outer == inner,
        }
    }

    /// What an object names must be there, where it can be used.
    fn named_exist(&self, object: &Object) -> Result<(), Error> {
        let there = |key: &&str| {
            let (kind, id) = key.split_once('/').unwrap_or((key, ""));
            let found = self.objects.get(kind, id);
            found.is_some_and(|named| self.reaches(named.scope, object.scope))
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

    /// Nothing names what is deleted.
    fn object_is_not_named(&self, object: &Object) -> Result<(), Error> {
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

    /// No workload that runs, or may run again, gets its secrets.
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

    /// So many more are not too many.
    pub(crate) fn may_be_more(&self, new: &NewObject, more: usize) -> Result<(), Error> {
        let all = || self.objects.shelf(new.kind).into_iter().flat_map(|shelf| shelf.values());
        let of_one =
            !new.owner.is_empty() || matches!(new.scope, Scope::Project(_) | Scope::Department(_));
        let beside =
            |other: &&Arc<Object>| of_one && other.scope == new.scope && other.owner == new.owner;
        for (count, most) in
            [(all().count(), OBJECTS_MAX), (all().filter(beside).count(), OBJECTS_OF_ONE_MAX)]
        {
            if count + more > most {
                return Err(Error::conflict(format!(
                    "there are {count} of kind {}, and no more than {most} are allowed; delete \
                     some that are not used",
                    new.kind
                )));
            }
        }
        Ok(())
    }

    pub(crate) fn create_object(
        &mut self,
        by: String,
        new: NewObject,
    ) -> Result<Arc<Object>, Error> {
        check_name(&new.name)?;
        self.belongings_exist(&new)?;
        self.may_be_more(&new, 1)?;
        check_body(new.kind, &new.body)?;
        let seq = self.last_object_seq + 1;
        let id = match new.id {
            NewId::Any => self.ids.next().to_string(),
            NewId::Number => seq.to_string(),
            NewId::Given(id) => id.to_string(),
        };
        if self.objects.get(new.kind, &id).is_some() {
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
        self.object_name_is_free(&object)?;
        self.named_exist(&object)?;
        self.config_maps_fit(&object)?;
        self.last_object_seq = seq;
        let made = self.put_object(object);
        if let Some(most) = new.newest {
            self.end_oldest(&made, most);
        }
        Ok(made)
    }

    /// Ends the oldest of the kind that belong to the same owner, until there are no more than that.
    fn end_oldest(&mut self, made: &Object, most: usize) {
        let mut all = self.objects.all(&made.kind);
        all.retain(|other| other.owner == made.owner);
        let many = all.len().saturating_sub(most);
        for object in &all[..many] {
            self.end_object(&made.created_by, object);
        }
    }

    pub(crate) fn update_object(
        &mut self,
        by: String,
        before: &Object,
        (name, body): (String, Value),
    ) -> Result<Arc<Object>, Error> {
        check_name(&name)?;
        check_body(&before.kind, &body)?;
        // Never the same twice: it tells one state of an object from the next.
        let updated_at = self.now.max(before.updated_at.plus_ms(1));
        let object = Object { name, body, updated_at, updated_by: by, ..before.clone() };
        self.object_name_is_free(&object)?;
        self.named_exist(&object)?;
        self.config_maps_fit(&object)?;
        Ok(self.put_object(object))
    }

    pub(crate) fn put_object(&mut self, object: Object) -> Arc<Object> {
        let object = Arc::new(object);
        self.outbox.changes.push(object.row(None));
        self.objects.put(object.clone());
        object
    }

    /// Deletes an object and what ends with it.
    pub(crate) fn delete_object(
        &mut self,
        by: &str,
        kind: &'static str,
        id: &str,
    ) -> Result<Arc<Object>, Error> {
        let object = self.object(kind, id)?;
        self.object_is_not_named(&object)?;
        self.object_is_not_needed(&object)?;
        self.volume_is_not_used(&object)?;
        self.end_object(by, &object);
        Ok(object)
    }

    /// Deletes what is a project's or a department's, when that is deleted.
    pub(crate) fn delete_objects_of(&mut self, by: &str, scope: Scope) {
        self.end_objects(by, |object| object.scope == scope);
    }

    pub(crate) fn end_object(&mut self, by: &str, object: &Object) {
        self.objects.remove(object);
        self.drop_volume(object);
        let mut last = object.clone();
        if let Some(body) = last.body.as_object_mut() {
            body.remove(SECRETS);
        }
        by.clone_into(&mut last.updated_by);
        last.updated_at = self.now;
        self.outbox.changes.push(last.row(Some(self.now)));
        let key = object.key();
        self.end_objects(by, |other| other.owner == key);
    }

    fn end_objects(&mut self, by: &str, ends: impl Fn(&Object) -> bool) {
        let ending: Vec<_> = self.objects.iter().filter(|o| ends(o)).cloned().collect();
        for object in ending {
            self.end_object(by, &object);
        }
    }
}
