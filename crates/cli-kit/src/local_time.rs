//! Times as text, in the time zone of the reader: that of TZ, else that of the machine.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::table::ago;

/// A time to the second, with the offset from UTC: `2026-01-31 13:00:05 +01:00`.
#[must_use]
pub fn exact(at_ms: u64) -> String {
    in_zone(at_ms, TimeZone::system())
}

/// A time as [`exact`] writes it, or as RFC 3339 does, in milliseconds since 1970.
#[must_use]
pub fn at_ms(text: &str) -> Option<u64> {
    let text = text.trim().replace(" +", "+").replace(" -", "-");
    u64::try_from(text.parse::<Timestamp>().ok()?.as_millisecond()).ok()
}

/// A time for people: as an age, or exactly.
#[must_use]
pub fn moment(at_ms: u64, is_exact: bool) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    if is_exact { exact(at_ms) } else { ago(now_ms.saturating_sub(at_ms)) }
}

fn in_zone(at_ms: u64, zone: TimeZone) -> String {
    // Times beyond the calendar (year 9999) show as its last one.
    let ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
    let at = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX);
    at.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_the_offset_of_its_zone_on_that_day() {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let (january, july) = (1_769_860_805_999, 1_785_499_205_000);
        assert_eq!(in_zone(january, berlin.clone()), "2026-01-31 13:00:05 +01:00");
        assert_eq!(in_zone(july, berlin), "2026-07-31 14:00:05 +02:00");
        assert_eq!(in_zone(january, TimeZone::UTC), "2026-01-31 12:00:05 +00:00");
        for same in ["2026-01-31 13:00:05 +01:00", "2026-01-31T12:00:05Z"] {
            assert_eq!(at_ms(same), Some(january / 1000 * 1000), "{same}");
        }
        assert_eq!(at_ms("2026-01-31 13:00:05"), None, "in which zone?");
        assert_eq!(in_zone(u64::MAX, TimeZone::UTC), "9999-12-30 22:00:00 +00:00");
    }
}
