//! Times and exact decimals on the wire. Owns: their text forms; no float arithmetic anywhere.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::Instant;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

/// True for a value that the wire leaves out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A point in time, on the wire in RFC 3339 with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Instant);

impl From<Instant> for Time {
    fn from(at: Instant) -> Self {
        Self(at)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Instants beyond the calendar (year 9999) show as its last moment.
        let millis = i64::try_from(self.0.0).unwrap_or(i64::MAX);
        let at = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
        write!(f, "{at:.3}")
    }
}

impl Time {
    /// A time in the form of HTTP headers (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
    #[must_use]
    pub fn of_http(text: &str) -> Option<Self> {
        let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
        Some(Self(Instant(u64::try_from(at.as_millisecond()).ok()?)))
    }
}

impl std::str::FromStr for Time {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let at: jiff::Timestamp = text
            .parse()
            .map_err(|_| format!("`{text}` is not a time; write 2026-01-31T12:00:00Z"))?;
        // Moments before 1970 are no moments of this server.
        Ok(Self(Instant(u64::try_from(at.as_millisecond()).unwrap_or(0))))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl ToSchema for Time {}
impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

/// Thousandths, on the wire a JSON number (`2`, `0.5`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&units::format_millis(self.0))
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        number_from_millis(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        units::parse_cpu_millis(&number.to_string()).map(Self).map_err(D::Error::custom)
    }
}

impl ToSchema for Millis {}
impl PartialSchema for Millis {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0)).into()
    }
}

/// Millionths, on the wire a JSON number (`2`, `0.000278`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub u64);

impl Micros {
    /// One.
    pub const ONE: u64 = 1_000_000;
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / Self::ONE, self.0 % Self::ONE);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        f.write_str(format!("{whole}.{rest:06}").trim_end_matches('0'))
    }
}

impl std::str::FromStr for Micros {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a number from 0 with up to six decimals");
        let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(rest) || rest.len() > 6 {
            return Err(wrong());
        }
        let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(Self::ONE));
        let rest = format!("{rest:0<6}").parse::<u64>().ok();
        let sum = whole.zip(rest).and_then(|(whole, rest)| whole.checked_add(rest));
        sum.map(Self).ok_or_else(wrong)
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Digits with at most one point are always a JSON number.
        let number: Result<serde_json::Number, _> = self.to_string().parse();
        number.map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        // As text a small number has an exponent in JSON, and none in Rust.
        let small = number.as_f64().filter(|value| (0.0..1.0).contains(value));
        let text = small.map_or_else(|| number.to_string(), |value| value.to_string());
        text.strip_suffix(".0").unwrap_or(&text).parse().map_err(D::Error::custom)
    }
}

impl ToSchema for Micros {}
impl PartialSchema for Micros {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0)).into()
    }
}

/// The JSON number of an amount in thousandths.
#[must_use]
pub fn number_from_millis(millis: u64) -> serde_json::Number {
    // The text is digits with at most one point, which is always a JSON number.
    units::format_millis(millis).parse().unwrap_or_else(|_| serde_json::Number::from(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_server_is_read_from_its_answer() {
        let at = Time::of_http("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(at.to_string(), "1994-11-06T08:49:37.000Z");
        assert_eq!(Time::of_http("yesterday"), None);
    }

    #[test]
    fn thousandths_survive_the_wire() {
        for (millis, text) in [(0, "0"), (500, "0.5"), (333, "0.333"), (2000, "2"), (1001, "1.001")]
        {
            assert_eq!(serde_json::to_string(&Millis(millis)).unwrap(), text);
            assert_eq!(serde_json::from_str::<Millis>(text).unwrap(), Millis(millis));
        }
        assert_eq!(serde_json::from_str::<Millis>("2.0").unwrap(), Millis(2000));
        assert!(serde_json::from_str::<Millis>("-1").is_err());
    }

    #[test]
    fn millionths_survive_the_wire() {
        for (micros, text) in
            [(0, "0"), (1, "0.000001"), (278, "0.000278"), (2_492_500, "2.4925"), (3_000_000, "3")]
        {
            assert_eq!(Micros(micros).to_string(), text);
            assert_eq!(serde_json::from_str::<Micros>(text).unwrap(), Micros(micros));
        }
        assert_eq!(serde_json::to_string(&Micros(2_492_500)).unwrap(), "2.4925");
        for wrong in ["-1", "0.0000001", "1e300", "\"1\"", "99999999999999999999"] {
            assert!(serde_json::from_str::<Micros>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_rfc_3339() {
        let at = Time(Instant(1_700_000_000_123));
        assert_eq!(serde_json::to_string(&at).unwrap(), "\"2023-11-14T22:13:20.123Z\"");
        assert_eq!("2023-11-14T22:13:20.123Z".parse(), Ok(at));
        assert_eq!(Time(Instant(0)).to_string(), "1970-01-01T00:00:00.000Z");
        assert!("yesterday".parse::<Time>().is_err());
        assert!(Time(Instant(u64::MAX)).to_string().starts_with("9999-12-3"));
    }
}
