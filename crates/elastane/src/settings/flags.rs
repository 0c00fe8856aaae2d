//! Flags of the settings, generated from the list, so that none is defined twice. Owns: the
//! settings of each command, and the lines of their help.

use std::fmt::Debug;
use std::marker::PhantomData;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::{ALL, Layer, Setting, SettingText};

/// Settings of a command.
pub(crate) trait Scope: Debug {
    /// True if the command has a flag for this setting.
    fn takes(setting: &Setting) -> bool;
}

/// All settings: the server.
#[derive(Debug)]
pub(crate) struct Server;

impl Scope for Server {
    fn takes(setting: &Setting) -> bool {
        // This is a global flag.
        setting.key != "state_dir"
    }
}

/// Location of the state, in addition to its directory.
#[derive(Debug)]
pub(crate) struct Storage;

impl Scope for Storage {
    fn takes(setting: &Setting) -> bool {
        matches!(setting.key, "config" | "database" | "database_password_file")
    }
}

/// Location of the state and of the keys of credentials.
#[derive(Debug)]
pub(crate) struct KeyFile;

impl Scope for KeyFile {
    fn takes(setting: &Setting) -> bool {
        setting.key == "credentials_key_file" || Storage::takes(setting)
    }
}

/// The settings that were given as flags.
#[derive(Debug)]
pub(crate) struct Flags<S> {
    pub(crate) typed: Layer,
    scope: PhantomData<S>,
}

impl<S: Scope> Args for Flags<S> {
    fn augment_args(command: Command) -> Command {
        let settings = ALL.iter().filter(|setting| S::takes(setting));
        settings.fold(command, |command, setting| command.arg(flag(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Scope> FromArgMatches for Flags<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = |setting: &&Setting| {
            matches.value_source(setting.key) == Some(ValueSource::CommandLine)
        };
        let given = |setting: &'static Setting| {
            let text = match setting.is_switch() {
                true => matches.get_flag(setting.key).to_string(),
                false => matches.get_one::<String>(setting.key).cloned().unwrap_or_default(),
            };
            (setting.key, SettingText { text, origin: format!("--{}", setting.flag) })
        };
        let settings = ALL.iter().filter(|setting| S::takes(setting));
        Ok(Self { typed: settings.filter(typed).map(given).collect(), scope: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.typed.extend(Self::from_arg_matches(matches)?.typed);
        Ok(())
    }
}

fn flag(setting: &'static Setting) -> Arg {
    let flag = Arg::new(setting.key).long(setting.flag).help(help(setting));
    let flag = flag.help_heading(setting.heading);
    let flag = setting.excludes.into_iter().fold(flag, Arg::conflicts_with);
    match setting.value {
        Some(name) => flag.value_name(name),
        None => flag.action(ArgAction::SetTrue),
    }
}

/// Help text of a setting, with its default.
pub(super) fn help(setting: &Setting) -> String {
    let default = match (setting.default, setting.unset) {
        ("", usual) => usual.replace('`', ""),
        (default, _) => default.to_owned(),
    };
    match default.as_str() {
        _ if setting.is_switch() => setting.help().to_owned(),
        "" => setting.help().to_owned(),
        default => format!("{} [default: {default}]", setting.help()),
    }
}
