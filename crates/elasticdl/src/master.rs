//! The master of a job, as its pod runs it: `elasticdl master FORM --flag=value…`. Owns: the
//! meaning of the flags for the training, the place of the master's files, and that the master has
//! a parameter server in its own pod if there are no server pods. Does not know about: tasks and
//! models (`elastic-master`, `elastic-ps`), and pods, which the scheduler starts and stops.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cli_kit::exit::Error;
use elastic::{Epochs, Kind, Limits, Order, WorldLimits};
use elastic_master::{Ended, JobConfig, Mode, Outside, Settings, Sync, Want};
use elastic_ps::Pushes;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::job::{is_all_reduced, processes};
use crate::parse::{Form, Values};
use crate::progress::{self, print_line};

/// Default number of versions between two checkpoints, as in the first form: the work lost with a
/// master.
const CHECKPOINT_STEPS: u32 = 50;
/// Minimum time in milliseconds after which a silent worker is replaced, if that is allowed.
const SILENT_MS: u64 = 300_000;
/// Maximum time in which parameter servers write their last checkpoint after the end.
const SERVERS_END_MAX: Duration = Duration::from_secs(30);
/// Maximum time in which workers of a stopped job return their tasks to the master.
pub(crate) const LEAVE_MAX: Duration = Duration::from_secs(10);
/// Maximum duration of the last checkpoint of a stopped job: the sum with `LEAVE_MAX` is less than
/// the grace period.
pub(crate) const SAVE_MAX: Duration = Duration::from_secs(15);
/// Exit code of a process ended by SIGTERM, as in shells.
pub(crate) const TERMINATED: u8 = 143;
/// How long the first world of an all-reduce waits for further workers, in milliseconds.
const FIRST_WORLD_MS: u64 = 5_000;
/// How long workers that join an all-reduce are gathered, in milliseconds: each change sends the
/// model to all.
const GATHER_MS: u64 = 500;
/// How long the master still answers after the end of the job, in milliseconds.
const LINGER_MS: u64 = 2_000;

/// Address of the master, and settings of this part of the job, from the variables of its pod.
pub(crate) struct Place {
    host: String,
    port: u16,
    token_file: PathBuf,
    /// Folder that survives a restart of the pod.
    folder: PathBuf,
}

impl Place {
    pub(crate) fn find(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let need = |name: &str| {
            let missing = || {
                Error::Usage(format!(
                    "{name} is not set; this command runs in a pod of a job, which \
                     `elasticdl --job_name=…` submits"
                ))
            };
            variable(name).ok_or_else(missing)
        };
        let address = need("MASTER_ADDR")?;
        let wrong = || Error::Usage(format!("MASTER_ADDR is `{address}`; it is HOST:PORT"));
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        Ok(Self {
            host: host.to_owned(),
            port: port.parse().map_err(|_| wrong())?,
            token_file: need("ELASTANE_JOB_TOKEN_FILE")?.into(),
            folder: need("ELASTANE_CHECKPOINT_DIR")?.into(),
        })
    }

    /// Address to listen on: a name is that of a container, which has its own network.
    pub(crate) fn listen(&self, port: u16) -> SocketAddr {
        let ip = self.host.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        SocketAddr::new(ip, port)
    }

