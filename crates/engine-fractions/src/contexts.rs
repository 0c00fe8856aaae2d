//! Memory that a context takes on a real GPU, which the driver decides for each model. Owns: having
//! one made on each unused GPU, and asking the driver for its size. Does not know about: which run
//! is charged for it.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use fraction_agent::Allocation;
use gpu::{Activity, Sampler};

use crate::attempt::GRANTED;

/// Memory that each process allocates, so that it prints a line once it has a context.
const TAKEN: u64 = 2 << 20;
/// A driver that nothing used before needs some seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes that a context takes of these real GPUs, by UUID. One that is in use is not touched: it
/// counts like the one that takes most; without any, none. `program` is the server's. Blocks for a
/// second or so.
pub(crate) fn measure(program: &Path, gpus: &[String]) -> BTreeMap<String, u64> {
    measure_by(program, gpus, &sample, PATIENCE)
}

/// Activity of the GPUs; empty if the driver does not answer in time.
fn sample() -> Vec<Activity> {
    let (sender, answer) = channel();
    let ask = move || Sampler::open().map(|driver| driver.sample()).unwrap_or_default();
    // The thread cannot be stopped inside a driver. The receiver may have given up.
    let asked = std::thread::Builder::new().spawn(move || sender.send(ask()));
    let answer = asked.ok().and_then(|_thread| answer.recv_timeout(PATIENCE).ok());
    answer.unwrap_or_default()
}

fn measure_by(
    program: &Path,
    gpus: &[String],
    sample: &dyn Fn() -> Vec<Activity>,
    patience: Duration,
) -> BTreeMap<String, u64> {
    let before = sample();
    let is_idle = |gpu: &&String| {
        before.iter().any(|activity| activity.uuid == **gpu && activity.processes.is_empty())
    };
    let mut made = Vec::new();
    for gpu in gpus.iter().filter(is_idle) {
        match start(program, gpu) {
            Ok((child, line)) => made.push((gpu, child, line)),
            Err(error) => tracing::warn!("what a context takes of {gpu} is not known: {error}"),
        }
    }
    let until = Instant::now() + patience;
    made.retain_mut(|(gpu, child, line)| {
        let left = until.saturating_duration_since(Instant::now());
        let ready = line.recv_timeout(left).is_ok_and(|line| is_granted(&line));
        if !ready {
            tracing::warn!("what a context takes of {gpu} is not known: none was made");
            end(child);
        }
        ready
    });
    let seen = if made.is_empty() { Vec::new() } else { sample() };
    let mut taken = BTreeMap::new();
    for (gpu, mut child, _line) in made {
        let activity = seen.iter().find(|activity| activity.uuid == *gpu);
        let own = activity.and_then(|activity| activity.of(|pid| pid == child.id()));
        match own.and_then(|own| own.memory_bytes) {
            Some(bytes) => drop(taken.insert(gpu.clone(), bytes.saturating_sub(TAKEN))),
            None => tracing::warn!("the driver does not show what a context takes of {gpu}"),
        }
        end(&mut child);
    }
    let most = taken.values().copied().max();
    for (gpu, most) in gpus.iter().filter_map(|gpu| Some((gpu, most?))) {
        taken.entry(gpu.clone()).or_insert(most);
    }
    taken
}

/// True for the line of a granted allocation.
fn is_granted(line: &str) -> bool {
    serde_json::from_str::<Allocation>(line).is_ok_and(|allocation| allocation.answer == GRANTED)
}

/// A process that makes a context and keeps it until its input ends, also with this process; and
/// its first line.
fn start(program: &Path, gpu: &str) -> io::Result<(Child, Receiver<String>)> {
    let mut command = Command::new(program);
    command.args(["gpu-check", "--json", "--until-eof", &format!("{TAKEN}B")]);
    command.env_clear().env("CUDA_VISIBLE_DEVICES", gpu).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let out = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
    let (sender, line) = channel();
    // It ends with the process.
    std::thread::Builder::new().spawn(move || {
        let mut line = String::new();
        if BufReader::new(out).read_line(&mut line).is_ok() {
            // The other end may have given up.
            let _sent = sender.send(line);
        }
    })?;
    Ok((child, line))
}

/// Ends a process. One that its driver does not let go is waited for by a thread.
fn end(child: &mut Child) {
    drop(child.stdin.take());
    if let Err(error) = child.kill() {
        tracing::warn!("a program that made a context of a GPU cannot be ended: {error}");
    }
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Ok(Some(_)) | Err(_) => return,
        }
    }
    tracing::warn!("a program that made a context of a GPU does not end: process {}", child.id());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mps::tests::script;

    /// A GPU with these processes and their memory, in MiB.
    fn gpu(name: &str, processes: &[(u32, u64)]) -> Activity {
        let process = |&(pid, mib): &(u32, u64)| {
            (pid, gpu::ProcessActivity { busy_millis: None, memory_bytes: Some(mib << 20) })
        };
        let processes = processes.iter().map(process).collect();
        let uuid = name.to_owned();
        Activity { uuid, busy_millis: None, memory_bytes: None, processes }
    }

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn where_no_context_is_made_none_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let refused = r#"echo '{"bytes":2097152,"answer":2}'; exec sleep 100"#;
        let idle = || vec![gpu("1", &[]), gpu("2", &[])];
        for (name, text) in [("ends", "exit 1"), ("refused", refused)] {
            let program = script(&folder, name, text);
            assert!(measure_by(&program, &names(&["1", "2"]), &idle, PATIENCE).is_empty());
        }
        assert!(measure_by(Path::new("/none"), &names(&["1"]), &idle, PATIENCE).is_empty());
    }

    #[test]
    fn a_silent_gpu_hides_no_other_and_one_in_use_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        let keep = format!(
            "[ $CUDA_VISIBLE_DEVICES = silent ] && exec sleep 100\n\
             echo $$ >> {}\necho '{{\"bytes\":2097152,\"answer\":0}}'\nexec sleep 100",
            pids.display()
        );
        let keeps = script(&folder, "program", &keep);
        let sample = || {
            let made = std::fs::read_to_string(&pids).unwrap_or_default();
            let made: Vec<_> = made.lines().map(|pid| (pid.parse().unwrap(), 500)).collect();
            vec![gpu("silent", &[]), gpu("idle", &made), gpu("used", &[(1, 9000)])]
        };
        let patience = Duration::from_secs(10);
        let measured = measure_by(&keeps, &names(&["silent", "idle", "used"]), &sample, patience);
        let each = |name: &str| (name.to_owned(), 498 << 20);
        assert_eq!(measured, ["silent", "idle", "used"].map(each).into());
        assert_eq!(std::fs::read_to_string(&pids).unwrap().lines().count(), 1);
    }
}
