//! Trash: folders whose contents are deleted in the background. Owns: the thread that deletes them,
//! a second at a time, and the failures. Does not know about: what is moved there.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, openat};
use rustix::io::Errno;
use rustix::process::setpriority_process;

use crate::folder::{FOLDER, Piece, move_entry, open_up, read_piece};
use crate::names::FreshNames;
use crate::removal::{Emptying, Failure, Progress};

/// Time for one folder before the thread continues with the next.
const STEP: Duration = Duration::from_secs(1);
/// Pause before a retry after a failure, doubled each time.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// Low priority: deleting yields to other work without starving.
const NICE: i32 = 10;
/// The thread has no deep calls.
const STACK_BYTES: usize = 256 << 10;
/// Maximum number of entries that are counted.
pub const COUNTED_MAX: u64 = 1000;

/// Entries of one folder that are still to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The folder.
    pub folder: PathBuf,
    /// Folders and files in it, at most [`COUNTED_MAX`].
    pub entries: u64,
    /// Error of the last try, without the names of entries; `None` while they are being deleted.
    pub why: Option<String>,
}

/// Folders for entries to delete, one on each file system, and the thread that empties them. The
/// next instance deletes what this one leaves.
#[derive(Debug, Default)]
pub struct Trash {
    shared: Arc<TrashState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct TrashState {
    state: Mutex<State>,
    changed: Condvar,
    ended: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Error of the last try to empty each folder; `None` where there was none.
    folders: BTreeMap<PathBuf, Option<String>>,
    names: FreshNames,
    /// Entries were discarded that the thread has not seen.
    is_new: bool,
    /// The thread has nothing to do.
    is_idle: bool,
}

impl Trash {
    /// Adds a folder, which is created if absent. Its contents are deleted.
    ///
    /// # Errors
    /// It cannot be made, or no thread can be started.
    pub fn add(&self, folder: &Path) -> io::Result<()> {
        make(folder)?;
        self.shared.state().folders.insert(folder.to_owned(), None);
        self.wake();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let named = thread::Builder::new().name("trash".to_owned()).stack_size(STACK_BYTES);
            *thread = Some(named.spawn(move || shared.work())?);
        }
        Ok(())
    }

    /// Moves a file or folder to the trash folder on its file system; it is deleted soon. An absent
    /// path is no error.
    ///
    /// # Errors
    /// It cannot be moved, or there is no folder on its file system.
    pub fn discard(&self, path: &Path) -> io::Result<()> {
        let mut state = self.shared.state();
        let name = state.names.next().to_string_lossy().into_owned();
        let folders: Vec<_> = state.folders.keys().cloned().collect();
        drop(state);
        let mut moved = Err(Errno::XDEV);
        for folder in folders {
            // By path: it needs no open file.
            let grave = folder.join(&name);
            let to_grave = || move_entry((CWD, path), (CWD, &*grave));
            moved = to_grave();
            if moved == Err(Errno::NOENT) && path.symlink_metadata().is_ok() {
                make(&folder)?;
                moved = to_grave();
            }
            if moved != Err(Errno::XDEV) {
                break;
            }
        }
        match moved {
            Err(Errno::NOENT) => return Ok(()),
            moved => moved?,
        }
        self.wake();
        Ok(())
    }

    /// Makes the thread look for entries that others have moved to the folders.
    pub fn wake(&self) {
        let mut state = self.shared.state();
        (state.is_new, state.is_idle) = (true, false);
        self.shared.changed.notify_all();
    }

    /// Waits until nothing is left that can be deleted now.
    pub fn wait_until_emptied(&self) {
        let mut state = self.shared.state();
        while !state.is_idle && !state.folders.is_empty() {
            state = self.shared.wait(state, None);
        }
    }

    /// Entries that are still to be deleted, by folder; empty folders are left out.
    pub fn leftovers(&self) -> Vec<Leftover> {
        let folders = self.shared.state().folders.clone();
        let left = |(folder, why): (PathBuf, Option<String>)| {
            let entries = count(&folder);
            (entries > 0 || why.is_some()).then_some(Leftover { folder, entries, why })
        };
        folders.into_iter().filter_map(left).collect()
    }

    /// Ends the thread, after the file that it is deleting.
    pub fn end(&self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        self.wake();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A panic in the thread was reported when it happened.
        let _ended = thread.map(JoinHandle::join);
    }
}

impl Drop for Trash {
    fn drop(&mut self) {
        self.end();
    }
}

impl TrashState {
    /// No code panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(
        &self,
        state: MutexGuard<'s, State>,
        pause: Option<Duration>,
    ) -> MutexGuard<'s, State> {
        match pause {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(pause) => {
                let waited = self.changed.wait_timeout(state, pause);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Body of the thread.
    fn work(&self) {
        // Sets the priority of this thread only. A failure only means that deleting yields less.
        let _impolite = setpriority_process(None, NICE);
        let (mut open, mut pause) = (BTreeMap::new(), None);
        while !self.has_ended() {
            let mut state = self.state();
            if !state.is_new && open.is_empty() {
                state.is_idle = true;
                self.changed.notify_all();
                while !state.is_new {
                    let before = Instant::now();
                    state = self.wait(state, pause);
                    if pause.is_some_and(|pause| before.elapsed() >= pause) {
                        break;
                    }
                }
            }
            (state.is_new, state.is_idle) = (false, false);
            let folders: Vec<_> = state.folders.keys().cloned().collect();
            drop(state);
            let failed = folders.iter().filter(|folder| !self.turn(folder, &mut open)).count();
            pause = match (failed, pause) {
                (0, _) => None,
                (_, None) => Some(PAUSE_MIN),
                (_, Some(pause)) => Some(PAUSE_MAX.min(pause * 2)),
            };
        }
    }

    /// Empties a folder for [`STEP`]; it stays open while there is more to do. False if the rest
    /// cannot be deleted now.
    fn turn(&self, folder: &Path, open: &mut BTreeMap<PathBuf, Emptying>) -> bool {
        let end = Instant::now() + STEP;
        let goes_on = || !self.has_ended() && Instant::now() < end;
        let opened = match open.remove(folder) {
            Some(emptying) => Ok(emptying),
            None => open_up(CWD, folder).map(Emptying::of).map_err(Failure::from),
        };
        let done = opened.and_then(|mut emptying| {
            if emptying.step(&goes_on)? == Progress::More {
                open.insert(folder.to_owned(), emptying);
            }
            Ok(())
        });
        let failed = done.err().filter(|failure| failure.errno != Errno::NOENT);
        let is_fine = failed.is_none();
        let why = failed.as_ref().map(|failure| io::Error::from(failure.errno).to_string());
        let mut state = self.state();
        let Some(known) = state.folders.get_mut(folder) else { return is_fine };
        if let Some(failure) = failed.filter(|_| *known != why) {
            let (folder, why) = (folder.display(), io::Error::from(failure));
            tracing::warn!("what is in {folder} cannot be deleted now: {why}");
        }
        *known = why;
        is_fine
    }
}

fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Number of entries of a folder, at most [`COUNTED_MAX`].
fn count(folder: &Path) -> u64 {
    let Ok(folder) = openat(CWD, folder, FOLDER, rustix::fs::Mode::empty()) else { return 0 };
    let mut entries = 0;
    while entries < COUNTED_MAX {
        let piece = read_piece(&folder, |_, _| {
            entries += 1;
            Ok::<_, Errno>(ControlFlow::Continue(()))
        });
        if !matches!(piece, Ok(Piece::Read)) {
            break;
        }
    }
    entries.min(COUNTED_MAX)
}

#[cfg(test)]
mod tests;
