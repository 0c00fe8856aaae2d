//! Context of every command: the settings, a client, and the project. Owns the texts about a
//! project or a job that does not exist.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use api_types::{Project, Workload};
use client::Client;

use super::rows;
use cli_kit::exit::Error;
use cli_kit::message::print_always;
use cli_kit::settings::{Env, Session, Settings};
use cli_kit::suggest;
use dialects::Global;
use dialects::KIND_WORDS;
use dialects::intent::{Noun, Target};

/// Maximum number of workloads of a project that are fetched to suggest the nearest name.
const SUGGESTED_FROM_MAX: u64 = 100;

/// Settings, client and session of a command.
pub(super) struct Context {
    pub(super) settings: Settings,
    pub(super) client: Client,
    /// Session on the server; `None` without a login.
    pub(super) session: Option<Session>,
    pub(super) global: Global,
}

impl Context {
    pub(super) fn open(global: &Global, env: Env<'_>) -> Result<Self, Error> {
        let settings = settings(global, env)?;
        let state_dir = client::state_dir(env);
        let ca = env("ELASTANE_CA").filter(|file| !file.is_empty()).map(PathBuf::from);
        let (dir, ca) = (state_dir.as_deref(), ca.as_deref());
        let found = client::find(settings.url(), settings.token(), dir, ca)?;
        let mut client = found.client;
        if global.tells_requests() {
            client = client.telling(tell_request);
        }
        let session = settings.session(client.url())?;
        if let Some(session) = &session {
            client = client.with_token(Some(session.access.clone()));
        }
        Ok(Self { settings, client, session, global: global.clone() })
    }

    /// Login method of the session, or the source of the token.
    pub(super) fn way(&self) -> &str {
        match (&self.session, self.settings.token(), self.client.token()) {
            (Some(session), ..) => session.way.as_deref().unwrap_or("another program"),
            (None, Some(_), _) => "RUNAI_TOKEN",
            (None, None, Some(_)) => "the token of this machine's server",
            (None, None, None) => "no login",
        }
    }

    /// The project given on the command line, for a command that covers all projects otherwise.
    pub(super) fn asked_project(&self) -> Option<&str> {
        self.global.project.as_deref()
    }

    /// The project of this command.
    pub(super) fn project(&self) -> Result<&str, Error> {
        self.global
            .project
            .as_deref()
            .or_else(|| self.settings.project())
            .ok_or_else(|| Error::Usage(no_project_chosen()))
    }

    /// The project, for a command that needs the server as well: an unreachable server is reported
    /// first, since without it no project can be chosen.
    pub(super) async fn chosen_project(&self) -> Result<&str, Error> {
        if self.project().is_err() {
            self.client.status().await?;
        }
        self.project()
    }

    /// The project of this command, as the server returns it.
    pub(super) async fn known_project(&self) -> Result<Project, Error> {
        let name = self.chosen_project().await?;
        match self.client.project(name).await? {
            Some(project) => Ok(project),
            None => Err(self.no_project(name).await?),
        }
    }

    /// The current workloads of the project.
    pub(super) async fn workloads(&self) -> Result<Vec<Workload>, Error> {
        let project = self.chosen_project().await?;
        let workloads = self.client.workloads(Some(project)).await?;
        if workloads.is_empty() && self.client.project(project).await?.is_none() {
            return Err(self.no_project(project).await?);
        }
        Ok(workloads)
    }

    /// A workload by name.
    pub(super) async fn workload(&self, target: &Target) -> Result<Option<Workload>, Error> {
        let project = self.chosen_project().await?;
        let found = self.client.workload_named(project, &target.name).await?;
        if found.is_none() && self.client.project(project).await?.is_none() {
            return Err(self.no_project(project).await?);
        }
        Ok(found.filter(|workload| rows::is_a(workload, target.noun)))
    }

    /// A workload by name; an error if it does not exist.
    pub(super) async fn existing(&self, target: &Target) -> Result<Workload, Error> {
        match self.workload(target).await? {
            Some(workload) => Ok(workload),
            None => Err(self.no_such(target.noun, &target.name, &[]).await?),
        }
    }

    /// The error about a name that no workload has: one text for every command of both dialects.
    /// Workloads that are being deleted, and those named in `leaving`, are not suggested.
    pub(super) async fn no_such(
        &self,
        noun: Noun,
        name: &str,
        leaving: &[String],
    ) -> Result<Error, Error> {
        if KIND_WORDS.contains(&name) {
            return Ok(Error::Usage(nameless(name)));
        }
        let project = self.project()?;
        let there = self.client.workloads_if_few(project, SUGGESTED_FROM_MAX).await?;
        let mut there = there.unwrap_or_default();
        there.retain(|one| stays(one, leaving));
        Ok(Error::NotFound(missing(noun, name, project, &there)))
    }

