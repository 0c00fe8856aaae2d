//! Files of checkpoints, on a disk or in a bucket (`s3://BUCKET/KEY`). Owns: that one is there
//! whole or not at all, wherever it is. Does not know about: what is in it.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use buckets::Store;
use tokio::runtime::Handle;

/// Bucket and key of an object; `None` if the path is on a disk.
fn in_bucket(path: &Path) -> Option<(&str, &str)> {
    buckets::parts(path.to_str()?)
}

/// Calls the server of a bucket, from a thread that may block.
fn ask<T>(bucket: &str, what: impl AsyncFnOnce(Store) -> io::Result<T>) -> io::Result<T> {
    let store = Store::of(bucket, |name| std::env::var(name).ok())?;
    Handle::current().block_on(what(store))
}

/// Checks that there is a login for a path in a bucket.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    match in_bucket(path) {
        Some((bucket, _)) => Store::of(bucket, |name| std::env::var(name).ok()).map(drop),
        None => Ok(()),
    }
}

/// Writes a file; `beside` is where it is until it is complete.
pub(crate) fn write(path: &Path, beside: &Path, parts: &[&[u8]]) -> io::Result<()> {
    if let Some((bucket, key)) = in_bucket(path) {
        let content = parts.concat();
        return ask(bucket, async |store| store.put(key, content).await);
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut file = File::create(beside)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_all()?;
    fs::rename(beside, path)?;
    File::open(folder)?.sync_all()?;
    File::open(folder.parent().unwrap_or(folder))?.sync_all()
}

/// A file, or its beginning.
pub(crate) fn read(path: &Path, most: Option<u64>) -> io::Result<Vec<u8>> {
    if let Some((bucket, key)) = in_bucket(path) {
        let found = ask(bucket, async |store| store.get(key, most).await)?;
        return found.ok_or_else(|| io::ErrorKind::NotFound.into());
    }
    let Some(most) = most else { return fs::read(path) };
    let mut start = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut start)?;
    Ok(start)
}

/// The names in a folder. A bucket knows none that is empty.
pub(crate) fn names(folder: &Path) -> io::Result<Vec<String>> {
    if let Some((bucket, key)) = in_bucket(folder) {
        let key = key.trim_end_matches('/');
        let folder = if key.is_empty() { String::new() } else { format!("{key}/") };
        return ask(bucket, async |store| store.names(&folder).await);
    }
    let name = |entry: io::Result<fs::DirEntry>| {
        entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
    };
    fs::read_dir(folder)?.map(name).collect()
}

/// Removes a file, and its folder with the last one. A missing file is no error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    if let Some((bucket, key)) = in_bucket(path) {
        return ask(bucket, async |store| store.remove(key).await);
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    use io::ErrorKind::{DirectoryNotEmpty, NotFound};
    match fs::remove_dir(path.parent().unwrap_or(path)) {
        Err(error) if !matches!(error.kind(), NotFound | DirectoryNotEmpty) => Err(error),
        _ => Ok(()),
    }
}
