//! The Debian package. Owns: where its files go, and the archive that `dpkg-deb` makes of them. The
//! actions at an installation and a removal are in `packaging/debian`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::programs::completions;
use super::{Release, Stage, libraries, licences, run_command, text};

const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
const CONFIG: &str = "/etc/elastane/config.toml";

/// The package, as `elastane_VERSION_ARCH.deb`.
pub(super) fn build(release: &Release) -> Result<PathBuf> {
    let stage = Stage::new(release, "deb")?;
    programs(release, &stage)?;
    documents(release, &stage)?;
    // The control file counts the files, so it comes last.
    control(release, &stage)?;
    let Release { version, arch, .. } = release;
    let package = release.output.join(format!("elastane_{version}_{arch}.deb"));
    run_command(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "--build"])
            .arg(stage.root())
            .arg(&package)
            .env("SOURCE_DATE_EPOCH", &release.epoch)
            .stdout(std::process::Stdio::null()),
    )
    .context("on Debian and Ubuntu dpkg-deb is there; elsewhere install the package dpkg")?;
    Ok(package)
}

fn programs(release: &Release, stage: &Stage) -> Result<()> {
    let packaging = release.source.join("packaging");
    stage.copy(&release.programs.elastane, "/usr/bin/elastane", 0o755)?;
    stage.copy(&release.programs.runai, "/usr/bin/runai", 0o755)?;
    let unit = "/lib/systemd/system/elastane.service";
    stage.copy(&packaging.join("elastane.service"), unit, 0o644)?;
    stage.copy(&packaging.join("config.toml"), CONFIG, 0o644)?;
    stage.folder("/usr/share/man/man1", 0o755)?;
    release.programs.manual(&stage.path("/usr/share/man/man1"), "")?;
    for (name, program) in
        [("elastane", &release.programs.elastane), ("runai", &release.programs.runai)]
    {
        completions(program, |shell, script| {
            let path = match shell {
                "bash" => format!("/usr/share/bash-completion/completions/{name}"),
                "zsh" => format!("/usr/share/zsh/vendor-completions/_{name}"),
                _ => format!("/usr/share/fish/vendor_completions.d/{name}.fish"),
            };
            stage.write(&path, script.as_bytes(), 0o644)
        })?;
    }
    Ok(())
}

fn documents(release: &Release, stage: &Stage) -> Result<()> {
    let debian = release.source.join("packaging/debian");
    let doc = |name: &str| format!("/usr/share/doc/elastane/{name}");
    stage.copy(&debian.join("copyright"), &doc("copyright"), 0o644)?;
    stage.write_gz(&doc("changelog"), changelog(release)?.as_bytes())?;
    stage.write_gz(&doc("third-party"), licences::text(&release.source)?.as_bytes())?;
    let overrides = "/usr/share/lintian/overrides/elastane";
    stage.copy(&debian.join("lintian-overrides"), overrides, 0o644)
}

/// Changelog for Debian's tools; the changes are in the document for people.
fn changelog(release: &Release) -> Result<String> {
    let Release { version, epoch, .. } = release;
    let date = text(
        Command::new("date").env("LC_ALL", "C").args(["-u", "-R", "-d"]).arg(format!("@{epoch}")),
    )?;
    Ok(format!(
        "elastane ({version}) stable; urgency=medium\n\n  * Version {version}; what changed is in \
         CHANGELOG.md of the source.\n\n -- {}  {}\n",
        maintainer(release)?,
        date.trim()
    ))
}

fn maintainer(release: &Release) -> Result<String> {
    let control = fs::read_to_string(release.source.join("packaging/debian/control"))?;
    let line = control.lines().find_map(|line| line.strip_prefix("Maintainer: "));
    Ok(line.context("packaging/debian/control names no maintainer")?.to_owned())
}

fn control(release: &Release, stage: &Stage) -> Result<()> {
    let debian = release.source.join("packaging/debian");
    // Sizes count in blocks of 1024 bytes.
    let size = text(Command::new("du").args(["-s", "-k", "--apparent-size"]).arg(stage.root()))?;
    let size = size.split_whitespace().next().context("du printed nothing")?;
    let sums = text(Command::new("sh").current_dir(stage.root()).args([
        "-c",
        "find . -type f ! -path ./etc/\\* -printf '%P\\n' | LC_ALL=C sort | xargs -d '\\n' md5sum",
    ]))?;
    let depends = libraries::depends(&fs::read(&release.programs.elastane)?)?;
    let control = fs::read_to_string(debian.join("control"))?
        .replace("@VERSION@", &release.version)
        .replace("@ARCH@", release.arch)
        .replace("@SIZE@", size)
        .replace("@DEPENDS@", &depends);
    stage.write("/DEBIAN/control", control.as_bytes(), 0o644)?;
    stage.write("/DEBIAN/conffiles", format!("{CONFIG}\n").as_bytes(), 0o644)?;
    stage.write("/DEBIAN/md5sums", sums.as_bytes(), 0o644)?;
    for script in SCRIPTS {
        stage.copy(&debian.join(script), &format!("/DEBIAN/{script}"), 0o755)?;
    }
    Ok(())
}
