//! What of the node workloads may have. Owns: which folders are everyone's and which are nobody's, and
//! that what was allowed is still the same folder when a run starts: a link put in its place would lead
//! elsewhere. Refuses to know: who asks.

use std::path::{Path, PathBuf};

use engine::{Mount, MountSource};

/// What of the node workloads may have beside their place on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeAccess {
    /// Folders that everyone may have, with all below them.
    pub open: Vec<PathBuf>,
    /// Folders and files that nobody gets, nor anything around or below them: the state directory.
    pub private: Vec<PathBuf>,
    /// Whether everyone may have rights over the node; else only administrators give them.
    pub privileged: bool,
}

impl NodeAccess {
    /// The folder itself, without links on the way to it.
    ///
    /// # Errors
    /// It is not there, or nobody gets it.
    pub fn real(&self, path: &Path) -> Result<PathBuf, String> {
        let shown = path.display();
        let real = path.canonicalize().map_err(|error| {
            format!("{shown} cannot be mounted from this machine: {error}; name one that is there")
        })?;
        let private = self.private.iter().filter_map(|path| path.canonicalize().ok());
        for private in private {
            if real.starts_with(&private) || private.starts_with(&real) {
                return Err(format!(
                    "{shown} holds, or is part of, what the server keeps for itself, and is mounted \
                     for nobody; name another folder"
                ));
            }
        }
        Ok(real)
    }

    /// Whether everyone may have this folder, a real one.
    #[must_use]
    pub fn is_open(&self, real: &Path) -> bool {
        let mut open = self.open.iter().filter_map(|path| path.canonicalize().ok());
        open.any(|open| real.starts_with(open))
    }

    /// Refuses a mount whose folder is another than when it was allowed.
    pub(crate) fn check(&self, mount: &Mount) -> Result<(), String> {
        let MountSource::HostPath { path, .. } = &mount.from else { return Ok(()) };
        if self.real(path)? == *path {
            return Ok(());
        }
        Err(format!(
            "{} was replaced by a link since the workload was submitted; submit it again",
            path.display()
        ))
    }
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
        let (open, private) = (vec![dir.join("data")], vec![dir.join("state")]);
        NodeAccess { open, private, privileged: false }
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
    fn a_link_that_takes_the_place_of_a_folder_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (paths, sets) = (paths(&dir), dir.join("data/sets"));
        let from = MountSource::HostPath { path: sets.clone(), propagation: Default::default() };
        let mount = Mount { to: "/data".into(), from, read_only: true };
        paths.check(&mount).unwrap();
        fs::remove_dir(&sets).unwrap();
        symlink("/etc", &sets).unwrap();
        assert!(paths.check(&mount).unwrap_err().contains("link"));
    }
}
