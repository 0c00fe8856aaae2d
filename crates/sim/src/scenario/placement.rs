//! Placement strategy in a scenario: one word for everything, or a word for each kind of place.
//! Owns: reading and writing both forms.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};

/// Order in which nodes, or the GPUs of a node, are filled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Fullest first.
    #[default]
    BinPack,
    /// Emptiest first.
    Spread,
}

/// Strategy for the choice among the places that fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Strategy for nodes, for pods with GPUs.
    pub gpu: Strategy,
    /// Strategy for nodes, for pods without GPUs.
    pub cpu: Strategy,
    /// Strategy for the GPUs of a node, for GPU fractions.
    pub devices: Strategy,
}

impl Placement {
    const fn all(strategy: Strategy) -> Self {
        Self { gpu: strategy, cpu: strategy, devices: strategy }
    }
}

/// The form with a word for each kind.
#[derive(Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Each {
    #[serde(default)]
    gpu: Strategy,
    #[serde(default)]
    cpu: Strategy,
    /// Equal to `gpu` if not given.
    #[serde(default)]
    devices: Option<Strategy>,
}

impl Serialize for Placement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { gpu, cpu, devices } = *self;
        if gpu == cpu && cpu == devices {
            return gpu.serialize(serializer);
        }
        Each { gpu, cpu, devices: Some(devices) }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Placement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Placement;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`bin-pack`, `spread`, or a map of `gpu`, `cpu` and `devices`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Strategy::deserialize(StrDeserializer::new(text)).map(Placement::all)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let Each { gpu, cpu, devices } =
                    Each::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Placement { gpu, cpu, devices: devices.unwrap_or(gpu) })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Strategy::{BinPack, Spread};

    #[test]
    fn both_forms_are_read_and_written() {
        let each = |gpu, cpu, devices| Placement { gpu, cpu, devices };
        for (text, placement, written) in [
            ("\"spread\"", each(Spread, Spread, Spread), "\"spread\""),
            ("{\"cpu\":\"spread\"}", each(BinPack, Spread, BinPack), "same"),
            ("{\"gpu\":\"spread\"}", each(Spread, BinPack, Spread), "same"),
            ("{\"gpu\":\"bin-pack\"}", each(BinPack, BinPack, BinPack), "\"bin-pack\""),
        ] {
            assert_eq!(serde_json::from_str::<Placement>(text).unwrap(), placement, "{text}");
            let again = serde_json::to_string(&placement).unwrap();
            assert!(written == "same" || again == written, "{again}");
            assert_eq!(serde_json::from_str::<Placement>(&again).unwrap(), placement, "{again}");
        }
    }
}
