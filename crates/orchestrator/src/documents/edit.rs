//! What is asked of objects: to make one, and to change one. Owns: what a name and a body may be.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use units::Instant;
use uuid::Uuid;
use view::{Object, Scope};

use crate::Error;
use crate::words::{Word, word};

/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 1024;

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

/// A change of an object. Of two at once none is lost: the second is made again, to what the first
/// left.
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
