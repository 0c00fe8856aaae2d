//! The past that counts for usage, and its weight. Owns: the time steps of usage, and the weight of
//! each. Integers only.

use thiserror::Error;
use units::Instant;

/// Number of steps of a window without decay: a week has steps of an hour.
const STEPS: u64 = 168;
/// Number of steps of a half-life: after one step less than 5 % of the weight is lost.
const STEPS_PER_HALF_LIFE: u64 = 16;
/// Maximum number of steps: after 32 half-lives the weight is zero.
const STEPS_MAX: u64 = 32 * STEPS_PER_HALF_LIFE;
/// Shortest window and half-life, in milliseconds.
const SPAN_MS_MIN: u64 = 60_000;
/// Longest window and half-life, in milliseconds: ten years.
const SPAN_MS_MAX: u64 = 10 * 366 * 86_400_000;

/// Weight of the newest step.
const ONE: u64 = 1 << 30;
/// Fractional bits while weights are computed.
const BITS: u32 = 62;
/// The natural logarithm of 2, with [`BITS`] fractional bits.
const LN_2: u128 = 3_196_577_161_300_663_915;

/// Movement of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowKind {
    /// The window always ends now.
    Sliding,
    /// Windows follow each other; each begins without history.
    Tumbling {
        /// Beginning of one of the windows.
        start: Instant,
    },
}

/// Error of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UsageWindowError {
    /// The window is too short or too long.
    #[error("the window of usage is between 1 minute and 10 years long")]
    Length,
    /// The half-life is too short or too long.
    #[error("the half-life of usage is between 1 minute and 10 years")]
    HalfLife,
}

/// Window of the past that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageWindow {
    length_ms: u64,
    kind: WindowKind,
    half_life_ms: Option<u64>,
}

impl UsageWindow {
    /// A window of this length; with a half-life, usage of that age counts half.
    ///
    /// # Errors
    /// A span is too short or too long.
    pub fn new(
        length_ms: u64,
        kind: WindowKind,
        half_life_ms: Option<u64>,
    ) -> Result<Self, UsageWindowError> {
        let sound = |ms: u64| (SPAN_MS_MIN..=SPAN_MS_MAX).contains(&ms);
        if !sound(length_ms) {
            return Err(UsageWindowError::Length);
        }
        if half_life_ms.is_some_and(|ms| !sound(ms)) {
            return Err(UsageWindowError::HalfLife);
        }
        Ok(Self { length_ms, kind, half_life_ms })
    }

    /// Its length in milliseconds.
    #[must_use]
    pub const fn length_ms(&self) -> u64 {
        self.length_ms
    }

    /// How it moves.
    #[must_use]
    pub const fn kind(&self) -> WindowKind {
        self.kind
    }

    /// Half-life of usage in milliseconds; `None` for no decay.
    #[must_use]
    pub const fn half_life_ms(&self) -> Option<u64> {
        self.half_life_ms
    }

    /// The length of a step in milliseconds: usage is recomputed at the end of each.
    #[must_use]
    pub fn step_ms(&self) -> u64 {
        let decay_ms = self.half_life_ms.map_or(u64::MAX, |ms| ms / STEPS_PER_HALF_LIFE);
        (self.length_ms / STEPS).min(decay_ms)
    }

    /// Number of steps that are kept.
    #[must_use]
    pub fn steps(&self) -> usize {
        usize::try_from((self.length_ms / self.step_ms()).min(STEPS_MAX)).unwrap_or(usize::MAX)
    }

    /// Origin of the steps at an instant: the start of its tumbling window, or the epoch.
    #[must_use]
    pub fn origin(&self, at: Instant) -> Instant {
        match self.kind {
            WindowKind::Sliding => Instant::default(),
            WindowKind::Tumbling { start } => {
                let first = start.0 % self.length_ms;
                // The window before the first full one begins at the epoch.
                let since = at.0.checked_sub(first).map(|ms| ms % self.length_ms);
                since.map_or(Instant::default(), |ms| Instant(at.0 - ms))
            }
        }
    }

    /// Start of the step that contains an instant.
    #[must_use]
    pub fn step_start(&self, at: Instant) -> Instant {
        let origin = self.origin(at);
        Instant(at.0 - at.since_ms(origin) % self.step_ms())
    }

    /// Start of the next step.
    #[must_use]
    pub fn next_step(&self, at: Instant) -> Instant {
        let next = self.step_start(at).plus_ms(self.step_ms());
        let origin = self.origin(next);
        // The last step of a tumbling window may be cut short by the next window.
        if origin > at { origin } else { next }
    }

    /// Number of steps of the window that are over.
    #[must_use]
    pub fn steps_before(&self, at: Instant) -> usize {
        let over = at.since_ms(self.origin(at)) / self.step_ms();
        usize::try_from(over).unwrap_or(usize::MAX).min(self.steps())
    }

