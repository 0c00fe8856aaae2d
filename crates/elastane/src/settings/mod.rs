//! The settings of the server: flag > environment > file > default. Owns: the definition of a
//! setting, its possible origins, and the errors about a wrong origin. The list of settings is in
//! [`list`]; does not know the meaning of a value.

mod file;
mod flags;
mod list;
pub(crate) mod read;
mod reference;
pub(crate) mod variables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cli_kit::settings::Env;
use thiserror::Error;

pub(crate) use flags::{Flags, KeyFile, Server, Storage};
pub(crate) use list::{ALL, LOGIN_PROVIDER, Settings};
pub(crate) use reference::Document;

/// Prefix of the names of variables.
const VARIABLE_PREFIX: &str = "ELASTANE_";
/// Origin of a default value.
const DEFAULT: &str = "default";

/// Description of a setting, without its type.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its name in the file.
    pub(crate) key: &'static str,
    /// Its name on the command line, without the hyphens before it.
    pub(crate) flag: &'static str,
    /// Placeholder of a value in texts; `None` for a switch.
    pub(crate) value: Option<&'static str>,
    /// Default value; empty if there is none.
    pub(crate) default: &'static str,
    /// Behaviour without a value, if there is no default.
    pub(crate) unset: &'static str,
    /// Line in the help.
    pub(crate) help: &'static str,
    /// Description for the documentation, in Markdown.
    pub(crate) meaning: &'static str,
    /// Section of the help.
    pub(crate) heading: Option<&'static str>,
    /// Possible origins of its value.
    pub(crate) origins: Origins,
    /// Setting that cannot be combined with it. The highest origin that gives one of both decides
    /// about both.
    pub(crate) excludes: Option<&'static str>,
    /// True if it names a file with secrets, which no workload may read.
    pub(crate) is_secret_file: bool,
    /// The value for display, if its text has private parts.
    pub(crate) shown: Option<fn(&str) -> String>,
}

/// Possible origins of the value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origins {
    /// In a flag, a variable or the file.
    All,
    /// In a flag or a variable.
    FlagAndVariable,
    /// In a flag: the value is for one start.
    Flag,
}

impl Setting {
    /// A text setting without a default, from any origin.
    const TEXT: Self = Self {
        key: "",
        flag: "",
        value: None,
        default: "",
        unset: "",
        help: "",
        meaning: "",
        heading: None,
        origins: Origins::All,
        excludes: None,
        is_secret_file: false,
        shown: None,
    };

    /// Name of its variable; `None` if it has none.
    pub(crate) fn variable(&self) -> Option<String> {
        let variable = format!("{VARIABLE_PREFIX}{}", self.key.to_ascii_uppercase());
        (self.origins != Origins::Flag).then_some(variable)
    }

    /// Key in the file; `None` if it has none.
    pub(crate) fn file_key(&self) -> Option<&'static str> {
        (self.origins == Origins::All).then_some(self.key)
    }

    /// True for a switch.
    pub(crate) const fn is_switch(&self) -> bool {
        self.value.is_none()
    }

    /// The help as one line.
    pub(crate) fn help(&self) -> &'static str {
        self.help.trim_start()
    }
}

/// The setting of this name.
pub(crate) fn setting(key: &str) -> Option<&'static Setting> {
    ALL.iter().find(|setting| setting.key == key)
}

/// Help text of the setting of this name.
pub(crate) fn help_of(key: &str) -> String {
    setting(key).map(flags::help).unwrap_or_default()
}

/// Text of a value, and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingText {
    pub(crate) text: String,
    pub(crate) origin: String,
}

impl SettingText {
    pub(crate) fn fault(&self, fault: impl ToString) -> Error {
        Error::Value { origin: self.origin.clone(), fault: fault.to_string() }
    }
}

/// Looks up the text of a setting by key, to name its origin in an error.
pub(crate) type Find<'a> = &'a dyn Fn(&str) -> Option<&'a SettingText>;

