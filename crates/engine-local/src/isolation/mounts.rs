//! Other paths of a folder: where its file system is mounted more than once. Owns: reading the
//! mount table. A folder hidden at one path would otherwise be visible at another.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const TABLE: &str = "/proc/self/mountinfo";

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    device: String,
    /// The part of the file system it shows.
    root: PathBuf,
    point: PathBuf,
}

/// The paths at which a folder or file is, besides this one.
pub(super) fn other_paths(path: &Path) -> io::Result<Vec<PathBuf>> {
    let identity = |path: &Path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    let own = identity(path);
    let mut found = aliases(&parse(&fs::read_to_string(TABLE)?), path);
    found.retain(|other| identity(other).is_some_and(|other| Some(other) == own));
    Ok(found)
}

fn aliases(mounts: &[Mount], path: &Path) -> Vec<PathBuf> {
    // The last of several mounts at one place is on top.
    let around = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    let Some(own) = around.max_by_key(|mount| mount.point.components().count()) else {
        return Vec::new();
    };
    let Ok(below) = path.strip_prefix(&own.point) else { return Vec::new() };
    let inside = own.root.join(below);
    let same = mounts.iter().filter(|mount| mount.device == own.device);
    let alias = |mount: &Mount| Some(mount.point.join(inside.strip_prefix(&mount.root).ok()?));
    same.filter_map(alias).filter(|alias| alias != path).collect()
}

fn parse(table: &str) -> Vec<Mount> {
    let line = |line: &str| {
        let mut fields = line.split(' ').skip(2);
        let device = fields.next()?.to_owned();
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        Some(Mount { device, root: root.into(), point: point.into() })
    };
    table.lines().filter_map(line).collect()
}

/// Decodes blanks, tabs, line ends and backslashes, written as three octal digits.
fn unescaped(text: &str) -> String {
    let all = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    all.iter().fold(text.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_found_wherever_its_file_system_is_mounted() {
        let mounts = parse(
            "20 1 8:1 / / rw - ext4 /dev/sda rw\n\
             21 20 8:2 / /home rw - ext4 /dev/sdb rw\n\
             22 20 8:2 /ann /srv/ann\\040s rw - ext4 /dev/sdb rw\n\
             23 20 8:2 /bob /srv/bob rw - ext4 /dev/sdb rw\n\
             24 20 0:5 / /proc rw - proc proc rw\n",
        );
        let of = |path: &str| aliases(&mounts, Path::new(path));
        assert_eq!(of("/home/ann/state"), [PathBuf::from("/srv/ann s/state")]);
        assert_eq!(of("/srv/ann s/state"), [PathBuf::from("/home/ann/state")]);
        assert!(of("/home/cat/state").is_empty() && of("/var/lib/state").is_empty());
    }
}
