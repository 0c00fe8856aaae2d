//! A Docker daemon for the trial of the image: the machine's, or one that is started for it. Owns:
//! its folder, and that nothing of it is left.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::{Packages, run_command, text};

const WAIT_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The daemon.
#[derive(Debug)]
pub(super) struct Daemon {
    /// Folder of the trial's files, those of an own daemon among them.
    folder: PathBuf,
    host: Option<String>,
    own: Option<Child>,
    /// Name of the container, its volume and its network.
    name: String,
}

/// True if a program is on the PATH.
pub(super) fn installed(program: &str) -> bool {
    text(Command::new("sh").args(["-c", &format!("command -v {program}")])).is_ok()
}

impl Daemon {
    /// The machine's, or one of its own; none, and a counted skip, where there can be none.
    pub(super) fn start() -> Result<Option<Self>> {
        if !installed("docker") {
            return Ok(skip::missing("the image was not tried: docker is missing"));
        }
        // The path of a socket may not be long.
        let name = format!("elastane-package-{}", std::process::id());
        let folder = std::env::temp_dir().join(format!("dkp-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let mut daemon = Self { folder, host: None, own: None, name };
        if daemon.docker("info", &[]).is_err() {
            if text(Command::new("id").arg("-u"))?.trim() != "0" || !installed("dockerd") {
                return Ok(skip::missing(
                    "the image was not tried: no Docker answers, and only root can start one",
                ));
            }
            daemon.launch()?;
        }
        daemon.docker("network create", &[&daemon.name])?;
        Ok(Some(daemon))
    }

    fn launch(&mut self) -> Result<()> {
        let path = |name: &str| self.folder.join(name).display().to_string();
        let host = format!("unix://{}", path("docker.sock"));
        let log = fs::File::create(path("log"))?;
        let own = Command::new("dockerd")
            .args(["--data-root", &path("data"), "--exec-root", &path("exec")])
            .args(["--host", &host, "--pidfile", &path("pid"), "--bridge", "none"])
            .args(["--default-address-pool", "base=10.212.0.0/16,size=26"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        (self.own, self.host) = (Some(own), Some(host));
        let since = Instant::now();
        while let Err(error) = self.docker("info", &[]) {
            let log = fs::read_to_string(path("log")).unwrap_or_default();
            ensure!(since.elapsed() < WAIT_MAX, "dockerd does not answer: {error:#}\n{log}");
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The option that puts a container into the network of the trial.
    pub(super) fn network(&self) -> String {
        format!("--network {}", self.name)
    }

    /// Runs `docker` with the words of a line and further ones; what it prints.
    pub(super) fn docker(&self, line: &str, more: &[&str]) -> Result<String> {
        let mut docker = Command::new("docker");
        if let Some(host) = &self.host {
            docker.env("DOCKER_HOST", host);
        }
        text(docker.args(line.split_whitespace()).args(more).stdin(Stdio::null()))
    }

    /// Runs a line in the container.
    pub(super) fn inside(&self, line: &str) -> Result<String> {
        self.docker("exec", &[&self.name, "/bin/sh", "-c", line])
    }

    /// Repeats a line in the container until it succeeds.
    pub(super) fn until(&self, line: &str) -> Result<()> {
        let since = Instant::now();
        while let Err(error) = self.inside(line) {
            if since.elapsed() > WAIT_MAX {
                let log = self.docker("logs", &[&self.name]);
                return Err(error.context(format!("log of the container: {log:?}")));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// The client of the release, unpacked.
    pub(super) fn runai(&self, packages: &Packages) -> Result<PathBuf> {
        let tar = Command::new("tar")
            .args(["--strip-components=2", "-xzf"])
            .arg(&packages.client)
            .arg("-C")
            .arg(&self.folder)
            .status();
        ensure!(tar.context("failed to start tar")?.success(), "the client cannot be unpacked");
        Ok(self.folder.join("runai"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A command that fails here had nothing to remove, or leaves a folder for temporary files.
        for verb in ["rm --force --volumes", "volume rm --force", "network rm"] {
            let _ = self.docker(verb, &[&self.name]);
        }
        if let Some(own) = &mut self.own {
            let _ = run_command(Command::new("kill").arg(own.id().to_string()));
            let _ = own.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
