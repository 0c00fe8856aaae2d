//! The disk of the state directory. Owns: how much of it is kept for the server, and which run is
//! killed before that is touched. Does not know about: other disks, and what follows for a
//! workload.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

use engine::{DiskRoom, DiskSpace, Error, RunKey};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, makedev, statx};
use trees::{Entry, Next, Visitor};

use crate::measure::own_subtrees;
use crate::record::{StateFile, now_ms};
use crate::shared::{LocalEngineState, blocking};
use crate::stop::stop;

/// Steps in which the kept part is given up, with one killed run each: a dead run frees no space
/// yet.
const STEPS: u64 = 4;
/// Divisor of the reserve for the least growth of a run that is killed.
const GROWN_PART: u64 = 8;
/// Write rate of a fast disk, in bytes per second.
const BYTES_PER_S_MAX: u64 = 8 << 30;
const PAUSE_MS: (u64, u64) = (20, 1000);
/// The time for looking at the files of all runs.
const COUNTING_MAX: Duration = Duration::from_millis(500);

/// Looks at the disk, the sooner again the less of it is free.
pub(crate) fn spawn(shared: &Arc<LocalEngineState>) {
    let own = Arc::clone(shared);
    shared.spawn(async move {
        let mut watch = Watch::default();
        loop {
            let shared = Arc::clone(&own);
            let looked = blocking(move || {
                let looked = watch.look(&shared);
                looked.map(|found| (watch, found)).map_err(|why| Error::io("look at the disk", why))
            });
            let (pause, victim) = match looked.await {
                Ok((next, found)) => {
                    watch = next;
                    found
                }
                Err(error) => {
                    tracing::warn!("{error}");
                    watch = Watch::default();
                    (Duration::from_millis(PAUSE_MS.1), None)
                }
            };
            if let Some((key, grown)) = victim {
                kill(&own, key, grown).await;
            }
            tokio::time::sleep(pause).await;
        }
    });
}

async fn kill(shared: &Arc<LocalEngineState>, key: RunKey, grown: DiskRoom) {
    let (turn, own) = (shared.turns.take(key).await, Arc::clone(shared));
    let killed = blocking(move || {
        let _turn = turn;
        // One that was started by an earlier version has no room for it, and is killed all the
        // same.
        if let Err(error) = own.dir(key).write_grown(grown) {
            tracing::warn!(run = %key, "it will not be told why it is killed: {error}");
        }
        let killed = stop(&own, key, 0);
        killed.map_err(|source| Error::io(format!("kill run {key}"), source))
    });
    match killed.await {
        Ok(()) => tracing::warn!(run = %key, ?grown, "killed: the disk is almost full"),
        Err(error) => tracing::error!("{error}"),
    }
}

/// The time within which a run cannot have taken what is free beyond the double of what is kept.
fn pause(disk: DiskSpace) -> Duration {
    let beyond = disk.free.bytes.saturating_sub(2 * disk.kept.bytes);
    let ms = beyond / (BYTES_PER_S_MAX / 1000);
    Duration::from_millis(ms.clamp(PAUSE_MS.0, PAUSE_MS.1))
}

/// State of the watch while space is short.
#[derive(Debug, Clone, Default)]
struct Watch {
    /// Size of each run when the shortage was noticed; younger runs are absent.
    before: Option<BTreeMap<RunKey, DiskRoom>>,
    /// The runs that were killed since.
    killed: u64,
}

impl Watch {
    /// When to look again, and which run has to go by how much it has grown.
    fn look(
        &mut self,
        shared: &LocalEngineState,
    ) -> io::Result<(Duration, Option<(RunKey, DiskRoom)>)> {
        let disk = DiskSpace::of(&shared.paths.root)?;
        if !disk.is_below(8) {
            *self = Self::default();
            shared.set_outage(None);
            return Ok((pause(disk), None));
        }
        if self.before.is_none() {
            self.before = Some(if disk.is_below(4) { BTreeMap::new() } else { sizes(shared) });
        }
        let now = units::Instant(now_ms());
        shared.set_outage(disk.outage(&shared.paths.root, true, shared.outage(), now));
        let due = self.killed < STEPS && disk.is_below(STEPS - self.killed);
        let victim = due.then(|| self.grown_most(disk, sizes(shared))).flatten();
        self.killed += u64::from(victim.is_some());
        Ok((pause(disk), victim))
    }

