//! Real trainings: two workers of Python on digits, one of which is killed or has to leave, and the
//! rejected gradients; the cost of a step for a worker. Owns: the processes of the workers. Does
//! not know about: how a line is printed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use elastic::{Epochs, WorldLimits};
use elastic_master::{JobConfig, Mode, Sync};
use elastic_proto::v1::master_client::MasterClient;
use elastic_proto::v1::parameter_server_client::ParameterServerClient;
use elastic_proto::v1::tell_request::Event;
use elastic_proto::v1::{
    LeaveReason, PodGone, PodLeaves, ServerStatusReply, ServerStatusRequest, StatusReply,
    StatusRequest, TellRequest, WorkerStatus,
};
use elastic_ps::Pushes;
use tokio::task::JoinHandle;

use crate::{Signed, channel, credentials, line, master, model};

pub(crate) const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python");
const STEP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/elastic/step.py");
const SUMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/elastic/allreduce.py");
const SAVING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/elastic/saving.py");
/// Size of a saved checkpoint in bytes, and the number of saves.
const SAVED: [&str; 2] = ["536870912", "3"];
const ROUNDS: usize = 7;
const STEPS: usize = 1000;
/// Wait between two reads of the version.
pub(crate) const LOOK: Duration = Duration::from_millis(2);
/// A bench that has waited for so long is broken.
pub(crate) const STUCK_AFTER: Duration = Duration::from_secs(120);
/// Message when Python or its packages are missing.
const NEEDS: &str = "trainings are not measured: they need a python3 with `pip install \
                     './sdk/python[digits]'`; ELASTANE_BENCH_PYTHON names another one";

