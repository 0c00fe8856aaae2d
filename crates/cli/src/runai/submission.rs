//! A submission that is not sent: the words of `runai submit`, and what the server would make of
//! them. Owns nothing but the way there.

use std::ffi::OsString;

use control::view::WorkloadKind;

use super::intent::{Inherits, Intent, Kind, Name, Submit};
use super::{args, meaning, request};
use crate::exit::Error;

/// What was asked for.
#[derive(Debug)]
pub(crate) struct Submission {
    /// Its project, if one was said.
    pub(crate) project: Option<String>,
    /// Its name, if one was said.
    pub(crate) name: Option<String>,
    submit: Submit,
}

/// Reads the words of a submission; `runai` and `submit` may be left out.
///
/// # Errors
/// They are not those of a submission.
pub(crate) fn submission(words: &str) -> Result<Submission, Error> {
    let wrong = |text: String| Error::Usage(format!("--submit `{words}`: {text}"));
    let mut typed = shell_words::split(words).map_err(|error| wrong(error.to_string()))?;
    if typed.first().is_none_or(|word| word != "runai") {
        typed.insert(0, "runai".to_owned());
    }
    if typed.get(1).is_none_or(|word| !begins_a_submission(word)) {
        typed.insert(1, "submit".to_owned());
    }
    let (cli, _) =
        args::parse(typed.iter().map(OsString::from)).map_err(|error| wrong(error.to_string()))?;
    let Intent::Submit(submit) = meaning::intent(cli.command, &typed).map_err(&wrong)? else {
        return Err(wrong("only a submission can be asked about".to_owned()));
    };
    let name = match &submit.name {
        Name::Given(name) => Some(name.clone()),
        Name::Numbered(_) => None,
    };
    let mut submit = *submit;
    // Where it would run does not depend on what it runs.
    submit.spec.image.get_or_insert_with(|| "any".to_owned());
    submit.spec.environment.clear();
    submit.spec.secret_files.clear();
    submit.spec.around.storage.config_map_volume = None;
    Ok(Submission { project: cli.global.project, name, submit })
}

/// Whether it is a first word that can lead to one; a name of a workload is none.
fn begins_a_submission(word: &str) -> bool {
    let tree = args::tree();
    let submits = |word: &str| word.starts_with("submit");
    let below = |command: &clap::Command| {
        submits(command.get_name()) || command.get_subcommands().any(|one| submits(one.get_name()))
    };
    tree.find_subcommand(word).is_some_and(below)
}

impl Submission {
    /// What the server would make of it.
    ///
    /// # Errors
    /// A value that the server would refuse.
    pub(crate) fn spec(&self, name: &str) -> Result<control::WorkloadSpec, Error> {
        // The number does not matter: there is no server.
        if self.submit.inherits != Inherits::default() {
            let text = "templates and assets are the server's; leave them out";
            return Err(Error::Usage(text.to_owned()));
        }
        let request = request::creation(&self.submit, name, "1".to_owned());
        let kind = match self.submit.kind {
            Kind::Training(_) => WorkloadKind::Training,
            Kind::Workspace => WorkloadKind::Workspace,
            Kind::Distributed(_) => WorkloadKind::Distributed,
            Kind::Inference(_) => WorkloadKind::Inference,
        };
        api::workload_asked_for(kind, request).map_err(Error::Usage)
    }
}
