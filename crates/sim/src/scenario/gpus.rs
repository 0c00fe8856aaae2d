//! The GPU request of a pod, as written: `2`, `0.5`, `{memory: 8GiB}`, `{mig: {1g.10gb: 1}}`. Owns:
//! its four forms.

use std::fmt;

use model::MigRequest;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use units::{GPU_MILLIS, format_millis, parse_gpu_millis};

use super::amount::{Count, Size, Unit as _};
use super::mig::Mig;

/// Maximum number of devices of one pod.
pub const DEVICES_MAX: u32 = 1024;

/// GPUs of one pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuAsk(pub model::GpuRequest);

impl Default for GpuAsk {
    fn default() -> Self {
        Self(model::GpuRequest::Whole(0))
    }
}

/// The written form with several keys.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    /// Number of devices.
    #[serde(default)]
    devices: Option<u32>,
    /// Fraction of each device.
    #[serde(default)]
    share: Option<Count>,
    /// Memory on each device.
    #[serde(default)]
    memory: Option<Size>,
    /// MIG instances.
    #[serde(default)]
    mig: Option<Mig>,
}

fn counted(text: &str) -> Result<model::GpuRequest, String> {
    let millis = parse_gpu_millis(text).map_err(|error| error.to_string())?;
    if !millis.is_multiple_of(GPU_MILLIS) {
        return Ok(model::GpuRequest::Share { devices: 1, millis });
    }
    let devices = u32::try_from(millis / GPU_MILLIS).ok().filter(|n| *n <= DEVICES_MAX);
    let too_many = || format!("`{text}` is too large; a pod asks for at most {DEVICES_MAX} GPUs");
    devices.map(model::GpuRequest::Whole).ok_or_else(too_many)
}

fn composed(parts: &Parts) -> Result<model::GpuRequest, String> {
    if let Some(mig) = &parts.mig {
        if parts.devices.is_some() || parts.share.is_some() || parts.memory.is_some() {
            return Err("`mig` stands alone; leave `devices`, `share` and `memory` out".into());
        }
        return mig_request(mig).map(model::GpuRequest::Mig);
    }
    let devices = parts.devices.unwrap_or(1);
    if !(1..=DEVICES_MAX).contains(&devices) {
        return Err(format!("`devices` is {devices}; 1 to {DEVICES_MAX} are allowed"));
    }
    match (parts.share, parts.memory) {
        (Some(share), None) if (1..GPU_MILLIS).contains(&share.0) => {
            Ok(model::GpuRequest::Share { devices, millis: share.0 })
        }
        (Some(_), None) => Err("`share` is a part of one GPU, above 0 and below 1".into()),
        (None, Some(memory)) if memory.0 > 0 => {
            Ok(model::GpuRequest::Memory { devices, bytes: memory.0 })
        }
        (None, Some(_)) => Err("`memory` must be more than 0".into()),
        (Some(_), Some(_)) => Err("`share` and `memory` cannot be used together".into()),
        (None, None) => Ok(model::GpuRequest::Whole(devices)),
    }
}

fn mig_request(mig: &Mig) -> Result<MigRequest, String> {
    let all: u64 = mig.0.values().map(|&count| u64::from(count)).sum();
    if all > u64::from(DEVICES_MAX) {
        return Err(format!("asks for {all} MIG instances; at most {DEVICES_MAX} are allowed"));
    }
    let each = mig.0.iter();
    let each = each.map(|(profile, &n)| (profile.0, u16::try_from(n).unwrap_or(u16::MAX)));
    MigRequest::new(each).map_err(|error| format!("`mig` {error}"))
}

impl<'de> Deserialize<'de> for GpuAsk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ask;
        impl<'de> Visitor<'de> for Ask {
            type Value = GpuAsk;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("GPUs such as 0.5, 2, {memory: 8GiB} or {mig: {1g.10gb: 1}}")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<GpuAsk, E> {
                counted(text).map(GpuAsk).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<GpuAsk, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<GpuAsk, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_u128<E: de::Error>(self, number: u128) -> Result<GpuAsk, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<GpuAsk, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GpuAsk, A::Error> {
                let parts = Parts::deserialize(MapAccessDeserializer::new(map))?;
                composed(&parts).map(GpuAsk).map_err(de::Error::custom)
            }
        }
        deserializer.deserialize_any(Ask)
    }
}

impl Serialize for GpuAsk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            model::GpuRequest::Whole(devices) => serializer.serialize_u32(devices),
            model::GpuRequest::Share { devices: 1, millis } => {
                serializer.serialize_str(&format_millis(millis))
            }
            model::GpuRequest::Share { devices, millis } => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("devices", &devices)?;
                map.serialize_entry("share", &format_millis(millis))?;
                map.end()
            }
            model::GpuRequest::Memory { devices, bytes } => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("devices", &devices)?;
                map.serialize_entry("memory", &super::amount::Bytes::write(bytes))?;
                map.end()
            }
            model::GpuRequest::Mig(request) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("mig", &Mig::from(&request))?;
                map.end()
            }
        }
    }
}
