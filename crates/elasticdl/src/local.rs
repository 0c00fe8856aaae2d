//! A job on this machine without a server: `elasticdl local train --flag=value…`. Owns: the master
//! and the parameter servers in this process, the processes of the workers, and how Ctrl-C ends them.
//! Does not know about: what the flags mean (`job`, `master`), and what is trained.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;

use cli_kit::exit::Error;
use elastic_master::{Ended, JobConfig, Master, Settings, Sync};
use elastic_proto::v1::tell_request::Event;
use elastic_proto::v1::{LeaveReason, PodGone, PodLeaves, TellRequest};
use elastic_ps::Pushes;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::job::Job;
use crate::master::{self, Log, SAVE_MAX, TERMINATED, failed};
use crate::parse::{Form, Values};
use crate::progress::{self, say};

/// Workers have so long to hand their tasks back after Ctrl-C; after that, or a second one, they are
/// killed.
const LEAVE_MS: u64 = 10_000;
/// The exit code of a worker that was to leave.
const LEFT: i32 = 143;

type Servers = JoinSet<Result<Pushes, elastic_ps::Error>>;

/// Runs a job until it has ended.
pub(crate) async fn run(form: Form, values: &Values) -> Result<(), Error> {
    let here = std::env::current_dir()?;
    let job = Job::new(form, values, &here).map_err(|error| Error::Usage(error.to_string()))?;
    refuse(&job)?;
    let told = job.told.iter().map(|(name, value)| format!("--{name}={value}"));
    let words: Vec<String> = told.chain([format!("--job_name={}", job.name)]).collect();
    let told = Values::of_pairs(form, &words).map_err(Error::Usage)?;
    let folder = tempfile::Builder::new().prefix("elasticdl-").tempdir()?;
    let token_file = token(folder.path())?;
    let config = master::config(form, &told)?;
    let settings = Settings {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        token_file: token_file.clone(),
        journal_dir: folder.path().join("journal"),
        // It does not outlive this process.
        journal_sync: Sync::Os,
        linger_ms: 500,
        job: config.clone(),
    };
    let master = Master::open(settings, Log).await.map_err(failed)?;
    let address = master.address.to_string();
    let stop = Arc::new(Notify::new());
    let place = Place { folder: folder.path(), address: &address, token_file: &token_file };
    let servers = servers(&config, &told, &place, &stop);
    let mut workers = Workers { job: &job, place, running: BTreeMap::new(), next: 0, again: 0 };
    for _ in 0..job.workers {
        workers.start()?;
    }
    let reports = tokio::spawn(progress::report(address.clone(), token_file.clone()));
    let kept = told.some("checkpoint_dir").map(PathBuf::from);
    let done = until_end(master, (servers, &stop), &mut workers, kept.as_deref()).await;
    reports.abort();
    workers.kill().await;
    done
}

/// What is of pods, which there are none of here.
fn refuse(job: &Job) -> Result<(), Error> {
    let image = [&job.image, &job.worker_image].into_iter().find(|image| !image.is_empty());
    match image {
        None => Ok(()),
        Some(image) => Err(Error::Usage(format!(
            "`elasticdl local` runs no image ({image}): give the path of a Python, such as \
             /usr/bin/python3, or leave it out"
        ))),
    }
}

/// A file with a new token, that other accounts cannot read.
fn token(folder: &Path) -> Result<PathBuf, Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Error::Failed(error.to_string()))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    // The folder is closed to others.
    let path = folder.join("token");
    std::fs::write(&path, text)?;
    Ok(path)
}

/// Where the parts of the job find each other.
#[derive(Clone, Copy)]
struct Place<'a> {
    folder: &'a Path,
    address: &'a str,
    token_file: &'a Path,
}

