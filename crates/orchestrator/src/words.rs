//! Words of the program and values that may be none, in documents. Owns: that what is read is what
//! was written.

use serde::{Deserialize, Deserializer};

/// A word of the program: the name of a field or of a kind of objects.
pub(crate) type Word = &'static str;

/// Reads one. It is kept for good, as if it had been compiled in: what reads inputs plays them once
/// and ends.
pub(crate) fn word<'de, D: Deserializer<'de>>(from: D) -> Result<Word, D::Error> {
    Ok(Box::leak(String::deserialize(from)?.into_boxed_str()))
}

/// Reads a value that is given, and may be none.
pub(crate) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}
