//! The processes of a job. Owns: starting and killing them. The program of each is this test
//! program, run with a role in its environment, so a kill is a kill.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use elastic::Shard;
use elastic_master::{Ended, JobConfig, Print, Settings, Sync};
use elastic_proto::Credentials;
use elastic_proto::v1::master_client::MasterClient;
use elastic_proto::v1::{JobPhase, StatusReply, StatusRequest};
use fixture::STUCK_AFTER;
use tempfile::TempDir;
use tonic::transport::Channel;

use crate::worker::{Master, channel, until};

pub(crate) const TOKEN: &str = "a-token-of-this-job";

const ROLE: &str = "ELASTIC_TEST_ROLE";
const SETTINGS: &str = "ELASTIC_TEST_SETTINGS";

/// The body of a child process; in the test run itself it does nothing.
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let text = std::env::var(SETTINGS).expect("settings");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let code = match role.as_str() {
        "master" => {
            let settings = serde_json::from_str(&text).expect("settings");
            match runtime.block_on(elastic_master::run(settings, Print)).expect("a master") {
                Ended::Succeeded { .. } => 0,
                Ended::Failed(_) => 3,
            }
        }
        _ => {
            let settings = serde_json::from_str(&text).expect("settings");
            runtime.block_on(elastic_ps::run(settings)).expect("a parameter server");
            0
        }
    };
    std::process::exit(code);
}

fn start(role: &str, settings: &impl serde::Serialize) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "cluster::role", "--nocapture"]);
    command.env(ROLE, role);
    command.env(SETTINGS, serde_json::to_string(settings).expect("settings"));
    command.stdout(Stdio::null()).spawn().expect("a process")
}

pub(crate) struct Cluster {
    folder: TempDir,
    config: JobConfig,
    address: SocketAddr,
    master: Option<Child>,
    servers: Vec<Option<Child>>,
    init_dir: Option<PathBuf>,
}

/// A job that trains on so many records of one shard.
pub(crate) fn job(records: u64) -> JobConfig {
    JobConfig {
        name: "job".into(),
        minibatch_size: 5,
        shards: vec![Shard { name: "digits".into(), start: 0, count: records }],
        records_per_task: 20,
        parameter_servers: 1,
        checkpoint_steps: 4,
        ..JobConfig::default()
    }
}

impl Cluster {
    pub(crate) fn start(config: JobConfig) -> Self {
        Self::start_from(config, None)
    }

    /// A job whose parts encrypt what they send.
    pub(crate) fn encrypted(config: JobConfig) -> Self {
        Self::with_token(config, None, &encrypted_token())
    }

    /// A job whose model begins with a checkpoint in this folder.
    pub(crate) fn start_from(config: JobConfig, init_dir: Option<PathBuf>) -> Self {
        Self::with_token(config, init_dir, TOKEN)
    }

    fn with_token(config: JobConfig, init_dir: Option<PathBuf>, token: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("token"), token).expect("a token");
        // A master that is started again has to be where it was.
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address");
        drop(free);
        // In a world the first worker attends.
        let count = config.servers();
        let servers = (0..count).map(|_| None).collect();
        let mut cluster = Self { folder, config, address, master: None, servers, init_dir };
        cluster.start_master();
        (0..cluster.servers.len()).for_each(|index| cluster.start_server(index));
        cluster
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn credentials(&self) -> Credentials {
        Credentials::read(&self.path("token")).expect("a token")
    }

    pub(crate) fn start_master(&mut self) {
        let settings = Settings {
            listen: self.address,
            token_file: self.path("token"),
            journal_dir: self.path("journal"),
            journal_sync: Sync::Always,
            linger_ms: 60_000,
            job: self.config.clone(),
        };
        self.master = Some(start("master", &settings));
    }

    pub(crate) fn start_server(&mut self, index: usize) {
        let settings = elastic_ps::Settings {
            index: u32::try_from(index).expect("few"),
            servers: self.config.parameter_servers,
            listen: ([127, 0, 0, 1], 0).into(),
            advertise: None,
            master: self.address(),
            token_file: self.path("token"),
            checkpoint_dir: Some(self.path("checkpoints")),
            init_dir: self.init_dir.clone(),
            message_bytes_max: 1 << 20,
        };
        self.servers[index] = Some(start("server", &settings));
    }

    pub(crate) fn kill_master(&mut self) {
        kill(&mut self.master);
    }

    pub(crate) fn kill_server(&mut self, index: usize) {
        kill(&mut self.servers[index]);
    }

