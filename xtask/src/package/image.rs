//! The container image: a file system with the programs, what they need of the machine that builds
//! it, and busybox. Owns: the layout that `docker load` reads.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::libraries::{self, Linked};
use super::{Release, Stage, text, zip};

/// The user of the image, as in `packaging/image/etc/passwd`.
const UID: u32 = 7070;
const STATE_DIR: &str = "var/lib/elastane";
/// Files in which Debian and others keep the authorities that they trust.
const AUTHORITIES: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// The archive, as `elastane-VERSION-image-ARCH.tar.gz`.
pub(super) fn build(release: &Release) -> Result<PathBuf> {
    let Release { version, arch, output, .. } = release;
    let stage = Stage::new(release, "image-root")?;
    file_system(release, &stage)?;
    let archive = Stage::new(release, "image")?;
    let layer = archive.path("layer.tar");
    stage.tar(&layer, &[(STATE_DIR, UID)])?;
    let digest = sha256(&layer)?;
    let config = serde_json::to_vec_pretty(&config(release, &digest)?)?;
    archive.write("config.json", &config, 0o644)?;
    let name = format!("{}.json", sha256(&archive.path("config.json"))?);
    fs::rename(archive.path("config.json"), archive.path(&name))?;
    let tags = [format!("elastane:{version}"), "elastane:latest".to_owned()];
    let manifest = json!([{ "Config": name, "RepoTags": tags, "Layers": ["layer.tar"] }]);
    archive.write("manifest.json", manifest.to_string().as_bytes(), 0o644)?;
    let file = output.join(format!("elastane-{version}-image-{arch}.tar"));
    archive.tar(&file, &[])?;
    zip(&file)
}

/// Writes the root file system of the container.
fn file_system(release: &Release, stage: &Stage) -> Result<()> {
    for folder in ["bin", "root", "usr/bin", "usr/local/bin"] {
        stage.folder(folder, 0o755)?;
    }
    stage.folder("tmp", 0o1777)?;
    stage.folder(STATE_DIR, 0o700)?;
    for name in ["passwd", "group", "nsswitch.conf"] {
        let from = release.source.join("packaging/image/etc").join(name);
        stage.copy(&from, &format!("etc/{name}"), 0o644)?;
    }
    if let Some(authorities) = AUTHORITIES.iter().find(|path| Path::new(path).is_file()) {
        stage.copy(Path::new(authorities), AUTHORITIES[0], 0o644)?;
    }
    stage.copy(&release.source.join("LICENSE"), "usr/share/doc/elastane/LICENSE", 0o644)?;
    let notices = super::licences::text(&release.source)?;
    stage.write("usr/share/doc/elastane/third-party", notices.as_bytes(), 0o644)?;
    let mut libraries = BTreeSet::new();
    let mut program = |from: &Path, path: &str| {
        if let Linked::With(more) = libraries::of(from)? {
            libraries.extend(more);
        }
        stage.copy(from, path, 0o755)
    };
    program(&release.programs.elastane, "usr/bin/elastane")?;
    program(&release.programs.runai, "usr/bin/runai")?;
    // The server runs it to look up accounts.
    program(&find("getent", "libc-bin")?, "usr/bin/getent")?;
    let busybox = find("busybox", "busybox-static")?;
    program(&busybox, "bin/busybox")?;
    for library in libraries {
        stage.copy(&library, &library.to_string_lossy(), 0o755)?;
    }
    let applets = text(Command::new(&busybox).arg("--list"))?;
    for name in applets.lines().filter(|name| *name != "busybox") {
        stage.link(&format!("bin/{name}"), "busybox")?;
    }
    stage.link("usr/bin/env", "/bin/env")
}

/// A program of the machine, or which package of Debian has it.
fn find(name: &str, package: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(name));
    found.find(|path| path.is_file()).with_context(|| {
        format!("the image needs {name}, which is not on this machine: apt install {package}")
    })
}

/// Configuration of the image, as Docker stores it.
fn config(release: &Release, layer: &str) -> Result<Value> {
    let path = release.source.join("packaging/image/config.json");
    let text_of = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut config: Value = serde_json::from_str(&text_of)?;
    config["Labels"]["org.opencontainers.image.version"] = json!(release.version);
    let at = format!("@{}", release.epoch);
    let created = text(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ", "-d", &at]))?;
    let created = created.trim();
    Ok(json!({
        "architecture": release.arch,
        "os": "linux",
        "created": created,
        "config": config,
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer}")] },
        "history": [{ "created": created, "created_by": "make package" }],
    }))
}

fn sha256(file: &Path) -> Result<String> {
    let printed = text(Command::new("sha256sum").arg(file))?;
    let sum = printed.split_whitespace().next().context("sha256sum printed nothing")?;
    // `sha256sum` escapes the name of a file by a backslash before the sum.
    Ok(sum.trim_start_matches('\\').to_owned())
}