    fn grown_most(
        &self,
        disk: DiskSpace,
        now: BTreeMap<RunKey, DiskRoom>,
    ) -> Option<(RunKey, DiskRoom)> {
        let before = |key: &RunKey| self.before.as_ref().and_then(|all| all.get(key)).copied();
        let grown = now.into_iter().map(|(key, now)| {
            let before = before(&key).unwrap_or_default();
            let grown = DiskRoom {
                bytes: now.bytes.saturating_sub(before.bytes),
                files: now.files.saturating_sub(before.files),
            };
            (key, grown)
        });
        let lacks_bytes = disk.free.bytes < disk.kept.bytes;
        let what = |room: DiskRoom| if lacks_bytes { room.bytes } else { room.files };
        let (key, most) = grown.max_by_key(|(_, grown)| what(*grown))?;
        let told =
            if lacks_bytes { DiskRoom { files: 0, ..most } } else { DiskRoom { bytes: 0, ..most } };
        (what(most) >= what(disk.kept) / GROWN_PART).then_some((key, told))
    }
}

/// Disk space of each living run on the disk of the state, as far as it can be counted in time.
fn sizes(shared: &LocalEngineState) -> BTreeMap<RunKey, DiskRoom> {
    let lives = |state: &StateFile| !matches!(state, StateFile::Exited { .. });
    let end = Instant::now() + COUNTING_MAX;
    let mut sizes = BTreeMap::new();
    let keys = shared.keys_where(lives);
    let processes = own_subtrees(shared);
    let device = fs::metadata(&shared.paths.root).map(|about| about.dev()).ok();
    for (left, key) in (1_u32..=u32::try_from(keys.len()).unwrap_or(u32::MAX)).rev().zip(keys) {
        // Each has its part of the time: one with very many files does not hide those after it.
        let now = Instant::now();
        let until = now + end.saturating_duration_since(now) / left;
        let mut count = Count { room: DiskRoom::default(), until };
        let folders: [PathBuf; 2] = [shared.dir(key).path().to_owned(), shared.paths.pod(key.pod)];
        for folder in folders {
            // One that is not there yet, or not any more, has nothing.
            if let Ok(folder) = trees::open(CWD, &folder) {
                let _vanished = trees::walk(folder, &mut count);
            }
        }
        let own = processes.get(&key).map(|own| own.pids.as_slice()).unwrap_or_default();
        count.room.bytes += device.map_or(0, |device| held_bytes(own, device, until));
        sizes.insert(key, count.room);
    }
    sizes
}

/// Bytes of deleted files on a device that these processes hold open or have in their memory: no
/// folder has them any more.
fn held_bytes(pids: &[i32], device: u64, until: Instant) -> u64 {
    let mut counted = BTreeSet::new();
    let mut bytes = 0;
    for pid in pids {
        // A process that has ended holds nothing.
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        for file in files.flatten() {
            if Instant::now() > until {
                return bytes;
            }
            // Without a question to the file system: that of a server that is gone does not answer.
            let (at, all) = (AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS);
            let Ok(about) = statx(CWD, file.path(), at, all) else { continue };
            let is_file = FileType::from_raw_mode(about.stx_mode.into()) == FileType::RegularFile;
            let is_here = makedev(about.stx_dev_major, about.stx_dev_minor) == device;
            if is_file && is_here && about.stx_nlink == 0 && counted.insert(about.stx_ino) {
                bytes += about.stx_blocks * 512;
            }
        }
        for file in deleted_mappings(*pid, device) {
            if Instant::now() > until {
                return bytes;
            }
            if counted.insert(file.inode) {
                bytes += file.bytes();
            }
        }
    }
    bytes
}

/// A deleted file that is mapped into memory. It takes space on the disk without being open.
struct Mapping {
    inode: u64,
    len: u64,
    /// The link to the file, which a privileged process may follow.
    link: PathBuf,
}

