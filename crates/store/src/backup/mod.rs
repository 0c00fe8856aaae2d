//! Backups: every row of a database in one text file, which either database can be made from.
//!
//! ```text
//! {"format":"elastane-backup-1","program":"0.1.0","schema":3,"cluster":"6f96…","created_at":"17…"}
//! {"projects":{"id":1,"name":"team-a",…}}
//! …
//! {"file":{"name":"nodes","text":"gpus 4x16GiB\n"}}
//! {"rows":1234,"sha256":"…"}
//! ```
//!
//! Owns: that format; what may be in it is `schema::TABLES` and [`FILES`], small files of the state
//! directory that belong to the state; backups from before have none. A column that is null is left
//! out. The last line covers all before it: a file that was cut short or changed is refused before
//! anything is done.

mod dump;
mod restore;

use std::io::BufRead;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

pub use self::dump::backup;
pub use self::restore::restore;
use crate::schema;

/// The files of a state directory that are part of a backup.
pub const FILES: [&str; 3] = ["accounts.json", "node-name", "nodes"];

/// One of the files in [`FILES`], with its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedFile {
    /// Name of the file, one of [`FILES`].
    pub name: String,
    /// Content of the file.
    pub text: String,
}

/// The line of such a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLine {
    file: SavedFile,
}

const FORMAT: &str = "elastane-backup-1";
/// Longest line: a row with the largest document the interface takes, many times over.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// Header of a backup, its first line: the origin and version of its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    format: String,
    /// Version of the program that wrote it.
    pub program: String,
    /// Version of the schema its rows have.
    pub schema: i64,
    /// The cluster it is of.
    pub cluster: String,
    /// When the cluster was created, milliseconds since the epoch.
    pub created_at: String,
    /// Number of rows that follow.
    #[serde(skip)]
    pub rows: u64,
}

/// The last line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct End {
    rows: u64,
    sha256: String,
}

/// Error of a backup or a restore.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] crate::Error),
    /// The file cannot be read or written.
    #[error("the backup cannot be {what}: {cause}")]
    File {
        /// `read` or `written`.
        what: &'static str,
        /// Error of the operating system.
        cause: std::io::Error,
    },
    /// There is nothing to back up.
    #[error(
        "there is no state in {database}; name the state directory with --state-dir, or the database of \
         the server with --database"
    )]
    Nothing {
        /// Name of the database.
        database: String,
    },
    /// A file of the state directory could not be restored; the database is.
    #[error(
        "the database is restored, a file beside it is not: {cause}; restore again with --replace"
    )]
    Beside {
        /// Error of the operating system.
        cause: std::io::Error,
    },
    /// The file is no backup, or not a whole one.
    #[error("line {line}: {fault}; nothing was restored, use another file")]
    Damaged {
        /// Line of the backup, from 1.
        line: u64,
        /// Description of the damage.
        fault: String,
    },
    /// A newer program wrote it.
    #[error(
        "the backup has schema version {found}, this program knows versions up to {known}; restore it \
         with the version of elastane that wrote it ({program})"
    )]
    Newer {
        /// Version in the file.
        found: i64,
        /// Newest version this program knows.
        known: i64,
        /// Version of the program that wrote it.
        program: String,
    },
    /// There is a state already.
    #[error(
        "database {database} holds a state already; nothing was restored. Make a backup of it, then \
         restore with --replace"
    )]
    NotEmpty {
        /// Name of the database.
        database: String,
    },
}

impl BackupError {
    fn writing(cause: std::io::Error) -> Self {
        Self::File { what: "written", cause }
    }
}

/// Takes lines one by one and counts and digests them.
struct Lines<R> {
    input: R,
    digest: Sha256,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(input: R) -> Self {
        Self { input, digest: Sha256::new(), number: 0 }
    }

    fn fault(&self, fault: impl ToString) -> BackupError {
        BackupError::Damaged { line: self.number, fault: fault.to_string() }
    }

    /// The next line, and the digest of all before it.
    fn next(&mut self) -> Result<(String, String), BackupError> {
        self.number += 1;
        let before = hex(self.digest.clone());
        let mut line = String::new();
        let mut input = std::io::Read::take(&mut self.input, LINE_BYTES_MAX);
        input.read_line(&mut line).map_err(|cause| match cause.kind() {
            std::io::ErrorKind::InvalidData => self.fault("it is no text"),
            _ => BackupError::File { what: "read", cause },
        })?;
        if !line.ends_with('\n') {
            return Err(self.fault("the file ends here, before its last line"));
        }
        self.digest.update(&line);
        Ok((line, before))
    }
}

/// Reads the first line.
fn contents(lines: &mut Lines<impl BufRead>) -> Result<Contents, BackupError> {
    let (line, _) = lines.next()?;
    let contents = serde_json::from_str(&line).ok();
    let contents: Option<Contents> = contents.filter(|found: &Contents| found.format == FORMAT);
    let contents = contents.ok_or_else(|| lines.fault("this is no backup made by elastane"))?;
    if contents.schema > schema::NEWEST {
        let Contents { schema: found, program, .. } = contents;
        return Err(BackupError::Newer { found, known: schema::NEWEST, program });
    }
    if contents.schema < 1 {
        return Err(lines.fault(format!("there is no schema version {}", contents.schema)));
    }
    Ok(contents)
}

fn hex(digest: Sha256) -> String {
    use std::fmt::Write as _;
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
