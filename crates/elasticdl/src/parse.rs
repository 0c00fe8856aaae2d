//! Parses a command line into a command and the values of its flags. Owns: the rules of the
//! published parser (flags in any order, unambiguous abbreviations, the last of several counts, a
//! switch without a value is inverted), and that no flag is ignored without a note. Does not know
//! about: combinations of values.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, FromArgMatches as _, Subcommand as _};
use cli_kit::exit;

use crate::commands::{Common, Own};
use crate::flag::{Flag, Means, Takes};
use crate::flags::{
    BUILD, CLEAN, COMMON, EVALUATE, INIT, OF_TRAINING_FOR_EVALUATE, OF_TRAINING_FOR_PREDICT,
    PREDICT, SEED, TRAIN, find,
};

/// Parsed command.
#[derive(Debug)]
pub enum Invocation {
    /// Submit a job.
    Job(Form, Values),
    /// Run a job on this machine, without a server.
    Local(Form, Values),
    /// Write a file from which an image of a model zoo is built.
    ZooInit(Values),
    /// Build the image of the model zoo in this folder.
    ZooBuild(String, Values),
    /// Push the image of this name to a registry.
    ZooPush(String),
    /// Remove images of models, of which there are none.
    Clean,
    /// A command that was not published.
    Own(Own),
}

/// Form of a published command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The first, without commands.
    Seed,
    /// `train`.
    Train,
    /// `evaluate`.
    Evaluate,
    /// `predict`.
    Predict,
}

impl Form {
    /// Its command; `None` for the first form.
    #[must_use]
    pub const fn command(self) -> Option<&'static str> {
        match self {
            Self::Seed => None,
            Self::Train => Some("train"),
            Self::Evaluate => Some("evaluate"),
            Self::Predict => Some("predict"),
        }
    }

    fn of_command(name: &str) -> Option<Self> {
        let all = [Self::Train, Self::Evaluate, Self::Predict];
        all.into_iter().find(|form| form.command() == Some(name))
    }

    /// Its flags.
    #[must_use]
    pub fn tables(self) -> [&'static [Flag]; 3] {
        match self {
            Self::Seed => [SEED, &[], &[]],
            Self::Train => [COMMON, TRAIN, &[]],
            Self::Evaluate => [COMMON, EVALUATE, &OF_TRAINING_FOR_EVALUATE],
            Self::Predict => [COMMON, PREDICT, &OF_TRAINING_FOR_PREDICT],
        }
    }
}

/// A valid command line.
#[derive(Debug)]
pub struct Parsed {
    /// Command.
    pub asked: Invocation,
    /// Project and verbosity.
    pub common: Common,
    /// Notes about flags without effect.
    pub notes: Vec<String>,
}

/// The values of flags, each in its validated form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values {
    all: BTreeMap<&'static str, String>,
    given: BTreeSet<&'static str>,
    /// The flags that were read.
    #[cfg(test)]
    read: std::cell::RefCell<BTreeSet<String>>,
}

impl Values {
    /// The values of a form, from words of the form `--FLAG=VALUE`.
    ///
    /// # Errors
    /// A word has another form, or its flag is not one of the form.
    pub fn of_pairs(form: Form, words: &[String]) -> Result<Self, String> {
        let mut values = Self::default();
        for word in words {
            let pair = word.strip_prefix("--").and_then(|word| word.split_once('='));
            let (name, value) = pair.ok_or_else(|| format!("`{word}` is not --FLAG=VALUE"))?;
            let flag = find(&form.tables(), name)
                .ok_or_else(|| format!("`--{name}` is no flag of this form"))?;
            values.all.insert(flag.name, value.to_owned());
        }
        Ok(values)
    }

