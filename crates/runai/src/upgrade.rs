//! Replacement of this program by the version of its server. Owns: that the new program runs, and
//! that the replacement is atomic. Does not compare versions: that of the server is the correct
//! one.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use client::Client;
use tokio::process::Command;

use super::context::{Context, now_ms};
use super::exec_session::Signals;
use cli_kit::exit::Error;
use cli_kit::message::with_progress;

pub(super) async fn run(context: &Context, out: &mut dyn Write) -> Result<(), Error> {
    let client = context.client.clone().with_token(None);
    let own = std::env::current_exe().and_then(fs::canonicalize).map_err(|error| {
        Error::Failed(format!("failed to find this program's own file: {error}"))
    })?;
    let mut signals = Signals::listen()?;
    let work = with_progress("Fetching the program...", upgrade(&own, &client));
    let upgraded = tokio::select! {
        upgraded = work => upgraded?,
        // The draft is deleted on drop.
        code = signals.come() => return Err(Error::Said(code)),
    };
    let (url, version) = (client.url(), env!("CARGO_PKG_VERSION"));
    match upgraded {
        None => writeln!(out, "runai {version} is what {url} hands out")?,
        Some(new) => writeln!(out, "runai was {version} and is {new} now, as {url} has it")?,
    }
    Ok(())
}

/// Replaces this program by the server's, and returns the new version; `None` if they are the same.
async fn upgrade(own: &Path, client: &Client) -> Result<Option<String>, Error> {
    let (draft, file) = Draft::beside(own, client.url())?;
    fetch(client, file, &draft.path).await?;
    if same(own, &draft.path)? {
        return Ok(None);
    }
    draft.take_rights(own)?;
    let version = version_of(&draft.path).await?;
    draft.replace(own)?;
    Ok(Some(version))
}

/// A temporary file beside the program; deleted unless it replaces the program.
struct Draft {
    path: PathBuf,
}

impl Draft {
    fn beside(own: &Path, url: &str) -> Result<(Self, File), Error> {
        let path = own.with_file_name(format!(".runai.{}.{}", std::process::id(), now_ms()));
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| {
            let folder = path.parent().unwrap_or(Path::new("/")).display();
            Error::Failed(format!(
                "cannot write in {folder}: {error}; run `runai upgrade` as a user who can, or install \
                 another one in ~/.local/bin: \
                 `curl -fsSL {url}/api/v1/cli-exposer/installer/linux | sh`"
            ))
        })?;
        Ok((Self { path }, file))
    }

    /// Gives the new program the permissions of the old one.
    fn take_rights(&self, own: &Path) -> Result<(), Error> {
        fs::metadata(own)
            .and_then(|own| fs::set_permissions(&self.path, own.permissions()))
            .map_err(|error| unusable(&self.path, &error))
    }

    /// Replaces the program; the running process continues until its end.
    fn replace(&self, own: &Path) -> Result<(), Error> {
        fs::rename(&self.path, own).map_err(|error| unusable(own, &error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It has replaced the program, or is no longer needed.
        let _gone = fs::remove_file(&self.path);
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    Error::Failed(format!("failed to use {}: {error}; nothing was changed", path.display()))
}

/// Writes the server's program for this platform to a file.
async fn fetch(client: &Client, mut to: File, path: &Path) -> Result<(), Error> {
    let mut program = client.program().await?;
    while let Some(piece) = program.next().await? {
        to.write_all(&piece).map_err(|error| unusable(path, &error))?;
    }
    to.sync_all().map_err(|error| unusable(path, &error))
}

fn same(one: &Path, other: &Path) -> Result<bool, Error> {
    let read = |path: &Path| fs::read(path).map_err(|error| unusable(path, &error));
    Ok(read(one)? == read(other)?)
}

/// Version that the program at a path prints.
async fn version_of(program: &Path) -> Result<String, Error> {
    let wrong = |why: String| {
        Error::Failed(format!(
            "what the server hands out does not run here ({why}); nothing was changed"
        ))
    };
    let mut command = Command::new(program);
    command.args(["version", "--short"]).stdin(Stdio::null()).kill_on_drop(true);
    let answer = command.output().await.map_err(|error| wrong(error.to_string()))?;
    let version = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    match answer.status.success() && !version.is_empty() {
        true => Ok(version),
        false => Err(wrong(format!("it ended with {}", answer.status))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn what_does_not_run_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("runai");
        for (script, said) in [
            ("#!/bin/sh\nexit 3\n", "exit status: 3"),
            ("#!/bin/sh\ntrue\n", "exit status: 0"),
            ("<html>", "does not run here"),
        ] {
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
            let refused = version_of(&program).await.unwrap_err().to_string();
            assert!(refused.contains(said), "{script}: {refused}");
        }
        fs::write(&program, "#!/bin/sh\necho 9.9\n").unwrap();
        assert_eq!(version_of(&program).await.unwrap(), "9.9");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_told_with_what_to_do() {
        let refused = Draft::beside(Path::new("/proc/runai"), "http://gpu:7070").err().unwrap();
        for part in ["cannot write in /proc", "as a user who can", "http://gpu:7070/api/v1/cli-"] {
            assert!(refused.to_string().contains(part), "{refused}");
        }
    }

    #[test]
    fn a_draft_takes_the_place_and_the_rights_of_the_program_or_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("runai");
        fs::write(&own, "old").unwrap();
        fs::set_permissions(&own, Permissions::from_mode(0o750)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (draft, mut file) = Draft::beside(&own, "u").unwrap();
        file.write_all(b"old").unwrap();
        assert!(same(&own, &draft.path).unwrap());
        file.write_all(b"new").unwrap();
        assert!(!same(&own, &draft.path).unwrap());
        assert_eq!(mode(&draft.path), 0o600, "a partial file is not executable");
        drop(draft);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        let (draft, _) = Draft::beside(&own, "u").unwrap();
        draft.take_rights(&own).unwrap();
        draft.replace(&own).unwrap();
        assert_eq!((fs::read(&own).unwrap(), mode(&own)), (Vec::new(), 0o750));
    }
}
