//! The settings file (TOML). Owns: that its keys are names of settings, and that every error has a
//! line.

use std::fs;
use std::path::Path;

use cli_kit::suggest;
use toml::de::{DeTable, DeValue};

use super::{ALL, Error, Layer, Setting, SettingText};

/// Reads the settings file.
pub(super) fn read(path: &Path) -> Result<Layer, Error> {
    let text =
        fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let line = |offset: usize| {
        let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    };
    let at = |offset: usize, fault: String| Error::File {
        path: path.to_owned(),
        line: line(offset),
        fault,
    };
    let table = DeTable::parse(&text).map_err(|error| {
        at(error.span().map_or(0, |span| span.start), error.message().to_owned())
    })?;
    let mut layer = Layer::new();
    for (key, value) in table.get_ref() {
        let name = key.get_ref().as_ref();
        let setting = named(name).ok_or_else(|| at(key.span().start, unknown_key(name)))?;
        let text = match value.get_ref() {
            DeValue::String(text) if !setting.is_switch() => text.to_string(),
            DeValue::Boolean(yes) if setting.is_switch() => yes.to_string(),
            _ => {
                let kind = if setting.is_switch() { "true or false" } else { "\"text\"" };
                return Err(at(value.span().start, format!("`{name}` takes {kind}")));
            }
        };
        let origin = format!("{name} in {}:{}", path.display(), line(key.span().start));
        layer.insert(setting.key, SettingText { text, origin });
    }
    Ok(layer)
}

fn keys() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter_map(Setting::file_key)
}

fn named(name: &str) -> Option<&'static Setting> {
    ALL.iter().find(|setting| setting.file_key() == Some(name))
}

fn unknown_key(name: &str) -> String {
    let mut known: Vec<_> = keys().collect();
    known.sort_unstable();
    let known = format!("known are {}", known.join(", "));
    let hint = suggest::hint_or(name, keys(), &known);
    format!("unknown key `{}`{hint}", units::shown(name))
}