fn servers(job: &JobConfig, values: &Values, place: &Place<'_>, stop: &Arc<Notify>) -> Servers {
    let mut all = JoinSet::new();
    let own = || place.folder.join("model");
    for index in 0..job.parameter_servers {
        let settings = elastic_ps::Settings {
            index,
            servers: job.parameter_servers,
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            advertise: None,
            master: place.address.to_owned(),
            token_file: place.token_file.to_owned(),
            checkpoint_dir: Some(values.some("checkpoint_dir").map_or_else(own, PathBuf::from)),
            init_dir: values.some("checkpoint_dir_for_init").map(PathBuf::from),
            message_bytes_max: job.message_bytes_max,
        };
        let (leads, stop) = (index == 0, Arc::clone(stop));
        let stopped =
            async move { if leads { stop.notified().await } else { std::future::pending().await } };
        all.spawn(elastic_ps::run_until(settings, stopped));
    }
    all
}

/// The processes of the workers.
struct Workers<'a> {
    job: &'a Job,
    place: Place<'a>,
    running: BTreeMap<String, Child>,
    next: u32,
    /// How many have begun because another failed.
    again: u32,
}

impl Workers<'_> {
    fn start(&mut self) -> Result<(), Error> {
        let pod = self.job.worker_names().replace("{}", &self.next.to_string());
        let mut command = match &self.job.command {
            Some(line) => {
                let mut command = Command::new("/bin/sh");
                command.args(["-c", line]);
                command
            }
            None => {
                let mut command = Command::new(&self.job.python);
                command.args(["-m", "elastane.worker"]);
                command
            }
        };
        command.env("OMP_NUM_THREADS", "1").envs(self.job.variables.iter().cloned());
        command.env("MASTER_ADDR", self.place.address).env("POD_NAME", &pod);
        command.env("ELASTANE_JOB_TOKEN_FILE", self.place.token_file);
        command.env("WORKER_ID", self.next.to_string());
        // Ctrl-C is for this process: workers are asked to leave by the master.
        let child = command.process_group(0).kill_on_drop(true).spawn();
        let child = child.map_err(|error| {
            Error::Failed(format!("a worker cannot be started: {}: {error}", self.job.python))
        })?;
        self.running.insert(pod, child);
        self.next += 1;
        Ok(())
    }

    /// Waits until one has ended.
    async fn ended(&mut self) -> Result<(String, ExitStatus), Error> {
        loop {
            for (pod, child) in &mut self.running {
                if let Some(status) = child.try_wait()? {
                    let pod = pod.clone();
                    self.running.remove(&pod);
                    return Ok((pod, status));
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// The master forgets one that has ended, and another begins in place of one that has failed.
    async fn replace(&mut self, (pod, status): (String, ExitStatus)) -> Result<(), Error> {
        if status.success() || status.code() == Some(LEFT) {
            return Ok(());
        }
        self.tell(Event::PodGone(PodGone {
            pod: pod.clone(),
            reason: LeaveReason::Unspecified.into(),
            message: String::new(),
        }))
        .await;
        let all = self.job.relaunches.saturating_mul(self.job.workers);
        if self.again < all {
            say(&format!("{pod} has failed ({status}); another begins"));
            self.again += 1;
            return self.start();
        }
        if self.running.is_empty() {
            let text = format!("all workers have failed, {pod} last ({status})");
            return Err(Error::Failed(text));
        }
        say(&format!("{pod} has failed ({status}); the others go on"));
        Ok(())
    }

    async fn tell(&self, event: Event) {
        let Some(mut master) = progress::master(self.place.address, self.place.token_file) else {
            return;
        };
        // A master that does not answer has ended.
        if let Err(error) = master.tell(TellRequest { event: Some(event) }).await {
            tracing::debug!(%error, "the master was not told");
        }
    }

    /// They finish their minibatches and hand back what they have.
    async fn leave(&mut self) -> Result<(), Error> {
        for pod in self.running.keys().cloned().collect::<Vec<_>>() {
            self.tell(Event::PodLeaves(PodLeaves { pod, within_ms: LEAVE_MS })).await;
        }
        while !self.running.is_empty() {
            self.ended().await?;
        }
        Ok(())
    }

    async fn kill(&mut self) {
        for child in self.running.values_mut() {
            // It may have ended by itself.
            let _ = child.kill().await;
        }
    }
}

async fn until_end(
    master: Master,
    (mut servers, stop): (Servers, &Notify),
    workers: &mut Workers<'_>,
    kept: Option<&Path>,
) -> Result<(), Error> {
    // It answers while this one tells it something.
    let mut serving = tokio::spawn(master.serve());
    let mut stops = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?];
    let name = workers.job.name.clone();
    loop {
        tokio::select! {
            ended = &mut serving => {
                return over(&name, ended.map_err(failed)?.map_err(failed)?, servers).await;
            }
            Some(ended) = servers.join_next() => master::server_ended(ended)?,
            ended = workers.ended(), if !workers.running.is_empty() => {
                workers.replace(ended?).await?;
            }
            () = stopped(&mut stops) => break,
        }
    }
    say("the workers hand back what they have; Ctrl-C again stops at once");
    tokio::select! {
        ended = &mut serving => over(&name, ended.map_err(failed)?.map_err(failed)?, servers).await,
        saved = saved(workers, (&mut servers, stop)) => {
            match (saved, kept) {
                (Ok(()), Some(folder)) => say(&format!(
                    "stopped; the model is in {0}: --checkpoint_dir_for_init={0} begins with it",
                    folder.display()
                )),
                (Ok(()), None) => say("stopped; the model is not kept without --checkpoint_dir"),
                (Err(why), _) => say(&format!("stopped; the model was not saved: {why}")),
            }
            Err(Error::Said(TERMINATED))
        }
        () = stopped(&mut stops) => Err(Error::Said(TERMINATED)),
    }
}

/// Waits for Ctrl-C or SIGTERM.
async fn stopped([interrupt, terminate]: &mut [Signal; 2]) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Stops in order: workers leave, then the servers save the model.
async fn saved(
    workers: &mut Workers<'_>,
    (servers, stop): (&mut Servers, &Notify),
) -> Result<(), String> {
    let left = tokio::time::timeout(std::time::Duration::from_millis(LEAVE_MS), workers.leave());
    match left.await {
        Ok(left) => left.map_err(|error| error.to_string())?,
        Err(_) => workers.kill().await,
    }
    stop.notify_one();
    let saving = tokio::time::timeout(SAVE_MAX, servers.join_next());
    match saving.await.map_err(|_| "saving took too long".to_owned())? {
        Some(ended) => master::server_ended(ended).map_err(|error| error.to_string()),
        None => Err("no parameter server is left".to_owned()),
    }
}

async fn over(name: &str, ended: Ended, mut servers: Servers) -> Result<(), Error> {
    master::servers_end(&mut servers).await;
    match ended {
        Ended::Succeeded(progress) => {
            say(&format!("job {name} succeeded: {}", progress::summary(&progress)));
            Ok(())
        }
        Ended::Failed(why) => Err(Error::Failed(format!("job {name} failed: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::parse::{Asked, parse};

    async fn ends(line: &str) -> String {
        let line = format!("elasticdl local {line} --job_name=j --model_zoo=src --model_def=m.f");
        let argv: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let Asked::Local(form, values) = parse(&argv).expect(&line).asked else {
            panic!("{line} is not local");
        };
        run(form, &values).await.expect_err(&line).to_string()
    }

    #[tokio::test]
    async fn what_cannot_run_here_is_refused_before_anything_is_started() {
        let train = "train --training_data=/d";
        let image = ends(&format!("{train} --image_name=elastic:1")).await;
        assert!(image.contains("runs no image (elastic:1)"), "{image}");
        let file = ends(&format!("{train} --image_name=/nope/python3")).await;
        assert!(file.contains("/nope/python3 is not there"), "{file}");
        let data = ends("train").await;
        assert!(data.contains("--training_data is missing"), "{data}");
    }

    #[tokio::test]
    async fn a_job_whose_workers_all_fail_has_failed() {
        let line = "train --training_data=/d --image_name=/bin/false --num_workers=2";
        let text = ends(&format!("{line} --relaunch_on_worker_failure=1")).await;
        assert!(text.starts_with("all workers have failed, elasticdl-j-worker-"), "{text}");
        assert!(text.ends_with("last (exit status: 1)"), "{text}");
    }
}
