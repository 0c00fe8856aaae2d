//! The owner of a container, network or volume. Owns: its labels, the names derived from it, and
//! the log limit of containers. Does not know about the daemon.

use std::fmt::Display;

use engine::Installation;
use uuid::Uuid;

/// The installation that owns an object, by its id.
pub(crate) const INSTALLATION_LABEL: &str = "elastane.installation";
/// The state directory of the server, for people; the owner of objects from before there were ids.
pub(crate) const STATE_DIR_LABEL: &str = "elastane.state-dir";

/// Files of a container's output: when one is full the oldest is deleted.
const LOG_FILES: u64 = 4;

/// Part of the free space that a container's output may have, within these bytes at least.
const FREE_PART: u64 = 8;
const LOG_BYTES_LEAST: u64 = 1 << 20;

/// An installation as an owner of objects.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    id: Uuid,
    state_dir: String,
    /// The state directory, to find objects from before there were ids.
    earlier: Option<String>,
    output_bytes_max: u64,
}

impl Owner {
    pub(crate) fn new(installation: &Installation, output_bytes_max: u64) -> Self {
        Self {
            id: installation.id(),
            state_dir: installation.directory().display().to_string(),
            earlier: installation.earlier_name().map(|path| path.display().to_string()),
            output_bytes_max,
        }
    }

    /// The labels of its objects.
    pub(crate) fn labels(&self) -> [(String, String); 2] {
        let id = (INSTALLATION_LABEL.to_owned(), self.id.to_string());
        [id, (STATE_DIR_LABEL.to_owned(), self.state_dir.clone())]
    }

    /// The filters that find its containers, one label each; check the results with
    /// [`Owner::owns`].
    pub(crate) fn filters(&self) -> Vec<String> {
        let by_path = self.earlier.as_ref().map(|path| format!("{STATE_DIR_LABEL}={path}"));
        [Some(format!("{INSTALLATION_LABEL}={}", self.id)), by_path].into_iter().flatten().collect()
    }

    /// True if it owns an object with these labels.
    pub(crate) fn owns<'a>(&self, label: impl Fn(&str) -> Option<&'a String>) -> bool {
        match label(INSTALLATION_LABEL) {
            Some(id) => *id == self.id.to_string(),
            None => self.earlier.is_some() && label(STATE_DIR_LABEL) == self.earlier.as_ref(),
        }
    }

    /// The prefix of names. It never changes, so named objects are found again.
    pub(crate) fn name(&self) -> Uuid {
        let name = self.earlier.clone().unwrap_or_else(|| self.id.to_string());
        Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes())
    }

    /// The options of the daemon's log files, on a disk with this much free space.
    pub(crate) fn log_options(&self, free_bytes: u64) -> [(String, String); 2] {
        let option = |name: &str, value: &dyn Display| (name.to_owned(), value.to_string());
        let room = (free_bytes / FREE_PART).max(LOG_BYTES_LEAST);
        let each = (self.output_bytes_max.min(room) / LOG_FILES).max(1);
        [option("max-size", &each), option("max-file", &LOG_FILES)]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use super::*;

    pub(crate) fn owner() -> Owner {
        let (id, state_dir) = (Uuid::from_u128(1), "/state".to_owned());
        Owner { id, state_dir, earlier: None, output_bytes_max: 4096 }
    }

    fn owns(owner: &Owner, labels: &[(String, String)]) -> bool {
        let labels: BTreeMap<_, _> = labels.iter().cloned().collect();
        owner.owns(|name| labels.get(name))
    }

    #[test]
    fn what_was_labelled_by_a_path_is_its_own_after_a_move_and_no_other_installations() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        let open = |dir: &Path, used| Installation::open(dir, used).expect("opened");
        fs::create_dir(&one).expect("made");
        let before = Owner::new(&open(&one, true), 1);
        let old_label = [(STATE_DIR_LABEL.to_owned(), one.display().to_string())];
        assert!(owns(&before, &old_label) && owns(&before, &before.labels()));
        fs::rename(&one, &two).expect("moved");
        let moved = Owner::new(&open(&two, true), 1);
        assert!(owns(&moved, &old_label) && owns(&moved, &before.labels()));
        assert_eq!(moved.name(), before.name(), "volumes keep their names");
        // Another one in its place.
        fs::create_dir(&one).expect("made");
        let other = Owner::new(&open(&one, false), 1);
        assert!(!owns(&other, &old_label) && !owns(&other, &before.labels()));
        assert!(!owns(&moved, &other.labels()), "although the path is its old name");
    }

    #[test]
    fn the_output_is_kept_in_a_few_files_that_make_up_the_bound() {
        let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let of = |output_bytes_max, free_bytes| {
            Owner { output_bytes_max, ..owner() }.log_options(free_bytes)
        };
        for (most, free, each) in
            [(4096, u64::MAX, "1024"), (256 << 20, 160 << 20, "5242880"), (256 << 20, 0, "262144")]
        {
            assert_eq!(of(most, free), [option("max-size", each), option("max-file", "4")]);
        }
    }
}