/// A Python with the workers.
pub(crate) fn python() -> Option<String> {
    let python = std::env::var("ELASTANE_BENCH_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut command = Command::new(&python);
    command.args(["-c", "import elastane.worker, sklearn"]).stderr(Stdio::null());
    let has_all = command.status().is_ok_and(|status| status.success());
    if !has_all {
        crate::print_line(NEEDS);
    }
    has_all.then_some(python)
}

/// Writes the digits into a folder.
pub(crate) fn digits(python: &str, folder: &Path) -> PathBuf {
    let mut command = Command::new(python);
    command.args(["-m", "elastane.digits"]).arg(folder).stdout(Stdio::null());
    assert!(command.status().expect("Python").success(), "the digits were not written");
    folder.join("train")
}

/// A training in this process, with workers in others.
pub(crate) struct Training {
    folder: PathBuf,
    python: String,
    address: String,
    master: MasterClient<Signed>,
    /// The parameter server; none where workers hold the model themselves.
    server: Option<Server>,
    workers: Vec<(String, Child)>,
    started: usize,
    /// Environment of the workers.
    variables: Vec<(&'static str, String)>,
}

struct Server {
    client: ParameterServerClient<Signed>,
    serving: JoinHandle<Result<Pushes, elastic_ps::Error>>,
}

/// Folders that the model of a training is loaded from and saved to.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) from: Option<PathBuf>,
    pub(crate) to: Option<PathBuf>,
}

impl Training {
    async fn begin(folder: &Path, python: &str, job: JobConfig) -> Self {
        Self::begin_with(folder, python, job, Model::default()).await
    }

    pub(crate) async fn begin_with(
        folder: &Path,
        python: &str,
        job: JobConfig,
        model: Model,
    ) -> Self {
        let has_server = job.world.is_none();
        let (master, address) = master(folder, Sync::Always, job).await;
        let server =
            if has_server { Some(Self::serve(folder, address.clone(), model).await) } else { None };
        let (folder, python) = (folder.to_owned(), python.to_owned());
        let (workers, variables) = (Vec::new(), Vec::new());
        Self { folder, python, address, master, server, workers, started: 0, variables }
    }

    async fn serve(folder: &Path, master: String, model: Model) -> Server {
        let settings = elastic_ps::Settings {
            index: 0,
            servers: 1,
            listen: ([127, 0, 0, 1], 0).into(),
            advertise: None,
            master,
            token_file: folder.join("token"),
            checkpoint_dir: model.to,
            init_dir: model.from,
            message_bytes_max: crate::LIMIT,
        };
        let server = elastic_ps::Server::bind(settings).await.expect("a port");
        let own = server.address.to_string();
        let serving = tokio::spawn(server.serve(std::future::pending()));
        let client = ParameterServerClient::with_interceptor(
            channel(&own, folder),
            credentials(folder).sign(),
        );
        Server { client, serving }
    }

    /// A variable of the workers that start from now on.
    pub(crate) fn with(&mut self, name: &'static str, value: String) {
        self.variables.push((name, value));
    }

    /// Waits until the job has ended and its model is saved.
    pub(crate) async fn ends(&mut self) -> StatusReply {
        let (mut records, mut moved_at) = (0, Instant::now());
        while self.server.as_ref().is_some_and(|server| !server.serving.is_finished()) {
            let now = self.status().await.records;
            if now != records {
                (records, moved_at) = (now, Instant::now());
            }
            assert!(moved_at.elapsed() < STUCK_AFTER, "the training does not end");
            tokio::time::sleep(LOOK * 10).await;
        }
        if let Some(server) = &mut self.server {
            let served = (&mut server.serving).await.expect("it ends");
            served.expect("the model is saved");
        }
        self.status().await
    }

    fn program(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.env("MASTER_ADDR", &self.address).env("OMP_NUM_THREADS", "1");
        command.env("ELASTANE_JOB_TOKEN_FILE", self.folder.join("token"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn start(&mut self) {
        let pod = format!("worker-{}", self.started);
        let mut command = self.program();
        command.args(["-m", "elastane.worker", "--pod", &pod]).stderr(Stdio::null());
        self.workers.push((pod, command.spawn().expect("a worker")));
        self.started += 1;
    }

    pub(crate) async fn status(&mut self) -> StatusReply {
        self.master.status(StatusRequest {}).await.expect("a status").into_inner()
    }

    async fn model(&mut self) -> ServerStatusReply {
        let Some(server) = &mut self.server else { return ServerStatusReply::default() };
        server.client.server_status(ServerStatusRequest {}).await.expect("a status").into_inner()
    }

    async fn version(&mut self) -> u64 {
        match self.server {
            Some(_) => self.model().await.version,
            None => self.status().await.model_version,
        }
    }

    async fn reaches(&mut self, version: u64) {
        let begin = Instant::now();
        while self.version().await < version {
            assert!(begin.elapsed() < STUCK_AFTER, "the training is stuck");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until this number of workers takes part in the training.
    async fn workers(&mut self, count: usize) {
        let begin = Instant::now();
        loop {
            let status = self.status().await;
            if working(&status) == count {
                return;
            }
            assert!(begin.elapsed() < STUCK_AFTER, "{count} workers do not come: {status:?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Takes a worker away: from then to the first update that only the other one's gradients make.
    async fn without_one(&mut self, kills: bool) -> f64 {
        self.workers(2).await;
        let begin = Instant::now();
        let left = if kills {
            self.kill().await;
            None
        } else {
            let (pod, child) = self.workers.remove(0);
            self.send_event(Event::PodLeaves(PodLeaves { pod, within_ms: 30_000 })).await;
            Some(child)
        };
        let version = self.version().await;
        // The next update may have a gradient of the lost worker.
        self.reaches(version + 2).await;
        let passed = begin.elapsed();
        if let Some(mut child) = left {
            let left = tokio::task::spawn_blocking(move || child.wait());
            assert!(left.await.expect("ends").is_ok(), "it leaves");
        }
        self.start();
        passed.as_secs_f64() * 1000.0
    }

    /// Kills the worker that has been there longest, and has the master know it.
    pub(crate) async fn kill(&mut self) {
        let (pod, mut child) = self.workers.remove(0);
        child.kill().expect("killed");
        child.wait().expect("gone");
        let reason = LeaveReason::Preempted.into();
        self.send_event(Event::PodGone(PodGone { pod, reason, message: String::new() })).await;
    }

    async fn send_event(&mut self, event: Event) {
        self.master.tell(TellRequest { event: Some(event) }).await.expect("told");
    }

    /// Milliseconds of an update with two workers.
    async fn usual(&mut self) -> f64 {
        self.workers(2).await;
        let (begin, version) = (Instant::now(), self.version().await);
        self.reaches(version + 50).await;
        begin.elapsed().as_secs_f64() * 1000.0 / 50.0
    }
}

/// Number of workers that have made a step.
pub(crate) fn working(status: &StatusReply) -> usize {
    let steps = |worker: &&WorkerStatus| worker.report.is_some_and(|report| report.steps > 0);
    status.workers.iter().filter(steps).count()
}

impl Drop for Training {
    fn drop(&mut self) {
        for (_, child) in &mut self.workers {
            // The process may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn job(data: &Path, mode: Mode, grads_to_wait: u32, epochs: Epochs) -> JobConfig {
    let pairs = [
        ("model_file", format!("{SDK}/examples/digits_numpy.py")),
        ("training_data", data.display().to_string()),
    ];
    JobConfig {
        name: "bench".into(),
        minibatch_size: 10,
        arguments: pairs.map(|(name, value)| (name.to_owned(), value)).into(),
        records_per_task: 100,
        epochs,
        mode,
        grads_to_wait,
        parameter_servers: 1,
        ..JobConfig::default()
    }
}

/// Measures how soon the survivor continues: with a parameter server, and with all-reduce.
pub(crate) async fn recovery(folder: &Path, python: &str, data: &Path) {
    let by_server = job(data, Mode::Synchronous, 2, Epochs::Endless);
    recovery_of(&folder.join("server"), python, by_server, "parameter server").await;
    let limits = WorldLimits { min: 1, max: 2, unit: 1, first_ms: 5_000, gather_ms: 100 };
    let by_all = JobConfig {
        world: Some(limits),
        // The master gets to know of each version.
        evaluation_steps: 1,
        ..job(data, Mode::Synchronous, 1, Epochs::Endless)
    };
    recovery_of(&folder.join("all"), python, by_all, "all-reduce").await;
}

async fn recovery_of(folder: &Path, python: &str, job: JobConfig, how: &str) {
    let mut training = Training::begin(folder, python, job).await;
    (0..2).for_each(|_| training.start());
    let update = training.usual().await;
    line(&format!("update of 2 workers of numpy, {how}"), update, "ms");
    for (what, kills) in [("killed", true), ("to leave", false)] {
        let mut all = Vec::new();
        for _ in 0..ROUNDS {
            all.push(training.without_one(kills).await);
        }
        all.sort_by(f64::total_cmp);
        let [least, most] = [all[0], all[ROUNDS - 1]];
        line(&format!("the other's update, one {what}: median"), all[ROUNDS / 2], "ms");
        line("    least", least, "ms");
        line("    most", most, "ms");
    }
}

/// Measures how fast workers add up vectors, beside Gloo.
pub(crate) fn sums(python: &str) {
    for workers in [2_u32, 4] {
        for (floats, rounds) in [(111_114_u32, 200), (11_111_400, 20)] {
            let mut command = Command::new(python);
            command.arg(SUMS).args([workers, floats, rounds].map(|number| number.to_string()));
            let output = command.env("OMP_NUM_THREADS", "1").output().expect("Python");
            let said = String::from_utf8_lossy(&output.stderr);
            let seconds: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
            for how in ["ring", "gloo"] {
                let Some(seconds) = seconds[how].as_f64() else {
                    crate::print_line("Gloo is not measured: this Python has no PyTorch");
                    continue;
                };
                let name = format!("sum of {floats} floats, {workers} workers, {how}");
                line(&name, seconds * 1000.0, "ms");
                line("", f64::from(floats) * 4.0 / seconds / 1e6, "MB/s");
            }
        }
    }
}

/// Measures how long a training waits while a checkpoint of it is saved.
pub(crate) fn saving(python: &str, folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    let output = Command::new(python).arg(SAVING).args(SAVED).arg(folder).output();
    let output = output.expect("Python");
    let said = String::from_utf8_lossy(&output.stderr);
    let seconds: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
    for (how, name) in [
        ("direct", "checkpoint stall, on disk, per GB"),
        ("new", "checkpoint stall, new memory, per GB"),
        ("again", "checkpoint stall, memory used before, per GB"),
        ("load", "checkpoint loaded from memory, per GB"),
    ] {
        line(name, seconds[how].as_f64().expect("a number") * 1000.0, "ms");
    }
}

/// Measures the cost of a step for a worker beside the gradient.
pub(crate) async fn step(folder: &Path, python: &str, data: &Path) {
    let job = job(data, Mode::Synchronous, 1, Epochs::Endless);
    let training = Training::begin(folder, python, job).await;
    let mut command = training.program();
    command.arg(STEP).arg(STEPS.to_string());
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("ends");
    let output = output.expect("Python");
    let said = String::from_utf8_lossy(&output.stderr);
    let parts: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
    for part in ["step", "encode", "push", "pull", "decode"] {
        let name = format!("worker of Python, 0.44 MB, median: {part}");
        line(&name, parts[part].as_f64().expect("a number"), "ms");
    }
}

/// Measures rejected gradients: in a model of the times, and in real trainings beside it.
pub(crate) async fn rejections(folder: &Path, python: Option<&str>, data: Option<&Path>) {
    for gradients in [2, 4] {
        let all = model::SEEDS.map(|seed| model::train(2, gradients, false, seed));
        let all: Vec<f64> = all.map(|training| training.rejected_percent()).collect();
        let of = format!("2 workers, updates of {gradients}");
        #[expect(clippy::cast_precision_loss, reason = "small")]
        line(
            &format!("rejected in the model, {of}"),
            all.iter().sum::<f64>() / all.len() as f64,
            "%",
        );
        let [saved_s, ours_s, published_s] = model::saved(2, gradients);
        line("    computing that waiting saves of a training", saved_s, "s");
        line("    its end without and with waiting", published_s, "s");
        line("", ours_s, "s");
        let (Some(python), Some(data)) = (python, data) else { continue };
        for (name, mode) in [("reject", Mode::SynchronousReject), ("wait", Mode::Synchronous)] {
            let job = job(data, mode, gradients, Epochs::Count(2));
            let folder = folder.join(format!("{name}-{gradients}"));
            let mut training = Training::begin(&folder, python, job).await;
            (0..2).for_each(|_| training.start());
            while !training.status().await.workers.is_empty() || training.model().await.version == 0
            {
                tokio::time::sleep(LOOK * 10).await;
            }
            let ServerStatusReply { accepted, rejected, .. } = training.model().await;
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let percent = 100.0 * rejected as f64 / (accepted + rejected) as f64;
            line(&format!("rejected in a real one, {name}, {of}"), percent, "%");
        }
    }
}
