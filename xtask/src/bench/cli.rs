//! Delay of a command line for a person. Owns: the time from the start of a program to the first
//! byte that it prints.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};

use super::server::Server;
use super::{line, milliseconds, percentile};

const CALLS: usize = 50;

/// Measures `runai list`, with a server and without.
pub(super) fn run(elastane: &Path, runai: &Path) -> Result<()> {
    let mut server = Server::new(elastane, "4x16GiB")?;
    server.start()?;
    server.create_project(4)?;
    let mut listed = calls(&server, runai)?;
    line("runai list to first byte, p50", percentile(&mut listed, 50), "ms", Some(8.0))?;
    server.kill()?;
    let mut refused = calls(&server, runai)?;
    line("runai list without a server, p50", percentile(&mut refused, 50), "ms", None)
}

/// Times of the calls until each printed something, on either stream, in milliseconds.
fn calls(server: &Server, runai: &Path) -> Result<Vec<f64>> {
    let call = |_| {
        let (mut printed, prints) = std::io::pipe()?;
        let mut command: Command = server.client(runai);
        command.args(["list", "-A"]).stdin(Stdio::null());
        command.stdout(prints.try_clone()?).stderr(prints);
        let since = Instant::now();
        let mut child = command.spawn().context("failed to start runai")?;
        // Else this process would keep the pipe open for ever.
        drop(command);
        printed.read_exact(&mut [0]).context("runai printed nothing")?;
        let waited = milliseconds(since);
        // The rest is of no interest, but must have somewhere to go.
        std::io::copy(&mut printed, &mut std::io::sink())?;
        child.wait()?;
        Ok(waited)
    };
    (0..CALLS).map(call).collect()
}
