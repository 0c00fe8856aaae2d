//! Classes of memory of which one allocation cannot be half of a large GPU, and memory of another
//! process: tried with a small limit.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::Ordering;

use crate::{Check, Failed, MIB, Outcome, Passed, Result, Way};

/// MiB that a program may have beside its context.
const ROOM: u64 = 256;

/// Steps of each class: an allocation that is too large, one that fits, and its release.
const CLASSES: [[&str; 3]; 3] = [
    ["pitch:1048576:320", "pitch:1048576:160", "free"],
    ["array:16384:8192:0", "array:9216:4096:0", "endarray"],
    ["mipmap:16384:8192", "mipmap:8192:4096", "endmipmap"],
];

impl Check {
    pub(crate) fn small_limit(&self) -> Result<PathBuf> {
        self.pages("small", self.context.load(Ordering::Relaxed) + ROOM * MIB)
    }

    pub(crate) fn small_classes(&self) -> Result<Outcome> {
        let mut wrong = String::new();
        for [large, fitting, back] in CLASSES {
            let steps = format!("init retain {large} {fitting} {fitting} {back} {fitting}");
            let printed = self.probe(Way::Preload, &self.small_limit()?, &steps)?;
            let name = large.split(':').next().unwrap_or_default();
            let end = format!("{name} 2, {name} 0, {name} 2, {back} 0, {name} 0");
            if !printed.ends_with(&end) {
                write!(wrong, "{printed}; ")?;
            }
        }
        let detail = format!("{ROOM} MiB: pitched, arrays, mipmaps");
        Ok(if wrong.is_empty() { Passed(detail) } else { Failed(wrong) })
    }

    /// A process opens what another one, without a limit, has.
    pub(crate) fn shared_memory(&self) -> Result<Outcome> {
        let handle = self.folder.path().join("handle").display().to_string();
        let whole = self.pages("owner", self.total)?;
        let mut command = self.command(&self.folder.path().join("probe"), Way::None, &whole)?;
        let size = 2 * ROOM;
        command.args(["dlsym", "init", "retain", &format!("alloc:{size}M")]);
        command.args([&format!("share:{handle}"), "pause"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let ready = BufReader::new(stdout).lines().any(|line| line.is_ok_and(|l| l == "pause"));
        let steps = format!("init retain opened:{handle} alloc:{size}M alloc:128M closed");
        let printed = self.probe(Way::Preload, &self.small_limit()?, &steps);
        child.kill()?;
        child.wait()?;
        let printed = printed?;
        // The last one is of what was allocated last, which was not opened.
        let is = ready && printed.contains("opened 0, alloc 2, alloc 0");
        Ok(if is { Passed(printed) } else { Failed(printed) })
    }
}
