//! `elastane config-map …`: texts that the workloads of a project get as files and variables.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use api_types::{ConfigMap, ConfigMapSummary};

use super::args;
use cli_kit::exit::Error;
use cli_kit::local_time::moment;
use cli_kit::message::Plain;
use cli_kit::output::{OutputOptions, list, show};
use cli_kit::table::Table;

pub(super) async fn run(state_dir: PathBuf, verb: args::ConfigMap) -> Result<(), Error> {
    let client = client::find(None, None, Some(&state_dir), None)?.client;
    let mut out = Plain(std::io::stdout());
    let id = super::project::existing(&client, verb.project()).await?.id;
    match verb {
        args::ConfigMap::Set { name, from_file, from_literal, project } => {
            let data = data(&from_file, from_literal)?;
            let made = client.put_config_map(&id, &name, data).await?;
            let keys = made.summary.keys.join(", ");
            writeln!(out, "config map {name} of project {project} has {keys}")?;
        }
        args::ConfigMap::List { format, .. } => {
            let how = OutputOptions::from(format);
            let name = |one: &ConfigMapSummary| format!("config-map/{}", one.name);
            let look = async |out: &mut dyn Write| {
                let table = |all: &[ConfigMapSummary]| table(all, how.is_wide());
                list(&how, client.config_maps(&id).await?, name, table, out)
            };
            show(&how, &mut std::io::stdout(), None, look).await?;
        }
        args::ConfigMap::Show { name, key, .. } => {
            let found = client.config_map(&id, &name).await?;
            match key {
                Some(key) => put(text(&found, &key)?, std::io::stdout().is_terminal(), &mut out.0)?,
                None => write!(out, "{}", shown(&found))?,
            }
        }
        args::ConfigMap::Delete { name, project } => {
            client.delete_config_map(&id, &name).await?;
            writeln!(out, "config map {name} of project {project} deleted")?;
        }
    }
    Ok(())
}

/// Table of config maps.
fn table(all: &[ConfigMapSummary], is_exact: bool) -> Table {
    let mut table = Table::new(&["Config Map", "Keys", "Bytes", "Changed", "Changed By"]);
    for one in all {
        table.row([
            one.name.clone(),
            one.keys.join(", "),
            one.bytes.to_string(),
            moment(one.updated_at.0.0, is_exact),
            one.updated_by.clone(),
        ]);
    }
    table
}

fn data(
    files: &[(Option<String>, PathBuf)],
    literals: Vec<(String, String)>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut data = BTreeMap::new();
    let from_files = files.iter().map(|(key, path)| {
        let key = key.clone().map_or_else(|| file_name(path), Ok)?;
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::Usage(format!("--from-file {}: {error}; a text is needed", path.display()))
        })?;
        Ok::<_, Error>((key, text))
    });
    for pair in from_files.chain(literals.into_iter().map(Ok)) {
        let (key, text) = pair?;
        if data.insert(key.clone(), text).is_some() {
            return Err(Error::Usage(format!("key {key} is there twice; write KEY=FILE")));
        }
    }
    Ok(data)
}

fn file_name(path: &Path) -> Result<String, Error> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| {
        Error::Usage(format!("--from-file {}: has no name; write KEY=FILE", path.display()))
    })
}

fn text<'a>(of: &'a ConfigMap, key: &str) -> Result<&'a str, Error> {
    of.data.get(key).map(String::as_str).ok_or_else(|| {
        let (name, keys) = (&of.summary.name, of.summary.keys.join(", "));
        Error::NotFound(format!("config map {name} has no key {key}; it has {keys}"))
    })
}

/// Prints a text unchanged, but with no control characters on a terminal.
fn put(text: &str, is_terminal: bool, out: &mut dyn Write) -> std::io::Result<()> {
    match is_terminal {
        true => Plain(out).write_all(text.as_bytes()),
        false => out.write_all(text.as_bytes()),
    }
}

/// The texts of a config map, each under its key.
fn shown(of: &ConfigMap) -> String {
    let one = |(key, text): (&String, &String)| {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        format!("--- {key}\n{text}{end}")
    };
    of.data.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_by_their_names_or_those_they_are_given() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("train.yaml");
        std::fs::write(&file, "lr: 1\n").unwrap();
        let files = [(None, file.clone()), (Some("other".to_owned()), file)];
        let made = data(&files, vec![("K".to_owned(), "v".to_owned())]).unwrap();
        let keys: Vec<_> = made.keys().map(String::as_str).collect();
        assert_eq!((keys, &*made["other"]), (vec!["K", "other", "train.yaml"], "lr: 1\n"));
        let twice = data(&files[..1], vec![("train.yaml".to_owned(), String::new())]);
        assert!(twice.unwrap_err().to_string().contains("train.yaml is there twice"));
        let none = data(&[(None, dir.path().join("none"))], vec![]).unwrap_err().to_string();
        assert!(none.contains("/none: No such file"), "{none}");
    }

    #[test]
    fn a_text_is_shown_as_it_is_but_at_a_terminal() {
        for (is_terminal, want) in [(false, "a\r\n\x1b[2J\t"), (true, "a\u{fffd}\n\u{fffd}[2J\t")] {
            let mut out = Vec::new();
            put("a\r\n\x1b[2J\t", is_terminal, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), want);
        }
    }
}
