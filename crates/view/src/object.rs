//! An object: a document that the scheduler does not need. Does not know about: what is in one; the
//! sender has checked that.

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

/// A text that is no scope.
#[derive(Debug, Error)]
#[error("`{0}` is no scope")]
pub struct UnknownScope(String);

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

    /// Adds one, or puts it in place of the one with its id.
    pub fn put(&mut self, object: Arc<Object>) {
        let shelf = self.0.entry(object.kind.clone()).or_default();
        Arc::make_mut(shelf).insert(object.id.clone(), object);
    }

    /// Takes one out.
    pub fn remove(&mut self, object: &Object) {
        if let Some(shelf) = self.0.get_mut(&object.kind) {
            Arc::make_mut(shelf).remove(&object.id);
        }
    }

    /// All of them, kind by kind.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.0.values().flat_map(|shelf| shelf.values())
    }
}

impl Object {
    /// The keys of the objects it names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.body.get(NAMES).and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The kind and id of it as an owner.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}", self.kind, self.id)
    }

    /// From what is stored.
    ///
    /// # Errors
    /// It is in no scope.
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

    /// As it is stored.
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
