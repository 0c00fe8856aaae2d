//! Disks that containers fill: that of the state directory and that of the daemon. Owns: noticing
//! that one is almost full. Does not know about: the sizes of containers, which the daemon counts
//! too slowly to stop one in time.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use engine::{DiskSpace, Outage};
use units::Instant;

use crate::daemon::DaemonProperties;
use crate::shared::{DockerEngineState, blocking, now};

const PAUSE: Duration = Duration::from_secs(1);

/// Looks at the disks for as long as the engine lives.
pub(crate) fn spawn(shared: &Arc<DockerEngineState>) {
    let own = Arc::clone(shared);
    shared.spawn(async move {
        loop {
            let folders = [Some(own.state.clone()), own.facts().data_folder];
            let before = full(&own);
            let looked = blocking(move || {
                Ok::<_, engine::Error>(look(&folders, &DiskSpace::of, before, now()))
            });
            // A look that crashed is repeated like any other.
            if let Ok(found) = looked.await {
                *own.full.lock().unwrap_or_else(PoisonError::into_inner) = found;
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
}

/// Outage of a disk; `None` while there is space on all of them.
pub(crate) fn full(shared: &DockerEngineState) -> Option<Outage> {
    shared.full.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Outage of the first disk that is almost full. A folder that cannot be looked at, such as that of
/// a daemon in a virtual machine, has none.
fn look(
    folders: &[Option<PathBuf>],
    space: &dyn Fn(&Path) -> io::Result<DiskSpace>,
    before: Option<Outage>,
    now: Instant,
) -> Option<Outage> {
    folders.iter().flatten().find_map(|folder| {
        let own = before.clone().filter(|before| is_of(before, folder));
        space(folder).ok()?.outage(folder, false, own, now)
    })
}

fn is_of(outage: &Outage, of: &Path) -> bool {
    matches!(outage, Outage::DiskFull { folder, .. } if Path::new(folder) == of)
}

/// Free bytes of the daemon's disk; `None` if it cannot be looked at.
pub(crate) fn free_bytes(facts: &DaemonProperties) -> Option<u64> {
    let space = DiskSpace::of(facts.data_folder.as_deref()?).ok()?;
    Some(space.free.bytes)
}

/// `true` if two folders are on one file system.
pub(crate) fn is_shared(one: &Path, other: &Path) -> bool {
    let device = |folder: &Path| std::fs::metadata(folder).map(|about| about.dev());
    matches!((device(one), device(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use engine::DiskRoom;

    use super::*;

    #[test]
    fn a_full_disk_of_the_state_or_of_the_daemon_is_an_outage_while_it_is_full() {
        let [state, data] = ["/state", "/data"].map(PathBuf::from);
        let space = |free| {
            let room = |bytes| DiskRoom { bytes, files: bytes };
            DiskSpace { free: room(free), kept: room(100) }
        };
        let look = |frees: [Option<u64>; 2], before: Option<&Outage>, at| {
            let of = |folder: &Path| {
                let free = if folder == state { frees[0] } else { frees[1] };
                free.map(space).ok_or_else(|| io::ErrorKind::NotFound.into())
            };
            let folders = [Some(state.clone()), Some(data.clone())];
            super::look(&folders, &of, before.cloned(), Instant(at))
        };
        assert_eq!(look([Some(200), Some(200)], None, 1), None);
        assert_eq!(look([Some(200), None], None, 1), None, "the daemon's is elsewhere");
        let of_data = look([Some(200), Some(99)], None, 2).expect("it is full");
        assert!(is_of(&of_data, &data), "{of_data:?}");
        assert_eq!(look([Some(200), Some(110)], Some(&of_data), 3).as_ref(), Some(&of_data));
        // The server's own counts for more.
        let of_state = look([Some(99), Some(99)], Some(&of_data), 4).expect("it is full");
        assert!(is_of(&of_state, &state) && of_state.since() == Instant(4), "{of_state:?}");
        assert_eq!(look([Some(200), Some(200)], Some(&of_state), 5), None);
    }

    #[test]
    fn folders_of_one_file_system_share_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("below");
        std::fs::create_dir(&below).expect("made");
        assert!(is_shared(folder.path(), &below));
        assert!(!is_shared(folder.path(), Path::new("/proc")));
        assert!(!is_shared(folder.path(), &folder.path().join("none")));
    }
}
