//! `elastane config`: the settings that a server would run with, and the tables of the
//! documentation. Owns: the displayed parts of each setting, never a password; the checks for
//! errors of `up` that need no server.

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use super::args;
use super::config::{self, Config};
use super::settings::{ALL, Document, Origins, Setting, Sources, variables};
use super::{certificate, initial_nodes};
use cli_kit::exit::Error;
use cli_kit::output::{OutputOptions, list, show};
use cli_kit::table::Table;

/// A displayed setting.
#[derive(Debug, Serialize)]
struct Row {
    key: &'static str,
    /// The given text, else the default; `None` without either.
    value: Option<String>,
    /// Origin: a flag, a variable, a line of the file, or `default`.
    origin: String,
}

pub(super) async fn run(state_dir: Option<PathBuf>, verb: args::Config) -> Result<(), Error> {
    let (settings, format) = match verb {
        args::Config::Show { settings, format } => (settings, format),
        args::Config::Reference => {
            let tables = Document::ALL.map(Document::table).join("\n");
            return Ok(std::io::stdout().write_all(tables.as_bytes())?);
        }
    };
    variables::warn();
    let wrong = |error: super::settings::Error| Error::Usage(error.to_string());
    let sources = Sources::collect(state_dir.as_deref(), settings.typed, &super::env);
    let sources = sources.map_err(wrong)?;
    // Settings that the server would refuse are refused here, too.
    check(&config::check(&sources).map_err(wrong)?)?;
    let how = OutputOptions::from(format);
    let look = async |out: &mut dyn Write| {
        list(&how, rows(&sources), |row| format!("setting/{}", row.key), table, out)
    };
    show(&how, &mut std::io::stdout(), None, look).await
}

/// Checks the objects that values name: nodes, the files of the certificate, folders.
fn check(config: &Config) -> Result<(), Error> {
    initial_nodes::check(&config.machines)?;
    certificate::open(config)?;
    control::NodeAccess::new(&config.settings.host_paths, &[]).map_err(Error::Failed)?;
    Ok(())
}

fn rows(sources: &Sources) -> Vec<Row> {
    ALL.iter()
        .filter(|setting| setting.origins != Origins::Flag)
        .map(|it| row(it, sources))
        .collect()
}

fn row(setting: &Setting, sources: &Sources) -> Row {
    let (text, origin) = match sources.find(setting.key) {
        Some(given) => (given.text.as_str(), given.origin.as_str()),
        None => (setting.default, "default"),
    };
    let shown = setting.shown.map_or_else(|| text.to_owned(), |shown| shown(text));
    let value = (!shown.is_empty()).then_some(shown);
    Row { key: setting.key, value, origin: origin.to_owned() }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&["Setting", "Value", "From"]);
    for row in rows {
        let value = row.value.clone().unwrap_or_else(|| "-".to_owned());
        table.row([row.key.to_owned(), value, row.origin.clone()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    /// The error for these flags; empty if a server would start with them.
    fn refused(flags: &str) -> String {
        let line = format!("elastane config show {flags}");
        let words = line.split_whitespace();
        let Command::Config(args::Config::Show { settings, .. }) =
            Cli::try_parse_from(words).unwrap().command
        else {
            panic!("{line}")
        };
        let home = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        let sources = Sources::collect(None, settings.typed, &home).unwrap();
        let checked = check(&config::check(&sources).unwrap());
        checked.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_up_would_refuse_of_a_value_is_refused_here() {
        let own = tempfile::tempdir().unwrap();
        let text = own.path().join("text").display().to_string();
        std::fs::write(&text, "no certificate").unwrap();
        for flags in ["", "--nodes 2x2x16GiB@zone=a", "--gpus 0", "--host-paths /"] {
            assert_eq!(refused(flags), "", "{flags}");
        }
        for (flags, said) in [
            ("--nodes banana".to_owned(), "--nodes: `banana` is not a set of nodes; write "),
            ("--gpus 4".to_owned(), "--gpus: `4` is not a set of GPUs; write "),
            ("--nodes 1x0@x=a*b".to_owned(), "--nodes: "),
            ("--host-paths /nowhere".to_owned(), "/nowhere cannot be mounted from this machine: "),
            (
                "--tls-cert /nowhere --tls-key /nowhere".to_owned(),
                "cannot use /nowhere as the certificate: ",
            ),
            (format!("--tls-cert {text} --tls-key {text}"), "cannot use "),
        ] {
            let refused = refused(&flags);
            assert!(refused.starts_with(said), "{flags}: {refused}");
        }
    }

    fn shown(line: &str, env: &[(&str, &str)]) -> Vec<(&'static str, String, String)> {
        let Command::Config(args::Config::Show { settings, .. }) =
            Cli::try_parse_from(line.split(' ')).unwrap().command
        else {
            panic!("{line}")
        };
        let env = |name: &str| {
            let found = env.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let sources = Sources::collect(None, settings.typed, &env).unwrap();
        let row = |row: Row| (row.key, row.value.unwrap_or_default(), row.origin);
        rows(&sources).into_iter().map(row).collect()
    }

    #[test]
    fn each_setting_is_shown_with_its_origin() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("e.toml").display().to_string();
        std::fs::write(&file, "# ours\ncluster_name = \"lab\"\nlog = \"info\"\n").unwrap();
        let line = format!("elastane config show --config {file} --insecure-listen");
        let rows = shown(&line, &[("HOME", "/h"), ("ELASTANE_LOG", "debug")]);
        let of = |key: &str| {
            let (_, value, origin) = rows.iter().find(|(own, ..)| *own == key).unwrap();
            format!("{value} | {origin}")
        };
        assert_eq!(of("cluster_name"), format!("lab | cluster_name in {file}:2"));
        assert_eq!(of("log"), "debug | ELASTANE_LOG");
        assert_eq!(of("insecure_listen"), "true | --insecure-listen");
        assert_eq!(of("listen"), "127.0.0.1:7070 | default");
        assert_eq!(of("state_dir"), "/h/.local/state/elastane | default");
        assert_eq!(of("public_url"), " | default");
        assert!(!rows.iter().any(|(key, ..)| *key == "replace_nodes"), "it is for one start");
    }

    #[test]
    fn no_password_is_shown() {
        let line = "elastane config show --database postgres://ann:hush@db/gpus";
        let rows = shown(line, &[]);
        let database = rows.iter().find(|(key, ..)| *key == "database").unwrap();
        assert_eq!(database.1, "postgres://ann@db:5432/gpus");
        assert!(!format!("{rows:?}").contains("hush"));
    }
}
