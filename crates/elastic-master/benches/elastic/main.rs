//! Throughput of the parts of an elastic training: tasks that a master gives out and journals,
//! pushes and bytes that a parameter server takes. Over loopback, with clients in the same process,
//! which take their part of the machine. Then real trainings (`training`).

mod accuracy;
#[path = "../../../elastic/tests/it/rejections/model.rs"]
mod model;
mod rows;
mod training;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use elastic::Shard;
use elastic_master::{JobConfig, Master, Mode, Outside, Settings, Sync, Want};
use elastic_proto::v1::master_client::MasterClient;
use elastic_proto::v1::optimizer::Rule;
use elastic_proto::v1::parameter_server_client::ParameterServerClient;
use elastic_proto::v1::{
    Adam, GetTaskRequest, InitModelRequest, Optimizer, PullRequest, PushGradientsRequest,
    RegisterRequest, ReportTaskRequest, TaskOutcome, Variable, WatchRequest,
};
use elastic_proto::{Credentials, Sign, tensor};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

type Signed = InterceptedService<Channel, Sign>;

const TOKEN: &str = "a-token-of-this-bench";
const LIMIT: usize = 256 << 20;
/// Workers that ask for tasks at the same time.
const WORKERS: u32 = 64;
const TASKS: u64 = 20_000;
/// Parameters of the published example, and a hundred times as many.
const PARAMETERS: [(u64, u32); 2] = [(111_114, 1000), (11_111_400, 30)];

struct Quiet;

impl Outside for Quiet {
    fn want(&mut self, _: &Want) {}
}

fn channel(address: &str, folder: &Path) -> Channel {
    credentials(folder)
        .endpoint(address)
        .expect("an address")
        .initial_stream_window_size(elastic_proto::WINDOW_BYTES)
        .initial_connection_window_size(elastic_proto::WINDOW_BYTES)
        .connect_lazy()
}

fn config(tasks: u64, parameter_servers: u32) -> JobConfig {
    JobConfig {
        name: "bench".into(),
        shards: vec![Shard { name: "a".into(), start: 0, count: tasks }],
        records_per_task: 1,
        parameter_servers,
        mode: Mode::Asynchronous,
        ..JobConfig::default()
    }
}

/// A master that serves, with its address.
async fn master(folder: &Path, sync: Sync, job: JobConfig) -> (MasterClient<Signed>, String) {
    let token = folder.join("token");
    fs::create_dir_all(folder).expect("a folder");
    if !token.exists() {
        fs::write(token, TOKEN).expect("a token");
    }
    let settings = Settings {
        listen: ([127, 0, 0, 1], 0).into(),
        token_file: folder.join("token"),
        journal_dir: folder.join("journal"),
        journal_sync: sync,
        linger_ms: 60_000,
        job,
    };
    let master = Master::open(settings, Quiet).await.expect("a master");
    let address = master.address.to_string();
    tokio::spawn(master.serve());
    let channel = channel(&address, folder);
    (MasterClient::with_interceptor(channel, credentials(folder).sign()), address)
}

fn credentials(folder: &Path) -> Credentials {
    Credentials::read(&folder.join("token")).expect("a token")
}

/// Has the parts of a job encrypt what they send.
fn encrypt(folder: &Path) {
    let names = vec![elastic_proto::TLS_NAME.to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let token = format!("{TOKEN}\n{}{}", made.cert.pem(), made.signing_key.serialize_pem());
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join("token"), token).expect("a token");
}

async fn register(master: &mut MasterClient<Signed>, pod: String) -> u32 {
    let register = RegisterRequest { pod, instance: 1, host: String::new() };
    master.register(register).await.expect("registered").into_inner().worker_id
}

/// Asks for tasks and finishes them until there are none.
async fn work(mut master: MasterClient<Signed>, pod: String) -> u64 {
    let worker_id = register(&mut master, pod).await;
    let mut tasks = 0;
    loop {
        let ask = GetTaskRequest { worker_id, holding: Vec::new(), wait_ms: 1000 };
        let reply = master.get_task(ask).await.expect("answered").into_inner();
        let Some(task) = reply.task else { return tasks };
        let report = ReportTaskRequest {
            worker_id,
            task_id: task.task_id,
            outcome: TaskOutcome::Finished.into(),
            ..Default::default()
        };
        master.report_task(report).await.expect("answered");
        tasks += 1;
    }
}

async fn tasks(folder: &Path, sync: Sync, name: &str) {
    let (master, _) = master(folder, sync, config(TASKS, 0)).await;
    let begin = Instant::now();
    let workers: Vec<_> =
        (0..WORKERS).map(|n| tokio::spawn(work(master.clone(), format!("worker-{n}")))).collect();
    let mut tasks = 0;
    for worker in workers {
        tasks += worker.await.expect("ends");
    }
    assert_eq!(tasks, TASKS);
    let seconds = begin.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "small")]
    line(&format!("journaled tasks, {WORKERS} workers, sync {name}"), tasks as f64 / seconds, "/s");
}

