//! An object: a document that the scheduler does not need. Refuses to know: what is in one; who sends it has
//! checked that.

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
use crate::words::{Word, word};

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
    /// This UUID, which the caller has made: part of the body depends on it.
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
pub struct Objects(BTreeMap<Arc<str>, Arc<ObjectsById>>);

/// The living objects of one kind, by id.
pub type ObjectsById = SharedMap<String, Arc<Object>>;

impl Objects {
    /// Those of a kind; the same allocation until one of them changes.
    #[must_use]
    pub fn shelf(&self, kind: &str) -> Option<&Arc<ObjectsById>> {
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

    /// The one with this name in a scope, of those without an owner.
    #[must_use]
    pub fn named(&self, kind: &str, scope: Scope, name: &str) -> Option<&Arc<Object>> {
        let is =
            |one: &&Arc<Object>| one.scope == scope && one.name == name && one.owner.is_empty();
        self.shelf(kind)?.values().find(is)
    }

    pub(super) fn put(&mut self, object: Arc<Object>) {
        let shelf = self.0.entry(object.kind.clone()).or_default();
        Arc::make_mut(shelf).insert(object.id.clone(), object);
    }

    pub(super) fn remove(&mut self, object: &Object) {
        if let Some(shelf) = self.0.get_mut(&object.kind) {
            Arc::make_mut(shelf).remove(&object.id);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.0.values().flat_map(|shelf| shelf.values())
    }

    /// From what is stored.
    pub(super) fn from_rows(rows: Vec<ObjectRow>) -> Result<Self, Error> {
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
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.body.get(NAMES).and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The kind and id of it as an owner.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}", self.kind, self.id)
    }

    pub(super) fn row(&self, deleted_at: Option<Instant>) -> Change {
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

pub(super) fn check_body(kind: &str, body: &Value) -> Result<(), Error> {
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
