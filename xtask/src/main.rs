//! Chores of the repository: rules, measurements, packages.
//! Owns: choosing the chore. Does not know about: the product's code; it is read as text or run.

mod bench;
mod budget;
mod package;
mod record;
mod suite;
mod symbols;
mod tidy;
mod tree;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const USAGE: &str = "\
Usage: cargo xtask <chore>

  tidy                check the rules of the code base
  test [FILTER ...]   compile and run every test, or those that cargo-nextest selects,
                      and print where the time went
  budget              build the product and compare its cost with CONTRIBUTING
  bench [--bin DIR] [--only PART] [--sizes N,N] [--pools N,N]
                      measure the built binaries (default: target/release);
                      --sizes: numbers of waiting workloads, or of ended ones
  package [--version V] [--profile NAME] [--programs DIR] [--output DIR]
                      build the Debian package, the static client and the
                      container image (default: profile dist, target/packages)
  package-test [the same options]
                      install, upgrade, remove and purge them on a fresh Debian
                      with systemd, and run the image; needs root
  ui-types            write ui/src/api/types.d.ts, the types of the API for the web
                      interface, from its OpenAPI document
  symbols             print what is new in the newest CUDA driver interface that a
                      package of PyPI ships, beside what fractions know
  record --bin DIR    make docs/pictures/terminal.svg with the built binaries
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["tidy"] => tidy::run(&root()),
        ["test", ref filters @ ..] => return ended(suite::run(&root(), filters)),
        [suite::runner::CHORE, ref words @ ..] => return ended(suite::runner::run(words)),
        ["bench", ref options @ ..] => bench::Options::parse(options)
            .and_then(|options| bench::run(&root().join("target/release"), &options)),
        ["budget"] => budget::run(&root()),
        ["ui-types"] => ui_types(),
        ["symbols"] => symbols::run(&root()),
        ["record", "--bin", folder] => record::run(&root(), &PathBuf::from(folder)),
        ["package-test", ref options @ ..] => {
            package::Options::parse(options).and_then(|it| package::try_out(&root(), it))
        }
        ["package", ref options @ ..] => {
            package::Options::parse(options).and_then(|options| package::run(&root(), options))
        }
        _ => {
            complain(USAGE);
            return ExitCode::from(2);
        }
    };
    ended(result.map(|()| ExitCode::SUCCESS))
}

/// Writes the types of the API by the test that compares them.
fn ui_types() -> anyhow::Result<()> {
    let mut command = cargo();
    command.args([
        "test",
        "--locked",
        "--package",
        "elastane-api",
        "--test",
        "it",
        "--",
        "ui_types",
    ]);
    let status = command.env("UPDATE_EXPECT", "1").status()?;
    if status.success() { Ok(()) } else { anyhow::bail!("the test of the types failed: {status}") }
}

/// The exit code of a chore, after its error was printed.
fn ended(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        complain(&format!("xtask: {error:#}\n"));
        ExitCode::FAILURE
    })
}

#[expect(clippy::disallowed_methods, reason = "a failed write is dropped")]
fn complain(text: &str) {
    drop(std::io::stderr().write_all(text.as_bytes()));
}

/// Cargo without the variables of `cargo run` about this package, as a person starts it: build
/// scripts that read such a variable would run again, and with them half of the workspace.
fn cargo() -> Command {
    let mut command = Command::new("cargo");
    let of_this =
        |name: &String| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(of_this) {
        command.env_remove(name);
    }
    command
}

/// The folder of the workspace.
fn root() -> PathBuf {
    let mut folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    folder.pop();
    folder
}
