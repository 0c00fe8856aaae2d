//! Messages for a terminal. Owns: that no foreign name or text in them moves the cursor, changes
//! the title or hides a line. Output of workloads is not passed through here.

use std::io::{self, IsTerminal as _, Write};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time without output after which progress is shown.
const SILENT_MAX: Duration = Duration::from_secs(1);

/// The text with every control character but line breaks and tabs replaced.
pub fn plain(text: &str) -> String {
    let kept = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().map(|c| if kept(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// True if hints and notes are off. Set once at the start of the process.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Turns hints and notes off: only answers and errors are printed.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// True if only answers and errors are printed.
#[must_use]
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a note to standard error. A failed write, as with a script that closed the stream, is
/// ignored.
pub fn print_note(line: &str) {
    if !is_quiet() {
        print_always(line);
    }
}

/// Prints a line even if hints and notes are off.
pub fn print_always(line: &str) {
    print_prompt(&format!("{line}\n"));
}

/// Prints to the terminal without ending the line.
#[expect(clippy::disallowed_methods, reason = "a failed write is dropped")]
pub fn print_prompt(text: &str) {
    drop(io::stderr().write_all(plain(text).as_bytes()));
}

/// `true` if standard error is a terminal.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "nothing is written")]
pub fn is_shown() -> bool {
    io::stderr().is_terminal()
}

/// Awaits slow work; after a second, prints what is being done.
pub async fn with_progress<T>(doing: &str, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    if is_shown() {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(SILENT_MAX) => print_note(doing),
        }
    }
    work.await
}

/// A writer that replaces control characters in its text.
pub struct Plain<W>(pub W);

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        // Formatting passes whole texts.
        self.0.write_all(plain(&String::from_utf8_lossy(text)).as_bytes())?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::Plain;

    #[test]
    fn what_would_steer_a_terminal_is_shown_instead() {
        let mut out = Vec::new();
        writeln!(Plain(&mut out), "a\u{1b}[2J\tb\u{7}\u{9b}ü\r\nc").unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a\u{fffd}[2J\tb\u{fffd}\u{fffd}ü\u{fffd}\nc\n"
        );
    }
}
