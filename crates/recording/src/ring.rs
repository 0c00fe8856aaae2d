//! The segments on disk. Owns: the limit on their total size, by deletion of the oldest, and file
//! modes that let only the owner read them.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Folder of the segments in the state directory.
pub const FOLDER: &str = "recording";
const SUFFIX: &str = ".jsonl";

/// The segments; the newest is open for writing.
#[derive(Debug)]
pub(crate) struct Ring {
    dir: PathBuf,
    bytes_max: u64,
    /// Length of each segment in bytes, by its number.
    segments: BTreeMap<u64, u64>,
    open: Option<File>,
}

/// Size of a saved recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// Number of segments.
    pub segments: usize,
    /// Number of bytes.
    pub bytes: u64,
}

/// Length in bytes of each segment in a folder, by number.
fn segments(dir: &Path) -> io::Result<BTreeMap<u64, u64>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)?.parse().ok());
        if let Some(number) = number {
            found.insert(number, entry.metadata()?.len());
        }
    }
    Ok(found)
}

fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:08}{SUFFIX}"))
}

impl Ring {
    pub(crate) fn open(dir: &Path, bytes_max: u64) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let segments = segments(dir)?;
        Ok(Self { dir: dir.to_owned(), bytes_max, segments, open: None })
    }

    /// Begins a segment.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        let number = self.segments.keys().next_back().map_or(1, |last| last + 1);
        let mut options = OpenOptions::new();
        let file = options.append(true).create_new(true).mode(0o600);
        self.open = Some(file.open(path(&self.dir, number))?);
        self.segments.insert(number, 0);
        Ok(())
    }

    /// Appends to the newest segment; returns `false` if there is no room for the text.
    pub(crate) fn add(&mut self, text: &str) -> io::Result<bool> {
        while self.bytes() + text.len() as u64 > self.bytes_max {
            if self.segments.len() < 2 {
                return Ok(false);
            }
            if let Some((oldest, _)) = self.segments.pop_first() {
                fs::remove_file(path(&self.dir, oldest))?;
            }
        }
        if let (Some(file), Some(mut bytes)) = (&mut self.open, self.segments.last_entry()) {
            file.write_all(text.as_bytes())?;
            *bytes.get_mut() += text.len() as u64;
        }
        Ok(true)
    }

    fn bytes(&self) -> u64 {
        self.segments.values().sum()
    }

    /// Length of the newest segment in bytes.
    pub(crate) fn newest_bytes(&self) -> u64 {
        self.segments.values().next_back().copied().unwrap_or(0)
    }
}

/// Writes all segments of a folder one after the other, the oldest first, without a line that is
/// not complete. A server may go on writing meanwhile.
///
/// # Errors
/// A file cannot be read or written.
pub fn save(dir: &Path, out: &mut dyn Write) -> io::Result<Saved> {
    let mut saved = Saved { segments: 0, bytes: 0 };
    for number in segments(dir)?.into_keys() {
        let bytes = match fs::read(path(dir, number)) {
            Ok(bytes) => bytes,
            // It was the oldest and was deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        if whole > 0 {
            out.write_all(&bytes[..whole])?;
            saved.segments += 1;
            saved.bytes += whole as u64;
        }
    }
    Ok(saved)
}