    /// Stops or continues a server, which keeps its memory.
    pub(crate) fn pause_server(&self, index: usize, stops: bool) {
        let id = self.servers[index].as_ref().expect("it runs").id().to_string();
        let signal = if stops { "-STOP" } else { "-CONT" };
        let killed = Command::new("kill").args([signal, &id]).status().expect("kill runs");
        assert!(killed.success());
    }

    pub(crate) async fn status(&self) -> StatusReply {
        let master = client(&self.address(), &self.credentials());
        let status = until(|| {
            let mut master = master.clone();
            async move { master.status(StatusRequest {}).await }
        });
        status.await.expect("a status")
    }

    /// Waits until people see this.
    pub(crate) async fn until(&self, is_so: impl Fn(&StatusReply) -> bool) -> StatusReply {
        let seen = async {
            loop {
                let status = self.status().await;
                if is_so(&status) {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(STUCK_AFTER, seen).await.expect("the training is stuck")
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&self) -> StatusReply {
        self.until(|status| matches!(status.phase(), JobPhase::Succeeded | JobPhase::Failed)).await
    }

    /// Versions of which there is a checkpoint, in order.
    pub(crate) fn checkpoints(&self) -> Vec<u64> {
        let root = self.path("checkpoints");
        let version = |entry: fs::DirEntry| {
            entry.file_name().to_string_lossy().strip_prefix("version-")?.parse().ok()
        };
        let entries = fs::read_dir(root).expect("a folder").filter_map(Result::ok);
        let mut versions: Vec<u64> = entries.filter_map(version).collect();
        versions.sort_unstable();
        versions
    }

    /// The trainable variables of a checkpoint, of all servers, by name.
    pub(crate) fn checkpoint(&self, version: u64) -> Vec<(String, Vec<f32>)> {
        let folder = self.path("checkpoints").join(format!("version-{version}"));
        let count = self.servers.len();
        let file = |index| folder.join(format!("variables-{index}-of-{count}.ckpt"));
        (0..count).flat_map(|index| variables(&file(index))).collect()
    }

    /// The rows of the embedding tables of a checkpoint, of all servers, by id.
    pub(crate) fn rows(&self, version: u64) -> BTreeMap<u64, Vec<f32>> {
        let folder = self.path("checkpoints").join(format!("version-{version}"));
        let count = self.servers.len();
        let file = |index| folder.join(format!("variables-{index}-of-{count}.ckpt"));
        let tables = (0..count).flat_map(|index| body(&file(index)).tables);
        let rows = tables.flat_map(|table| {
            let (ids, values) = (table.ids, elastic_proto::floats(&table.values));
            let rows: Vec<_> = values.chunks(2).map(<[f32]>::to_vec).collect();
            let ids: Vec<_> = ids.chunks(8).map(|id| id.try_into().expect("eight")).collect();
            ids.into_iter().map(u64::from_le_bytes).zip(rows)
        });
        rows.collect()
    }

    /// Gradients of an update.
    pub(crate) fn grads_to_wait(&self) -> u32 {
        self.config.grads_to_wait
    }
}

fn body(path: &Path) -> elastic_proto::v1::CheckpointBody {
    use prost::Message as _;
    let bytes = fs::read(path).expect("a checkpoint");
    let header = u32::from_be_bytes(bytes[32..36].try_into().expect("four")) as usize;
    elastic_proto::v1::CheckpointBody::decode(&bytes[36 + header..]).expect("a body")
}

fn variables(path: &Path) -> Vec<(String, Vec<f32>)> {
    let floats = |variable: elastic_proto::v1::TrainedVariable| {
        let value = variable.value.expect("a value");
        (variable.name, elastic_proto::floats(&value.content))
    };
    body(path).trainable.into_iter().map(floats).collect()
}

pub(crate) fn client(address: &str, credentials: &Credentials) -> Master {
    MasterClient::with_interceptor(channel(address, credentials), credentials.sign())
}

/// A client that has no token.
pub(crate) fn bare(address: &str) -> MasterClient<Channel> {
    MasterClient::new(channel(address, &Credentials::new(TOKEN).expect("a token")))
}

/// The token with a new certificate and its key.
pub(crate) fn encrypted_token() -> String {
    let names = vec![elastic_proto::TLS_NAME.to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    format!("{TOKEN}\n{}{}", made.cert.pem(), made.signing_key.serialize_pem())
}

fn kill(child: &mut Option<Child>) {
    let mut child = child.take().expect("it runs");
    child.kill().expect("killed");
    child.wait().expect("gone");
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for mut child in self.servers.iter_mut().filter_map(Option::take).chain(self.master.take())
        {
            // The process may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