    /// The value of a flag; empty without a value.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        #[cfg(test)]
        self.read.borrow_mut().insert(name.to_owned());
        self.all.get(name).map_or("", String::as_str)
    }

    /// The value of a flag; `None` if it is empty.
    #[must_use]
    pub fn some(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// The value of a flag that takes a count; 0 if it is empty.
    #[must_use]
    pub fn count(&self, name: &str) -> u32 {
        self.text(name).parse().unwrap_or_default()
    }

    /// True if a switch is on.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// True if the flag was typed.
    #[must_use]
    pub fn is_given(&self, name: &str) -> bool {
        #[cfg(test)]
        self.read.borrow_mut().insert(name.to_owned());
        self.given.contains(name)
    }

    /// Flags whose values were read.
    #[cfg(test)]
    pub(crate) fn read(&self) -> BTreeSet<String> {
        self.read.borrow().clone()
    }

    /// All flags that have a value, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.all.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

/// Command tree of the final form and of the unpublished commands.
#[must_use]
pub fn tree() -> Command {
    let job = |form: Form, about: &'static str| {
        let name = form.command().unwrap_or_default();
        with_flags(Command::new(name).about(about), &form.tables())
    };
    let zoo = Command::new("zoo")
        .about("Make images of model zoos")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(with_flags(
            Command::new("init").about("Write the Dockerfile of a model zoo"),
            &[INIT],
        ))
        .subcommand(with_flags(
            Command::new("build")
                .about("Make the image of a model zoo")
                .arg(Arg::new("path").value_name("PATH").required(true).help("Its folder")),
            &[BUILD],
        ))
        .subcommand(
            Command::new("push").about("Push an image of a model zoo; it is not done here").arg(
                Arg::new("image").value_name("IMAGE").required(true).help("Name of the image"),
            ),
        );
    let local = Command::new("local")
        .about("Run a job on this machine without a server: its master here, workers as processes")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(job(Form::Train, "Train a model"))
        .subcommand(job(Form::Evaluate, "Measure a trained model"))
        .subcommand(job(Form::Predict, "Apply a trained model"));
    let tree = Command::new("elasticdl")
        .override_usage(
            "elasticdl train|evaluate|predict FLAGS       a job\n       \
             elasticdl --job_name=NAME --model_file=FILE   a job in the first form; `elasticdl flat` \
             lists its flags\n       \
             elasticdl COMMAND [FLAGS]                     anything else",
        )
        .version(env!("CARGO_PKG_VERSION"))
        .infer_subcommands(false)
        .subcommand_required(true)
        .subcommand(job(Form::Train, "Train a model"))
        .subcommand(job(Form::Evaluate, "Measure a trained model"))
        .subcommand(job(Form::Predict, "Apply a trained model"))
        .subcommand(local)
        .subcommand(zoo)
        .subcommand(with_flags(
            Command::new("clean").about("Remove images of models; none are made here").hide(true),
            &[CLEAN],
        ));
    // Their documentation would replace a text that is set before.
    Common::augment_args(Own::augment_subcommands(tree)).about(
        "Elastic training jobs by the command lines of ElasticDL: a job goes on when it loses workers, \
         and takes new ones",
    )
}

/// Command tree for completion.
#[must_use]
pub fn completed() -> Command {
    // The program itself comes first, then `--` and the line.
    let words = cli_kit::complete::line();
    let first = words.iter().skip_while(|word| *word != "--").nth(2);
    if first.is_some_and(|first| is_of_first_form(first)) { flat() } else { tree() }
}

/// True for the first word of a line of the first form.
fn is_of_first_form(first: &str) -> bool {
    let of_program = ["--help", "-h", "--version", "-V"].contains(&first);
    first.starts_with("--") && !of_program
}

/// Command tree of the first form.
#[must_use]
pub fn flat() -> Command {
    let flat = Command::new("elasticdl")
        .override_usage("elasticdl --job_name=NAME --model_file=FILE [FLAGS]");
    Common::augment_args(with_flags(flat, &Form::Seed.tables()))
        .about("Train a model; the flags of the first form")
}

/// Parses a command line, the program's name included.
///
/// # Errors
/// A parse error, or a help page.
pub fn parse(argv: &[OsString]) -> Result<Parsed, clap::Error> {
    let first = argv.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    if is_of_first_form(first) {
        return taken(flat(), argv, |command, matches| job(Form::Seed, command, matches));
    }
    taken(tree(), argv, |command, matches| {
        let Some((name, below)) = matches.subcommand() else {
            return Err(command.error(ErrorKind::MissingSubcommand, "name a command"));
        };
        if let Some(form) = Form::of_command(name) {
            return job(form, command, below);
        }
        match (name, below.subcommand()) {
            ("local", Some((name, below))) => {
                let form = Form::of_command(name).unwrap_or(Form::Train);
                let (values, notes) = values(&form.tables(), command, below)?;
                Ok((Invocation::Local(form, values), notes))
            }
            ("clean", _) => {
                let (_, notes) = values(&[CLEAN], command, below)?;
                Ok((Invocation::Clean, notes))
            }
            ("zoo", Some(("init", below))) => {
                let (values, notes) = values(&[INIT], command, below)?;
                Ok((Invocation::ZooInit(values), notes))
            }
            ("zoo", Some(("build", below))) => {
                let (values, notes) = values(&[BUILD], command, below)?;
                Ok((Invocation::ZooBuild(word(below, "path"), values), notes))
            }
            ("zoo", Some((_, below))) => {
                Ok((Invocation::ZooPush(word(below, "image")), Vec::new()))
            }
            _ => Ok((Invocation::Own(Own::from_arg_matches(matches)?), Vec::new())),
        }
    })
}

