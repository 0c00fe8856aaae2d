//! Values that are more than a word: pairs, sizes, times, and lists of `key=value`. Owns their
//! form; does not know which flag they belong to.

/// Splits `NAME=VALUE` or `KEY=VALUE`.
///
/// # Errors
/// No `=`, or nothing before it.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write a name, `=` and a value".to_owned()),
    }
}

/// A name with its value, or without one where it is to be removed.
pub(crate) type Pair = (String, Option<String>);

/// A label, and the values that it may have.
pub(crate) type LabelValues = (String, Vec<String>);

/// Reads `LABEL=VALUE,VALUE`.
///
/// # Errors
/// There is no label, or a value is empty.
pub(crate) fn label_values(text: &str) -> Result<LabelValues, String> {
    let (label, values) = text.split_once('=').unwrap_or_default();
    let values: Vec<String> = values.split(',').map(str::to_owned).collect();
    if label.is_empty() || values.iter().any(String::is_empty) {
        return Err("write LABEL=VALUE, or LABEL=VALUE,VALUE for one of several".to_owned());
    }
    values.iter().try_for_each(|value| units::check_label(label, value))?;
    Ok((label.to_owned(), values))
}

/// Reads `KEY=VALUE`, or `KEY-` as kubectl does.
///
/// # Errors
/// It is neither.
pub(crate) fn pair_or_name(text: &str) -> Result<Pair, String> {
    match (text.split_once('='), text.strip_suffix('-')) {
        (Some((name, value)), _) if !name.is_empty() => Ok((name.into(), Some(value.into()))),
        (None, Some(name)) if !name.is_empty() => Ok((name.into(), None)),
        _ => Err("write KEY=VALUE to set it, or KEY- to remove it".to_owned()),
    }
}

/// Reads a list of names with commas or blanks between them.
///
/// # Errors
/// There is no name in it.
pub(crate) fn names(text: &str) -> Result<Vec<String>, String> {
    let all = text.split([',', ' ']).filter(|name| !name.is_empty());
    let all: Vec<String> = all.map(str::to_owned).collect();
    if all.is_empty() { Err("write NAME,NAME, the best first".to_owned()) } else { Ok(all) }
}

/// Reads a CPU count such as `0.5` or `500m`, in thousandths of a core.
///
/// # Errors
/// Says what is allowed.
pub(crate) fn cpu(text: &str) -> Result<u64, String> {
    units::parse_cpu_millis(text).map_err(|error| error.to_string())
}

/// Checks a size such as `1G`, and keeps it as it was typed.
///
/// # Errors
/// Says what is allowed.
pub(crate) fn size(text: &str) -> Result<String, String> {
    units::parse_bytes(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Reads a share of a device, in thousandths.
///
/// # Errors
/// Says what is allowed.
pub(crate) fn portion(text: &str) -> Result<u64, String> {
    match units::parse_gpu_millis(text) {
        Ok(millis @ 1..=1000) => Ok(millis),
        Ok(_) | Err(units::Error::MixedGpu(_)) => {
            Err("a share is above 0 and at most 1; ask for whole GPUs by their number".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a count that may be 0.
///
/// # Errors
/// Says what is allowed.
pub(crate) fn count(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("write a whole number from 0 to {}", u32::MAX))
}

/// Reads a count that may not be 0.
///
/// # Errors
/// Says what is allowed.
pub(crate) fn positive(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| format!("write a whole number from 1 to {}", u32::MAX))
}

/// Reads a duration such as `30s` or `1h30m`, in seconds; a number alone counts them.
///
/// # Errors
/// Says what is allowed.
pub fn seconds(text: &str) -> Result<u64, String> {
    let sum = || {
        let (mut rest, mut sum) = (text, 0_u64);
        while !rest.is_empty() {
            let (number, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
            let end = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
            let (unit, behind) = behind.split_at(end);
            let scale = match unit {
                "s" => 1,
                "m" => 60,
                "h" => 3600,
                "d" => 86_400,
                _ => return None,
            };
            sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(scale)?)?;
            rest = behind;
        }
        Some(sum).filter(|_| !text.is_empty())
    };
    let seconds = text.parse().ok().or_else(sum);
    seconds.ok_or_else(|| "write whole seconds, minutes, hours or days: 30s, 2m, 1h30m".to_owned())
}

/// `key=value,key=value`; a key alone is `true`.
pub(crate) struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    /// Reads them.
    ///
    /// # Errors
    /// A key that is not allowed, or is there twice.
    pub(crate) fn read(text: &'a str, allowed: &[&str]) -> Result<Self, String> {
        let mut fields: Vec<(&str, &str)> = Vec::new();
        for field in text.split(',').filter(|field| !field.is_empty()) {
            let (key, value) = field.split_once('=').unwrap_or((field, "true"));
            if !allowed.contains(&key) {
                return Err(format!("`{key}` is not known here; write {}=…", allowed.join("=…,")));
            }
            if fields.iter().any(|(other, _)| *other == key) {
                return Err(format!("`{key}` is there twice"));
            }
            fields.push((key, value));
        }
        Ok(Self(fields))
    }

    /// The value of a key, if there is one.
    #[must_use]
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        let found = self.0.iter().find(|(own, _)| *own == key);
        found.map(|(_, value)| (*value).to_owned()).filter(|value| !value.is_empty())
    }

    /// The boolean value of a key; `None` if the key is not given.
    ///
    /// # Errors
    /// The value is neither true nor false.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        match self.get(key).as_deref() {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(format!("{key} `{other}`; allowed are true and false")),
        }
    }

    /// The value of a key that must be there.
    ///
    /// # Errors
    /// The key is missing.
    pub(crate) fn needed(&self, key: &str) -> Result<String, String> {
        self.get(key).ok_or_else(|| format!("`{key}=…` is missing"))
    }
}

/// Reads the number of a port.
///
/// # Errors
/// The text is not a port number.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| format!("`{text}` is not a port; write a whole number from 1 to 65535"))
}

/// `8080:80`, or `80` for the same port on both sides; local port 0 lets the system choose.
pub(crate) fn port_pair(text: &str) -> Result<(u16, u16), String> {
    let (local, remote) = text.split_once(':').unwrap_or((text, text));
    let wrong = || "write LOCAL:REMOTE, two port numbers such as 8080:80".to_owned();
    let number = |text: &str| text.parse::<u16>().map_err(|_| wrong());
    match (number(local)?, number(remote)?) {
        (_, 0) => Err(wrong()),
        pair => Ok(pair),
    }
}
