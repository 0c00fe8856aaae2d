//! Identity of the installation of a state directory. Owns: its id, which stays when the directory
//! is moved, and telling a move from a copy. Does not know what belongs to an installation.
//!
//! The file `installation` in the directory holds the id. A directory that was used before this
//! file existed keeps its path as a second name, by which its older objects are found.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Error;

/// The file in the state directory.
const FILE: &str = "installation";

/// An installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    known: InstallationRecord,
    /// Current path of the directory.
    directory: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct InstallationRecord {
    id: Uuid,
    /// Path of the directory when it was last used.
    directory: PathBuf,
    /// Path of the directory when the path was its name; `None` if it always had an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    earlier_name: Option<PathBuf>,
}

impl Installation {
    /// The installation of this state directory, given from the root; the caller holds its lock. A
    /// directory without the file becomes one; `was_used`: it was used before there was the file.
    ///
    /// # Errors
    /// The file cannot be read or written, or the directory is a copy of another that is still
    /// there.
    pub fn open(directory: &Path, was_used: bool) -> Result<Self, Error> {
        let directory = directory.to_owned();
        let Some(known) = read(&directory)? else {
            let earlier_name = was_used.then(|| directory.clone());
            let known = InstallationRecord {
                id: Uuid::new_v4(),
                directory: directory.clone(),
                earlier_name,
            };
            write(&directory, &known)?;
            return Ok(Self { known, directory });
        };
        let own = Self { known, directory };
        if let Some(other) = own.moved_from()
            && read(other)?.is_some_and(|theirs| theirs.id == own.known.id)
        {
            let (here, other) = (own.directory.display(), other.display());
            return Err(Error::Invalid(format!(
                "the state directory {here} is a copy of {other}, and would take over what that one \
                 runs; use {other}, or delete it, or delete {here}/{FILE} to make an installation of \
                 its own of the copy"
            )));
        }
        Ok(own)
    }

    /// Path of the directory when it was last used, if it differs from the current one.
    #[must_use]
    pub fn moved_from(&self) -> Option<&Path> {
        Some(self.known.directory.as_path()).filter(|last| *last != self.directory)
    }

    /// Records the current path as the directory's place.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record_directory(&self) -> Result<(), Error> {
        if self.moved_from().is_none() {
            return Ok(());
        }
        write(
            &self.directory,
            &InstallationRecord { directory: self.directory.clone(), ..self.known.clone() },
        )
    }

    /// Id of the installation.
    #[must_use]
    pub const fn id(&self) -> Uuid {
        self.known.id
    }

    /// Current path of the directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Path that was the directory's name before it had an id.
    #[must_use]
    pub fn earlier_name(&self) -> Option<&Path> {
        self.known.earlier_name.as_deref()
    }
}

fn read(directory: &Path) -> Result<Option<InstallationRecord>, Error> {
    let path = directory.join(FILE);
    let failed = |source| Error::Io { what: format!("read {}", path.display()), source };
    match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| failed(error.into())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(failed(error)),
    }
}

fn write(directory: &Path, known: &InstallationRecord) -> Result<(), Error> {
    let path = directory.join(FILE);
    let replace = || {
        let text = serde_json::to_string(known).map_err(io::Error::from)?;
        let fresh = directory.join(format!("{FILE}.new"));
        fs::write(&fresh, text + "\n")?;
        fs::File::open(&fresh)?.sync_all()?;
        fs::rename(&fresh, &path)
    };
    replace().map_err(|source| Error::Io { what: format!("write {}", path.display()), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stays_with_the_directory_wherever_it_is_moved() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        fs::create_dir(&one).expect("made");
        let first = Installation::open(&one, false).expect("new");
        assert_eq!((first.moved_from(), first.earlier_name()), (None, None));
        assert_eq!(Installation::open(&one, true).expect("again"), first);
        fs::rename(&one, &two).expect("moved");
        let moved = Installation::open(&two, false).expect("moved");
        assert_eq!((moved.id(), moved.moved_from()), (first.id(), Some(one.as_path())));
        // The directory counts as moved until the move is confirmed.
        assert!(Installation::open(&two, false).expect("moved").moved_from().is_some());
        moved.record_directory().expect("written");
        assert_eq!(Installation::open(&two, false).expect("settled").moved_from(), None);
    }

    #[test]
    fn a_directory_of_before_keeps_its_first_path_as_a_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        fs::create_dir(&one).expect("made");
        let first = Installation::open(&one, true).expect("new");
        assert_eq!(first.earlier_name(), Some(one.as_path()));
        fs::rename(&one, &two).expect("moved");
        let moved = Installation::open(&two, true).expect("moved");
        moved.record_directory().expect("written");
        let settled = Installation::open(&two, true).expect("settled");
        assert_eq!(settled.earlier_name(), Some(one.as_path()));
    }

    #[test]
    fn a_copy_is_refused_while_what_it_was_made_of_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        for path in [&one, &two] {
            fs::create_dir(path).expect("made");
        }
        let first = Installation::open(&one, false).expect("new");
        fs::copy(one.join(FILE), two.join(FILE)).expect("copied");
        let refused = Installation::open(&two, false).expect_err("a copy").to_string();
        assert!(refused.contains("is a copy of") && refused.contains("delete"), "{refused}");
        fs::remove_file(two.join(FILE)).expect("deleted");
        assert_ne!(Installation::open(&two, false).expect("its own").id(), first.id());
        fs::write(one.join(FILE), "rubbish").expect("written");
        assert!(Installation::open(&one, false).is_err(), "a new id would forget what runs");
    }
}
