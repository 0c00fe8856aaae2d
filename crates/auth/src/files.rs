//! Files only their owner may read. Owns: permissions and whole-or-nothing replacement.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::Error;

/// Reads a private file; none if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let fault = |source| Error::Access { what: "read", path: path.to_owned(), source };
    let meta = match fs::metadata(path) {
        Err(missing) if missing.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(fault)?,
    };
    if meta.permissions().mode() & 0o077 != 0 {
        return Err(Error::Exposed { path: path.to_owned() });
    }
    fs::read(path).map(Some).map_err(fault)
}

/// Writes a private file; readers see the old content or the new, never a part.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    let fault = |source| Error::Access { what: "write", path: path.to_owned(), source };
    let fresh = path.with_extension("new");
    // Left over from a crash in the middle of this function; its mode cannot be trusted.
    match fs::remove_file(&fresh) {
        Err(gone) if gone.kind() == ErrorKind::NotFound => {}
        other => other.map_err(fault)?,
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)
        .map_err(fault)?;
    file.write_all(content).map_err(fault)?;
    file.sync_all().map_err(fault)?;
    fs::rename(&fresh, path).map_err(fault)
}

/// Overwrites an existing private file in place, which needs no room on the disk. Readers may see a
/// part for a moment.
pub(crate) fn overwrite(path: &Path, content: &[u8]) -> Result<(), Error> {
    let fault = |source| Error::Access { what: "write", path: path.to_owned(), source };
    let mut file = fs::OpenOptions::new().write(true).open(path).map_err(fault)?;
    if file.metadata().map_err(fault)?.permissions().mode() & 0o077 != 0 {
        return Err(Error::Exposed { path: path.to_owned() });
    }
    file.write_all(content).map_err(fault)?;
    file.set_len(content.len() as u64).map_err(fault)?;
    file.sync_all().map_err(fault)
}
