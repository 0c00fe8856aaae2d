//! Workers of a job with high priority. Owns: the published spellings and the assignment. Does not
//! know about: the effect of a priority in the scheduler.

use std::str::FromStr;

/// `--worker_pod_priority`: how many of the workers have high priority. One worker of high priority
/// keeps a job running when all others are preempted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum High {
    /// All workers have the priority of this name; empty for none.
    Class(String),
    /// A part of them, in millionths, rounded up and spread over both ends: 0, N-1, 1, N-2 …
    Share(u32),
    /// A part of them, in millionths, rounded down and from the first on: the older spelling
    /// `high=0.5`.
    FirstShare(u32),
}

/// Why a priority cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "worker_pod_priority: {typed:?} is not a part of the workers; give the name of a priority, \
     a number from 0 to 1, or high= and a number from 0 to 1"
)]
pub struct PriorityError {
    typed: String,
}

const WHOLE: u32 = 1_000_000;

impl FromStr for High {
    type Err = PriorityError;

    fn from_str(typed: &str) -> Result<Self, PriorityError> {
        let text = typed.trim();
        let error = || PriorityError { typed: typed.to_owned() };
        if let Some(part) = text.strip_prefix("high=") {
            return millionths(part.trim()).map(Self::FirstShare).ok_or_else(error);
        }
        match millionths(text) {
            Some(part) => Ok(Self::Share(part)),
            None if text.starts_with(|first: char| !first.is_ascii_alphabetic()) => {
                if text.is_empty() { Ok(Self::Class(String::new())) } else { Err(error()) }
            }
            None if text.contains('=') => Err(error()),
            None => Ok(Self::Class(text.to_owned())),
        }
    }
}

/// A decimal number from 0 to 1, exactly, of at most six digits behind the point.
fn millionths(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + part.len() == 0 || part.len() > 6 || !digits(whole) || !digits(part) {
        return None;
    }
    let whole: u32 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u32 = format!("{part:0<6}").parse().ok()?;
    let sum = whole.checked_mul(WHOLE)?.checked_add(part)?;
    (sum <= WHOLE).then_some(sum)
}

impl High {
    /// The priority of each of `count` workers: the name of a class, or none.
    #[must_use]
    pub fn assign(&self, count: u32) -> Vec<Option<&str>> {
        let exact = |part: &u32| u64::from(count) * u64::from(*part);
        let high = |index| match self {
            Self::Class(_) => true,
            // The numbers fit: they are at most `count`.
            Self::Share(part) => turn(index, count) < exact(part).div_ceil(u64::from(WHOLE)),
            Self::FirstShare(part) => u64::from(index) < exact(part) / u64::from(WHOLE),
        };
        let name = |index| match self {
            Self::Class(name) => (!name.is_empty()).then_some(name.as_str()),
            _ if high(index) => Some("high"),
            _ => Some("low"),
        };
        (0..count).map(name).collect()
    }
}

/// The place of a worker in 0, N-1, 1, N-2 …
fn turn(index: u32, count: u32) -> u64 {
    let from_the_end = count - 1 - index;
    if index <= from_the_end { 2 * u64::from(index) } else { 2 * u64::from(from_the_end) + 1 }
}

#[cfg(test)]
mod tests {
    use super::High;

    fn high(text: &str, count: u32) -> String {
        let priority: High = text.parse().expect("reads");
        let letters = priority.assign(count).into_iter();
        letters.map(|name| name.map_or('-', |name| name.chars().next().unwrap_or('?'))).collect()
    }

    #[test]
    fn a_part_is_rounded_up_and_taken_from_both_ends() {
        assert_eq!(high("0.5", 4), "hllh");
        assert_eq!(high("0.5", 5), "hhllh");
        assert_eq!(high("0.01", 3), "hll");
        assert_eq!(
            (high("0", 3), high("1", 3), high("1.0", 2)),
            ("lll".into(), "hhh".into(), "hh".into())
        );
    }

    #[test]
    fn the_older_spelling_rounds_down_and_takes_the_first() {
        assert_eq!(high("high=0.5", 5), "hhlll");
        assert_eq!(high("high=0.1", 5), "lllll");
    }

    #[test]
    fn a_name_is_for_all() {
        assert_eq!((high("low-priority", 2), high("", 2)), ("ll".into(), "--".into()));
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in ["high=", "high=2", "1.5", "-0.5", "0.1234567", "low=0.5", ".", "½"] {
            assert!(text.parse::<High>().is_err(), "{text}");
        }
    }
}
