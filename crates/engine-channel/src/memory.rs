//! Copies of checkpoints that a run leaves in memory. Owns: which of them are whole, and writing
//! the newest to its path. Does not know how a copy is made: the Python package does that.
//!
//! ```text
//! SLOT-N.bin    a checkpoint
//! SLOT-N.json   says that it is whole, and where it belongs; written last
//! SLOT.part     one that was being written
//! SLOT.lock     held by the process that has the slot
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::Deserialize;

/// Manifest of a copy, from its `.json` file.
#[derive(Debug, Deserialize)]
struct Manifest {
    /// Path of the checkpoint.
    path: PathBuf,
    bytes: u64,
    /// Time of the content, by the machine's clock, in nanoseconds.
    saved_ns: u64,
    written: bool,
}

/// A copy that is whole.
#[derive(Debug)]
struct Whole {
    slot: String,
    content: PathBuf,
    of: Manifest,
}

/// Whole copies and all files of a slot.
#[derive(Debug, Default)]
struct Slot {
    copies: Vec<Whole>,
    files: Vec<PathBuf>,
}

/// Largest manifest that is read: a path and some numbers.
const MANIFEST_BYTES_MAX: u64 = 64 << 10;

/// Time limit for writing, and the slowest disk that is allowed for: 5 MB a second.
const PATIENCE: Duration = Duration::from_secs(600);
const BYTES_PER_SECOND_MIN: u64 = 5_000_000;

/// Writes the checkpoints that a run has left in memory to their paths, and frees the memory. The
/// caller is a process with the account of the run, which ends afterwards: writing to a file system
/// that does not answer is given up.
///
/// # Errors
/// Checkpoints that are still only in memory, each with the reason.
pub fn finish(folder: &Path) -> Result<(), Vec<String>> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    // Blocks in memory: the length of a file may be anything.
    let sizes = files.filter_map(|file| file.metadata().ok()).map(|meta| 512 * meta.blocks());
    let bytes: u64 = sizes.sum();
    let patience = PATIENCE + Duration::from_secs(bytes / BYTES_PER_SECOND_MIN);
    let (here, seconds) = (folder.to_owned(), patience.as_secs());
    within(patience, move || write_all(&here)).unwrap_or_else(|| {
        let left = folder.display();
        Err(vec![format!(
            "{left}: the disk did not take all of it within {seconds} s; the rest is only in memory"
        )])
    })
}

/// Result of `work`, or `None` after `patience`; `work` then continues until the process ends.
fn within<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    result.recv_timeout(patience).ok()
}

fn write_all(folder: &Path) -> Result<(), Vec<String>> {
    let slots = slots(folder).map_err(|error| vec![format!("{}: {error}", folder.display())])?;
    let mut unwritten = Vec::new();
    for (name, mut slot) in slots {
        slot.copies.sort_by_key(|copy| copy.of.saved_ns);
        if let Err(error) = finish_slot(&folder.join(format!("{name}.lock")), &slot) {
            let path = slot.copies.last().map_or(folder, |copy| &copy.of.path);
            unwritten.push(format!("{} is only in memory: {error}", path.display()));
        }
    }
    if unwritten.is_empty() { Ok(()) } else { Err(unwritten) }
}

/// Number of entries of a folder that are looked at for a copy: it belongs to the run, which may
/// have left any number.
const ENTRIES_MAX: usize = 10_000;

/// True if anything is left in memory, or if there is too much to tell.
#[must_use]
pub fn has_copies(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let is_left = |entry: io::Result<fs::DirEntry>| {
        let Ok(entry) = entry else { return false };
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        is_file && slot_of(&entry.path()).is_some()
    };
    entries.enumerate().any(|(at, entry)| at >= ENTRIES_MAX || is_left(entry))
}

/// Name of the slot of a file, and the kind of the file; `None` for a file of something else.
fn slot_of(path: &Path) -> Option<(&str, &str)> {
    let kind = path.extension()?.to_str()?;
    let stem = path.file_stem()?.to_str()?;
    match (kind, stem.rsplit_once('-')) {
        ("part", _) => Some((stem, kind)),
        ("bin" | "json", Some((name, _))) => Some((name, kind)),
        _ => None,
    }
}

fn slots(folder: &Path) -> io::Result<BTreeMap<String, Slot>> {
    let mut slots: BTreeMap<String, Slot> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Opening a pipe would wait for its other end.
        if !entry.file_type()?.is_file() {
            continue;
        }
        let path = entry.path();
        let Some((name, kind)) = slot_of(&path) else { continue };
        let slot = slots.entry(name.to_owned()).or_default();
        if kind == "json" {
            slot.copies.extend(whole(name, &path)?);
        }
        slot.files.push(path);
    }
    Ok(slots)
}