impl Mapping {
    /// Bytes on the disk; without the privilege to look, the mapped length, which they rarely
    /// exceed.
    fn bytes(&self) -> u64 {
        let (at, all) = (AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS);
        statx(CWD, &self.link, at, all).map_or(self.len, |about| about.stx_blocks * 512)
    }
}

/// Deleted files of a device in the memory of a process; none of one that has ended or may not be
/// looked at.
fn deleted_mappings(pid: i32, device: u64) -> Vec<Mapping> {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mapping = |line: &[u8]| {
        // `start-end rights offset major:minor inode path`; line breaks in a path are escaped.
        let line = String::from_utf8_lossy(line.strip_suffix(b" (deleted)")?);
        let mut words = line.split(' ');
        let range = words.next()?;
        let (major, minor) = words.nth(2)?.split_once(':')?;
        let inode = words.next()?.parse().ok()?;
        let number = |text| u32::from_str_radix(text, 16).ok();
        let address = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = range.split_once('-')?;
        let len = address(end)?.checked_sub(address(start)?)?;
        let link = PathBuf::from(format!("/proc/{pid}/map_files/{range}"));
        let is_here = makedev(number(major)?, number(minor)?) == device;
        is_here.then_some(Mapping { inode, len, link })
    };
    let mut files: BTreeMap<u64, Mapping> = BTreeMap::new();
    for part in maps.split(|byte| *byte == b'\n').filter_map(mapping) {
        let len = part.len;
        files.entry(part.inode).and_modify(|file| file.len += len).or_insert(part);
    }
    files.into_values().collect()
}

struct Count {
    room: DiskRoom,
    until: Instant,
}

impl Visitor for Count {
    fn visit(&mut self, entry: Entry<'_>) -> io::Result<Next> {
        let Ok(about) = entry.stat() else { return Ok(Next::Past) };
        self.room.bytes += u64::try_from(about.st_blocks).unwrap_or_default() * 512;
        self.room.files += 1;
        Ok(if Instant::now() > self.until { Next::End } else { Next::Into })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn deleted_files_that_a_process_holds_open_count_once() {
        let mut file = tempfile::tempfile().expect("a file without a name");
        file.write_all(&[7; 256 << 10]).expect("written");
        file.sync_all().expect("on the disk");
        let _again = file.try_clone().expect("a second handle");
        let kept = tempfile::NamedTempFile::new().expect("a file");
        kept.as_file().set_len(1 << 20).expect("longer");
        let own = [i32::try_from(std::process::id()).expect("an id")];
        let device = file.metadata().expect("there").dev();
        let later = Instant::now() + Duration::from_secs(60);
        // Other tests of this process hold files as well, if they share it.
        let before = held_bytes(&own, device, later);
        drop(kept);
        assert!(before >= 256 << 10, "{before}");
        assert_eq!(held_bytes(&own, device + 1, later), 0);
        assert_eq!(held_bytes(&[], device, later), 0);
        drop((file, _again));
        assert!(held_bytes(&own, device, later) <= before - (256 << 10));
    }

    #[test]
    fn a_deleted_file_in_the_memory_of_a_process_counts_though_it_is_not_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("sleep");
        let original = std::env::split_paths(&std::env::var_os("PATH").expect("set"))
            .map(|folder| folder.join("sleep"))
            .find(|file| file.exists())
            .expect("every machine has it");
        let length = fs::copy(original, &program).expect("copied");
        let device = fs::metadata(&program).expect("there").dev();
        // The text of a running program is mapped, and no descriptor has it.
        let mut process = std::process::Command::new(&program).arg("600").spawn().expect("started");
        let own = [i32::try_from(process.id()).expect("an id")];
        let later = Instant::now() + Duration::from_secs(60);
        let before = held_bytes(&own, device, later);
        fs::remove_file(&program).expect("removed");
        let held = held_bytes(&own, device, later);
        process.kill().expect("alive");
        process.wait().expect("ours");
        assert_eq!(before, 0, "it has a name");
        // Whole blocks, or with the zeros that a mapping may have behind it.
        assert!((length / 2..length + (64 << 10)).contains(&held), "{held} of {length}");
        assert_eq!(held_bytes(&own, device, later), 0);
    }
}
