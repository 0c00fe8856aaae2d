//! The secret values of a run on disk. Owns: keeping them readable by their owner only, and no
//! longer than needed: variables until the command starts, files until the run has ended.
//!
//! ```text
//! secrets.json   from the server to the supervisor; gone before the command starts
//! secrets/       the files, below the path they would be mounted at
//! ```

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use engine::{Secret, SecretPlace};
use serde::{Deserialize, Serialize};

/// Where a run finds its secret files: what would be `/etc/x` is `$ELASTANE_SECRETS_DIR/etc/x`.
pub(crate) const FOLDER_VARIABLE: &str = "ELASTANE_SECRETS_DIR";
/// From the server to the supervisor.
pub(crate) const FILE: &str = "secrets.json";
/// The files.
pub(crate) const FOLDER: &str = "secrets";
/// How long the end of a run waits for them to be deleted. Some files take a millisecond.
const FORGET_TIME: Duration = Duration::from_millis(500);

/// `secrets.json`.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Secrets {
    pub(crate) variables: BTreeMap<String, String>,
    files: Vec<SecretFile>,
}

#[derive(Serialize, Deserialize)]
struct SecretFile {
    path: PathBuf,
    mode: u32,
    value: String,
}

impl Secrets {
    pub(crate) fn of(all: &[Secret]) -> Self {
        let mut sorted = Self::default();
        for Secret { to, value } in all {
            let value = value.clone();
            match to {
                SecretPlace::Variable(name) => drop(sorted.variables.insert(name.clone(), value)),
                SecretPlace::File { path, mode } => {
                    sorted.files.push(SecretFile { path: path.clone(), mode: *mode, value });
                }
            }
        }
        sorted
    }

    /// Writes the files below `folder`.
    pub(crate) fn write_files(&self, folder: &Path) -> io::Result<()> {
        for file in &self.files {
            let place = below(folder, &file.path);
            let around = place.parent().unwrap_or(folder);
            DirBuilder::new().recursive(true).mode(0o700).create(around)?;
            // The later of two at one path wins, as with variables.
            forget(&place)?;
            let mut open = OpenOptions::new();
            let mut out = open.write(true).create_new(true).mode(0o600).open(&place)?;
            out.write_all(file.value.as_bytes())?;
            out.set_permissions(Permissions::from_mode(file.mode))?;
        }
        Ok(())
    }
}

/// A container path inside a folder; cannot lead out of it.
pub(crate) fn below(folder: &Path, path: &Path) -> PathBuf {
    let inner = path.components().filter(|part| matches!(part, Component::Normal(_)));
    inner.fold(folder.to_owned(), |path, part| path.join(part))
}

/// Deletes a file, if it is there.
pub(crate) fn forget(path: &Path) -> io::Result<()> {
    gone(fs::remove_file(path))
}

/// Deletes a folder with any permissions, if it is there. Files that a run has added and that
/// cannot be deleted in time are deleted with the folder of the run.
pub(crate) fn forget_folder(path: &Path) -> io::Result<()> {
    trees::remove(path, &trees::within(FORGET_TIME)).map(drop)
}

fn gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_closed_is_deleted_too() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("secrets/etc");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("key"), "hush").unwrap();
        for path in [&inner, inner.parent().unwrap()] {
            fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
        }
        // Root may read it anyway.
        forget_folder(&dir.path().join("secrets")).unwrap();
        assert!(!dir.path().join("secrets").exists());
    }

    #[test]
    fn no_path_leads_out_of_the_folder() {
        let below = |path: &str| below(Path::new("/r"), Path::new(path)).display().to_string();
        assert_eq!(below("/etc/x"), "/r/etc/x");
        assert_eq!(below("/../../etc/./x"), "/r/etc/x");
    }
}