/// The copy of a manifest; `None` if it is truncated, or of an unknown form.
fn whole(slot: &str, manifest: &Path) -> io::Result<Option<Whole>> {
    let content = manifest.with_extension("bin");
    let mut text = Vec::new();
    let file = regular(manifest, OpenOptions::new().read(true))?;
    file.take(MANIFEST_BYTES_MAX).read_to_end(&mut text)?;
    let Ok(of) = serde_json::from_slice::<Manifest>(&text) else { return Ok(None) };
    let is_whole =
        fs::symlink_metadata(&content).is_ok_and(|meta| meta.is_file() && meta.len() == of.bytes);
    Ok(is_whole.then(|| Whole { slot: slot.to_owned(), content, of }))
}

/// Opens a file that a run has left, whatever it made of it since: waits for no pipe and follows no
/// link.
fn regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = options.custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other(format!("{} is no file", path.display())))
}

/// Writes the newest copy of a slot: the process that saved it wanted no other.
fn finish_slot(lock: &Path, slot: &Slot) -> io::Result<()> {
    let lock = regular(lock, OpenOptions::new().write(true).create(true).truncate(false))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        // The next run of the pod has begun, and does the same.
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    // Incomplete files of a killed process. They go first: the disk may be full of them.
    let partial = slot.copies.iter().map(partial).collect::<io::Result<Vec<_>>>()?;
    partial.iter().try_for_each(|file| remove(file))?;
    if let Some(newest) = slot.copies.last().filter(|newest| !newest.of.written) {
        let manifest = newest.content.with_extension("json");
        let others =
            slot.files.iter().filter(|file| **file != newest.content && **file != manifest);
        others.into_iter().try_for_each(|file| remove(file))?;
        write(newest)?;
    }
    slot.files.iter().try_for_each(|file| remove(file))
}

/// The file that becomes the checkpoint when it is complete.
fn partial(copy: &Whole) -> io::Result<PathBuf> {
    let name = copy.of.path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let name = name.to_str().ok_or(io::ErrorKind::InvalidInput)?;
    // The name that the Python package uses: pods may write one path, each with its first slot.
    let pod = copy.content.parent().and_then(Path::file_name).and_then(|pod| pod.to_str());
    let pod = pod.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(copy.of.path.with_file_name(format!(".{name}.elastane-{pod}-{}", copy.slot)))
}

fn write(copy: &Whole) -> io::Result<()> {
    if !copy.of.path.is_absolute() {
        return Err(io::Error::other(
            "it belongs in a bucket, where the next run of the pod writes it",
        ));
    }
    let new = partial(copy)?;
    write_by(copy, &new).inspect_err(|_| {
        if let Err(error) = remove(&new) {
            tracing::warn!("cannot delete {}: {error}", new.display());
        }
    })
}

