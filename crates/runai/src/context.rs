//! What every command needs: the settings, a client, and the project it works in.
//! Owns the texts about a project or a job that is not there.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use api_types::{Project, Workload};
use client::Client;

use super::args::Global;
use super::intent::Target;
use super::{rows, session};
use cli_kit::exit::Error;
use cli_kit::plain::tell_all;
use cli_kit::settings::{Env, Session, Settings};

/// What every command needs.
pub(super) struct Context {
    pub(super) settings: Settings,
    pub(super) client: Client,
    /// Who is logged in there, if anybody is.
    pub(super) session: Option<Session>,
    global: Global,
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

    /// The same as things are now: the server may have moved, and the session been renewed.
    pub(super) async fn anew(&self) -> Result<Self, Error> {
        let mut context = Self::open(&self.global, &|name| std::env::var(name).ok())?;
        session::renew(&mut context).await?;
        Ok(context)
    }

    /// How whoever asks is known to the server.
    pub(super) fn way(&self) -> &str {
        match (&self.session, self.settings.token(), self.client.token()) {
            (Some(session), ..) => session.way.as_deref().unwrap_or("another program"),
            (None, Some(_), _) => "RUNAI_TOKEN",
            (None, None, Some(_)) => "the token of this machine's server",
            (None, None, None) => "nobody",
        }
    }

    /// The project that was asked for, for a command that is about all otherwise.
    pub(super) fn asked_project(&self) -> Option<&str> {
        self.global.project.as_deref()
    }

    /// The project this command works in.
    pub(super) fn project(&self) -> Result<&str, Error> {
        self.global.project.as_deref().or_else(|| self.settings.project()).ok_or_else(|| {
            Error::Usage(
                "no project is chosen; add `--project PROJECT`, or choose one for good with \
                 `runai config project PROJECT` (`runai list projects` shows them)"
                    .to_owned(),
            )
        })
    }

    /// The project, for a command that needs the server as well: a server that does not run is
    /// told first, since without it no project can be chosen.
    async fn chosen_project(&self) -> Result<&str, Error> {
        if self.project().is_err() {
            self.client.status().await?;
        }
        self.project()
    }

    /// The same project as the server knows it.
    pub(super) async fn known_project(&self) -> Result<Project, Error> {
        let name = self.chosen_project().await?;
        self.client.project(name).await?.ok_or_else(|| unknown_project(name))
    }

    /// The living workloads of the chosen project.
    pub(super) async fn workloads(&self) -> Result<Vec<Workload>, Error> {
        let project = self.chosen_project().await?;
        let workloads = self.client.workloads(Some(project)).await?;
        if workloads.is_empty() && self.client.project(project).await?.is_none() {
            return Err(unknown_project(project));
        }
        Ok(workloads)
    }

    /// A workload by name.
    pub(super) async fn workload(&self, target: &Target) -> Result<Option<Workload>, Error> {
        let project = self.chosen_project().await?;
        let found = self.client.workload_named(project, &target.name).await?;
        if found.is_none() && self.client.project(project).await?.is_none() {
            return Err(unknown_project(project));
        }
        Ok(found.filter(|workload| rows::is_a(workload, target.noun)))
    }

    /// A workload by name that has to be there.
    pub(super) async fn existing(&self, target: &Target) -> Result<Workload, Error> {
        match self.workload(target).await? {
            Some(workload) => Ok(workload),
            None => Err(self.no_such(target)?),
        }
    }

    fn no_such(&self, target: &Target) -> Result<Error, Error> {
        let (name, project) = (units::shown(&target.name), units::shown(self.project()?));
        let what = target.noun.word();
        Ok(Error::NotFound(format!(
            "The {what} {name} does not exist in project {project}. If the {what} exists in a \
             different project, use -p <project name>."
        )))
    }
}

fn tell_request(sent: &client::Sent<'_>) {
    let status = sent.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    tell_all(&format!("{} {} {status} {} ms", sent.method, sent.path, sent.ms));
}

/// What the settings say, whether or not their server can be found.
pub(super) fn settings(global: &Global, env: Env<'_>) -> Result<Settings, Error> {
    let (dir, file) = (global.config_path.clone(), global.config_file.as_deref());
    Ok(Settings::load(dir, file, env)?)
}

pub(super) fn unknown_project(name: &str) -> Error {
    Error::NotFound(format!(
        "project {} was not found; run `runai list projects` to see those there are",
        units::shown(name)
    ))
}

/// This machine's clock, for ages.
pub(super) fn now_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
