//! A test that cannot run on this machine. Owns: the line that reports it, which `make test`
//! counts. Does not know about the needs of any test.

use std::fs::OpenOptions;
use std::io::Write as _;

/// File in the folder of a run of the tests: a line for each that was skipped.
pub const FILE: &str = "skipped";

/// Reports that the current test was skipped, with the reason. The test harness can only count it
/// as passed; the line goes past its capture, so that it is seen in a plain `cargo test` too.
///
/// # Panics
/// The folder of the run cannot be written.
#[expect(clippy::disallowed_methods, reason = "a failed write is dropped")]
pub fn skipped(why: &str) {
    let test = std::thread::current();
    let line = format!("{} ({})\n", test.name().unwrap_or("a test"), why.replace('\n', " "));
    if let Some(folder) = fixture::folder() {
        let file = OpenOptions::new().create(true).append(true).open(folder.join(FILE));
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    }
    // Standard error may be closed.
    let _ = write!(std::io::stderr(), "skipped, counted as passed here: {line}");
}

/// Skips a test whose fixture is missing.
pub fn missing<T>(why: &str) -> Option<T> {
    skipped(why);
    None
}
