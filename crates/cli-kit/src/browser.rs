//! The browser of this machine. Owns: the check for a display, and how a browser is started. Does
//! not know about: the opened addresses.

use std::process::{Command, Stdio};

/// True if this session has a display, on which a browser would be visible.
#[must_use]
pub fn has_display() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos") || ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(set)
}

/// True if a browser was started.
#[must_use]
pub fn opens(url: &str) -> bool {
    let named = std::env::var("BROWSER").ok().filter(|name| !name.is_empty());
    let known = ["xdg-open", "open"].map(str::to_owned);
    let start = |program: &String| {
        let quiet = || Stdio::null();
        let mut command = Command::new(program);
        command.arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().is_ok()
    };
    named.iter().chain(&known).any(start)
}
