//! Trying the limits before they are relied on. Owns: a program that tries to exceed a tiny limit,
//! started as programs of runs are, and believing only what it saw. Does not know about: what is
//! promised where they do not work.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fraction_broker::{Broker, Device, Driver};

use crate::check::Report;
use crate::delivery::{Delivery, Target, Way};
use crate::libraries::{Libraries, open_folder};
use crate::pages::{Grant, Pages, Writer};

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 8 * MIB;
const LONGEST: Duration = Duration::from_secs(30);

/// Start of a run: its user and group, and a function that makes a command start with them and with
/// these mounts (source, and mount point).
pub type Place<'a> =
    ((u32, u32), &'a dyn Fn(&mut Command, Vec<(PathBuf, PathBuf)>) -> io::Result<()>);

/// Has `program gpu-check` try to exceed a limit of 8 MiB: of the simulated driver (`None`), or of
/// the installed one's GPU with this UUID. `folder` is for what that takes. `place`: where runs
/// start, if mounts keep their limits.
///
/// # Errors
/// Report of `gpu-check`, if the limit did not hold exactly.
pub fn self_test(
    program: &Path,
    libraries: &Libraries,
    folder: &Path,
    installed: Option<[u8; 16]>,
    place: Option<Place<'_>>,
) -> Result<(), String> {
    let io = |error: io::Error| error.to_string();
    let own = folder.join(format!("test-{}", std::process::id()));
    let result = attempt(program, libraries, &own, installed, place);
    if own.exists() {
        fs::remove_dir_all(&own).map_err(io)?;
    }
    result
}

fn attempt(
    program: &Path,
    libraries: &Libraries,
    own: &Path,
    installed: Option<[u8; 16]>,
    place: Option<Place<'_>>,
) -> Result<(), String> {
    let text = |error: crate::Error| match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    let (uuid, context) = (installed.unwrap_or([1; 16]), MIB);
    let (way, writer) = match place {
        Some(((uid, gid), _)) => (Way::Mounts, Writer::Account(uid, gid)),
        None => (Way::Variables, Writer::Server),
    };
    let pages = Pages::at(&own.join("pages"));
    open_folder(own).map_err(|error| error.to_string())?;
    pages.make(&[Grant { uuid, bytes: LIMIT, context }], writer).map_err(text)?;
    let socket = own.join("gpu");
    let device = Device { uuid, bytes: 2 * LIMIT, context_bytes: context };
    let driver = Driver { cuda_version: 13_000, devices: vec![device] };
    let (target, _broker) = match installed {
        Some(_) => (Target::Installed, None),
        None => {
            let broker = Broker::start(&socket, driver).map_err(|error| error.to_string())?;
            (Target::Simulated(vec![socket]), Some(broker))
        }
    };
    let pages = own.join("pages");
    let delivery = Delivery::of(libraries, &target, Some(&pages), way);
    let mut env = BTreeMap::new();
    delivery.complete(&mut env);
    if let Some(uuid) = installed {
        env.insert("CUDA_VISIBLE_DEVICES".to_owned(), crate::driver::uuid_text(uuid));
    }
    let mut command = Command::new(program);
    let sizes = [LIMIT, LIMIT - context, LIMIT - context + 1].map(|bytes| format!("{bytes}B"));
    command.args(["gpu-check", "--json"]).args(sizes).env_clear().envs(env).current_dir("/");
    if let Some((_, enter)) = place {
        enter(&mut command, delivery.mounts).map_err(|error| error.to_string())?;
    }
    let (reports, seen) = reports(&mut command)?;
    let answers = |report: &Report| {
        let answers: Vec<i32> = report.allocations.iter().map(|one| one.answer).collect();
        // A context of a real GPU alone is more than the limit.
        let kept = answers == [2, 0, 2] || (installed.is_some() && answers == [2, 2, 2]);
        kept && report.total == LIMIT
    };
    match reports.first() {
        Some(first) if answers(first) => Ok(()),
        _ => Err(format!("a program that tried to exceed 8 MiB saw {seen}")),
    }
}

/// Reports of `gpu-check --json`, and its output.
///
/// # Errors
/// It fails, does not end, or reports nothing.
pub fn reports(command: &mut Command) -> Result<(Vec<Report>, String), String> {
    let seen = answer(command, "", LONGEST)?;
    let reports = serde_json::from_str(&seen).map_err(|_| seen.trim().to_owned())?;
    Ok((reports, seen))
}

/// A program's output for a few lines of input.
///
/// # Errors
/// It fails, or does not end within `most`.
pub fn answer(command: &mut Command, input: &str, most: Duration) -> Result<String, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let given = child.stdin.take().map_or(Ok(()), |mut to| to.write_all(input.as_bytes()));
    let since = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if since.elapsed() > most => {
                let _killed = child.kill();
                let _collected = child.wait();
                return Err(format!("it did not end within {} s", most.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let (mut text, mut complaint) = (String::new(), String::new());
    // A few lines, which fit a pipe.
    let read = child.stdout.take().map_or(Ok(0), |mut out| out.read_to_string(&mut text));
    read.map_err(|error| error.to_string())?;
    let read = child.stderr.take().map_or(Ok(0), |mut out| out.read_to_string(&mut complaint));
    read.map_err(|error| error.to_string())?;
    match (status.success(), given) {
        (true, Ok(())) => Ok(text),
        (true, Err(error)) => Err(format!("it does not read: {error}")),
        (false, _) => Err(format!("{complaint}{text}").trim().to_owned()),
    }
}
