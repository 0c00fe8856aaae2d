//! Time that children take. Owns: the clock and the CPU time of processes that have ended. Does not
//! know about: what they do.

use std::time::Instant;

use anyhow::Result;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// Time of a measured action.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    /// Seconds on the clock.
    pub wall_s: f64,
    /// CPU seconds of the children that ended meanwhile, and of theirs.
    pub cpu_s: f64,
}

/// Runs `act` and returns the time of its child processes. Only one such call is under way at a
/// time.
///
/// # Errors
/// The kernel does not report the time.
pub(crate) fn measured<T>(act: impl FnOnce() -> T) -> Result<(T, Measured)> {
    let (since, before) = (Instant::now(), children_cpu_s()?);
    let outcome = act();
    let cpu_s = children_cpu_s()? - before;
    Ok((outcome, Measured { wall_s: since.elapsed().as_secs_f64(), cpu_s }))
}

/// CPU seconds of all children that have ended and were waited for, and of theirs.
fn children_cpu_s() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn seconds(time: TimeVal) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "seconds and microseconds are small")]
    let (whole, micros) = (time.tv_sec() as f64, time.tv_usec() as f64);
    whole + micros / 1e6
}