    fn master(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Waits for workers to return their tasks; workers that continue are not being stopped, or
    /// hang.
    pub(crate) async fn workers_left(&self) {
        let left = progress::reaches(self.master(), self.token_file.clone(), |status| {
            status.workers.is_empty()
        });
        let _ = tokio::time::timeout(LEAVE_MAX, left).await;
    }

    /// Waits until the leader of the parameter servers has saved the model; false if the master
    /// does not answer any more.
    pub(crate) async fn is_saved(&self) -> bool {
        progress::reaches(self.master(), self.token_file.clone(), |status| status.saved).await
    }
}

/// Runs the master of a job until the job has ended.
pub(crate) async fn run(words: &[OsString]) -> Result<(), Error> {
    let (form, values) = read(words)?;
    let place = Place::find(|name| std::env::var(name).ok())?;
    let job = config(form, &values)?;
    let settings = Settings {
        listen: place.listen(place.port),
        token_file: place.token_file.clone(),
        journal_dir: place.folder.join("journal"),
        journal_sync: Sync::Always,
        linger_ms: LINGER_MS,
        job: job.clone(),
    };
    let mut terminated = signal(SignalKind::terminate())?;
    let stop = Arc::new(Notify::new());
    let mut servers = JoinSet::new();
    if !has_server_pods(&values) && job.servers() > 0 {
        let stop = Arc::clone(&stop);
        let stopped = async move { stop.notified().await };
        servers.spawn(elastic_ps::run_until(server(0, &job, &place, &values), stopped));
    }
    let name = job.name.clone();
    let reports = tokio::spawn(progress::report(place.master(), place.token_file.clone()));
    let mut master = std::pin::pin!(elastic_master::run(settings, Log));
    let ended = loop {
        tokio::select! {
            ended = &mut master => break ended.map_err(failed)?,
            // The servers learn of the end of the job before the master stops answering.
            Some(ended) = servers.join_next() => server_ended(ended)?,
            _ = terminated.recv() => {
                let save = save(&place, &stop, &mut servers);
                tokio::select! {
                    ended = &mut master => break ended.map_err(failed)?,
                    saved = save => return Err(saved),
                }
            }
        }
    };
    reports.abort();
    servers_end(&mut servers).await;
    match ended {
        Ended::Succeeded { progress, applied } => {
            print_line(&format!("job {name} succeeded: {}", progress::summary(&progress, applied)));
            Ok(())
        }
        Ended::Failed(why) => Err(Error::Failed(format!("job {name} failed: {why}"))),
    }
}

/// Waits for the last checkpoints of the servers. A server that does not learn of the end in time
/// has nothing more to write.
pub(crate) async fn servers_end(servers: &mut JoinSet<Result<Pushes, elastic_ps::Error>>) {
    let left = async {
        while let Some(ended) = servers.join_next().await {
            if let Err(error) = server_ended(ended) {
                print_line(&format!("the last checkpoint may be missing: {error}"));
            }
        }
    };
    if tokio::time::timeout(SERVERS_END_MAX, left).await.is_err() {
        print_line("a parameter server did not end; its last checkpoint may be missing");
    }
}

/// Saves the model of a stopped job, so that it continues from here: the ledger has the unreturned
/// work of workers as far as the model contains it.
async fn save(
    place: &Place,
    stop: &Notify,
    servers: &mut JoinSet<Result<Pushes, elastic_ps::Error>>,
) -> Error {
    place.workers_left().await;
    stop.notify_one();
    let saved = async {
        match servers.join_next().await {
            Some(ended) => server_ended(ended).map_err(|error| error.to_string()),
            // Servers in pods of their own stop by themselves, and all-reduce workers save their
            // model.
            None if place.is_saved().await => Ok(()),
            None => Err("the model was not saved in time".to_owned()),
        }
    };
    let saved = tokio::time::timeout(SAVE_MAX, saved).await;
    match saved.unwrap_or_else(|_| Err("saving took too long".to_owned())) {
        Ok(()) => {
            print_line(
                "stopped; the model is saved: if the job starts again, it goes on from here",
            );
        }
        Err(why) => print_line(&format!("stopped, and the model goes back to a checkpoint: {why}")),
    }
    Error::Said(TERMINATED)
}

/// True if the parameter servers of a job have pods of their own; else the master has one in its
/// pod.
fn has_server_pods(values: &Values) -> bool {
    values.count("num_ps_pods") > 0
}

pub(crate) fn failed(error: impl std::error::Error) -> Error {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    Error::Failed(text)
}

pub(crate) fn server_ended(
    server: Result<Result<Pushes, elastic_ps::Error>, tokio::task::JoinError>,
) -> Result<(), Error> {
    let pushes = server.map_err(failed)?.map_err(failed)?;
    // Servers that do not lead decide on no gradients, and an evaluation has none.
    if pushes != Pushes::default() {
        print_line(&progress::gradients(pushes));
    }
    Ok(())
}

/// The form and the flags with which a job was submitted.
pub(crate) fn read(words: &[OsString]) -> Result<(Form, Values), Error> {
    let usage = |why: String| Error::Usage(format!("the flags of a job: {why}"));
    let text = |word: &OsString| {
        word.clone().into_string().map_err(|_| usage("a flag is not UTF-8".to_owned()))
    };
    let (first, rest) = words.split_first().ok_or_else(|| usage("no form is named".to_owned()))?;
    let first = text(first)?;
    let form = [Form::Train, Form::Evaluate, Form::Predict, Form::Seed]
        .into_iter()
        .find(|form| form.command().unwrap_or("flat") == first)
        .ok_or_else(|| usage(format!("`{first}` is not flat, train, evaluate or predict")))?;
    let words = rest.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let values = Values::of_pairs(form, &words).map_err(usage)?;
    Ok((form, values))
}

/// Configuration of the training that the flags describe.
pub(crate) fn config(form: Form, values: &Values) -> Result<JobConfig, Error> {
    let seed = form == Form::Seed;
    let minibatch_size = values.count("minibatch_size").max(1);
    let records_per_task = match seed {
        true => u64::from(values.count("record_per_task")),
        false => u64::from(values.count("num_minibatches_per_task")) * u64::from(minibatch_size),
    };
    let is_async = values.is_on("use_async");
    let (grads_to_wait, get_model_steps) =
        (values.count("grads_to_wait").max(1), values.count("get_model_steps").max(1));
    let batches = u64::from(values.count("max_step"));
    let is_old = is_old(values);
    let steps = match values.count("checkpoint_steps") {
        0 if seed || is_old => CHECKPOINT_STEPS,
        steps => steps,
    };
    let is_relaunched = values.is_on("relaunch_timeout_worker") && !is_old;
    let mut arguments: std::collections::BTreeMap<String, String> =
        values.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    arguments.insert("records_per_task".to_owned(), records_per_task.to_string());
    Ok(JobConfig {
        name: values.text("job_name").to_owned(),
        kind: match form {
            Form::Seed | Form::Train => Kind::Train,
            Form::Evaluate => Kind::Evaluate,
            Form::Predict => Kind::Predict,
        },
        minibatch_size,
        arguments,
        records_per_task: records_per_task.max(1),
        epochs: epochs(form, values)?,
        records_max: (batches > 0).then(|| batches * u64::from(minibatch_size)),
        saves: values.some("output").is_some(),
        evaluation_steps: values.count("evaluation_steps").into(),
        parameter_servers: values.count("num_ps_pods").max(1),
        world: is_all_reduced(form, values).then(|| WorldLimits {
            min: 1,
            max: values.count("num_workers").max(1).saturating_mul(processes(values)),
            unit: 1,
            first_ms: FIRST_WORLD_MS,
            gather_ms: GATHER_MS,
        }),
        // As published, the first form shuffles its tasks.
        order: if seed { Order::Tasks { seed: 0 } } else { Order::Given },
        limits: Limits {
            bad_records_max: values.count("bad_records_max").into(),
            ..Limits::default()
        },
        silent_ms: is_relaunched.then_some(SILENT_MS),
        mode: mode(values),
        grads_to_wait: if is_async { 1 } else { grads_to_wait },
        sync_version_tolerance: values.count("sync_version_tolerance").into(),
        staleness_max: values.count("staleness_max").into(),
        lr_staleness_modulation: values.is_on("lr_staleness_modulation"),
        get_model_steps: if is_async { get_model_steps } else { 1 },
        checkpoint_steps: steps.into(),
        keep_checkpoint_max: match values.some("keep_checkpoint_max") {
            Some(_) => values.count("keep_checkpoint_max"),
            None => JobConfig::default().keep_checkpoint_max,
        },
        ..JobConfig::default()
    })
}

/// Number of epochs; one for evaluation and prediction.
fn epochs(form: Form, values: &Values) -> Result<Epochs, Error> {
    let text = match form {
        Form::Seed => values.text("num_epoch"),
        Form::Train => values.text("num_epochs"),
        Form::Evaluate | Form::Predict => return Ok(Epochs::Count(1)),
    };
    match text.parse::<i64>() {
        Ok(count) if count <= 0 => Ok(Epochs::Endless),
        Ok(count) => u32::try_from(count).map(Epochs::Count).map_err(failed),
        Err(_) => Ok(Epochs::Count(1)),
    }
}

/// True if a job was submitted before `--bad_records_max` existed, which all later jobs have. Some
/// flags had no effect then: its master continues the training of its journal.
fn is_old(values: &Values) -> bool {
    values.some("bad_records_max").is_none()
}

/// Gradient mode. Without `--gradients`, a tolerance implies that stale gradients are possible.
fn mode(values: &Values) -> Mode {
    let rejects = match values.text("gradients") {
        "" => values.count("sync_version_tolerance") > 0 && !is_old(values),
        word => word == "reject",
    };
    match (values.is_on("use_async"), rejects) {
        (true, true) if values.count("staleness_max") > 0 => Mode::AsynchronousReject,
        (true, _) => Mode::Asynchronous,
        (false, true) => Mode::SynchronousReject,
        (false, false) => Mode::Synchronous,
    }
}

pub(crate) fn server(
    index: u32,
    job: &JobConfig,
    place: &Place,
    values: &Values,
) -> elastic_ps::Settings {
    let own = || place.folder.join("model");
    elastic_ps::Settings {
        index,
        servers: job.parameter_servers,
        listen: place.listen(0),
        advertise: Some(place.host.clone()),
        master: place.master(),
        token_file: place.token_file.clone(),
        checkpoint_dir: Some(values.some("checkpoint_dir").map_or_else(own, PathBuf::from)),
        init_dir: values.some("checkpoint_dir_for_init").map(|dir| Path::new(dir).to_owned()),
        message_bytes_max: job.message_bytes_max,
    }
}

/// Logs the pod operations of the published master: here the scheduler does them.
pub(crate) struct Log;

impl Outside for Log {
    fn want(&mut self, want: &Want) {
        match want {
            Want::Stop { pods } => {
                print_line(&format!("{} does not leave in time", pods.join(", ")));
            }
            Want::Replace { pods } => {
                let pods = pods.join(", ");
                print_line(&format!("{pods} does not answer any more; its tasks are open again"));
            }
            Want::Part { pod, unreached, leaves, for_ms } => {
                let seconds = for_ms / 1000;
                print_line(&format!(
                    "{pod} has not reached {unreached} for {seconds} s, and both reach the master: {leaves} \
                     leaves; look at the network between the two"
                ));
            }
            Want::Show { pod, message } => {
                print_line(&format!("{pod} failed:{}", progress::indented(message)));
            }
            Want::Release { pods } => {
                print_line(&format!("{} handed its tasks back", pods.join(", ")));
            }
            Want::Measured { version, records, metrics } => {
                print_line(&progress::measured(*version, *records, metrics));
            }
            Want::Ended { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<JobConfig, Error> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let (form, values) = read(&words)?;
        config(form, &values)
    }

    #[test]
    fn flags_of_both_forms_make_a_training() {
        let seed = of("flat --job_name=j --minibatch_size=10 --record_per_task=100 --num_epoch=2 \
             --grads_to_wait=2 --train_data_dir=/d --model_file=/m.py")
        .unwrap();
        assert_eq!(
            (seed.name.as_str(), seed.minibatch_size, seed.records_per_task),
            ("j", 10, 100)
        );
        assert_eq!((seed.epochs, seed.grads_to_wait), (Epochs::Count(2), 2));
        assert_eq!((seed.parameter_servers, seed.mode), (1, Mode::Synchronous));
        assert_eq!(seed.arguments["train_data_dir"], "/d");
        let train = of("train --job_name=j --minibatch_size=64 --num_minibatches_per_task=8 \
             --num_epochs=0 --max_step=10 --use_async=true --num_ps_pods=2 --output=/o")
        .unwrap();
        assert_eq!((train.records_per_task, train.epochs), (512, Epochs::Endless));
        assert_eq!((train.records_max, train.parameter_servers), (Some(640), 2));
        assert!(train.mode == Mode::Asynchronous && train.saves);
        let evaluate =
            of("evaluate --job_name=j --validation_data=/d --minibatch_size=8 --num_epochs=3")
                .unwrap();
        assert_eq!((evaluate.kind, evaluate.epochs), (Kind::Evaluate, Epochs::Count(1)));
    }

    #[test]
    fn gradients_are_rejected_where_a_flag_says_so() {
        let train = "train --job_name=j --grads_to_wait=2 --bad_records_max=0";
        for (flags, mode, tolerance) in [
            ("", Mode::Synchronous, 0),
            ("--sync_version_tolerance=2", Mode::SynchronousReject, 2),
            ("--gradients=reject", Mode::SynchronousReject, 0),
            ("--gradients=wait", Mode::Synchronous, 0),
            ("--use_async=true", Mode::Asynchronous, 0),
            ("--use_async=true --staleness_max=2", Mode::Asynchronous, 0),
            ("--use_async=true --staleness_max=2 --gradients=reject", Mode::AsynchronousReject, 0),
        ] {
            let job = of(&format!("{train} {flags}")).unwrap();
            assert_eq!((job.mode, job.sync_version_tolerance), (mode, tolerance), "{flags}");
            let bound = if flags.contains("staleness_max") { 2 } else { 0 };
            assert_eq!(job.staleness_max, bound, "{flags}");
        }
        assert_eq!(of("flat --gradients=reject").unwrap().mode, Mode::SynchronousReject);
    }

    #[test]
    fn workers_that_add_up_their_gradients_are_in_a_world() {
        let flags = "--job_name=j --num_workers=3 --distribution_strategy=AllreduceStrategy";
        let job = of(&format!("train {flags}")).unwrap();
        let world = job.world.expect("a world");
        assert_eq!((world.min, world.max, world.unit), (1, 3, 1));
        let two = format!("train {flags} --worker_resource_request=cpu=1,gpu=2");
        assert_eq!(of(&two).unwrap().world.map(|world| world.max), Some(6));
        assert_eq!(of(&format!("evaluate {flags} --validation_data=/d")).unwrap().world, None);
        let by_servers = flags.replace("Allreduce", "ParameterServer");
        assert_eq!(of(&format!("train {by_servers}")).unwrap().world, None);
    }

    #[test]
    fn limits_of_a_job_are_those_of_its_flags() {
        let flags = "--checkpoint_steps=0 --bad_records_max=7 --relaunch_timeout_worker=true";
        let job = of(&format!("train --job_name=j {flags}")).unwrap();
        assert_eq!((job.checkpoint_steps, job.limits.bad_records_max), (0, 7));
        assert_eq!(job.silent_ms, Some(300_000));
        let seed = of("flat --job_name=j").unwrap();
        assert_eq!(
            (seed.checkpoint_steps, seed.limits, seed.silent_ms),
            (50, Limits::default(), None)
        );
    }

    #[test]
    fn a_job_submitted_by_an_earlier_program_stays_the_job_of_its_journal() {
        let old = "--job_name=j --checkpoint_steps=0 --sync_version_tolerance=2 \
                   --relaunch_timeout_worker=true";
        let job = of(&format!("train {old}")).unwrap();
        assert_eq!((job.checkpoint_steps, job.silent_ms), (50, None));
        assert_eq!((job.mode, job.limits), (Mode::Synchronous, Limits::default()));
        let job = of(&format!("train {old} --use_async=true")).unwrap();
        assert_eq!(job.mode, Mode::Asynchronous);
        let job = of("train --job_name=j --checkpoint_steps=7").unwrap();
        assert_eq!(job.checkpoint_steps, 7);
    }

    #[test]
    fn what_no_job_was_submitted_with_is_refused() {
        for (line, why) in [
            ("", "no form"),
            ("fly", "`fly` is not flat, train, evaluate or predict"),
            ("flat --job_nam=j", "`--job_nam` is no flag"),
            ("flat j", "`j` is not --FLAG=VALUE"),
        ] {
            let error = of(line).unwrap_err().to_string();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn a_master_finds_its_place_in_its_variables() {
        let find = |address: &str| {
            let address = address.to_owned();
            Place::find(move |name| match name {
                "MASTER_ADDR" => Some(address.clone()),
                _ => Some("/x".to_owned()),
            })
        };
        assert_eq!(find("127.0.0.1:7").unwrap().listen(7).to_string(), "127.0.0.1:7");
        assert_eq!(find("j-master:7").unwrap().listen(0).to_string(), "0.0.0.0:0");
        assert!(find("here").is_err());
        let none = Place::find(|_| None).map(drop).unwrap_err().to_string();
        assert!(none.contains("MASTER_ADDR is not set"), "{none}");
    }
}
