//! What a context takes of a real GPU, which the driver of each model decides. Owns: having one made
//! on each GPU, and asking the driver what it takes. Does not know about: who is charged for it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use gpu::{Activity, Sampler};

/// What each of those that make a context takes besides, so that it says when it has one.
const TAKEN: u64 = 2 << 20;
/// A driver that nothing used before needs some seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes that a context takes of each of these real GPUs, by UUID; of one that does not say it, none.
/// `program` is the server's. Blocks for a second or so.
pub(crate) fn measure(program: &Path, gpus: &[String]) -> BTreeMap<String, u64> {
    measure_by(program, gpus, || Sampler::open().map(|driver| driver.sample()).unwrap_or_default())
}

fn measure_by(
    program: &Path,
    gpus: &[String],
    sample: impl FnOnce() -> Vec<Activity>,
) -> BTreeMap<String, u64> {
    let mut made = Vec::new();
    for gpu in gpus {
        match start(program, gpu) {
            Ok(child) => made.push((gpu, child)),
            Err(error) => tracing::warn!("what a context takes of {gpu} is not known: {error}"),
        }
    }
    let until = Instant::now() + PATIENCE;
    made.retain_mut(|(gpu, child)| {
        let ready = child.stdout.take().is_some_and(|out| says(out, until));
        if !ready {
            tracing::warn!("what a context takes of {gpu} is not known: none was made");
            end(child);
        }
        ready
    });
    let seen = if made.is_empty() { Vec::new() } else { sample() };
    let mut taken = BTreeMap::new();
    for (gpu, mut child) in made {
        let activity = seen.iter().find(|activity| activity.uuid == *gpu);
        let own = activity.and_then(|activity| activity.of(|pid| pid == child.id()));
        if let Some(bytes) = own.and_then(|own| own.memory_bytes) {
            taken.insert(gpu.clone(), bytes.saturating_sub(TAKEN));
        }
        end(&mut child);
    }
    taken
}

/// A process that makes a context and keeps it.
fn start(program: &Path, gpu: &str) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    command.args(["gpu-check", "--hold", &format!("{TAKEN}B")]);
    command.env_clear().env("CUDA_VISIBLE_DEVICES", gpu).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

/// Whether it says in time that it has a context.
fn says(out: ChildStdout, until: Instant) -> bool {
    let (sender, line) = channel();
    // It ends with the process.
    let reader = std::thread::Builder::new().spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(out).read_line(&mut line);
        // The other end may have given up.
        let _sent = sender.send(read.map(|_bytes| line));
    });
    let left = until.saturating_duration_since(Instant::now());
    let line = reader.ok().and_then(|_thread| line.recv_timeout(left).ok());
    line.is_some_and(|line| line.is_ok_and(|line| line.contains("granted")))
}

fn end(child: &mut Child) {
    let ended = child.kill().and_then(|()| child.wait());
    if let Err(error) = ended {
        tracing::warn!("a program that made a context of a GPU cannot be ended: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn program(folder: &Path, does: &str) -> std::path::PathBuf {
        let path = folder.join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{does}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn where_no_context_is_made_none_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let ends = program(folder.path(), "exit 1");
        let gpus = ["GPU-1".to_owned(), "GPU-2".to_owned()];
        let never = || -> Vec<Activity> { panic!("there is nothing to ask for") };
        assert!(measure_by(&ends, &gpus, never).is_empty());
        assert!(measure_by(Path::new("/none"), &gpus, never).is_empty());
    }

    #[test]
    fn what_the_driver_shows_of_it_is_what_it_takes() {
        let folder = tempfile::tempdir().unwrap();
        let keep = format!(
            "echo $$ >> {}/pids\necho '2 MiB: granted, and kept'\nexec sleep 100",
            folder.path().display()
        );
        let keeps = program(folder.path(), &keep);
        let sample = || {
            let pid = std::fs::read_to_string(folder.path().join("pids")).unwrap();
            let memory_bytes = Some(500 << 20);
            let own = gpu::ProcessActivity { busy_millis: None, memory_bytes };
            let processes = [(pid.trim().parse().unwrap(), own), (1, own)].into();
            vec![Activity { uuid: "GPU-1".to_owned(), busy_millis: None, memory_bytes, processes }]
        };
        let measured = measure_by(&keeps, &["GPU-1".to_owned()], sample);
        assert_eq!(measured, [("GPU-1".to_owned(), 498 << 20)].into());
    }
}
