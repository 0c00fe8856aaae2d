//! A job on this machine without a server: `elasticdl local train --flag=value…`. Owns: the master
//! and the parameter servers in this process, and the end of the job on Ctrl-C. Does not know
//! about: the processes of its workers (`workers`), the meaning of flags (`job`, `master`), and the
//! training.

mod workers;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use cli_kit::exit::Error;
use elastic_master::{Ended, JobConfig, Master, Settings, Sync};
use elastic_ps::Pushes;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::job::{Job, WORKER_REQUEST};
use crate::master::{self, Log, SAVE_MAX, TERMINATED, failed};
use crate::parse::{Form, Values};
use crate::progress::{self, print_line};
use workers::{LEAVE_MAX, Place, Workers};

/// Interval of checks of a job without workers: it has ended, or never will.
const ALONE: Duration = Duration::from_secs(2);
/// Maximum duration of the last checkpoint.
const END_MAX: Duration = Duration::from_secs(300);

type Servers = JoinSet<Result<Pushes, elastic_ps::Error>>;

/// Runs a job until it has ended.
pub(crate) async fn run(form: Form, values: &Values) -> Result<(), Error> {
    let here = std::env::current_dir()?;
    let job = Job::new(form, values, &here).map_err(|error| Error::Usage(error.to_string()))?;
    refuse(&job, values)?;
    let told = job.told.iter().filter(|(name, _)| *name != WORKER_REQUEST);
    let told = told.map(|(name, value)| format!("--{name}={value}"));
    let words: Vec<String> = told.chain([format!("--job_name={}", job.name)]).collect();
    let told = Values::of_pairs(form, &words).map_err(Error::Usage)?;
    let mut stops = Stops::new()?;
    let folder = tempfile::Builder::new().prefix("elasticdl-").tempdir()?;
    let token_file = token(folder.path())?;
    let config = master::config(form, &told)?;
    let settings = Settings {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        token_file: token_file.clone(),
        journal_dir: folder.path().join("journal"),
        // The journal does not outlive this process.
        journal_sync: Sync::Os,
        linger_ms: 500,
        job: config.clone(),
    };
    let master = Master::open(settings, Log).await.map_err(failed)?;
    let address = master.address.to_string();
    let stop = Arc::new(Notify::new());
    let place = Place { folder: folder.path(), address: &address, token_file: &token_file };
    let servers = servers(&config, &told, &place, &stop);
    let mut workers = Workers::new(&job, place);
    for _ in 0..job.workers {
        workers.start()?;
    }
    let reports = tokio::spawn(progress::report(address.clone(), token_file.clone()));
    let kept = told.some("checkpoint_dir").map(PathBuf::from);
    let parts = (servers, &*stop, &mut stops);
    let done = until_end(master, parts, &mut workers, kept.as_deref()).await;
    reports.abort();
    workers.kill().await;
    done
}

/// Refuses flags about images and networks, which a local job does not have.
fn refuse(job: &Job, values: &Values) -> Result<(), Error> {
    if values.is_on("tls") {
        let what = "`elasticdl local` runs all parts on this machine, and sends nothing over a network: \
                    leave --tls out";
        return Err(Error::Usage(what.to_owned()));
    }
    if values.some("checkpoint_credential").is_some() {
        let what = "`elasticdl local` has no credentials of a server: leave --checkpoint_credential out, and                     set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
        return Err(Error::Usage(what.to_owned()));
    }
    let image = [&job.image, &job.worker_image].into_iter().find(|image| !image.is_empty());
    match image {
        None => Ok(()),
        Some(image) => Err(Error::Usage(format!(
            "`elasticdl local` runs no image ({image}): give the path of a Python, such as \
             /usr/bin/python3, or leave it out"
        ))),
    }
}

/// Creates a file with a new token, readable by its owner only.
fn token(folder: &Path) -> Result<PathBuf, Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Error::Failed(error.to_string()))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    // The folder is closed to other accounts.
    let path = folder.join("token");
    std::fs::write(&path, text)?;
    Ok(path)
}

