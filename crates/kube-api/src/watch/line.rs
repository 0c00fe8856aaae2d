//! Lines of a watch. Owns: reading one. Does not know about: the connection.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::answer;
use crate::error::{Call, Error};
use crate::list::UnreadableObject;
use crate::status::Status;
use crate::types::{Metadata, Resource};

pub(super) enum WatchLine<R> {
    Applied(R),
    Deleted(R),
    Unreadable(UnreadableObject),
    Bookmark(Metadata),
    Failed(Error),
}

/// A line as it is written: the type comes before the object.
enum Wire<R> {
    Applied(R),
    Deleted(R),
    Bookmark(Metadata),
    Failed(Status),
}

impl<R: Resource> WatchLine<R> {
    pub(super) fn read(call: &Call, line: &[u8]) -> Result<Self, Error> {
        match serde_json::from_slice::<Wire<R>>(line) {
            Ok(Wire::Applied(object)) => Ok(Self::Applied(object)),
            Ok(Wire::Deleted(object)) => Ok(Self::Deleted(object)),
            Ok(Wire::Bookmark(object)) => Ok(Self::Bookmark(object)),
            Ok(Wire::Failed(status)) => {
                Ok(Self::Failed(answer::of_status(call, status.code, status, None)))
            }
            Err(error) => {
                // One odd object ends no watch.
                let value: Value = answer::read(call, line)?;
                match value.get("object").filter(|object| object.is_object()) {
                    Some(object) => Ok(Self::Unreadable(UnreadableObject::of(object, &error))),
                    None => Err(answer::unreadable(call, error.to_string())),
                }
            }
        }
    }

    /// The version after which changes are missing.
    pub(super) fn version(&self) -> Option<&str> {
        let meta = match self {
            Self::Applied(object) | Self::Deleted(object) => object.meta(),
            Self::Unreadable(object) => &object.meta,
            Self::Bookmark(object) => &object.metadata,
            Self::Failed(_) => return None,
        };
        Some(meta.resource_version.as_str()).filter(|version| !version.is_empty())
    }
}

impl<'de, R: DeserializeOwned> Deserialize<'de> for Wire<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(WireVisitor(PhantomData))
    }
}

struct WireVisitor<R>(PhantomData<R>);

impl<'de, R: DeserializeOwned> Visitor<'de> for WireVisitor<R> {
    type Value = Wire<R>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a line of a watch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Wire<R>, A::Error> {
        let (mut kind, mut wire) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "type" => kind = Some(map.next_value::<String>()?),
                "object" => {
                    let kind = kind.as_deref().ok_or_else(|| de::Error::missing_field("type"))?;
                    wire = Some(match kind {
                        "ADDED" | "MODIFIED" => Wire::Applied(map.next_value()?),
                        "DELETED" => Wire::Deleted(map.next_value()?),
                        "BOOKMARK" => Wire::Bookmark(map.next_value()?),
                        "ERROR" => Wire::Failed(map.next_value()?),
                        other => return Err(de::Error::custom(format!("no type `{other}`"))),
                    });
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        wire.ok_or_else(|| de::Error::missing_field("object"))
    }
}
