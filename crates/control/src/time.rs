//! Time. Owns: the clock of the machine, and the monotonic clock that dates everything here. Both
//! show the time of day, but the wall clock may be set. The monotonic clock counts the time since
//! the start of the machine, which cannot be set. Durations from a moment are adjusted when the two
//! clocks diverge (`shift`).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use orchestrator::{Moment, STEP_MS_MIN, Settled, Step};
use records::ClockRow;
use units::Instant;
use uuid::Uuid;

/// Longest sleep at a time: timers of the process stand still while the machine sleeps.
const SLEEP_MS_MAX: u64 = 10_000;

/// Source of the time, and of waiting for a time: the only one of this crate.
pub trait Clock: Send + Sync + 'static {
    /// Time of the wall clock. It may be set.
    fn now(&self) -> Instant;
    /// Milliseconds since the start of the machine, including those in which it slept.
    fn up_ms(&self) -> u64;
    /// Id of that start of the machine.
    fn boot(&self) -> Uuid;
    /// Returns when the machine has been up for `up_ms`, or soon after.
    fn sleep_until_up_ms(&self, up_ms: u64) -> BoxFuture<'static, ()>;
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Instant(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }

    fn up_ms(&self) -> u64 {
        let up = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let (seconds, nanos) = (up.tv_sec.unsigned_abs(), up.tv_nsec.unsigned_abs());
        seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000)
    }

    fn boot(&self) -> Uuid {
        let told = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        // One that cannot be told is like no other.
        told.and_then(|text| text.trim().parse().ok()).unwrap_or_else(Uuid::new_v4)
    }

    fn sleep_until_up_ms(&self, up_ms: u64) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            loop {
                let left_ms = up_ms.saturating_sub(Self.up_ms());
                if left_ms == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(left_ms.min(SLEEP_MS_MAX))).await;
            }
        })
    }
}

/// A clock that neither jumps nor goes back, except where the state is built (again), by
/// [`MonotonicClock::set_from_wall_clock`].
pub(crate) struct MonotonicClock {
    clock: Arc<dyn Clock>,
    /// Offset to add to the time since the start of the machine, in milliseconds.
    ahead_ms: AtomicI64,
    /// Sum of all steps that it followed, in milliseconds.
    stepped_ms: AtomicI64,
}

impl MonotonicClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let ahead_ms = AtomicI64::new(wall_ahead_ms(&*clock));
        Self { clock, ahead_ms, stepped_ms: AtomicI64::new(0) }
    }

    /// Now.
    pub(crate) fn now(&self) -> Instant {
        Instant(self.clock.up_ms().saturating_add_signed(self.ahead_ms()))
    }

    /// Time of the wall clock, by which engines date their observations.
    pub(crate) fn wall(&self) -> Instant {
        self.clock.now()
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { now: self.now(), clock: self.wall(), seed: Uuid::now_v7() }
    }

    /// By how much it is ahead of the time since the machine was started.
    fn ahead_ms(&self) -> i64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }

    /// Total step of the wall clock that this clock has followed, in milliseconds. It includes
    /// steps while no server ran, and excludes those below the threshold.
    pub(crate) fn stepped_ms(&self) -> i64 {
        self.stepped_ms.load(Ordering::Relaxed)
    }

    /// Returns at `at`, or soon after.
    pub(crate) fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let up_ms = at.0.saturating_add_signed(self.ahead_ms().saturating_neg());
        self.clock.sleep_until_up_ms(up_ms)
    }

    /// Result of `what`; `None` if it takes longer than `ms`.
    pub(crate) async fn within<T>(&self, ms: u64, what: impl Future<Output = T>) -> Option<T> {
        let end = self.sleep_until(self.now().plus_ms(ms));
        tokio::select! {
            biased;
            done = what => Some(done),
            () = end => None,
        }
    }

    /// True if the wall clock was put forward. Where it was set back this goes on ahead of it: what
    /// is written down in order stays dated in order.
    pub(crate) fn is_behind(&self) -> bool {
        let behind_ms = wall_ahead_ms(&*self.clock).saturating_sub(self.ahead_ms());
        behind_ms > 0 && behind_ms.unsigned_abs() >= STEP_MS_MIN
    }

    /// Sets the clock by the wall clock, and by the step that was `kept` with the state.
    pub(crate) fn set_from_wall_clock(&self, kept: Option<ClockRow>) -> Settled {
        let ahead_ms = wall_ahead_ms(&*self.clock);
        let (clock, step_ms) = orchestrator::settle(kept, self.clock.boot(), ahead_ms);
        self.ahead_ms.store(clock.ahead_ms, Ordering::Relaxed);
        self.stepped_ms.fetch_add(step_ms.unwrap_or_default(), Ordering::Relaxed);
        let at = self.moment();
        Settled { clock, step: step_ms.map(|ms| Step::of(ms, at.now)), at }
    }
}

fn wall_ahead_ms(clock: &dyn Clock) -> i64 {
    let ms = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    ms(clock.now().0).saturating_sub(ms(clock.up_ms()))
}
