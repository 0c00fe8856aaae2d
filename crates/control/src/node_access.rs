//! Access of workloads to the node. Owns: which folders every workload may mount and which none
//! may. Does not know about: the submitter, and how a run gets them.

use std::path::{Path, PathBuf};

/// Access of workloads to the node, beside their place on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeAccess {
    /// Folders that every workload may mount, with all below them.
    open: Vec<PathBuf>,
    /// Folders and files that no workload may mount, nor anything around or below them.
    private: Vec<PathBuf>,
    /// True if everyone may have rights over the node; else only administrators give them.
    pub privileged: bool,
}

impl NodeAccess {
    /// `open`: folders that everyone may have, with all below them. `private`: folders and files
    /// that no workload may mount, nor anything around or below them, such as the state directory.
    /// Links on the way to them are followed now and never again. No rights over the node are
    /// granted yet.
    ///
    /// # Errors
    /// One of them is not there.
    pub fn new(open: &[PathBuf], private: &[PathBuf]) -> Result<Self, String> {
        let real = |paths: &[PathBuf]| -> Result<Vec<_>, _> {
            paths.iter().map(|path| there(path)).collect()
        };
        Ok(Self { open: real(open)?, private: real(private)?, privileged: false })
    }

    /// The folder itself, without links on the way to it.
    ///
    /// # Errors
    /// It does not exist, or no workload may mount it.
    pub fn real(&self, path: &Path) -> Result<PathBuf, String> {
        let shown = path.display();
        let real = there(path)?;
        for private in &self.private {
            if real.starts_with(private) || private.starts_with(&real) {
                return Err(format!(
                    "{shown} holds, or is part of, what the server keeps for itself, and is mounted \
                     for nobody; name another folder"
                ));
            }
        }
        Ok(real)
    }

    /// True if everyone may have this folder, a real one.
    #[must_use]
    pub fn is_open(&self, real: &Path) -> bool {
        self.open.iter().any(|open| real.starts_with(open))
    }
}

fn there(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| {
        let shown = path.display();
        format!("{shown} cannot be mounted from this machine: {error}; name one that is there")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn paths(dir: &Path) -> NodeAccess {
        for folder in ["data/sets", "state/db"] {
            fs::create_dir_all(dir.join(folder)).unwrap();
        }
        NodeAccess::new(&[dir.join("data")], &[dir.join("state")]).unwrap()
    }

    #[test]
    fn nobody_gets_what_the_server_keeps_nor_what_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let paths = paths(&dir);
        symlink(dir.join("state"), dir.join("data/way")).unwrap();
        for path in ["state", "state/db", "", "data/way", "data/way/db", "data/../state"] {
            let why = paths.real(&dir.join(path)).unwrap_err();
            assert!(why.contains("for nobody"), "{path}: {why}");
        }
        assert!(paths.real(Path::new("/no/such")).unwrap_err().contains("is there"));
    }

    #[test]
    fn open_is_what_really_lies_in_an_open_folder() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let paths = paths(&dir);
        symlink("/usr", dir.join("data/usr")).unwrap();
        let open = |path: &str| paths.is_open(&paths.real(&dir.join(path)).unwrap());
        assert!(open("data") && open("data/sets"));
        assert!(!open("data/usr"), "a link out of it is not in it");
    }

    #[test]
    fn a_link_that_takes_the_place_of_an_open_folder_opens_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let paths = paths(&dir);
        fs::rename(dir.join("data"), dir.join("old")).unwrap();
        symlink("/usr", dir.join("data")).unwrap();
        assert!(!paths.is_open(&paths.real(&dir.join("data")).unwrap()));
    }

    #[test]
    fn what_is_to_be_kept_from_everybody_has_to_be_there() {
        let why = NodeAccess::new(&[], &["/no/such".into()]).unwrap_err();
        assert!(why.contains("/no/such"), "{why}");
    }
}