/// A parameter server without a model, and the number of a worker that may push.
async fn server(folder: &Path) -> (ParameterServerClient<Signed>, u32) {
    let (mut master, address) = master(folder, Sync::Os, config(1, 1)).await;
    let worker_id = register(&mut master, "worker-0".into()).await;
    let settings = elastic_ps::Settings {
        index: 0,
        servers: 1,
        listen: ([127, 0, 0, 1], 0).into(),
        advertise: None,
        master: address,
        token_file: folder.join("token"),
        checkpoint_dir: None,
        init_dir: None,
        message_bytes_max: LIMIT,
    };
    tokio::spawn(elastic_ps::run(settings));
    loop {
        let watch = WatchRequest { worker_id, wait_ms: 20, ..Default::default() };
        let reply = master.watch(watch).await.expect("answered").into_inner();
        if let Some(address) = reply.parameter_servers.first() {
            let (channel, sign) = (channel(address, folder), credentials(folder).sign());
            let server = ParameterServerClient::with_interceptor(channel, sign);
            return (server.max_decoding_message_size(LIMIT), worker_id);
        }
    }
}

fn adam() -> Optimizer {
    let adam = Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7, amsgrad: false };
    Optimizer { learning_rate: 0.001, rule: Some(Rule::Adam(adam)) }
}

async fn pushes(folder: &Path, parameters: u64, pushes: u32) {
    let (mut server, worker_id) = server(folder).await;
    let length = usize::try_from(parameters).expect("small");
    let value = tensor(&[parameters], &vec![0.5; length]);
    let variable = Variable { name: "w".into(), value: Some(value) };
    let init = InitModelRequest {
        worker_id,
        model_generation: 1,
        trainable: vec![variable.clone()],
        optimizer: Some(adam()),
        ..Default::default()
    };
    while server.init_model(init.clone()).await.is_err() {}
    let push = PushGradientsRequest {
        worker_id,
        model_generation: 1,
        gradients: vec![variable],
        ..Default::default()
    };
    let begin = Instant::now();
    for sequence in 1..=pushes {
        let push = PushGradientsRequest { sequence: sequence.into(), ..push.clone() };
        server.push_gradients(push).await.expect("accepted");
    }
    report("pushed", parameters, pushes, begin);
    let begin = Instant::now();
    for _ in 0..pushes {
        server.pull(PullRequest { worker_id, ..Default::default() }).await.expect("pulled");
    }
    report("pulled", parameters, pushes, begin);
}

fn report(what: &str, parameters: u64, count: u32, begin: Instant) {
    let seconds = begin.elapsed().as_secs_f64();
    let per_second = f64::from(count) / seconds;
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let megabytes = parameters as f64 * 4.0 / 1e6;
    line(&format!("{what}, {parameters} parameters, Adam"), per_second, "/s");
    line("", per_second * megabytes, "MB/s");
}

fn line(what: &str, value: f64, unit: &str) {
    // Milliseconds and seconds are small here.
    let value =
        if matches!(unit, "s" | "ms") { format!("{value:.2}") } else { format!("{value:.1}") };
    print_line(&format!("{what:<48} {value:>10} {unit}"));
}

fn print_line(text: &str) {
    writeln!(std::io::stdout().lock(), "{text}").expect("printed");
}

fn main() {
    // `cargo test --benches` runs it too, and measures nothing.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let is_accuracy = std::env::args().any(|argument| argument == "accuracy");
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if is_accuracy {
        if let Some(python) = training::python() {
            let data = training::digits(&python, &at("digits"));
            runtime.block_on(accuracy::run(&at("accuracy"), &python, &data));
        }
        return;
    }
    runtime.block_on(tasks(&at("always"), Sync::Always, "before each answer"));
    runtime.block_on(tasks(&at("os"), Sync::Os, "by the system"));
    for (parameters, count) in PARAMETERS {
        runtime.block_on(pushes(&at(&parameters.to_string()), parameters, count));
        let encrypted = at(&format!("{parameters}-encrypted"));
        encrypt(&encrypted);
        print_line("the same with --tls:");
        runtime.block_on(pushes(&encrypted, parameters, count));
    }
    runtime.block_on(rows::run(&at("rows")));
    let python = training::python();
    let data = python.as_deref().map(|python| training::digits(python, &at("digits")));
    if let (Some(python), Some(data)) = (&python, &data) {
        runtime.block_on(training::step(&at("step"), python, data));
        training::sums(python);
        training::saving(python, &at("saving"));
        runtime.block_on(training::recovery(&at("recovery"), python, data));
    }
    let rejections = at("rejections");
    runtime.block_on(training::rejections(&rejections, python.as_deref(), data.as_deref()));
}
