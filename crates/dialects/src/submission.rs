//! A submission that is not sent: the words of `runai submit` as a request. Does not know how a
//! server would treat it.

use std::ffi::OsString;

use api_types::{CreationRequest, WorkloadType};
use cli_kit::exit::Error;

use super::{args, lower, request};
use crate::intent::{Inherits, Intent, Kind, Name, Submit};

/// A submission without a server.
#[derive(Debug)]
pub struct Submission {
    /// Name of its project; `None` if the words do not give it.
    pub project: Option<String>,
    /// Its name; `None` if the words do not give it.
    pub name: Option<String>,
    submit: Submit,
}

/// Reads the words of a submission; `runai` and `submit` may be left out.
///
/// # Errors
/// The words are not a submission.
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
    // The placement does not depend on these values.
    submit.spec.image.get_or_insert_with(|| "any".to_owned());
    submit.spec.environment.clear();
    submit.spec.secret_files.clear();
    submit.spec.around.storage.config_map_volume = None;
    Ok(Submission { project: cli.global.project, name, submit })
}

/// True if this word can be the first of a submission; the name of a workload cannot.
fn begins_a_submission(word: &str) -> bool {
    let tree = args::tree();
    let submits = |word: &str| word.starts_with("submit");
    let below = |command: &clap::Command| {
        submits(command.get_name()) || command.get_subcommands().any(|one| submits(one.get_name()))
    };
    tree.find_subcommand(word).is_some_and(below)
}

impl Submission {
    /// The body of its creation request, and the workload type that selects the route.
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
