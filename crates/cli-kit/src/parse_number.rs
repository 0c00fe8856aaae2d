//! Numbers on command lines. Owns: the error text for other input.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A parser of whole numbers in this range. The parsers of the library report why a text is not a
/// number, but not what to write.
pub fn whole<T>(allowed: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Copy,
{
    move |text: &str| {
        let number = text.parse().ok().filter(|number| allowed.contains(number));
        let (first, last) = (allowed.start(), allowed.end());
        number.ok_or_else(|| format!("write a whole number from {first} to {last}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_the_range_is_read_and_another_text_is_told_the_range() {
        let percent = whole(1_u32..=100);
        assert_eq!((percent("1"), percent("100")), (Ok(1), Ok(100)));
        for wrong in ["", "x", "0", "101", "1.5", "-1", "99999999999999999999"] {
            let said = percent(wrong).unwrap_err();
            assert_eq!(said, "write a whole number from 1 to 100", "{wrong}");
        }
    }
}
