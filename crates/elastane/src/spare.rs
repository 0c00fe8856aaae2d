//! Spare files in the state directory. Owns: that a server can start on a full disk, so that
//! something can be deleted. Does not know about: the reserved room within the database, which a
//! running server uses (`store`), except for the time of its reservation.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cli_kit::exit::chain;
use rustix::fs::statvfs;

/// Interval of reservations, and wait after a failed one.
const EVERY: Duration = Duration::from_secs(3600);
const AGAIN: Duration = Duration::from_secs(60);
const FOLDER: &str = "spare";
/// Number of files: several times the files and the bytes that a start needs.
const FILES: u64 = 32;
const FILE_BYTES: usize = 256 << 10;
/// Spare files are created only if this multiple of their size is free.
const FREE_TIMES: u64 = 4;

/// True if this multiple of the size of the spare files is free. Some file systems do not limit the
/// number of files.
fn is_free(dir: &Path, times: u64) -> io::Result<bool> {
    let disk = statvfs(dir)?;
    let bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
    let files = if disk.f_files == 0 { u64::MAX } else { disk.f_favail };
    Ok(bytes >= times * FILES * FILE_BYTES as u64 && files >= times * FILES)
}

/// Deletes the spare files of a state directory if less is free than a start may need.
pub(super) fn give_up(dir: &Path) -> io::Result<()> {
    if is_free(dir, 1)? {
        return Ok(());
    }
    // There are none before the first start.
    for file in fs::read_dir(dir.join(FOLDER)).into_iter().flatten() {
        fs::remove_file(file?.path())?;
    }
    Ok(())
}

/// Reserves room within the database and outside it for a full disk; repeated each hour, as it is
/// used up then. With little free space nothing is reserved.
pub(super) async fn keep_room(store: store::Store, dir: PathBuf) {
    loop {
        let kept = keep_both(&store, &dir).await;
        if let Err(why) = &kept {
            tracing::warn!("no room is kept for a full disk: {why}");
        }
        tokio::time::sleep(if kept == Ok(true) { EVERY } else { AGAIN }).await;
    }
}

/// Returns false if little is free.
async fn keep_both(store: &store::Store, dir: &Path) -> Result<bool, String> {
    if !is_free(dir, FREE_TIMES).map_err(|error| error.to_string())? {
        return Ok(false);
    }
    store.keep_room().await.map_err(|error| chain(&error))?;
    let own = dir.to_owned();
    let spare = tokio::task::spawn_blocking(move || keep(&own)).await;
    spare.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    Ok(true)
}

/// Creates the missing files.
fn keep(dir: &Path) -> io::Result<()> {
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
