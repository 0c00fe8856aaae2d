//! Documents as their lists show them. Owns: the description of kinds of documents, for a stream
//! that shows all kinds alike. Does not know which kinds there are.

use std::sync::Arc;

use api_types::ChangeKind;
use auth::Resource;
use http_kit::ApiError;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use view::{Object, View};

use crate::Backend;

/// A document as its list shows it.
#[derive(Debug)]
pub struct DocumentView {
    /// Its id in the list.
    pub id: String,
    /// The whole document, as JSON.
    pub object: Box<RawValue>,
}

impl DocumentView {
    /// A document with this id.
    pub fn new(id: &str, object: &impl Serialize) -> Result<Self, ApiError> {
        let object = to_raw_value(object).map_err(ApiError::internal)?;
        Ok(Self { id: id.to_owned(), object })
    }
}

/// Function that shows a document; `None` if the document that contains it is gone.
type Show = fn(&Backend, &View, &Arc<Object>) -> Result<Option<DocumentView>, ApiError>;

/// A kind of documents that are shown.
#[derive(Debug, Clone, Copy)]
pub struct DocumentViewKind {
    /// Kind in the database.
    pub stored: &'static str,
    /// Kind in the stream of changes.
    pub kind: ChangeKind,
    /// Resource that roles name for it.
    pub resource: Resource,
    /// True if it is only seen in another document: its end is a change of that one.
    pub is_part: bool,
    /// Function that shows a document.
    pub shown: Show,
}
