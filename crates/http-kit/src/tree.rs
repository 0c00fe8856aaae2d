//! JSON text as a tree. Owns: that no object has a key twice, of which a tree would keep the last.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::de::SliceRead;
use serde_json::{Map, Number, Value};

use super::decode::{DecodeError, FieldPath, traced};

/// Reads a value in whose objects each key is there once.
pub(super) fn read(
    json: &mut serde_json::Deserializer<SliceRead<'_>>,
) -> Result<Value, DecodeError> {
    traced(|at| Reader(at).deserialize(json))
}

/// Reads what stands at a place.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a FieldPath<'a>);

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        // JSON has no text for what is not finite.
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        loop {
            let at = self.0.item(all.len());
            match items.next_element_seed(Reader(&at)).inspect_err(|_| at.note())? {
                Some(item) => all.push(item),
                None => return Ok(Value::Array(all)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if all.contains_key(&name) {
                let name = units::shown(&name);
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
            let at = self.0.field(&name);
            let value = fields.next_value_seed(Reader(&at)).inspect_err(|_| at.note())?;
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}
