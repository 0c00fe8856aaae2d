//! The journal on a disk: what a master knew when it died. Owns: the files, when they are synced,
//! and what counts of a file whose end was not written. Does not know about: what an entry means.
//!
//! A file `journal-N.jsonl` has a line for each entry: a checksum, and JSON. Its first line is the
//! whole state before the others. When it is long, a file N+1 is written beside it, synced and
//! renamed into place, and only then the old one is removed; the highest number counts.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::Sync;

/// A file is replaced when it has so many bytes, and four times as many as its first line.
const BYTES_MAX: u64 = 16 << 20;

/// Error of a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file or folder cannot be read or written.
    #[error("journal {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Another master has the journal.
    #[error("journal {path}: another master of this job is running; stop it first")]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// A line before the last one is damaged.
    #[error("journal {path}, line {line}: {what}; restore the file, or begin with an empty folder")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Description of the damage.
        what: String,
    },
    /// The journal is of another job.
    #[error("journal {path} is of another job; give an empty folder, or the settings of that job")]
    OtherJob {
        /// The folder.
        path: PathBuf,
    },
}

/// An entry with its time.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Timed<E> {
    pub at_ms: u64,
    pub entry: E,
}

/// State and entries read from the disk.
pub(crate) struct JournalContents<S, E> {
    pub state: S,
    pub entries: Vec<Timed<E>>,
}

pub(crate) struct Journal {
    folder: PathBuf,
    /// Held as long as the journal is open.
    _lock: File,
    number: u64,
    file: File,
    sync: Sync,
    /// Lines that are not in the file yet.
    buffer: Vec<u8>,
    bytes: u64,
    first_bytes: u64,
}

fn at(path: &Path) -> impl Fn(io::Error) -> JournalError + '_ {
    |source| JournalError::Io { path: path.to_owned(), source }
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("journal-{number}.jsonl"))
}

/// A line of a value.
fn line(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_vec(value)?;
    let mut line = checksum(&json).into_bytes();
    line.push(b' ');
    line.extend(json);
    line.push(b'\n');
    Ok(line)
}

fn checksum(json: &[u8]) -> String {
    let digest = Sha256::digest(json);
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// The JSON of a line without its end, if it is as it was written.
fn json(line: &[u8]) -> Option<&[u8]> {
    let (sum, json) = line.split_at_checked(9)?;
    (sum[..8] == *checksum(json).as_bytes() && sum[8] == b' ').then_some(json)
}

impl Journal {
    /// Opens the journal in a folder, or begins one with this state.
    pub(crate) fn open<S: Serialize + DeserializeOwned, E: DeserializeOwned>(
        folder: &Path,
        sync: Sync,
        begin: impl FnOnce() -> S,
    ) -> Result<(Self, JournalContents<S, E>), JournalError> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        let lock_path = folder.join("lock");
        let lock = File::create(&lock_path).map_err(at(&lock_path))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => JournalError::Locked { path: folder.to_owned() },
            TryLockError::Error(source) => JournalError::Io { path: lock_path.clone(), source },
        })?;
        let Some(number) = newest(folder)? else {
            let state = begin();
            let (file, bytes) = create(folder, 1, &state)?;
            let journal = Self::of(folder, lock, (1, file), sync, (bytes, bytes));
            return Ok((journal, JournalContents { state, entries: Vec::new() }));
        };
        let path = path(folder, number);
        let mut file = OpenOptions::new().read(true).write(true).open(&path).map_err(at(&path))?;
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(at(&path))?;
        let (found, (first, whole)) = read(&path, &content)?;
        // The master sent no answer for an entry that it did not finish writing.
        file.set_len(whole).map_err(at(&path))?;
        file.seek(SeekFrom::Start(whole)).map_err(at(&path))?;
        file.sync_all().map_err(at(&path))?;
        Ok((Self::of(folder, lock, (number, file), sync, (whole, first)), found))
    }

    fn of(
        folder: &Path,
        lock: File,
        (number, file): (u64, File),
        sync: Sync,
        (bytes, first_bytes): (u64, u64),
    ) -> Self {
        let (folder, buffer) = (folder.to_owned(), Vec::new());
        Self { folder, _lock: lock, number, file, sync, buffer, bytes, first_bytes }
    }

    /// The line of an entry, for [`Self::append`].
    pub(crate) fn line<E: Serialize>(&self, timed: &Timed<E>) -> Result<Vec<u8>, JournalError> {
        line(timed).map_err(|error| at(&self.folder)(error.into()))
    }

    pub(crate) fn append(&mut self, line: &[u8]) {
        self.buffer.extend(line);
    }

    /// Writes what was appended. After that it may be answered.
    pub(crate) fn commit(&mut self) -> Result<(), JournalError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let path = path(&self.folder, self.number);
        self.file.write_all(&self.buffer).map_err(at(&path))?;
        if self.sync == Sync::Always {
            self.file.sync_data().map_err(at(&path))?;
        }
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// True if the file is long enough to begin another.
    pub(crate) fn is_long(&self) -> bool {
        self.bytes > BYTES_MAX.max(self.first_bytes.saturating_mul(4))
    }

    /// Begins another file with this state, which has everything that was appended.
    pub(crate) fn rotate<S: Serialize>(&mut self, state: &S) -> Result<(), JournalError> {
        self.commit()?;
        let (file, bytes) = create(&self.folder, self.number + 1, state)?;
        let old = path(&self.folder, self.number);
        (self.file, self.number, self.bytes, self.first_bytes) =
            (file, self.number + 1, bytes, bytes);
        fs::remove_file(&old).map_err(at(&old))
    }
}

