//! `cargo xtask package-test`: the packages are installed, upgraded while a workload runs, removed
//! and purged on a fresh Debian with systemd, and the image is run by Docker. Owns: what is tried.

mod docker;
mod machine;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Options, Release, client, deb, image, release, run_command, text};
use docker::Daemon;
use machine::Machine;

/// Finds the process of the workload that every trial has, and not the shell that looks for it.
const TRAINING: &str = "pgrep -f '^[^ ]*elastane quickstart-workload'";

/// Builds the packages and tries them. A part that this machine cannot try is a counted skip.
pub(crate) fn run(source: &Path, options: Options) -> Result<()> {
    let release = release(source, options)?;
    let packages = Packages::build(release)?;
    if let Some(machine) = Machine::boot(source)? {
        install(&machine, &packages)?;
        client_alone(&machine, &packages)?;
        upgrade(&machine, &packages)?;
        remove(&machine)?;
        purge(&machine)?;
        step("the Debian package and the client work")?;
    }
    if let Some(daemon) = Daemon::start()? {
        container(&daemon, &packages)?;
        step("the container image works")?;
    }
    Ok(())
}

struct Packages {
    before: PathBuf,
    package: PathBuf,
    version: String,
    client: PathBuf,
    image: PathBuf,
}

impl Packages {
    /// Packages of the release, and a Debian package of an earlier version with the same programs.
    fn build(mut release: Release) -> Result<Self> {
        let version = release.version.clone();
        let (package, client, image) =
            (deb::build(&release)?, client(&release)?, image::build(&release)?);
        release.version = format!("{version}~before");
        // This folder is not published.
        release.output = release.source.join("target/package-test");
        fs::create_dir_all(&release.output)?;
        Ok(Self { before: deb::build(&release)?, package, version, client, image })
    }
}

fn step(what: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "package-test: {what}")?)
}

/// The package starts the service; a workload runs as an account of its own.
fn install(machine: &Machine, packages: &Packages) -> Result<()> {
    step("install")?;
    machine.copy(&packages.before, "/srv/before.deb")?;
    machine.copy(&packages.package, "/srv/package.deb")?;
    machine.shell("dpkg -i /srv/before.deb")?;
    let faults = machine.shell("systemd-analyze verify --man=no elastane.service 2>&1")?;
    ensure!(faults.is_empty(), "systemd finds faults in the unit: {faults}");
    machine.shell("systemctl is-enabled elastane && systemctl is-active elastane")?;
    machine.until("elastane status")?;
    // An administrator's change, which upgrades keep.
    machine.shell(
        "printf '%s\\n' 'gpus = \"1x16GiB\"' 'public_url = \"http://gpu-box:7070\"' \
         'require_isolation = true' >> /etc/elastane/config.toml",
    )?;
    machine.shell("systemctl restart elastane")?;
    machine.until("elastane status")?;
    machine.shell("elastane project create team-a --gpu-quota 1")?;
    machine.shell("runai submit train1 -p team-a -i gcr.io/run-ai-demo/quickstart -g 1")?;
    let pid = training(machine)?;
    let user = machine.shell(&format!("stat -c %u /proc/{pid}"))?;
    ensure!(user.trim().starts_with("19000"), "the workload has the id {user}");
    let private = machine.shell("stat -c '%a %U' /var/lib/elastane")?;
    ensure!(private.trim() == "700 root", "the state directory is {private}");
    machine.shell(
        "man -w runai-submit elastane-up && test -s /usr/share/zsh/vendor-completions/_runai",
    )?;
    Ok(())
}

/// The process of the workload, once it runs, with the time of its start.
fn training(machine: &Machine) -> Result<String> {
    machine.until("runai list jobs -p team-a | grep -w Running")?;
    let pid = machine.shell(TRAINING)?;
    let pid = pid.trim().to_owned();
    ensure!(pid.parse::<u32>().is_ok(), "the workload has the processes `{pid}`");
    Ok(pid)
}

/// The client needs nothing but itself: a folder without any library resolves names and connects.
fn client_alone(machine: &Machine, packages: &Packages) -> Result<()> {
    step("the client in an empty root")?;
    machine.copy(&packages.client, "/srv/client.tar.gz")?;
    machine.shell("mkdir -p /srv/empty/etc")?;
    machine.shell("tar -C /srv/empty --strip-components 2 -xzf /srv/client.tar.gz")?;
    machine.shell("echo '127.0.0.1 gpu-box localhost' > /srv/empty/etc/hosts")?;
    let list = |host: &str| {
        machine.shell(&format!(
            "HOME=/ RUNAI_TOKEN=$(elastane token) RUNAI_CP_URL=http://{host}:7070 \
             chroot /srv/empty /runai list jobs -p team-a 2>&1"
        ))
    };
    for host in ["gpu-box", "localhost", "127.0.0.1"] {
        let jobs = list(host)?;
        ensure!(jobs.contains("train1"), "{host}: {jobs}");
    }
    let Err(fault) = list("no-such-host.invalid") else {
        anyhow::bail!("a host that does not exist answered");
    };
    ensure!(format!("{fault:#}").contains("no-such-host"), "{fault:#}");
    Ok(())
}