    /// The error about a project that does not exist.
    pub(super) async fn no_project(&self, name: &str) -> Result<Error, Error> {
        let projects = self.client.projects().await?;
        let names = projects.iter().map(|project| project.name.as_str());
        let advice = "`runai list projects` lists them";
        let hint = suggest::hint_or(name, names, advice);
        Ok(Error::NotFound(format!("project {} was not found{hint}", units::shown(name))))
    }
}

/// Error text for a command without a project, if there is no default project.
pub(super) fn no_project_chosen() -> String {
    "no project is chosen; add `--project PROJECT`, or choose one for good with `runai config \
     project PROJECT` (`runai list projects` shows them)"
        .to_owned()
}

/// True if a workload is not being deleted.
fn stays(workload: &Workload, leaving: &[String]) -> bool {
    workload.phase != "Deleting" && !leaving.contains(&workload.name)
}

/// Error text for the word of a kind in place of a name.
pub(super) fn nameless(word: &str) -> String {
    format!("the name is missing; write it after `{word}`, as in `{word} train1`")
}

/// Error text for a name that none of these workloads has, or only one of another type.
fn missing(noun: Noun, name: &str, project: &str, there: &[Workload]) -> String {
    let what = noun.word();
    let hint = match there.iter().find(|workload| workload.name == name) {
        Some(other) => {
            let word = type_word(other);
            let article = if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
            format!("; there is {article} {word} of this name")
        }
        None => {
            let of_noun = there.iter().filter(|workload| rows::is_a(workload, noun));
            suggest::hint(name, of_noun.map(|workload| workload.name.as_str()))
        }
    };
    let end = if hint.ends_with('?') { "" } else { "." };
    let (name, project) = (units::shown(name), units::shown(project));
    format!(
        "{} {name} does not exist in project {project}{hint}{end} If the {what} exists in a \
         different project, use -p <project-name>.",
        capitalised(what)
    )
}

fn type_word(workload: &Workload) -> String {
    match workload.kind.as_str() {
        "Distributed" => "distributed training".to_owned(),
        other => other.to_lowercase(),
    }
}

/// A word with a capital first letter.
pub(super) fn capitalised(word: &str) -> String {
    let mut word = word.to_owned();
    if let Some(first) = word.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    word
}

fn tell_request(sent: &client::Sent<'_>) {
    let status = sent.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    print_always(&format!("{} {} {status} {} ms", sent.method, sent.path, sent.ms));
}

/// Loads the settings; their server need not exist.
pub(super) fn settings(global: &Global, env: Env<'_>) -> Result<Settings, Error> {
    let (dir, file) = (global.config_path.clone(), global.config_file.as_deref());
    Ok(Settings::load(dir, file, env)?)
}

/// Time of the local clock in milliseconds since 1970, for ages.
pub(super) fn now_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::samples::workload;

    #[test]
    fn what_is_being_deleted_is_no_suggestion() {
        let there = ["train1 Training Running p", "train2 Training Deleting p"].map(workload);
        let stay = |leaving: &[&str]| {
            let leaving: Vec<_> = leaving.iter().map(ToString::to_string).collect();
            there.iter().filter(|one| stays(one, &leaving)).count()
        };
        assert_eq!((stay(&[]), stay(&["train1", "trainx"])), (1, 0));
    }

    #[test]
    fn a_name_that_is_not_there_is_answered_with_the_nearest() {
        let there = ["train1 Training Running team-a", "shell Workspace Running team-a"];
        let there = there.map(workload);
        let rest = "exists in a different project, use -p <project-name>.";
        for (noun, name, said) in [
            (
                Noun::Job,
                "nope",
                format!("Job nope does not exist in project team-a. If the job {rest}"),
            ),
            (
                Noun::Training,
                "trian1",
                format!(
                    "Training trian1 does not exist in project team-a; did you mean `train1`? \
                     If the training {rest}"
                ),
            ),
            (
                Noun::Training,
                "shell",
                format!(
                    "Training shell does not exist in project team-a; there is a workspace of this \
                     name. If the training {rest}"
                ),
            ),
        ] {
            assert_eq!(missing(noun, name, "team-a", &there), said);
        }
    }
}
