//! A submission that is not sent: the words of `runai submit`, and what the server would make of
//! them. Owns nothing but the way there.

use std::ffi::OsString;

use super::intent::{Intent, Kind, Name, Submit};
use super::{args, meaning, submit};
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
    let verbs = ["submit", "training", "trainings", "workspace", "workspaces"];
    if typed.get(1).is_none_or(|word| !verbs.contains(&word.as_str())) {
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
    submit.image.get_or_insert_with(|| "any".to_owned());
    Ok(Submission { project: cli.global.project, name, submit })
}

impl Submission {
    /// What the server would make of it.
    ///
    /// # Errors
    /// A value that the server would refuse.
    pub(crate) fn spec(&self, name: &str) -> Result<control::WorkloadSpec, Error> {
        // The number does not matter: there is no server.
        let request = submit::request_in(&self.submit, name, "1".to_owned());
        let interactive = self.submit.kind == Kind::Workspace;
        api::workload_asked_for(interactive, request).map_err(Error::Usage)
    }
}