/// The server is another process afterwards, the workload the same.
fn upgrade(machine: &Machine, packages: &Packages) -> Result<()> {
    step("upgrade while a workload runs")?;
    let server = || machine.shell("systemctl show -P MainPID elastane");
    let identity = || {
        let pid = training(machine)?;
        // Number and start time of the process: it is still the same one.
        machine.shell(&format!("cut -d ' ' -f 1,22 /proc/{pid}/stat"))
    };
    let (server_before, before) = (server()?, identity()?);
    machine.shell("dpkg -i /srv/package.deb")?;
    machine.until("elastane status")?;
    ensure!(server()? != server_before, "the old server runs on");
    let after = identity()?;
    ensure!(after == before, "the workload was process {before} and is {after}");
    let version = machine.shell("dpkg-query -W -f '${Version}' elastane")?;
    ensure!(version == packages.version, "the version is {version}");
    machine.shell("grep -q 1x16GiB /etc/elastane/config.toml")?;
    // The process still obeys the server.
    machine.shell("runai suspend train1 -p team-a")?;
    machine.until(&format!("! {TRAINING}"))?;
    machine.shell("runai resume train1 -p team-a")?;
    training(machine).map(drop)
}

/// Workloads are stopped in order, and start again with the next installation.
fn remove(machine: &Machine) -> Result<()> {
    step("remove, and install again")?;
    machine.shell("dpkg -r elastane")?;
    machine.shell("! pgrep -xa elastane")?;
    machine.shell("test -s /var/lib/elastane/elastane.db && ! test -e /usr/bin/elastane")?;
    machine.shell("dpkg -i /srv/package.deb")?;
    training(machine)?;
    let output = machine.shell("runai logs train1 -p team-a")?;
    ensure!(output.contains("resum") || output.contains("checkpoint"), "{output}");
    Ok(())
}

/// A purge leaves nothing behind, even while workloads run.
fn purge(machine: &Machine) -> Result<()> {
    step("purge")?;
    machine.shell("dpkg -P elastane")?;
    machine.shell("! pgrep -xa elastane")?;
    let left = machine.shell(
        "find / -xdev -name '*elastane*' ! -path '/proc/*' ! -path '/srv/*' ! -path '/sys/*'",
    )?;
    ensure!(left.is_empty(), "a purge leaves {left}");
    Ok(())
}

/// The line of `docs/operations/install.md`: a server in a container, with its state in a volume.
fn container(daemon: &Daemon, packages: &Packages) -> Result<()> {
    step("the container image")?;
    let loaded = daemon.docker("load --quiet --input", &[&packages.image.display().to_string()])?;
    let tag = format!("elastane:{}", packages.version);
    ensure!(loaded.contains(&tag), "{loaded}");
    // Beyond the loopback of the container nothing goes unencrypted without the word for it.
    let refused = daemon.docker(&format!("run --rm {} {tag}", daemon.network()), &[]);
    let refused = refused.err().context("an unencrypted server started without its flag")?;
    ensure!(format!("{refused:#}").contains("insecure"), "{refused:#}");
    let start = || {
        daemon.docker(
            &format!(
                "run --detach --init --name {name} --publish 127.0.0.1::7070 --volume \
                 {name}:/var/lib/elastane {network} {tag} --insecure-listen --gpus 2x16GiB",
                name = daemon.name(),
                network = daemon.network(),
            ),
            &[],
        )
    };
    start()?;
    let inside = |line: &str| daemon.inside(line);
    daemon.until("elastane status")?;
    inside("elastane project create team-a --gpu-quota 1")?;
    inside("runai submit train1 -p team-a -i gcr.io/run-ai-demo/quickstart -g 1")?;
    daemon.until("runai list jobs -p team-a | grep -w Running")?;
    let address = daemon.docker("port", &[daemon.name(), "7070"])?;
    let token = inside("elastane token")?;
    let jobs = text(
        Command::new(&daemon.runai(packages)?)
            .args(["list", "jobs", "-p", "team-a"])
            .env("RUNAI_CP_URL", format!("http://{}", address.trim()))
            .env("RUNAI_TOKEN", token.trim())
            .env("ELASTANE_STATE_DIR", "/nowhere"),
    )?;
    ensure!(jobs.contains("train1"), "{jobs}");
    // Another container takes over the state.
    daemon.docker("rm --force", &[daemon.name()])?;
    start()?;
    daemon.until("runai list jobs -p team-a | grep -w Running")
}
