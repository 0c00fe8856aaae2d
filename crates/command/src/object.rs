//! Requests to create and to change objects. Owns: the rules for names and bodies.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use units::Instant;
use uuid::Uuid;
use view::{Object, Scope};

use crate::Error;
use spec::words::{Word, word};

/// Maximum length of a name, in bytes.
const NAME_BYTES_MAX: usize = 1024;

/// The id of an object to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewId {
    /// A new UUID.
    Any,
    /// The sequence number of the object, for families whose clients require integers.
    Number,
    /// This UUID of the caller: part of the body depends on it.
    Given(Uuid),
}

/// An object to create.
#[derive(Clone, Serialize, Deserialize)]
pub struct NewObject {
    /// Kind of the object.
    #[serde(deserialize_with = "word")]
    pub kind: Word,
    /// Choice of its id.
    pub id: NewId,
    /// Scope that it belongs to.
    pub scope: Scope,
    /// Key of the object that owns it and deletes it with itself, `user/<id>`; empty for none.
    pub owner: String,
    /// Name.
    pub name: String,
    /// Body.
    pub body: Value,
    /// Maximum number of the kind for its owner: the oldest are deleted for a new one. `None`: a
    /// new one is refused at the limit.
    pub newest: Option<usize>,
}

impl fmt::Debug for NewObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewObject({} {} of {})", self.kind, self.name, self.scope)
    }
}

/// Computes a new name and body from the object at the time of the change.
type EditFn = dyn Fn(&Object) -> Result<(String, Value), Error> + Send + Sync;

/// A change of an object. Of two concurrent changes none is lost: the second is computed again from
/// the result of the first.
#[derive(Clone)]
pub struct Edit(Arc<EditFn>);

/// Result of a change of an object.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Edited {
    /// `updated_at` of the object that was changed; the change is valid only if this is unchanged.
    pub updated_at: Instant,
    /// New name and body, or the error of the change.
    pub to: Result<(String, Value), Error>,
}

impl Edit {
    /// A change that calls this function.
    pub fn new(
        edit: impl Fn(&Object) -> Result<(String, Value), Error> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(edit))
    }

    /// Computes the change of an object; an error if there is no such object.
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

/// Checks the name of an object: text without blanks at its ends.
///
/// # Errors
/// The name is empty, too long, or has invisible characters.
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
