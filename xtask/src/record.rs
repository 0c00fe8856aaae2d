//! `cargo xtask record`: the picture of a terminal in the README, made from what the programs
//! print. Owns: the session that is typed. Does not know about how it is drawn.

mod screen;
mod svg;

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::bench::server::Server;
use screen::Line;

pub(crate) const COLUMNS: u16 = 80;
pub(crate) const ROWS: u16 = 24;
const SESSION: &str = "docs/pictures/terminal.session";
const PICTURE: &str = "docs/pictures/terminal.svg";
const BYTES_MAX: usize = 150_000;
const WAIT_MAX: Duration = Duration::from_secs(30);

/// A line of the session.
#[derive(Debug, PartialEq)]
enum Step {
    Nodes(String),
    Type(String),
    Until(String),
    Pause(f64),
}

/// A command and what it printed.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) typed: String,
    pub(crate) printed: Vec<Line>,
    /// Seconds beyond those that its length gets.
    pub(crate) pause_s: f64,
}

/// Plays the session with the programs in a folder, and draws it.
///
/// # Errors
/// The programs are missing, a command fails, or it prints what cannot be drawn.
pub(crate) fn run(root: &Path, programs: &Path) -> Result<()> {
    let session = root.join(SESSION);
    let text = fs::read_to_string(&session).with_context(|| session.display().to_string())?;
    let steps = parse(&text).with_context(|| session.display().to_string())?;
    let programs = programs.canonicalize().with_context(|| programs.display().to_string())?;
    let picture = svg::draw(&play(&steps, &programs)?);
    ensure!(
        picture.len() <= BYTES_MAX,
        "the picture has {} bytes, more than {BYTES_MAX}: shorten {SESSION}",
        picture.len()
    );
    Ok(fs::write(root.join(PICTURE), picture)?)
}

fn parse(text: &str) -> Result<Vec<Step>> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(at, line)| step(line).with_context(|| format!("line {}", at + 1))).collect()
}

fn step(line: &str) -> Result<Step> {
    let (word, rest) = line.split_once(' ').context("a word and a value are needed")?;
    Ok(match word {
        "nodes" => Step::Nodes(rest.to_owned()),
        "$" => Step::Type(rest.to_owned()),
        "until" => Step::Until(rest.to_owned()),
        "pause" => Step::Pause(rest.parse().context("a number of seconds is needed")?),
        _ => bail!("`{word}` is not known; allowed are nodes, $, until and pause"),
    })
}

fn play(steps: &[Step], programs: &Path) -> Result<Vec<Scene>> {
    let Some((Step::Nodes(nodes), steps)) = steps.split_first() else {
        bail!("the session begins with `nodes`");
    };
    let mut server = Server::new(&programs.join("elastane"), nodes)?;
    server.start()?;
    let mut scenes: Vec<Scene> = Vec::new();
    for step in steps {
        match step {
            Step::Nodes(_) => bail!("`nodes` is said once"),
            Step::Until(line) => until(&server, programs, line)?,
            Step::Pause(seconds) => {
                scenes.last_mut().context("`pause` follows a command")?.pause_s += seconds;
            }
            Step::Type(line) => {
                let printed = at_terminal(&server, programs, line)?;
                let printed = screen::read(&printed).with_context(|| line.clone())?;
                scenes.push(Scene { typed: line.clone(), printed, pause_s: 0.0 });
            }
        }
    }
    Ok(scenes)
}

/// A shell that has the programs and finds the server.
fn shell(server: &Server, programs: &Path, words: &[&str]) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = server.client(Path::new("setsid"));
    command
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR")
        .args(words);
    command
}

fn until(server: &Server, programs: &Path, line: &str) -> Result<()> {
    let since = Instant::now();
    loop {
        let mut command = shell(server, programs, &["--wait", "sh", "-c", line]);
        let status = command.stdin(Stdio::null()).stderr(Stdio::null()).status()?;
        if status.success() {
            return Ok(());
        }
        ensure!(since.elapsed() < WAIT_MAX, "`{line}` does not succeed");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Output of a command line at a terminal.
fn at_terminal(server: &Server, programs: &Path, line: &str) -> Result<String> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    unlockpt(&master)?;
    let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size)?;
    let terminal = ioctl_tiocgptpeer(&master, flags)?;
    let mut command = shell(server, programs, &["--ctty", "--wait", "sh", "-c", line]);
    command.stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(terminal);
    let mut child = command.spawn().context("failed to start setsid")?;
    // The command holds the other side of the terminal, which has to end with the child.
    drop(command);
    let mut printed = Vec::new();
    match File::from(master).read_to_end(&mut printed) {
        // Linux returns this error when the last program has closed the terminal.
        Err(error)
            if error.raw_os_error() != Some(5) && error.kind() != ErrorKind::UnexpectedEof =>
        {
            return Err(error.into());
        }
        _ => {}
    }
    let status = child.wait()?;
    let printed = String::from_utf8(printed)?;
    ensure!(status.success(), "`{line}` failed ({status}): {printed}");
    Ok(printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_line_by_line() {
        let steps = parse("# why\nnodes 1x1x16GiB\n\n$ runai list\npause 1.5\n").unwrap();
        let wanted = [
            Step::Nodes("1x1x16GiB".to_owned()),
            Step::Type("runai list".to_owned()),
            Step::Pause(1.5),
        ];
        assert_eq!(steps, wanted);
        for (text, fault) in [
            ("nodes 1x1x16GiB\n> runai", "line 2: `>` is not known; allowed are nodes"),
            ("pause long", "line 1: a number of seconds is needed"),
            ("$", "line 1: a word and a value are needed"),
        ] {
            let said = format!("{:#}", parse(text).unwrap_err());
            assert!(said.starts_with(fault), "{said}");
        }
    }

    #[test]
    fn the_session_of_the_readme_can_be_read() {
        let steps = parse(&fs::read_to_string(crate::root().join(SESSION)).unwrap()).unwrap();
        assert!(matches!(steps[0], Step::Nodes(_)));
    }
}
