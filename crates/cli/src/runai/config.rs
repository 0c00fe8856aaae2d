//! `config describe` and `config generate`. Owns: what is told of the settings, never a secret.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::context::Context;
use super::intent::Shown;
use super::list::data;
use crate::exit::Error;
use crate::settings::write_private;

/// Shows the settings and where each is from.
pub(super) fn describe(shown: Shown, context: &Context, out: &mut dyn Write) -> Result<(), Error> {
    let rows = rows(context);
    if shown != Shown::Text {
        let fields = rows.into_iter().map(|(title, value)| (title.to_owned(), json!(value)));
        return data(&Value::Object(fields.collect()), shown, out);
    }
    rows.into_iter().try_for_each(|(title, value)| Ok(writeln!(out, "{title}: {value}")?))
}

/// Each setting with what it is.
pub(super) fn rows(context: &Context) -> Vec<(&'static str, String)> {
    let settings = &context.settings;
    let file = settings.config_file();
    let there = if file.exists() { "" } else { ", which is not there" };
    let none = || "none".to_owned();
    vec![
        ("Settings", format!("{}{there}", file.display())),
        ("Server", format!("{}, {}", shown_url(context.client.url()), server_from(context))),
        ("Project", settings.project().map_or_else(none, str::to_owned)),
        ("Cluster", settings.cluster().map_or_else(none, str::to_owned)),
        ("Login", context.way().to_owned()),
    ]
}

/// An address without the login that may be part of it.
fn shown_url(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1)))
    {
        Some((scheme, place)) => format!("{scheme}://{place}"),
        None => url.to_owned(),
    }
}

fn server_from(context: &Context) -> &'static str {
    match (context.settings.url_of_environment(), context.settings.url()) {
        (true, _) => "from RUNAI_CP_URL",
        (false, Some(_)) => "from the settings",
        (false, None) => "found on this machine",
    }
}

/// Settings for others: the server and its cluster, no project and no login.
pub(super) async fn generate(
    file: Option<&Path>,
    context: &Context,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let clusters = context.client.clusters().await?;
    let mut settings = json!({ "control_plane": { "url": shown_url(context.client.url()) } });
    if let Some(cluster) = clusters.first() {
        settings["cluster"] = json!({ "uuid": cluster.uuid });
    }
    let Some(file) = file else { return data(&settings, Shown::Json, out) };
    let failed = |error| Error::Failed(format!("failed to write {}: {error}", file.display()));
    write_private(file, format!("{settings:#}\n").as_bytes()).map_err(failed)?;
    writeln!(out, "Written to {}; others put it into ~/.runai/config.json", file.display())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::shown_url;

    #[test]
    fn a_login_in_an_address_is_not_shown() {
        assert_eq!(shown_url("https://ann:hush@gpu:7070"), "https://gpu:7070");
        assert_eq!(shown_url("http://127.0.0.1:7070"), "http://127.0.0.1:7070");
    }
}
