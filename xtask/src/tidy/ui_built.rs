//! The built web interface. Owns: how large it may be. Does not know about: what is in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::Fault;

const DIST: &str = "crates/ui-dist/dist";
const PAGE: &str = "index.html";
/// Most bytes of scripts that a browser reads before the first page, compressed.
const FIRST_MAX: usize = 220_000;
/// All files, as they are.
const ALL_MAX: usize = 2_500_000;

/// The built files by their names from the folder.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Reads the built files; none where there are none.
pub(super) fn read(root: &Path) -> Result<Files> {
    let mut files = Files::new();
    for folder in ["", "_ui/"] {
        let path = root.join(DIST).join(folder);
        if !path.exists() {
            continue;
        }
        for entry in fs::read_dir(&path).with_context(|| path.display().to_string())? {
            let file = entry?.path();
            if file.is_file() {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                files.insert(format!("{folder}{name}"), fs::read(&file)?);
            }
        }
    }
    Ok(files)
}

pub(super) fn check(files: &Files) -> Vec<Fault> {
    let mut faults = Vec::new();
    let all: usize = files.values().map(Vec::len).sum();
    if all > ALL_MAX {
        let what = format!("{all} bytes; at most {ALL_MAX}");
        faults.push(Fault::new(DIST, 0, what));
    }
    let page = files.get(PAGE).map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
    let first: usize = scripts(&page).filter_map(|name| files.get(name)).map(|js| packed(js)).sum();
    if first > FIRST_MAX {
        let what = format!("scripts of {first} bytes, compressed; at most {FIRST_MAX}");
        faults.push(Fault::new(&format!("{DIST}/{PAGE}"), 0, what));
    }
    faults
}

/// The scripts that the page names.
fn scripts(page: &str) -> impl Iterator<Item = &str> {
    page.split('"').filter(|part| part.ends_with(".js")).filter_map(|part| part.strip_prefix('/'))
}

fn packed(bytes: &[u8]) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().map_or(0, |all| all.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that cannot be compressed, the same each time.
    fn noise(count: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    #[test]
    fn the_first_page_and_all_files_are_small() {
        let page = "<script src=\"/_ui/a.js\"></script><link href=\"/_ui/b.js\">";
        let mut files = Files::from([
            (PAGE.to_owned(), page.into()),
            ("_ui/a.js".to_owned(), noise(150_000)),
            ("_ui/b.js".to_owned(), vec![b' '; 1_000_000]),
            ("_ui/later.js".to_owned(), noise(150_000)),
        ]);
        assert_eq!(check(&files), []);
        files.insert("_ui/b.js".to_owned(), noise(150_000));
        let said = check(&files);
        assert_eq!(said.len(), 1);
        assert!(said[0].what.ends_with("compressed; at most 220000"), "{said:?}");
        files.insert("_ui/other.txt".to_owned(), vec![b' '; 2_500_000]);
        assert_eq!(check(&files).len(), 2);
    }
}
