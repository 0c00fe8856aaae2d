//! What a JSON body must not be, whatever it is read as. Owns: that an object is written as an
//! object, and which characters a text may have. Refuses to know: what the fields mean.

use serde::Deserializer;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde_json::{Error, Value};

use super::fault::Fault;

/// Fields whose text is one line.
const ONE_LINE: [&str; 5] = ["name", "image", "workingDir", "username", "email"];

/// Reads a value, in which an object is an object: serde would take the fields of a struct from
/// an array, too, in the order in which they happen to be written in this program.
pub(super) fn read<T: DeserializeOwned>(
    value: Value,
) -> Result<T, serde_path_to_error::Error<Error>> {
    serde_path_to_error::deserialize(Strict(value))
}

/// Refuses text with what cannot be seen: no text has NUL, and a line has no other control
/// character.
pub(super) fn check_text(value: &Value) -> Result<(), Fault> {
    texts(value, &mut String::new(), false)
}

/// `path` is where the value is; it is grown and cut again, so that a long name of a field is not
/// copied for each value below it.
fn texts(value: &Value, path: &mut String, one_line: bool) -> Result<(), Fault> {
    let text = |text: &str, path: &str| {
        let wrong = |c: char| c == '\0' || (one_line && c.is_control());
        if !text.contains(wrong) {
            return Ok(());
        }
        // Without the text, which may be secret.
        Err(Fault::field(path, "has a control character; leave it out"))
    };
    match value {
        Value::String(line) => text(line, path),
        Value::Array(items) => {
            let end = path.len();
            for (at, item) in items.iter().enumerate() {
                path.push_str(&format!("[{at}]"));
                texts(item, path, one_line)?;
                path.truncate(end);
            }
            Ok(())
        }
        Value::Object(fields) => {
            let end = path.len();
            let is_data = path == "data";
            let is_label = one_line && path.contains("labels");
            for (name, value) in fields {
                if end > 0 {
                    path.push('.');
                }
                path.push_str(name);
                text(name, path)?;
                let of_label = name == "labels" || is_label;
                // The keys of a config map are not fields.
                let one_line = !is_data && (of_label || ONE_LINE.contains(&name.as_str()));
                texts(value, path, one_line)?;
                path.truncate(end);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A value that gives the fields of a struct from an object only.
struct Strict(Value);

impl<'de> IntoDeserializer<'de, Error> for Strict {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Strict {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                let mut items = SeqDeserializer::new(items.into_iter().map(Strict));
                let value = visitor.visit_seq(&mut items)?;
                items.end().map(|()| value)
            }
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (name, Strict(value)));
                let mut fields = MapDeserializer::new(fields);
                let value = visitor.visit_map(&mut fields)?;
                fields.end().map(|()| value)
            }
            plain => plain.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(_) => Err(Error::invalid_type(Unexpected::Other("a list"), &"an object")),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
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
        self.0.deserialize_enum(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}
