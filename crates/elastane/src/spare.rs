//! Spare files in the state directory. Owns: that a server can start where nothing is free on the
//! disk, so that something can be deleted. Does not know about: the room within the database, by
//! which a server that runs goes on (`store`).

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::statvfs;

const FOLDER: &str = "spare";
/// As many files as a start makes, and as many bytes as it writes, several times over.
const FILES: u64 = 32;
const FILE_BYTES: usize = 256 << 10;
/// Only what is left beyond so many times that is taken for it.
const FREE_TIMES: u64 = 4;

/// Whether so many times as much as the files take is free. Some file systems have no number of files.
fn is_free(dir: &Path, times: u64) -> io::Result<bool> {
    let disk = statvfs(dir)?;
    let bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
    let files = if disk.f_files == 0 { u64::MAX } else { disk.f_favail };
    Ok(bytes >= times * FILES * FILE_BYTES as u64 && files >= times * FILES)
}

/// Deletes the files of a state directory where less is free than a start may need.
pub(super) fn give_up(dir: &Path) -> io::Result<()> {
    if is_free(dir, 1)? {
        return Ok(());
    }
    // There is none before the first start.
    for file in fs::read_dir(dir.join(FOLDER)).into_iter().flatten() {
        fs::remove_file(file?.path())?;
    }
    Ok(())
}

/// Makes those that are missing where there is plenty of room.
pub(super) fn keep(dir: &Path) -> io::Result<()> {
    if !is_free(dir, FREE_TIMES)? {
        return Ok(());
    }
    let folder = dir.join(FOLDER);
    fs::create_dir_all(&folder)?;
    for number in 0..FILES {
        let file = folder.join(number.to_string());
        if fs::metadata(&file).is_ok_and(|file| file.len() == FILE_BYTES as u64) {
            continue;
        }
        fs::write(file, vec![0; FILE_BYTES])?;
    }
    Ok(())
}
