//! A submission that is not sent: the words of `runai submit`, read into the request they stand
//! for. Does not know what a server would make of it.

use std::ffi::OsString;

use api_types::{CreationRequest, WorkloadType};
use cli_kit::exit::Error;

use super::{args, lower, request};
use crate::intent::{Inherits, Intent, Kind, Name, Submit};

/// What is requested.
#[derive(Debug)]
pub struct Submission {
    /// Its project, if one was said.
    pub project: Option<String>,
    /// Its name, if one was said.
    pub name: Option<String>,
    submit: Submit,
}

/// Reads the words of a submission; `runai` and `submit` may be left out.
///
/// # Errors
/// They are not those of a submission.
pub fn submission(words: &str) -> Result<Submission, Error> {
    let wrong = |text: String| Error::Usage(format!("--submit `{words}`: {text}"));
    let mut typed = shell_words::split(words).map_err(|error| wrong(error.to_string()))?;
    if typed.first().is_none_or(|word| word != "runai") {
        typed.insert(0, "runai".to_owned());
    }
    if typed.get(1).is_none_or(|word| !begins_a_submission(word)) {
        typed.insert(1, "submit".to_owned());
    }
    let (cli, ..) =
        args::parse(typed.iter().map(OsString::from)).map_err(|error| wrong(error.to_string()))?;
    let Intent::Submit(submit) = lower::intent(cli.command, &typed).map_err(&wrong)? else {
        return Err(wrong("only a submission can be asked about".to_owned()));
    };
    if submit.strict {
        return Err(wrong("--strict: nothing is submitted; leave it out".to_owned()));
    }
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

/// True if it is a first word that can lead to one; a name of a workload is none.
fn begins_a_submission(word: &str) -> bool {
    let tree = args::tree();
    let submits = |word: &str| word.starts_with("submit");
    let below = |command: &clap::Command| {
        submits(command.get_name()) || command.get_subcommands().any(|one| submits(one.get_name()))
    };
    tree.find_subcommand(word).is_some_and(below)
}

impl Submission {
    /// The request of its creation, and at which route it would be sent.
    ///
    /// # Errors
    /// It names templates or assets, which only a server knows.
    pub fn request(&self, name: &str) -> Result<(WorkloadType, CreationRequest), Error> {
        if self.submit.inherits != Inherits::default() {
            let text = "templates and assets are the server's; leave them out";
            return Err(Error::Usage(text.to_owned()));
        }
        let workload_type = match self.submit.kind {
            Kind::Training(_) => WorkloadType::Training,
            Kind::Workspace => WorkloadType::Workspace,
            Kind::Distributed(_) => WorkloadType::Distributed,
            Kind::Inference(_) => WorkloadType::Inference,
        };
        // The project's number does not matter without a server.
        Ok((workload_type, request::creation(&self.submit, name, "1".to_owned())))
    }
}
