//! Which part of the past counts, and how much. Owns: the steps in which time passes for usage,
//! and the weight of each. Integers only.

use thiserror::Error;
use units::Instant;

/// Steps of a window in which nothing decays: a week counts by the hour.
const STEPS: u64 = 168;
/// Steps of a half-life: what is one step old has lost less than 5 % of its weight.
const STEPS_PER_HALF_LIFE: u64 = 16;
/// Most steps that are remembered: after 32 half-lives nothing is left.
const STEPS_MAX: u64 = 32 * STEPS_PER_HALF_LIFE;
/// Shortest window and half-life, in milliseconds.
const SPAN_MS_MIN: u64 = 60_000;
/// Longest window and half-life, in milliseconds: ten years.
const SPAN_MS_MAX: u64 = 10 * 366 * 86_400_000;

/// The weight of the newest step.
const ONE: u64 = 1 << 30;
/// Bits behind the point while weights are computed.
const BITS: u32 = 62;
/// The natural logarithm of 2, with [`BITS`] bits behind the point.
const LN_2: u128 = 3_196_577_161_300_663_915;

/// How a window moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowKind {
    /// It always ends now.
    Sliding,
    /// One follows the other; each begins with a clean sheet.
    Tumbling {
        /// When some window begins.
        start: Instant,
    },
}

/// Why a window was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UsageWindowError {
    /// Too short or too long a window.
    #[error("the window of usage is between 1 minute and 10 years long")]
    Length,
    /// Too short or too long a half-life.
    #[error("the half-life of usage is between 1 minute and 10 years")]
    HalfLife,
}

/// The past that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageWindow {
    length_ms: u64,
    kind: WindowKind,
    half_life_ms: Option<u64>,
}

impl UsageWindow {
    /// A window of this length; with a half-life, what is that old counts half.
    ///
    /// # Errors
    /// A span that is too short or too long.
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

    /// Its length.
    #[must_use]
    pub const fn length_ms(&self) -> u64 {
        self.length_ms
    }

    /// How it moves.
    #[must_use]
    pub const fn kind(&self) -> WindowKind {
        self.kind
    }

    /// After how long usage counts half.
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

    /// Steps that are remembered.
    #[must_use]
    pub fn steps(&self) -> usize {
        usize::try_from((self.length_ms / self.step_ms()).min(STEPS_MAX)).unwrap_or(usize::MAX)
    }

    /// Where the steps are counted from at an instant: the start of its tumbling window, or of time.
    #[must_use]
    pub fn origin(&self, at: Instant) -> Instant {
        match self.kind {
            WindowKind::Sliding => Instant::default(),
            WindowKind::Tumbling { start } => {
                let first = start.0 % self.length_ms;
                // Before the first full one there is one that began with time itself.
                let since = at.0.checked_sub(first).map(|ms| ms % self.length_ms);
                since.map_or(Instant::default(), |ms| Instant(at.0 - ms))
            }
        }
    }

    /// The start of the step an instant is in.
    #[must_use]
    pub fn step_start(&self, at: Instant) -> Instant {
        let origin = self.origin(at);
        Instant(at.0 - at.since_ms(origin) % self.step_ms())
    }

    /// The start of the next step.
    #[must_use]
    pub fn next_step(&self, at: Instant) -> Instant {
        let next = self.step_start(at).plus_ms(self.step_ms());
        let origin = self.origin(next);
        // The last step of a tumbling window may be cut short by the next window.
        if origin > at { origin } else { next }
    }

    /// Steps of the window that are over.
    #[must_use]
    pub fn steps_before(&self, at: Instant) -> usize {
        let over = at.since_ms(self.origin(at)) / self.step_ms();
        usize::try_from(over).unwrap_or(usize::MAX).min(self.steps())
    }

    /// True if a tumbling window begins at an instant.
    pub(super) fn begins_at(&self, at: Instant) -> bool {
        self.kind != WindowKind::Sliding && self.origin(at) == at
    }

    /// The weight of each remembered step, the newest first: `2^30 · 2^(-age / half-life)`, off by
    /// less than one.
    pub(super) fn weights(&self) -> Vec<u64> {
        let Some(half_life_ms) = self.half_life_ms else { return vec![ONE; self.steps()] };
        let ratio = half_to_the(self.step_ms(), half_life_ms);
        let scale = |weight: u128| u64::try_from((weight + (1 << (BITS - 31))) >> (BITS - 30));
        let one = 1_u128 << BITS;
        let weights = std::iter::successors(Some(one), |weight| Some((weight * ratio) >> BITS));
        weights.map(|weight| scale(weight).unwrap_or(ONE)).take(self.steps()).collect()
    }
}

/// `2^(-part / whole)` for a part of at most the whole, with [`BITS`] bits behind the point: the
/// series of `e^-y` with `y = ln 2 · part / whole`.
fn half_to_the(part: u64, whole: u64) -> u128 {
    let y = LN_2 * u128::from(part) / u128::from(whole);
    let (mut sum, mut term) = (0_u128, 1_u128 << BITS);
    let mut terms = Vec::new();
    for n in 1..=24 {
        terms.push(term);
        term = ((term * y) >> BITS) / n;
    }
    // From the smallest on, so that no partial sum is below zero.
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