/// Writes it into a new file first.
fn write_by(copy: &Whole, new: &Path) -> io::Result<()> {
    let to = &copy.of.path;
    let mut file = OpenOptions::new().write(true).create_new(true).open(new)?;
    let mut content = regular(&copy.content, OpenOptions::new().read(true))?;
    if io::copy(&mut content, &mut file)? != copy.of.bytes {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the copy in memory is cut short",
        ));
    }
    let saved = UNIX_EPOCH + Duration::from_nanos(copy.of.saved_ns);
    file.set_times(FileTimes::new().set_modified(saved))?;
    file.sync_all()?;
    // The next run of the pod may have saved already.
    let before = fs::metadata(to).ok().filter(fs::Metadata::is_file);
    if before.and_then(|meta| meta.modified().ok()).is_some_and(|before| before > saved) {
        return remove(new);
    }
    fs::rename(new, to)?;
    File::open(to.parent().unwrap_or(Path::new("/")))?.sync_all()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_that_does_not_come_to_an_end_is_given_up() {
        let (begin, begins) = mpsc::channel::<()>();
        assert_eq!(within(Duration::from_millis(1), move || begins.recv().is_ok()), None);
        drop(begin);
        assert_eq!(within(Duration::from_secs(600), || 7), Some(7));
    }

    struct Pod {
        memory: tempfile::TempDir,
        disk: tempfile::TempDir,
    }

    impl Pod {
        fn new() -> Self {
            Self { memory: tempfile::tempdir().unwrap(), disk: tempfile::tempdir().unwrap() }
        }

        fn target(&self) -> PathBuf {
            self.disk.path().join("model")
        }

        fn save(&self, name: &str, saved_s: u64, text: &str, bytes: usize, written: bool) {
            let at = |kind: &str| self.memory.path().join(format!("{name}.{kind}"));
            fs::write(at("bin"), text).unwrap();
            let path = self.target();
            let saved_ns = saved_s * 1_000_000_000;
            let of = serde_json::json!({
                "path": path, "bytes": bytes, "saved_ns": saved_ns, "step": 7, "crc32": null,
                "written": written,
            });
            fs::write(at("json"), of.to_string()).unwrap();
        }

        fn finish(&self) -> Result<(), Vec<String>> {
            finish(self.memory.path())
        }

        fn on_disk(&self) -> Option<String> {
            fs::read_to_string(self.target()).ok()
        }

        fn entries(folder: &tempfile::TempDir) -> Vec<String> {
            let names = fs::read_dir(folder.path()).unwrap();
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    #[test]
    fn the_newest_whole_copy_is_written_and_the_memory_is_free() {
        let pod = Pod::new();
        pod.save("0-8", 2000, "second", 6, false);
        pod.save("0-7", 1000, "first", 5, false);
        pod.save("0-9", 3000, "cut", 5, false);
        fs::write(pod.memory.path().join("0.part"), "torn").unwrap();
        let of_pod = pod.memory.path().file_name().unwrap().to_str().unwrap();
        let partial = format!(".model.elastane-{of_pod}-0");
        fs::write(pod.disk.path().join(&partial), "sec").unwrap();
        fs::write(pod.disk.path().join(".model.elastane-other-0"), "of another pod").unwrap();
        assert!(has_copies(pod.memory.path()));
        pod.finish().unwrap();
        assert_eq!(pod.on_disk().as_deref(), Some("second"));
        let written = fs::metadata(pod.target()).unwrap().modified().unwrap();
        assert_eq!(written, UNIX_EPOCH + Duration::from_secs(2000), "the age of its content");
        assert!(!pod.disk.path().join(partial).exists());
        assert_eq!(Pod::entries(&pod.disk).len(), 2, "the one of the other pod stays");
        assert_eq!(Pod::entries(&pod.memory), ["0.lock"]);
    }

    #[test]
    fn what_is_on_disk_already_or_older_than_that_is_not_written() {
        let pod = Pod::new();
        pod.save("0-1", 1000, "written", 7, true);
        pod.finish().unwrap();
        assert_eq!(pod.on_disk(), None);
        fs::write(pod.target(), "of the next run").unwrap();
        pod.save("0-1", 1000, "old", 3, false);
        pod.finish().unwrap();
        assert_eq!(pod.on_disk().as_deref(), Some("of the next run"));
        fs::write(pod.memory.path().join("1.part"), "torn").unwrap();
        assert!(has_copies(pod.memory.path()));
        pod.finish().unwrap();
        assert!(!has_copies(pod.memory.path()));
    }

    #[test]
    fn nothing_waits_for_a_pipe_that_a_run_has_left() {
        let pipe = |path: PathBuf| {
            let all = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, all, 0).unwrap();
        };
        let pod = Pod::new();
        pod.save("0-1", 1000, "first", 5, false);
        let of_pod = pod.memory.path().file_name().unwrap().to_str().unwrap();
        pipe(pod.disk.path().join(format!(".model.elastane-{of_pod}-0")));
        pipe(pod.memory.path().join("1-1.json"));
        pipe(pod.memory.path().join("1-1.bin"));
        assert!(has_copies(pod.memory.path()));
        pod.finish().unwrap();
        assert_eq!(pod.on_disk().as_deref(), Some("first"));
        pod.save("1-2", 1000, "other", 5, false);
        pipe(pod.memory.path().join("1.lock"));
        pod.finish().unwrap_err();
    }

    #[test]
    fn a_slot_of_the_next_run_is_left_to_it() {
        let pod = Pod::new();
        pod.save("0-1", 1000, "first", 5, false);
        let lock = File::create(pod.memory.path().join("0.lock")).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        pod.finish().unwrap();
        assert!(pod.on_disk().is_none() && has_copies(pod.memory.path()));
        drop(lock);
        pod.finish().unwrap();
        assert_eq!(pod.on_disk().as_deref(), Some("first"));
    }

    #[test]
    fn what_belongs_in_a_bucket_is_left_to_the_next_run() {
        let pod = Pod::new();
        fs::write(pod.memory.path().join("0-1.bin"), "first").unwrap();
        let of = r#"{"path": "s3://bucket/model", "bytes": 5, "saved_ns": 1, "written": WRITTEN}"#;
        let manifest = pod.memory.path().join("0-1.json");
        fs::write(&manifest, of.replace("WRITTEN", "false")).unwrap();
        let unwritten = pod.finish().unwrap_err();
        assert!(unwritten[0].contains("it belongs in a bucket"), "{unwritten:?}");
        fs::write(&manifest, of.replace("WRITTEN", "true")).unwrap();
        pod.finish().unwrap();
        assert!(!has_copies(pod.memory.path()));
    }

    #[test]
    fn what_cannot_be_written_stays_in_memory_and_is_named() {
        let pod = Pod::new();
        pod.save("0-1", 1000, "first", 5, false);
        pod.save("0-0", 900, "older", 5, false);
        fs::write(pod.memory.path().join("0.part"), "torn").unwrap();
        fs::create_dir(pod.target()).unwrap();
        let unwritten = pod.finish().unwrap_err();
        assert!(unwritten[0].contains("model is only in memory"), "{unwritten:?}");
        assert!(has_copies(pod.memory.path()));
        assert_eq!(Pod::entries(&pod.disk), ["model"], "a full disk is no fuller");
        let mut left = Pod::entries(&pod.memory);
        left.sort();
        assert_eq!(left, ["0-1.bin", "0-1.json", "0.lock"], "only the newest takes memory");
        fs::remove_dir(pod.target()).unwrap();
        pod.finish().unwrap();
        assert_eq!(pod.on_disk().as_deref(), Some("first"));
    }
}
