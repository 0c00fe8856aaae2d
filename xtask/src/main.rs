//! Chores of the repository: rules, measurements, packages.
//! Owns: choosing the chore. Does not know about: the product's code; it is read as text or run.

mod bench;
mod package;
mod record;
mod symbols;
mod tidy;
mod tree;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask <chore>

  tidy                check the rules of the code base
  bench [--bin DIR] [--only costs|load|lists|feed|ended] [--sizes N,N] [--pools N,N]
                      measure the built binaries (default: target/release);
                      --sizes: numbers of waiting workloads, or of ended ones
  package [--version V] [--profile NAME] [--programs DIR] [--output DIR]
                      build the Debian package, the static client and the
                      container image (default: profile dist, target/packages)
  package-test [the same options]
                      install, upgrade, remove and purge them on a fresh Debian
                      with systemd, and run the image; needs root
  symbols             print what is new in the newest CUDA driver interface that a
                      package of PyPI ships, beside what fractions know
  record --bin DIR    make docs/pictures/terminal.svg with the built binaries
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["tidy"] => tidy::run(&root()),
        ["bench", ref options @ ..] => bench::Options::parse(options)
            .and_then(|options| bench::run(&root().join("target/release"), &options)),
        ["symbols"] => symbols::run(&root()),
        ["record", "--bin", folder] => record::run(&root(), &PathBuf::from(folder)),
        ["package-test", ref options @ ..] => {
            package::Options::parse(options).and_then(|it| package::try_out(&root(), it))
        }
        ["package", ref options @ ..] => {
            package::Options::parse(options).and_then(|options| package::run(&root(), options))
        }
        _ => {
            // Nothing can be reported when standard error is closed.
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
