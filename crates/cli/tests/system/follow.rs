//! Follows a walk-through. Owns: running a document's steps in a sandbox. Does not know about: the
//! content of a document.
//!
//! Two numbers differ from those of the document, as this machine may use them already: the
//! server's port and the forwarded port.

use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::document::{self, Step};
use crate::matching::compare;
use crate::sandbox::{Sandbox, end, free_port};

/// Ports in the documents: the server's, and the forwarded local one.
const SERVER_PORT: &str = "7070";
const LOCAL_PORT: &str = "8080";

/// A machine with the background commands of a document.
struct Machine {
    sandbox: Sandbox,
    background: Vec<Child>,
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/walkthroughs"))
}

pub(crate) fn read(name: &str) -> String {
    let path = folder().join(format!("{name}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Follows a document on a machine, with a time limit for each step; the error names the line with
/// another output.
pub(crate) fn follow_on(
    sandbox: Sandbox,
    text: &str,
    patience: impl Fn(&Step) -> Duration,
) -> Result<(), String> {
    let text = text.replace(SERVER_PORT, &sandbox.port().to_string());
    let steps = document::parse(&text.replace(LOCAL_PORT, &free_port().to_string()))?;
    let mut machine = Machine { sandbox, background: Vec::new() };
    if !steps.iter().any(Step::is_server) {
        return Err("no block starts a server with `$ elastane up`".to_owned());
    }
    for step in &steps {
        take(step, &mut machine, patience(step)).map_err(|what| {
            format!(
                "line {}: $ {}\n{what}server:\n{}",
                step.line,
                step.command,
                machine.sandbox.server_text()
            )
        })?;
    }
    Ok(())
}

fn take(step: &Step, machine: &mut Machine, patience: Duration) -> Result<(), String> {
    let Machine { sandbox, background } = machine;
    if step.is_server() {
        sandbox.start_server(&step.command);
        return repeat(patience, || compare(&step.expected, &sandbox.server_text()));
    }
    if let Some(command) = step.in_background() {
        let log = sandbox.home().join(format!("background.{}", background.len()));
        background.push(sandbox.begin(&format!("exec {command} > {} 2>&1", log.display())));
        let said = || fs::read_to_string(&log).unwrap_or_default();
        return repeat(patience, || compare(&step.expected, &said()));
    }
    if let Some(which) = step.ends() {
        let child =
            background.get_mut(which).ok_or("nothing of this number is in the background")?;
        end(child);
        return Ok(());
    }
    let once = || {
        let output = sandbox.shell(&step.command);
        match output.code {
            Some(0) => compare(&step.expected, &output.text),
            code => Err(format!("ended with {code:?} and printed:\n{}", output.text)),
        }
    };
    if step.is_read_only() { repeat(patience, once) } else { once() }
}

/// Repeats until success; returns the last failure.
fn repeat(
    patience: Duration,
    mut attempt: impl FnMut() -> Result<(), String>,
) -> Result<(), String> {
    let since = Instant::now();
    loop {
        let result = attempt();
        if result.is_ok() || since.elapsed() > patience {
            return result;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
