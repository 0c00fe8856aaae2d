//! Static words and nullable values in documents. Owns: that a value is read as it was written.

use serde::{Deserialize, Deserializer};

/// A static word: the name of a field or of a kind of objects.
pub type Word = &'static str;

/// Reads a word and leaks it, to make it static: a program that reads inputs replays them once and
/// ends.
///
/// # Errors
/// There is no word.
pub fn word<'de, D: Deserializer<'de>>(from: D) -> Result<Word, D::Error> {
    Ok(Box::leak(String::deserialize(from)?.into_boxed_str()))
}

/// Reads a value that is present, and may be null.
///
/// # Errors
/// The value has another form.
pub fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}
