//! Reading a JSON tree as a type. Owns: the path of the field at fault, and that an object is
//! written as an object.
//!
//! One small deserializer in place of a stack of generic ones: every type of a body is compiled for
//! each layer of the stack, and this is the largest part of what the compiler does for this crate.

use std::cell::Cell;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use serde_json::{Error, Map, Value, map};

/// Error of a value, with the path of its field.
#[derive(Debug)]
pub(super) struct DecodeError {
    /// The field, such as `spec.tolerations[0]`; empty for the value itself.
    pub(super) path: String,
    /// Error of the value.
    pub(super) error: Error,
}

/// Reads a value. An object is an object: serde would take the fields of a struct from an array,
/// too, in the order in which they are declared in this program.
pub(super) fn decode<T: DeserializeOwned>(value: Value) -> Result<T, DecodeError> {
    traced(|at| T::deserialize(Node { value, at }))
}

/// Reads from the root on; a fault gets the path that was noted.
pub(super) fn traced<T>(
    read: impl FnOnce(&FieldPath<'_>) -> Result<T, Error>,
) -> Result<T, DecodeError> {
    let innermost = Cell::default();
    read(&FieldPath { outer: None, step: Step::Root, innermost: &innermost })
        .map_err(|error| DecodeError { path: innermost.take().unwrap_or_default(), error })
}

/// A place in the tree, as a list from the inside to the outside: it costs nothing until a fault is
/// found.
#[derive(Clone, Copy)]
pub(super) struct FieldPath<'a> {
    outer: Option<&'a FieldPath<'a>>,
    step: Step<'a>,
    /// The path of the innermost fault, which is found first.
    innermost: &'a Cell<Option<String>>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Item(usize),
}

impl<'a> FieldPath<'a> {
    pub(super) fn field(&'a self, name: &'a str) -> Self {
        FieldPath { outer: Some(self), step: Step::Field(name), innermost: self.innermost }
    }

    pub(super) fn item(&'a self, index: usize) -> Self {
        FieldPath { outer: Some(self), step: Step::Item(index), innermost: self.innermost }
    }

    /// Remembers this place, unless the fault is known to be further inside.
    #[cold]
    pub(super) fn note(&self) {
        let path = self.innermost.take().unwrap_or_else(|| self.to_string());
        self.innermost.set(Some(path));
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(outer) = self.outer {
            outer.fmt(to)?;
        }
        let first = self.outer.is_none_or(|outer| matches!(outer.step, Step::Root));
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) if first => to.write_str(name),
            Step::Field(name) => write!(to, ".{name}"),
            Step::Item(index) => write!(to, "[{index}]"),
        }
    }
}

/// A value at its place.
struct Node<'a> {
    value: Value,
    at: &'a FieldPath<'a>,
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(value), _, _) => visitor.visit_u64(value),
                (_, Some(value), _) => visitor.visit_i64(value),
                (_, _, Some(value)) => visitor.visit_f64(value),
                _ => Err(Error::custom("number out of range")),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => {
                visitor.visit_seq(Items { items: items.into_iter().enumerate(), at: self.at })
            }
            Value::Object(fields) => visitor.visit_map(Fields::new(fields, self.at)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.value {
            Value::Array(_) => Err(Error::invalid_type(Unexpected::Other("a list"), &"an object")),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.value {
            Value::String(word) => visitor.visit_enum(word.into_deserializer()),
            other => other.deserialize_enum(name, variants, visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The values of a list.
struct Items<'a> {
    items: std::iter::Enumerate<std::vec::IntoIter<Value>>,
    at: &'a FieldPath<'a>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some((index, value)) = self.items.next() else { return Ok(None) };
        let at = self.at.item(index);
        seed.deserialize(Node { value, at: &at }).map(Some).inspect_err(|_| at.note())
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// The fields of an object.
struct Fields<'a> {
    fields: map::IntoIter,
    /// The field whose name was read.
    current: Option<(String, Value)>,
    at: &'a FieldPath<'a>,
}

impl<'a> Fields<'a> {
    fn new(fields: Map<String, Value>, at: &'a FieldPath<'a>) -> Self {
        Self { fields: fields.into_iter(), current: None, at }
    }
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some((name, value)) = self.fields.next() else { return Ok(None) };
        let at = self.at.field(&name);
        let key: StrDeserializer<'_, Error> = name.as_str().into_deserializer();
        let key = seed.deserialize(key).inspect_err(|_| at.note())?;
        self.current = Some((name, value));
        Ok(Some(key))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let (name, value) = self.current.take().unwrap_or_default();
        let at = self.at.field(&name);
        seed.deserialize(Node { value, at: &at }).inspect_err(|_| at.note())
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.fields.len())
    }
}