fn servers(job: &JobConfig, values: &Values, place: &Place<'_>, stop: &Arc<Notify>) -> Servers {
    let mut all = JoinSet::new();
    let own = || place.folder.join("model");
    for index in 0..job.servers() {
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

async fn until_end(
    master: Master,
    (mut servers, stop, stops): (Servers, &Notify, &mut Stops),
    workers: &mut Workers<'_>,
    kept: Option<&Path>,
) -> Result<(), Error> {
    // The master has to answer while it is notified.
    let mut serving = tokio::spawn(master.serve());
    let name = workers.job.name.clone();
    let (mut alone, mut since) = (pin!(sleep(ALONE)), Instant::now());
    loop {
        tokio::select! {
            ended = &mut serving => {
                return over(&name, ended.map_err(failed)?.map_err(failed)?, servers).await;
            }
            Some(ended) = servers.join_next() => master::server_ended(ended)?,
            ended = workers.ended(), if !workers.running.is_empty() => {
                workers.replace(ended?).await?;
                since = Instant::now();
                alone.as_mut().reset(since + ALONE);
            }
            () = &mut alone, if workers.running.is_empty() => {
                if since.elapsed() > END_MAX || workers.are_missed().await {
                    return Err(Error::Failed(format!("no worker is left; {}", workers.last)));
                }
                alone.as_mut().reset(Instant::now() + ALONE);
            }
            () = stops.next() => break,
        }
    }
    print_line("the workers hand back what they have; Ctrl-C again stops at once");
    tokio::select! {
        ended = &mut serving => over(&name, ended.map_err(failed)?.map_err(failed)?, servers).await,
        saved = saved(workers, (&mut servers, stop)) => {
            match (saved, kept) {
                (Ok(()), Some(folder)) => print_line(&format!(
                    "stopped; the model is in {0}: --checkpoint_dir_for_init={0} begins with it",
                    folder.display()
                )),
                (Ok(()), None) => print_line("stopped; the model is not kept without --checkpoint_dir"),
                (Err(why), _) => print_line(&format!("stopped; the model was not saved: {why}")),
            }
            Err(Error::Said(TERMINATED))
        }
        () = stops.next() => Err(Error::Said(TERMINATED)),
    }
}

/// Signals that stop a job: Ctrl-C, SIGTERM, and SIGHUP unless it is ignored.
struct Stops {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Stops {
    fn new() -> Result<Self, Error> {
        // As with `nohup`.
        let ignored =
            std::fs::read_to_string("/proc/self/status").is_ok_and(|s| ignores_hangup(&s));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: (!ignored).then(|| signal(SignalKind::hangup())).transpose()?,
        })
    }

    async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hangup => {}
        }
    }
}

/// True if a process was started with SIGHUP ignored, by its `/proc/PID/status`.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 != 0)
}

/// Stops in order: workers leave, then the servers save the model.
async fn saved(
    workers: &mut Workers<'_>,
    (servers, stop): (&mut Servers, &Notify),
) -> Result<(), String> {
    match timeout(LEAVE_MAX, workers.leave()).await {
        Ok(left) => left.map_err(|error| error.to_string())?,
        Err(_) => workers.kill().await,
    }
    stop.notify_one();
    match timeout(SAVE_MAX, servers.join_next())
        .await
        .map_err(|_| "saving took too long".to_owned())?
    {
        Some(ended) => master::server_ended(ended).map_err(|error| error.to_string()),
        None if workers.have_saved().await => Ok(()),
        None => Err("the last worker has not saved it".to_owned()),
    }
}

async fn over(name: &str, ended: Ended, mut servers: Servers) -> Result<(), Error> {
    master::servers_end(&mut servers).await;
    match ended {
        Ended::Succeeded { progress, applied } => {
            print_line(&format!("job {name} succeeded: {}", progress::summary(&progress, applied)));
            Ok(())
        }
        Ended::Failed(why) => Err(Error::Failed(format!("job {name} failed: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::parse::{Invocation, parse};

    async fn ends(line: &str) -> String {
        let line = format!("elasticdl local {line} --job_name=j --model_zoo=src --model_def=m.f");
        let argv: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let Invocation::Local(form, values) = parse(&argv).expect(&line).asked else {
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

    #[tokio::test]
    async fn a_job_whose_workers_end_before_it_has_failed() {
        let text = ends("train --training_data=/d --num_workers=1 --job_command=true").await;
        assert_eq!(text, "no worker is left; elasticdl-j-worker-0 ended last (exit status: 0)");
    }

    #[test]
    fn a_job_under_nohup_is_known_by_its_mask() {
        for (status, is) in [
            ("Name:\tx\nSigIgn:\t0000000000000001\n", true),
            ("SigIgn:\t0000000000001000\n", false),
            ("", false),
        ] {
            assert_eq!(ignores_hangup(status), is, "{status}");
        }
    }
}
