//! `config describe` and `config generate`. Owns: the printed settings, never a secret.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use super::context::Context;
use cli_kit::exit::Error;
use cli_kit::message::print_note;
use cli_kit::output::data;
use cli_kit::settings;
use dialects::intent::OutputFormat;

/// The settings, and the source of the server's address.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfigReport<'c> {
    file: &'c Path,
    file_exists: bool,
    url: &'c str,
    url_from: UrlFrom,
    project: Option<&'c str>,
    cluster: Option<&'c str>,
    login: &'c str,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum UrlFrom {
    Environment,
    Settings,
    Machine,
}

impl<'c> ConfigReport<'c> {
    pub(super) fn of(context: &'c Context) -> Self {
        let settings = &context.settings;
        let file = settings.config_file();
        Self {
            file,
            file_exists: file.exists(),
            url: context.client.url(),
            url_from: match (settings.url_of_environment(), settings.url()) {
                (true, _) => UrlFrom::Environment,
                (false, Some(_)) => UrlFrom::Settings,
                (false, None) => UrlFrom::Machine,
            },
            project: settings.project(),
            cluster: settings.cluster(),
            login: context.way(),
        }
    }

    /// Titles and values, for people.
    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let there = if self.file_exists { "" } else { ", which is not there" };
        let from = match self.url_from {
            UrlFrom::Environment => "from RUNAI_CP_URL",
            UrlFrom::Settings => "from the settings",
            UrlFrom::Machine => "found on this machine",
        };
        let or_none = |value: Option<&str>| value.unwrap_or("none").to_owned();
        vec![
            ("Settings", format!("{}{there}", self.file.display())),
            ("Server", format!("{}, {from}", self.url)),
            ("Project", or_none(self.project)),
            ("Cluster", or_none(self.cluster)),
            ("Login", self.login.to_owned()),
        ]
    }
}

/// Shows the settings and the source of each.
pub(super) fn describe(
    shown: OutputFormat,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let told = ConfigReport::of(context);
    if !shown.is_text() {
        return data(&told, &shown, &[], out);
    }
    told.rows().into_iter().try_for_each(|(title, value)| Ok(writeln!(out, "{title}: {value}")?))
}

/// Settings for other users: the server and its cluster, no project and no login.
pub(super) async fn generate(
    file: Option<&Path>,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let clusters = context.client.clusters().await?;
    let url = context.client.url();
    let mut settings = json!({ "control_plane": { "url": url } });
    if let Some(cluster) = clusters.first() {
        settings["cluster"] = json!({ "uuid": cluster.uuid });
    }
    match file {
        None => data(&settings, &OutputFormat::Json, &[], out)?,
        Some(file) => {
            write_file(file, &format!("{settings:#}\n"))?;
            let file = file.display();
            writeln!(out, "Written to {file}; others put it into ~/.runai/config.json")?;
        }
    }
    if context.client.is_loopback() {
        print_note(&format!(
            "note: {url} is the server for this machine only; give others an address that they reach, \
             as in `elastane up --listen`"
        ));
    }
    Ok(())
}

/// Writes a file that other users may read.
pub(super) fn write_file(file: &Path, text: &str) -> Result<(), Error> {
    let fault = |source| settings::Error::Io { what: "write", path: file.to_owned(), source };
    Ok(std::fs::write(file, text).map_err(fault)?)
}
