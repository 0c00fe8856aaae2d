//! The workers of a job without a server, as local processes. Owns: starting them, replacing failed
//! ones, and that no process of theirs outlives them. Does not know about: the end of a job.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use cli_kit::exit::Error;
use elastic_proto::v1::tell_request::Event;
use elastic_proto::v1::{JobPhase, LeaveReason, PodGone, PodLeaves, StatusRequest, TellRequest};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::job::Job;
use crate::progress::{self, print_line};

/// Maximum time in which workers return their tasks after Ctrl-C; after that, or a second Ctrl-C,
/// they are killed.
pub(super) const LEAVE_MAX: Duration = Duration::from_secs(10);
/// Exit code of a worker that was requested to leave.
const LEFT: i32 = 143;
/// Interval of checks for ended processes.
const EVERY: Duration = Duration::from_millis(50);

/// Addresses and files of the job.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) folder: &'a Path,
    pub(super) address: &'a str,
    pub(super) token_file: &'a Path,
}

/// The processes of the workers.
pub(super) struct Workers<'a> {
    pub(super) job: &'a Job,
    place: Place<'a>,
    pub(super) running: BTreeMap<String, Worker>,
    /// Description of the worker that ended last.
    pub(super) last: String,
    next: u32,
    /// Number of workers that replaced a failed one.
    again: u32,
}

impl<'a> Workers<'a> {
    pub(super) fn new(job: &'a Job, place: Place<'a>) -> Self {
        Self { job, place, running: BTreeMap::new(), last: String::new(), next: 0, again: 0 }
    }

    pub(super) fn start(&mut self) -> Result<(), Error> {
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
        command.env("WORKER_NUM", self.job.workers.to_string());
        // If this runs in a pod, its GPUs are shared by all workers, which are one process each.
        command.env_remove("RUNAI_NUM_OF_GPUS");
        // Ctrl-C is for this process: the master requests the workers to leave.
        let child = command.process_group(0).kill_on_drop(true).spawn();
        let child = child.map_err(|error| {
            Error::Failed(format!("a worker cannot be started: {}: {error}", self.job.python))
        })?;
        self.running.insert(pod, Worker(child));
        self.next += 1;
        Ok(())
    }

    /// Waits until a worker has ended.
    pub(super) async fn ended(&mut self) -> Result<(String, ExitStatus), Error> {
        loop {
            for (pod, worker) in &mut self.running {
                if let Some(status) = worker.0.try_wait()? {
                    let pod = pod.clone();
                    self.running.remove(&pod);
                    return Ok((pod, status));
                }
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Reports an ended worker to the master, and starts another in place of a failed one.
    pub(super) async fn replace(
        &mut self,
        (pod, status): (String, ExitStatus),
    ) -> Result<(), Error> {
        self.last = format!("{pod} ended last ({status})");
        if status.success() || status.code() == Some(LEFT) {
            return Ok(());
        }
        self.send_event(Event::PodGone(PodGone {
            pod: pod.clone(),
            reason: LeaveReason::Unspecified.into(),
            message: String::new(),
        }))
        .await;
        let all = self.job.relaunches.saturating_mul(self.job.workers);
        if self.again < all {
            print_line(&format!("{pod} has failed ({status}); another begins"));
            self.again += 1;
            return self.start();
        }
        if self.running.is_empty() {
            let text = format!("all workers have failed, {pod} last ({status})");
            return Err(Error::Failed(text));
        }
        print_line(&format!("{pod} has failed ({status}); the others go on"));
        Ok(())
    }

    /// True if the job has records that it cannot process without workers. Without such records, it
    /// may be writing its last checkpoint.
    pub(super) async fn are_missed(&self) -> bool {
        let Some(mut master) = progress::master(self.place.address, self.place.token_file) else {
            return false;
        };
        // A master that does not answer has ended.
        let Ok(status) = master.status(StatusRequest {}).await else { return false };
        let status = status.into_inner();
        match status.phase() {
            JobPhase::Succeeded | JobPhase::Failed => false,
            // The job has no end, or its workers have not reported the number of records.
            _ => status.records_total == 0 || status.records < status.records_total,
        }
    }

    /// True if the last worker has saved the model that the workers held.
    pub(super) async fn have_saved(&self) -> bool {
        let Some(mut master) = progress::master(self.place.address, self.place.token_file) else {
            return false;
        };
        let status = master.status(StatusRequest {}).await;
        status.is_ok_and(|status| status.into_inner().saved)
    }

    async fn send_event(&self, event: Event) {
        let Some(mut master) = progress::master(self.place.address, self.place.token_file) else {
            return;
        };
        // A master that does not answer has ended.
        if let Err(error) = master.tell(TellRequest { event: Some(event) }).await {
            tracing::debug!(%error, "the master was not told");
        }
    }

    /// Requests the workers to leave: they finish their minibatches and return their tasks.
    pub(super) async fn leave(&mut self) -> Result<(), Error> {
        let within_ms = u64::try_from(LEAVE_MAX.as_millis()).unwrap_or(u64::MAX);
        for pod in self.running.keys().cloned().collect::<Vec<_>>() {
            self.send_event(Event::PodLeaves(PodLeaves { pod, within_ms })).await;
        }
        while !self.running.is_empty() {
            self.ended().await?;
        }
        Ok(())
    }

    pub(super) async fn kill(&mut self) {
        for worker in self.running.values_mut() {
            worker.kill_group();
            // A killed process ends; waiting collects this one.
            let _ = worker.0.wait().await;
        }
    }
}

/// A worker process that leads a process group; the group is killed on drop.
pub(super) struct Worker(Child);

impl Worker {
    /// Kills the group: the command may have started other processes, as a shell does.
    fn kill_group(&self) {
        // The id is not reused before the process is waited for.
        let id = self.0.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(Err(error)) = id.map(|id| kill_process_group(id, Signal::KILL)) {
            tracing::debug!(%error, "a worker was not killed; it has ended by itself");
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill_group();
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::time::Instant;

    use super::*;
    use crate::parse::{Invocation, parse};

    /// True if a process runs and is not a zombie.
    fn is_alive(id: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }

    async fn until(mut is: impl FnMut() -> bool) {
        let began = Instant::now();
        while !is() {
            assert!(began.elapsed() < Duration::from_secs(60), "it takes too long");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn what_a_worker_has_started_ends_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("id");
        let line = format!("sleep 600 & echo $! > {}; wait; true", file.display());
        let argv = ["elasticdl", "local", "train", "--job_name=j", "--training_data=/d"];
        let argv = argv.into_iter().map(OsString::from);
        let argv: Vec<_> = argv.chain([format!("--job_command={line}").into()]).collect();
        let Invocation::Local(form, values) = parse(&argv).expect("flags").asked else {
            panic!("it is not local");
        };
        let job = Job::new(form, &values, folder.path()).expect("a job");
        let place = Place { folder: folder.path(), address: "127.0.0.1:1", token_file: &file };
        for is_dropped in [true, false] {
            let mut workers = Workers::new(&job, place);
            workers.start().expect("a worker");
            let mut id = String::new();
            until(|| {
                id = std::fs::read_to_string(&file).unwrap_or_default();
                id.ends_with('\n')
            })
            .await;
            assert!(is_alive(id.trim()));
            match is_dropped {
                true => drop(workers),
                false => workers.kill().await,
            }
            until(|| !is_alive(id.trim())).await;
            std::fs::remove_file(&file).expect("the file");
        }
    }
}
