//! An object: a document that the scheduler does not need. Does not know about: its content, which
//! the sender has validated.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use records::{Change, ObjectRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use units::Instant;

use crate::shared_map::SharedMap;

/// Field of a body that is removed with the object; the rest of a deleted object is history.
pub const SECRETS: &str = "secrets";
/// Field of a body with the keys of other objects, `["<kind>/<id>"]`. They must exist, in a scope
/// around the object's, and cannot be deleted while it refers to them.
pub const NAMES: &str = "names";

/// Scope of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    /// The program itself.
    System,
    /// The whole installation.
    Tenant,
    /// The cluster.
    Cluster,
    /// A department, by id; its objects are deleted with it.
    Department(u64),
    /// A project, by id; its objects are deleted with it.
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
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let (kind, id) = text.split_once('/').unwrap_or((text, ""));
        match (kind, id.parse()) {
            ("system", _) => Ok(Self::System),
            ("tenant", _) => Ok(Self::Tenant),
            ("cluster", _) => Ok(Self::Cluster),
            ("department", Ok(id)) => Ok(Self::Department(id)),
            ("project", Ok(id)) => Ok(Self::Project(id)),
            _ => Err(UnknownScope(text.to_owned())),
        }
    }
}

/// Error for a text that is not a scope.
#[derive(Debug, Error)]
#[error("`{0}` is no scope")]
pub struct UnknownScope(String);

impl From<UnknownScope> for spec::RequestError {
    fn from(error: UnknownScope) -> Self {
        Self::Internal { message: error.to_string() }
    }
}

/// An object that is not deleted.
#[derive(Clone, PartialEq, Eq)]
pub struct Object {
    /// Number in order of creation, over all kinds; never reused.
    pub seq: u64,
    /// Kind: `user`, `access-rule`, ….
    pub kind: Arc<str>,
    /// Id, unique in its kind.
    pub id: String,
    /// Scope that it belongs to.
    pub scope: Scope,
    /// Object that it is deleted with, `user/<id>`; empty for none.
    pub owner: String,
    /// Name, unique among the current objects of the kind, scope and owner.
    pub name: String,
    /// Everything else, in the storage type of its kind.
    pub body: Value,
    /// Time of creation.
    pub created_at: Instant,
    /// User who created it.
    pub created_by: String,
    /// Time of the last change.
    pub updated_at: Instant,
    /// User who made the last change.
    pub updated_by: String,
}

/// Prints it without the body, which may hold hashes of secrets.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({} {} {} of {})", self.kind, self.id, self.name, self.scope)
    }
}

/// The current objects by kind and id. Unchanged parts are shared with earlier copies.
#[derive(Debug, Clone, Default)]
pub struct Objects(BTreeMap<Arc<str>, Arc<ObjectsById>>);

/// The current objects of one kind, by id.
pub type ObjectsById = SharedMap<String, Arc<Object>>;

impl Objects {
    /// The objects of a kind; the allocation stays the same until one of them changes.
    #[must_use]
    pub fn shelf(&self, kind: &str) -> Option<&Arc<ObjectsById>> {
        self.0.get(kind)
    }

    /// Every kind that has ever had an object.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.keys()
    }

    /// The objects of a kind, in order of creation.
    #[must_use]
    pub fn all(&self, kind: &str) -> Vec<Arc<Object>> {
        let mut all: Vec<_> = self.shelf(kind).into_iter().flat_map(|s| s.values()).collect();
        all.sort_unstable_by_key(|object| object.seq);
        all.into_iter().cloned().collect()
    }

    /// The object with this id.
    #[must_use]
    pub fn get(&self, kind: &str, id: &str) -> Option<&Arc<Object>> {
        self.shelf(kind)?.get(id)
    }

    /// The object with this name in a scope, among those without an owner.
    #[must_use]
    pub fn named(&self, kind: &str, scope: Scope, name: &str) -> Option<&Arc<Object>> {
        let is =
            |one: &&Arc<Object>| one.scope == scope && one.name == name && one.owner.is_empty();
        self.shelf(kind)?.values().find(is)
    }

    /// Adds an object, or replaces the one with its id.
    pub fn put(&mut self, object: Arc<Object>) {
        let shelf = self.0.entry(object.kind.clone()).or_default();
        Arc::make_mut(shelf).insert(object.id.clone(), object);
    }

    /// Removes an object.
    pub fn remove(&mut self, object: &Object) {
        if let Some(shelf) = self.0.get_mut(&object.kind) {
            Arc::make_mut(shelf).remove(&object.id);
        }
    }

    /// All objects, kind by kind.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.0.values().flat_map(|shelf| shelf.values())
    }
}

impl Object {
    /// The keys of the objects that it refers to.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.body.get(NAMES).and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Kind and id, in the form of an owner.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}", self.kind, self.id)
    }

    /// Converts a stored row to an object.
    ///
    /// # Errors
    /// The scope of the row is invalid.
    pub fn from_row(row: ObjectRow) -> Result<Self, UnknownScope> {
        Ok(Self {
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
        })
    }

    /// Converts the object to the row to store.
    #[must_use]
    pub fn row(&self, deleted_at: Option<Instant>) -> Change {
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
