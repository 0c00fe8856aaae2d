//! Reading and printing amounts: decimal counts to thousandths, byte quantities to bytes.
//! Owns the one error text each wrong amount gets, wherever it was typed.

use thiserror::Error;

/// Thousandths in one whole GPU (or CPU core).
pub const GPU_MILLIS: u64 = 1000;

/// Error of an amount. The text names what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// Not a number at all.
    #[error("`{0}` is not a number; write a count such as 0.5, 1 or 2")]
    NotANumber(String),
    /// Below zero.
    #[error("`{0}` is negative; the smallest amount is 0")]
    Negative(String),
    /// More than three decimals.
    #[error("`{0}` is too fine; at most three decimals are counted (0.001)")]
    TooFine(String),
    /// Does not fit the integer it is kept in.
    #[error("`{0}` is too large")]
    TooLarge(String),
    /// A GPU count above one that is not whole.
    #[error(
        "`{0}` is neither a fraction of one GPU nor a whole number; \
         use a value between 0 and 1 (0.5) or a whole count (1, 2, 4)"
    )]
    MixedGpu(String),
    /// Not a byte quantity.
    #[error("`{0}` is not a size; write a number with a unit such as 500M, 16GiB or 8G")]
    NotASize(String),
}

/// Parses a decimal (`2`, `0.5`, `.25`) into thousandths, exactly.
///
/// # Errors
/// Anything that is not a plain non-negative decimal with at most three decimals.
fn parse_millis(text: &str) -> Result<u64, Error> {
    let text = text.trim();
    let own = || text.to_owned();
    if let Some(rest) = text.strip_prefix('-') {
        let number = rest.bytes().any(|b| b.is_ascii_digit())
            && rest.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        return Err(if number { Error::Negative(own()) } else { Error::NotANumber(own()) });
    }
    let (whole, frac) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(frac) || (whole.is_empty() && frac.is_empty()) {
        return Err(Error::NotANumber(own()));
    }
    let frac = frac.trim_end_matches('0');
    if frac.len() > 3 {
        return Err(Error::TooFine(own()));
    }
    let parse = |s: &str| if s.is_empty() { Ok(0) } else { s.parse::<u64>() };
    let whole = parse(whole).map_err(|_| Error::TooLarge(own()))?;
    let frac = parse(&format!("{frac:0<3}")).map_err(|_| Error::TooLarge(own()))?;
    whole.checked_mul(GPU_MILLIS).and_then(|m| m.checked_add(frac)).ok_or(Error::TooLarge(own()))
}

/// Parses a GPU count: a fraction of one GPU, or a whole number. In thousandths.
///
/// # Errors
/// Not a number, negative, finer than 0.001, or above 1 and not whole (`1.5`).
pub fn parse_gpu_millis(text: &str) -> Result<u64, Error> {
    let millis = parse_millis(text)?;
    if millis > GPU_MILLIS && !millis.is_multiple_of(GPU_MILLIS) {
        return Err(Error::MixedGpu(text.trim().to_owned()));
    }
    Ok(millis)
}

/// Parses a CPU count as Kubernetes writes it: `0.5`, `2`, `500m`. In thousandths of a core.
///
/// # Errors
/// Not a number, negative or finer than 0.001.
pub fn parse_cpu_millis(text: &str) -> Result<u64, Error> {
    match text.trim().strip_suffix('m') {
        Some(millis) => millis.parse().map_err(|_| Error::NotANumber(text.trim().to_owned())),
        None => parse_millis(text),
    }
}

/// Parses a size: a decimal number with an optional unit. `k M G T P` are powers of 1000 and
/// `Ki Mi Gi Ti Pi` of 1024; a trailing `B` is allowed. In bytes, rounded down.
///
/// # Errors
/// Not a number, an unknown unit, or more bytes than fit 64 bits.
pub fn parse_bytes(text: &str) -> Result<u64, Error> {
    let text = text.trim();
    let bad = || Error::NotASize(text.to_owned());
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale: u64 = match unit.trim().trim_end_matches(['b', 'B']) {
        "" => 1,
        "k" | "K" => 1000,
        "M" | "m" => 1000_u64.pow(2),
        "G" | "g" => 1000_u64.pow(3),
        "T" | "t" => 1000_u64.pow(4),
        "P" | "p" => 1000_u64.pow(5),
        "Ki" | "ki" => 1 << 10,
        "Mi" | "mi" => 1 << 20,
        "Gi" | "gi" => 1 << 30,
        "Ti" | "ti" => 1 << 40,
        "Pi" | "pi" => 1 << 50,
        _ => return Err(bad()),
    };
    let millis = parse_millis(number).map_err(|_| bad())?;
    let bytes = u128::from(millis) * u128::from(scale) / 1000;
    u64::try_from(bytes).map_err(|_| Error::TooLarge(text.to_owned()))
}