fn newest(folder: &Path) -> Result<Option<u64>, JournalError> {
    let mut newest = None;
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let name = entry.map_err(at(folder))?.file_name();
        let name = name.to_string_lossy();
        let number = name.strip_prefix("journal-").and_then(|rest| rest.strip_suffix(".jsonl"));
        newest = newest.max(number.and_then(|number| number.parse().ok()));
    }
    Ok(newest)
}

fn create<S: Serialize>(
    folder: &Path,
    number: u64,
    state: &S,
) -> Result<(File, u64), JournalError> {
    let path = path(folder, number);
    let beside = path.with_extension("partial");
    let write = || {
        let line = line(state)?;
        let mut file = File::create(&beside)?;
        file.write_all(&line)?;
        file.sync_all()?;
        fs::rename(&beside, &path)?;
        File::open(folder)?.sync_all()?;
        Ok((file, line.len() as u64))
    };
    write().map_err(at(&path))
}

type Read<S, E> = (JournalContents<S, E>, (u64, u64));

/// Contents of a file, the length of its first line, and of all valid lines.
fn read<S: DeserializeOwned, E: DeserializeOwned>(
    path: &Path,
    content: &[u8],
) -> Result<Read<S, E>, JournalError> {
    let damaged = |line: usize, what: String| JournalError::Damaged {
        path: path.to_owned(),
        line: line + 1,
        what,
    };
    let mut state = None;
    let (mut entries, mut first, mut whole) = (Vec::new(), 0, 0);
    let mut lines = content.split_inclusive(|byte| *byte == b'\n').enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let text = line.strip_suffix(b"\n").and_then(json);
        let Some(text) = text else {
            // A write that was cut off can leave the end of the file in any form; what comes
            // before it was synced.
            if lines.any(|(_, line)| line.strip_suffix(b"\n").and_then(json).is_some()) {
                return Err(damaged(number, "the checksum does not match".to_owned()));
            }
            break;
        };
        let wrong = |error: serde_json::Error| damaged(number, error.to_string());
        match &state {
            None => {
                state = Some(serde_json::from_slice(text).map_err(wrong)?);
                first = line.len();
            }
            Some(_) => entries.push(serde_json::from_slice(text).map_err(wrong)?),
        }
        whole += line.len();
    }
    let state = state.ok_or_else(|| damaged(0, "it has no state".to_owned()))?;
    Ok((JournalContents { state, entries }, (first as u64, whole as u64)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Journal, JournalContents, JournalError, Timed};
    use crate::config::Sync;

    fn open(
        folder: &std::path::Path,
    ) -> Result<(Journal, JournalContents<u64, String>), JournalError> {
        Journal::open(folder, Sync::Always, || 7)
    }

    fn put(journal: &mut Journal, text: &str) {
        let line = journal.line(&Timed { at_ms: 1, entry: text }).expect("a line");
        journal.append(&line);
        journal.commit().expect("written");
    }

    fn texts(found: &JournalContents<u64, String>) -> Vec<&str> {
        found.entries.iter().map(|timed| timed.entry.as_str()).collect()
    }

    #[test]
    fn what_was_committed_is_found_and_an_end_that_was_cut_off_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, found) = open(folder.path()).expect("opens");
        assert_eq!((found.state, texts(&found).len()), (7, 0));
        ["one", "two"].iter().for_each(|text| put(&mut journal, text));
        drop(journal);
        let path = folder.path().join("journal-1.jsonl");
        let whole = fs::read(&path).expect("a file");
        let ends: Vec<_> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
        for cut in ends[0] + 1..=whole.len() {
            fs::write(&path, &whole[..cut]).expect("written");
            let (_, found) = open(folder.path()).expect("opens");
            let lines = ends.iter().filter(|end| **end < cut).count();
            assert_eq!(texts(&found), ["one", "two"][..lines - 1], "cut at {cut}");
        }
    }

    #[test]
    fn it_goes_on_behind_an_end_that_was_cut_off() {
        let folder = tempfile::tempdir().expect("a folder");
        put(&mut open(folder.path()).expect("opens").0, "one");
        let path = folder.path().join("journal-1.jsonl");
        let mut content = fs::read(&path).expect("a file");
        content.extend(b"0badf00d {\"at");
        fs::write(&path, content).expect("written");
        put(&mut open(folder.path()).expect("opens").0, "two");
        let (_, found) = open(folder.path()).expect("opens");
        assert_eq!(texts(&found), ["one", "two"]);
    }

    #[test]
    fn damage_before_the_end_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, _) = open(folder.path()).expect("opens");
        ["one", "two", "three"].iter().for_each(|text| put(&mut journal, text));
        drop(journal);
        let path = folder.path().join("journal-1.jsonl");
        let content = fs::read_to_string(&path).expect("a file").replace("two", "tow");
        fs::write(&path, content).expect("written");
        let error = open(folder.path()).err().expect("damaged").to_string();
        assert!(error.contains("line 3: the checksum does not match"), "{error}");
    }

    #[test]
    fn a_long_one_begins_again_with_the_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, _) = open(folder.path()).expect("opens");
        put(&mut journal, "one");
        journal.rotate(&8_u64).expect("rotates");
        put(&mut journal, "two");
        drop(journal);
        let (_, found) = open(folder.path()).expect("opens");
        assert_eq!((found.state, texts(&found)), (8, vec!["two"]));
        assert!(!folder.path().join("journal-1.jsonl").exists());
    }

    #[test]
    fn two_masters_do_not_write_one_journal() {
        let folder = tempfile::tempdir().expect("a folder");
        let _first = open(folder.path()).expect("opens");
        let error = open(folder.path()).err().expect("locked").to_string();
        assert!(error.contains("another master of this job is running"), "{error}");
    }
}
