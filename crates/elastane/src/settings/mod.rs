//! The settings of the server: flag > environment > file > default. Owns: what a setting is, where
//! its value may come from, and what is said about a wrong origin. Which settings there are is in
//! [`list`]; does not know what a value means.

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

/// What begins the name of a variable.
const VARIABLE_PREFIX: &str = "ELASTANE_";
/// The origin of a value that was not given.
const DEFAULT: &str = "default";

/// What is known about a setting beside its type.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its name in the file.
    pub(crate) key: &'static str,
    /// Its name on the command line, without the hyphens before it.
    pub(crate) flag: &'static str,
    /// What stands for a value in texts; none for one that is true or false.
    pub(crate) value: Option<&'static str>,
    /// The value if none is given; empty if there is none.
    pub(crate) default: &'static str,
    /// What happens if none is given and there is no default.
    pub(crate) unset: &'static str,
    /// The line in the help.
    pub(crate) help: &'static str,
    /// What the documentation says of it, in Markdown.
    pub(crate) meaning: &'static str,
    /// The section of the help.
    pub(crate) heading: Option<&'static str>,
    /// Where its value may stand.
    pub(crate) origins: Origins,
    /// A setting that is not given together with it. An origin that says anything about one of
    /// both decides about both.
    pub(crate) excludes: Option<&'static str>,
    /// True if it names a file with secrets, which no workload may read.
    pub(crate) is_secret_file: bool,
    /// The value for people, if the text has parts that stay private.
    pub(crate) shown: Option<fn(&str) -> String>,
}

/// Where the value of a setting may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origins {
    /// In a flag, a variable or the file.
    All,
    /// Not in the file.
    FlagAndVariable,
    /// In a flag: it is for one start.
    Flag,
}

impl Setting {
    /// A text without a default, which may stand anywhere.
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

    /// Its name in the environment.
    pub(crate) fn variable(&self) -> Option<String> {
        let variable = format!("{VARIABLE_PREFIX}{}", self.key.to_ascii_uppercase());
        (self.origins != Origins::Flag).then_some(variable)
    }

    /// Its name in the file.
    pub(crate) fn file_key(&self) -> Option<&'static str> {
        (self.origins == Origins::All).then_some(self.key)
    }

    /// True if it is true or false.
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

/// The help of the setting of this name.
pub(crate) fn help_of(key: &str) -> String {
    setting(key).map(flags::help).unwrap_or_default()
}

/// A value as text, and where it comes from.
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

/// What was given for a setting, to name its origin in an error.
pub(crate) type Find<'a> = &'a dyn Fn(&str) -> Option<&'a SettingText>;

/// A fault of what was given for a setting.
pub(crate) fn fault(find: Find<'_>, key: &str, fault: impl ToString) -> Error {
    let usual = SettingText { text: String::new(), origin: key.to_owned() };
    find(key).unwrap_or(&usual).fault(fault)
}

/// Why the settings cannot be used.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// The file cannot be read.
    #[error("failed to read {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is wrong.
    #[error("{}:{line}: {fault}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Where in it.
        line: usize,
        /// What is wrong and what is allowed.
        fault: String,
    },
    /// A value means nothing.
    #[error("{origin}: {fault}")]
    Value {
        /// Where the value comes from.
        origin: String,
        /// What is wrong and what is allowed.
        fault: String,
    },
    /// There is no place for the state.
    #[error("HOME is not set; say where to keep the state with --state-dir DIR")]
    NoHome,
}

/// Values of one origin, by key.
pub(crate) type Layer = BTreeMap<&'static str, SettingText>;

/// Everything that was given.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The origin that wins comes first.
    layers: [Layer; 4],
}

impl Sources {
    /// Collects what flags, environment and file say. Nothing is read as a value yet.
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

    /// What was given for a setting, by the highest origin that says anything about it.
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

    /// Reads what was given for a setting, else its default.
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