/// Prints thousandths as the shortest decimal: `2`, `0.5`, `0.333`.
#[must_use]
pub fn format_millis(millis: u64) -> String {
    let (whole, frac) = (millis / GPU_MILLIS, millis % GPU_MILLIS);
    if frac == 0 {
        return whole.to_string();
    }
    format!("{whole}.{frac:03}").trim_end_matches('0').to_owned()
}

/// Prints bytes in the largest binary unit that keeps it whole, else with one decimal: `16GiB`.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scale = 0;
    while scale + 1 < UNITS.len() && bytes >> (10 * (scale + 1)) > 0 {
        scale += 1;
    }
    let unit = 1_u64 << (10 * scale);
    let (whole, tenths) = (bytes / unit, (u128::from(bytes % unit) * 10) / u128::from(unit));
    if tenths == 0 {
        format!("{whole}{}", UNITS[scale])
    } else {
        format!("{whole}.{tenths}{}", UNITS[scale])
    }
}

/// An amount of GPUs in thousandths with its noun: `0.5 GPU`, `1 GPU`, `2 GPUs`, `unlimited GPUs`.
#[must_use]
pub fn gpus(millis: u64) -> String {
    let plural = if millis > GPU_MILLIS || millis == 0 { "s" } else { "" };
    match millis {
        u64::MAX => format!("unlimited GPU{plural}"),
        _ => format!("{} GPU{plural}", format_millis(millis)),
    }
}

/// A count with its noun: `1 node`, `2 nodes`.
#[must_use]
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let plural = match count {
        1 => "",
        _ if ["ch", "sh", "s"].iter().any(|end| noun.ends_with(end)) => "es",
        _ => "s",
    };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_follows_its_count() {
        let all = [(0, "node"), (1, "node"), (2, "node"), (1, "batch"), (2, "batch"), (2, "class")];
        let all = all.map(|(count, noun)| counted(count, noun));
        assert_eq!(all, ["0 nodes", "1 node", "2 nodes", "1 batch", "2 batches", "2 classes"]);
    }

    #[test]
    fn gpu_counts_are_exact() {
        for (text, millis) in [("0.5", 500), ("1", 1000), ("2.0", 2000), (".25", 250), ("0", 0)] {
            assert_eq!(parse_gpu_millis(text), Ok(millis), "{text}");
        }
    }

    #[test]
    fn wrong_gpu_counts_are_refused() {
        use Error::*;
        for (text, error) in [
            ("-1", Negative("-1".into())),
            ("1.5", MixedGpu("1.5".into())),
            ("nan", NotANumber("nan".into())),
            ("-nan", NotANumber("-nan".into())),
            ("inf", NotANumber("inf".into())),
            ("1e3", NotANumber("1e3".into())),
            ("", NotANumber(String::new())),
            (".", NotANumber(".".into())),
            ("0.0001", TooFine("0.0001".into())),
            ("99999999999999999999", TooLarge("99999999999999999999".into())),
        ] {
            assert_eq!(parse_gpu_millis(text), Err(error), "{text}");
        }
    }

    #[test]
    fn sizes_follow_their_units() {
        for (text, bytes) in [
            ("16GiB", 16 << 30),
            ("8G", 8_000_000_000),
            ("1.5Ki", 1536),
            ("100MB", 100_000_000),
            ("7", 7),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "GiB", "-1G", "1X", "1.2.3G", "999999999P"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_print_short() {
        assert_eq!(format_millis(500), "0.5");
        assert_eq!(format_millis(2000), "2");
        assert_eq!(format_bytes(16 << 30), "16GiB");
        assert_eq!(format_bytes(1536), "1.5KiB");
    }
}
