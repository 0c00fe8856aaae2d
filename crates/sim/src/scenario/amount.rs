//! Amounts as written in a scenario: `0.5`, `2`, `16GiB`, `500m`, `10s`, `unlimited`. Owns: one
//! type per unit, read exactly and written so that it reads back equal. Does not know about: the
//! meaning of the amounts.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use units::{format_millis, parse_bytes, parse_cpu_millis};

/// Text form of a unit.
pub trait Unit {
    /// Description of the allowed texts, for errors.
    const ALLOWED: &'static str;
    /// Reads an amount.
    ///
    /// # Errors
    /// The text is not an allowed amount; the error gives the reason.
    fn read(text: &str) -> Result<u64, String>;
    /// Writes an amount so that it reads back equal.
    fn write(amount: u64) -> String;
}

/// An amount in a unit, kept as the integer of the model.
pub struct Amount<U>(pub u64, PhantomData<fn() -> U>);

impl<U> Amount<U> {
    /// An amount in thousandths, bytes or milliseconds.
    #[must_use]
    pub const fn new(amount: u64) -> Self {
        Self(amount, PhantomData)
    }
}

impl<U> Clone for Amount<U> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<U> Copy for Amount<U> {}
impl<U> PartialEq for Amount<U> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<U> Eq for Amount<U> {}
impl<U: Unit> fmt::Debug for Amount<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&U::write(self.0))
    }
}

impl<U: Unit> Serialize for Amount<U> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = U::write(self.0);
        match text.parse::<u64>() {
            Ok(number) => serializer.serialize_u64(number),
            Err(_) => serializer.serialize_str(&text),
        }
    }
}

impl<'de, U: Unit> Deserialize<'de> for Amount<U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text<U>(PhantomData<fn() -> U>);
        impl<U: Unit> Visitor<'_> for Text<U> {
            type Value = Amount<U>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(U::ALLOWED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount<U>, E> {
                U::read(text.trim()).map(Amount::new).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amount<U>, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount<U>, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_u128<E: de::Error>(self, number: u128) -> Result<Amount<U>, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_i128<E: de::Error>(self, number: i128) -> Result<Amount<U>, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount<U>, E> {
                // The shortest text of this number: 0.3 is read as `0.3`, exactly.
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Text(PhantomData))
    }
}

/// Thousandths of a GPU or of a core.
#[derive(Debug)]
pub enum Thousandths {}
/// Thousandths of a GPU or of a core, or `unlimited`.
#[derive(Debug)]
pub enum ThousandthsOrUnlimited {}
/// Bytes.
#[derive(Debug)]
pub enum Bytes {}
/// Bytes, or `unlimited`.
#[derive(Debug)]
pub enum BytesOrUnlimited {}
/// Milliseconds.
#[derive(Debug)]
pub enum Millis {}

/// A count of GPUs or cores.
pub type Count = Amount<Thousandths>;
/// A count of GPUs or cores that may be `unlimited`.
pub type CountLimit = Amount<ThousandthsOrUnlimited>;
/// A size.
pub type Size = Amount<Bytes>;
/// A size that may be `unlimited`.
pub type SizeLimit = Amount<BytesOrUnlimited>;
/// A span of time.
pub type Span = Amount<Millis>;

const UNLIMITED: &str = "unlimited";

/// The largest finite amount: sums over every object of a scenario stay far from overflow.
pub const AMOUNT_MAX: u64 = 1 << 58;

fn bounded(text: &str, amount: u64) -> Result<u64, String> {
    if amount <= AMOUNT_MAX {
        Ok(amount)
    } else {
        Err(units::Error::TooLarge(text.into()).to_string())
    }
}

fn or_unlimited(text: &str, read: impl Fn(&str) -> Result<u64, String>) -> Result<u64, String> {
    if text == UNLIMITED { Ok(u64::MAX) } else { read(text) }
}

impl Unit for Thousandths {
    const ALLOWED: &'static str = "a count such as 0.5 or 2";
    fn read(text: &str) -> Result<u64, String> {
        let amount = parse_cpu_millis(text).map_err(|error| error.to_string())?;
        bounded(text, amount)
    }
    fn write(amount: u64) -> String {
        format_millis(amount)
    }
}

impl Unit for ThousandthsOrUnlimited {
    const ALLOWED: &'static str = "a count such as 0.5 or 2, or `unlimited`";
    fn read(text: &str) -> Result<u64, String> {
        or_unlimited(text, Thousandths::read)
    }
    fn write(amount: u64) -> String {
        if amount == u64::MAX { UNLIMITED.into() } else { Thousandths::write(amount) }
    }
}

impl Unit for Bytes {
    const ALLOWED: &'static str = "a size such as 16GiB";
    fn read(text: &str) -> Result<u64, String> {
        let amount = parse_bytes(text).map_err(|error| error.to_string())?;
        bounded(text, amount)
    }
    fn write(amount: u64) -> String {
        let units = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1_u64 << 10)];
        let whole = units.into_iter().find(|(_, unit)| amount > 0 && amount.is_multiple_of(*unit));
        whole.map_or_else(|| amount.to_string(), |(name, unit)| format!("{}{name}", amount / unit))
    }
}

impl Unit for BytesOrUnlimited {
    const ALLOWED: &'static str = "a size such as 16GiB, or `unlimited`";
    fn read(text: &str) -> Result<u64, String> {
        or_unlimited(text, Bytes::read)
    }
    fn write(amount: u64) -> String {
        if amount == u64::MAX { UNLIMITED.into() } else { Bytes::write(amount) }
    }
}

const SPANS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl Unit for Millis {
    const ALLOWED: &'static str = "a span of time such as 500ms, 10s, 5m, 2h or 1d";
    fn read(text: &str) -> Result<u64, String> {
        let wrong = || format!("`{text}` is not a span of time; write 500ms, 10s, 5m, 2h or 1d");
        if text == "0" {
            return Ok(0);
        }
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, unit) = text.split_at(end);
        let scale = SPANS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
        let thousandths = Thousandths::read(number).map_err(|_| wrong())?;
        let ms = u128::from(thousandths) * u128::from(scale) / 1000;
        bounded(text, u64::try_from(ms).unwrap_or(u64::MAX))
    }
    fn write(amount: u64) -> String {
        let whole = |&&(_, scale): &&(&str, u64)| amount.is_multiple_of(scale);
        match SPANS.iter().rev().find(whole) {
            Some((name, scale)) if amount > 0 => format!("{}{name}", amount / scale),
            _ => "0".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_the_same() {
        for amount in [0, 1, 999, 1000, 1500, 1 << 20, (1 << 30) + 1, 3 << 40, 90_061_001] {
            assert_eq!(Thousandths::read(&Thousandths::write(amount)), Ok(amount));
            assert_eq!(Bytes::read(&Bytes::write(amount)), Ok(amount));
            assert_eq!(
                Millis::read(&Millis::write(amount)),
                Ok(amount),
                "{}",
                Millis::write(amount)
            );
        }
        assert_eq!(BytesOrUnlimited::read(&BytesOrUnlimited::write(u64::MAX)), Ok(u64::MAX));
    }

    #[test]
    fn wrong_amounts_are_refused() {
        for text in ["", "-1", "nan", "inf", "1e3", "99999999999999999", "1.2345"] {
            assert!(Thousandths::read(text).is_err(), "{text}");
        }
        for text in ["", "10", "-1s", "1y", "s", "9999999999999999d"] {
            assert!(Millis::read(text).is_err(), "{text}");
        }
        assert!(Bytes::read("99999P").is_err());
    }
}
