//! Local terminal while a remote process or a view uses it. Owns: that its modes are restored on
//! every exit path, the typed input, and its size. Does not know about: the destination of the
//! input.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, Once, PoisonError};

use api_types::TerminalSize;
use crossterm::cursor::Show;
use crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use cli_kit::exit::Error;

/// Maximum number of bytes in one read.
const PIECE_BYTES: usize = 16 << 10;

/// Saved modes of the terminal; `None` while they are unchanged.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);

/// Saved modes of the terminal.
struct Before {
    modes: Termios,
    /// Screen in use.
    page: Page,
}

/// Screen to draw on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    /// The normal screen.
    Same,
    /// The alternate screen, which disappears afterwards.
    Own,
}

/// Raw mode of the terminal while this lives.
#[derive(Debug)]
pub(super) struct Raw(());

impl Raw {
    pub(super) fn enter(page: Page) -> Result<Self, Error> {
        static AT_PANIC: Once = Once::new();
        AT_PANIC.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                report(panic);
            }));
        });
        let stdin = std::io::stdin();
        let modes = tcgetattr(stdin.as_fd()).map_err(std::io::Error::from)?;
        let mut raw = modes.clone();
        raw.make_raw();
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Before { modes, page });
        let raw_now = Self(());
        tcsetattr(stdin.as_fd(), OptionalActions::Now, &raw).map_err(std::io::Error::from)?;
        if page == Page::Own {
            let blank = Clear(ClearType::All);
            crossterm::execute!(std::io::stdout(), EnterAlternateScreen, blank)?;
        }
        Ok(raw_now)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

#[expect(clippy::disallowed_methods, reason = "a failed write is dropped")]
fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Before { modes, page }) = before else { return };
    let left = match page {
        Page::Same => Ok(()),
        Page::Own => crossterm::execute!(std::io::stdout(), LeaveAlternateScreen, Show),
    };
    // Waits until all output is printed: the following output is that of this machine again.
    let put_back = tcsetattr(std::io::stdin().as_fd(), OptionalActions::Drain, &modes);
    if left.is_err() || put_back.is_err() {
        // The terminal is gone, or restoring it failed, which the user has to know.
        drop(writeln!(std::io::stderr(), "\r\nthe terminal was not put back; type `stty sane`\r"));
    }
}

/// True if the input is a terminal.
pub(super) fn is_here() -> bool {
    std::io::stdin().is_terminal()
}

/// Size of the terminal; `None` without a terminal.
pub(super) fn size() -> Option<TerminalSize> {
    let of = |fd: std::os::fd::BorrowedFd<'_>| tcgetwinsize(fd).ok();
    let found = of(std::io::stdin().as_fd()).or_else(|| of(std::io::stdout().as_fd()))?;
    let size = TerminalSize { rows: found.ws_row, columns: found.ws_col };
    (size.rows > 0 && size.columns > 0).then_some(size)
}

/// Typed input, in pieces; closes at its end. The thread that reads is left behind when the program
/// ends, as nothing else ends a read.
pub(super) fn typed() -> mpsc::Receiver<Vec<u8>> {
    let (to, typed) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match stdin.read(&mut piece) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // A terminal that is gone sends no more input.
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    if to.blocking_send(piece[..count].to_vec()).is_err() {
                        return;
                    }
                }
            }
        }
    });
    typed
}
