//! Replacing this program by the one its server hands out. Owns: that what replaces it runs, and that
//! it is replaced as a whole or not at all. Refuses to know versions: the server's is the right one.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use client::Client;

use super::context::Context;
use crate::exit::Error;

/// Whoever may start the old one may start the new one.
const MODE: u32 = 0o755;

pub(super) async fn run(context: &Context, out: &mut dyn Write) -> Result<(), Error> {
    let client = context.client.clone().with_token(None);
    let own = std::env::current_exe().and_then(fs::canonicalize).map_err(|error| {
        Error::Failed(format!("failed to find this program's own file: {error}"))
    })?;
    let draft = Draft::beside(&own, client.url())?;
    fetch(&client, draft.file()?).await?;
    let url = client.url();
    if same(&own, &draft.path)? {
        writeln!(out, "runai {} is what {url} hands out", env!("CARGO_PKG_VERSION"))?;
        return Ok(());
    }
    let version = version_of(&draft.path)?;
    draft.replace(&own)?;
    writeln!(out, "runai was {} and is {version} now, as {url} has it", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}

/// A file beside the program; gone unless it takes its place.
struct Draft {
    path: PathBuf,
}

impl Draft {
    fn beside(own: &Path, url: &str) -> Result<Self, Error> {
        let path = own.with_file_name(format!(".runai.{}", std::process::id()));
        let made = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&path);
        made.map(|_| Self { path: path.clone() }).map_err(|error| {
            let folder = path.parent().unwrap_or(Path::new("/")).display().to_string();
            Error::Failed(format!(
                "cannot write in {folder}: {error}; run `runai upgrade` as a user who can, or install \
                 another one in ~/.local/bin: \
                 `curl -fsSL {url}/api/v1/cli-exposer/installer/linux | sh`"
            ))
        })
    }

    fn file(&self) -> Result<File, Error> {
        OpenOptions::new()
            .write(true)
            .open(&self.path)
            .map_err(|error| unusable(&self.path, &error))
    }

    /// Takes the place of the program, which goes on until it ends.
    fn replace(&self, own: &Path) -> Result<(), Error> {
        fs::set_permissions(&self.path, Permissions::from_mode(MODE))
            .and_then(|()| fs::rename(&self.path, own))
            .map_err(|error| unusable(own, &error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It has taken its place, or is of no use.
        let _gone = fs::remove_file(&self.path);
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    Error::Failed(format!("failed to use {}: {error}; nothing was changed", path.display()))
}

/// Writes the server's program for this machine to a file.
async fn fetch(client: &Client, mut to: File) -> Result<(), Error> {
    let mut program = client.program().await?;
    while let Some(piece) = program.next().await? {
        to.write_all(&piece)?;
    }
    to.sync_all()?;
    Ok(())
}

fn same(one: &Path, other: &Path) -> Result<bool, Error> {
    let read = |path: &Path| fs::read(path).map_err(|error| unusable(path, &error));
    Ok(read(one)? == read(other)?)
}

/// What the program at a path says its version is.
fn version_of(program: &Path) -> Result<String, Error> {
    let wrong = |why: String| {
        Error::Failed(format!(
            "what the server hands out does not run here ({why}); nothing was changed"
        ))
    };
    let asked = Command::new(program).args(["version", "--short"]).stdin(Stdio::null()).output();
    let answer = asked.map_err(|error| wrong(error.to_string()))?;
    let version = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    match answer.status.success() && !version.is_empty() {
        true => Ok(version),
        false => Err(wrong(format!("it ended with {}", answer.status))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_run_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("runai");
        for (script, said) in [
            ("#!/bin/sh\nexit 3\n", "exit status: 3"),
            ("#!/bin/sh\ntrue\n", "exit status: 0"),
            ("<html>", "does not run here"),
        ] {
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, Permissions::from_mode(MODE)).unwrap();
            let refused = version_of(&program).unwrap_err().to_string();
            assert!(refused.contains(said), "{script}: {refused}");
        }
        fs::write(&program, "#!/bin/sh\necho 9.9\n").unwrap();
        assert_eq!(version_of(&program).unwrap(), "9.9");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_told_with_what_to_do() {
        let refused = Draft::beside(Path::new("/proc/runai"), "http://gpu:7070").err().unwrap();
        for part in ["cannot write in /proc", "as a user who can", "http://gpu:7070/api/v1/cli-"] {
            assert!(refused.to_string().contains(part), "{refused}");
        }
    }

    #[test]
    fn a_draft_that_is_not_used_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("runai");
        fs::write(&own, "old").unwrap();
        let draft = Draft::beside(&own, "u").unwrap();
        draft.file().unwrap().write_all(b"old").unwrap();
        assert!(same(&own, &draft.path).unwrap());
        draft.file().unwrap().write_all(b"new").unwrap();
        assert!(!same(&own, &draft.path).unwrap());
        drop(draft);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        Draft::beside(&own, "u").unwrap().replace(&own).unwrap();
        assert_eq!(fs::read(&own).unwrap(), b"");
    }
}