fn word(matches: &ArgMatches, name: &str) -> String {
    matches.get_one::<String>(name).cloned().unwrap_or_default()
}

fn taken(
    mut command: Command,
    argv: &[OsString],
    asked: impl FnOnce(&mut Command, &ArgMatches) -> Result<(Invocation, Vec<String>), clap::Error>,
) -> Result<Parsed, clap::Error> {
    let matches = command.try_get_matches_from_mut(argv).map_err(exit::without_tip)?;
    let common = match matches.subcommand() {
        // Global flags are parsed for every command.
        Some((_, below)) => Common::from_arg_matches(below)?,
        None => Common::from_arg_matches(&matches)?,
    };
    let (asked, notes) = asked(&mut command, &matches)?;
    Ok(Parsed { asked, common, notes })
}

fn job(
    form: Form,
    command: &mut Command,
    matches: &ArgMatches,
) -> Result<(Invocation, Vec<String>), clap::Error> {
    let (values, notes) = values(&form.tables(), command, matches)?;
    Ok((Invocation::Job(form, values), notes))
}

/// The values of all flags of some tables, and notes on those without effect.
fn values(
    tables: &[&'static [Flag]],
    command: &mut Command,
    matches: &ArgMatches,
) -> Result<(Values, Vec<String>), clap::Error> {
    let (mut values, mut notes) = (Values::default(), Vec::new());
    for flag in tables.iter().flat_map(|table| table.iter()) {
        let Some(value) = matches.get_one::<String>(flag.name) else { continue };
        let typed = matches.value_source(flag.name) == Some(clap::parser::ValueSource::CommandLine);
        let differs = typed && flag.default != Some(value.as_str());
        match flag.means {
            Means::Published => {}
            Means::Nothing(why) if typed => notes.push(format!("--{}: {why}", flag.name)),
            Means::Refused(why) if differs => {
                let text = format!("--{} has no meaning here: {why}", flag.name);
                return Err(command.error(ErrorKind::ValueValidation, text));
            }
            Means::Nothing(_) | Means::Refused(_) => {}
        }
        if typed {
            values.given.insert(flag.name);
        }
        values.all.insert(flag.name, value.clone());
    }
    debug_assert!(values.all.keys().all(|name| find(tables, name).is_some()));
    Ok((values, notes))
}

fn with_flags(command: Command, tables: &[&'static [Flag]]) -> Command {
    let flags = tables.iter().flat_map(|table| table.iter());
    command.infer_long_args(true).args_override_self(true).args(flags.map(argument))
}

fn argument(flag: &'static Flag) -> Arg {
    let takes = flag.takes;
    let arg = Arg::new(flag.name)
        .long(flag.name)
        .value_name(takes.word())
        .required(flag.required)
        .help(help(flag))
        .hide(flag.is_hidden)
        .hide_default_value(flag.default.is_none_or(str::is_empty))
        .action(ArgAction::Set)
        .value_parser(move |text: &str| takes.check(text));
    let arg = match flag.default {
        Some(default) => arg.default_value(default),
        None => arg,
    };
    match takes {
        Takes::Switch | Takes::OnOff => {
            let turned = if flag.default == Some("true") { "false" } else { "true" };
            arg.num_args(0..=1).require_equals(true).default_missing_value(turned)
        }
        Takes::Integer => arg.allow_negative_numbers(true),
        _ => arg,
    }
}

fn help(flag: &Flag) -> String {
    match flag.means {
        Means::Published => flag.help.to_owned(),
        Means::Nothing(_) => format!("{} (means nothing here)", flag.help),
        Means::Refused(_) => format!("{} (refused here)", flag.help),
    }
}

#[cfg(test)]
mod tests;
