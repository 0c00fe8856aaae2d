//! A local engine on a folder of its own, with the test supervisor. Owns: crashing the server
//! and killing supervisors.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use engine::{Engine, RunKey, RunSpec};
use engine_conformance::{Fixture, spec};
use engine_fractions::{FractionOptions, FractionPolicy};
use engine_local::{ImageTable, LocalEngine, Options, Separation};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The program that supervises.
pub(crate) const SUPERVISOR: &str = env!("CARGO_BIN_EXE_elastane-test-supervisor");

/// Most of a run's output that is kept.
pub(crate) const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// The fixture. Runs that a failed test leaves are killed when it is dropped.
pub(crate) struct Bench {
    folder: TempDir,
    supervisor: PathBuf,
    engine: Option<Arc<LocalEngine>>,
    next: AtomicU32,
    separation: Option<Separation>,
    fractions: FractionOptions,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_supervisor(Path::new(SUPERVISOR))
    }

    pub(crate) fn with_supervisor(supervisor: &Path) -> Self {
        Self::with(supervisor, None)
    }

    /// One with these isolation settings.
    pub(crate) fn with(supervisor: &Path, separation: Option<Separation>) -> Self {
        Self::with_fractions(supervisor, separation, FractionOptions::default())
    }

    /// One with these options for fractions of GPUs.
    pub(crate) fn with_fractions(
        supervisor: &Path,
        separation: Option<Separation>,
        fractions: FractionOptions,
    ) -> Self {
        Self::on(tempfile::tempdir().expect("a folder"), supervisor, separation, fractions)
    }

    /// One on a folder in memory, as some disks take milliseconds for each folder that goes.
    pub(crate) fn in_memory() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a folder");
        Self::on(folder, Path::new(SUPERVISOR), None, FractionOptions::default())
    }

    fn on(
        folder: TempDir,
        supervisor: &Path,
        separation: Option<Separation>,
        fractions: FractionOptions,
    ) -> Self {
        let engine = Some(open(folder.path(), supervisor, separation.clone(), fractions.clone()));
        let supervisor = supervisor.to_owned();
        Self { folder, supervisor, engine, next: AtomicU32::new(0), separation, fractions }
    }

    /// Drops the engine as a crash of the server would.
    pub(crate) fn close(&mut self) {
        drop(self.engine.take());
    }

    pub(crate) fn signal_supervisor(&self, key: RunKey, signal: Signal) {
        let found = supervisors(&self.run_dir(key));
        assert_eq!(found.len(), 1, "one supervisor");
        kill_process(found[0], signal).expect("ours");
    }

    /// Opens the engine again with another policy for fractions of GPUs.
    pub(crate) async fn reopen_with(&mut self, policy: FractionPolicy) {
        self.reopen_for(FractionOptions { policy, ..FractionOptions::default() }).await;
    }

    /// Opens the engine again with other options for fractions of GPUs.
    pub(crate) async fn reopen_for(&mut self, fractions: FractionOptions) {
        self.fractions = fractions;
        self.reopen().await;
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(crate) fn run_dir(&self, key: RunKey) -> PathBuf {
        self.folder.path().join("runs").join(key.to_string())
    }
}

fn open(
    folder: &Path,
    supervisor: &Path,
    separation: Option<Separation>,
    fractions: FractionOptions,
) -> Arc<LocalEngine> {
    let images = ImageTable::new(supervisor);
    let options = Options {
        state_dir: folder.to_owned(),
        supervisor: supervisor.to_owned(),
        images,
        umask: Some(0o027),
        output_bytes_max: OUTPUT_BYTES_MAX,
        copy_bytes_max: 1 << 30,
        separation,
        fractions: Some(fractions),
    };
    Arc::new(LocalEngine::open(options).expect("an engine"))
}

/// The supervisor's process, found by its command line.
pub(crate) fn supervisors(run_dir: &Path) -> Vec<Pid> {
    let run_dir = run_dir.canonicalize().unwrap_or_else(|_| run_dir.to_owned());
    let own = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let last = line.split(|byte| *byte == 0).rfind(|word| !word.is_empty())?;
        let ours = last == run_dir.as_os_str().as_encoded_bytes();
        if ours { Pid::from_raw(entry.file_name().to_str()?.parse().ok()?) } else { None }
    };
    std::fs::read_dir("/proc").expect("a /proc").flatten().filter_map(own).collect()
}

#[async_trait]
impl Fixture for Bench {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone().expect("open between calls of reopen")
    }

    async fn reopen(&mut self) {
        // The one handle besides the scenario's, which it has dropped.
        self.close();
        let separation = self.separation.clone();
        let folder = self.folder.path();
        let fractions = self.fractions.clone();
        self.engine = Some(open(folder, &self.supervisor, separation, fractions));
    }

    fn script(&self, text: &str) -> RunSpec {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        RunSpec {
            pod_name: format!("job{number}-0-1"),
            workload_name: format!("job{number}"),
            command: Some(vec!["sh".into(), "-c".into(), text.into()]),
            ..spec("ubuntu")
        }
    }

    fn is_alive(&self, pid: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        state.is_some_and(|state| state != 'Z')
    }

    fn kill_supervisor(&self, key: RunKey) -> bool {
        self.signal_supervisor(key, Signal::KILL);
        true
    }

    fn echo(&self, port: u16) -> Option<String> {
        Some(format!("exec {SUPERVISOR} echo {port}"))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let runs = std::fs::read_dir(self.folder.path().join("runs")).into_iter().flatten();
        for run in runs.flatten() {
            for supervisor in supervisors(&run.path()) {
                // Ended meanwhile is fine; SIGTERM ends the processes of the run, too.
                let _ended = kill_process(supervisor, Signal::TERM);
                let _woken = kill_process(supervisor, Signal::CONT);
            }
        }
    }
}
