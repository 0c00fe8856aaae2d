//! Stopping a run. Owns: that a run ends within its grace, whichever process has claimed it. Does
//! not know about: the reason.

use std::io;
use std::sync::Arc;

use engine::RunKey;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use crate::events;
use crate::force_kill;
use crate::record::{ExitFile, StateFile};
use crate::shared::LocalEngineState;

/// An unclaimed run is claimed as stopped, so that a supervisor that is starting finds it ended; a
/// claimed one has a supervisor with signal handlers, or has lost it.
pub(crate) fn stop(shared: &Arc<LocalEngineState>, key: RunKey, grace_ms: u64) -> io::Result<()> {
    let dir = shared.dir(key);
    if !dir.exists() || matches!(shared.state(key), Some(StateFile::Exited { .. })) {
        return Ok(());
    }
    if shared.end_copying(key) {
        return Ok(()); // the copy task reports the end
    }
    let stopped = StateFile::exited(ExitFile::Signal(Signal::TERM.as_raw()));
    let first = dir.claim(&stopped)?;
    if shared.state(key).is_none() {
        // Prepared by an earlier server, and perhaps claimed after recovery.
        shared.know(key, StateFile::Starting);
        if !first {
            events::spawn_adopted(shared, key);
        }
    }
    if first {
        shared.report(key, stopped);
        return Ok(());
    }
    if let Err(error) = dir.write_grace(grace_ms) {
        tracing::warn!("run {key} keeps the grace it was started with: {error}");
    }
    let Some(holder) = dir.holder()? else { return Ok(()) };
    let Some(handle) = events::handle(&dir, holder)? else { return Ok(()) };
    // The second wakes a frozen supervisor, so that its run gets its grace period.
    for signal in [Signal::TERM, Signal::CONT] {
        match pidfd_send_signal(&handle, signal) {
            Ok(()) => {}
            Err(Errno::SRCH) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    force_kill::spawn(shared, key, holder, handle, grace_ms);
    Ok(())
}
