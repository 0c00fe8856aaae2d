//! `cargo xtask package`: a Debian package, a client without libraries, and a container image.
//! Owns: what a release is called and where it is put. Does not know about what is in each of them.

mod deb;
mod image;
mod libraries;
mod licences;
mod programs;
mod stage;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use programs::Programs;
use stage::Stage;
pub(crate) use trial::run as try_out;

/// Options of packaging.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Version in place of the one in `Cargo.toml`.
    version: Option<String>,
    /// Profile in place of `dist`.
    profile: Option<String>,
    /// A folder with both programs, which are not built then.
    programs: Option<PathBuf>,
    /// Folder in place of `target/packages`.
    output: Option<PathBuf>,
}

impl Options {
    /// # Errors
    /// An option is not known, or has no value.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match *word {
                "--version" => options.version = Some((*value()?).to_owned()),
                "--profile" => options.profile = Some((*value()?).to_owned()),
                "--programs" => options.programs = Some(value()?.into()),
                "--output" => options.output = Some(value()?.into()),
                _ => bail!(
                    "`{word}` is not known; allowed are --version V, --profile NAME, \
                     --programs DIR and --output DIR"
                ),
            }
        }
        Ok(options)
    }
}

/// One version for one architecture.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) version: String,
    /// Architecture in the words of Debian and Docker, such as `amd64`.
    pub(crate) arch: &'static str,
    /// Seconds since 1970 that files are dated with: the same source gives the same packages.
    pub(crate) epoch: String,
    /// The folder of the workspace.
    pub(crate) source: PathBuf,
    /// The folder of the packages.
    pub(crate) output: PathBuf,
    pub(crate) programs: Programs,
}

/// Builds all packages of a release; prints their paths and sizes.
pub(crate) fn run(source: &Path, options: Options) -> Result<()> {
    let release = release(source, options)?;
    for (what, path) in
        [("elastane", &release.programs.elastane), ("runai", &release.programs.runai)]
    {
        print(what, path)?;
    }
    for built in [deb::build(&release)?, client(&release)?, image::build(&release)?] {
        print("package", &built)?;
    }
    Ok(())
}

fn release(source: &Path, options: Options) -> Result<Release> {
    let profile = options.profile.as_deref().unwrap_or("dist");
    let programs = match options.programs {
        Some(folder) => Programs::in_folder(&folder)?,
        None => Programs::build(source, profile)?,
    };
    let version = options.version.map_or_else(|| version_of(&programs.elastane), Ok)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '~');
    ensure!(
        version.starts_with(|c: char| c.is_ascii_digit()) && version.chars().all(allowed),
        "`{version}` is not a version: it begins with a digit and has letters, digits, `.`, `+` \
         and `~`"
    );
    let output = options.output.unwrap_or_else(|| source.join("target/packages"));
    fs::create_dir_all(&output).with_context(|| output.display().to_string())?;
    let epoch = epoch(source)?;
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("packages are made for x86_64 and aarch64, and this is {other}"),
    };
    Ok(Release { version, arch, epoch, source: source.to_owned(), output, programs })
}

/// Version that the program prints: `elastane 0.1.0`.
fn version_of(elastane: &Path) -> Result<String> {
    let text = text(Command::new(elastane).arg("version"))?;
    let version = text.split_whitespace().nth(1).context("`elastane version` names no version")?;
    Ok(version.to_owned())
}

/// Time of the last commit, or the value of `SOURCE_DATE_EPOCH`.
fn epoch(source: &Path) -> Result<String> {
    let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(epoch) => epoch,
        Err(_) => {
            text(Command::new("git").arg("-C").arg(source).args(["log", "-1", "--format=%ct"]))
                .context("outside a Git repository set SOURCE_DATE_EPOCH")?
        }
    };
    let epoch = epoch.trim().to_owned();
    ensure!(epoch.parse::<u64>().is_ok(), "SOURCE_DATE_EPOCH is `{epoch}`, and not a number");
    Ok(epoch)
}

/// `runai` alone, which needs no library of the machine.
fn client(release: &Release) -> Result<PathBuf> {
    let Release { version, arch, .. } = release;
    let name = format!("runai-{version}-linux-{arch}");
    let stage = Stage::new(release, "client")?;
    let inner = |path: &str| format!("{name}/{path}");
    stage.copy(&release.programs.runai, &inner("runai"), 0o755)?;
    stage.copy(&release.source.join("LICENSE"), &inner("LICENSE"), 0o644)?;
    stage.write(&inner("third-party"), licences::text(&release.source)?.as_bytes(), 0o644)?;
    programs::completions(&release.programs.runai, |shell, script| {
        stage.write(&inner(&format!("completion/runai.{shell}")), script.as_bytes(), 0o644)
    })?;
    release.programs.manual(&stage.path(&inner("man")), "runai")?;
    let tar = release.output.join(format!("{name}.tar"));
    stage.tar(&tar, &[])?;
    zip(&tar)
}

/// Compresses a file; the same bytes give the same file.
fn zip(file: &Path) -> Result<PathBuf> {
    run_command(Command::new("gzip").args(["-9nf"]).arg(file))?;
    let mut name = file.as_os_str().to_owned();
    name.push(".gz");
    Ok(name.into())
}

/// Runs a program that has to succeed.
fn run_command(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("failed to start {command:?}"))?;
    ensure!(status.success(), "{command:?} failed ({status})");
    Ok(())
}

/// Runs a command and returns its output.
fn text(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("failed to start {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed ({}): {errors}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

fn print(what: &str, path: &Path) -> Result<()> {
    use std::io::Write as _;
    let bytes = fs::metadata(path).with_context(|| path.display().to_string())?.len();
    let (whole, tenth) = (bytes / 1_000_000, bytes / 100_000 % 10);
    writeln!(std::io::stdout(), "{what:9} {whole:4}.{tenth} MB  {}", path.display())?;
    Ok(())
}

#[cfg(test)]
mod tests;