    /// True if a tumbling window begins at an instant.
    pub(super) fn begins_at(&self, at: Instant) -> bool {
        self.kind != WindowKind::Sliding && self.origin(at) == at
    }

    /// Weight of each kept step, the newest first: `2^30 · 2^(-age / half-life)`, with an error
    /// below one.
    pub(super) fn weights(&self) -> Vec<u64> {
        let Some(half_life_ms) = self.half_life_ms else { return vec![ONE; self.steps()] };
        let ratio = half_to_the(self.step_ms(), half_life_ms);
        let scale = |weight: u128| u64::try_from((weight + (1 << (BITS - 31))) >> (BITS - 30));
        let one = 1_u128 << BITS;
        let weights = std::iter::successors(Some(one), |weight| Some((weight * ratio) >> BITS));
        weights.map(|weight| scale(weight).unwrap_or(ONE)).take(self.steps()).collect()
    }
}

/// `2^(-part / whole)` for a part of at most the whole, with [`BITS`] fractional bits: the series
/// of `e^-y` with `y = ln 2 · part / whole`.
fn half_to_the(part: u64, whole: u64) -> u128 {
    let y = LN_2 * u128::from(part) / u128::from(whole);
    let (mut sum, mut term) = (0_u128, 1_u128 << BITS);
    let mut terms = Vec::new();
    for n in 1..=24 {
        terms.push(term);
        term = ((term * y) >> BITS) / n;
    }
    // From the smallest term on, so that no partial sum is below zero.
    for &term in terms.iter().rev() {
        sum = term.saturating_sub(sum);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;

    fn tumbling(length_ms: u64, start: u64) -> UsageWindow {
        let kind = WindowKind::Tumbling { start: Instant(start) };
        UsageWindow::new(length_ms, kind, None).unwrap()
    }

    #[test]
    fn a_week_counts_by_the_hour() {
        let window = UsageWindow::new(7 * DAY, WindowKind::Sliding, None).unwrap();
        assert_eq!((window.step_ms(), window.steps()), (3_600_000, 168));
        let decaying = UsageWindow::new(7 * DAY, WindowKind::Sliding, Some(DAY)).unwrap();
        assert_eq!((decaying.step_ms(), decaying.steps()), (3_600_000, 168));
        let fast = UsageWindow::new(7 * DAY, WindowKind::Sliding, Some(DAY / 24)).unwrap();
        assert_eq!((fast.step_ms(), fast.steps()), (225_000, 512));
    }

    #[test]
    fn weights_halve_with_each_half_life() {
        let window = UsageWindow::new(7 * DAY, WindowKind::Sliding, Some(16 * 3_600_000)).unwrap();
        let weights = window.weights();
        for (age, &weight) in weights.iter().enumerate() {
            let exact = 2_f64.powf(30.0 - age as f64 / 16.0);
            assert!((weight as f64 - exact).abs() <= 0.51, "{age}: {weight} for {exact}");
        }
        assert_eq!([weights[0], weights[16], weights[32]], [1 << 30, 1 << 29, 1 << 28]);
    }

    #[test]
    fn tumbling_windows_begin_where_they_are_told() {
        let window = tumbling(DAY, 5 * DAY + 1000);
        for at in [5 * DAY + 1000, 4 * DAY + 1000, 9 * DAY + 1000] {
            assert!(window.begins_at(Instant(at)), "{at}");
            assert_eq!(window.step_start(Instant(at)), Instant(at));
            assert_eq!(window.next_step(Instant(at - 1)), Instant(at));
        }
        assert!(!window.begins_at(Instant(5 * DAY)));
    }

    #[test]
    fn steps_follow_each_other_without_a_gap() {
        for window in [tumbling(100_000, 777), tumbling(60_007, 5)] {
            let mut at = Instant::default();
            for _ in 0..2000 {
                let next = window.next_step(at);
                assert!(next > at && next.since_ms(at) <= window.step_ms());
                assert_eq!(window.step_start(Instant(next.0 - 1)), at);
                assert_eq!(window.step_start(next), next);
                at = next;
            }
        }
    }

    #[test]
    fn spans_that_make_no_sense_are_refused() {
        let new = |length, half| UsageWindow::new(length, WindowKind::Sliding, half);
        assert_eq!(new(0, None), Err(UsageWindowError::Length));
        assert_eq!(new(u64::MAX, None), Err(UsageWindowError::Length));
        assert_eq!(new(DAY, Some(0)), Err(UsageWindowError::HalfLife));
        assert_eq!(new(DAY, Some(u64::MAX)), Err(UsageWindowError::HalfLife));
    }
}
