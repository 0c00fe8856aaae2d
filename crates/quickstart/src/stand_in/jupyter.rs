//! Stands in for `jupyter/scipy-notebook`. Owns: running the machine's own Jupyter if there is one,
//! started as that image would, and else a page that reports that there is none.

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Env, port, print_line, web};

/// Port of the image.
const PORT: u16 = 8888;
/// Jupyter's own programs, the newer one first.
const PROGRAMS: [&str; 2] = ["jupyter-lab", "jupyter-notebook"];
/// Prefix of the programs by which the image starts Jupyter.
const START: &str = "start-notebook";

pub(super) fn run(args: &[String], env: Env<'_>) -> Result<Infallible, String> {
    let port = port(env, PORT)?;
    let args = match args {
        [first, rest @ ..] if first.starts_with(START) => rest,
        all => all,
    };
    match installed(&env("PATH").unwrap_or_default()) {
        Some(program) => {
            let mut command = Command::new(&program);
            command.args([&format!("--port={port}"), "--port-retries=0", "--no-browser"]);
            // Clients that use an address of the server have another name for this machine.
            command.args(["--ip=127.0.0.1", "--ServerApp.allow_remote_access=True"]);
            if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
                command.arg("--allow-root");
            }
            let error = command.args(args).exec();
            Err(format!("cannot run {}: {error}", program.display()))
        }
        None => stand_in(port),
    }
}

/// The first of the programs that is on the path.
fn installed(path: &str) -> Option<PathBuf> {
    let runs = |file: &Path| {
        fs::metadata(file).is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0)
    };
    let in_folders =
        |name| std::env::split_paths(path).map(|of| of.join(name)).find(|file| runs(file));
    PROGRAMS.into_iter().find_map(in_folders)
}

fn stand_in(port: u16) -> Result<Infallible, String> {
    const WHY: &str = "Jupyter is not installed on this machine, and this page stands in its place";
    const HOW: &str = "Install it where the server finds programs (`pip install jupyterlab`, with its \
                       folder in the PATH of `elastane up`), delete this workload and submit it again";
    let listener = web::listen(port)?;
    print_line(&format!("Simulated: {WHY}. {HOW}."))?;
    print_line(&format!("    http://127.0.0.1:{port}/lab?token={}", token()))?;
    let page = format!(
        "<!doctype html>\n<title>No Jupyter</title>\n<h1>No Jupyter here</h1>\n\
         <p>Simulated: {WHY}.</p>\n<p>{HOW}.</p>\n"
    );
    web::serve(&listener, move || web::Answer { kind: "text/html", body: page.clone() })
}

/// A token as long as Jupyter's own. It protects nothing: the page is for everyone.
fn token() -> String {
    (0..3).map(|_| format!("{:016x}", RandomState::new().build_hasher().finish())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jupyter_is_found_where_the_path_leads() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().display().to_string();
        fs::write(dir.path().join("jupyter-lab"), "").expect("a file");
        assert_eq!(installed(&path), None, "it cannot be executed");
        let program = dir.path().join("jupyter-notebook");
        fs::write(&program, "").expect("a file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its rights");
        assert_eq!(installed(&format!("/nowhere:{path}")), Some(program));
    }

    #[test]
    fn tokens_differ() {
        assert_eq!(token().len(), 48);
        assert_ne!(token(), token());
    }
}
