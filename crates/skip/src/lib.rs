//! A test that cannot run on this machine. Owns: the line that says so, which `make test` counts.
//! Does not know about what any test needs.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// Reports that the current test was skipped, with the reason, and how many of this program were so
/// far. The test harness can only count it as passed; the line goes past its capture, so that it
/// is seen in a plain `cargo test` too.
pub fn skipped(why: &str) {
    let test = std::thread::current();
    let test = test.name().unwrap_or("a test");
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "skipped: {test} ({why}); {count} counted as passed here");
}

/// The same for a fixture that is missing.
pub fn missing<T>(why: &str) -> Option<T> {
    skipped(why);
    None
}
