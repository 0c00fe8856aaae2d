//! A fresh Debian with systemd as its first process. Owns: making it, and that nothing of it is
//! left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::{run_command, text};

/// Packages that the trials need beside Debian's smallest system.
const PACKAGES: &str = "--include=systemd,systemd-sysv,dbus,procps,man-db";
const NEEDED: [(&str, &str); 3] = [
    ("debootstrap", "debootstrap"),
    ("systemd-nspawn", "systemd-container"),
    ("nsenter", "util-linux"),
];
const WAIT_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The running machine; ended and deleted when this is dropped.
#[derive(Debug)]
pub(super) struct Machine {
    root: PathBuf,
    container: Child,
    /// Id of its first process on this machine.
    init: u32,
}

impl Machine {
    /// Makes and starts one; none, and a counted skip, where that is not possible.
    pub(super) fn boot(source: &Path) -> Result<Option<Self>> {
        if text(Command::new("id").arg("-u"))?.trim() != "0" {
            return Ok(skip::missing("the Debian package is tried by root only"));
        }
        for (program, package) in NEEDED {
            if !super::docker::installed(program) {
                return Ok(skip::missing(&format!(
                    "the Debian package was not tried: {program} is missing; apt install {package}"
                )));
            }
        }
        let base = base(source)?;
        let root = std::env::temp_dir().join(format!("elastane-machine-{}", std::process::id()));
        fs::create_dir(&root).with_context(|| root.display().to_string())?;
        let container = Command::new("sh")
            .args([
                "-c",
                "tar -C \"$0\" -xf \"$1\" && exec systemd-nspawn --quiet --register=no \
                --keep-unit --private-network --boot --directory=\"$0\" --machine=elastane-test",
            ])
            .args([&root, &base])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()?;
        let mut machine = Self { root, container, init: 0 };
        machine.init = machine.find_init()?;
        machine.until("systemctl is-system-running | grep -e running -e degraded")?;
        Ok(Some(machine))
    }

    /// The child of the container's manager that is process 1 inside.
    fn find_init(&mut self) -> Result<u32> {
        let since = Instant::now();
        while since.elapsed() < WAIT_MAX {
            ensure!(self.container.try_wait()?.is_none(), "systemd-nspawn ended");
            let children = format!("/proc/{0}/task/{0}/children", self.container.id());
            let children = fs::read_to_string(children)?;
            for pid in children.split_whitespace() {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
                if inner.is_some_and(|ids| ids.split_whitespace().nth(1) == Some("1")) {
                    return Ok(pid.parse()?);
                }
            }
            std::thread::sleep(LOOK_EVERY);
        }
        bail!("systemd did not start in {} s", WAIT_MAX.as_secs())
    }

    /// Runs a line in it; what it prints. A line that fails is an error with both streams.
    pub(super) fn shell(&self, line: &str) -> Result<String> {
        let output = Command::new("nsenter")
            .args(["--target", &self.init.to_string(), "--mount", "--uts", "--ipc", "--net"])
            .args(["--pid", "--cgroup", "--root", "--wd", "/bin/sh", "-c", line])
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .output()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`{line}` failed ({}): {printed}{errors}", output.status);
        Ok(printed)
    }

    /// Repeats a line until it succeeds.
    pub(super) fn until(&self, line: &str) -> Result<()> {
        let since = Instant::now();
        loop {
            match self.shell(line) {
                Ok(_) => return Ok(()),
                Err(error) if since.elapsed() > WAIT_MAX => {
                    let log = self.shell("journalctl --no-pager -n 40 -u elastane");
                    return Err(error.context(format!("log of the service: {log:?}")));
                }
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    /// Puts a file of this machine into it.
    pub(super) fn copy(&self, from: &Path, to: &str) -> Result<()> {
        let to = self.root.join(to.trim_start_matches('/'));
        fs::copy(from, &to).with_context(|| to.display().to_string())?;
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // All its processes end with its first one. A failure here leaves a folder behind.
        let pid = if self.init == 0 { self.container.id() } else { self.init };
        let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        let _ = self.container.wait();
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// The archive of a fresh system, made once: it takes about two minutes.
fn base(source: &Path) -> Result<PathBuf> {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let named = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    // Programs that are linked here need the libraries of here.
    let suite = named.filter(|_| release.contains("ID=debian\n")).unwrap_or("stable");
    let folder = source.join("target/package-test");
    fs::create_dir_all(&folder)?;
    let archive = folder.join(format!("{suite}.tar"));
    if archive.exists() {
        return Ok(archive);
    }
    let root = folder.join(format!("{suite}-{}", std::process::id()));
    super::step(&format!("debootstrap {suite} (once, about two minutes)"))?;
    let log = fs::File::create(folder.join("debootstrap.log"))?;
    let made = run_command(
        Command::new("debootstrap")
            .args(["--variant=minbase", PACKAGES, suite])
            .arg(&root)
            .stdout(log.try_clone()?)
            .stderr(log),
    );
    let made = made.and_then(|()| {
        let draft = archive.with_extension("draft");
        run_command(Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&draft).arg("."))?;
        Ok(fs::rename(draft, &archive)?)
    });
    fs::remove_dir_all(&root)?;
    made.with_context(|| format!("see {}", folder.join("debootstrap.log").display()))?;
    Ok(archive)
}
