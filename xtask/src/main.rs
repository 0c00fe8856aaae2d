//! Chores of the repository: `cargo xtask tidy` and `cargo xtask bench`.
//! Owns: choosing the chore. Refuses to know: the product's code; it is read as text or run.

mod bench;
mod tidy;
mod tree;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask <chore>

  tidy                check the rules of the code base
  bench [--bin DIR]   measure the built binaries (default: target/release)
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["tidy"] => tidy::run(&root()),
        ["bench"] => bench::run(&root().join("target/release")),
        ["bench", "--bin", folder] => bench::run(&PathBuf::from(folder)),
        _ => {
            // Nobody is left to tell when standard error is closed.
            let _ = std::io::stderr().write_all(USAGE.as_bytes());
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace.
fn root() -> PathBuf {
    let mut folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    folder.pop();
    folder
}