/// An error about the text of a setting.
pub(crate) fn fault(find: Find<'_>, key: &str, fault: impl ToString) -> Error {
    let usual = SettingText { text: String::new(), origin: key.to_owned() };
    find(key).unwrap_or(&usual).fault(fault)
}

/// Errors of the settings.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// The file cannot be read.
    #[error("failed to read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file has an error.
    #[error("{}:{line}: {fault}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Line of the error.
        line: usize,
        /// Text of the error, with the allowed values.
        fault: String,
    },
    /// A value is invalid.
    #[error("{origin}: {fault}")]
    Value {
        /// Origin of the value.
        origin: String,
        /// Text of the error, with the allowed values.
        fault: String,
    },
    /// There is no default state directory.
    #[error("HOME is not set; say where to keep the state with --state-dir DIR")]
    NoHome,
}

/// Values of one origin, by key.
pub(crate) type Layer = BTreeMap<&'static str, SettingText>;

/// The values of all origins.
#[derive(Debug)]
pub(crate) struct Sources {
    /// Layers by origin, the highest first.
    layers: [Layer; 4],
}

impl Sources {
    /// Collects the values of flags, environment and file, as texts.
    pub(crate) fn collect(
        state_dir: Option<&Path>,
        mut flags: Layer,
        env: Env<'_>,
    ) -> Result<Self, Error> {
        let value = |key, text: &Path, origin: &str| {
            (key, SettingText { text: text.display().to_string(), origin: origin.to_owned() })
        };
        flags.extend(state_dir.map(|dir| value("state_dir", dir, "--state-dir")));
        let variables: Layer = ALL
            .iter()
            .filter_map(|setting| {
                let origin = setting.variable()?;
                let text = env(&origin).filter(|text| !text.is_empty())?;
                Some((setting.key, SettingText { text, origin }))
            })
            .collect();
        let path = flags.get("config").or_else(|| variables.get("config"));
        let file = path.map(|given| file::read(Path::new(&given.text))).transpose()?;
        let usual = client::state_dir(env);
        let usual = usual.map(|dir| value("state_dir", &dir, DEFAULT)).into_iter().collect();
        Ok(Self { layers: [flags, variables, file.unwrap_or_default(), usual] })
    }

    /// The text of a setting from the highest origin that gives it; `None` if a higher one gives
    /// the setting that it excludes.
    pub(crate) fn find(&self, key: &str) -> Option<&SettingText> {
        let other = setting(key).and_then(|setting| setting.excludes);
        for layer in &self.layers {
            if let Some(given) = layer.get(key) {
                return Some(given);
            }
            if other.is_some_and(|other| layer.contains_key(other)) {
                return None;
            }
        }
        None
    }

    /// Reads the text of a setting, else its default.
    fn read<T, S: SettingField<T>>(
        &self,
        setting: &Setting,
        read: impl Fn(&SettingText) -> Result<T, Error>,
    ) -> Result<S, Error> {
        let usual = || SettingText {
            text: setting.default.to_owned(),
            origin: format!("--{}", setting.flag),
        };
        S::fill(self.find(setting.key), usual, read)
    }
}

/// A field of [`Settings`]: a value, or one that may be missing.
trait SettingField<T>: Sized {
    fn fill(
        given: Option<&SettingText>,
        usual: impl Fn() -> SettingText,
        read: impl Fn(&SettingText) -> Result<T, Error>,
    ) -> Result<Self, Error>;
}

impl<T> SettingField<T> for T {
    fn fill(
        given: Option<&SettingText>,
        usual: impl Fn() -> SettingText,
        read: impl Fn(&SettingText) -> Result<T, Error>,
    ) -> Result<Self, Error> {
        given.map_or_else(|| read(&usual()), &read)
    }
}

impl<T> SettingField<T> for Option<T> {
    fn fill(
        given: Option<&SettingText>,
        _: impl Fn() -> SettingText,
        read: impl Fn(&SettingText) -> Result<T, Error>,
    ) -> Result<Self, Error> {
        given.map(read).transpose()
    }
}
