//! The parameters of lists. Owns: their names, what each may be, and its description; checked and
//! described from one table.

use api_types::PAGE_ITEMS_MAX;
use utoipa::openapi::schema::{self, ObjectBuilder};

use super::error::ApiError;

/// Allowed values of a parameter.
#[derive(Debug, Clone, Copy)]
pub enum Allowed {
    /// A whole number from here to there.
    Number(u64, u64),
    /// True or false.
    Flag,
    /// One of a list of words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
}

/// A parameter: its name, what it may be, and what it does.
pub type Parameter = (&'static str, Allowed, &'static str);

pub(crate) const OFFSET: Parameter =
    ("offset", Allowed::Number(0, u64::MAX), "How many to leave out at the beginning");
pub(crate) const LIMIT: Parameter =
    ("limit", Allowed::Number(1, PAGE_ITEMS_MAX), "Most to answer; 50 unless told");
pub(crate) const SORT_ORDER: Parameter =
    ("sortOrder", Allowed::Word(&["asc", "desc"]), "Which end comes first");
pub(crate) const DELETED: Parameter =
    ("deleted", Allowed::Flag, "Those that were deleted, instead of the living");
/// Detail of the response, which is always full.
pub const VERBOSITY: Parameter = (
    "verbosity",
    Allowed::Word(&["full", "brief"]),
    "Changes nothing here: answers are always full",
);

/// Every parameter a list takes, and what it does; some change nothing here.
pub(crate) const PARAMETERS: [Parameter; 14] = {
    use Allowed::{Flag, Number, Text};
    [
        OFFSET,
        LIMIT,
        ("sortBy", Text, "Field to sort by"),
        SORT_ORDER,
        ("search", Text, "Text that one of the main fields contains"),
        (
            "filterBy",
            Text,
            "Up to ten conditions, separated by commas: name==a1,phase!=Running; alternatives of a text \
             after == and != are separated by |",
        ),
        DELETED,
        ("completed", Flag, "Changes nothing here"),
        VERBOSITY,
        ("complyToProject", Number(1, u64::MAX), "Changes nothing here"),
        ("complyToWorkloadType", Text, "Changes nothing here"),
        ("complyToReplicaType", Text, "Changes nothing here"),
        ("nodeName", Text, "Changes nothing here"),
        ("includeRequestedForDelete", Flag, "Changes nothing here"),
    ]
};

impl Allowed {
    /// Schema for the description of the interface.
    pub fn schema(self) -> schema::Object {
        let of = |kind| ObjectBuilder::new().schema_type(kind);
        match self {
            Self::Number(least, u64::MAX) => of(schema::Type::Integer).minimum(Some(least)),
            Self::Number(least, most) => {
                of(schema::Type::Integer).minimum(Some(least)).maximum(Some(most))
            }
            Self::Flag => of(schema::Type::Boolean),
            Self::Word(words) => of(schema::Type::String).enum_values(Some(words.iter().copied())),
            Self::Text => of(schema::Type::String),
        }
        .build()
    }

    /// Refuses what is not allowed.
    pub fn check(self, name: &str, value: &str) -> Result<(), ApiError> {
        let allowed = match self {
            Self::Number(least, most) => {
                if value.parse().is_ok_and(|n: u64| (least..=most).contains(&n)) {
                    return Ok(());
                }
                match most {
                    u64::MAX => format!("a whole number, {least} or more"),
                    _ => format!("{least} to {most}"),
                }
            }
            Self::Flag if matches!(value, "true" | "false") => return Ok(()),
            Self::Flag => "true or false".to_owned(),
            Self::Word(words) if words.contains(&value) => return Ok(()),
            Self::Word(words) => words.join(" or "),
            Self::Text => return Ok(()),
        };
        Err(ApiError::field(name, format!("`{value}` is not allowed; write {allowed}")))
    }
}
