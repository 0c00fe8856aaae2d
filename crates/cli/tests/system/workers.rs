//! The Python for workers of elastic trainings. Owns: a folder with it, installed once, or the
//! reason why there is none. Does not know about: the trainings.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sandbox::open_to_others;

/// Packages for the workers and the digits, at the tested versions; the worker itself is built from
/// the repository.
const PACKAGES: [&str; 4] =
    ["numpy==2.4.6", "grpcio==1.85.1", "protobuf==7.36.2", "scikit-learn==1.9.1"];
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The page with the Dockerfile of workers.
const PAGE: &str = include_str!("../../../../docs/walkthroughs/elasticdl.md");
/// Folder in which the Dockerfile installs the package.
const IN_IMAGE: &str = "/elastane/sdk/python";

/// The folder of a `python3` with the workers; `None`, after a line with the reason, if it cannot
/// be installed.
pub(crate) fn programs() -> Option<PathBuf> {
    match fixture::shared("python-workers", || install().map(|it| it.display().to_string())) {
        Ok(folder) => Some(folder.into()),
        Err(why) => skip::missing(&format!("no Python for workers: {why}")),
    }
}

/// Script that prints an archive of `$0`, the folder of programs, and `$1`, with the Python and the
/// libraries that workers need; each file has its path on this machine.
const ARCHIVE: &str = r#"set -e
std=$("$0/python3" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
files=$(find "${0%/bin}" "$std" "$1" -type f ! -path '*/sklearn/*' ! -path '*/scipy*/*' \
    ! -path "$std/test/*" ! -path '*/config-*/*')
libraries=$(echo "$files" | grep '\.so' | xargs ldd "$0/python3" | grep -o '/[^ ]* (0x' \
    | cut -d' ' -f1 | grep -v '/\.\./')
printf '%s\n' "$files" "$libraries" "$0/python3" | sort -u \
    | tar --create --dereference --hard-dereference --absolute-names --files-from -"#;

/// Archive with the files of an image for workers, and with a folder.
pub(crate) fn archive(programs: &Path, folder: &Path) -> Vec<u8> {
    let mut command = Command::new("sh");
    let output = command.args(["-c", ARCHIVE]).args([programs, folder]).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !output.stdout.is_empty(), "{said}");
    output.stdout
}

fn install() -> Result<PathBuf, String> {
    // With a server run as root, workers have other accounts, which cannot read a Python in root's
    // home.
    let base = ["/usr/bin/python3", "/usr/local/bin/python3"].into_iter().map(Path::new);
    let base = base.into_iter().find(|path| path.exists()).ok_or("no python3 in /usr/bin")?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-workers");
    open_to_others(&folder)?;
    let python = folder.join("bin/python3");
    let done = folder.join("installed");
    if !done.exists() {
        let folder = folder.display().to_string();
        run(Command::new(base).args(["-m", "venv", "--clear", "--without-pip", &folder]))?;
        pip(&python, &PACKAGES)?;
        std::fs::write(&done, "").map_err(|error| error.to_string())?;
    }
    // The package under test changes, so it is reinstalled: from what the Dockerfile copies, so that
    // nothing can be missing there.
    let copy = tempfile::tempdir().map_err(|error| error.to_string())?;
    let package = copied_by_the_dockerfile(copy.path())?;
    pip(&python, &["--force-reinstall", "--no-deps", &package.display().to_string()])?;
    Ok(folder.join("bin"))
}

/// Copies the files of the package as the Dockerfile copies them into an image, with this folder as
/// the root of the image; returns the folder of the package.
fn copied_by_the_dockerfile(root: &Path) -> Result<PathBuf, String> {
    let (_, dockerfile) = PAGE.split_once("```dockerfile\n").ok_or("the page has no Dockerfile")?;
    let copies = dockerfile.lines().take_while(|line| *line != "```").filter_map(|line| {
        let (from, to) = line.strip_prefix("COPY ")?.split_once(" /")?;
        Some((Path::new(REPOSITORY).join(from), root.join(to)))
    });
    for (from, to) in copies {
        std::fs::create_dir_all(&to).map_err(|error| error.to_string())?;
        run(Command::new("cp").arg("-r").arg(from.join(".")).arg(to))?;
    }
    Ok(root.join(IN_IMAGE.trim_start_matches('/')))
}

fn pip(python: &Path, words: &[&str]) -> Result<(), String> {
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "--python"]).arg(python);
    run(command.args(["install", "--quiet", "--retries", "1"]).args(words))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
    Err(last.to_owned())
}
