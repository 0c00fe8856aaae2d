//! Quantities of Kubernetes, such as `100m`, `1.5Gi` and `1e3`.

/// Reads a quantity in thousandths; `None` if it is none.
pub(crate) fn thousandths(text: &str) -> Option<u64> {
    parts(text, 1000)
}

/// Reads a quantity as a whole number; `None` if it is none.
pub(crate) fn whole(text: &str) -> Option<u64> {
    parts(text, 1)
}

/// Reads a quantity in parts of which one has this many, rounded up as the kubelet does. Negative
/// ones are 0, and too large ones are the largest number.
fn parts(text: &str, of_one: u128) -> Option<u64> {
    let text = text.trim();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && part.is_empty()) || part.contains('.') {
        return None;
    }
    let (scale, divisor) = scale_of(suffix)?;
    if negative {
        return Some(0);
    }
    // Nine decimals are all that a quantity has.
    let decimals = part.len().min(9);
    let value: u128 = format!("0{whole}{}", &part[..decimals]).parse().unwrap_or(u128::MAX);
    let divisor = divisor.saturating_mul(10_u128.pow(u32::try_from(decimals).ok()?));
    let all = value.saturating_mul(scale).saturating_mul(of_one);
    Some(u64::try_from(all.div_ceil(divisor)).unwrap_or(u64::MAX))
}

/// Factor and divisor of a suffix.
fn scale_of(suffix: &str) -> Option<(u128, u128)> {
    let power = |base: u128, exponent| (base.pow(exponent), 1);
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1000),
        "k" => power(1000, 1),
        "M" => power(1000, 2),
        "G" => power(1000, 3),
        "T" => power(1000, 4),
        "P" => power(1000, 5),
        "E" => power(1000, 6),
        "Ki" => power(1024, 1),
        "Mi" => power(1024, 2),
        "Gi" => power(1024, 3),
        "Ti" => power(1024, 4),
        "Pi" => power(1024, 5),
        "Ei" => power(1024, 6),
        other => {
            let exponent: i32 = other.strip_prefix(['e', 'E'])?.parse().ok()?;
            let factor = 10_u128.checked_pow(exponent.unsigned_abs())?;
            if exponent < 0 { (1, factor) } else { (factor, 1) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_those_of_kubernetes() {
        let all = [
            ("1", 1000),
            ("100m", 100),
            ("0.1", 100),
            ("1e3", 1_000_000),
            ("1E-3", 1),
            ("1.5Ki", 1_536_000),
            ("1u", 1),
            ("-1", 0),
            ("9223372036854775807Ki", u64::MAX),
        ];
        for (text, expected) in all {
            assert_eq!(thousandths(text), Some(expected), "{text}");
        }
        for text in ["", ".", "m", "1x", "1.2.3", "e3"] {
            assert_eq!(thousandths(text), None, "{text}");
        }
        assert_eq!(whole("16Gi"), Some(16 << 30));
        assert_eq!(whole("100Ti"), Some(100 << 40));
        assert_eq!(whole("1500m"), Some(2));
        assert_eq!(whole("9223372036854775807Ki"), Some(u64::MAX));
    }
}
