//! An engine on a daemon, with a state directory of its own. Owns: crashing the server.

pub(crate) mod watched;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Engine, Installation, RunKey, RunSpec};
use engine_conformance::{Fixture, spec};
use engine_docker::testing::IMAGE;
use engine_docker::{Daemon, DockerEngine, Options, Program};
use tempfile::TempDir;

/// Most of the output of a run that the daemon keeps.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// The fixture. Its daemon ends what a failed test leaves.
pub(crate) struct Bench {
    /// Where the daemon listens.
    pub(crate) socket: PathBuf,
    /// Folder of the engine's own files.
    pub(crate) folder: TempDir,
    engine: Option<Arc<DockerEngine>>,
    /// Names the processes of this fixture's runs.
    project: String,
    next: AtomicU32,
}

impl Bench {
    /// The fixture on the daemon at this socket; `None` without a daemon, which was printed.
    pub(crate) async fn on(socket: Option<impl AsRef<Path>>) -> Option<Self> {
        let socket = socket?.as_ref().to_owned();
        let folder = tempfile::tempdir().expect("a folder");
        let engine = Some(open(&socket, folder.path()).await);
        let project = format!("project-{}", folder.path().display());
        Some(Self { socket, folder, engine, project, next: AtomicU32::new(0) })
    }
}

async fn open(socket: &Path, folder: &Path) -> Arc<DockerEngine> {
    let daemon = Daemon::at(socket).await.expect("it answers");
    // This program stands for an image: it lists its tests.
    let program = Program::this(&["--list"]).expect("a program");
    let programs = [("lister".to_owned(), program)].into();
    let installation = Installation::open(folder, false).expect("an installation");
    let options = Options {
        installation,
        daemon,
        programs,
        nvidia_smi: Some(Program::this(&["nvidia-smi"]).expect("a program")),
        job_program: None,
        fractions: None,
        pull_pause: Duration::from_millis(100),
        output_bytes_max: OUTPUT_BYTES_MAX,
        copy_bytes_max: 1 << 30,
    };
    Arc::new(DockerEngine::open(options).await.expect("an engine"))
}

#[async_trait]
impl Fixture for Bench {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone().expect("open between calls of reopen")
    }

    async fn reopen(&mut self) {
        // The one handle besides the scenario's, which it has dropped.
        drop(self.engine.take());
        self.engine = Some(open(&self.socket, self.folder.path()).await);
    }

    fn script(&self, text: &str) -> RunSpec {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        RunSpec {
            pod_name: format!("job{number}-0-1"),
            workload_name: format!("job{number}"),
            project_name: self.project.clone(),
            command: Some(vec!["sh".into(), "-c".into(), text.into()]),
            ..spec(IMAGE)
        }
    }

    /// Compares ids in the pid namespace of this machine and of containers.
    fn is_alive(&self, pid: u32) -> bool {
        let mark = format!("RUNAI_PROJECT={}", self.project);
        let ours = |entry: &std::fs::DirEntry| {
            let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            let same = |id: &str| id.parse() == Ok(pid);
            // The environment of an ended process that is not reaped yet is empty.
            let env = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            ids.is_some_and(|ids| ids.split_ascii_whitespace().any(same))
                && env.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        std::fs::read_dir("/proc").expect("a /proc").flatten().any(|entry| ours(&entry))
    }

    fn kill_supervisor(&self, _: RunKey) -> bool {
        false
    }

    /// The daemon reads two pipes.
    fn orders_streams(&self) -> bool {
        false
    }
}
